"""From a frame's planes to the network tensor, in one native pass.

What happens to a pixel, in this order:

1. the crop is scaled, each plane by itself: Y, U and V stay apart, chroma samples sit in the middle
   of their 2x2 block. Destination pixel d samples the source at `(d + 0.5)·sw/dw` from the crop's
   left edge; what lies outside the crop or the frame takes the value of the nearest pixel inside.
2. colour conversion by the frame's matrix. A grey model takes luma, expanded to 0..255 (a grey
   pixel has R = G = B = that value), or 0.299 R + 0.587 G + 0.114 B; a grey frame has R = G = B.
3. rounding to a byte, halves up; the only rounding. Padding is byte 0.
4. `scale·(byte - mean)` in float32, each operation rounded.

The profile `modern` differs: crops and letterboxes are those of `fit_crops(modern=True)`, padding
is byte 114, and bilinear is made of bytes like FFmpeg's and OpenCV's, with their bits. Y, U and V
become R, G and B bytes, a 2x2 block with the same chroma, each product rounded down; then OpenCV's
INTER_LINEAR scales them in its integers.

Filters: nearest takes the pixel under the centre; bilinear its two neighbours each way, also when
shrinking; cubic (Keys, a = -1/2) and Lanczos (3 lobes) likewise with 4 and 6; area averages what
the destination pixel covers. Where the original's samplers are closed this is headrace's choice.

The environment variable HEADRACE_GENERIC_KERNELS=1 turns the vector kernels off, for comparison:
the results are the same bits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import ConfigError, GeometryError
from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace.config.enums import ColorFormat, NetworkType, ScalingFilter, TensorOrder
from headrace.config.profile import Profile, with_profile
from headrace.infer.geometry import Crops, Rect, ScaleTransform, centre_cut, fit, fit_crops
from headrace.media.color_matrix import color_matrix
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.meta.detections import FloatArray, IntArray

if TYPE_CHECKING:
    from headrace.config import ModelConfig


class Placed(NamedTuple):
    """Where a piece of a frame lies: (1, 4) int32 rectangles of the scaler, and the transform."""

    src: IntArray
    dst: IntArray
    transform: ScaleTransform


Where = Callable[[str], str | None]
_Enum = TypeVar("_Enum", bound=IntEnum)

# As the native core numbers them.
LAYOUTS = {format: i for i, format in enumerate(PixelFormat)}
_NEAREST = (ScalingFilter.ALGO4, ScalingFilter.DEFAULT)
_OPENCV = 5
_MOST_SIZES = 64  # of frames whose places are kept
_FILLS: dict[Profile, float] = {"nvinfer": 0.0, "modern": 114.0}  # levels


class Preprocessor:
    """Crop, scale, convert and normalise frames into a network input tensor.

    One instance serves one model. Its results depend on no earlier call, and it may be used from
    several threads at once; the native pass runs without the GIL.

    Args:
        width, height: network input size in pixels.
        color_format: colours of the model; GRAY has one channel, the others three.
        order: layout of an item, planar or interleaved.
        scale: `net-scale-factor`, kept as float32; a value <= 0 means 1.0 and no offsets.
        offsets: mean per channel in the model's colour order, as many as channels, or empty.
        mean: (height, width, channels) mean image in the model's colour order; wins over offsets.
        maintain_aspect_ratio, symmetric_padding: see `headrace.infer.geometry.fit`.
        centre_crop: share of the middle that is cut out first, see `geometry.centre_cut`; 0: none.
        scaling_filter: ALGO1 is cubic, ALGO2 area average, ALGO3 Lanczos; ALGO4 is ignored by a
            GPU and means nearest, with a notice.
        profile: `modern` is what models are trained with, see above.
        threads: native threads that share one call, 1 by default: a pass takes well under a
            millisecond, and beside a busy engine waiting for a helper costs more than it saves.
            The result does not depend on it.
        where: gives `file:line` for a key, for errors and notices.

    Attributes:
        shape: of one item: (channels, height, width), or (height, width, channels) for NHWC.
        means: three, zeros where there are none or a mean image wins.
        mean_planes: (channels, height, width) mean image, or None.
        notices: what does not happen as asked.

    Raises:
        ConfigError: a number of offsets, a mean image or an enumeration value that cannot be.
    Source: spec A.1 to A.5.
    """

    def __init__(
        self,
        width: int,
        height: int,
        *,
        color_format: ColorFormat | int = ColorFormat.RGB,
        order: TensorOrder | int = TensorOrder.NCHW,
        scale: float = 1.0,
        offsets: Sequence[float] = (),
        mean: npt.ArrayLike | None = None,
        maintain_aspect_ratio: bool = False,
        symmetric_padding: bool = False,
        centre_crop: float = 0.0,
        scaling_filter: ScalingFilter | int = ScalingFilter.DEFAULT,
        profile: Profile = "nvinfer",
        threads: int = 1,
        where: Where = lambda key: key,
    ) -> None:
        if width < 1 or height < 1:
            raise ConfigError(f"network input of {width}x{height}", expected="at least 1x1 pixel")
        self.width, self.height = int(width), int(height)
        self.color_format = _choice(ColorFormat, color_format, where("model-color-format"))
        self.order = _choice(TensorOrder, order, where("network-input-order"))
        self.scaling_filter = _choice(ScalingFilter, scaling_filter, where("scaling-filter"))
        self.channels = _channels(self.color_format)
        self.maintain_aspect_ratio = bool(maintain_aspect_ratio)
        self.symmetric_padding = bool(symmetric_padding)
        self.centre_crop = float(centre_crop)
        self.profile = profile
        self.threads = max(1, int(threads))
        image = (self.height, self.width)
        interleaved = self.order == TensorOrder.NHWC
        self.shape = (*image, self.channels) if interleaved else (self.channels, *image)
        self.scale, self.offsets, notices = _normalisation(scale, offsets, self.channels, where)
        if self.scaling_filter == ScalingFilter.ALGO4:
            notices += (
                Finding(
                    "scaling-filter-unknown",
                    "warning",
                    "scaling-filter=5 is ignored by a GPU: nearest is used",
                    where("scaling-filter"),
                ),
            )
        self.notices = notices
        self.mean = None if mean is None else _mean_image(mean, (*image, self.channels), where)
        # The forms the native pass takes: always three means, a planar mean image.
        used = () if self.mean is not None else self.offsets
        self.means = (*used, 0.0, 0.0, 0.0)[:3]
        self._whole: dict[tuple[int, int], Placed] = {}
        self.mean_planes = None
        if self.mean is not None:
            self.mean_planes = np.ascontiguousarray(self.mean.transpose(2, 0, 1))
        self._generic = os.environ.get("HEADRACE_GENERIC_KERNELS", "") not in ("", "0")

    @classmethod
    def from_config(
        cls,
        cfg: ModelConfig,
        width: int,
        height: int,
        channels: int,
        *,
        threads: int = 1,
    ) -> Preprocessor:
        """The pre-processing a config asks for, on a network input of the given size.

        Raises:
            ConfigError: the channels do not fit `model-color-format`, the number of `offsets` is
                not that of the channels, or the mean file is not usable.
        Source: spec A.3, A.4.
        """
        cfg = with_profile(cfg)

        def where(key: str) -> str:
            return f"{cfg.origin(key).where or cfg.path}: {key}"

        needed = _channels(cfg.model_color_format)
        if channels != needed:
            raise ConfigError(
                f"the network input has {counted(channels, 'channel')},"
                f" but {cfg.model_color_format.label} needs {needed}",
                where=where("model-color-format"),
                fix="an NHWC model needs infer-dims=C;H;W; without, its dimensions are read as"
                " C;H;W"
                if cfg.infer_dims is None
                else "infer-dims is C;H;W, for NHWC models too",
            )
        mean = None
        if cfg.mean_file is not None:
            from headrace.infer.mean_file import load_mean

            mean = load_mean(cfg.mean_file, width, height, channels, where=where("mean-file"))
        pre = cls(
            width,
            height,
            color_format=cfg.model_color_format,
            order=cfg.network_input_order,
            scale=cfg.net_scale_factor,
            offsets=cfg.offsets,
            mean=mean,
            maintain_aspect_ratio=cfg.maintain_aspect_ratio,
            symmetric_padding=cfg.symmetric_padding,
            centre_crop=cfg.centre_crop if cfg.network_type is NetworkType.CLASSIFIER else 0.0,
            scaling_filter=cfg.scaling_filter,
            profile=cfg.profile,
            threads=threads,
            where=where,
        )
        said = {notice.code for notice in cfg.notices}
        pre.notices = tuple(notice for notice in pre.notices if notice.code not in said)
        return pre

    def __call__(self, frame: Frame, out: FloatArray, crop: Rect | None = None) -> ScaleTransform:
        """Write one item.

        Args:
            frame: any pixel format; read only.
            out: float32 of `shape`, C-contiguous; row `i` of a batch (`batch[i]`) is such an array.
            crop: rectangle in frame pixels; the whole frame by default. What sticks out of the
                frame is filled with its border pixels, at the ratios of the unclipped crop.

        Returns:
            The transform from frame to network space.

        Raises:
            GeometryError: the crop is empty once rounded, or lies outside the frame.
            ValueError: `out` is not such an array.
        """
        self._check_out(out, self.shape)
        placed = self.place(frame, crop)
        self.write(frame, placed.src, placed.dst, out)
        return placed.transform

    def place(self, frame: Frame, crop: Rect | None = None) -> Placed:
        """Where the frame, or a crop of it, lies in the network input.

        Raises:
            GeometryError: as a call.
        """
        size = (frame.width, frame.height)
        if crop is None and size in self._whole:
            return self._whole[size]
        rect = crop if crop is not None else Rect(0, 0, *size)
        if self.profile == "modern":
            crops = self.fitted(np.array([rect], np.float64), *size)
            placement = Placed(crops.src, crops.dst, crops.transform(0))
        else:
            transform = fit(
                Rect(*self._cut([rect])[0].tolist()),
                self.width,
                self.height,
                maintain_aspect_ratio=self.maintain_aspect_ratio,
                symmetric_padding=self.symmetric_padding,
            )
            src, dst = transform.src, transform.dst
            if src.left >= frame.width or src.top >= frame.height:
                text = f"a crop at {src.left},{src.top} lies outside a {size[0]}x{size[1]} frame"
                raise GeometryError(text, where=f"frame {frame.frame} of {frame.source!r}")
            placement = Placed(np.array([src], np.int32), np.array([dst], np.int32), transform)
        if crop is None:
            if len(self._whole) == _MOST_SIZES:  # images of a folder, each of its own size
                self._whole.clear()
            self._whole[size] = placement
        return placement

    def crops(self, frame: Frame, rects: FloatArray, out: FloatArray) -> Crops:
        """Write one item for each of N rectangles of a frame, the same bits as N calls.

        Args:
            frame: any pixel format; read only.
            rects: (N, 4) left, top, width, height in frame pixels, any floats.
            out: float32 of shape (N, *shape), C-contiguous: `batch[first : first + N]`, say. The
                `threads` share the items.

        Returns:
            What was cropped from where; an item whose rectangle `__call__` would refuse is zeros
            and not `valid`.

        Raises:
            ValueError: `rects` or `out` is not such an array.
        """
        if np.ndim(rects) != 2 or np.shape(rects)[1] != 4:
            raise ValueError(f"rects has shape {np.shape(rects)}; expected (N, 4)")
        self._check_out(out, (len(rects), *self.shape))
        crops = self.fitted(rects, frame.width, frame.height)
        if len(crops):
            self.write(frame, crops.src, crops.dst, out)
        return crops

    def fitted(self, rects: npt.ArrayLike, frame_width: int, frame_height: int) -> Crops:
        """Where N crops of a frame lie in the network input; rects as for `crops`."""
        return fit_crops(
            self._cut(rects),
            frame_width,
            frame_height,
            self.width,
            self.height,
            maintain_aspect_ratio=self.maintain_aspect_ratio,
            symmetric_padding=self.symmetric_padding,
            modern=self.profile == "modern",
        )

    def _cut(self, rects: npt.ArrayLike) -> npt.NDArray[np.float64]:
        if not self.centre_crop:
            return np.asarray(rects, np.float64)
        return centre_cut(rects, self.width, self.height, self.centre_crop)

    def empty(self, batch: int) -> FloatArray:
        """An uninitialised float32 batch, (batch, *shape)."""
        return np.empty((batch, *self.shape), dtype=np.float32)

    def _check_out(self, out: FloatArray, shape: tuple[int, ...]) -> None:
        if out.dtype != np.float32 or out.shape != shape or not out.flags.carray:
            raise ValueError(
                f"out is {out.dtype} of shape {out.shape}; expected writeable C-contiguous float32"
                f" of shape {shape}"
            )

    @property
    def filter(self) -> int:
        """The sampler, as the native core numbers it."""
        if self.profile == "modern" and self.scaling_filter == ScalingFilter.BILINEAR:
            return _OPENCV
        return 0 if self.scaling_filter in _NEAREST else int(self.scaling_filter)

    @property
    def fill(self) -> float:
        """Level of the bars, before it is normalised."""
        return _FILLS[self.profile]

    def write(
        self,
        frame: Frame,
        src: IntArray,
        dst: IntArray,
        out: FloatArray,
        *,
        filled: bool = False,
    ) -> None:
        """The native pass over N pieces of a frame, (N, 4) int32 rectangles of `place`, `fitted`.

        An item whose `src` has no width becomes zeros. `out` is not checked; with `filled` it has
        the bars of these pieces already.
        """
        _native.preprocess(
            planes=frame.planes,
            layout=LAYOUTS[frame.format],
            frame_size=(frame.width, frame.height),
            src=src,
            dst=dst,
            matrix=color_matrix(frame.color),
            out=out,
            net_size=(self.width, self.height),
            color=int(self.color_format),
            nhwc=self.order == TensorOrder.NHWC,
            scale=self.scale,
            fill=self.fill,
            filled=filled,
            mean=self.means,
            mean_image=self.mean_planes,
            filter=self.filter,
            threads=self.threads,
            generic=self._generic,
        )


def _normalisation(
    scale: float, offsets: Sequence[float], channels: int, where: Where
) -> tuple[float, tuple[float, ...], tuple[Finding, ...]]:
    if len(offsets) not in (0, channels):
        raise ConfigError(
            f"offsets has {counted(len(offsets), 'value')}",
            where=where("offsets"),
            expected=f"{channels}, one for each channel of the network, in its colour order",
        )
    for key, values in (("net-scale-factor", (scale,)), ("offsets", offsets)):
        if not all(math.isfinite(v) for v in values):
            raise ConfigError(f"{key} has a value that is not finite", where=where(key))
    value = float(np.float32(scale))
    if value > 0:
        means = tuple(float(np.float32(v)) for v in offsets)
        return value, means if any(means) else (), ()  # zeros are as none: what reads them asks
    also = " and the offsets are ignored" if offsets else ""
    message = f"net-scale-factor={scale:g} is not positive: 1.0 is used{also}"
    return 1.0, (), (Finding("scale-not-positive", "warning", message, where("net-scale-factor")),)


def _mean_image(mean: npt.ArrayLike, shape: tuple[int, ...], where: Where) -> FloatArray:
    image = np.ascontiguousarray(mean, dtype=np.float32)
    if image.shape != shape:
        raise ConfigError(
            f"the mean image has shape {image.shape}", where=where("mean-file"), expected=f"{shape}"
        )
    return image


def _choice(kind: type[_Enum], value: int, where: str | None) -> _Enum:
    try:
        return kind(value)
    except ValueError as error:
        allowed = ", ".join(str(int(member)) for member in kind)
        raise ConfigError(
            f"{value} is not a value of this key", where=where, expected=allowed
        ) from error


def _channels(color_format: ColorFormat) -> int:
    return 1 if color_format == ColorFormat.GRAY else 3
