"""Which forms of its tensors a plugin works in: element types, formats, scales.

The builder asks for one tensor after the other, those before it decided, and looks for the cheapest
set that the plugin accepts: first the one that loses least of the values, then the one that moves
fewest bytes. The network's own types, row-major, cost nothing. Source: tensorrt-plugins spec 6.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as numbers
from math import prod

from headrace._core.errors import PluginError
from headrace._core.types import DType
from headrace.plugins.calls import Instance
from headrace.plugins.checks import as_bool
from headrace.plugins.forms import ABSENT_FORMATS, ABSENT_TYPES, ORDERS, TensorForm
from headrace.plugins.spoken import spoken
from headrace.plugins.types import (
    DataType,
    DynamicPluginTensorDesc,
    PluginCapabilityType,
    PluginTensorDesc,
    TensorFormat,
)

_FALLBACK = (DataType.FLOAT, DataType.HALF)
_OTHERS: dict[str, tuple[DataType, ...]] = {
    "float64": (DataType.FLOAT,),
    "bfloat16": (DataType.FLOAT,),
    "int64": (DataType.INT64, DataType.INT32, DataType.UINT8),
    "int32": (DataType.INT32, DataType.INT64, DataType.UINT8),
    "int16": (DataType.INT32, DataType.INT64),
    "uint16": (DataType.INT32, DataType.INT64),
    "uint32": (DataType.INT64, DataType.INT32),
    "uint64": (DataType.INT64, DataType.INT32),
    "uint8": (DataType.UINT8, DataType.INT32),
    "int8": (DataType.INT8, DataType.INT32),
    "bool": (DataType.BOOL, DataType.INT32),
}
BUILD = PluginCapabilityType.BUILD
MAX_QUESTIONS = 10_000
TAKEN = (
    "float32, float16, bfloat16, float64, int8 to int64, uint8 to uint64 or bool: a Cast before "
    "the plugin makes one of them"
)
"""The element types of a network that plugins take."""


def candidates(dtype: DType) -> list[DataType]:
    """Types to offer for a tensor of that type in the network without a scale, best first."""
    own = _OTHERS.get(dtype.name)
    if own is None and not takes(dtype):
        raise PluginError(
            f"{'string' if dtype.kind in 'OUST' else dtype.name} has no TensorRT type",
            expected=TAKEN,
        )
    first = own if own is not None else (DataType.of(dtype),)
    return list(dict.fromkeys((*first, *_FALLBACK)))


def takes(dtype: DType) -> bool:
    """Whether a plugin can take tensors of that type."""
    try:
        return dtype.name in _OTHERS or bool(DataType.of(dtype) is not None)
    except TypeError:
        return False


def closest(dtype: DType) -> DataType:
    """The TensorRT type for a tensor of that type in the network."""
    return candidates(dtype)[0]


def canonical(dtype: DataType) -> DataType:
    """The input type that version-2 plugins get when asked for the types of their outputs."""
    if dtype.is_float or dtype == DataType.INT8:
        return DataType.FLOAT
    return DataType.BOOL if dtype == DataType.BOOL else DataType.INT32


def network_types(
    declared: Sequence[DataType], inputs: Sequence[DType], *, weak: bool
) -> list[DType]:
    """Element types of the outputs in the network.

    `weak`: True if FLOAT means "float of the width that the network has" (version 2).

    Raises:
        PluginError: an output of a type that NumPy has no twin of.
    """
    floats = [d for d in inputs if d.kind == "f" and d.itemsize <= 4]
    types = []
    for index, kind in enumerate(declared):
        if weak and kind == DataType.FLOAT and floats and all(d.itemsize == 2 for d in floats):
            types.append(floats[0])
            continue
        try:
            types.append(kind.numpy)
        except TypeError as error:
            raise PluginError(f"output {index}: {error}") from error
    return types


_LOSS: dict[DataType, int] = {
    DataType.HALF: 1,
    DataType.BF16: 2,
    DataType.INT8: 3,
}
"""How much of a float a type loses, against the others."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A form that a tensor is offered in, with its cost: loss, then bytes that are moved."""

    form: TensorForm
    loss: int
    moved: int


