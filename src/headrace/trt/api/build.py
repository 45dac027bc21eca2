"""From a network and a config to a plan."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from headrace._core.errors import EngineError
from headrace._core.text import error_text, printable
from headrace.engine.builder import BuildOptions, build
from headrace.engine.plan import Plan
from headrace.engine.plan_header import Precision
from headrace.engine.precision.rules import PrecisionRules
from headrace.plugins.driver_v3 import know_timings, timings
from headrace.plugins.types import DataType
from headrace.trt.api.algorithms import select
from headrace.trt.api.calibration import table_of
from headrace.trt.api.profile import IOptimizationProfile, Range
from headrace.trt.api.record import LayerRecord, ShapeRanges, TrtRecord, attach
from headrace.trt.lowering.graph import LoweredNetwork, lower
from headrace.trt.types.enums import MemoryPoolType
from headrace.trt.types.reporting import Severity, report
from headrace.trt.types.tensor import shape_tensors
from headrace.trt.types.values import elem_of

if TYPE_CHECKING:
    from headrace.trt.api.config import IBuilderConfig
    from headrace.trt.api.interfaces import IProgressMonitor
    from headrace.trt.api.network import INetworkDefinition
    from headrace.trt.types.reporting import ILogger

MAX_BATCH = 1024


class Progress:
    """Calls a monitor, if there is one; one that fails is reported and not called again."""

    def __init__(self, monitor: IProgressMonitor | None) -> None:
        self._monitor = monitor
        self._phases: list[list[Any]] = []

    @contextmanager
    def phase(self, name: str, parent: str | None, steps: int) -> Iterator[None]:
        """A phase, over when the block is left."""
        self._call("phase_start", name, parent, steps)
        self._phases.append([name, 0])
        try:
            yield
        finally:
            self._phases.pop()
            self._call("phase_finish", name)

    def step(self) -> None:
        """A step of the innermost phase is done.

        Raises:
            EngineError: the monitor wants to stop.
        """
        name, number = self._phases[-1]
        self._phases[-1][1] += 1
        if self._call("step_complete", name, number) is False:
            raise EngineError(f"the progress monitor stopped the build in {name!r}")

    def _call(self, method: str, *arguments: object) -> object:
        if self._monitor is None:
            return None
        try:
            return getattr(self._monitor, method)(*arguments)
        except Exception as error:  # the user's code
            text = error_text(error, kind=False)
            print(printable(f"[ERROR] Exception caught in {method}(): {text}"), file=sys.stderr)
            self._monitor = None
            return None


def build_plan(
    network: INetworkDefinition,
    config: IBuilderConfig,
    logger: ILogger | None,
    *,
    max_batch: int = 1,
) -> Plan:
    """Lower, calibrate, build.

    Raises:
        EngineError, ModelError: why there can be no engine.
    """
    progress = Progress(config._plain.get("progress_monitor"))
    caches = "DISABLE_TIMING_CACHE" not in config._flags
    if caches and (given := config.get_timing_cache()) is not None:
        know_timings(given._tactics)
    with progress.phase("Building Engine", None, 3):
        if config._device_problem:
            raise EngineError(config._device_problem)
        watched = network._watched()
        lowered = lower(network, watched)
        profiles = _profiles(network, config, max_batch, logger)
        select(network, config, profiles)
        progress.step()
        precision, rules = _precision(network, config, lowered, profiles, logger, progress)
        progress.step()
        batched, most = _batch(network, profiles, max_batch)
        shapes = [_full(network, p, max_batch) for p in profiles]
        plan = build(
            lowered.network,
            BuildOptions(
                batched=batched, max_batch=most, precision=precision, rules=rules,
                profiles=shapes,
            ),
        )  # fmt: skip
        _check_workspaces(plan, config)
        progress.step()
    for notice in plan.decisions:
        severity = Severity.WARNING if notice.level == "warning" else Severity.INFO
        report(logger, severity, f"{notice:brief}")
    if caches:
        cache = config.get_timing_cache() or config.create_timing_cache(b"")
        cache._tactics |= timings()
        config.set_timing_cache(cache, False)
    record = _record(network, config, lowered, profiles, max_batch)
    known = {*lowered.hidden, *(t._name for t in (*network._inputs, *network._outputs))}
    debugged = tuple(t._name for t in watched if t._name in known)
    return attach(plan, structs.replace(record, debugged=debugged, hidden=lowered.hidden))


def _check_workspaces(plan: Plan, config: IBuilderConfig) -> None:
    """Refuse plugins that want more scratch memory than the workspace pool has.

    Raises:
        EngineError: one does.
    """
    limit = config.get_memory_pool_limit(MemoryPoolType["WORKSPACE"])
    for record in plan.header.plugins:
        if (most := max(record.workspaces)) > limit:
            raise EngineError(
                f"plugin {record} needs a workspace of {most} bytes",
                expected=f"at most {limit}: the limit of the workspace pool",
                fix="raise it (set_memory_pool_limit, setMemoryPoolLimit), or let "
                "get_workspace_size return less",
            )


def _profiles(
    network: INetworkDefinition, config: IBuilderConfig, max_batch: int, logger: ILogger | None
) -> list[ShapeRanges]:
    """The profiles, complete and checked against the network; at least one."""
    profiles = list(config._profiles)
    free = [t for t in network._inputs if t._info is not None and -1 in tuple(t.shape)]
    if free and not profiles and not network._implicit:
        names = ", ".join(f"{t._name} {tuple(t.shape)}" for t in free)
        raise EngineError(
            f"axes of the inputs are free ({names}) and there is no optimisation profile",
            fix="make one (create_optimization_profile, createOptimizationProfile), set the shapes "
            "of these inputs (set_shape, setDimensions), and add it to the config "
            "(add_optimization_profile, addOptimizationProfile)",
        )
    decided = set() if network._implicit else shape_tensors(network._needed())
    deciding = [t for t in network._inputs if t._uid in decided]
    ranges = []
    for number, profile in enumerate(profiles or [IOptimizationProfile()]):
        shapes = {}
        for tensor in network._inputs:
            axes = tuple(tensor.shape)
            limits = profile._shapes.get(tensor._name)
            if limits is None:
                if -1 in axes and not network._implicit:
                    raise EngineError(
                        f"profile {number} has no shapes of input {tensor._name!r} {axes}"
                    )
                limits = Range(axes, axes, axes)
            _check(limits, axes, tensor._name, number)
            shapes[tensor._name] = (limits.min, limits.opt, limits.max)
        values = {n: (r.min, r.opt, r.max) for n, r in profile._values.items()}
        for name in sorted(values.keys() - {t._name for t in deciding}):
            if name not in shapes:
                raise EngineError(
                    f"profile {number} has values of {name!r}, which is no input",
                    expected=f"values of {', '.join(t._name for t in deciding) or 'none'}",
                    fix="leave its set_shape_input (in C++ setShapeValues) out",
                )
            del values[name]  # as TensorRT does
            text = f"profile {number} has values of {name!r}, which decides no shapes: not used"
            report(logger, Severity.WARNING, text)
        for tensor in deciding:
            count = int(np.prod(tensor.shape))
            have = len(values[tensor._name][0]) if tensor._name in values else 0
            if tensor._name not in values or (count >= 0 and have != count):
                has = f"has {have} values" if tensor._name in values else "has no values"
                raise EngineError(
                    f"profile {number} {has} of input {tensor._name!r}, which decides shapes",
                    expected=f"{max(count, 1)} of them: min, opt and max",
                    fix="set them in the profile: set_shape_input, in C++ setShapeValues",
                )
        ranges.append(ShapeRanges(shapes=shapes, values=values))
    return ranges


def _check(limits: Range, axes: tuple[int, ...], name: str, number: int) -> None:
    for which, shape in (("min", limits.min), ("opt", limits.opt), ("max", limits.max)):
        fits = len(shape) == len(axes) and all(
            want in (-1, have) for want, have in zip(axes, shape, strict=True)
        )
        if not fits:
            raise EngineError(
                f"profile {number} gives input {name!r} the {which} shape {shape}",
                expected=f"{axes} with numbers for -1",
            )


def _full(network: INetworkDefinition, profile: ShapeRanges, most: int) -> dict[str, Any]:
    """Shapes of a profile with the implicit batch in front."""
    if not network._implicit:
        return dict(profile.shapes)
    return {n: ((1, *r[0]), (most, *r[1]), (most, *r[2])) for n, r in profile.shapes.items()}


def _batch(
    network: INetworkDefinition, profiles: list[ShapeRanges], max_batch: int
) -> tuple[bool, int]:
    """Whether axis 0 is a batch everywhere, as nvinfer wants it, and the largest one."""
    shapes = [t._info.shape for t in (*network._inputs, *network._outputs) if t._info is not None]
    firsts = {s[0] if s else None for s in shapes if s is not None}
    if len(shapes) < 2 or None in shapes or len(firsts) != 1 or None in firsts:
        return False, 1
    image, first = shapes[0], firsts.pop()
    free = any(-1 in s[1:] for s in shapes[: len(network._inputs)] if s is not None)
    if free or image is None or len(image) != 4 or first is None:
        return False, 1
    most = first
    if first < 0 and not network._implicit:
        most = max(p.shapes[network._inputs[0]._name][2][0] for p in profiles)
    if network._implicit:
        most = max_batch
    return (True, most) if 1 <= most <= MAX_BATCH else (False, 1)


def _precision(
    network: INetworkDefinition,
    config: IBuilderConfig,
    lowered: LoweredNetwork,
    profiles: list[ShapeRanges],
    logger: ILogger | None,
    progress: Progress,
) -> tuple[Precision, PrecisionRules]:
    """The precisions that may be computed in, and their scales."""
    asked = config._precisions()
    floats = [name for name in asked if name != "INT8"]
    precision: Precision = "fp16" if floats else "fp32"
    if "INT8" not in asked:
        return precision, PrecisionRules()
    table = table_of(network, config, lowered, profiles, logger, progress)
    if table is None:
        report(
            logger, Severity.WARNING,
            "INT8 is asked for, but there is neither a calibrator nor a dynamic range: no layer "
            "computes in INT8",
        )  # fmt: skip
        return precision, PrecisionRules()
    pins = {
        node: "fp32"
        for layer in network._layers
        if layer._precision is not None and layer._precision.name != "INT8"
        for node in lowered.layers.get(layer._name, ())
    }
    return ("best" if floats else "int8"), PrecisionRules(table=table, pins=pins)


def _record(
    network: INetworkDefinition,
    config: IBuilderConfig,
    lowered: LoweredNetwork,
    profiles: list[ShapeRanges],
    max_batch: int,
) -> TrtRecord:
    layers = [
        LayerRecord(
            name=layer._name,
            kind=layer._kind,
            precision=layer.get_output(0).dtype.name if layer._outputs else "FLOAT",  # type: ignore[union-attr]
            inputs=tuple(t._name for t in layer._inputs if t is not None),
            outputs=tuple(t._name for t in layer._outputs),
            nodes=tuple(lowered.layers[layer._name]),
            weights={
                role: name for (of, role), name in lowered.weights.items() if of == layer._name
            },
            metadata=layer._metadata,
        )
        for layer in network._needed()
    ]
    types = {}
    for tensor in (*network._inputs, *network._outputs):
        shown = tensor.dtype
        own = tensor._info is not None and elem_of(shown) == tensor._info.elem
        if not own or shown == DataType.BF16:
            types[tensor._name] = shown.name
    by_uid = {layer._uid: layer._name for layer in network._layers}
    names = {
        name: lowered.weights[by_uid[uid], role]
        for (uid, role), name in network._weight_names.items()
        if uid in by_uid and (by_uid[uid], role) in lowered.weights
    }
    there = lowered.network.model.graph.initializers
    names |= {name: name for name in network._initializers if name in there}
    if "REFIT_INDIVIDUAL" in config._flags:
        names = {shown: name for shown, name in names.items() if shown in network._refittable}
    plain = {k: str(v) for k, v in config._plain.items() if isinstance(v, int | float | str)}
    return TrtRecord(
        name=network.name,
        flags=tuple(sorted(config._flags)),
        profiles=tuple(profiles),
        layers=tuple(layers),
        types=types,
        shapes={
            t._name: t._info.shape
            for t in network._outputs
            if t._info is not None and t._info.shape is not None
        },
        names=names,
        implicit=network._implicit,
        max_batch=max_batch,
        verbosity=config.profiling_verbosity.name,
        options=plain,
    )
