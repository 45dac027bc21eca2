"""Per-class settings: `[class-attrs-all]` and `[class-attrs-<n>]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace._core.findings import Finding

if TYPE_CHECKING:
    from headrace.config.model_fields import Model
    from headrace.config.origin import Origin
    from headrace.config.values import Values

Rgba = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ClassAttrs:
    """How boxes of one class are thresholded, clustered, filtered and drawn.

    Field names are the keys with `-` as `_` (`minBoxes` is `min_boxes`). Pixel values are pixels of
    the incoming frame, not of the network input. Source: config facts, section 3.

    Attributes:
        pre_cluster_threshold: boxes with a lower confidence are dropped before clustering.
        post_cluster_threshold: applied to confidences after clustering (modes 1, 2, 3).
        nms_iou_threshold: a box stays when its IoU with each kept box is at most this (modes 2, 3).
        topk: the most confident boxes kept per class; -1 keeps all (cannot be written in a file).
        eps: DBSCAN distance, or the second parameter of group rectangles (modes 0, 1, 3).
        group_threshold: 0 means no grouping (mode 0).
        min_boxes: 0 skips the DBSCAN step (modes 1, 3).
        dbscan_min_score: smallest summed confidence of a cluster (mode 1).
        roi_top_offset, roi_bottom_offset: rows at the top and bottom where boxes are not wanted.
        detected_min_w, detected_min_h: smaller boxes are dropped.
        detected_max_w, detected_max_h: larger boxes are dropped; 0 is no limit.
        border_color: r, g, b, a of the drawn border, in 0..1.
        bg_color: r, g, b, a of the fill, or None for no fill.
    """

    pre_cluster_threshold: float = 0.2
    post_cluster_threshold: float = 0.0
    nms_iou_threshold: float = 0.3
    topk: int = -1
    eps: float = 0.0
    group_threshold: int = 0
    min_boxes: int = 0
    dbscan_min_score: float = 0.0
    roi_top_offset: int = 0
    roi_bottom_offset: int = 0
    detected_min_w: int = 0
    detected_min_h: int = 0
    detected_max_w: int = 0
    detected_max_h: int = 0
    border_color: Rgba = (1.0, 0.0, 0.0, 1.0)
    bg_color: Rgba | None = None


def colored(
    cfg: Model, field: str, colors: Mapping[int, Rgba], origin: Origin
) -> tuple[Model, list[Finding]]:
    """Return a config with these colours of its classes, and notices of those without effect.

    `field` is `border_colors` or `bg_colors`. `colors` are by class number; -1 is every other
    class, whatever the model's own file says.
    """
    if not colors:
        return cfg, []
    key = field.replace("_", "-")
    if not cfg.network_type.has_class_attrs:
        if origin.kind == "default":
            return cfg, []
        kind = f"network-type {cfg.network_type}"
        return cfg, [
            Finding(
                "attrs-without-effect",
                "info",
                f"{key} has no effect: {kind} draws no boxes",
                origin.where,
            )
        ]
    name = field.removesuffix("s")
    own: dict[int, Values] = {number: {name: color} for number, color in colors.items()}
    common, classes, origins = cfg.all_classes, dict(cfg.classes), {}
    if -1 in colors:
        for number, attrs in classes.items():
            classes[number] = replace(attrs, **own[-1])
            origins[f"classes.{number}.{name}"] = origin
        common = replace(common, **own[-1])
        origins[f"all_classes.{name}"] = origin
    beyond = []
    for number in sorted(colors):
        if number >= cfg.num_detected_classes:
            beyond.append(str(number))
        elif number >= 0:
            classes[number] = replace(classes.get(number, common), **own[number])
            origins[f"classes.{number}.{name}"] = origin
    notices = []
    if beyond:
        message = (
            f"{key} of class {', '.join(beyond)} has no effect: "
            f"the model has {cfg.num_detected_classes} classes"
        )
        notices.append(Finding("attrs-without-effect", "info", message, origin.where))
    return cfg.changed({"all_classes": common, "classes": classes}, origins), notices
