"""From a frame's planes to the network tensor, in one pass."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria.errors import ConfigError, GeometryError
from noria.infer.geometry import Rect, ScaleTransform, fit
from noria.infer.mean_file import load_mean
from noria.media.frame import ColorSpace, Frame, PixelFormat
from noria.notices import Notice

__all__ = ["Preprocessor"]

FloatArray = npt.NDArray[np.float32]

# Values of the config keys, as in noria.config.enums.
_RGB, _BGR, _GRAY = 0, 1, 2
_NCHW, _NHWC = 0, 1
_FILTER_IGNORED, _FILTER_DEFAULT = 5, 6
_LAYOUTS = {format: i for i, format in enumerate(PixelFormat)}  # as the native core counts them
_FORMAT_NAMES = {_RGB: "RGB", _BGR: "BGR", _GRAY: "GRAY"}


class Preprocessor:
    """Crop, scale, convert and normalise frames into a network input tensor.

    One instance serves one model. It keeps no state between calls and may be used from several
    threads at once; the native pass runs without the GIL.

    Args:
        width, height: network input size in pixels.
        color_format: 0 RGB, 1 BGR, 2 GRAY (`ColorFormat`); GRAY has one channel, the others three.
        order: 0 NCHW, 1 NHWC (`TensorOrder`).
        scale: `net-scale-factor`, kept as float32; a value <= 0 means 1.0 and no offsets.
        offsets: mean per channel in the model's colour order, as many as channels, or empty.
        mean: (height, width, channels) mean image in the model's colour order; wins over offsets.
        maintain_aspect_ratio, symmetric_padding: see `noria.infer.geometry.fit`.
        scaling_filter: 0 and 6 nearest, 1 bilinear, 2 cubic, 3 area average, 4 Lanczos
            (`ScalingFilter`); 5 is ignored by a GPU and means nearest, with a notice.
        threads: native threads that share one call; all processors, at most 4, by default. The
            result does not depend on it.
        where: `file` or `file:line` of the config, for errors.

    Attributes:
        shape: of one item: (channels, height, width), or (height, width, channels) for NHWC.
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
        color_format: int = _RGB,
        order: int = _NCHW,
        scale: float = 1.0,
        offsets: Sequence[float] = (),
        mean: npt.ArrayLike | None = None,
        maintain_aspect_ratio: bool = False,
        symmetric_padding: bool = False,
        scaling_filter: int = _FILTER_DEFAULT,
        threads: int | None = None,
        where: str | None = None,
    ) -> None:
        _check_choice("model-color-format", color_format, range(3), where)
        _check_choice("network-input-order", order, range(2), where)
        _check_choice("scaling-filter", scaling_filter, range(7), where)
        if width < 1 or height < 1:
            raise ConfigError(f"network input of {width}x{height}", where=where)
        self.width, self.height = int(width), int(height)
        self.color_format, self.order = int(color_format), int(order)
        self.scaling_filter = int(scaling_filter)
        self.channels = 1 if self.color_format == _GRAY else 3
        self.maintain_aspect_ratio = bool(maintain_aspect_ratio)
        self.symmetric_padding = bool(symmetric_padding)
        self.threads = _default_threads() if threads is None else max(1, int(threads))
        if self.order == _NHWC:
            self.shape = (self.height, self.width, self.channels)
        else:
            self.shape = (self.channels, self.height, self.width)
        notices: list[Notice] = []
        self.scale, self.offsets = self._normalisation(scale, offsets, notices, where)
        self.mean = self._mean_image(mean, where)
        if self.scaling_filter == _FILTER_IGNORED:
            notices.append(
                Notice("warning", "scaling-filter=5 is ignored by a GPU: nearest is used", where)
            )
        self.notices = tuple(notices)
        # The form the native pass wants: nearest is one number, the mean image planar.
        ignored = self.scaling_filter in (_FILTER_IGNORED, _FILTER_DEFAULT)
        self._filter = 0 if ignored else self.scaling_filter
        means = [0.0] * 3 if self.mean is not None else [*self.offsets]
        self._mean = tuple([*means, 0.0, 0.0, 0.0][:3])
        self._mean_planes = None
        if self.mean is not None:
            self._mean_planes = np.ascontiguousarray(self.mean.transpose(2, 0, 1))
        self._generic = os.environ.get("NORIA_GENERIC_KERNELS", "") not in ("", "0")

    @classmethod
    def from_config(
        cls,
        cfg: Any,  # ModelConfig
        width: int,
        height: int,
        channels: int,
        *,
        threads: int | None = None,
    ) -> Preprocessor:
        """The pre-processing a config asks for, on a network input of the given size.

        Raises:
            ConfigError: the channels do not fit `model-color-format`, the number of `offsets` is
                not that of the channels, or the mean file is not usable.
        Source: spec A.3, A.4.
        """
        where = str(cfg.path)
        needed = 1 if cfg.model_color_format == _GRAY else 3
        if channels != needed:
            raise ConfigError(
                f"the network input has {channels} channel{'s' if channels != 1 else ''}",
                where=f"{where}: model-color-format",
                expected=f"{needed} for {_FORMAT_NAMES[int(cfg.model_color_format)]}",
                fix="for an NHWC model set infer-dims=C;H;W: without it the dimensions are read"
                " as C,H,W",
            )
        mean = None
        if cfg.mean_file is not None:
            mean = load_mean(cfg.mean_file, width, height, channels, where=where)
        return cls(
            width,
            height,
            color_format=cfg.model_color_format,
            order=cfg.network_input_order,
            scale=cfg.net_scale_factor,
            offsets=cfg.offsets,
            mean=mean,
            maintain_aspect_ratio=cfg.maintain_aspect_ratio,
            symmetric_padding=cfg.symmetric_padding,
            scaling_filter=cfg.scaling_filter,
            threads=threads,
            where=where,
        )

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
        if out.dtype != np.float32 or out.shape != self.shape or not out.flags.carray:
            raise ValueError(
                f"out is {out.dtype} of shape {out.shape}; expected writeable C-contiguous float32"
                f" of shape {self.shape}"
            )
        transform = fit(
            crop if crop is not None else Rect(0, 0, frame.width, frame.height),
            self.width,
            self.height,
            maintain_aspect_ratio=self.maintain_aspect_ratio,
            symmetric_padding=self.symmetric_padding,
        )
        src = transform.src
        if src.left >= frame.width or src.top >= frame.height:
            raise GeometryError(
                f"crop at {src.left},{src.top} lies outside the {frame.width}x{frame.height} frame",
                where=f"frame {frame.frame} of {frame.source!r}",
            )
        self._run(frame, out, transform)
        return transform

    def empty(self, batch: int) -> FloatArray:
        """An uninitialised float32 batch, (batch, *shape)."""
        return np.empty((batch, *self.shape), dtype=np.float32)

    def write(
        self, frame: Frame, batch: FloatArray, index: int, crop: Rect | None = None
    ) -> ScaleTransform:
        """Write one item straight into row `index` of a (N, *shape) batch; see `__call__`."""
        return self(frame, batch[index], crop)

    def _run(self, frame: Frame, out: FloatArray, transform: ScaleTransform) -> None:
        _native.preprocess(
            planes=frame.planes,
            layout=_LAYOUTS[frame.format],
            frame_size=(frame.width, frame.height),
            src=transform.src,
            dst=transform.dst,
            matrix=_MATRICES[frame.color],
            out=out,
            net_size=(self.width, self.height),
            color=self.color_format,
            nhwc=self.order == _NHWC,
            scale=self.scale,
            mean=self._mean,
            mean_image=self._mean_planes,
            filter=self._filter,
            threads=self.threads,
            generic=self._generic,
        )

    def _normalisation(
        self, scale: float, offsets: Sequence[float], notices: list[Notice], where: str | None
    ) -> tuple[float, tuple[float, ...]]:
        if offsets and len(offsets) != self.channels:
            raise ConfigError(
                f"offsets has {len(offsets)} value{'s' if len(offsets) != 1 else ''}",
                where=where,
                expected=f"{self.channels}, one per channel of the network, in its colour order",
            )
        if not math.isfinite(scale) or not all(math.isfinite(v) for v in offsets):
            raise ConfigError("net-scale-factor or offsets is not a finite number", where=where)
        value = float(np.float32(scale))
        if value > 0:
            return value, tuple(float(np.float32(v)) for v in offsets)
        ignored = " and the offsets are ignored" if offsets else ""
        notices.append(
            Notice(
                "warning",
                f"net-scale-factor={scale:g} is not positive: 1.0 is used{ignored}",
                where,
            )
        )
        return 1.0, ()

    def _mean_image(self, mean: npt.ArrayLike | None, where: str | None) -> FloatArray | None:
        if mean is None:
            return None
        image = np.ascontiguousarray(mean, dtype=np.float32)
        shape = (self.height, self.width, self.channels)
        if image.shape != shape:
            raise ConfigError(
                f"the mean image has shape {image.shape}", where=where, expected=f"{shape}"
            )
        return image