def offers(dtype: DType, dims: Sequence[int], scale: float = 0.0) -> list[Offer]:
    """The forms to offer for a tensor of the network, cheapest first.

    Args:
        dtype: its type in the network.
        dims: its usual shape.
        scale: of INT8; 0 where there is none, and INT8 is not offered to floats then.

    Raises:
        PluginError: TensorRT has no such type.
    """
    kinds = candidates(dtype)
    if dtype.name not in ("float32", "float16", "float64", "bfloat16"):
        losses = {kind: index for index, kind in enumerate(kinds)}
    else:
        own = kinds[0]
        kinds = list(dict.fromkeys((*kinds, DataType.BF16)))
        if scale:
            kinds.append(DataType.INT8)
        losses = {kind: 0 if kind == own else _LOSS.get(kind, 0) for kind in kinds}
    size = prod(max(d, 1) for d in dims)
    plain = [TensorForm(kind, scale=scale if kind == DataType.INT8 else 0.0) for kind in kinds]
    found = []
    for form in plain:
        same = form == plain[0] and form.storage == dtype
        cast = 0 if same else size * (dtype.itemsize + form.storage.itemsize)
        found.append(Offer(form, losses[form.type], cast))
        for format, order in ORDERS.items():
            if len(dims) < order.axes:
                continue
            packed = TensorForm(form.type, format, form.scale)
            moved = size * form.storage.itemsize + packed.size([max(d, 1) for d in dims])
            if not packed.is_documented:  # an answer that TensorRT never asks for comes last
                moved += 1 << 50
            elif order.axes == len(dims) > 3:  # the batch in the place of channels: hardly meant
                moved += 1 << 49
            found.append(Offer(packed, losses[form.type], cast + moved))
    return sorted(found, key=lambda offer: (offer.loss, offer.moved))


def all_offers(
    inputs: Sequence[DType],
    outputs: Sequence[DType],
    dims: Sequence[Sequence[int]],
    scales: Sequence[float],
) -> list[list[Offer]]:
    """`offers` for every tensor, inputs first; no `scales` are none for all."""
    dtypes = [*inputs, *outputs]
    known = scales or [0.0] * len(dtypes)
    return [offers(*one) for one in zip(dtypes, dims, known, strict=True)]


def negotiate(
    instance: Instance,
    inputs: Sequence[DynamicPluginTensorDesc],
    outputs: Sequence[DynamicPluginTensorDesc],
    choices: Sequence[Sequence[Offer]],
    *,
    dynamic: bool,
) -> list[TensorForm]:
    """Find the cheapest set of forms that the plugin accepts, one for every tensor.

    `choices` are the forms to offer per tensor, inputs first. With `dynamic` (version 3) the
    plugin is shown a `DynamicPluginTensorDesc` for each tensor, else a `PluginTensorDesc`.

    Raises:
        PluginError: the plugin failed, answered something else than yes or no, or refuses all.
    """
    count, tensors = len(inputs), [*inputs, *outputs]
    asking = _Asking(instance, tensors, count, dynamic)
    order = numbers()
    # (loss, bytes, when it was found, forms decided, number of the next offer)
    waiting: list[tuple[int, int, int, tuple[TensorForm, ...], int]] = []

    def push(loss: int, moved: int, chosen: tuple[TensorForm, ...], index: int) -> None:
        if index < len(choices[len(chosen)]):
            offer = choices[len(chosen)][index]
            cost = (loss + offer.loss, moved + offer.moved)
            heapq.heappush(waiting, (*cost, next(order), chosen, index))

    if not tensors:
        return []
    push(0, 0, (), 0)
    while waiting and asking.asked < MAX_QUESTIONS:
        loss, moved, _, chosen, index = heapq.heappop(waiting)
        offer = choices[len(chosen)][index]
        push(loss - offer.loss, moved - offer.moved, chosen, index + 1)
        if not asking.accepts(chosen, offer.form):
            continue
        decided = (*chosen, offer.form)
        if len(decided) == len(tensors):
            return list(decided)
        push(loss, moved, decided, 0)
    raise asking.error(choices)


