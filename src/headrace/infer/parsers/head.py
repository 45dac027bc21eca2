"""Heads of networks: the outputs each needs, declared once, and the function that decodes them.

The same declaration checks the layers of a call, finds what is wrong with them, suggests heads for
given outputs and fills the table in the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array, DType
from headrace.infer.parsers.boxes import to_float32
from headrace.infer.parsers.device_tables import DeviceTables
from headrace.meta.detections import BatchDetections, Detections
from headrace.meta.layers import (
    DetectionParams,
    NetworkInfo,
    Segmentation,
    SegmentationParams,
)
from headrace.network.tensor_spec import TensorSpec

Dims = Mapping[str, int]
Arrays = Sequence[Array]
HeadParams = DetectionParams | SegmentationParams
# (arrays, network, params of the head's kind) -> the result of its kind
Decode = Callable[[Arrays, NetworkInfo, Any], "Detections | BatchDetections | Segmentation"]
Shape = tuple[int | None, ...]

_COCO_CLASSES = 80  # the likely number where none is given
_TERM = re.compile(r"(?:(\d+)\*)?\(?(?:(\d+)\+)?([A-Za-z]+)\)?|(\d+)")

CTC = "HeadraceParseCtc"
"""Reads lines of text by a label file that lists characters: `parsers/text.py`."""


class LayerLike(Protocol):
    """Anything with the name, dtype and per-item shape of an output."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dtype(self) -> DType:
        """Type of its values."""

    @property
    def shape(self) -> Shape:
        """Axes of one item; None where a length is not known."""


class Item(PlainRecord, frozen=True):
    """One item of an output; an axis is None where its length is not known."""

    name: str
    dtype: DType
    shape: Shape


class UnfitError(Exception):
    """The outputs cannot be decoded by this head; the catalogue makes a ParserError of it."""

    def __init__(
        self,
        problem: str,
        expected: str | None = None,
        fix: str | None = None,
        *,
        classes: Sequence[int] = (),
        parsers: Sequence[str] = (),
    ) -> None:
        super().__init__(problem)
        self.found, self.expected, self.fix = problem, expected, fix
        self.classes = classes  # numbers of classes that may be right
        self.parsers = parsers  # other heads that may be


def wrong_classes(
    params: HeadParams, classes: int, hold: str = "the outputs hold {} classes"
) -> UnfitError:
    """The error for outputs with another number of classes than the config has."""
    return UnfitError(
        f"num-detected-classes={params.num_classes}, but {hold.format(classes)}",
        expected=f"num-detected-classes={classes}",
        fix=f"set num-detected-classes={classes}; hide classes with filter-out-class-ids",
        classes=(classes,),
    )


class Out(PlainRecord, frozen=True):
    """One output that a head needs.

    Attributes:
        dims: axes separated by spaces: a number, a letter (any length), or `5+C`, `4*C`,
            `3*(5+C)`, which bind C. One axis `.` at the front stands for leading axes of length 1.
        names: accepted exact names; empty when the output is found by its position.
        integers: counts and class ids, of any numeric type; otherwise float (16, 32 or 64 bit).
        exact: with `integers`: of an integer type only.
        optional: may be missing (by name only); its array is then empty.
    """

    dims: str
    names: tuple[str, ...] = ()
    integers: bool = False
    optional: bool = False
    exact: bool = False

    def bind(self, shape: Shape, bound: dict[str, int | None]) -> tuple[int | None, ...] | None:
        """The shape without superfluous axes of length 1 when it fits `dims`, else None."""
        terms = self.dims.split()
        if len(shape) > len(terms):
            lead = len(shape) - len(terms)
            ones = [i for i, d in enumerate(shape) if d == 1]
            drop = set(range(lead)) if all(shape[i] == 1 for i in range(lead)) else set(ones[:lead])
            shape = tuple(d for i, d in enumerate(shape) if i not in drop)
        if len(shape) != len(terms):
            return None
        for term, length in zip(terms, shape, strict=True):
            if not _bind_axis(term, length, bound):
                return None
        return shape

    @property
    def kinds(self) -> str:
        """Kinds of the types that it may have, as NumPy names them."""
        return "f" if not self.integers else "iu" if self.exact else "fiu"

    def proven(self, shape: Shape) -> bool:
        """Whether the shape is known where this head binds it: no free axis has to fit."""
        terms = zip(self.dims.split(), shape, strict=True)
        return all(length is not None or term.isalpha() for term, length in terms)

    def __str__(self) -> str:
        name = f"{' or '.join(map(repr, self.names))} " if self.names else ""
        kind = " integers" if self.integers else ""
        return f"{name}[{', '.join(self.dims.split())}]{kind}{' (optional)' * self.optional}"


