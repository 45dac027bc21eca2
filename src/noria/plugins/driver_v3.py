"""The life of an `IPluginV3`: calls, order, clones and counts.

Source: tensorrt-plugins spec 4.2. `get_capability_interface` is asked before each group of calls
and must give the same object every time; while running it is asked once per context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from noria._core.text import quoted
from noria.network.tensor_spec import TensorSpec
from noria.plugins import checks
from noria.plugins.base import IPluginResourceContext
from noria.plugins.calls import Instance, Rollback, wrong
from noria.plugins.context import ContextPlugin, Prepared
from noria.plugins.device import stage_for
from noria.plugins.driver_v2 import described
from noria.plugins.expressions import DimsExprs, IExprBuilder, checked_leaves, symbols, values
from noria.plugins.layer import (
    Array,
    EnginePlugin,
    LayerPlugin,
    Ranges,
    SavedPlugin,
    Shape,
    ShapeInput,
    refuse,
)
from noria.plugins.memory import address_of
from noria.plugins.negotiate import candidates, negotiate
from noria.plugins.trace import Phase
from noria.plugins.types import (
    DataType,
    DynamicPluginTensorDesc,
    PluginCapabilityType,
    PluginTensorDesc,
    TensorFormat,
)

CORE, BUILD, RUNTIME = PluginCapabilityType
TIMING_RUNS = 3
Tensors = tuple[list[DynamicPluginTensorDesc], list[DynamicPluginTensorDesc]]
_timings: dict[tuple[Any, ...], int] = {}
"""Timing cache: (type, version, timing_cache_id, types, shapes, tactics) -> fastest tactic."""


class V3Instance(Instance):
    """One object of version 3, and its capabilities."""

    __slots__ = ("_faces",)

    def __init__(self, plugin: Any, layer: str, name: str = "") -> None:
        super().__init__(plugin, layer, name)
        self._faces: dict[PluginCapabilityType, Any] = {}

    def face(self, phase: Phase, kind: PluginCapabilityType) -> Any:
        """The object with the methods of `kind`.

        Raises:
            PluginError: there is none, or it is another one than before.
        """
        method = "get_capability_interface"
        found = self.call(phase, method, kind)
        if found is None:
            raise wrong(self, method, f"None for {kind.name}", "an object with its methods")
        known = self._faces.setdefault(kind, found)
        if known is not found:
            text = f"another object for {kind.name} than before"
            raise wrong(self, method, text, "the same object every time")
        return found

    def ask(self, phase: Phase, kind: PluginCapabilityType, method: str, *arguments: Any) -> Any:
        """Call a method of a capability."""
        return self.call(phase, method, *arguments, face=self.face(phase, kind))

    def must(self, phase: Phase, kind: PluginCapabilityType, method: str, *arguments: Any) -> None:
        """Call a method of a capability that returns a status."""
        checks.as_status(self, method, self.ask(phase, kind, method, *arguments))

    def read(self, phase: Phase, kind: PluginCapabilityType, attribute: str) -> Any:
        """Read an attribute of a capability."""
        return self.get(phase, attribute, face=self.face(phase, kind))

    def known(self, kind: PluginCapabilityType) -> Any:
        """A capability that was asked for already."""
        return self._faces[kind]

    def checked_copy(self, made: Any, method: str) -> V3Instance:
        """See `Instance.checked_copy`."""
        plain = super().checked_copy(made, method)
        return V3Instance(plain.plugin, plain.layer, plain.name)

    def clone(self, phase: Phase) -> V3Instance:
        """See `Instance.clone`."""
        return self.checked_copy(self.call(phase, "clone"), "clone")

    def attached(self, phase: Phase) -> V3Instance:
        """Call `attach_to_context`, which returns a new plugin."""
        made = self.ask(phase, RUNTIME, "attach_to_context", IPluginResourceContext())
        return self.checked_copy(made, "attach_to_context")


class V3Layer(LayerPlugin):
    """See `LayerPlugin`. Made by `add`."""

    generation = "V3"
    instance: V3Instance

    @classmethod
    def add(
        cls,
        user: Instance,
        num_inputs: int,
        input_types: Sequence[DataType],
        num_shape_inputs: int = 0,
    ) -> V3Layer:
        """Copy the user's plugin into a network."""
        plugin = V3Instance(user.plugin, user.layer, user.name)
        for kind in (CORE, BUILD, RUNTIME):
            plugin.face("parse", kind)
        count = checks.as_count(plugin, "num_outputs", plugin.read("parse", BUILD, "num_outputs"))
        _types(plugin, count, input_types, "parse")
        for _ in range(2):
            plugin.read("parse", BUILD, "num_outputs")
        layer = cls(plugin.clone("parse"), count, num_inputs)
        layer.num_shape_inputs = num_shape_inputs
        with Rollback() as rollback:
            rollback.add(layer.instance)
            layer._read_names(plugin)
            rollback.keep()
        return layer

    def _read_names(self, user: V3Instance) -> None:
        self.type = checks.as_text(user, "plugin_name", user.read("parse", CORE, "plugin_name"))
        core = self.instance.face("parse", CORE)
        self.version = checks.as_text(
            self.instance, "plugin_version", getattr(core, "plugin_version", None)
        )
        self.namespace = checks.as_text(
            self.instance, "plugin_namespace", getattr(core, "plugin_namespace", None), empty=True
        )
        self.instance.name = quoted(f"{self.type} version {self.version}", limit=None)

    def output_types(self, input_types: Sequence[DataType]) -> tuple[DataType, ...]:
        self.instance.read("parse", BUILD, "num_outputs")
        return _types(self.instance, self.num_outputs, input_types, "parse")

    def output_shapes(
        self, inputs: Sequence[Shape], shape_inputs: Sequence[ShapeInput] = ()
    ) -> list[DimsExprs]:
        return self._shapes(self.instance, inputs, shape_inputs, "parse")

    def _shapes(
        self,
        instance: V3Instance,
        inputs: Sequence[Shape],
        shape_inputs: Sequence[ShapeInput],
        phase: Phase,
    ) -> list[DimsExprs]:
        method = "get_output_shapes"
        answer = instance.ask(
            phase,
            BUILD,
            method,
            [symbols(dims, i) for i, dims in enumerate(inputs)],
            [values(s.values, i) for i, s in enumerate(shape_inputs)],
            IExprBuilder(),
        )
        found = checks.as_all_exprs(instance, method, answer, self.num_outputs)
        checked_leaves(
            found,
            [len(d) for d in inputs],
            [len(s.values) for s in shape_inputs],
            self.num_outputs,
            lambda text: refuse(instance, f"{method} uses {text}"),
        )
        return found

    def build(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[np.dtype[Any]],
        profiles: Sequence[Ranges],
        shape_inputs: Sequence[ShapeInput] = (),
    ) -> V3Engine:
        with Rollback() as rollback:
            base = rollback.add(self.instance.clone("build"))
            assert isinstance(base, V3Instance)
            dims = [t.dims for t in inputs]
            for _ in range(2):
                shapes = self._shapes(base, dims, shape_inputs, "build")
            work = _Building(self, base, rollback, inputs, outputs, shapes)
            parts = [work.profile(ranges) for ranges in profiles]
            first = parts[0]
            spec = self.spec(
                first.types, outputs, shapes, profiles, [p.workspace for p in parts],
                tactics=[p.tactic for p in parts], aliases=first.aliases, metadata=first.metadata,
            )  # fmt: skip
            base.destroy("build")
            made = V3Engine(spec, [p.engine for p in parts])
            rollback.keep()
        return made


