"""Cases that no file has, about results, schedules, secondary models, errors and updates."""

from __future__ import annotations

from typing import Any

from tests.conformance import oracle_stages
from tests.conformance.cases import Case

FEW = 1e-6


def case(
    area: str,
    given: dict[str, Any],
    expect: dict[str, Any],
    generation: str = "9.1",
    tolerance: float = FEW,
) -> Case:
    return Case("?", area, given, expect, "", generation, tolerance)


def oracle_case(area: str, given: dict[str, Any]) -> Case:
    return case(area, given, getattr(oracle_stages, area)(given))


GREY = {"objects": [{"id": "a", "w": 16, "h": 16}, {"id": "b", "w": 15, "h": 40}]}
PARSED = [{"index": 2, "value": 1, "confidence": 0.5, "label": "x"}]

UNSEEN_STAGES = [
    # classifier
    case("classifier", {"outputs": [[0.5, 0.5]], "labels": [["a", "b"]]}, {"label_string": "a "}),
    case(
        "classifier",
        {
            "process_mode": "primary",
            "outputs": [[0.1, 0.9]],
            "threshold": 0.5,
            "labels": [["a", "b"]],
            "frame_wh": [1280, 720],
            "unique_id": 6,
            "classifier_type": "weather",
        },
        {
            "objects_added": 1,
            "object": {
                "class_id": -1,
                "object_id": "untracked",
                "rect": {"left": 0, "top": 0, "width": 1280, "height": 720},
                "border_width": 6,
                "border_color": [1, 0, 0, 1],
                "has_bg_color": 0,
                "component_id": 6,
                "obj_label": "",
                "display_text": " b ",
            },
            "classifier_type": "weather",
            "inference_done": True,
        },
    ),
    case(
        "classifier",
        {
            "process_mode": "primary",
            "outputs": [[0.1, 0.9]],
            "labels": [["a", "b"]],
            "unique_id": 6,
        },
        {"objects_added": 1, "object": {"component_id": 0}, "inference_done": False},
        "6.2",
    ),
    case(
        "classifier",
        {"custom_attributes": PARSED, "description": "red sedan "},
        {
            "meta_attached": True,
            "label_string": "red sedan ",
            "label_infos": [
                {"label_id": 2, "result_class_id": 1, "result_prob": 0.5, "result_label": "x"}
            ],
        },
    ),
    case("classifier", {"custom_attributes": [], "description": "t "}, {"meta_attached": False}),
    case("classifier", {"label_string": "red "}, {"display_text": "red "}),
    case(
        "classifier",
        {"outputs": [[0.1, 0.6]], "labels": [["a", "b"]], "object_display_text": "car"},
        {"display_text": "car b "},
    ),
    case(
        "classifier",
        {"label_length": 200},
        {"result_label_length": 127, "label_string_length": 201, "meta_attached": True},
    ),
    # class maps
    case(
        "segmentation",
        {
            "classes": 2,
            "height": 1,
            "width": 2,
            "order": 0,
            "probabilities_flat": [1, 2, 3, 4],
            "output_type": "FP16",
        },
        {"parse": "fails", "meta_attached": False},
    ),
    case(
        "segmentation",
        {"network_wh": [64, 32], "output_chw": [3, 8, 16], "num_detected_classes": 3},
        {"width": 16, "height": 8, "class_map_length": 128, "reported": True, "parse": "ok"},
    ),
    case(
        "segmentation",
        {"network_wh": [64, 32], "output_chw": [3, 8, 16], "num_detected_classes": 2},
        {"width": 16, "height": 8, "classes": 3},
        "6.2",
    ),
    case(
        "segmentation",
        {"output_hwc": [4, 5, 2], "order": "NHWC", "num_detected_classes": 2},
        {"width": 5, "height": 4, "index_of_pixel_x4_y3": 19, "index_of_pixel_x0_y1": 5},
    ),
    oracle_case(
        "segmentation",
        {
            "classes": 3,
            "height": 1,
            "width": 2,
            "order": "NHWC",
            "probabilities_flat": [-0.5, -0.25, -2, 0.125, 0.25, 0.25],
            "threshold": 0.0,
        },
    ),
    case("segmentation", {"output_type": "INT32"}, {"parse": "fails"}),
    # masks
    case(
        "instance_segmentation",
        {"objects_have_mask": [True, False]},
        {"border_colors": [[0.548813522, 0.592844605, 0.715189338, 1], [1, 0, 0, 1]]},
    ),
    case(
        "instance_segmentation",
        {"rect_ltwh": [60, 4, 8, 8], "mask_wh": [4, 4], "crop_objects_to_roi_boundary": True},
        {"width": 4, "mask_width": 4, "mask_height": 4, "mask_size": 64},
    ),
    # secondary
    case("secondary", GREY, {"inferred": ["a"], "passes_size_filter": ["a"]}, "6.2"),
    case("secondary", GREY, {"inferred": ["a", "b"]}),
    case(
        "secondary",
        {"operate_on_class_ids": [0], "objects": [{"id": 1, "cls": -1}, {"id": 2, "cls": 0}]},
        {"inferred": [2]},
    ),
    case(
        "secondary",
        {"network": "detector", "unique_id": 4, "objects": [{"gie": 4}, {"gie": 3}]},
        {"inferred": [1]},
    ),
    case(
        "secondary",
        {"network": "segmentation", "secondary_reinfer_interval": 9, "frames": 3},
        {"inferred_at": [0, 1, 2]},
    ),
    case(
        "secondary",
        {"secondary_reinfer_interval": 2, "frames": [{"f": 9}, {"f": 10}, {"f": 3}, {"f": 4}]},
        {"inferred_at": [9, 3], "label_attached_at": [9, 10, 3, 4]},
    ),
    case(
        "secondary",
        {"mode": "async", "secondary_reinfer_interval": 0, "frames": [0, 3]},
        {"inferred_at": [0, 1, 2, 3], "label_attached_at": [1, 2, 3]},
    ),
    case(
        "secondary",
        {"mode": "async", "inference_latency_frames": 9, "frames": [0, 8]},
        {"inferred_at": [0], "label_attached_at": []},
    ),
    case(
        "secondary",
        {"mode": "async", "object_id": "untracked", "frames": 2},
        {"inferred_at": [], "label_attached_at": []},
    ),
    case(
        "secondary",
        {
            "operate_on_gie_id": 1,
            "frames": [{"f": 0, "gie": 1}, {"f": 1, "gie": 2}],
            "result": "blue ",
        },
        {"inferred_at": [0], "label_attached_at": [0, 1]},
    ),
    case(
        "secondary",
        {"events": ["f0", "PAD_REMOVED", "f1"], "secondary_reinfer_interval": 1000},
        {"inferred_at": ["f0", "f1"]},
    ),
    case(
        "secondary",
        {"secondary_reinfer_interval": 1, "results": ["a ", "b "], "frames": [0, 3]},
        {"inferred_at": [0, 2], "labels": ["a ", "a ", "b ", "b "]},
    ),
    case(
        "secondary",
        {"secondary_reinfer_interval": 5, "frames": [100, 3]},
        {"inferred_at": [100, 3]},
    ),
    case(
        "secondary",
        {
            "mode": "async",
            "tracked": False,
            "frames": [0, 3],
            "pts_seconds": [0, 10, 299, 300],
        },
        {"warnings": 2, "inferred_at": []},
    ),
    # schedules
    oracle_case("scheduling", {"interval": 1, "buffers": 5}),
    oracle_case("scheduling", {"stabilize_buffer_count": 9, "buffers": 3}),
    case(
        "scheduling",
        {"interval": 3, "buffers": 8, "interval_changes": [{"buffer": 5, "interval": 0}]},
        {"inferred": [0, 4, 5, 6, 7]},
    ),
    case("scheduling", {"interval": 2, "buffers": 5, "eos_after": 1}, {"inferred": [0, 2]}),
    case(
        "scheduling",
        {"mode": "secondary", "stabilize_buffer_count": 1, "buffers": 2},
        {"forwarded": [1], "dropped": [0], "inferred": [1]},
    ),
    case(
        "scheduling",
        {
            "mode": "secondary",
            "network_type": "classifier",
            "batch_size": 2,
            "eligible_objects_per_frame": [3],
        },
        {"inference_batches": [2, 1], "parser_calls": 3, "calls_per_inference_batch": [2, 1]},
    ),
    oracle_case("scheduling", {"engine_min_batch": 2, "items": 1}),
    case(
        "scheduling",
        {"interval": 2, "events": ["b0", "b1", "EOS", "b2"]},
        {"inferred": ["b0", "b2"]},
    ),
    case(
        "scheduling",
        {"interval": 1, "batch_size": 2, "frames_per_buffer": 3, "buffers": 3},
        {"inferred": [0, 2], "inference_batches": [[2, 1], [], [2, 1]]},
    ),
    # raw tensors
    oracle_case(
        "tensor_meta",
        {
            "layer_elements_per_item": 7,
            "data_type": "UINT8",
            "batch_index": 5,
            "host_base": 0,
            "device_base": 16,
        },
    ),
    case("tensor_meta", {"mode": "primary"}, {"attached_to": "frame", "inference_done": False}),
    case("tensor_meta", {"output_tensor_meta": False}, {"attached": False}),
    case(
        "tensor_meta",
        {"mode": "tensor_meta", "roi_is_object": True},
        {"attached_to": "roi", "roi_meta_on_frame": True},
    ),
    case(
        "tensor_meta",
        {
            "mode": "secondary",
            "network_type": "detector",
            "output_layers": ["x_cov", "x_bbox"],
            "network_wh": [32, 24],
        },
        {"attached_to": "object", "layers": ["x_cov", "x_bbox"], "network_wh": [32, 24]},
    ),
    case(
        "tensor_meta",
        {"mode": "secondary", "network_type": "classifier", "classifier_async_mode": True},
        {"attached": False},
    ),
    # tensors of the caller
    oracle_case("tensor_input", {"batch_size": 8, "roi_count": 3, "bytes_per_item": 7}),
    case(
        "tensor_input",
        {"batch_size": 2, "roi_count": 2, "bytes_per_item": 8, "tensor_rows": 3},
        {"element_error_posted": True},
    ),
    case(
        "tensor_input",
        {
            "input_layers": ["a", "b"],
            "metas": [
                {"targets": [1], "tensor": "a", "meta_id": 1, "rows": 2},
                {"targets": [1], "tensor": "b", "meta_id": 1, "rows": 3},
            ],
        },
        {"element_error_posted": True, "used": []},
    ),
    case(
        "tensor_meta",
        {"bindings": [{"name": "x", "is_input": True}, {"name": "b"}, {"name": "a"}]},
        {"layers": ["b", "a"], "num_output_layers": 2},
    ),
    # errors
    case(
        "errors",
        {"failure": "enqueue"},
        {"element_error_posted": True, "buffer_forwarded": True, "stream_continues": False},
    ),
    case(
        "errors",
        {"custom_parser_returns": [True, False], "network_type": "classifier"},
        {"recommended_objects_for_failed_frame": 0, "stream_continues": True},
    ),
    case(
        "errors",
        {"custom_parser_returns": [False], "network_type": 2},
        {"error_logged": True, "buffer_forwarded": True},
    ),
    case("errors", {"failure": "CUDA"}, {"element_error_posted": True, "results_lost": True}),
    case(
        "errors",
        {
            "configs": [
                {"gie_unique_id": 0},
                {"network_type": 100, "cluster_mode": 0},
                {"offsets": [1, 2]},
                {"num_detected_classes": 1, "filter_out_class_ids": [0]},
                {"network_type": 2, "output_instance_mask": True},
                {"model_color_format": "GRAY"},
            ]
        },
        {"starts": [False, True, False, True, False, False]},
    ),
    case("errors", {"configs": [{"gie_unique_id": None}, {}]}, {"starts": [False, True]}),
    case(
        "errors",
        {"failure": "output dequeue"},
        {"element_error": {"prefix": "Failed to dequeue", "domain": "STREAM/FAILED"}},
    ),
    case("errors", {"failure": "parser"}, {"element_error": None, "stream_continues": True}),
    case("errors", {"failure": "conversion of a frame"}, {"element_error": True}),
    case(
        "errors",
        {"cases": [{"failure": "dequeue"}, {"failure": "pool growth refused"}]},
        {"element_error": [True, False]},
    ),
    case(
        "errors",
        {
            "frames": 2,
            "cases": [
                {"given": {"failure": "enqueue"}, "expect": {"element_error": "Failed to queue"}},
                {"given": {"failure": "parsing"}, "expect": {"error_logged": True}},
            ],
        },
        {},
    ),
    case(
        "secondary",
        {
            "tracked": True,
            "objects": [
                {"f": 0, "pad_index": 0, "object_id": 7},
                {"f": 0, "pad_index": 1, "object_id": 7},
                {"f": 1, "pad_index": 1, "object_id": 7},
            ],
        },
        {"inferred": [[0, 0], [0, 1]]},
    ),
    # label files by their lines
    case("labels", {"labels_lines": ["car", "bus;coach"]}, {"detector_labels": ["car", "bus"]}),
    case(
        "classifier",
        {"outputs": [[0.1, 0.9]], "threshold": 0.5, "labels_lines": ["red;blue"]},
        {"label_string": "blue ", "meta_attached": True},
    ),
    case("detector.meta", {"class_id": 1, "labels_lines": ["car", "bus"]}, {"text": "bus"}),
    # updates
    case("model_update", {"suffixes": [".yml", ".ini"]}, {"accepted": [True, False]}),
    case(
        "model_update",
        {
            "running": {
                "network_input_order": "NHWC",
                "infer_dims": [3, 8, 8],
                "network_type": 1,
                "classifier_threshold": 0.25,
                "parse_classifier_func_name": "f",
                "offsets": [1, 2, 3],
            },
            "update": "model-engine-file",
        },
        {
            "effective": {
                "network_input_order": "NCHW",
                "infer_dims": None,
                "classifier_threshold": 0.25,
                "classifier_parser": None,
                "offsets": (1.0, 2.0, 3.0),
                "network_type": 1,
            }
        },
    ),
    case(
        "model_update",
        {
            "running": {"cluster_mode": 2, "nms_iou": 0.75, "maintain_aspect_ratio": True},
            "update": "config-file-path",
            "new": {"cluster_mode": 2, "nms_iou": 0.5, "net_scale_factor": 0.5},
        },
        {
            "effective": {
                "algorithm": "NMS",
                "nms_iou": 0.75,
                "net_scale_factor": 0.5,
                "maintain_aspect_ratio": True,
            }
        },
    ),
]
