"""Areas classifier, segmentation, instance_segmentation and tensor_meta: what is attached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.infer.batch import Batch
from headrace.infer.classify import complete_labels
from headrace.meta import (
    Classification,
    ClassifierParams,
    Detections,
    FrameMeta,
    NetworkInfo,
    ObjectMeta,
    Segmentation,
    TensorOutput,
)
from headrace.meta.layers import layers_of
from tests.conformance import build
from tests.conformance.cases import Case, Given, Judge, UnknownShape
from tests.conformance.detector_areas import _number
from tests.conformance.detector_areas import masks as border_colors
from tests.conformance.stage import engine, image, process_mode, put, region_tensor, stage
from tests.infer.test_classify import classify

COMPONENT = 2


# -- classifier ------------------------------------------------------------------------------------


def classifier(case: Case, given: Given) -> dict[str, Any]:
    """One or several classifiers, one after the other, on one object or one frame."""
    mode = process_mode(given.get("process_mode", given.get("mode", "secondary")))
    width, height = given.get("frame_wh", [64, 64])
    batch = Batch.of([image(width, height)])
    (meta,) = batch.metas
    if mode == 2:
        label = given.get("object_display_text", given.get("object_label"))
        put(meta, [given.get("rect_ltwh", [0, 0, 32, 32])], label=label)
    found: list[Classification] = []
    for wanted in _classifiers(given):
        found.append(_classify(case, given, wanted, mode, batch))
    last = found[-1]
    actual: dict[str, Any] = {
        "attributes": [
            {"attribute_index": a, "value": v, "confidence": c, "label": name}
            for a, v, c, name in last.attributes
        ],
        "label_string": last.text,
        "objects_added": len(meta.objects) - (mode == 2),
        "inference_done": meta.inferred,
        "meta_attached": False,
        "display_text": meta.objects.display_text(0) or None if len(meta.objects) else None,
    }
    if not len(meta.objects):
        return actual
    shown = meta.objects[len(meta.objects) - 1]
    assert not [a for a in shown.classifiers if not a.labels or not a.text]
    actual["meta_attached"] = bool(shown.classifiers)
    object_ = _shown(shown)
    text = actual["display_text"]
    whole = object_ | {"display_text": text, "text": text}
    if shown.classifiers:
        record = shown.classifiers[-1]
        assert record.text == last.text, "what is attached is what was found"
        infos = [
            {
                "label_id": i.attribute,
                "result_class_id": i.value,
                "result_prob": i.confidence,
                "result_label": _short(i.label),
            }
            for i in record.labels
        ]
        actual |= {
            "label_infos": infos,
            "result_label_length": len(_short(record.labels[0].label).encode()),
            "label_string_length": len(record.text.encode()),
            "classifier_type": record.classifier_type,
            "unique_component_id": record.component_id,
            "component_id": record.component_id,
            "classifier_records": len(shown.classifiers),
        }
    return object_ | actual | {"text": text, "object": whole, "new_object": whole}


def _short(label: str) -> str:
    """A label as the original's record holds it: at most 127 bytes. Source: spec C.3."""
    return label.encode()[:127].decode(errors="ignore")


def _classifiers(given: Given) -> list[tuple[Any, str] | None]:
    """(attributes, description) of a custom parser each; None for the built-in one."""
    if "custom_attributes" in given:
        return [(given["custom_attributes"], given.get("description", "") or "")]
    told = given.get("label_strings_in_order")
    if told is None and "label_string" in given:
        told = [given["label_string"]]
    if told is None:
        return [None]
    one = [{"index": 0, "value": 0, "confidence": 1.0, "label": "told"}]
    return [(one, text) for text in told]