class _Asking:
    """Questions to one plugin, and its refusals."""

    def __init__(
        self,
        instance: Instance,
        tensors: Sequence[DynamicPluginTensorDesc],
        inputs: int,
        dynamic: bool,
    ) -> None:
        self.asked = 0
        self._instance, self._tensors, self._inputs = instance, tensors, inputs
        self._dynamic = dynamic
        self._refused: dict[int, dict[DataType, list[TensorFormat]]] = {}
        self._last: tuple[TensorForm, ...] = ()

    def accepts(self, chosen: tuple[TensorForm, ...], form: TensorForm) -> bool:
        """Whether the plugin takes the next tensor in `form`, those before it as `chosen`."""
        self.asked += 1
        pos, method = len(chosen), "supports_format_combination"
        descs = _descs(self._tensors, [*chosen, form], self._dynamic)
        if self._dynamic:
            answer = self._instance.ask("build", BUILD, method, pos, descs, self._inputs)
        else:
            answer = self._instance.call("build", method, pos, descs, self._inputs)
        if as_bool(self._instance, method, answer):
            return True
        if len(chosen) >= len(self._last):
            self._last = chosen
        formats = self._refused.setdefault(pos, {}).setdefault(form.type, [])
        if form.format not in formats:
            formats.append(form.format)
        return False

    def error(self, choices: Sequence[Sequence[Offer]]) -> PluginError:
        """The error for a plugin that accepts no set."""
        named = spoken(self._instance.plugin, "supports_format_combination")
        if self.asked >= MAX_QUESTIONS:
            problem = f"{named} accepts none of {MAX_QUESTIONS} sets of forms"
        else:
            parts = [
                f"{self._name(pos)} as {kind.name}"
                for pos, kinds in sorted(self._refused.items())
                for kind in kinds
            ]
            problem = f"{named} refuses {', '.join(parts[:8])}"
            if any(len(f) > 1 for kinds in self._refused.values() for f in kinds.values()):
                problem += ", in LINEAR and in every other format"
        return PluginError(
            problem,
            where=self._instance.where,
            expected="one accepted combination: FLOAT, LINEAR for every float tensor at least",
            fix=self._hints(choices),
            data={"method": "supports_format_combination"},
        )

    def _name(self, pos: int) -> str:
        return f"input {pos}" if pos < self._inputs else f"output {pos - self._inputs}"

    def _hints(self, choices: Sequence[Sequence[Offer]]) -> list[str]:
        """List the forms that the plugin would have taken and that are not offered."""
        hints = []
        pos = len(self._last)
        kinds = {offer.form.type for offer in choices[pos]}
        at = self._last
        if DataType.INT8 not in kinds and self._would(at, TensorForm(DataType.INT8, scale=1.0)):
            hints.append(
                f"it takes {self._name(pos)} as INT8, which was not tried: the tensor has no "
                "scale; build in INT8 with a calibration table (headrace calibrate makes one if "
                "the plugin takes FLOAT, too), or set its dynamic range"
            )
        axes = len(self._tensors[pos].desc.dims)
        for format, order in ORDERS.items():
            for kind in (k for k in DataType if k in order.types and order.axes > axes):
                if self.accepts(at, TensorForm(kind, format, 1.0)):
                    hints.append(
                        f"it takes {self._name(pos)} as {kind.name} k{format.name}, which needs "
                        f"{order.axes} axes, and the tensor has {axes}"
                    )
                    break
        for kind, text in ABSENT_TYPES.items():
            if self._would(at, TensorForm(kind)):
                hints.append(f"it takes {self._name(pos)} as {kind.name}: {text}")
        for format, text in ABSENT_FORMATS.items():
            for kind in (DataType.INT8, DataType.HALF, DataType.FLOAT):
                if self._would(at, TensorForm(kind, format, 1.0)):
                    form = f"{kind.name} k{format.name}"
                    hints.append(f"it takes {self._name(pos)} as {form}: {text}")
                    break
        return hints

    def _would(self, chosen: tuple[TensorForm, ...], form: TensorForm) -> bool:
        formats = (
            [form.format]
            if not form.is_linear or form.type in ABSENT_TYPES
            else [TensorFormat.LINEAR, *ORDERS]
        )
        asked = [TensorForm(form.type, format, form.scale) for format in formats]
        try:
            return any(self.accepts(chosen, one) for one in asked)
        except PluginError:
            return False


def _descs(
    tensors: Sequence[DynamicPluginTensorDesc], chosen: Sequence[TensorForm], dynamic: bool
) -> list[object]:
    descs: list[object] = []
    for index, tensor in enumerate(tensors):
        if index < len(chosen):
            desc = form_desc(tensor.desc.dims, chosen[index])
        else:  # not to be read
            desc = PluginTensorDesc(tensor.desc.dims, None, None)
        if dynamic:
            descs.append(DynamicPluginTensorDesc(desc, tensor.min, tensor.max, tensor.opt))
        else:
            descs.append(desc)
    return descs


def form_desc(dims: Sequence[int], form: TensorForm) -> PluginTensorDesc:
    """The descriptor of a tensor in a form."""
    return PluginTensorDesc(dims, form.type, form.format, form.scale)
