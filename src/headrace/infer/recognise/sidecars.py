"""Files that exporters put beside a model, as texts like those in the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LARGEST = 1 << 22  # bytes; label lists of thousands of classes have 200 kB
MODEL_TYPE = "transformers_model_type"
"""The text that tells a model of Hugging Face's transformers."""


def texts_beside(path: Path) -> dict[str, str]:
    """Read `config.json` and `preprocessor_config.json` of Hugging Face beside a model.

    Optimum writes them into the model's folder, repositories of ONNX files one folder above `onnx`.

    Returns:
        `id2label`, `mean`, `std` and `image_size` as a model's own metadata have them, and
        `MODEL_TYPE`; empty where there are no such files, or they are of another program.
    """
    folder = path.parent.parent if path.parent.name == "onnx" else path.parent
    config = _object(folder / "config.json")
    if not isinstance(config.get("model_type"), str):
        return {}
    texts = {MODEL_TYPE: str(config["model_type"])}
    if isinstance(config.get("id2label"), dict):
        texts["id2label"] = json.dumps(config["id2label"])
    return texts | _images(_object(folder / "preprocessor_config.json"))


def _images(processor: Mapping[str, Any]) -> dict[str, str]:
    """How images are prepared: mean and deviation in 0..1, and the size."""
    if not processor:
        return {}
    texts: dict[str, str] = {}
    if processor.get("do_rescale", True):
        normal = processor.get("do_normalize", True)
        mean, std = processor.get("image_mean"), processor.get("image_std")
        if not normal:
            mean, std = [0.0] * 3, [1.0] * 3
        if _numbers(mean) and _numbers(std):
            texts |= {"mean": json.dumps(mean), "std": json.dumps(std)}
    size = processor.get("size")
    if isinstance(size, dict) and _numbers([size.get("height"), size.get("width")]):
        texts["image_size"] = f"{int(size['height'])} {int(size['width'])}"
    return texts


def _numbers(values: object) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    )


def _object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is none that can be read."""
    try:
        if path.stat().st_size > _LARGEST:
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
