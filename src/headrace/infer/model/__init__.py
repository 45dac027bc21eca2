"""From a `ModelConfig` to a `Plan`: find, check, build and save the engine of a config.

Start at `planning.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.infer.model.engine_files import engine_path
    from headrace.infer.model.export import export_onnx
    from headrace.infer.model.planning import load_or_build
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".engine_files": "engine_path",
            ".export": "export_onnx",
            ".planning": "load_or_build",
        },
    )

__all__ = ["engine_path", "export_onnx", "load_or_build"]