class _Profile:
    """The result of building for one profile."""

    engine: V3Instance
    types: list[DataType]
    tactic: int
    workspace: int
    aliases: tuple[int, ...]
    metadata: str


class _Building:
    """Build one layer in TensorRT's order of calls (spec 4.2), once per optimisation profile.

    Three objects take part; a plugin may rely on each call coming after those named here:

    1. `probe`, a clone of the layer's plugin, negotiates types: `_search`, then
       `format_combination_limit`, `_cache_id` and `_search` again. TensorRT repeats the search once
       it has collected the combinations; the driver repeats it for plugins that count on the calls,
       and keeps the types of the first.
    2. `trial`, attached to a context by `probe`, is configured for the types (`_configure`, which
       must come before all of the following), lists its tactics, and runs in `_fastest`. In between
       `_cache_id` is read again, as TensorRT does when the tactics are known: this answer is the
       key of the timing cache, the first one has no use.
    3. `engine`, attached by `probe` too, is configured, gets the tactic (`set_tactic`), and only
       then reports its workspace, metadata and aliases. It becomes part of the plan.

    `trial` and `probe` are destroyed at the end; after an error `rollback` destroys all three.
    """

    def __init__(
        self,
        layer: V3Layer,
        base: V3Instance,
        rollback: Rollback,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[np.dtype[Any]],
        shapes: Sequence[DimsExprs],
    ) -> None:
        self.layer, self.base, self.rollback = layer, base, rollback
        self.inputs, self.outputs, self.shapes = inputs, outputs, shapes
        self.choices = [candidates(t.dtype) for t in inputs] + [candidates(d) for d in outputs]

    def profile(self, ranges: Ranges) -> _Profile:
        """Build the layer for one profile."""
        found = _Profile()
        probe = self._tracked(self.base.clone("build"))
        found.types = self._negotiated(probe, ranges)
        tensors = described(self.inputs, ranges, self.shapes, found.types)
        trial = self._tracked(probe.attached("build"))
        found.tactic = self._chosen_tactic(probe, trial, tensors, found.types)
        engine = self._tracked(probe.attached("build"))
        self._configure(engine, tensors)
        engine.must("build", RUNTIME, "set_tactic", found.tactic)
        found.workspace = max(self._workspace(engine, tensors) for _ in range(4))
        for attribute in ("plugin_name", "plugin_version"):
            engine.read("build", CORE, attribute)
        text = engine.read("build", BUILD, "metadata_string") or ""
        found.metadata = checks.as_text(engine, "metadata_string", text, empty=True)
        found.aliases = self._aliases(engine)
        trial.destroy("build")
        probe.destroy("build")
        found.engine = engine
        return found

    def _tracked(self, instance: V3Instance) -> V3Instance:
        self.rollback.add(instance)
        return instance

    def _negotiated(self, probe: V3Instance, ranges: Ranges) -> list[DataType]:
        """Find the types of all tensors, with the calls that TensorRT makes around the search."""
        free = described(self.inputs, ranges, self.shapes, [None] * len(self.outputs))
        types = self._search(probe, free)
        limit = probe.read("build", BUILD, "format_combination_limit")
        if checks.as_size(probe, "format_combination_limit", limit) < 1:
            raise refuse(probe, f"format_combination_limit is {limit}", expected="1 or more")
        self._cache_id(probe)
        self._search(probe, free)
        return types

    def _search(self, probe: V3Instance, free: Tensors) -> list[DataType]:
        """Ask `supports_format_combination` until every tensor has a type."""

        def ask(pos: int, descs: Sequence[Any], count: int) -> Any:
            method = "supports_format_combination"
            return probe.ask("build", BUILD, method, pos, list(descs), count)

        return negotiate(probe, ask, *free, self.choices, dynamic=True)

    def _chosen_tactic(
        self, probe: V3Instance, trial: V3Instance, tensors: Tensors, types: Sequence[DataType]
    ) -> int:
        """Configure `trial` and choose its tactic: the fastest if there are several, 0 if none."""
        self._configure(trial, tensors)
        tactics = checks.as_tactics(
            trial, "get_valid_tactics", trial.ask("build", BUILD, "get_valid_tactics")
        )
        cache_id = self._cache_id(probe)
        if len(tactics) > 1:
            return self._fastest(trial, tensors, tactics, cache_id, types)
        return tactics[0] if tactics else 0

    def _configure(self, instance: V3Instance, tensors: Tensors) -> None:
        instance.must("build", BUILD, "configure_plugin", *tensors)

    def _workspace(self, instance: V3Instance, tensors: Tensors) -> int:
        size = instance.ask("build", BUILD, "get_workspace_size", *tensors)
        return checks.as_size(instance, "get_workspace_size", size)

    def _cache_id(self, probe: V3Instance) -> str | None:
        value = probe.read("build", BUILD, "timing_cache_id")
        if value is None:
            return None
        return checks.as_text(probe, "timing_cache_id", value, empty=True)

    def _aliases(self, engine: V3Instance) -> tuple[int, ...]:
        face = engine.face("build", BUILD)
        if not hasattr(face, "get_aliased_input"):
            return ()
        method = "get_aliased_input"
        found = []
        for index in range(len(self.outputs)):
            value = engine.call("build", method, index, face=face)
            if not isinstance(value, int) or not -1 <= value < len(self.inputs):
                raise wrong(engine, method, repr(value), f"-1 to {len(self.inputs) - 1}")
            found.append(value)
        taken = [v for v in found if v >= 0]
        if len(set(taken)) != len(taken):
            raise wrong(engine, method, f"{found}", "a different input for each output")
        return tuple(found) if taken else ()

    def _fastest(
        self,
        trial: V3Instance,
        tensors: Tensors,
        tactics: Sequence[int],
        cache_id: str | None,
        types: Sequence[DataType],
    ) -> int:
        """Run each tactic on zeros of the usual shapes and return the fastest."""
        question = (
            self.layer.type, self.layer.version, cache_id, tuple(types),
            tuple(tuple(d.opt) for part in tensors for d in part), tuple(tactics),
        )  # fmt: skip
        if cache_id is not None and question in _timings:
            return _timings[question]
        ins, outs = ([_at_opt(d) for d in part] for part in tensors)
        arrays = [[np.zeros(tuple(d.dims), d.type.numpy) for d in part] for part in (ins, outs)]
        with _trial_memory(trial, arrays, self._workspace(trial, tensors)) as (given, wait):
            times = {}
            for tactic in tactics:
                trial.must("build", RUNTIME, "set_tactic", tactic)
                trial.must("build", RUNTIME, "on_shape_change", ins, outs)
                best = float("inf")
                for _ in range(TIMING_RUNS):
                    started = time.perf_counter()
                    trial.must("build", RUNTIME, "enqueue", ins, outs, *given)
                    wait()
                    best = min(best, time.perf_counter() - started)
                times[tactic] = best
        chosen = min(times, key=lambda t: times[t])
        if cache_id is not None:
            _timings[question] = chosen
        return chosen


