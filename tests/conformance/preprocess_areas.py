"""Areas preprocess.*: geometry, normalisation, layout, mean files, refused configurations."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from headrace.config import ColorFormat
from headrace.errors import ConfigError, GeometryError, HeadraceError
from headrace.infer.geometry import Rect, even_rect, fit
from headrace.infer.mean_file import load_mean
from headrace.infer.model.image_input import network_dims
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.network.tensor_spec import TensorSpec
from tests.conformance import build
from tests.conformance.cases import Case, Given, Judge, starts


def geometry(case: Case, given: Given) -> dict[str, Any]:
    frame = [0, 0, *given.get("frame_wh", [])]
    crop = Rect(*given.get("crop_ltwh", frame))
    width, height = given["network_wh"]
    keep = bool(given.get("maintain_aspect_ratio", False))
    symmetric = bool(given.get("symmetric_padding", False))
    actual: dict[str, Any] = {"src_rect": build.rect(even_rect(crop)), "degenerate": True}
    try:
        t = fit(crop, width, height, maintain_aspect_ratio=keep, symmetric_padding=symmetric)
    except GeometryError:
        return actual
    return actual | {
        "degenerate": False,
        "src_rect": build.rect(t.src),
        "dst_rect": build.rect(t.dst),
        "padding": t.padding(width, height)._asdict(),
        "scale_ratio_x": t.ratio_x,
        "scale_ratio_y": t.ratio_y,
        "offset_left": t.offset_x,
        "offset_top": t.offset_y,
    }


def normalise(case: Case, given: Given) -> dict[str, Any]:
    """One pixel, through a frame and a whole network input of 2x2."""
    color = given.get("model_color_format", "RGB")
    values: dict[str, Any] = {"model_color_format": color}
    for key in ("net_scale_factor", "offsets", "network_input_order"):
        if key in given:
            values[key] = given[key]
    channels = 1 if color in ("GRAY", ColorFormat.GRAY) else 3
    if "pixel_gray" in given:
        pixel: Any = given["pixel_gray"]
        frame = Frame.from_array(np.full((2, 2), pixel, np.uint8), PixelFormat.GRAY)
    else:
        pixel = given["pixel_rgb"]
        rgb = np.tile(np.array(pixel, np.uint8), (2, 2, 1))
        frame = Frame.from_array(rgb, PixelFormat.RGB)
    with tempfile.TemporaryDirectory() as folder:
        if given.get("mean_pixel_bytes") is not None:
            mean = Path(folder, "mean.ppm")
            mean.write_bytes(b"P6\n2 2\n255\n" + bytes(given["mean_pixel_bytes"]) * 4)
            values["mean_file"] = mean
        try:
            pre = Preprocessor.from_config(build.config(values), 2, 2, channels)
        except ConfigError as error:
            return {"initialisation": starts(error)}
    out = np.empty(pre.shape, np.float32)
    pre(frame, out)
    planes = out if out.shape[0] == channels else out.transpose(2, 0, 1)
    assert np.ptp(planes.reshape(channels, -1), axis=1).max() == 0, "one colour in, one colour out"
    return {"channel_values": planes[:, 0, 0].tolist(), "initialisation": starts(None)}


def layout(case: Case, given: Given) -> dict[str, Any]:
    """Where one white pixel of one channel shows up in a batch."""
    channels, height, width = given["network_chw"]
    x, y, channel, item = (given.get(k, 0) for k in ("x", "y", "channel", "batch_item"))
    # twice the network's size, so that it is even and every pixel is sampled once
    pixels = np.zeros((2 * height, 2 * width, channels), np.uint8)
    pixels[2 * y : 2 * y + 2, 2 * x : 2 * x + 2, channel] = 255
    if channels == 1:
        frame = Frame.from_array(pixels[..., 0], PixelFormat.GRAY)
    else:
        frame = Frame.from_array(pixels, PixelFormat.RGB)
    color = "GRAY" if channels == 1 else "RGB"
    actual = {}
    for order in ("NCHW", "NHWC"):
        cfg = build.config({"network_input_order": order, "model_color_format": color})
        pre = Preprocessor.from_config(cfg, width, height, channels)
        batch = np.zeros((item + 1, *pre.shape), np.float32)
        pre(frame, batch[item])
        actual[f"{order.lower()}_flat_index"] = int(np.flatnonzero(batch)[0])
    return actual


def mean_file(case: Case, given: Given) -> dict[str, Any]:
    channels, height, width = given["network_chw"]
    accepted = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in given["files"]:
            path = Path(folder, "mean.ppm")
            path.write_bytes(file["header"].encode() + bytes(file["body_bytes"]))
            try:
                load_mean(path, width, height, channels)
            except ConfigError:
                accepted[file["name"]] = False
            else:
                accepted[file["name"]] = True
    return {"accepted": accepted, "failure": Judge(lambda text: True, "ConfigError at start")}


def config(case: Case, given: Given) -> dict[str, Any]:
    if "cases" in given:
        tried = [_start([c, 8, 8], {"model_color_format": color}) for color, c in given["cases"]]
        return {"ok": [isinstance(result, tuple) for result in tried]}
    values = {
        key: given[key]
        for key in ("offsets", "infer_dims", "network_input_order", "model_color_format")
        if key in given
    }
    shape = given.get("input_shape_without_batch")
    if shape is None:
        channels = given.get("network_channels", 3)
        values.setdefault("model_color_format", "GRAY" if channels == 1 else "RGB")
        shape = [channels, 8, 8]
    result = _start(shape, values)
    if isinstance(result, tuple):
        return {"initialisation": starts(None), "interpreted_chw": list(result)}
    seen = Judge(lambda chw: str(chw[0]) in str(result), f"refused: {result}")
    return {"initialisation": starts(result), "interpreted_chw": seen}


def _start(shape: list[int], values: dict[str, Any]) -> tuple[int, ...] | HeadraceError:
    try:
        cfg = build.config(values)
        dims = network_dims(TensorSpec("input", np.dtype(np.float32), (1, *shape)), cfg)
        channels, height, width = dims
        Preprocessor.from_config(cfg, width, height, channels)
    except HeadraceError as error:
        return error
    return tuple(dims)