def _classify(
    case: Case, given: Given, custom: tuple[Any, str] | None, mode: int, batch: Batch
) -> Classification:
    threshold = given.get("threshold", given.get("classifier_threshold", 0.0))
    records = build.label_records(given)
    if "label_length" in given:
        records = [["x" * given["label_length"]]]
    text = "".join(";".join(record) + "\n" for record in records)
    params = ClassifierParams(threshold, tuple(tuple(r) for r in records))
    values = {
        "network_type": 1,
        "process_mode": mode,
        "classifier_threshold": threshold,
        "classifier_type": given.get("classifier_type"),
    }
    if custom is None:
        outputs = _outputs(given)
        told = None
        found = classify(outputs, params)[0]
    else:
        attributes, description = custom
        outputs = {"out": np.zeros((1, 2), np.float32)}
        result = Classification(
            [
                (
                    a.get("index", a.get("attribute_index", 0)),
                    a["value"],
                    a.get("confidence", 1.0),
                    a.get("label"),
                )
                for a in attributes
            ],
            description,
        )
        found = complete_labels(result, params, case.generation)  # type: ignore[arg-type]

        def told(number: int, layers: Any) -> Classification:
            return result

    shapes = {name: data.shape[1:] for name, data in outputs.items()}
    session = engine(shapes, lambda fed: {n: d.copy() for n, d in outputs.items()})
    component = given.get("unique_id", COMPONENT)
    labels = text if records else None
    with stage(
        values,
        session,
        parser=told,
        labels=labels,
        generation=case.generation,
        unique_id=component,
    ) as model:
        model.process(batch)
    return found


def _outputs(given: Given) -> dict[str, np.ndarray]:
    if "output_flat" in given:
        dims = given["output_dims"]
        return {"out0": np.array(given["output_flat"], np.float32).reshape(1, *dims)}
    if "outputs" not in given and "label_length" in given:
        return {"out0": np.ones((1, 1), np.float32)}
    return {f"out{i}": np.array([row], np.float32) for i, row in enumerate(given["outputs"])}


def _shown(shown: ObjectMeta) -> dict[str, Any]:
    rect = build.rect([shown.left, shown.top, shown.width, shown.height])
    untracked = shown.object_id == 2**64 - 1
    style = shown.style
    values = list(rect.values())
    return {
        "class_id": shown.class_id,
        "object_id": Judge(
            lambda e: (untracked and e == "untracked") or _number(shown.object_id).accepts(e),
            "untracked" if untracked else hex(shown.object_id),
        ),
        "rect": Judge(lambda e: e in (rect, values), repr(rect)),
        "rect_ltwh": values,
        "border_width": style.border_width,
        "border_color": list(style.border_color),
        "has_bg_color": int(style.bg_color is not None),
        "obj_label": shown.label,
        "component_id": shown.component_id,
        "unique_component_id": shown.component_id,
        "font": style.font,
        "font_size": style.font_size,
    }


# -- semantic segmentation -------------------------------------------------------------------------


TYPES = {
    "FP32": np.float32,
    "FP16": np.float16,
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT8": np.int8,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
}


