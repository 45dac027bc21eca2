"""Results of a tracker beside a frame's objects: boxes of past frames, features of looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.gstreamer.pyds.osd import NvOSD_RectParams
from headrace.gstreamer.pyds.struct import Nested, Struct


class NvDsTargetMiscDataFrame(Struct):
    """An object's box in a past frame.

    Attributes:
        frameNum: number of the frame in its source.
        tBbox: in pixels of the frame.
        confidence: of the tracker, 0 to 1.
        age: frames since the object was first seen.
    """

    frameNum = 0
    tBbox = Nested(NvOSD_RectParams)
    confidence = 0.0
    age = 0


class _Listing(Struct):
    """Base of the structures with a list that applications walk by `Class.list(of)`."""

    def __init__(self, parts: Sequence[Any] = ()) -> None:
        self._parts = list(parts)

    def list(self) -> Iterator[Any]:
        """Walk the parts."""
        return iter(self._parts)


class NvDsTargetMiscDataObject(_Listing):
    """The past frames of one object; `list` gives `NvDsTargetMiscDataFrame`."""

    uniqueId = 0
    classId = 0
    objLabel = ""

    @property
    def numObj(self) -> int:
        """Number of past frames."""
        return len(self._parts)


class NvDsTargetMiscDataStream(_Listing):
    """The objects of one source; `list` gives `NvDsTargetMiscDataObject`."""

    streamID = 0
    surfaceStreamID = 0

    @property
    def numFilled(self) -> int:
        """Number of objects."""
        return len(self._parts)

    @property
    def numAllocated(self) -> int:
        """Number of objects that there is room for: as many as there are."""
        return len(self._parts)


class NvDsTargetMiscDataBatch(_Listing):
    """Past frames of all sources, as user metadata of a batch.

    Their type is `NVDS_TRACKER_PAST_FRAME_META`; `list` gives `NvDsTargetMiscDataStream`.
    """

    @property
    def numFilled(self) -> int:
        """Number of sources."""
        return len(self._parts)

    @property
    def numAllocated(self) -> int:
        """Number of sources that there is room for: as many as there are."""
        return len(self._parts)


# The names of bindings before 1.1.10.
NvDsPastFrameObj, NvDsPastFrameObjList = NvDsTargetMiscDataFrame, NvDsTargetMiscDataObject
NvDsPastFrameObjStream, NvDsPastFrameObjBatch = NvDsTargetMiscDataStream, NvDsTargetMiscDataBatch


class NvDsObjReid(Struct):
    """The features of an object's look, as user metadata of the object."""

    def __init__(self, features: Sequence[float] | npt.NDArray[np.float32] = ()) -> None:
        self._features = np.asarray(features, np.float32).reshape(-1)

    @property
    def featureSize(self) -> int:
        """Number of features."""
        return int(self._features.size)

    def get_host_reid_vector(self) -> npt.NDArray[np.float32]:
        """Return the features, (featureSize,) float32."""
        return self._features
