"""State of a plugin's runs that lasts while their shapes do, and descriptors of those shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._core._native import LentMemory
from headrace._core.types import Array
from headrace.plugins.expressions import Shaped
from headrace.plugins.forms import TensorForm
from headrace.plugins.layer import Shape
from headrace.plugins.negotiate import form_desc
from headrace.plugins.types import PluginTensorDesc

if TYPE_CHECKING:
    from typing import Any


@dataclass(slots=True)
class Prepared:
    """All that stays as it is while shapes do.

    Attributes:
        key: shapes of the inputs and values of the shape inputs.
        profile: index of the profile that holds them.
        shaped: shapes of the outputs.
        inputs, outputs: descriptors for `enqueue`.
        reads, writes: bytes of each input and output, as the plugin has them.
        packed: shape of the memory of each output.
        names: of the outputs, then the inputs, as errors call their memory.
        buffers: memory of the outputs that may be used again, as the plugin writes them.
        proven: True once a run kept within its outputs, wrote them, and left its inputs alone.
        taken, taken_at: inputs of the last run by `run_at`: addresses with shapes, and alone.
        asked: number and shape of each output.
        lent: addresses of outputs, what was lent with them and `taken`, and the workspace's
            address; most runs get the same.
    """

    key: tuple[Any, ...]
    profile: int
    shaped: Shaped
    inputs: list[PluginTensorDesc]
    outputs: list[PluginTensorDesc]
    reads: list[int]
    writes: list[int]
    packed: list[Shape]
    names: list[str]
    buffers: dict[int, Array] = field(default_factory=dict)
    proven: bool = False
    lent: tuple[list[int], LentMemory, int] | None = None
    taken: list[tuple[int, Shape]] = field(default_factory=list)
    taken_at: list[int] = field(default_factory=list)
    asked: list[tuple[int, Shape]] = field(init=False)
    sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.asked = list(enumerate(self.shaped.shapes))
        self.sizes = self.writes + self.reads


def descs(shapes: Sequence[Shape], forms: Sequence[TensorForm]) -> list[PluginTensorDesc]:
    """Describe tensors by their shapes and forms."""
    return [form_desc(s, f) for s, f in zip(shapes, forms, strict=True)]


def sizes_of(shapes: Sequence[Shape], forms: Sequence[TensorForm]) -> list[int]:
    """Count the bytes of each tensor."""
    return [form.size(s) for s, form in zip(shapes, forms, strict=True)]


def with_unknown(shaped: Shaped) -> list[Shape]:
    """Make the shapes that `enqueue` gets: -1 where the plugin decides."""
    shapes = []
    for shape, sized in zip(shaped.shapes, shaped.sized, strict=True):
        axes = list(shape)
        for axis, _ in sized:
            axes[axis] = -1
        shapes.append(tuple(axes))
    return shapes
