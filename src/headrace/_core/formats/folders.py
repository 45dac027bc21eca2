"""Formats of folders: exporters that write several files, known by their names."""

from __future__ import annotations

import json
import os
import re
from itertools import islice
from pathlib import Path

_MOST_NAMES = 2000
_MOST_JSON = 1 << 20
# Suffixes of files that stand side by side; the file with the first counts.
_FILES = (
    ("paddle", (".pdmodel", ".pdiparams")),
    ("paddle", (".json", ".pdiparams")),
    ("openvino", (".xml", ".bin")),
    ("ncnn", (".param", ".bin")),
    ("rknn", (".rknn",)),
    ("onnx", (".onnx",)),
)


def folder_format(folder: Path) -> tuple[str, str] | None:
    """Name the format of a folder in `FORMATS`, and the file in it that counts, if one does.

    None: it holds no model of a known format.
    """
    try:
        with os.scandir(folder) as entries:
            names = {entry.name for entry in islice(entries, _MOST_NAMES)}
    except OSError:
        return None
    if folder.suffix.lower() in (".mlpackage", ".mlmodelc") or {"Manifest.json", "Data"} <= names:
        return "mlpackage", ""
    if names & {"saved_model.pb", "saved_model.pbtxt"}:
        return "savedmodel", ""
    if "model_index.json" in names:
        return "diffusers", ""
    if "config.json" in names:
        key = _described(folder, names)
        if key is not None:
            return key, ""
    suffixes = {os.path.splitext(name)[1].lower() for name in names}
    for key, needed in _FILES:
        if suffixes.issuperset(needed):
            return key, min(name for name in names if name.lower().endswith(needed[0]))
    return None


def _described(folder: Path, names: set[str]) -> str | None:
    """Tell a folder of Hugging Face by its config.json: of transformers, or of timm."""
    weights = {"model.safetensors", "pytorch_model.bin", "model.safetensors.index.json",
               "pytorch_model.bin.index.json", "tf_model.h5"}  # fmt: skip
    if not weights & names:
        return None
    config = _config(folder)
    if "pretrained_cfg" in config:
        return "timm"
    return "huggingface" if {"model_type", "architectures"} & config.keys() else None


def _config(folder: Path) -> dict[str, object]:
    """Read config.json; empty if there is none that can be read."""
    try:
        with open(folder / "config.json", "rb") as file:
            config = json.loads(file.read(_MOST_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


_TASKS = {"segmentation": "image-segmentation", "instance-segmentation": "image-segmentation",
          "universal-segmentation": "image-segmentation", "pose-estimation": "keypoint-detection",
          "": "feature-extraction"}  # fmt: skip


def transformers_task(folder: Path) -> str:
    """Name the task of a model of transformers as its exporter does; TASK where it is unknown.

    Its class names it: `ResNetForImageClassification` is of image-classification.
    """
    architectures = _config(folder).get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    if not isinstance(first, str) or not re.fullmatch(r"\w{1,100}", first, re.ASCII):
        return "TASK"
    words = re.findall(r"[A-Z][a-z0-9]*", first.partition("For")[2])
    task = "-".join(word.lower() for word in words)
    return _TASKS.get(task, task)
