"""Texts of an OpenVINO model, as ONNX files have them: `model_info`, and Ultralytics' file beside.

Source: docs of OpenVINO Model API ("Model configuration"); Ultralytics writes `metadata.yaml`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.config.yaml_nodes import MalformedError, only_document, plain_value

if TYPE_CHECKING:
    from headrace.network.openvino.reader import OpenVinoModel

_LARGEST = 1 << 22


def openvino_texts(model: OpenVinoModel) -> dict[str, str]:
    """Read the metadata of a model: names of classes, mean and deviation, and its own keys."""
    start = "model_info/"
    info = {k.removeprefix(start): v for k, v in model.info.items() if k.startswith(start)}
    texts = dict(info)
    if labels := info.get("labels", "").split():
        texts["names"] = json.dumps([label.replace("_", " ") for label in labels])
        del texts["labels"]
    mean, scale = _numbers(info.get("mean_values")), _numbers(info.get("scale_values"))
    if info.get("embedded_processing", "").lower() in ("true", "yes"):
        mean = scale = []  # the graph does it
        texts["description"] = "scaled inside the graph"
    if mean or scale:
        count = max(len(mean), len(scale))
        texts["mean"] = json.dumps([m / 255 for m in mean or [0.0] * count])
        texts["std"] = json.dumps([s / 255 for s in scale or [1.0] * count])
        if len(mean or [0.0] * count) != len(scale or [1.0] * count):
            del texts["mean"], texts["std"]
    return texts | _beside(model.path.parent / "metadata.yaml")


def _numbers(text: str | None) -> list[float]:
    return [float(n) for n in re.findall(r"\d+(?:\.\d+)?", text or "")]


def _beside(path: Path) -> dict[str, str]:
    """Texts of the file that Ultralytics writes beside a model; empty if there is none."""
    try:
        if path.stat().st_size > _LARGEST:
            return {}
        root = only_document(path.read_bytes())
        content = None if root is None else plain_value(root)
    except (OSError, ValueError, MalformedError):
        return {}
    return {str(k): str(v) for k, v in content.items()} if isinstance(content, dict) else {}
