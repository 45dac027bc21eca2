"""Small networks that find patches of plain colours, behind every usual head and pre-processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from headrace.media import Frame, PixelFormat

SIZE, CELL = 64, 8
GRID = SIZE // CELL
COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
RANGES: dict[str, tuple[float, tuple[float, ...], bool]] = {
    # net-scale-factor, offsets, BGR
    "bytes": (1.0, (), False),
    "unit": (1 / 255, (), False),
    "bgr": (1.0, (), True),
    "signed": (1 / 127.5, (127.5,) * 3, False),
    "imagenet": (0.0173, (123.675, 116.28, 103.53), False),
}
HEADS = {
    "columns": "HeadraceParseYoloV8",
    "rows": "NvDsInferParseCustomYoloV8",
    "objectness": "HeadraceParseYoloV5",
    "corners": "NvDsInferParseYolo",
    "ssd": "HeadraceParseSSDCorners",
    "centres": "HeadraceParseSSDCenters",
    "grid": None,
}


def write_detector(
    path: Path,
    head: str = "columns",
    pixels: str = "unit",
    colors: Sequence[str] = ("red", "green"),
    *,
    gain: float = 20.0,
    logits: bool = False,
    metadata: dict[str, str] | None = None,
    stem: bool = False,
) -> Path:
    """A detector of 20 pixel boxes: one candidate for each cell that a colour fills.

    Args:
        path: where to.
        head: a key of `HEADS`.
        pixels: a key of `RANGES`: what the network was trained on.
        colors: its classes.
        gain: steepness of the scores.
        logits: leave the sigmoid out.
        metadata: of the exporter.
        stem: it normalises bytes itself: pixels are 0 to 255.
    """
    scale, means, bgr = RANGES[pixels]
    wanted = np.array([COLORS[c] for c in colors], np.float64) / 255
    wanted = wanted * 1.5 - 0.5  # the colour counts for it, the others by half against it
    if bgr:
        wanted = wanted[:, ::-1]
    per_byte = gain / 255 / CELL**2 / (1 if stem else scale)
    kernel = np.broadcast_to(wanted[:, :, None, None] * per_byte, (len(colors), 3, CELL, CELL))
    shift = np.array(means or (0,) * 3) * (1 if stem else scale)
    bias = kernel.sum(axis=(2, 3)) @ shift - gain * 0.5
    nodes, constants = [], {"kernel": kernel, "bias": bias}
    first = "image"
    if stem:
        nodes += [helper.make_node("Div", ["image", "deviation"], ["scaled"])]
        constants |= {"deviation": np.full((1, 3, 1, 1), 255.0), "kernel": kernel * 255}
        first = "scaled"
    nodes += [
        helper.make_node("Conv", [first, "kernel", "bias"], ["logits"], strides=[CELL, CELL]),
        helper.make_node("Identity" if logits else "Sigmoid", ["logits"], ["cov"]),
    ]
    made, outputs, more = _HEADS[head](len(colors))
    graph = helper.make_graph(
        [*nodes, *made],
        "detector",
        [_value("image", [1, 3, SIZE, SIZE])],
        [_value(name, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in constants.items()]
        + [numpy_helper.from_array(a, n) for n, a in more.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, path)
    return path


def _value(name: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _cells() -> np.ndarray:
    """(4, N) centre x, centre y, width, height in pixels."""
    y, x = np.mgrid[:GRID, :GRID] * CELL + CELL / 2
    return np.stack([x.ravel(), y.ravel(), np.full(x.size, 20), np.full(x.size, 20)])


def _corners() -> np.ndarray:
    cx, cy, w, h = _cells()
    return np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]).clip(0, SIZE)


N = GRID * GRID
_node = helper.make_node


def _columns(c: int) -> Any:
    return (
        [
            _node("Reshape", ["cov", "flat"], ["scores"]),
            _node("Concat", ["boxes", "scores"], ["output"], axis=1),
        ],
        {"output": [1, 4 + c, N]},
        {"flat": np.array([1, c, N]), "boxes": _cells()[None].astype(np.float32)},
    )


def _rows(c: int) -> Any:
    nodes, _, more = _columns(c)
    nodes[1] = _node("Concat", ["boxes", "scores"], ["table"], axis=1)
    nodes.append(_node("Transpose", ["table"], ["output"], perm=[0, 2, 1]))
    return nodes, {"output": [1, N, 4 + c]}, more


def _objectness(c: int) -> Any:
    nodes, _, more = _columns(c)
    nodes[1:] = [
        _node("ReduceMax", ["scores"], ["objects"], axes=[1], keepdims=1),
        _node("Concat", ["boxes", "objects", "scores"], ["table"], axis=1),
        _node("Transpose", ["table"], ["output"], perm=[0, 2, 1]),
    ]
    return nodes, {"output": [1, N, 5 + c]}, more


def _corner_rows(c: int) -> Any:
    nodes, _, more = _columns(c)
    nodes[1:] = [
        _node("ReduceMax", ["scores"], ["best"], axes=[1], keepdims=1),
        _node("ArgMax", ["scores"], ["index"], axis=1, keepdims=1),
        _node("Cast", ["index"], ["class"], to=TensorProto.FLOAT),
        _node("Concat", ["boxes", "best", "class"], ["table"], axis=1),
        _node("Transpose", ["table"], ["output"], perm=[0, 2, 1]),
    ]
    more["boxes"] = _corners()[None].astype(np.float32)
    return nodes, {"output": [1, N, 6]}, more


def _ssd(c: int, places: Callable[[], np.ndarray] = _corners) -> Any:
    """Corners in 0..1, and scores with a background class in front."""
    boxes = (places() / SIZE).T[None].astype(np.float32)
    return (
        [
            _node("Reshape", ["cov", "flat"], ["found"]),
            _node("ReduceMax", ["found"], ["most"], axes=[1], keepdims=1),
            _node("Sub", ["one", "most"], ["nothing"]),
            _node("Concat", ["nothing", "found"], ["columns"], axis=1),
            _node("Transpose", ["columns"], ["scores"], perm=[0, 2, 1]),
            _node("Identity", ["places"], ["boxes"]),
        ],
        {"scores": [1, N, c + 1], "boxes": [1, N, 4]},
        {"flat": np.array([1, c, N]), "places": boxes, "one": np.ones((1, 1, 1), np.float32)},
    )


def _grid(c: int) -> Any:
    """DetectNet: offsets from the cell's corner in units of 35 pixels."""
    cx, cy, w, h = _cells()
    y, x = (np.mgrid[:GRID, :GRID] * CELL).reshape(2, -1)
    centre_x, centre_y = (x + 0.5) / 35, (y + 0.5) / 35
    one = np.stack([
        centre_x - (cx - w / 2) / 35, centre_y - (cy - h / 2) / 35,
        (cx + w / 2) / 35 - centre_x, (cy + h / 2) / 35 - centre_y,
    ])  # fmt: skip
    bbox = np.tile(one, (c, 1)).reshape(1, 4 * c, GRID, GRID).astype(np.float32)
    return (
        [_node("Identity", ["places"], ["bbox"])],
        {"cov": [1, c, GRID, GRID], "bbox": [1, 4 * c, GRID, GRID]},
        {"places": bbox},
    )


