"""What cases about results, schedules and secondary models must expect, without the product.

Literal readings of the spec's text, one value at a time.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

f32 = np.float32
DEFAULT_INTERVAL = 2147483647
ITEM_BYTES = {"FP32": 4, "FP16": 2, "INT8": 1, "INT32": 4, "INT64": 8, "UINT8": 1, "BOOL": 1}


def classifier(given: dict[str, Any], generation: str) -> dict[str, Any]:
    """Spec C.3."""
    labels = given.get("labels", [])

    def name(attribute: int, value: int) -> str | None:
        record = labels[attribute] if attribute < len(labels) else []
        return record[value] if value < len(record) else None

    found, text = [], ""
    if "custom_attributes" in given:
        text = given["description"]
        for told in given["custom_attributes"]:
            label = told["label"]
            if label is None and generation == "9.1":
                label = name(told["index"], told["value"])
                text += "" if label is None else label + " "
            found.append((told["index"], told["value"], told["confidence"], label))
    elif "outputs" in given or "output_flat" in given:
        layers = given.get("outputs")
        if layers is None:
            layers = [given["output_flat"][: given["output_dims"][0]]]
        for index, scores in enumerate(layers):
            best, value = 0.0, None
            for number, score in enumerate(scores):
                if score > given["threshold"] and score > best:
                    best, value = score, number
            if value is not None:
                label = name(index, value)
                found.append((index, value, best, label))
                text += "" if label is None else label + " "
    else:
        shown = given["object_display_text"]
        for part in given.get("label_strings_in_order", [given.get("label_string")]):
            shown = f"{shown} {part}"
        return {"display_text": shown}
    attached = bool(found and text)
    if given.get("process_mode") == "primary":
        width, height = given.get("frame_wh", [64, 64])
        if not attached:
            return {"objects_added": 0}
        return {
            "objects_added": 1,
            "class_id": -1,
            "rect_ltwh": [0, 0, width, height],
            "border_width": 6,
            "display_text": " " + text,
        }
    told: dict[str, Any] = {}
    if "classifier_type" in given:
        told["classifier_type"] = given["classifier_type"]
    return told | {
        "attributes": [
            {"attribute_index": a, "value": v, "confidence": c, "label": label}
            for a, v, c, label in found
        ],
        "label_string": text,
        "meta_attached": attached,
    }


def segmentation(given: dict[str, Any]) -> dict[str, Any] | None:
    """Spec C.2."""
    if "custom_class_map" in given:
        return None
    if "output_chw" in given:
        classes, height, width = given["output_chw"]
        if classes != given["num_detected_classes"]:
            return {"parse": "fails"}
        width, height = given["network_wh"]
        return {
            "width": width,
            "height": height,
            "classes": classes,
            "class_map_length": width * height,
            "index_of_pixel_x1_y2": 2 * width + 1,
        }
    classes, height, width = given["classes"], given["height"], given["width"]
    flat, found = given["probabilities_flat"], []
    for y in range(height):
        for x in range(width):
            best, winner = f32(-1), -1
            for c in range(classes):
                planar = given["order"] == "NCHW"
                at = (c * height + y) * width + x if planar else (y * width + x) * classes + c
                p = f32(flat[at])
                if p > best and p > f32(given["threshold"]):
                    best, winner = p, c
            found.append(winner)
    return {"class_map": found}


def secondary(given: dict[str, Any]) -> dict[str, Any] | None:
    """Spec D.3, for one object in frame after frame, or objects of one frame without memory."""
    if "entries" in given or given.get("mode") == "async":
        return None
    if "frames" not in given and "events" not in given:
        return None if "f" in given["objects"][0] else _eligible(given)
    kind = given.get("network", "classifier")
    interval = given.get("secondary_reinfer_interval", DEFAULT_INTERVAL)
    interval = interval if isinstance(interval, int) else DEFAULT_INTERVAL
    results = given.get("results")
    entry: dict[str, Any] | None = None
    inferred: list[int] = []
    labelled: list[int] = []
    for frame, width, height in _frames(given):
        if frame is None:
            entry = None
            continue
        passes = width >= given.get("input_object_min_width", 1)
        if entry is not None:
            passed = frame - entry["frame"]
            by_age = passed < 0 or passed > interval
            if kind == "classifier":
                passes &= by_age or entry["area"] * 1.2 < width * height
            elif kind == "detector":
                passes &= by_age or interval == DEFAULT_INTERVAL
        if passes:
            text = results[len(inferred)] if results else "red "
            inferred.append(frame)
            entry = {"frame": frame, "area": width * height, "text": text}
            if not given.get("tracked", True):
                entry = None
                labelled += [frame] * bool(text)
        if entry is not None and entry["text"] and kind == "classifier":
            labelled.append(frame)
    if "events" in given:
        return {"inferred_at": [f"f{n}" for n in inferred]}
    if "last_inferred_wh" in given:
        return {"reinferred_at": inferred[1:]}
    if kind != "classifier":
        return {"inferred_at": inferred}
    return {"inferred_at": inferred, "label_attached_at": labelled}


def _frames(given: dict[str, Any]) -> list[tuple[int | None, float, float]]:
    if "events" in given:
        numbers = [re.fullmatch(r"f(\d+)", event) for event in given["events"]]
        return [(int(n[1]) if n else None, 100, 100) for n in numbers]
    frames = given["frames"]
    if isinstance(frames, int):
        frames = [0, frames - 1]
    if isinstance(frames[0], int):
        frames = [{"f": n} for n in range(frames[0], frames[1] + 1)]
    rows: list[tuple[int | None, float, float]] = [
        (f["f"], f.get("w", 100), f.get("h", 100)) for f in frames
    ]
    if "last_inferred_wh" in given:
        rows.insert(0, (frames[0]["f"] - 1, *given["last_inferred_wh"]))
    return rows


def _eligible(given: dict[str, Any]) -> dict[str, Any]:
    passed, inferred = [], []
    for o in given["objects"]:
        w, h = o["w"], o["h"]
        big = w >= given.get("input_object_min_width", 1)
        big &= h >= given.get("input_object_min_height", 1)
        for side, key in ((w, "input_object_max_width"), (h, "input_object_max_height")):
            big &= not given.get(key, 0) or side <= given[key]
        if big:
            passed.append(o["id"])
        mine = given.get("operate_on_gie_id", -1) in (-1, o.get("gie", 1))
        wanted = given.get("operate_on_class_ids") or [o.get("cls", 0)]
        if big and mine and o.get("cls", 0) in wanted and w >= 2 and h >= 2:
            inferred.append(o["id"])
    return {"inferred": inferred, "passes_size_filter": passed}


def scheduling(given: dict[str, Any]) -> dict[str, Any] | None:
    """Spec D.1, D.2."""
    if "engine_min_batch" in given:
        return {"executed_batch": given["engine_min_batch"], "parsed_items": given["items"]}
    size = given.get("batch_size", 1)

    def cut(count: int) -> list[int]:
        return [min(size, count - start) for start in range(0, count, size)]

    if "eligible_objects_per_frame" in given:
        counts = given["eligible_objects_per_frame"]
        return {
            "inference_batches": cut(sum(counts)),
            "frame_of_each": [frame for frame, count in enumerate(counts) for _ in range(count)],
        }
    if "frames_per_buffer" in given:
        batches = [cut(count) for count in given["frames_per_buffer"]]
        told = {"inference_batches": batches}
        if given.get("network_type") == "detector":
            runs = [count for cuts in batches for count in cuts]
            told |= {"parser_calls": sum(runs), "calls_per_inference_batch": runs}
        return told
    if "events" in given:
        return None
    dropped = given.get("stabilize_buffer_count", 0)
    buffers = list(range(dropped, given["buffers"]))
    step = given.get("interval", 0) + 1 if given.get("mode", "primary") == "primary" else 1
    return {"forwarded": buffers, "inferred": buffers[::step]}


def tensor_meta(given: dict[str, Any]) -> dict[str, Any] | None:
    """Spec C.4."""
    if "types" in given:
        return {"bytes": [ITEM_BYTES[name] for name in given["types"]]}
    if "batch_index" not in given:
        return None
    size = given["layer_elements_per_item"] * ITEM_BYTES[given["data_type"]]
    offset = size * given["batch_index"]
    return {
        "host_pointer": given["host_base"] + offset,
        "device_pointer": given["device_base"] + offset,
    }


def tensor_input(given: dict[str, Any]) -> dict[str, Any]:
    """Spec A.6."""
    if "metas" in given:
        mine = [
            (i, meta)
            for i, meta in enumerate(given["metas"])
            if given["unique_id"] in meta["targets"]
        ]
        used = [i for i, meta in mine if meta["tensor"] in given["input_layers"]]
        told: dict[str, Any] = {"used": used, "warnings": len(mine) - len(used)}
        if any("meta_id" in meta for meta in given["metas"]):
            groups: dict[int, list[int]] = {}
            for i in used:
                groups.setdefault(given["metas"][i]["meta_id"], []).append(i)
            counts = [given["metas"][group[0]]["rois"] for group in groups.values()]
            told |= {"used_together": list(groups.values()), "inference_batches": counts}
        return told
    size, count = given["batch_size"], given["roi_count"]
    starts = range(0, count, size)
    return {
        "inference_batches": [min(size, count - start) for start in starts],
        "buffer_offsets": [start * given["bytes_per_item"] for start in starts],
    }
