"""Calls of a low-level tracker library, in the process that has loaded it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.binary.elf import ElfFile
from headrace.custom.nvmot.geometry import SpaceBuffers
from headrace.custom.nvmot.records import MISC_KINDS, MiscBuffers, misc_rows
from headrace.custom.nvmot.structures import structure
from headrace.custom.original import elf_with, load_beside
from headrace.custom.stand_ins import note_calls

_KIND = "a low-level tracker library"
REQUIRED = ("NvMOT_Init", "NvMOT_Process", "NvMOT_DeInit")
UPDATE = "NvMOT_UpdateParams"
CPU, SYSTEM_MEMORY, CUDA_MEMORY = 0x02, 6, (2, 7)
_NO_NAME = ctypes.create_string_buffer(1)  # of the sensor: a library may read the text
ROOM = 512  # objects of a frame that a library may return at least
MOST = 1 << 14
_STATUS = {1: "NvMOTStatus_Error", 2: "NvMOTStatus_Invalid_Path"}
_CONFIG = {1: "Error", 2: "Invalid", 3: "Unsupported"}


class _CxxString(ctypes.Structure):
    """A `const std::string` of libstdc++'s present ABI, to be read only: text, length, room."""

    _fields_ = (
        ("text", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
        ("rest", ctypes.c_size_t),
    )

    def __init__(self, text: bytes) -> None:
        super().__init__(text, len(text), len(text), 0)


@dataclass(frozen=True, slots=True)
class SurfaceImage:
    """An image in one block of memory: its format of the original, and rows of its planes."""

    color: int
    width: int
    height: int
    planes: list[tuple[int, int, int, int, int]]  # width, height, pitch, offset, bytes of a pixel
    data: npt.NDArray[np.uint8]


class NvmotHost:
    """One context of a library.

    Args:
        path: the library.
        generation: of `structures.GENERATIONS`, for which it was compiled.
        config: path of its own file; empty for none.
        width, height: of the images and boxes that it gets.
        streams: most sources of the context.

    Attributes:
        query: what the library says about itself, the fields of NvMOTQuery.
        lacking: what it left out that a tracker cannot be driven without; empty if nothing.
        notices: about what stands in for missing libraries, and what is lacking.

    Raises:
        CustomLibraryError: it cannot be loaded, lacks a function, or refuses the settings.
    Source: section "low-level tracker library API" of the manual of Gst-nvtracker.
    """

    def __init__(
        self, path: Path, generation: str, config: str, width: int, height: int, streams: int
    ) -> None:
        self._where, self._generation = str(path), generation
        self._size = width, height
        self.notices: list[Finding] = []
        self._library = load_beside(path, REQUIRED, _KIND, self.notices)
        self._config = ctypes.create_string_buffer(config.encode())
        self._handle = ctypes.c_void_p()
        self._has_context = False
        self.query = self._ask()
        self._start(config, streams)
        if generation >= "7.0":
            self.query = self._ask() or self.query
        self.lacking = self._lacking()
        if self.lacking:
            self.notices.append(Finding("tracker-query", "warning", self.lacking, self._where))
        self._reids = int(self.query.get("reidFeatureSize", 0))
        if not self.query.get("outputReidTensor") or not 0 < self._reids <= 1 << 14:
            self._reids = 0
        self._room = min(MOST, max(ROOM, int(self.query.get("maxTargetsPerStream", 0))))
        self._misc = self._misc_buffers()
        names = tuple(name for name, *_ in structure("NvMOTTrackedObj", generation)._fields_)
        self._spaces = SpaceBuffers(names, self.query, self._room, self._size)
        note_calls(ElfFile.read(path), self.notices, _native.stand_in_calls())

    def _make(self, name: str) -> Any:
        return structure(name, self._generation)()

    def _ask(self) -> dict[str, Any]:
        """Fields of NvMOTQuery; empty without that function."""
        function = getattr(self._library, "NvMOT_Query", None)
        if function is None:
            return {}
        room = ctypes.create_string_buffer(256)  # a newer library may write more
        query = structure("NvMOTQuery", self._generation).from_buffer(room)
        if hasattr(query, "contextHandle") and self._has_context:
            query.contextHandle = self._handle.value
        status = function(
            ctypes.c_uint16(len(self._config.value)), self._config, ctypes.byref(query)
        )
        if status:
            return {}
        names = [name for name, *_ in query._fields_ if name != "contextHandle"]
        return {
            name: list(value) if hasattr(value := getattr(query, name), "__len__") else value
            for name in names
        }

    def _lacking(self) -> str:
        absent = []
        if not self._handle.value:
            absent.append("NvMOT_Init returns OK and no context")
        batch = self._generation < "6.0" or self.query.get("batchMode")
        if self.query and not self.query.get("computeConfig") and not batch:
            absent.append("NvMOT_Query names no batch mode and no compute configuration")
        elif self.query and not batch:
            absent.append(
                "NvMOT_Query names no batch mode, which the original asks for from 6.3 on"
            )
        return "; ".join(absent)

    def _start(self, config: str, streams: int) -> None:
        width, height = self._size
        transform = self._make("NvMOTPerTransformBatchConfig")
        transform.bufferType = SYSTEM_MEMORY
        transform.maxWidth, transform.maxHeight = width, height
        transform.maxPitch = 2 * 4 * width
        transform.maxSize = transform.maxPitch * height
        asked = self._make("NvMOTConfig")
        asked.computeConfig, asked.maxStreams = CPU, streams
        asked.numTransforms = 1
        if hasattr(asked, "maxBufSurfAddrSize"):
            asked.maxBufSurfAddrSize = streams
        asked.perTransformBatchConfig = ctypes.addressof(transform)
        asked.customConfigFilePathSize = len(self._config.value)
        asked.customConfigFilePath = ctypes.addressof(self._config) if config else None
        self._kept = transform, asked
        response = self._make("NvMOTConfigResponse")
        status = self._library.NvMOT_Init(
            ctypes.byref(asked), ctypes.byref(self._handle), ctypes.byref(response)
        )
        said = [
            f"{name} is {_CONFIG.get(value, value)}"
            for name, *_ in response._fields_
            if (value := getattr(response, name))
        ]
        if status or said:
            raise CustomLibraryError(
                f"NvMOT_Init refuses to start: {_STATUS.get(status, status) if status else ''}"
                f"{'; ' if status and said else ''}{', '.join(said)}",
                where=self._where,
                expected="NvMOTStatus_OK, and every status of NvMOTConfigResponse OK",
                fix=f"the library reads {config or 'no file: ll-config-file names none'}",
            )
        self._has_context = True

    def _misc_buffers(self) -> MiscBuffers | None:
        wanted = [
            kind
            for kind, key in MISC_KINDS.items()
            if self.query.get(key) and (kind == "past" or self._generation >= "6.4")
        ]
        function = "NvMOT_RetrieveMiscData" if self._generation >= "6.3" else "NvMOT_ProcessPast"
        if not wanted or not hasattr(self._library, function):
            return None
        history = int(self.query.get("maxTrajectoryBufferLength", 0))
        return MiscBuffers(self._generation, wanted, min(self._room, ROOM), history)

    def process(
        self,
        stream: int,
        number: int,
        source: tuple[int, int],
        objects: tuple[Array, Array, Array],
        inferred: bool,
        pts_ns: int,
        image: SurfaceImage | None,
    ) -> list[Array]:
        """Track the objects of a frame.

        Args:
            stream: number of the source.
            number: of its frame.
            source: width and height of the frame.
            objects: (N, 4) left, top, width, height in pixels of the context's size, (N,) classes
                and (N,) confidences.
            inferred: a detector looked at the frame.
            pts_ns: time of the frame.
            image: its image, as `query` asks for it.

        Returns:
            ids (M,) uint64; boxes and confidences (M, 5); class, age and index of the object, -1
            without, (M, 3) int32; ReID vectors (M, D); ids and rows of `records.misc_rows`; the
            arrays of `geometry.Spaces`.

        Raises:
            CustomLibraryError: the library says that it failed, or its answer makes no sense.
        """
        boxes, classes, confidences = objects
        listed = np.zeros(max(1, len(boxes)), np.dtype(structure("NvMOTObjToTrack")))
        for k, name in enumerate(("x", "y", "width", "height")):
            listed["bbox"][name][: len(boxes)] = boxes[:, k]
        listed["classId"][: len(boxes)] = classes
        listed["confidence"][: len(boxes)] = confidences
        listed["doTracking"] = True
        frame = self._make("NvMOTFrame")
        frame.streamID, frame.frameNum, frame.doTracking = stream, number, True
        if hasattr(frame, "srcFrameWidth"):
            frame.srcFrameWidth, frame.srcFrameHeight = source
        if hasattr(frame, "timeMeta"):
            frame.timeMeta.frameNum, frame.timeMeta.frameTimeStamp = number, pts_ns
            frame.timeMeta.frameTimeValid = True
            frame.timeMeta.localTimestamp = time_ns()
            frame.sensorName = ctypes.addressof(_NO_NAME)
        else:
            frame.timeStamp, frame.timeStampValid = pts_ns // 1_000_000_000, True
        frame.objectsIn.detectionDone = inferred
        frame.objectsIn.list = listed.ctypes.data
        frame.objectsIn.numAllocated = len(listed)
        frame.objectsIn.numFilled = len(boxes)
        surface = None if image is None else _surface(image)
        if surface is not None:
            pointer = (ctypes.c_void_p * 1)(ctypes.addressof(surface))
            frame.numBuffers, frame.bufferList = 1, ctypes.addressof(pointer)
        params = self._make("NvMOTProcessParams")
        params.numFrames, params.frameList = 1, ctypes.addressof(frame)
        return self._track(params, listed, stream, number)

    def _track(self, params: Any, listed: Array, stream: int, number: int) -> list[Array]:
        kind = structure("NvMOTTrackedObj", self._generation)
        room = max(self._room, 2 * len(listed))
        tracked = np.zeros(room, np.dtype(kind))
        self._spaces.give(tracked)
        of_stream = self._make("NvMOTTrackedObjList")
        of_stream.streamID, of_stream.frameNum, of_stream.valid = stream, number, True
        of_stream.list, of_stream.numAllocated = tracked.ctypes.data, room
        batch = self._make("NvMOTTrackedObjBatch")
        batch.list, batch.numAllocated, batch.numFilled = ctypes.addressof(of_stream), 1, 1
        vectors = np.zeros((room, self._reids), np.float32)
        if hasattr(batch, "pReidTensorBatch"):
            tensor = self._make("NvDsReidTensorBatch")
            tensor.featureSize, tensor.ptr_host = self._reids, vectors.ctypes.data
            batch.pReidTensorBatch = ctypes.addressof(tensor) if self._reids else None
        status = self._library.NvMOT_Process(
            self._handle, ctypes.byref(params), ctypes.byref(batch)
        )
        count = of_stream.numFilled if of_stream.valid and batch.numFilled else 0
        if status or count > room or (count and not of_stream.list):
            what = f"{_STATUS.get(status, status)}" if status else f"{count} objects of {room}"
            raise CustomLibraryError(f"NvMOT_Process returned {what}", where=self._where)
        if count and of_stream.list != tracked.ctypes.data:  # the library has a list of its own
            memory = (ctypes.c_char * (count * ctypes.sizeof(kind))).from_address(of_stream.list)
            tracked = np.frombuffer(memoryview(memory), tracked.dtype)
        result = self._read(tracked[:count], listed, vectors)
        spaces = self._spaces.read(tracked[:count]).arrays()
        return [*result, *self._read_misc(params), *spaces]

    def _read(self, tracked: Array, listed: Array, vectors: Array) -> list[Array]:
        box = tracked["bbox"]
        numbers = np.stack(
            [box["x"], box["y"], box["width"], box["height"], tracked["confidence"]], axis=1
        ).astype(np.float32)
        start = listed.ctypes.data
        offset = tracked["associatedObjectIn"].astype(np.int64) - start
        within = (offset >= 0) & (offset < listed.nbytes) & (offset % listed.itemsize == 0)
        index = np.where(within, offset // listed.itemsize, -1)
        ints = np.stack([tracked["classId"], tracked["age"].astype(np.int64), index], axis=1)
        return [
            np.ascontiguousarray(tracked["trackingId"]),
            numbers,
            ints.astype(np.int32),
            self._vectors(tracked, vectors),
        ]

    def _vectors(self, tracked: Array, vectors: Array) -> Array:
        """(M, D) float32; zeros where the library has none."""
        size = self._reids
        result = np.zeros((len(tracked) if size else 0, size), np.float32)
        for row in range(len(result)):
            if "reidInd" in (tracked.dtype.names or ()):
                at = int(tracked["reidInd"][row])
                if 0 <= at < len(vectors):
                    result[row] = vectors[at]
            elif int(tracked["reid"]["featureSize"][row]) == size and (
                pointer := int(tracked["reid"]["ptr_host"][row])
            ):
                result[row] = (ctypes.c_float * size).from_address(pointer)
        return result

    def _read_misc(self, params: Any) -> list[Array]:
        if self._misc is None:
            return list(misc_rows([]))
        self._misc.clear()
        if self._generation >= "6.3":
            status = self._library.NvMOT_RetrieveMiscData(
                self._handle, ctypes.byref(params), self._misc.argument
            )
        else:
            status = self._library.NvMOT_ProcessPast(
                self._handle, ctypes.byref(params), self._misc.argument
            )
        return list(misc_rows([] if status else self._misc.rows()))

    def change(self, text: str) -> None:
        """Give the library a text with other settings.

        Raises:
            CustomLibraryError: it refuses it.
        """
        given = _CxxString(text.encode())
        status = self._library.NvMOT_UpdateParams(self._handle, ctypes.byref(given))
        if status:
            what = f"{UPDATE} returned {_STATUS.get(status, status)}"
            raise CustomLibraryError(what, where=self._where)

    def remove(self, stream: int) -> None:
        """Tell the library that a source has ended."""
        if hasattr(self._library, "NvMOT_RemoveStreams"):
            self._library.NvMOT_RemoveStreams(self._handle, ctypes.c_uint64(stream))

    def close(self) -> None:
        """End the context."""
        if self._has_context:
            self._has_context = False
            self._library.NvMOT_DeInit(self._handle)


def tracker_elf(path: Path) -> ElfFile:
    """Read the file of a low-level tracker library.

    Raises:
        CustomLibraryError: it is no library of this machine, or lacks a function.
    """
    return elf_with(path, REQUIRED, _KIND)


def _surface(image: SurfaceImage) -> Any:
    """An NvBufSurfaceParams; its memory is the image's."""
    surface = structure("NvBufSurfaceParams")()
    surface.width, surface.height, surface.colorFormat = image.width, image.height, image.color
    surface.pitch, surface.dataSize = image.planes[0][2], image.data.nbytes
    surface.dataPtr = start = image.data.ctypes.data
    surface.num_planes = len(image.planes)
    for k, (width, height, pitch, offset, pixel) in enumerate(image.planes[:4]):
        surface.plane_width[k], surface.plane_height[k] = width, height
        surface.plane_pitch[k], surface.plane_offset[k] = pitch, offset
        surface.plane_psize[k], surface.plane_bytesPerPix[k] = pitch * height, pixel
        surface.addr[k] = start + offset
    return surface
