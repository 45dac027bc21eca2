"""Cases that no file has: other values, keys left out, what the gaps in the numbering may hold."""

from __future__ import annotations

from typing import Any

from tests.conformance import oracle
from tests.conformance.cases import Case

BOX = {"left": 0.0, "top": 0.0, "width": 10.0, "height": 10.0}


def box(id: str, score: float, class_id: int = 0, **ltwh: float) -> dict[str, Any]:
    return {"id": id, "class_id": class_id, **BOX, **ltwh, "confidence": score}


def cluster_case(mode: int, parsed: list[dict[str, Any]], **given: Any) -> Case:
    given = {"cluster_mode": mode, "num_detected_classes": 2, "parsed": parsed} | given
    return Case(
        "?", f"detector.cluster_mode_{mode}", given, oracle.clustering(given), tolerance=1e-3
    )


PAIR = [box("a", 0.5), box("b", 0.75, left=1.0), box("c", 0.5, 1), box("d", 0.25, left=70.0)]
EDGES = {"object_ltwh_network": [-10, -5, 50, 40], "network_wh": [640, 640], "frame_wh": [640, 640]}
ROI = {
    "object_ltwh_network": [-10, 20, 150, 20],
    "network_wh": [100, 100],
    "frame_wh": [1920, 1080],
    "tensor_meta_roi_ltwh": [300, 200, 100, 100],
}


def crd(given: dict[str, Any], expect: dict[str, Any], generation: str = "9.1") -> Case:
    return Case("?", "detector.coordinates", given, expect, "", generation, 0.01)


def rect(left: float, top: float, width: float, height: float) -> dict[str, Any]:
    return {
        "kept": True,
        "rect": {"left": left, "top": top, "width": width, "height": height},
    }


def dropped(by: str) -> dict[str, Any]:
    return {"kept": False, "dropped_by": by}