def segmentation(case: Case, given: Given) -> dict[str, Any]:
    """One frame through the built-in parser, or a custom one that answers with `class_map`."""
    order = given.get("order", given.get("segmentation_output_order", "NCHW"))
    order = {0: "NCHW", 1: "NHWC"}.get(order, order)
    classes, height, width = _output_size(given, order)
    dims = (classes, height, width) if order == "NCHW" else (height, width, classes)
    kind = TYPES[given.get("output_type", given.get("data_type", "FP32"))]
    flat = given.get("probabilities_flat", given.get("output_flat"))
    places = [_pixel(key) for key in case.expect if _pixel(key)]
    data = np.zeros(dims, kind) if flat is None else np.array(flat, kind).reshape(dims)
    threshold = given.get("threshold", given.get("segmentation_threshold", 0.0))
    if flat is None:
        # class 0 wins at the pixels that are asked for, and nowhere else
        for x, y in places:
            data[(0, y, x) if order == "NCHW" else (y, x, 0)] = threshold + 1
    net_w, net_h = given.get("network_wh", [width, height])
    values = {
        "network_type": 2,
        "num_detected_classes": given.get("num_detected_classes", classes),
        "segmentation_threshold": threshold,
        "segmentation_output_order": 1 if order == "NHWC" else 0,
    }
    custom = given.get("custom_class_map", given.get("custom_parser_class_map"))

    def told(number: int, layers: Any) -> Segmentation:
        return Segmentation(np.array(custom, np.int32).reshape(net_h, net_w))

    session = engine(
        {"out": dims},
        lambda fed: {"out": data[None].copy()},
        inputs={"image": (np.float32, (3, net_h, net_w))},
        dtype=kind,
    )
    batch = Batch.of([image()])
    (meta,) = batch.metas
    parser = told if custom is not None else None
    with stage(values, session, parser=parser, generation=case.generation) as model:
        model.process(batch)
        failed = model.inferencer.failed_items
        said = [n.sentence for n in model.inferencer.notices]
    if failed:
        assert not meta.segmentations
        return {
            "parse": _fails(said),
            "meta_attached": False,
            "class_map": None,
            "error_logged": True,
        }
    (found,) = meta.segmentations
    flat_map = found.class_map.ravel()
    actual: dict[str, Any] = {
        "parse": Judge(lambda e: "fail" not in str(e).lower(), "succeeds"),
        "meta_attached": True,
        "class_map": flat_map.tolist(),
        "width": found.width,
        "height": found.height,
        "classes": found.num_classes,
        "class_map_length": flat_map.size,
        "unique_id": found.component_id,
        "inference_done": meta.inferred,
        "reported": any("size of the output" in text for text in said),
        "probabilities_flat": None
        if found.probabilities is None
        else found.probabilities.ravel().tolist(),
    }
    won = np.flatnonzero(flat_map >= 0).tolist() if flat is None else []
    for key in case.expect:
        place = _pixel(key)
        if place is not None:
            x, y = place
            assert found.class_map[y, x] == 0, "the map is addressed by row and column"
            rank = sorted(places, key=lambda p: (p[1], p[0])).index(place)
            actual[key] = won[rank]
    return actual


def _pixel(key: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"index_of_pixel_x(\d+)_y(\d+)", key)
    return (int(match[1]), int(match[2])) if match else None


def _output_size(given: Given, order: str) -> tuple[int, int, int]:
    if "output_chw" in given:
        classes, height, width = given["output_chw"]
    elif "output_hwc" in given:
        height, width, classes = given["output_hwc"]
    else:
        size = given.get("output_wh", given.get("network_wh", [2, 2]))
        classes = given.get("classes", given.get("num_detected_classes", 2))
        width, height = given.get("width", size[0]), given.get("height", size[1])
    return classes, height, width


def _fails(said: list[str]) -> Judge:
    return Judge(lambda e: "fail" in str(e).lower(), f"fails: {said}")


# -- instance segmentation -------------------------------------------------------------------------