def _matrix(red: float, blue: float, *, full: bool) -> tuple[float, ...]:
    """YUV to RGB for luma weights `red` and `blue`, as `ColorMatrix` in the native core."""
    green = 1 - red - blue
    luma, chroma = (1.0, 1.0) if full else (255 / 219, 255 / 224)
    red_v, blue_u = 2 * (1 - red) * chroma, 2 * (1 - blue) * chroma
    return (
        0.0 if full else 16.0,
        luma,
        red_v,
        -blue_u * blue / green,
        -red_v * red / green,
        blue_u,
    )


# Luma weights of the standards: ITU-R BT.601, BT.709, BT.2020 (non-constant luminance).
_MATRICES = {
    ColorSpace.BT601: _matrix(0.299, 0.114, full=False),
    ColorSpace.BT601_FULL: _matrix(0.299, 0.114, full=True),
    ColorSpace.BT709: _matrix(0.2126, 0.0722, full=False),
    ColorSpace.BT709_FULL: _matrix(0.2126, 0.0722, full=True),
    ColorSpace.BT2020: _matrix(0.2627, 0.0593, full=False),
    ColorSpace.BT2020_FULL: _matrix(0.2627, 0.0593, full=True),
}


def _check_choice(key: str, value: int, allowed: range, where: str | None) -> None:
    if value not in allowed:
        raise ConfigError(
            f"{key}={value}", where=where, expected=f"one of {allowed.start} to {allowed.stop - 1}"
        )


def _default_threads() -> int:
    count: Any = getattr(os, "sched_getaffinity", None)
    return min(4, len(count(0)) if count else os.cpu_count() or 1)