def _bind_axis(term: str, length: int | None, bound: dict[str, int | None]) -> bool:
    match = _TERM.fullmatch(term)
    assert match, f"bad axis {term!r}"
    times, plus, letter, literal = match.groups()
    if literal:
        return length is None or length == int(literal)
    if length is None:
        bound.setdefault(letter, None)
        return True
    length, rest = divmod(length, int(times or 1))
    length -= int(plus or 0)
    if rest or ((times or plus) and length < 1):
        return False
    if bound.get(letter) is not None:
        return bound[letter] == length
    bound[letter] = length
    return True


Found = list["tuple[LayerLike, Shape] | None"]
Where = Callable[[Dims, NetworkInfo | None], bool]


class Layout(PlainRecord, frozen=True):
    """One arrangement of outputs and its decoder.

    Attributes:
        outs: the outputs, all by name or all by position.
        decode: (arrays in the order of `outs`, network, params) -> Detections or Segmentation.
        where: a condition on the bound letters, when the shapes alone say too little; it is given
            the network size where that is known.
        likely: a condition that makes the head the probable one, for suggestions; None: outputs
            found by name are proof enough, and others are not.
        first: by position: look at the first outputs only, more may follow.
        suggested: may be a reason to propose the head; False where too many outputs fit.
        batched: `decode` takes the arrays of B items, (B, ...), and gives BatchDetections.
    """

    outs: tuple[Out, ...]
    decode: Decode
    where: Where | None = None
    likely: Where | None = None
    first: bool = False
    suggested: bool = True
    batched: bool = False

    def match(
        self, layers: Sequence[LayerLike], network: NetworkInfo | None
    ) -> tuple[Found, dict[str, int | None]] | None:
        """The layers with the shapes to view them in, and the bound letters; None: no fit."""
        entries: Found = []
        bound: dict[str, int | None] = {}
        by_position, surplus = not self.outs[0].names, len(layers) - len(self.outs)
        if by_position and (surplus < 0 or (surplus > 0 and not self.first)):
            return None
        for position, out in enumerate(self.outs):
            layer: LayerLike | None = None
            if out.names:
                layer = next((x for n in out.names for x in layers if x.name == n), None)
            else:
                layer = layers[position]
            if layer is None:
                if not out.optional:
                    return None
                entries.append(None)
                continue
            if layer.dtype.kind not in out.kinds:
                return None
            shape = out.bind(layer.shape, bound)
            if shape is None:
                return None
            entries.append((layer, shape))
        known = {k: v for k, v in bound.items() if v is not None}
        if self.where and len(known) == len(bound) and not self.where(known, network):
            return None
        return entries, bound

    def speaks(self, layers: Sequence[LayerLike], entries: Found) -> bool:
        """Whether outputs that fit by their position are a reason to think of this head."""
        if len(layers) > len(self.outs):
            return False  # the surplus outputs speak for another one
        pairs = zip(self.outs, entries, strict=True)
        return all(entry is None or out.proven(entry[1]) for out, entry in pairs)

    def __str__(self) -> str:
        how = "by name " if self.outs[0].names else ""
        return how + ", ".join(map(str, self.outs))

    def arrays(
        self,
        entries: Sequence[tuple[str, Shape] | None],
        outputs: Mapping[str, Array],
    ) -> Arrays:
        """Arrays of the layers found, in the order of `outs`, as `decode` takes them.

        Args:
            entries: name of each layer, and the shape to view an item in; None where there is none.
            outputs: (B, ...) arrays of B items; the first is taken unless `batched`. Tables on the
                GPU stay there.
        """
        arrays = []
        for out, entry in zip(self.outs, entries, strict=True):
            if entry is None:
                arrays.append(np.empty(0, np.float32))
                continue
            name, shape = entry
            data = outputs[name] if self.batched else outputs[name][0]
            axes = [d or 0 for d in shape]
            data = data.reshape([len(data), *axes] if self.batched else axes)
            as_it_is = out.integers or isinstance(data, DeviceTables)
            arrays.append(data if as_it_is else to_float32(data))
        return arrays