class V3Engine(EnginePlugin):
    """See `EnginePlugin`."""

    def finish(self) -> None:
        """Do nothing: version 3 has no `initialize`. `tell_tactics` is for loaded objects."""

    def tell_tactics(self) -> None:
        """`set_tactic` after loading.

        Raises:
            PluginError: the plugin failed.
        """
        for instance, tactic in zip(self.instances, self.spec.tactics, strict=True):
            assert isinstance(instance, V3Instance)
            instance.must("load", RUNTIME, "set_tactic", tactic)

    def save(self) -> SavedPlugin:
        data = []
        for instance in self.instances:
            assert isinstance(instance, V3Instance)
            for attribute in ("plugin_name", "plugin_version", "plugin_namespace"):
                instance.read("save", CORE, attribute)
            method = "get_fields_to_serialize"
            answer = instance.ask("save", RUNTIME, method)
            data.append(checks.as_fields(instance, method, answer))
        return SavedPlugin(self.spec, tuple(data))

    def context(self) -> V3Context:
        with Rollback() as rollback:
            attached = []
            for instance in self.instances:
                assert isinstance(instance, V3Instance)
                clone = instance.attached("run")
                rollback.add(clone)
                clone.face("run", RUNTIME)
                attached.append(clone)
            made = V3Context(self.spec, attached)
            rollback.keep()
        return made

    def _free(self) -> None:
        for instance in self.instances:
            instance.destroy()