UNSEEN = [
    # geometry with keys left out, a pillar box, an object
    Case(
        "?",
        "preprocess.geometry",
        {"crop_ltwh": [0, 0, 640, 480], "network_wh": [300, 300]},
        {"scale_ratio_x": 0.46875, "scale_ratio_y": 0.625, "degenerate": False},
    ),
    Case(
        "?",
        "preprocess.geometry",
        {
            "crop_ltwh": [11, 0, 480, 960.5],
            "network_wh": [320, 320],
            "maintain_aspect_ratio": True,
            "symmetric_padding": True,
        },
        {
            "src_rect": {"left": 12, "top": 0, "width": 480, "height": 960},
            "padding": {"left": 80, "top": 0, "right": 80, "bottom": 0},
            "offset_left": 80,
        },
    ),
    Case(
        "?",
        "preprocess.normalise",
        {
            "pixel_rgb": [9, 8, 7],
            "model_color_format": "RGB",
            "net_scale_factor": 0,
            "offsets": [1, 1, 1],
        },
        {"channel_values": [9.0, 8.0, 7.0]},
    ),
    Case(
        "?", "preprocess.normalise", {"pixel_rgb": [1, 2, 3]}, {"channel_values": [1.0, 2.0, 3.0]}
    ),
    Case(
        "?",
        "preprocess.normalise",
        {"pixel_gray": 100, "model_color_format": "GRAY", "net_scale_factor": 0.5, "offsets": [20]},
        {"channel_values": [40.0]},
        tolerance=1e-5,
    ),
    Case(
        "?",
        "preprocess.layout",
        {"network_chw": [1, 3, 5], "x": 4, "y": 2},
        {"nchw_flat_index": 14},
    ),
    Case(
        "?", "preprocess.config", {"network_channels": 1, "offsets": [1]}, {"initialisation": "ok"}
    ),
    Case(
        "?",
        "preprocess.config",
        {
            "input_shape_without_batch": [224, 224, 3],
            "network_input_order": "NHWC",
            "infer_dims": [3, 224, 224],
        },
        {"initialisation": "succeeds", "interpreted_chw": [3, 224, 224]},
    ),
    # parser: class by class, row by row
    Case(
        "?",
        "detector.builtin_parser",
        {
            "network_wh": [64, 64],
            "grid_wh": [4, 4],
            "coverage_channels": 2,
            "num_detected_classes": 2,
            "pre_cluster_threshold": [0.2, 0.95],
            "nonzero_cells": [
                {"class": 1, "gx": 0, "gy": 0, "cov": 0.96, "bbox": [0, 0, 0, 0]},
                {"class": 0, "gx": 0, "gy": 1, "cov": 0.5, "bbox": [0, 0, 0, 0]},
                {"class": 0, "gx": 1, "gy": 0, "cov": 0.5, "bbox": [0, 0, 0, 0]},
                {"class": 1, "gx": 1, "gy": 1, "cov": 0.9, "bbox": [0, 0, 0, 0]},
            ],
        },
        {
            "count": 3,
            "parsed": [
                {"class_id": 0, "left": 16.5, "top": 0.5},
                {"class_id": 0},
                {"class_id": 1, "confidence": 0.96},
            ],
        },
        tolerance=0.002,
    ),
    # clustering: stable ties, one class's own limit, the replacement of mode 0, real grouping
    cluster_case(2, [box("a", 0.5), box("b", 0.5, left=90.0), box("c", 0.5, left=50.0)]),
    cluster_case(2, PAIR, class_attrs={"0": {"nms-iou-threshold": 0.9}}),
    cluster_case(2, PAIR, class_attrs_all={"post-cluster-threshold": 0.5}),
    cluster_case(2, PAIR, class_attrs_all={"topk": -1}),
    cluster_case(0, PAIR, class_attrs_all={"topk": 1, "nms-iou-threshold": 0.95}),
    cluster_case(0, PAIR, groupRectangles_available=False),
    cluster_case(
        0, PAIR, class_attrs_all={"group-threshold": 1, "eps": 0.5}, groupRectangles_available=True
    ),
    cluster_case(1, PAIR, class_attrs_all={"eps": 0.9, "minBoxes": 2, "topk": 3}),
    cluster_case(3, PAIR, class_attrs_all={"post-cluster-threshold": 0.3}),
    cluster_case(4, PAIR),
    cluster_case(4, PAIR, class_attrs_all={"topk": 0}),
    cluster_case(4, []),
    Case(
        "?",
        "detector.cluster_modes",
        {"cluster_mode": 0, "parsed": PAIR},
        {"effective": {"algorithm": "NMS", "topk": 20, "nms_iou": 0.5}, "warning": True},
    ),
    # coordinates: every filter, both generations
    crd(EDGES, rect(0, 0, 50, 40)),
    crd(EDGES | {"crop_objects_to_roi_boundary": True}, rect(0, 0, 50, 40), "6.2"),
    crd(EDGES | {"class_attrs": {"roi-top-offset": 1}}, dropped("roi-top-offset")),
    crd(EDGES | {"class_id": 2, "filter_out_class_ids": [1, 2]}, dropped("filter-out-class-ids")),
    crd(EDGES | {"class_attrs": {"detected-max-h": 39}}, dropped("detected_max_h")),
    crd(EDGES | {"class_attrs": {"detected-min-w": 51}}, dropped("detected-min-w")),
    crd(
        EDGES
        | {
            "object_ltwh_network": [308.406, 376.33, 155.506, 124.106],
            "frame_wh": [1920, 1080],
            "maintain_aspect_ratio": True,
            "symmetric_padding": True,
        },
        dropped("roi-bottom"),
    ),
    crd(
        EDGES
        | {
            "object_ltwh_network": [9, 9, 9, 9],
            "frame_wh": [1920, 1080],
            "maintain_aspect_ratio": True,
        },
        rect(27, 27, 27, 27),
    ),
    crd(ROI, rect(300, 220, 100, 20)),
    crd(ROI, rect(300, 220, 110, 20), "6.2"),
    crd(ROI | {"clip_object_outside_roi": False}, rect(290, 220, 150, 20)),
    # metadata: colours of a class, a class without a label, another component
    Case(
        "?",
        "detector.meta",
        {
            "rect_ltwh": [1.9, 50, 4, 3],
            "label": "car",
            "unique_id": 7,
            "class_attrs": {"border-color": [0, 1, 0, 1], "bg-color": "1;1;1;0.5"},
        },
        {
            "border_color": [0, 1, 0, 1],
            "has_bg_color": 1,
            "bg_color": [1, 1, 1, 0.5],
            "text_x": 1,
            "component_id": 7,
            "inference_done": True,
        },
    ),
    Case(
        "?",
        "detector.meta",
        {"class_id": 1, "labels": [["only"]]},
        {"kept": True, "obj_label": "", "display_text": None, "object_id": 2**64 - 1},
    ),
    Case(
        "?",
        "labels",
        {"file_text": "a\n \n\r\nb;;"},
        {"labels": [["a"], [" "], ["\r"], ["b", "", ""]]},
    ),
    Case(
        "?",
        "instance_segmentation",
        {"objects_with_mask_in_frame": 1},
        {"border_colors": [[1, 0, 0, 1]]},
        generation="6.2",
    ),
]