class AnyHead(PlainRecord, frozen=True):
    """Base of the heads: a declaration of the outputs that one needs.

    Attributes:
        name: the name for the configuration.
        summary: one line: boxes, scores, thresholds.
        layouts: arrangements of outputs, tried in order.
        strict_classes: the letter C must equal `num-detected-classes`.
        surplus: by how much C may exceed the classes: for background, or no object.
        suggested: may be proposed for outputs that fit; False for twins of another head.
        key: the key that `name` is for.
    """

    name: str
    summary: str
    layouts: tuple[Layout, ...]
    strict_classes: bool = False
    suggested: bool = True
    surplus: tuple[int, ...] = (0,)
    key: ClassVar[str]

    def choose(
        self, layers: Sequence[LayerLike], network: NetworkInfo, params: HeadParams
    ) -> tuple[Layout, Found, int | None]:
        """The arrangement that the outputs have, their layers, and how many classes they hold.

        Raises:
            UnfitError: there is none, or none with as many classes as `strict_classes` demands.
        """
        other: list[int] = []
        for layout in self.layouts:
            match = layout.match(layers, network)
            if match is None:
                continue
            entries, bound = match
            classes = bound.get("C")
            if classes == params.num_classes or not self.strict_classes:
                return layout, entries, classes
            other.append(classes or 0)
        if other:
            # Where two orientations fit, the one with fewer classes is the plausible one.
            raise wrong_classes(params, min(other))
        raise UnfitError("the network's outputs do not fit this head")

    def classes(
        self, layers: Sequence[LayerLike], network: NetworkInfo | None, num_classes: int
    ) -> int | None:
        """How many classes the outputs hold, read by this head; None if they do not tell."""
        counts: list[int] = []
        for layout in self.layouts:
            match = layout.match(layers, network)
            if match is not None and (count := match[1].get("C")) is not None:
                counts += [count - more for more in self.surplus]
        return num_classes if num_classes in counts else min(counts, default=None)

    @property
    def needs(self) -> str:
        """The outputs, in words."""
        return "; or ".join(dict.fromkeys(map(str, self.layouts)))

    def rank(
        self,
        layers: Sequence[LayerLike],
        network: NetworkInfo | None = None,
        num_classes: int | None = None,
        *,
        every: bool = False,
    ) -> tuple[int, int] | None:
        """How well `layers` fit: (0 probable or 1 possible, 0 same number of classes or 1).

        None when names, kinds or shapes are not those that the head needs. Layouts that are not
        suggested count with `every`, for a head that a config names.
        """
        ranks = []
        class_count = num_classes or _COCO_CLASSES
        for layout in self.layouts:
            match = layout.match(layers, network) if every or layout.suggested else None
            if match is None:
                continue
            if not layout.outs[0].names and not layout.speaks(layers, match[0]):
                continue
            bound = {k: v for k, v in match[1].items() if v is not None}
            probable = bool(layout.outs[0].names)
            if layout.likely:
                probable = len(bound) == len(match[1]) and layout.likely(bound, network)
            other = "C" in bound and bound["C"] - class_count not in self.surplus
            ranks.append((int(not probable), int(other)))
        return min(ranks, default=None)

    def misnamed(
        self, layers: Sequence[LayerLike], network: NetworkInfo | None = None
    ) -> dict[str, str]:
        """Right names of outputs that fit but for their names; empty if none do."""
        for layout in self.layouts:
            outs = [out for out in layout.outs if out.names and not out.optional]
            nameless = tuple(replace(out, names=()) for out in outs)
            if outs and replace(layout, outs=nameless, first=False).match(layers, network):
                return {
                    layer.name: out.names[0]
                    for layer, out in zip(layers, outs, strict=True)
                    if layer.name not in out.names
                }
        return {}


class Head(AnyHead, frozen=True):
    """Decodes the outputs of detectors."""

    key = "parse-bbox-func-name"


class InstanceHead(Head, frozen=True):
    """Decodes outputs into Detections with masks.

    Attributes:
        mask_threshold: the value of a mask that is as likely inside as outside of the object.
    """

    mask_threshold: float = 0.5
    key = "parse-bbox-instance-mask-func-name"


class SegmentationHead(AnyHead, frozen=True):
    """Decodes outputs into class maps."""

    key = "parse-segmentation-func-name"


def layers_text(layers: Iterable[LayerLike]) -> str:
    """The layers as `name float32[84, 8400]`, comma separated."""
    return (
        ", ".join(
            f"{x.name!r} {x.dtype.name}[{', '.join('?' if d is None else str(d) for d in x.shape)}]"
            for x in layers
        )
        or "none"
    )


def per_item(output: LayerLike | TensorSpec) -> LayerLike:
    """An output without its batch axis, if it is one of a session."""
    if not isinstance(output, TensorSpec):
        return output
    axes: tuple[int | None, ...] = tuple(d if isinstance(d, int) else None for d in output.shape)
    if not axes:  # not even the number of axes is known: no head has as many as nine
        axes = (None,) * 10
    return Item(output.name, output.dtype, axes[1:] or (1,))
