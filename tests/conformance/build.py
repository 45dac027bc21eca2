"""Product objects from the loosely written values of a case."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from headrace.config import ClassAttrs, ColorFormat, ModelConfig, TensorOrder
from headrace.config.enums import NamedValue
from headrace.meta import Detections
from tests.conformance.cases import Given, UnknownShape

CLASS_KEYS = {f.name.replace("_", "-") for f in fields(ClassAttrs)} - {"min-boxes"} | {"minBoxes"}
NAMES: dict[str, type[NamedValue]] = {
    "model_color_format": ColorFormat,
    "network_input_order": TensorOrder,
}
_UNKNOWN = ("unknown-key", "unknown-group")
BOX = ("left", "top", "width", "height")


def config(
    values: Mapping[str, Any],
    *,
    all_classes: Mapping[str, Any] | None = None,
    classes: Mapping[str | int, Mapping[str, Any]] | None = None,
) -> ModelConfig:
    """A configuration with these values, written as a file and read back.

    Args:
        values: keys of `[property]`, with `-` or `_`; enumerations also by name; None is left out.
        all_classes: keys of `[class-attrs-all]`.
        classes: class id to keys of `[class-attrs-<id>]`.

    Raises:
        ConfigError: the product refuses it.
    """
    lines = ["[property]"]
    for key, value in values.items():
        kind = NAMES.get(key)
        if kind is not None and isinstance(value, str):
            value = kind[value].value
        lines += _line(key.replace("_", "-"), value)
    groups = {"all": all_classes or {}} | {str(n): v for n, v in (classes or {}).items()}
    for name, attrs in groups.items():
        lines.append(f"[class-attrs-{name}]")
        for key, value in attrs.items():
            key = "minBoxes" if key in ("minBoxes", "min_boxes") else key.replace("_", "-")
            if key not in CLASS_KEYS | {"threshold"}:
                raise UnknownShape(f"{key!r} is not a key of a class-attrs group")
            # no limit is the default, and cannot be written
            lines += [] if key == "topk" and value == -1 else _line(key, value)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.txt")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        loaded = ModelConfig.load(path)
    unknown = [str(notice) for notice in loaded.notices if notice.code in _UNKNOWN]
    if unknown:
        raise UnknownShape("; ".join(unknown))
    return loaded


def _line(key: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [f"{key}={';'.join(str(v) for v in value)}"] if value else []
    return [f"{key}={int(value) if isinstance(value, bool) else value}"]


def label_text(given: Given) -> str | None:
    """The text of a label file: as it is, as its lines, or as the fields of its lines; or None."""
    if "file_text" in given:
        return str(given["file_text"])
    if "labels_lines" in given:
        return "".join(f"{line}\n" for line in given["labels_lines"])
    if "labels" in given:
        lines = (x if isinstance(x, str) else ";".join(x) for x in given["labels"])
        return "".join(f"{line}\n" for line in lines)
    return None


def label_records(given: Given) -> list[list[str]]:
    """The fields of each line of a label file that a case gives."""
    if "labels_lines" in given:
        return [str(line).split(";") for line in given["labels_lines"]]
    return [[x] if isinstance(x, str) else list(x) for x in given.get("labels", [])]


def per_class(value: Mapping[str, Any] | None) -> bool:
    """Whether `class_attrs` of a case maps class ids to keys, and not keys to values."""
    return bool(value) and all(isinstance(v, Mapping) for v in (value or {}).values())


def detections(parsed: Sequence[Mapping[str, Any]]) -> Detections:
    """From boxes with id, class_id, left, top, width, height, confidence."""
    known = {"id", "class_id", "confidence", "rotation_angle", *BOX}
    for box in parsed:
        if set(box) - known:
            raise UnknownShape(f"a parsed box has {sorted(set(box) - known)}")
    angles = None
    if any("rotation_angle" in box for box in parsed):
        angles = np.array([box.get("rotation_angle", 0.0) for box in parsed], np.float32)
    return Detections(
        np.array([[box[k] for k in BOX] for box in parsed], np.float32).reshape(-1, 4),
        np.array([box["confidence"] for box in parsed], np.float32),
        np.array([box["class_id"] for box in parsed], np.int64),
        angles=angles,
    )


def rect(values: Sequence[Any]) -> dict[str, float]:
    return dict(zip(BOX, (float(v) for v in values), strict=True))