def instance_segmentation(case: Case, given: Given) -> dict[str, Any]:
    """Border colours of many objects, or one frame through an instance parser."""
    if "objects_with_mask_in_frame" in given or "objects_have_mask" in given:
        return border_colors(case, given)
    boxes = given.get("objects", given.get("parsed"))
    if boxes is None:
        boxes = [{"rect_ltwh": given.get("rect_ltwh", given.get("box", [8, 8, 16, 16]))}]
        boxes[0] |= {k: given[k] for k in ("mask", "mask_wh", "class_id") if k in given}
    rows = [_instance(box) for box in boxes]
    found = Detections(
        np.array([row[0] for row in rows], np.float32).reshape(-1, 4),
        np.array([row[1] for row in rows], np.float32),
        np.array([row[2] for row in rows], np.int64),
        masks=[row[3] for row in rows],
    )
    classes = given.get("num_detected_classes", 1 + max((row[2] for row in rows), default=0))
    values = {
        "network_type": 3,
        "num_detected_classes": classes,
        "cluster_mode": given.get("cluster_mode", 4),
        "output_instance_mask": bool(given.get("output_instance_mask", True)),
        "segmentation_threshold": given.get("segmentation_threshold", given.get("threshold", 0.0)),
        "crop_objects_to_roi_boundary": bool(given.get("crop_objects_to_roi_boundary", False)),
    }
    net_w, net_h = given.get("network_wh", [64, 64])
    width, height = given.get("frame_wh", [net_w, net_h])
    own = given.get("class_attrs", given.get("class_attrs_all"))
    batch = Batch.of([image(width, height)])
    (meta,) = batch.metas
    session = engine({"out": (1,)}, inputs={"image": (np.float32, (3, net_h, net_w))})
    with stage(
        values,
        session,
        parser=lambda number, layers: found,
        all_classes=own,
        generation=case.generation,
    ) as model:
        model.process(batch)
    objects = [_masked(o, meta) for o in meta.objects]
    actual: dict[str, Any] = {
        "objects_in_order": objects,
        "objects": objects,
        "count": len(objects),
        "border_colors": [o["border_color"] for o in objects],
        "kept": bool(objects),
    }
    return (objects[0] if len(boxes) == 1 and objects else {}) | actual


def _instance(box: Mapping[str, Any]) -> tuple[Any, float, int, np.ndarray]:
    known = {"id", "rect_ltwh", "class_id", "confidence", "mask", "mask_wh", *build.BOX}
    if set(box) - known:
        raise UnknownShape(f"an instance has {sorted(set(box) - known)}")
    rect = box.get("rect_ltwh") or [box[k] for k in build.BOX]
    mask = box.get("mask")
    if "mask_wh" in box:
        width, height = box["mask_wh"]
        values = np.arange(width * height) / (width * height) if mask is None else mask
        mask = np.array(values, np.float32).reshape(height, width)
    mask = np.zeros((0, 0), np.float32) if mask is None else np.array(mask, np.float32)
    return rect, box.get("confidence", 0.9), box.get("class_id", 0), mask


def _masked(shown: ObjectMeta, meta: FrameMeta) -> dict[str, Any]:
    mask = shown.mask
    rect = build.rect([shown.left, shown.top, shown.width, shown.height])
    threshold = meta.objects.mask_thresholds.get(shown.component_id)
    return rect | {
        "rect": rect,
        "class_id": shown.class_id,
        "confidence": shown.confidence,
        "rotation_angle": shown.angle,
        "border_color": list(shown.style.border_color),
        "mask_attached": mask is not None,
        "mask": None if mask is None else mask.tolist(),
        "mask_flat": None if mask is None else mask.ravel().tolist(),
        "mask_wh": None if mask is None else [mask.shape[1], mask.shape[0]],
        "mask_width": None if mask is None else mask.shape[1],
        "mask_height": None if mask is None else mask.shape[0],
        "mask_size": None if mask is None else mask.nbytes,
        "mask_size_bytes": None if mask is None else mask.nbytes,
        "mask_threshold": threshold,
        "foreground": None if mask is None else (mask > (threshold or 0)).astype(int).tolist(),
    }


# -- raw tensors -----------------------------------------------------------------------------------


def tensor_meta(case: Case, given: Given) -> dict[str, Any]:
    if "types" in given:
        return {"bytes": [np.dtype(TYPES[name]).itemsize for name in given["types"]]}
    if "host_base" in given or "device_base" in given or "batch_index" in given:
        return _pointers(given)
    return _attached_tensors(case, given)


