"""What cases must expect, computed from the spec's text without the product.

Areas whose expectation is a fact and not a number (which file is accepted, which font is used) are
not here: their cases are kept by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tests.conformance import oracle_stages
from tests.infer import oracle_cluster

f32 = np.float32
KEYS = {
    "pre-cluster-threshold": "pre",
    "post-cluster-threshold": "post",
    "nms-iou-threshold": "iou",
    "topk": "topk",
    "eps": "eps",
    "group-threshold": "group_threshold",
    "minBoxes": "min_boxes",
    "dbscan-min-score": "min_score",
}


def short(value: Any) -> float:
    """A float32 in nine digits, enough to tell it from its neighbours."""
    return float(f"{float(value):.9g}")


def ltwh(values: Any) -> dict[str, float]:
    return dict(zip(("left", "top", "width", "height"), map(short, values), strict=True))


def geometry(given: dict[str, Any]) -> dict[str, Any]:
    left, top, width, height = (math.trunc(v) for v in given["crop_ltwh"])
    src = {"left": left + left % 2, "top": top + top % 2}
    src |= {"width": width // 2 * 2, "height": height // 2 * 2}
    if not src["width"] or not src["height"]:
        return {"src_rect": src, "degenerate": True}
    w, h = given["network_wh"]
    dw, dh = w, h
    keep = given["maintain_aspect_ratio"]
    if keep:
        scale = min(Fraction(w, src["width"]), Fraction(h, src["height"]))
        dw, dh = math.floor(src["width"] * scale), math.floor(src["height"] * scale)
    ox, oy = ((w - dw) // 2, (h - dh) // 2) if keep and given["symmetric_padding"] else (0, 0)
    return {
        "src_rect": src,
        "dst_rect": {"left": ox, "top": oy, "width": dw, "height": dh},
        "padding": {"left": ox, "top": oy, "right": w - dw - ox, "bottom": h - dh - oy},
        "scale_ratio_x": dw / src["width"],
        "scale_ratio_y": dh / src["height"],
        "offset_left": ox,
        "offset_top": oy,
    }


def normalise(given: dict[str, Any]) -> dict[str, Any]:
    levels = given["pixel_rgb"]
    if given["model_color_format"] == "BGR":
        levels = levels[::-1]
    mean = given.get("mean_pixel_bytes") or given.get("offsets") or [0] * len(levels)
    scale = f32(given["net_scale_factor"])
    values = [scale * f32(f32(v) - f32(m)) for v, m in zip(levels, mean, strict=True)]
    return {"channel_values": [round(float(v), 6) for v in values]}


def layout(given: dict[str, Any]) -> dict[str, Any]:
    c, h, w = given["network_chw"]
    x, y, k, item = given["x"], given["y"], given["channel"], given["batch_item"]
    return {
        "nchw_flat_index": ((item * c + k) * h + y) * w + x,
        "nhwc_flat_index": ((item * h + y) * w + x) * c + k,
    }


def builtin_parser(given: dict[str, Any]) -> dict[str, Any] | None:
    if "layer_sets" in given:
        return None
    size, grid = given["network_wh"], given["grid_wh"]
    classes = min(given["coverage_channels"], given["num_detected_classes"])
    parsed = []
    for cell in sorted(given["nonzero_cells"], key=lambda c: (c["class"], c["gy"], c["gx"])):
        score = f32(cell["cov"])
        if cell["class"] >= classes or score < f32(given["pre_cluster_threshold"]):
            continue
        edges = []
        for k, o in enumerate(cell["bbox"]):
            axis = k % 2
            at = cell["gy" if axis else "gx"] * math.ceil(size[axis] / grid[axis])
            centre = f32(f32(at + 0.5) / f32(35))
            v = (f32(o) - centre) * f32(-35) if k < 2 else (f32(o) + centre) * f32(35)
            v = f32(size[axis] - 1) if v >= size[axis] else v
            edges.append(f32(0) if v < 0 else v)
        box = (edges[0], edges[1], edges[2] - edges[0], edges[3] - edges[1])
        if box[2] >= 0 and box[3] >= 0:
            parsed.append({"class_id": cell["class"]} | ltwh(box) | {"confidence": short(score)})
    return {"parsed": parsed}


def clustering(given: dict[str, Any]) -> dict[str, Any]:
    mode = given["cluster_mode"]
    replaced = mode == 0 and not given.get("groupRectangles_available", False)
    params = []
    for n in range(given["num_detected_classes"]):
        own = given.get("class_attrs_all", {}) | given.get("class_attrs", {}).get(str(n), {})
        p = oracle_cluster.Params(**{KEYS[key]: value for key, value in own.items()})
        if replaced:
            p.iou, p.topk = 0.5, 20
        params.append(p)
    parsed = given["parsed"]
    outcome = oracle_cluster.cluster(
        np.array([[b[k] for k in ("left", "top", "width", "height")] for b in parsed], f32),
        np.array([b["confidence"] for b in parsed], f32),
        np.array([b["class_id"] for b in parsed]),
        params,
        2 if replaced else mode,
    )
    found = []
    for box in outcome.boxes:
        entry = {"class_id": box.class_id} | ltwh(box.ltwh) | {"confidence": short(box.score)}
        names = [parsed[row]["id"] for row in box.rows]
        if mode == 1:
            entry["members"] = "+".join(names)
        elif mode != 0 or replaced:
            entry = {"id": names[0]} | entry
        found.append(entry)
    return {"objects_in_order": found, "count": len(found)}


def coordinates(given: dict[str, Any], generation: str) -> dict[str, Any]:
    t = given["item_transform"]
    class_id, own = given.get("class_id", 0), given.get("class_attrs", {})
    rect, why = oracle_cluster.attach(
        given["object_ltwh_network"],
        (t["scale_ratio_x"], t["scale_ratio_y"]),
        (t["offset_left"], t["offset_top"]),
        given["frame_wh"],
        own,
        filtered=class_id in given.get("filter_out_class_ids", []),
        crop=given.get("crop_objects_to_roi_boundary", False),
        generation=generation,
        roi=given.get("tensor_meta_roi_ltwh"),
        clip=given.get("clip_object_outside_roi", True),
        parent=given.get("parent_rect_ltwh"),
    )
    if rect is None:
        return {"kept": False, "dropped_by": "roi-bottom" if why == "roi-bottom-offset" else why}
    return {"kept": True, "rect": ltwh(rect)}


def labels(given: dict[str, Any]) -> dict[str, Any]:
    records: list[list[str]] = []
    record = [""]
    for character in given["file_text"] + "\n":
        if character == "\n":
            if record != [""]:
                records.append(record)
            record = [""]
        elif character == ";":
            record.append("")
        else:
            record[-1] += character
    return {"labels": records, "detector_labels": [fields[0] for fields in records]}


def mersenne_twister(seed: int) -> Iterator[int]:
    """32-bit words of MT19937 (Matsumoto and Nishimura 1998)."""
    state = [seed]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) % 2**32)
    while True:
        for i in range(624):
            y = state[i] & 0x80000000 | state[(i + 1) % 624] & 0x7FFFFFFF
            state[i] = state[(i + 397) % 624] ^ y >> 1 ^ (0x9908B0DF if y & 1 else 0)
            y = state[i]
            y ^= y >> 11
            y ^= y << 7 & 0x9D2C5680
            y ^= y << 15 & 0xEFC60000
            yield y ^ y >> 18


def masks(given: dict[str, Any]) -> dict[str, Any]:
    words = mersenne_twister(0)
    count = given["objects_with_mask_in_frame"]
    colors = [[round(next(words) / 2**32, 9) for _ in range(3)] + [1] for _ in range(count)]
    return {"border_colors": colors, "mask_threshold": "segmentation-threshold"}


def expect(area: str, given: dict[str, Any], generation: str) -> dict[str, Any] | None:
    """The expectation of a case, or None for what is kept by hand."""
    if area.startswith("detector.cluster_mode_"):
        return clustering(given)
    if area == "detector.coordinates":
        return coordinates(given, generation)
    if area == "classifier":
        return oracle_stages.classifier(given, generation)
    if area == "instance_segmentation" and "objects_with_mask_in_frame" in given:
        return masks(given)
    makers = {
        "preprocess.geometry": geometry,
        "preprocess.normalise": normalise,
        "preprocess.layout": layout,
        "detector.builtin_parser": builtin_parser,
        "labels": labels,
        "segmentation": oracle_stages.segmentation,
        "secondary": oracle_stages.secondary,
        "scheduling": oracle_stages.scheduling,
        "tensor_meta": oracle_stages.tensor_meta,
        "tensor_input": oracle_stages.tensor_input,
    }
    return makers[area](given) if area in makers else None
