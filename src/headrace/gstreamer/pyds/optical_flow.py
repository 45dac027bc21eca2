"""Optical flow, and regions of cameras that see all around, as applications read them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.gstreamer.pyds.struct import Struct, Text


class NvOFFlowVector(Struct):
    """The motion of a block of pixels, in pixels."""

    flowx = 0
    flowy = 0


class NvDsOpticalFlowMeta(Struct):
    """The motion of all blocks of a frame.

    Attributes:
        rows, cols: number of blocks.
        mv_size: bytes of a vector.
        frame_num: number of the frame.
        data: (rows, cols, 2) values, x and y in pixels; None without.
    """

    rows = 0
    cols = 0
    mv_size = 4
    frame_num = 0
    data: Any = None
    priv: Any = None
    reserved: Any = None


def get_optical_flow_vectors(meta: NvDsOpticalFlowMeta) -> npt.NDArray[np.float32]:
    """Return the vectors of a frame, (rows * cols * 2,) float32: x and y of each block.

    Raises:
        ValueError: the metadata have no vectors of that number.
    """
    number = int(meta.rows) * int(meta.cols) * 2
    values = np.asarray(() if meta.data is None else meta.data, np.float32).reshape(-1)
    if values.size != number:
        raise ValueError(f"get_optical_flow_vectors: {values.size} values, {number} expected")
    return values


class ROI_STATUS_360D(IntEnum):
    """Events of objects and regions of a camera that sees all around."""

    ROI_ENTRY_360D = 1
    ROI_EXIT_360D = 2
    INSIDE_AISLE_360D = 4


class RectDim(Struct):
    """A box on the image of such a camera, in pixels."""

    left = 0.0
    top = 0.0
    width = 0.0
    height = 0.0
    class_id = 0
    tracking_id = 0
    gie_unique_id = 0
    roi_status: int = 0
    text = Text()