class V3Context(ContextPlugin):
    """See `ContextPlugin`."""

    def _change(self, now: Prepared, *, within: bool) -> None:
        instance = self.instances[now.profile]
        assert isinstance(instance, V3Instance)
        face = instance.known(RUNTIME)
        checks.status_of(instance, "run", "on_shape_change", now.inputs, now.outputs, face=face)

    def _enqueue(
        self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int
    ) -> None:
        instance = self.instances[now.profile]
        assert isinstance(instance, V3Instance)
        checks.status_of(
            instance, "run", "enqueue", now.inputs, now.outputs, inputs, outputs, workspace,
            self.stream, face=instance.known(RUNTIME),
        )  # fmt: skip

    def _free(self) -> None:
        for instance in self.instances:
            instance.destroy()


def _types(
    instance: V3Instance, count: int, input_types: Sequence[DataType], phase: Phase
) -> tuple[DataType, ...]:
    method = "get_output_data_types"
    answer = instance.ask(phase, BUILD, method, list(input_types))
    return checks.as_types(instance, method, answer, count)


@contextmanager
def _trial_memory(
    trial: V3Instance, arrays: Sequence[Sequence[Array]], workspace_bytes: int
) -> Iterator[tuple[tuple[Any, ...], Callable[[], None]]]:
    """Lend memory for a trial: addresses of tensors and workspace, the stream, and its wait."""
    ins, outs = ([address_of(a) for a in part] for part in arrays)
    stage = stage_for([trial])
    if stage is None:
        scratch = np.empty(workspace_bytes, np.uint8)
        yield (ins, outs, address_of(scratch) if scratch.size else 0, 0), lambda: None
        return
    sizes = [a.nbytes for part in reversed(arrays) for a in part]
    with stage.lend(ins, outs, sizes, workspace_bytes) as there:
        yield (*there, stage.stream), stage.wait


def _at_opt(desc: DynamicPluginTensorDesc) -> Any:
    return PluginTensorDesc(desc.opt, desc.desc.type, TensorFormat.LINEAR)
