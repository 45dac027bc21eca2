"""Formats of model files: names by content, and the way to ONNX. Start at `foreign.py`.

Names resolve on first use: a run whose files are right asks for none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace._core.formats.foreign import (
        Sighting,
        foreign_model,
        identify,
        looks_like,
        model_words,
        onnx_beside,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {".foreign": "Sighting foreign_model identify looks_like model_words onnx_beside"},
    )

__all__ = [
    "Sighting",
    "foreign_model",
    "identify",
    "looks_like",
    "model_words",
    "onnx_beside",
]