def _pointers(given: Given) -> dict[str, Any]:
    """Where an item's data starts, counted from the batch's; one memory stands for both."""
    kind = TYPES[given.get("data_type", "FP32")]
    index, count = given.get("batch_index", 0), given["layer_elements_per_item"]
    outputs = {"out": np.zeros((index + 2, count), kind)}
    item = TensorOutput(
        1, layers_of(outputs, index), NetworkInfo(16, 16, 3), batch_index=index, batch=outputs
    )
    offset = item.address("out") - outputs["out"].__array_interface__["data"][0]
    assert np.shares_memory(item["out"], item.batch["out"]), "a view, not a copy"
    return {
        "host_pointer": given.get("host_base", 0) + offset,
        "device_pointer": given.get("device_base", 0) + offset,
        "offset_bytes": offset,
        "bytes_per_item": item["out"].nbytes,
    }


def _attached_tensors(case: Case, given: Given) -> dict[str, Any]:
    """Where the raw outputs of one frame, object or region end up, and what they say."""
    mode = given.get("mode", given.get("process_mode", "primary"))
    wanted = given.get("output_tensor_meta", True)
    kind = given.get("network_type", 100)
    layers = given.get("output_layers", ["out"])
    ignored = given.get("input_layers", ["image"])
    if "bindings" in given:
        bound = given["bindings"]
        inputs = [b["name"] for b in bound if b.get("is_input", b.get("input", False))]
        layers, ignored = [b["name"] for b in bound if b["name"] not in inputs], inputs
    regions = mode in ("tensor", "tensor_meta", "tensor_input")
    shown = bool(given.get("roi_is_object", False)) or mode in ("secondary", 2)
    values = {
        "network_type": kind,
        "process_mode": 1 if regions else process_mode(mode),
        "output_tensor_meta": bool(wanted),
        "input_tensor_from_meta": regions,
        "maintain_aspect_ratio": bool(given.get("maintain_aspect_ratio", False)),
        "symmetric_padding": bool(given.get("symmetric_padding", False)),
        "classifier_async_mode": bool(given.get("classifier_async_mode", False)),
    }
    net_w, net_h = given.get("network_wh", [16, 16])
    size = (3, net_h, net_w)
    session = engine(
        {name: (4, 16, 16) if "bbox" in name else (1, 16, 16) for name in layers},
        inputs={ignored[0]: (np.float32, size)},
    )
    batch = Batch.of([image()])
    (meta,) = batch.metas
    if shown:
        put(meta, [[0, 0, 32, 32]], object_ids=[1])
    roi = None
    if regions:
        data = np.zeros((1, *size), np.float32)
        tensor = region_tensor(
            ignored[0],
            data,
            [0],
            targets=[given.get("unique_id", 1)],
            objects=[0 if shown else None],
        )
        batch.tensors.append(tensor)
        (roi,) = tensor.rois
    with stage(
        values, session, generation=case.generation, unique_id=given.get("unique_id", 1)
    ) as model:
        model.process(batch)
    places = {
        "frame": meta.tensors,
        "object": meta.objects.tensors.get(0, []),
        "roi": [] if roi is None else roi.tensors,
    }
    filled = [name for name, found in places.items() if found]
    actual: dict[str, Any] = {
        "attached": bool(filled),
        "meta_attached": bool(filled),
        "attached_to": filled[0] if filled else None,
        "objects_added": len(meta.objects) - shown,
        "inference_done": meta.inferred,
        "roi_meta_on_frame": roi in meta.user if roi is not None else False,
    }
    if not filled:
        return actual
    (found,) = places[filled[0]]
    return actual | {
        "unique_id": found.component_id,
        "num_output_layers": len(found.layers),
        "layers": list(found.layers),
        "output_layers": list(found.layers),
        "network_wh": [found.network.width, found.network.height],
        "network_info": {
            "width": found.network.width,
            "height": found.network.height,
            "channels": found.network.channels,
        },
        "maintain_aspect_ratio": found.maintain_aspect_ratio,
        "symmetric_padding": found.symmetric_padding,
    }


__all__ = ["classifier", "instance_segmentation", "segmentation", "tensor_meta"]
