"""Values of a profile in place of keys that a config leaves out.

`nvinfer` has the defaults of the table of keys. `modern` has what trainers do: a detector's image
is letterboxed in the middle, every image is scaled bilinearly, boxes are clustered by NMS.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from headrace.config.class_attrs import ClassAttrs
from headrace.config.enums import ClusterMode, NetworkType, ProcessMode, ScalingFilter
from headrace.config.origin import Origin

if TYPE_CHECKING:
    from headrace.config.model_fields import Model, ModelFields
    from headrace.config.values import Values

Profile = Literal["nvinfer", "modern"]

# Ultralytics' and YOLOX's: the commonest settings of a demonstration.
_CLASS_DEFAULTS: Values = {
    "pre_cluster_threshold": 0.25,
    "nms_iou_threshold": 0.45,
    "topk": 300,
}
_LETTERBOX = ("maintain_aspect_ratio", "symmetric_padding")
_BOXES = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)


def with_profile(cfg: Model) -> Model:
    """A config in which the profile's values stand for absent keys; itself under `nvinfer`.

    A key that the file or the program sets wins. `maintain-aspect-ratio` and `symmetric-padding`
    are one setting: where either is set, both mean what they always do. Cluster mode 0, which never
    runs as it is written, is NMS with the settings of each class. Done twice it changes nothing.
    """
    if cfg.profile != "modern":
        return cfg
    values: Values = {}
    boxes = cfg.network_type in _BOXES
    fitted = any(map(cfg.is_set, _LETTERBOX))
    if boxes and cfg.process_mode is ProcessMode.PRIMARY and not fitted:
        values |= dict.fromkeys(_LETTERBOX, True)
    if not cfg.is_set("scaling_filter"):
        values["scaling_filter"] = ScalingFilter.BILINEAR
    merged = cfg.cluster_mode is ClusterMode.GROUP_RECTANGLES
    if cfg.network_type is NetworkType.DETECTOR and merged:
        values["cluster_mode"] = ClusterMode.NMS
    values = {name: value for name, value in values.items() if value != getattr(cfg, name)}
    origins = dict.fromkeys(values, _ORIGIN)
    if boxes:
        groups = {-1: cfg.all_classes, **cfg.classes}
        absent = {n: _absent(cfg, attrs, n) for n, attrs in groups.items()}
        origins |= {f"all_classes.{name}": _ORIGIN for name in absent[-1]}
        if any(absent.values()):
            own = {n: replace(attrs, **absent[n]) for n, attrs in groups.items()}
            values |= {"all_classes": own.pop(-1), "classes": own}
    return cfg.changed(values, origins) if values else cfg


def _absent(cfg: ModelFields, attrs: ClassAttrs, class_id: int) -> Values:
    """Collect the profile's values for the settings of a class that the config leaves out."""
    return {
        name: value
        for name, value in _CLASS_DEFAULTS.items()
        if getattr(attrs, name) == getattr(_NVINFER, name)
        and cfg.origin(name, class_id=class_id).kind == "default"
    }


_NVINFER = ClassAttrs()
_ORIGIN = Origin("override", option="profile=modern")
