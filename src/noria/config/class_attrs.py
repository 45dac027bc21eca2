"""Per-class settings: `[class-attrs-all]` and `[class-attrs-<n>]`."""

from __future__ import annotations

from dataclasses import dataclass

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
