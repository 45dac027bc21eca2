"""Lives of a plugin that is checked: made, built, run in memory of the arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core._native import LentMemory
from headrace._core.types import Array
from headrace.diagnose.plugin_check import arena
from headrace.diagnose.plugin_check.breach import broken
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.base import IPluginCreatorV3One, IPluginV2, IPluginV2Ext
from headrace.plugins.calls import Instance, call_creator
from headrace.plugins.drivers import add_layer
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.layer import EnginePlugin, LayerPlugin, Ranges, ShapeInput
from headrace.plugins.negotiate import closest, network_types
from headrace.plugins.types import DataType, TensorRTPhase
from headrace.plugins.watch import pattern_of

if TYPE_CHECKING:
    from headrace.plugins.context import ContextPlugin
    from headrace.plugins.trace import Phase

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]
_SCALE = 1 / 32  # INT8 reaches 4 standard deviations of the noise
_TOLERANCES = {2: 2e-3, 4: 1e-5, 8: 1e-9}
_SECOND = {DataType.FLOAT: 0x7FDADADA, DataType.HALF: 0x7EDA, DataType.BF16: 0x7FDA}


@dataclass(frozen=True, slots=True)
class Subject:
    """A plugin, and the inputs it is checked with.

    Attributes:
        creator: makes it.
        fields: that it is made of.
        specs: its inputs, axes that may differ free.
        sizes: shapes of the inputs to run it with, the least first.
        shape_values: numbers of its shape inputs.
        implicit_batch: it is of a network whose shapes leave the batch out.
        layer: name of the node.
    """

    creator: Any
    fields: PluginFieldCollection
    specs: tuple[TensorSpec, ...]
    sizes: tuple[Shapes, ...]
    shape_values: tuple[Shape, ...] = ()
    implicit_batch: bool = False
    layer: str = "checked"

    def made(self, fields: PluginFieldCollection | None = None) -> Instance:
        """A new plugin object.

        Raises:
            PluginError: the creator failed.
        """
        more = (TensorRTPhase.BUILD,) if isinstance(self.creator, IPluginCreatorV3One) else ()
        given = self.fields if fields is None else fields
        plugin = call_creator(
            self.creator, "parse", self.layer, "create_plugin", self.layer, given, *more
        )
        return Instance(
            plugin, self.layer, f"{self.creator.name} version {self.creator.plugin_version}"
        )

    def inputs(self, size: Shapes, seed: int = 1) -> list[Array]:
        """Noise of these shapes, of the network's types."""
        numbers = np.random.default_rng(seed)
        arrays = []
        for spec, shape in zip(self.specs, size, strict=True):
            if spec.dtype.kind == "b":
                arrays.append(numbers.integers(0, 2, shape).astype(bool))
            elif spec.dtype.kind in "iu":
                arrays.append(numbers.integers(0, 4, shape).astype(spec.dtype))
            else:
                arrays.append(numbers.standard_normal(shape).astype(spec.dtype))
        return arrays

    def scales(self, outputs: int) -> list[float]:
        """A scale of INT8 for every tensor, as a calibrated network has."""
        return [_SCALE] * (len(self.specs) + outputs)

    def ranges(self, first: int = 0, last: int = -1) -> Ranges:
        """A profile from size number `first` to `last`."""
        low, high = self.sizes[first], self.sizes[last]
        middle = self.sizes[(first + (last % len(self.sizes))) // 2]
        return Ranges(low, middle, high, self.shape_values)


class Original(Instance):
    """A plugin that copies nothing, for the results of the creator's own object.

    `copies` are the methods that are left out.
    """

    __slots__ = ("_without",)

    def __init__(self, plugin: object, layer: str, name: str, without: frozenset[str]) -> None:
        super().__init__(plugin, layer, name)
        self._without = without

    def clone(self, phase: Phase) -> Instance:
        """See `Instance`."""
        if "clone" in self._without:
            return Original(self.plugin, self.layer, self.name, self._without)
        return self.checked_copy(self.call(phase, "clone"), "clone")

    def ask(self, phase: Any, kind: Any, method: str, *arguments: object) -> object:
        """See `Instance`."""
        if method == "attach_to_context" and method in self._without:
            return self.plugin
        return super().ask(phase, kind, method, *arguments)

    def checked_copy(self, copy: object, method: str) -> Instance:
        """See `Instance`."""
        if method in self._without and copy is self.plugin:
            return Original(copy, self.layer, self.name, self._without)
        made = super().checked_copy(copy, method)
        return Original(made.plugin, self.layer, self.name, self._without)

    def destroy(self, phase: Phase = "destroy") -> None:
        """The copies are one object: it stays until the process ends."""


@dataclass(slots=True)
class PluginLife:
    """A plugin in a network and an engine.

    Attributes:
        layer: the network's copy.
        engine: the layer in the engine.
        dtypes: of the outputs, in the network.
    """

    subject: Subject
    layer: LayerPlugin
    engine: EnginePlugin
    contexts: list[ContextPlugin] = field(default_factory=list)

    def context(self) -> ContextPlugin:
        """A new execution context; it ends with this life."""
        self.contexts.append(self.engine.context())
        return self.contexts[-1]

    def close(self) -> None:
        """End everything, contexts first."""
        for context in self.contexts:
            context.close()
        self.engine.close()
        self.layer.close()


def lived(
    subject: Subject,
    user: Instance | None = None,
    profiles: Sequence[Ranges] = (),
    without: frozenset[str] = frozenset(),
) -> PluginLife:
    """Make a plugin, add it to a network, and build that.

    `without`: methods that copy a plugin and are not called, see `Original`.

    Raises:
        PluginError: it failed.
    """
    made = user or subject.made()
    layer = added(subject, made, without)
    if not without:
        made.destroy("parse")
    types = layer.output_types([closest(s.dtype) for s in subject.specs])
    inputs = [s.dtype for s in subject.specs]
    dtypes = network_types(types, inputs, weak=layer.generation != "V3")
    values = [ShapeInput(v) for v in subject.shape_values]
    scales = subject.scales(len(dtypes))
    engine = layer.build(subject.specs, dtypes, profiles or [subject.ranges()], values, scales)
    engine.finish()
    return PluginLife(subject, layer, engine)


def added(subject: Subject, made: Instance, without: frozenset[str] = frozenset()) -> LayerPlugin:
    """Add a plugin to a network.

    Raises:
        PluginError: it failed.
    """
    plain = isinstance(made.plugin, IPluginV2) and not isinstance(made.plugin, IPluginV2Ext)
    layer = add_layer(
        made.plugin,
        layer=subject.layer,
        input_types=[closest(s.dtype) for s in subject.specs],
        num_shape_inputs=len(subject.shape_values),
        implicit_batch=subject.implicit_batch or plain,
    )
    if without:
        plugin = made.plugin if "clone" in without else layer.instance.plugin
        layer.instance = Original(plugin, subject.layer, layer.instance.name, without)
    return layer


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Bytes in the memory around a call before it.

    Attributes:
        second: outputs are filled with the second pattern.
        known: bytes around tensors.
        scratch: bytes of the workspace.
    """

    second: bool = False
    known: int = 0xA5
    scratch: int = 0x5A

    def fill(self, kind: DataType, itemsize: int) -> int:
        """Bits that an output is filled with."""
        first = pattern_of(kind, itemsize)
        if not self.second:
            return first
        return _SECOND.get(kind, first ^ ((1 << (8 * itemsize)) - 1))

    def changed(self, **values: Any) -> Surroundings:
        """The same with other values."""
        return replace(self, **values)


USUAL = Surroundings()


def run(
    context: ContextPlugin, subject: Subject, inputs: Sequence[Array], around: Surroundings = USUAL
) -> list[Array]:
    """Run a plugin in guarded memory; its outputs, row-major, in the plugin's types.

    Raises:
        PluginError: it failed.
        BrokenError: it wrote where it must not.
    """
    values = [np.array(v, np.int64) for v in subject.shape_values]
    now, packed = context.prepared(inputs, values)
    spec = context.spec
    aliases = spec.aliases or (-1,) * len(spec.output_forms)
    ins = []
    for number, array in enumerate(packed):
        name = f"input {number}"
        block = arena.tensor(name, array.nbytes, writable=number in aliases, known=around.known)
        block.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        block.lock()
        ins.append(block)
    outs = []
    for number, (size, form) in enumerate(zip(now.writes, spec.output_forms, strict=True)):
        if aliases[number] >= 0:
            outs.append(ins[aliases[number]])
            continue
        block = arena.tensor(f"output {number}", size, writable=True, known=around.known)
        pattern = around.fill(form.type, form.storage.itemsize)
        width = np.dtype(f"u{form.storage.itemsize}")
        block.data.view(width)[:] = np.array(pattern, np.uint64).astype(width)
        outs.append(block)
    blocks = [*ins, *(b for b in outs if b not in ins)]
    scratch = 0
    if context.workspace_bytes:
        space = arena.tensor(
            "the workspace", context.workspace_bytes, writable=True, known=around.known
        )
        space.data[:] = around.scratch
        scratch = space.address
        blocks.append(space)
    lent = [(b.address, b.address + b.data.nbytes, b.writable, b.name) for b in blocks]
    with LentMemory(lent):
        context.enqueue_at(now, [b.address for b in ins], [b.address for b in outs], scratch)
    for block in blocks:
        if side := block.written_outside():
            kind = "workspace" if "workspace" in block.name else f"{block.name.split()[0]}s"
            clause = "outputs-bounds" if kind == "inputs" else f"{kind}-bounds"
            extent = f"{block.data.nbytes:,} bytes"
            raise broken(clause, f"enqueue wrote {side} {block.name} ({extent})")
    results = [
        form.unpack(np.array(block.data).view(form.storage).reshape(packed_shape), shape)
        for form, block, packed_shape, shape in zip(
            spec.output_forms, outs, now.packed, now.shaped.shapes, strict=True
        )
    ]
    if now.shaped.data_dependent:
        results = context.cut(now.shaped, results)
    results = [np.array(a) for a in results]
    for block in blocks:
        block.close()
    return results


def differs(one: Sequence[Array], two: Sequence[Array]) -> str:
    """Words for the first difference of two sets of outputs; empty if there is none."""
    for number, (a, b) in enumerate(zip(one, two, strict=True)):
        if a.shape != b.shape:
            return f"output {number} has the shape {a.shape}, then {b.shape}"
        unlike = unlike_elements(a, b)
        if count := int(np.count_nonzero(unlike)):
            at = tuple(int(i) for i in np.argwhere(unlike)[0])
            values = f"{a[at]!s} and {b[at]!s}" if a.ndim else f"{a!s} and {b!s}"
            part = f"{count:,} of {a.size:,} elements"
            return f"output {number} differs in {part}: {values} at {list(at)}"
    return ""


def unlike_elements(a: Array, b: Array) -> Array:
    """Where two arrays of one type and shape differ by more than rounding."""
    if a.dtype.kind != "f":
        return np.asarray(a != b)
    tolerance = _TOLERANCES.get(a.itemsize, 1e-5)
    with np.errstate(all="ignore"):
        near = np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return np.asarray(~near)
