"""Product objects from the loosely written values of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from noria.config import ClassAttrs, ClusterMode, ColorFormat, NetworkType, TensorOrder
from noria.config.model_config import ModelConfig
from noria.meta import Detections
from tests.conformance.cases import UnknownShape

CLASS_FIELDS = {f.name for f in fields(ClassAttrs)}
COLORS = ("border_color", "bg_color")
ENUMS = {
    "cluster_mode": ClusterMode,
    "model_color_format": ColorFormat,
    "network_input_order": TensorOrder,
    "network_type": NetworkType,
}
BOX = ("left", "top", "width", "height")


def class_attrs(base: ClassAttrs, values: Mapping[str, Any] | None) -> ClassAttrs:
    """`base` with the keys of a `class-attrs` group on top."""
    changes: dict[str, Any] = {}
    for key, value in (values or {}).items():
        name = "min_boxes" if key == "minBoxes" else key.replace("-", "_")
        name = "pre_cluster_threshold" if name == "threshold" else name
        if name not in CLASS_FIELDS:
            raise UnknownShape(f"{key!r} is not a key of a class-attrs group")
        if name in COLORS and value is not None:
            parts = value.strip(";").split(";") if isinstance(value, str) else value
            value = tuple(float(v) for v in parts)
        changes[name] = value
    return replace(base, **changes)


def config(
    values: Mapping[str, Any],
    *,
    all_classes: Mapping[str, Any] | None = None,
    classes: Mapping[str | int, Mapping[str, Any]] | None = None,
) -> ModelConfig:
    """A detector's configuration: defaults, then class-attrs-all, then each class."""
    base = class_attrs(ClassAttrs(), all_classes)
    named: dict[str, Any] = {}
    for key, value in values.items():
        if value is None:
            continue
        kind = ENUMS.get(key)
        if kind is not None:
            value = kind[value] if isinstance(value, str) else next(m for m in kind if m == value)
        named[key] = tuple(value) if isinstance(value, list) else value
    return ModelConfig(
        all_classes=base,
        classes={int(n): class_attrs(base, v) for n, v in (classes or {}).items()},
        **named,
    )


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
