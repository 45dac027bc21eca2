"""From frames to the tensors of their regions or objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.text import error_text
from headrace._core.types import Array, DType
from headrace.config.enums import ColorFormat, TensorOrder
from headrace.infer.mean_file import load_mean
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.meta import FrameMeta, InputTensor, Roi
from headrace.meta.detections import FloatArray
from headrace.pipeline.preparation.cpp_function import CppFunction
from headrace.pipeline.preparation.rules import PreparationGroup, PreparationRules
from headrace.plugins.loading import PYTHON_SUFFIXES

Prepare = Callable[[npt.NDArray[np.uint8], dict[str, str]], object]
SIGNATURE = "def {name}(images, config) -> tensor"


@dataclass(frozen=True, slots=True)
class _Part:
    """The crops of one frame of a batch."""

    frame_index: int
    rect: tuple[float, float, float, float]
    object_index: int | None = None


class TensorPreparer:
    """Cuts, scales and normalises regions or objects, by the rules of a file.

    A Python function of the user's gets `images` (N, height, width, channels) uint8 in the colours
    of `network-color-format`, scaled and padded, and `config`, the texts of `[user-configs]`. It
    returns N rows of `network-input-shape`. For one in C++ see `CppFunction`.

    Args:
        rules: what to prepare.

    Attributes:
        notices: about the file, the function and its worker.

    Raises:
        ConfigError: the mean image cannot be used.
        CustomLibraryError: the function's file cannot be read, or has no such function.
    """

    def __init__(self, rules: PreparationRules) -> None:
        self.rules = rules
        self.notices: list[Finding] = list(rules.notices)
        self._function: Prepare | None = None
        self._cpp: CppFunction | None = None
        plain, color = rules.library is not None, rules.color_format
        if rules.library is not None:
            if rules.library.suffix.lower() in PYTHON_SUFFIXES:
                self._function = _load(rules)
            else:
                self._cpp = CppFunction(rules, self.notices)
                color = ColorFormat.GRAY if color is ColorFormat.GRAY else ColorFormat.RGB
        channels = 1 if rules.color_format.name == "GRAY" else 3
        mean = None
        if rules.mean_file is not None and not plain:
            mean = load_mean(rules.mean_file, rules.width, rules.height, channels)
        self._scaler = Preprocessor(
            rules.width,
            rules.height,
            color_format=color,
            order=TensorOrder.NHWC if plain else rules.order,
            scale=1.0 if plain else rules.scale,
            offsets=() if plain else rules.offsets,
            mean=mean,
            maintain_aspect_ratio=rules.maintain_aspect_ratio,
            symmetric_padding=rules.symmetric_padding,
            scaling_filter=rules.scaling_filter,
            where=lambda key: f"{rules.where}: {key}",
        )
        self._turns = [0] * len(rules.groups)
        self._made = 0

    def __call__(self, frames: Sequence[Frame], metas: Sequence[FrameMeta]) -> list[InputTensor]:
        """Prepare the tensors of one batch.

        Args:
            frames: images.
            metas: what is known about each, parallel to `frames`.

        Returns:
            Tensors of at most `network-input-shape`'s first number of rows; the ids of their
            regions' frames and objects are places in `frames` and in the frame's objects.

        Raises:
            CustomLibraryError: the function raised, or returned no such tensor.
        """
        if not self.rules.enabled:
            return []
        parts = list(self._parts(frames, metas))
        most = self.rules.shape[0]
        tensors = []
        for start in range(0, len(parts), most):
            tensor = self._tensor(frames, metas, parts[start : start + most])
            if tensor is not None:
                tensors.append(tensor)
        return tensors

    def drawn(self, frame: Frame) -> tuple[Sequence[tuple[float, ...]], tuple[float, ...]] | None:
        """Return the regions to draw on a frame, with their colour; None for none."""
        entry = self.rules.group_of(frame.source_id)
        if entry is None or entry[1].color is None or not self.rules.enabled:
            return None
        rects = entry[1].regions_of(frame.source_id)
        if rects is None:
            return None if self.rules.of_objects else ([_whole(frame)], entry[1].color)
        return [_clipped(rect, frame) for rect in rects], entry[1].color

    def _parts(self, frames: Sequence[Frame], metas: Sequence[FrameMeta]) -> Iterator[_Part]:
        """The crops of a batch: group after group, in the order of the frames."""
        frame_indices: dict[int, list[int]] = {}
        for index, frame in enumerate(frames):
            entry = self.rules.group_of(frame.source_id)
            if entry is not None:
                frame_indices.setdefault(entry[0], []).append(index)
        for group_index in sorted(frame_indices):
            group = self.rules.groups[group_index]
            turn, self._turns[group_index] = self._turns[group_index], self._turns[group_index] + 1
            if turn % (group.interval + 1):
                continue
            for index in frame_indices[group_index]:
                if self.rules.of_objects:
                    yield from self._objects(group, index, frames[index], metas[index])
                else:
                    yield from _regions(group, index, frames[index])

    def _objects(
        self, group: PreparationGroup, index: int, frame: Frame, meta: FrameMeta
    ) -> Iterator[_Part]:
        """Objects of a frame that the group takes; one in several regions comes once."""
        regions = group.regions_of(frame.source_id)
        objects = meta.objects
        for object_index in range(len(objects)):
            left, top, width, height = rect = objects.rects[object_index].tolist()
            sizes = zip((width, height), group.min_size, group.max_size, strict=True)
            if (
                (
                    self.rules.operate_on >= 0
                    and objects.component_ids[object_index] != self.rules.operate_on
                )
                or (group.classes and int(objects.class_ids[object_index]) not in group.classes)
                or any(size < least or 0 < most < size for size, least, most in sizes)
            ):
                continue
            if regions is None or any(
                r.left < left + width
                and left < r.left + r.width
                and r.top < top + height
                and top < r.top + r.height
                for r in regions
            ):
                yield _Part(index, rect, object_index)

    def close(self) -> None:
        """End the worker of a C++ function."""
        if self._cpp is not None:
            self._cpp.close()

    def _tensor(
        self, frames: Sequence[Frame], metas: Sequence[FrameMeta], parts: Sequence[_Part]
    ) -> InputTensor | None:
        """One tensor of these parts, or none; parts without an area are left out."""
        scaled = np.empty((len(parts), *self._scaler.shape), np.float32)
        rois: list[Roi] = []
        rows: list[int] = []
        row = 0
        for index, of_frame in groupby(parts, key=lambda part: part.frame_index):
            own = list(of_frame)
            rects = np.array([part.rect for part in own], np.float32).reshape(-1, 4)
            crops = self._scaler.crops(frames[index], rects, scaled[row : row + len(own)])
            for i, part in enumerate(own):
                if not crops.valid[i]:
                    continue
                transform = crops.transform(i)
                rows.append(row + i)
                rois.append(
                    Roi(
                        index,
                        *part.rect,
                        ratio_x=transform.ratio_x,
                        ratio_y=transform.ratio_y,
                        offset_left=int(transform.offset_x),
                        offset_top=int(transform.offset_y),
                        object_index=part.object_index,
                    )
                )
            row += len(own)
        if not rois:
            return None
        data: Array = scaled if len(rows) == len(parts) else scaled[rows]
        if self._cpp is None:
            data = self._normalised(data)
        else:
            answer = self._cpp(frames, metas, rois, data.astype(np.uint8))
            if answer is None:
                return None
            data, rois = answer
        self._made += 1
        rules = self.rules
        return InputTensor(
            rules.tensor_name,
            data,
            rois,
            rules.target_ids,
            meta_id=self._made,
            maintain_aspect_ratio=rules.maintain_aspect_ratio,
        )

    def _normalised(self, data: FloatArray) -> Array:
        """The values of a tensor: those of the function, or the scaler's."""
        dtype = np.dtype(self.rules.dtype)
        if self._function is None:
            return _cast(data, dtype)
        try:
            values = np.asarray(self._function(data.astype(np.uint8), dict(self.rules.user_config)))
        except Exception as error:  # of the user's code
            raise CustomLibraryError(
                f"{self.rules.function} raised {error_text(error)}", where=str(self.rules.library)
            ) from error
        expected_shape = (len(data), *self.rules.shape[1:])
        if values.shape != expected_shape or values.dtype.kind not in "fiub":
            raise CustomLibraryError(
                f"{self.rules.function} returned {values.dtype} of shape {values.shape}",
                where=str(self.rules.library),
                expected=f"numbers of shape {expected_shape}: network-input-shape, "
                "with a row per image",
            )
        return _cast(values, dtype)