_HEADS = {
    "columns": _columns,
    "rows": _rows,
    "objectness": _objectness,
    "corners": _corner_rows,
    "ssd": _ssd,
    "centres": lambda c: _ssd(c, _cells),
    "grid": _grid,
}


def config_for(
    folder: Path,
    head: str = "columns",
    pixels: str = "unit",
    colors: Sequence[str] = ("red", "green"),
    text: str = "[class-attrs-all]\npre-cluster-threshold=0.4\nnms-iou-threshold=0.4\n",
    *,
    model: dict[str, Any] | None = None,
    **keys: Any,
) -> Path:
    """Model, labels and the right config; `keys` change it, None leaves one out."""
    write_detector(folder / "detector.onnx", head, pixels, colors, **(model or {}))
    names = ["background", *colors] if head in ("ssd", "centres") else list(colors)
    (folder / "labels.txt").write_text("\n".join(names) + "\n")
    scale, means, bgr = RANGES[pixels]
    values = {
        "gie_unique_id": 1,
        "onnx_file": "detector.onnx",
        "labelfile_path": "labels.txt",
        "num_detected_classes": len(names),
        "network_type": 0,
        "network_mode": 0,
        "cluster_mode": 2,
        "net_scale_factor": 1 if model and model.get("stem") else scale,
        "offsets": ";".join(map(str, means)) or None,
        "model_color_format": int(bgr),
        "parse_bbox_func_name": HEADS[head],
        "filter_out_class_ids": 0 if head in ("ssd", "centres") else None,
    } | keys
    lines = [f"{k.replace('_', '-')}={v}" for k, v in values.items() if v is not None]
    path = folder / "config.txt"
    path.write_text("[property]\n" + "\n".join(lines) + "\n" + text)
    return path


def frames(
    kind: str = "objects", colors: Sequence[str] = ("red", "green"), count: int = 10
) -> list[Frame]:
    """Images of 128x128 pixels, twice the network's size.

    Args:
        kind: `objects`, `crowded`, `still` (the same image), or without objects that can be seen:
            `plain`, `dark`, `noisy`, `empty`.
        colors: of the objects, which go round.
        count: how many.
    """
    rng = np.random.default_rng(len(kind))
    made = []
    for i in range(count):
        image = np.full((128, 128, 3), 110, np.float64)
        if kind not in ("plain",):
            image += rng.normal(0, 60 if kind == "noisy" else 12, image.shape)
            image += np.linspace(-40, 40, 128)[None, :, None]
        if kind in ("objects", "crowded", "dark", "still"):
            step = 0 if kind == "still" else i
            for k in range(9 if kind == "crowded" else 2):
                color = COLORS[colors[(k + step) % len(colors)]]
                x, y = (step * 8 + k * 40) % 96, (step * 16 + k // 3 * 40 + 16 * k) % 96
                image[y : y + 32, x : x + 32] = color
        if kind == "dark":
            image *= 0.08
        pixels = image.clip(0, 255).astype(np.uint8)
        made.append(Frame.from_array(pixels, PixelFormat.RGB, frame=i, source="test"))
    return made
