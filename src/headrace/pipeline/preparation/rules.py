"""Which parts of which sources become tensors, and how: the content of a config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headrace._core.findings import Finding
from headrace.config.enums import ColorFormat, ScalingFilter, TensorOrder
from headrace.custom.guard.options import GuardOptions
from headrace.infer.geometry import Rect

ALL_SOURCES = -1
CUSTOM_ORDER = 2
"""`network-input-order`: the function decides the layout."""

# tensor-data-type -> type of a value; the manual has 5 for halves, the header of 9.x 7
DATA_TYPES: dict[int, type[np.generic]] = {
    0: np.float32, 1: np.uint8, 2: np.int8, 3: np.uint32, 4: np.int32, 5: np.float16,
    7: np.float16,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationGroup:
    """Regions of some sources, or the objects to take there.

    Attributes:
        sources: ids; `ALL_SOURCES` alone means each source that no other group names.
        regions: by source, left, top, width, height in pixels of the frame; None is the whole
            frame, or every object of it. Those of `ALL_SOURCES` are for each source of the group
            without its own.
        classes: of objects to take; empty takes all.
        min_size, max_size: width and height in pixels of objects to take; 0 sets no bound.
        interval: batches left out after each one.
        color: red, green, blue, alpha from 0 to 1 of the drawn regions; None draws none.
    """

    sources: tuple[int, ...]
    regions: Mapping[int, tuple[Rect, ...]] | None = None
    classes: tuple[int, ...] = ()
    min_size: tuple[int, int] = (0, 0)
    max_size: tuple[int, int] = (0, 0)
    interval: int = 0
    color: tuple[float, ...] | None = None

    def regions_of(self, source_id: int) -> tuple[Rect, ...] | None:
        """Return the regions of a source, None for the whole frame."""
        if self.regions is None:
            return None
        return self.regions.get(source_id, self.regions.get(ALL_SOURCES, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationRules:
    """The content of a config file of `nvdspreprocess`.

    Attributes:
        enabled: True prepares tensors, False lets everything pass.
        target_ids: `gie-unique-id`s of the models that take the tensors.
        unique_id: number of the element.
        of_objects: True prepares crops of objects, False regions of frames.
        operate_on: the model that found the objects, -1 for any.
        shape: of a tensor; the first number is the most items of one.
        order: `CUSTOM_ORDER` or a `TensorOrder`.
        scale, offsets, mean_file: normalisation, as in a model's config.
        tensor_name: the model's input.
        dtype: of a value.
        library: Python file or C++ library of the function that makes the tensors; None normalises
            as a model's config does.
        function: its name.
        guard: limits of the worker process of a C++ library; None calls it in this process.
        user_config: the keys of `[user-configs]`, for that function.
        where: the file, for messages.
        notices: what does not happen as written.
    """

    enabled: bool = True
    target_ids: tuple[int, ...]
    unique_id: int = 0
    of_objects: bool = False
    operate_on: int = -1
    width: int
    height: int
    shape: tuple[int, ...]
    order: int = TensorOrder.NCHW
    color_format: ColorFormat = ColorFormat.RGB
    dtype: type[np.generic] = np.float32
    maintain_aspect_ratio: bool = False
    symmetric_padding: bool = False
    scaling_filter: ScalingFilter = ScalingFilter.DEFAULT
    scale: float = 1.0
    offsets: tuple[float, ...] = ()
    mean_file: Path | None = None
    tensor_name: str
    library: Path | None = None
    function: str = ""
    guard: GuardOptions | None = field(default_factory=GuardOptions)
    user_config: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[PreparationGroup, ...]
    where: str = ""
    notices: tuple[Finding, ...] = ()

    def group_of(self, source_id: int) -> tuple[int, PreparationGroup] | None:
        """Find the group of a source, with its place; None leaves the source out."""
        for source in (source_id, ALL_SOURCES):
            for index, group in enumerate(self.groups):
                if source in group.sources:
                    return index, group
        return None
