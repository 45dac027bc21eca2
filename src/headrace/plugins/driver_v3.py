"""The life of an `IPluginV3`: calls, order, clones and counts.

Source: tensorrt-plugins spec 4.2. `get_capability_interface` is asked before each group of calls
and must give the same object every time; while running it is asked once per context.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from headrace._core._native import LentMemory
from headrace._core.types import Array, DType
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins import checks
from headrace.plugins.base import IPluginResourceContext, IPluginV3
from headrace.plugins.calls import Instance, Rollback, wrong
from headrace.plugins.context import ContextPlugin
from headrace.plugins.device import stage_for
from headrace.plugins.driver_dynamic import Tensors, described, negotiated
from headrace.plugins.expressions import DimsExprs, IExprBuilder, checked_leaves, symbols, values
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.forms import TensorForm
from headrace.plugins.layer import (
    EnginePlugin,
    EngineSpec,
    LayerPlugin,
    Life,
    Ranges,
    Shape,
    ShapeInput,
    refuse,
)
from headrace.plugins.memory import address_of
from headrace.plugins.prepared import Prepared
from headrace.plugins.spoken import spoken
from headrace.plugins.trace import Phase
from headrace.plugins.types import (
    DataType,
    DynamicPluginTensorDesc,
    PluginCapabilityType,
    PluginTensorDesc,
)

if TYPE_CHECKING:
    from typing import Any


CORE, BUILD, RUNTIME = PluginCapabilityType
TIMING_RUNS = 3
_timings: dict[str, int] = {}
"""Timing cache: type, version, timing_cache_id, forms, shapes, tactics as text -> the fastest."""


def timings() -> dict[str, int]:
    """The fastest tactics that builds of this process found, for a cache that is kept."""
    return dict(_timings)


def know_timings(tactics: Mapping[str, int]) -> None:
    """Take the result of `timings`, of another process perhaps; own measurements stay."""
    for question, tactic in tactics.items():
        _timings.setdefault(question, tactic)


def _must(
    instance: Instance, phase: Phase, kind: PluginCapabilityType, method: str, *arguments: object
) -> None:
    """Call a method of a capability that returns a status."""
    checks.as_status(instance, method, instance.ask(phase, kind, method, *arguments))


def _attached(instance: Instance, phase: Phase) -> Instance:
    """Call `attach_to_context`, which returns a new plugin."""
    plugin = instance.ask(phase, RUNTIME, "attach_to_context", IPluginResourceContext())
    return instance.checked_copy(plugin, "attach_to_context")


class V3Layer(LayerPlugin):
    """See `LayerPlugin`. Made by `add`."""

    generation = "V3"

    @classmethod
    def add(
        cls,
        user: Instance,
        num_inputs: int,
        input_types: Sequence[DataType],
        num_shape_inputs: int = 0,
    ) -> V3Layer:
        """Copy the user's plugin into a network."""
        for kind in (CORE, BUILD, RUNTIME):
            user.face("parse", kind)
        count = checks.as_count(user, "num_outputs", user.read("parse", BUILD, "num_outputs"))
        _types(user, count, input_types, "parse")
        for _ in range(2):
            user.read("parse", BUILD, "num_outputs")
        layer = cls(user.clone("parse"), count, num_inputs)
        layer.num_shape_inputs = num_shape_inputs
        with Rollback() as rollback:
            rollback.add(layer.instance)
            name = user.read("parse", CORE, "plugin_name")
            layer.take_names(user, "plugin_name", name, layer.instance.face("parse", CORE))
            rollback.keep()
        return layer

    def output_types(self, input_types: Sequence[DataType]) -> tuple[DataType, ...]:
        self.instance.read("parse", BUILD, "num_outputs")
        return _types(self.instance, self.num_outputs, input_types, "parse")

    def output_shapes(
        self, inputs: Sequence[Shape], shape_inputs: Sequence[ShapeInput] = ()
    ) -> list[DimsExprs]:
        return self._shapes(self.instance, inputs, shape_inputs, "parse")

    def _shapes(
        self,
        instance: Instance,
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
        shapes = checks.as_all_exprs(instance, method, answer, self.num_outputs)
        checked_leaves(
            shapes,
            [len(d) for d in inputs],
            [len(s.values) for s in shape_inputs],
            self.num_outputs,
            lambda text: refuse(instance, f"{method} uses {text}"),
        )
        return shapes

    def build(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[DType],
        profiles: Sequence[Ranges],
        shape_inputs: Sequence[ShapeInput] = (),
        scales: Sequence[float] = (),
    ) -> EnginePlugin:
        with Rollback() as rollback:
            base = rollback.add(self.instance.clone("build"))
            dims = [t.dims for t in inputs]
            told, shapes = (self._shapes(base, dims, shape_inputs, "build") for _ in range(2))
            if repr(told) != repr(shapes):
                method = "get_output_shapes"
                problem = (
                    f"{spoken(base.plugin, method)} gave {told}, and for the same inputs {shapes}"
                )
                raise refuse(base, problem, method=method, clause="output-shapes")
            work = _Building(self, base, rollback, inputs, outputs, shapes, scales)
            parts = [work.profile(ranges) for ranges in profiles]
            first = parts[0]
            spec = self.spec(
                first.forms, outputs, shapes, profiles, [p.workspace for p in parts],
                tactics=[p.tactic for p in parts], aliases=first.aliases, metadata=first.metadata,
            )  # fmt: skip
            base.destroy("build")
            plugin = EnginePlugin(spec, [p.engine for p in parts], THIRD)
            rollback.keep()
        return plugin


class _Profile:
    """The result of building for one profile."""

    engine: Instance
    forms: list[TensorForm]
    tactic: int
    workspace: int
    aliases: tuple[int, ...]
    metadata: str


class _Building:
    """Build one layer in TensorRT's order of calls (spec 4.2), once per optimisation profile.

    Three objects take part; a plugin may rely on each call coming after those named here:

    1. `probe`, a clone of the layer's plugin, negotiates forms: `_search`, then
       `format_combination_limit`, `_cache_id` and `_search` again. TensorRT repeats the search once
       it has collected the combinations; the driver repeats it for plugins that count on the calls,
       and keeps the forms of the first.
    2. `trial`, attached to a context by `probe`, is configured for the forms (`_configure`, which
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
        base: Instance,
        rollback: Rollback,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[DType],
        shapes: Sequence[DimsExprs],
        scales: Sequence[float],
    ) -> None:
        self.layer, self.base, self.rollback = layer, base, rollback
        self.inputs, self.outputs, self.shapes = inputs, outputs, shapes
        self.scales = scales
        self.forms: list[TensorForm] = []

    def profile(self, ranges: Ranges) -> _Profile:
        """Build the layer for one profile."""
        profile = _Profile()
        probe = self.rollback.add(self.base.clone("build"))
        profile.forms = self.forms = self._negotiated(probe, ranges)
        tensors = described(self.inputs, ranges, self.shapes, profile.forms)
        trial = self.rollback.add(_attached(probe, "build"))
        profile.tactic = self._chosen_tactic(probe, trial, tensors, profile.forms)
        engine = self.rollback.add(_attached(probe, "build"))
        self._configure(engine, tensors)
        _must(engine, "build", RUNTIME, "set_tactic", profile.tactic)
        profile.workspace = max(self._workspace(engine, tensors) for _ in range(4))
        for attribute in ("plugin_name", "plugin_version"):
            engine.read("build", CORE, attribute)
        text = engine.read("build", BUILD, "metadata_string") or ""
        profile.metadata = checks.as_text(engine, "metadata_string", text, empty=True)
        profile.aliases = self._aliases(engine)
        trial.destroy("build")
        probe.destroy("build")
        profile.engine = engine
        return profile

    def _negotiated(self, probe: Instance, ranges: Ranges) -> list[TensorForm]:
        """Find the forms of all tensors, with the calls that TensorRT makes around the search.

        All profiles have the forms of the first.
        """
        free = described(self.inputs, ranges, self.shapes, ())
        forms = self._search(probe, free)
        limit = probe.read("build", BUILD, "format_combination_limit")
        if not isinstance(limit, int) or limit < 0:  # 0: TensorRT takes the first combination
            name = "format_combination_limit"
            raise refuse(
                probe, f"{spoken(probe.plugin, name)} is {limit}", expected="0 or more", method=name
            )
        self._cache_id(probe)
        self._search(probe, free)
        return self.forms or forms

    def _search(self, probe: Instance, free: Tensors) -> list[TensorForm]:
        """Ask `supports_format_combination` until every tensor has a form."""
        return negotiated(probe, self.inputs, self.outputs, free, self.scales, dynamic=True)

    def _chosen_tactic(
        self, probe: Instance, trial: Instance, tensors: Tensors, forms: Sequence[TensorForm]
    ) -> int:
        """Configure `trial` and choose its tactic: the fastest if there are several, 0 if none."""
        self._configure(trial, tensors)
        tactics = checks.as_tactics(
            trial, "get_valid_tactics", trial.ask("build", BUILD, "get_valid_tactics")
        )
        cache_id = self._cache_id(probe)
        if len(tactics) > 1:
            return self._fastest(trial, tensors, tactics, cache_id, forms)
        return tactics[0] if tactics else 0

    def _configure(self, instance: Instance, tensors: Tensors) -> None:
        _must(instance, "build", BUILD, "configure_plugin", *tensors)

    def _workspace(self, instance: Instance, tensors: Tensors) -> int:
        size = instance.ask("build", BUILD, "get_workspace_size", *tensors)
        return checks.as_size(instance, "get_workspace_size", size)

    def _cache_id(self, probe: Instance) -> str | None:
        value = probe.read("build", BUILD, "timing_cache_id")
        if value is None:
            return None
        return checks.as_text(probe, "timing_cache_id", value, empty=True)

    def _aliases(self, engine: Instance) -> tuple[int, ...]:
        face = engine.face("build", BUILD)
        if not hasattr(face, "get_aliased_input"):
            return ()
        method = "get_aliased_input"
        aliases = []
        for index in range(len(self.outputs)):
            value = engine.call("build", method, index, face=face)
            if not isinstance(value, int) or not -1 <= value < len(self.inputs):
                raise wrong(engine, method, repr(value), f"-1 to {len(self.inputs) - 1}")
            aliases.append(value)
        taken = [v for v in aliases if v >= 0]
        if len(set(taken)) != len(taken):
            raise wrong(engine, method, f"{aliases}", "a different input for each output")
        return tuple(aliases) if taken else ()

    def _fastest(
        self,
        trial: Instance,
        tensors: Tensors,
        tactics: Sequence[int],
        cache_id: str | None,
        forms: Sequence[TensorForm],
    ) -> int:
        """Run each tactic on zeros of the usual shapes and return the fastest."""
        question = json.dumps([
            self.layer.type, self.layer.version, cache_id, [str(form) for form in forms],
            [[int(n) for n in d.opt] for part in tensors for d in part], list(tactics),
        ])  # fmt: skip
        if cache_id is not None and _timings.get(question) in tactics:
            return _timings[question]
        ins, outs = ([_at_opt(d) for d in part] for part in tensors)
        memory = iter(forms)
        arrays = [
            [np.zeros((form := next(memory)).packed_shape(d.dims), form.storage) for d in part]
            for part in (ins, outs)
        ]
        with _trial_memory(trial, arrays, self._workspace(trial, tensors)) as (arguments, wait):
            times = {}
            for tactic in tactics:
                _must(trial, "build", RUNTIME, "set_tactic", tactic)
                _must(trial, "build", RUNTIME, "on_shape_change", ins, outs)
                best = float("inf")
                for _ in range(TIMING_RUNS):
                    started = time.perf_counter()
                    _must(trial, "build", RUNTIME, "enqueue", ins, outs, *arguments)
                    wait()
                    best = min(best, time.perf_counter() - started)
                times[tactic] = best
        chosen = min(times, key=lambda t: times[t])
        if cache_id is not None:
            _timings[question] = chosen
        return chosen


class V3Context(ContextPlugin):
    """See `ContextPlugin`."""

    def _change(self, now: Prepared, *, within: bool) -> None:
        instance = self.instances[now.profile]
        face = instance.known(RUNTIME)
        checks.status_of(instance, "run", "on_shape_change", now.inputs, now.outputs, face=face)

    def _enqueue(
        self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int
    ) -> None:
        instance = self.instances[now.profile]
        checks.status_of(
            instance, "run", "enqueue", now.inputs, now.outputs, inputs, outputs, workspace,
            self.stream, face=instance.known(RUNTIME),
        )  # fmt: skip


def _types(
    instance: Instance, count: int, input_types: Sequence[DataType], phase: Phase
) -> tuple[DataType, ...]:
    method = "get_output_data_types"
    answer = instance.ask(phase, BUILD, method, list(input_types))
    return checks.as_types(instance, method, answer, count)


@contextmanager
def _trial_memory(
    trial: Instance, arrays: Sequence[Sequence[Array]], workspace_bytes: int
) -> Iterator[tuple[tuple[object, ...], Callable[[], None]]]:
    """Lend memory for a trial: addresses of tensors and workspace, the stream, and its wait."""
    ins, outs = ([address_of(a) for a in part] for part in arrays)
    stage = stage_for([trial])
    if stage is None:
        scratch = np.empty(workspace_bytes, np.uint8)
        workspace = address_of(scratch) if scratch.size else 0
        blocks = [
            (address_of(a), address_of(a) + a.nbytes, part is arrays[1], f"{kind} {number}")
            for kind, part in zip(("input", "output"), arrays, strict=True)
            for number, a in enumerate(part)
        ]
        blocks.append((workspace, workspace + scratch.size, True, "the workspace"))
        with LentMemory(blocks, f"enqueue of {trial.where}", trial.library):
            yield (ins, outs, workspace, 0), lambda: None
        return
    sizes = [a.nbytes for part in reversed(arrays) for a in part]
    with stage.lend(ins, outs, sizes, workspace_bytes) as there:
        yield (*there, stage.stream), stage.wait


def _at_opt(desc: DynamicPluginTensorDesc) -> Any:
    known = desc.desc
    return PluginTensorDesc(desc.opt, known.type, known.format, known.scale)


def _in_context(instances: Sequence[Instance], rollback: Rollback) -> list[Instance]:
    attached = []
    for instance in instances:
        attached.append(rollback.add(_attached(instance, "run")))
        attached[-1].face("run", RUNTIME)
    return attached


def _fields(instance: Instance) -> PluginFieldCollection:
    for attribute in ("plugin_name", "plugin_version", "plugin_namespace"):
        instance.read("save", CORE, attribute)
    method = "get_fields_to_serialize"
    return checks.as_fields(instance, method, instance.ask("save", RUNTIME, method))


def set_loaded_tactics(spec: EngineSpec, instances: Sequence[Instance]) -> None:
    """Set the tactics of a plan in objects that were loaded from it.

    Raises:
        PluginError: the plugin failed.
    """
    for instance, tactic in zip(instances, spec.tactics, strict=True):
        _must(instance, "load", RUNTIME, "set_tactic", tactic)


THIRD = Life(IPluginV3, V3Context, _in_context, _fields, "create_plugin", False)