def _regions(group: PreparationGroup, index: int, frame: Frame) -> Iterator[_Part]:
    rects = group.regions_of(frame.source_id)
    if rects is None:
        yield _Part(index, _whole(frame))
        return
    for rect in rects:
        yield _Part(index, _clipped(rect, frame))


def _whole(frame: Frame) -> tuple[float, float, float, float]:
    return 0.0, 0.0, float(frame.width), float(frame.height)


def _clipped(rect: Sequence[float], frame: Frame) -> tuple[float, float, float, float]:
    """Cut a region at the right and lower edge of the frame, as the original does."""
    left, top, width, height = rect
    return left, top, min(width, frame.width - left), min(height, frame.height - top)


def _cast(values: Array, dtype: DType) -> Array:
    """Values in another type; whole numbers are rounded and kept within its limits."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    whole: Array = np.clip(np.rint(values), limits.min, limits.max).astype(dtype)
    return whole


def _load(rules: PreparationRules) -> Prepare:
    from headrace.custom.python_library import PythonLibrary

    assert rules.library is not None
    function = PythonLibrary(rules.library).entry_point(rules.function)
    if not callable(function):
        raise CustomLibraryError(
            f"there is no function {rules.function!r}",
            where=str(rules.library),
            expected=SIGNATURE.format(name=rules.function),
        )
    prepare: Prepare = function
    return prepare
