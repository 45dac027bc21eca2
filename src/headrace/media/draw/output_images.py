"""Outputs that are images themselves: depth, enhanced and stylised images, over the frame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array
from headrace.meta.results import TensorOutput

Pixels = npt.NDArray[np.uint8]

_BYTES_FROM = 2.0  # values beyond are 0..255
_SIGNED_BELOW = -0.25  # values below are -1..1: a little under 0 an image of 0..1 overshoots
_SPREAD = (2.0, 98.0)  # percentiles of depth that get the ends of the palette
_PALETTE: Array = np.array(
    [[20, 10, 60], [90, 20, 110], [190, 50, 90], [245, 125, 40], [252, 215, 75], [255, 255, 220]],
    np.float32,
)
"""From the least value to the largest."""


def shown_image(output: TensorOutput, width: int, height: int) -> Pixels | None:
    """Make an image of a frame's size of an output.

    Args:
        output: `shown` says what it is; `bgr` that its channels are in that order.
        width, height: of the frame in pixels.

    Returns:
        (height, width, 3) uint8 RGB, without the bars that the frame was fitted in with; None if
        no output is a map of one or three channels.
    """
    found = _planes(output) if output.shown != "none" else None
    if found is None or not np.isfinite(found).any():
        return None
    found = _inside(found, output, width, height)
    if output.shown == "depth":
        rgb = _colored(found[:, :, 0])
    else:
        rgb = np.broadcast_to(_as_bytes(found), (*found.shape[:2], 3))
        rgb = rgb[:, :, ::-1] if output.bgr else rgb
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(rgb))
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))


def _planes(output: TensorOutput) -> Array | None:
    """The first output that is a map of one or three channels: (H, W, C)."""
    for layer in output.layers.values():
        values = layer.data
        while values.ndim > 2 and values.shape[0] == 1:
            values = values[0]
        if values.ndim == 3 and values.shape[0] == 3:
            values = values.transpose(1, 2, 0)
        if values.ndim == 2:
            values = values[:, :, None]
        if values.ndim == 3 and values.shape[2] in (1, 3) and min(values.shape[:2]) > 1:
            return values
    return None


def _inside(values: Array, output: TensorOutput, width: int, height: int) -> Array:
    """Cut off the bars around a frame that was fitted into the network's input."""
    if not output.maintain_aspect_ratio:
        return values
    network = output.network
    scale = min(network.width / width, network.height / height)
    share_x, share_y = width * scale / network.width, height * scale / network.height
    rows, columns = values.shape[:2]
    high, wide = max(1, round(rows * share_y)), max(1, round(columns * share_x))
    centred = output.symmetric_padding
    top, left = ((rows - high) // 2, (columns - wide) // 2) if centred else (0, 0)
    return values[top : top + high, left : left + wide]


def _as_bytes(values: Array) -> Pixels:
    if values.dtype == np.uint8:
        return values
    numbers = np.nan_to_num(values.astype(np.float32))
    low, high = float(numbers.min()), float(numbers.max())
    if max(high, -low) <= _BYTES_FROM:
        numbers = (numbers + 1) * 127.5 if low < _SIGNED_BELOW else numbers * 255
    pixels: Pixels = np.rint(numbers.clip(0, 255)).astype(np.uint8)
    return pixels


def _colored(values: Array) -> Pixels:
    numbers = values.astype(np.float32)
    finite = numbers[np.isfinite(numbers)]
    low, high = np.percentile(finite, _SPREAD)
    share = np.nan_to_num((numbers - low) / max(high - low, 1e-12)).clip(0, 1)
    steps = np.arange(256, dtype=np.float32) / 255 * (len(_PALETTE) - 1)
    at = np.arange(len(_PALETTE), dtype=np.float32)
    table = np.stack([np.interp(steps, at, channel) for channel in _PALETTE.T], axis=1)
    colors: Pixels = np.rint(table).astype(np.uint8)[np.rint(share * 255).astype(np.uint8)]
    return colors
