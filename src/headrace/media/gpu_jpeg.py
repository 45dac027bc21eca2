"""JPEG by nvJPEG, of images that a GPU decoded: the pixels never leave it."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_int, c_int32, c_size_t, c_uint64, c_void_p
from functools import cache

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import Memory, Stream, entered, in_nvidia_packages
from headrace._core.gpu.cuda_kernels import CudaEvent, shared_kernel
from headrace.media.color_matrix import color_matrix
from headrace.media.device_planes import Components
from headrace.media.frame import Frame

LIBRARIES = ("libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11")
"""As the system finds them, or in one of NVIDIA's packages for pip."""

GET_IT = "pip install nvidia-nvjpeg-cu12, or nvidia-nvjpeg beside CUDA 13"
"""How to get the library."""

_CSS_420 = 2  # NVJPEG_CSS_420
_ALIGNED = 256  # bytes, of rows
_BLOCK = (32, 8, 1)


class _Image(ctypes.Structure):
    """`nvjpegImage_t`."""

    _fields_ = (("channel", c_void_p * 4), ("pitch", c_size_t * 4))


class _Samples(ctypes.Structure):
    """`Samples` of native/gpu/jpeg_kernel.cu."""

    _fields_ = (
        ("component", Components),
        ("plane", c_uint64 * 3),
        ("pitch", c_int32 * 3),
        *((name, c_int32) for name in ("wide", "width", "height")),
        ("matrix", ctypes.c_float * 6),
    )


class _NvJpeg:
    """The library, with the status of each call checked."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, name: str, *arguments: object) -> None:
        """Call a function.

        Raises:
            EngineError: it says that it failed.
        """
        status = getattr(self._library, name)(*arguments)
        if status:
            raise EngineError(f"{name}: nvJPEG's status {status}")


@cache
def _library() -> _NvJpeg | str:
    """The library, or why there is none."""
    found = [str(path) for name in LIBRARIES for path in in_nvidia_packages(name)]
    for name in [*LIBRARIES, *found]:
        try:
            return _NvJpeg(ctypes.CDLL(name))
        except OSError:
            continue
    return "libnvjpeg is not installed"


def why_no_gpu_jpeg() -> str | None:
    """Why the GPU encodes no JPEG here, or None."""
    library = _library()
    return library if isinstance(library, str) else None


def encode_on_gpu(frame: Frame, quality: int) -> bytes:
    """A frame in a GPU's memory as the content of a JPEG file, chroma at half size.

    Args:
        frame: whose pixels are on a GPU.
        quality: 1 to 100, as libjpeg counts it.

    Raises:
        EngineError: the library is not there, or failed, or the GPU has no memory left.
    """
    planes = frame.on_device
    assert planes is not None
    with entered(planes.gpu):
        encoder = _here.encoders.get((planes.gpu, quality))
        if encoder is None:
            encoder = _here.encoders[planes.gpu, quality] = _Encoder(quality)
        return encoder.encode(frame)


class _Encoder:
    """One thread's encoder on one GPU."""

    def __init__(self, quality: int) -> None:
        library = _library()
        if isinstance(library, str):
            raise EngineError(library, fix=GET_IT)
        self._use = library
        self._kernel = shared_kernel("jpeg")
        self._stream, self._event = Stream(apart=True), CudaEvent()
        self._handle, self._state, self._params = c_void_p(), c_void_p(), c_void_p()
        self._queue = c_void_p(self._stream.handle)
        library.call("nvjpegCreateSimple", byref(self._handle))
        library.call("nvjpegEncoderStateCreate", self._handle, byref(self._state), self._queue)
        library.call("nvjpegEncoderParamsCreate", self._handle, byref(self._params), self._queue)
        for name, value in (("Quality", quality), ("SamplingFactors", _CSS_420)):
            library.call(f"nvjpegEncoderParamsSet{name}", self._params, c_int(value), self._queue)
        self._memory = Memory(0)

    def encode(self, frame: Frame) -> bytes:
        """See `encode_on_gpu`."""
        planes, stream, use = frame.on_device, self._stream, self._use
        assert planes is not None
        rows, columns = (frame.height + 1) // 2, (frame.width + 1) // 2
        pitch = -(-2 * columns // _ALIGNED) * _ALIGNED
        if self._memory.size_bytes < pitch * (frame.height + rows):
            self._memory = Memory(pitch * (frame.height + rows))
        luma = self._memory.pointer
        blue = luma + pitch * frame.height
        places = (luma, blue, blue + pitch // 2)  # rows of Cb and Cr lie in turn
        samples = _Samples(
            component=planes.components, plane=places, pitch=(pitch,) * 3, wide=planes.wide,
            width=frame.width, height=frame.height,
        )  # fmt: skip
        samples.matrix[:] = color_matrix(frame.color)
        self._event.follow(stream)  # behind the decoder
        grid = (-(-columns // _BLOCK[0]), -(-rows // _BLOCK[1]), 1)
        self._kernel.launch(stream, grid, _BLOCK, (samples,))
        image = _Image(channel=places, pitch=(pitch,) * 3)
        use.call(
            "nvjpegEncodeYUV", self._handle, self._state, self._params, byref(image),
            c_int(_CSS_420), c_int(frame.width), c_int(frame.height), self._queue,
        )  # fmt: skip
        size = c_size_t()
        retrieve = ("nvjpegEncodeRetrieveBitstream", self._handle, self._state)
        use.call(*retrieve, None, byref(size), self._queue)
        data = np.empty(size.value, np.uint8)
        use.call(*retrieve, c_void_p(data.ctypes.data), byref(size), self._queue)
        stream.wait()
        return data[: size.value].tobytes()

    def __del__(self) -> None:
        for name, value in (
            ("nvjpegEncoderParamsDestroy", "_params"),
            ("nvjpegEncoderStateDestroy", "_state"),
            ("nvjpegDestroy", "_handle"),
        ):
            if (handle := getattr(self, value, None)) is not None and handle.value:
                getattr(self._use._library, name)(handle)


class _Here(threading.local):
    """One thread's encoders, by GPU and quality."""

    def __init__(self) -> None:
        self.encoders: dict[tuple[int, int], _Encoder] = {}


_here = _Here()
