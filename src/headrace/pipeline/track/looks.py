"""Looks of objects, as vectors by a ReID model: crops in, vectors out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace.config.enums import ColorFormat, TensorOrder
from headrace.engine import BuildOptions, build
from headrace.infer.items import FramePiece
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.network import network_from_onnx

if TYPE_CHECKING:
    from headrace.infer.gpu.scaler import GpuScaler

Looks = npt.NDArray[np.float32]

PIXELS: Mapping[str, tuple[float, tuple[float, float, float]]] = {
    "imagenet": (0.01735207, (123.675, 116.28, 103.53)),
    "unit": (1 / 255, (0.0, 0.0, 0.0)),
    "signed": (1 / 127.5, (127.5, 127.5, 127.5)),
    "bytes": (1.0, (0.0, 0.0, 0.0)),
}
"""Scale and offsets by what a model was trained with: y = scale (x - offset)."""


class LookModel:
    """A ReID model.

    Args:
        path: an ONNX file with one image input, batch first, and vectors as its first output.
        batch: most crops of one run.
        shape: of the input without the batch, in the order of its axes; None takes the model's.
        channels_last: the order of its axes; None takes the model's.
        bgr: order of colours.
        scale, offsets: y = scale (x - offset) of each byte x.
        normalize: bring vectors to length 1.
        keep_aspect: pad a crop instead of stretching it.
        size: length of a vector that is expected; None takes the model's.

    Raises:
        HeadraceError: the model cannot be read, or is none of this form.
    Source: the keys of section ReID in the manual of Gst-nvtracker.
    """

    def __init__(
        self,
        path: Path,
        *,
        batch: int = 16,
        shape: Sequence[float] | None = None,
        channels_last: bool | None = None,
        bgr: bool = False,
        scale: float = 1.0,
        offsets: Sequence[float] = (),
        normalize: bool = True,
        keep_aspect: bool = False,
        size: int | None = None,
    ) -> None:
        self._where = str(path)
        network = network_from_onnx(path, of_images=True)
        declared = network.inputs[0].shape[1:]
        if shape is not None and not _fits(shape, declared):
            raise ConfigError(
                f"inferDims is {[int(v) for v in shape]}, the input of the model {list(declared)}",
                where=self._where,
                expected="the same",
            )
        if channels_last is None:
            channels_last = len(declared) == 3 and declared[2] == 3 != declared[0]
        dims = _dims(shape, channels_last) if shape is not None else None
        plan = build(
            network,
            BuildOptions(
                max_batch=min(batch, 1024),
                dynamic_batch=True,
                infer_dims=dims,
                input_order="NHWC" if channels_last else "NCHW",
            ),
        )
        self._session = plan.open_session()
        image, self._output = plan.inputs[0], plan.outputs[0].name
        axes = [axis for axis in image.shape[1:] if isinstance(axis, int)]
        if len(axes) != 3:
            raise ConfigError(
                f"the input {image.name} of a ReID model has the shape {list(image.shape)}",
                where=self._where,
                expected="a batch of images, such as [N, 3, 256, 128]",
            )
        height, width = axes[:2] if channels_last else axes[1:]
        self._input, self._batch, self._size = image.name, min(batch, 1024), size
        self._normalize = normalize
        self._scalers: dict[int, GpuScaler] = {}
        self._scale = Preprocessor(
            width,
            height,
            color_format=ColorFormat.BGR if bgr else ColorFormat.RGB,
            order=TensorOrder.NHWC if channels_last else TensorOrder.NCHW,
            scale=scale,
            offsets=tuple(offsets),
            maintain_aspect_ratio=keep_aspect,
            symmetric_padding=keep_aspect,
            profile="modern",
            where=lambda key: self._where,
        )

    def __call__(self, frame: Frame, rects: npt.NDArray[np.float32]) -> Looks:
        """Vectors of objects.

        Args:
            frame: the image.
            rects: (N, 4) left, top, width, height in frame pixels.

        Returns:
            (N, D) float32; zeros for an object that lies outside of the image, and where the
            model gave no numbers.

        Raises:
            EngineError: the model failed.
            ConfigError: its vectors have another length than was said.
        """
        parts = []
        for first in range(0, len(rects), self._batch):
            some = np.ascontiguousarray(rects[first : first + self._batch], np.float32)
            crops, valid = self._crops(frame, some)
            found = np.array(self._session.run({self._input: crops})[self._output], np.float32)
            found = found.reshape(len(some), -1)
            if self._size not in (None, found.shape[1]):
                raise ConfigError(
                    f"reidFeatureSize is {self._size}, the vectors have {found.shape[1]} numbers",
                    where=self._where,
                    expected="the same",
                )
            found[~np.isfinite(found).all(axis=1)] = 0
            found[~valid] = 0
            parts.append(found)
        if not parts:
            return np.empty((0, self._size or 0), np.float32)
        looks = np.concatenate(parts)
        if self._normalize:
            length = np.linalg.norm(looks, axis=1, keepdims=True)
            looks /= np.where(length > 0, length, np.float32(1))
        return looks

    def _crops(
        self, frame: Frame, rects: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """The input for some objects, and which of them lie in the image.

        Those of an image in a GPU's memory are scaled there: the image is not copied.
        """
        planes = frame.on_device
        if planes is None or planes.downloaded:
            crops = np.empty((len(rects), *self._scale.shape), np.float32)
            return crops, self._scale.crops(frame, rects, crops).valid
        scaler = self._scalers.get(planes.gpu)
        if scaler is None:
            from headrace._core.gpu.cuda import entered
            from headrace.infer.gpu.scaler import GpuScaler

            with entered(planes.gpu):
                scaler = self._scalers[planes.gpu] = GpuScaler(self._scale)
        fitted = self._scale.fitted(rects, frame.width, frame.height)
        piece = FramePiece(frame, fitted.src, fitted.dst)
        return scaler([piece], len(rects)).numpy(), fitted.valid

    def close(self) -> None:
        """Let go of the model."""
        self._session.close()


def _fits(shape: Sequence[float], axes: Sequence[object]) -> bool:
    """Tell if axes that a model fixes are those of `shape`."""
    return len(shape) == len(axes) and all(
        not isinstance(axis, int) or axis == int(value)
        for value, axis in zip(shape, axes, strict=True)
    )


def _dims(shape: Sequence[float], channels_last: bool) -> tuple[int, int, int]:
    """Channels, height, width."""
    a, b, c = (int(v) for v in shape)
    return (c, a, b) if channels_last else (a, b, c)


def rects_of(corners: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """(N, 4) left, top, width, height."""
    return np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), 1).astype(np.float32)


INPUT_VALUES = frozenset(
    {"reid_dims", "reid_order", "reid_color", "reid_scale", "reid_offsets", "reid_size"}
)
"""What the section ReID of a tracker file says of its model's input and vectors."""


def look_model_of(values: Mapping[str, Any], path: Path) -> LookModel:
    """The model of a tracker file's section ReID. `path` replaces its own."""
    dims = values["reid_dims"]
    if len(dims) != 3:
        raise ConfigError(
            f"inferDims={dims}", where=str(path), expected="three numbers, such as [3, 256, 128]"
        )
    return LookModel(
        path,
        batch=values["reid_batch"],
        shape=dims,
        channels_last=values["reid_order"] == 1,
        bgr=values["reid_color"] == 1,
        scale=values["reid_scale"],
        offsets=values["reid_offsets"],
        normalize=values["reid_normalize"],
        keep_aspect=values["reid_aspect"],
        size=values["reid_size"],
    )
