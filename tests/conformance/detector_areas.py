"""Areas detector.*, labels and instance_segmentation: parser, clustering, coordinates, metadata."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import ParserError
from headrace.infer.attach import Attacher, DropReason
from headrace.infer.cluster import Clusterer, ClusterParams
from headrace.infer.geometry import Rect, ScaleTransform, fit
from headrace.infer.parsers import parse_coverage_bbox
from headrace.infer.parsers.labels import load_labels
from headrace.meta import DetectionParams, Detections, FrameMeta, Layer, NetworkInfo
from tests.conformance import build
from tests.conformance.cases import Case, Given, Judge, UnknownShape, compare


def builtin_parser(case: Case, given: Given) -> dict[str, Any]:
    if "layer_sets" in given:
        return {"result": [_layers_found(names) for names in given["layer_sets"]]}
    width, height = given["network_wh"]
    columns, rows = given["grid_wh"]
    cells = given["nonzero_cells"]
    channels = given.get("coverage_channels", 1 + max((c["class"] for c in cells), default=0))
    classes = given.get("num_detected_classes", channels)
    given.ignore("other_cells")
    coverage = np.zeros((channels, rows, columns), np.float32)
    boxes = np.zeros((channels, 4, rows, columns), np.float32)
    for cell in cells:
        k, i, j = cell["class"], cell["gx"], cell["gy"]
        coverage[k, j, i] = cell["cov"]
        boxes[k, :, j, i] = cell["bbox"]
    thresholds = np.full(classes, given.get("pre_cluster_threshold", 0.2), np.float32)
    layers = {
        "cov": Layer("cov", coverage),
        "bbox": Layer("bbox", boxes.reshape(4 * channels, rows, columns)),
    }
    network = NetworkInfo(width, height, 3)
    found = parse_coverage_bbox(layers, network, DetectionParams(classes, thresholds))
    return {"parsed": objects(found), "count": len(found)}


def _layers_found(names: list[str]) -> Any:
    """Which layers were used: the score tells the coverage layer, the width the box layer."""
    layers = {}
    for i, name in enumerate(names):
        data = np.zeros((4 if "bbox" in name else 1, 1, 1), np.float32)
        data[2 if "bbox" in name else 0] = 0.5 + i / 64
        layers[name] = Layer(name, data)
    params = DetectionParams(1, np.array([0.2], np.float32))
    try:
        found = parse_coverage_bbox(layers, NetworkInfo(640, 640, 3), params)
    except ParserError as error:
        lost = "coverage" if "coverage" in error.finding.sentence else "bbox"
        return Judge(
            lambda e: isinstance(e, str) and "fail" in e and (lost in e or "layer" not in e),
            f"failure: no {lost} layer",
        )
    cov = round((float(found.scores[0]) - 0.5) * 64)
    box = round((float(found.boxes[0, 2]) / 35 - 0.5) * 64)
    return {"cov": names[cov], "bbox": names[box]}


def clustering(case: Case, given: Given) -> dict[str, Any]:
    parsed = given["parsed"]
    values = {"cluster_mode": given.get("cluster_mode", 0)}
    for key in ("network_type", "num_detected_classes"):
        if key in given:
            values[key] = given[key]
    if "num_detected_classes" not in given:
        values["num_detected_classes"] = 1 + max((b["class_id"] for b in parsed), default=0)
    common, own = given.get("class_attrs_all"), given.get("class_attrs")
    if own and not build.per_class(own):
        common, own = {**(common or {}), **own}, None
    cfg = build.config(values, all_classes=common, classes=own)
    clusterer = Clusterer(cfg, group_rectangles=bool(given.get("groupRectangles_available", False)))
    result = clusterer(build.detections(parsed), trace=True)
    plain = clusterer(build.detections(parsed))
    np.testing.assert_array_equal(plain.detections.boxes, result.detections.boxes)
    assert result.trace is not None
    found = objects(result.detections)
    names = [str(box.get("id", row)) for row, box in enumerate(parsed)]
    for i, entry in enumerate(found):
        rows = np.flatnonzero(result.trace.output == i)
        entry["id"] = names[result.kept[i]] if not result.members[i] else None
        entry["members"] = "+".join(names[row] for row in rows)
    warned = any(n.level == "warning" for n in clusterer.notices)
    return {
        "objects_in_order": found,
        "count": len(found),
        "effective": _effective(clusterer.params),
        "warning": warned,
        "warning_logged": warned,
        "replaced_by_nms": warned,
    }


def _effective(params: ClusterParams) -> dict[str, Any]:
    label = params.mode.label
    iou = float(params.thresholds[0, 2]) if len(params.thresholds) else None
    topk = int(params.counts[0, 0]) if len(params.counts) else None
    mode = int(params.mode)
    return {
        "algorithm": label,
        "cluster_mode": mode,
        "topk": topk,
        "nms_iou": iou,
        "nms_iou_threshold": iou,
    }


def objects(found: Detections) -> list[dict[str, Any]]:
    angles = np.zeros(len(found)) if found.angles is None else found.angles
    return [
        build.rect(box)
        | {"class_id": int(c), "confidence": float(s), "rotation_angle": float(angle)}
        for box, s, c, angle in zip(found.boxes, found.scores, found.class_ids, angles, strict=True)
    ]


def coordinates(case: Case, given: Given) -> dict[str, Any]:
    network_w, network_h = given["network_wh"]
    frame_w, frame_h = given["frame_wh"]
    keep = bool(given.get("maintain_aspect_ratio", False))
    symmetric = bool(given.get("symmetric_padding", False))
    parent = _rect(given.get("parent_rect_ltwh"))
    roi = _rect(given.get("tensor_meta_roi_ltwh"))
    transform = fit(
        parent or roi or Rect(0, 0, frame_w, frame_h),
        network_w,
        network_h,
        maintain_aspect_ratio=keep,
        symmetric_padding=symmetric,
    )
    if "item_transform" in given:
        said = Given(given["item_transform"], f"{case.id} given.item_transform")
        told = ScaleTransform(
            transform.src,
            transform.dst,
            said.get("scale_ratio_x", transform.ratio_x),
            said.get("scale_ratio_y", transform.ratio_y),
            said.get("offset_left", transform.offset_x),
            said.get("offset_top", transform.offset_y),
        )
        said.done()
        if roi is None:  # of a tensor, the producer says how it was made
            for name in ("ratio_x", "ratio_y", "offset_x", "offset_y"):
                compare(getattr(told, name), getattr(transform, name), 1e-9, f"fit().{name}")
        transform = told
    class_id = given.get("class_id", 0)
    filtered = given.get("filter_out_class_ids", [])
    if isinstance(filtered, str):
        filtered = [int(v) for v in filtered.split(";") if v]
    own = given.get("class_attrs")
    cfg = build.config(
        {
            "num_detected_classes": class_id + 1,
            "crop_objects_to_roi_boundary": bool(given.get("crop_objects_to_roi_boundary", False)),
            "filter_out_class_ids": filtered,
        },
        all_classes=None if build.per_class(own) else own,
        classes=own if build.per_class(own) else None,
    )
    attacher = Attacher(cfg, clip_to_roi=bool(given.get("clip_object_outside_roi", True)))
    angle = given.get("rotation_angle")
    found = Detections(
        np.array([given["object_ltwh_network"]], np.float32),
        np.array([given.get("confidence", 0.5)], np.float32),
        np.array([class_id]),
        angles=None if angle is None else np.array([angle], np.float32),
    )
    meta = FrameMeta("case", 0, 0, 0, frame_w, frame_h)
    result = attacher(found, transform, meta, case.generation, roi=roi, parent=parent)
    kept = len(meta.objects) == 1
    actual: dict[str, Any] = {"kept": kept, "count": len(meta.objects)}
    if not kept:
        return actual | {"dropped_by": _dropped_by(DropReason(result.reasons[0]))}
    return actual | {
        "rect": build.rect(meta.objects.rects[0]),
        "dropped_by": None,
        "rotation_angle": meta.objects[0].angle,
    }


def _rect(values: Any) -> Rect | None:
    return None if values is None else Rect(*values)


def _dropped_by(reason: DropReason) -> Judge:
    """`roi-bottom` is said for roi-bottom-offset, and keys may be written with `_`."""
    key = reason.key

    def accepts(expected: Any) -> bool:
        text = str(expected).replace("_", "-")
        return len(text) > 3 and (key.startswith(text) or text.startswith(key))

    return Judge(accepts, key)


def meta(case: Case, given: Given) -> dict[str, Any]:
    """One object, attached to a frame that is the network input itself."""
    class_id = given.get("class_id", 0)
    names = [fields[0] for fields in build.label_records(given)]
    if not names:
        text = "x" * given["label_length"] if "label_length" in given else given.get("label")
        names = [] if text is None else [""] * class_id + [text]
    own = given.get("class_attrs")
    values = {"num_detected_classes": class_id + 1}
    if given.get("unique_id", given.get("gie_unique_id")) is not None:
        values["gie_unique_id"] = given.get("unique_id", given.get("gie_unique_id"))
    cfg = build.config(
        values,
        all_classes=None if build.per_class(own) else own,
        classes=own if build.per_class(own) else None,
    )
    angle = given.get("rotation_angle")
    found = Detections(
        np.array([given.get("rect_ltwh", [100, 50, 40, 30])], np.float32),
        np.array([given.get("confidence", 0.5)], np.float32),
        np.array([class_id]),
        angles=None if angle is None else np.array([angle], np.float32),
    )
    width, height = given.get("frame_wh", [4096, 4096])
    frame = FrameMeta("case", 0, 0, 0, width, height)
    same = fit(Rect(0, 0, width, height), width, height)
    Attacher(cfg, names)(found, same, frame, case.generation)
    if not len(frame.objects):
        return {"kept": False, "attached": False, "objects": 0}
    o = frame.objects[0]
    style, text = o.style, o.display_text
    x, y = o.text_position
    return {
        "kept": True,
        "attached": True,
        "meta_attached": True,
        "objects": 1,
        "rect": build.rect(frame.objects.rects[0]),
        "class_id": o.class_id,
        "confidence": o.confidence,
        "component_id": o.component_id,
        "unique_component_id": o.component_id,
        "object_id": _number(o.object_id),
        "obj_label": o.label,
        "obj_label_length": len(o.label.encode()),
        "text": text,
        "display_text": text,
        "display_text_length": len((text or "").encode()),
        "text_x": x,
        "text_y": y,
        "text_y_unclamped": int(o.top - 10),
        "recommended": y,
        "border_width": style.border_width,
        "border_color": style.border_color,
        "has_bg_color": int(style.bg_color is not None),
        "bg_color": style.bg_color,
        "font": style.font,
        "font_name": style.font,
        "font_size": style.font_size,
        "font_color": style.font_color,
        "text_bg": style.text_bg_color,
        "set_text_bg": int(style.text_bg_color is not None),
        "rotation_angle": o.angle,
        "parent": None,
        "inference_done": frame.inferred,
    }


def _number(value: int) -> Judge:
    """Expected as a number, or as text in decimal or hexadecimal."""
    return Judge(lambda e: str(e).lower() in (str(value), hex(value)), hex(value))


def labels(case: Case, given: Given) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "labels.txt")
        text = build.label_text(given)
        if text is None:
            raise UnknownShape(f"no labels among {sorted(given)}")
        path.write_bytes(text.encode())
        found = load_labels(path)
    return {
        "labels": [list(fields) for fields in found.records],
        "detector_labels": found.detector,
        "count": len(found),
    }


def masks(case: Case, given: Given) -> dict[str, Any]:
    """Border colours of a frame's objects, with and without masks."""
    if "objects_with_mask_in_frame" in given:
        has = [True] * given["objects_with_mask_in_frame"]
    elif "objects_have_mask" in given:
        has = [bool(v) for v in given["objects_have_mask"]]
    else:
        raise UnknownShape(f"no objects among {sorted(given)}")
    own: Mapping[str, Any] | None = given.get("class_attrs")
    values = {"num_detected_classes": 1, "output_instance_mask": True, "network_type": 3}
    values |= {
        "cluster_mode": 4,
        "segmentation_threshold": given.get("segmentation_threshold", 0.25),
    }
    cfg = build.config(values, all_classes=own)
    found = Detections(
        np.tile(np.array([[0, 0, 8, 8]], np.float32), (len(has), 1)),
        np.full(len(has), 0.5),
        np.zeros(len(has), int),
        masks=[np.ones((2, 2) if m else (0, 0), np.float32) for m in has],
    )
    attacher, same = Attacher(cfg), fit(Rect(0, 0, 64, 64), 64, 64)
    frames = [FrameMeta("case", 0, i, 0, 64, 64) for i in range(2)]
    for frame in frames:
        attacher(found, same, frame, case.generation)
    colors = [[o.style.border_color for o in frame.objects] for frame in frames]
    assert colors[0] == colors[1], "the colours restart with every frame"
    threshold = frames[0].objects.mask_thresholds.get(cfg.component_id)
    matches = threshold == cfg.segmentation_threshold
    return {
        "border_colors": colors[0],
        "mask_threshold": "segmentation-threshold" if matches else threshold,
    }
