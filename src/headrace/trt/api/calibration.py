"""Scales for INT8: from a calibrator's table, its batches, or dynamic ranges.

Applications subclass a calibrator, which gives batches and keeps the table.
Source: tensorrt-api spec 3.6.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from headrace._core.errors import EngineError, HeadraceError
from headrace._core.text import error_text, printable
from headrace._core.types import Array
from headrace.engine.builder import BuildOptions, build
from headrace.engine.plugin_graph.plugin_layers import build_plugins
from headrace.engine.precision.cache import CalibrationTable, table_header
from headrace.engine.precision.explicit import activation_names
from headrace.engine.precision.histogram import Histogram, Method, clip_at
from headrace.engine.precision.prepare import Proto, prepare
from headrace.network.network import Network
from headrace.plugins.nodes import has_plugins
from headrace.trt.api.calibration_batches import batch_size_of, read_batch
from headrace.trt.release import current
from headrace.trt.types.enums import CalibrationAlgoType
from headrace.trt.types.reporting import Severity, report
from headrace.trt.types.strict import Subclassed

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.api.build import Progress
    from headrace.trt.api.config import IBuilderConfig
    from headrace.trt.api.network import INetworkDefinition
    from headrace.trt.api.record import ShapeRanges
    from headrace.trt.lowering.graph import LoweredNetwork
    from headrace.trt.types.reporting import ILogger
    from headrace.trt.types.tensor import ITensor

_ALGORITHMS: dict[str, tuple[str, Method]] = {
    "LEGACY_CALIBRATION": ("LegacyCalibration", "percentile"),
    "ENTROPY_CALIBRATION": ("EntropyCalibration", "entropy"),
    "ENTROPY_CALIBRATION_2": ("EntropyCalibration2", "entropy"),
    "MINMAX_CALIBRATION": ("MinMaxCalibration", "minmax"),
}
MAX_BATCHES = 10_000


class IInt8Calibrator(Subclassed):
    """Base of all; subclasses call its `__init__`."""

    algorithm: NumberedEnum = CalibrationAlgoType["ENTROPY_CALIBRATION_2"]

    def get_batch_size(self) -> int:
        """Items of a batch."""
        raise NotImplementedError("get_batch_size")

    def get_batch(self, names: list[str]) -> list[int] | None:
        """Addresses of the inputs of a batch, in the order of `names`; None at the end."""
        raise NotImplementedError("get_batch")

    def read_calibration_cache(self) -> bytes | None:
        """The table of an earlier build, or None."""
        return None

    def write_calibration_cache(self, cache: memoryview) -> None:
        """Keep the table."""

    def get_algorithm(self) -> NumberedEnum:
        """How scales are found."""
        return self.algorithm


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """Clips where least information is lost."""


class IInt8EntropyCalibrator(IInt8Calibrator):
    """The older entropy calibrator; here the same."""

    algorithm = CalibrationAlgoType["ENTROPY_CALIBRATION"]


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """Clips nothing."""

    algorithm = CalibrationAlgoType["MINMAX_CALIBRATION"]


class IInt8LegacyCalibrator(IInt8Calibrator):
    """Clips beyond a quantile."""

    algorithm = CalibrationAlgoType["LEGACY_CALIBRATION"]

    def get_quantile(self) -> float:
        """Share of the values that are kept, in 0 … 1."""
        return 0.9999

    def get_regression_cutoff(self) -> float:
        """Not used."""
        return 1.0

    def read_histogram_cache(self, length: int) -> bytes | None:
        """Not asked."""
        return None

    def write_histogram_cache(self, ptr: int, length: int) -> None:
        """Not called."""


def table_of(
    network: INetworkDefinition,
    config: IBuilderConfig,
    lowered: LoweredNetwork,
    profiles: list[ShapeRanges],
    logger: ILogger | None,
    progress: Progress,
) -> CalibrationTable | None:
    """The scales of activations; None if there is no source of them.

    Raises:
        EngineError: the calibrator failed, or gave batches that cannot be used.
    """
    ranges = {
        tensor._name: max(abs(tensor._range[0]), abs(tensor._range[1])) / 127
        for tensor in _all_tensors(network)
        if tensor._range is not None
    }
    calibrator = config._plain.get("int8_calibrator") if _has_calibrators() else None
    if calibrator is None:
        return CalibrationTable.of(ranges) if ranges else None
    algorithm, method = _ALGORITHMS[_call(calibrator, "get_algorithm").name]
    header = table_header(".".join(current().version.split(".")[:3]), algorithm)
    cached = _call(calibrator, "read_calibration_cache")
    table = _table(bytes(cached), algorithm, logger) if cached else None
    if table is None:
        with progress.phase("Calibrating", "Building Engine", 1):
            scales = _from_batches(network, lowered, profiles, config, calibrator, method, logger)
            progress.step()
        if scales:
            table = CalibrationTable.of(scales, header)
            _call(calibrator, "write_calibration_cache", memoryview(table.to_bytes()))
    if table is None:
        return CalibrationTable.of(ranges) if ranges else None
    return CalibrationTable.of({**table.scales, **ranges}, header) if ranges else table


def _has_calibrators() -> bool:
    number = current().number
    return number is None or number < (11, 0)


def _table(data: bytes, algorithm: str, logger: ILogger | None) -> CalibrationTable | None:
    """The table, if it is one for this algorithm."""
    try:
        table = CalibrationTable.from_bytes(data)
    except EngineError as error:
        report(logger, Severity.WARNING, f"the calibration table is not used: {error}")
        return None
    if table.algorithm != algorithm:
        report(
            logger, Severity.WARNING,
            "Calibration table does not match calibrator algorithm type: it is of "
            f"{table.algorithm}, not {algorithm}; calibrating anew",
        )  # fmt: skip
        return None
    return table


def _from_batches(
    network: INetworkDefinition,
    lowered: LoweredNetwork,
    profiles: list[ShapeRanges],
    config: IBuilderConfig,
    calibrator: IInt8Calibrator,
    method: Method,
    logger: ILogger | None,
) -> dict[str, float]:
    """Show the calibrator's batches to the network and look at every activation."""
    where = f"calibrator {type(calibrator).__name__}"
    size = batch_size_of(_call(calibrator, "get_batch_size"), where)
    names = [t._name for t in network._inputs]
    shapes = _shapes(network, config, profiles, size)
    fixed = [{n: (s, s, s) for n, s in shapes.items()}]
    runner = _Activations(lowered, [*fixed, *(dict(p.shapes) for p in profiles)])
    count, alike = 0, set(names)
    try:
        while count < MAX_BATCHES:
            returned = _call(calibrator, "get_batch", names)
            feeds = read_batch(returned, network._inputs, shapes, where)
            if feeds is None:
                break
            alike &= {n for n, a in feeds.items() if a.size and a.min() == a.max()}
            runner.add(feeds)
            count += 1
    finally:
        runner.close()
    if not count:
        raise EngineError(
            "the calibrator gave no batch, and there is no table of an earlier build",
            expected="addresses of the inputs of at least one batch, from get_batch",
        )
    for name in sorted(alike):
        text = f"all values of input {name} are alike in each batch: were the images copied to the "
        report(logger, Severity.WARNING, f"{text}addresses that get_batch returns?")
    report(logger, Severity.INFO, f"calibrated with {count} batches of {size}")
    percentile = 99.99
    if method == "percentile":
        percentile = min(100.0, max(0.01, 100 * float(_call(calibrator, "get_quantile"))))
    return {name: clip_at(h, method, percentile) / 127 for name, h in runner.histograms.items()}


def _shapes(
    network: INetworkDefinition, config: IBuilderConfig, profiles: list[ShapeRanges], size: int
) -> dict[str, tuple[int, ...]]:
    """Of one batch: the calibration profile's best shapes, else the first profile's."""
    chosen = config._calibration_profile
    shapes = {}
    for tensor in network._inputs:
        own = None if chosen is None else chosen._shapes.get(tensor._name)
        axes = own.opt if own is not None else profiles[0].shapes[tensor._name][1]
        if network._implicit:
            axes = (size, *axes)
        elif own is None and tuple(tensor.shape)[:1] == (-1,) and size > 0:
            axes = (size, *axes[1:])
        shapes[tensor._name] = tuple(axes)
    return shapes


def _described(network: Network, proto: Proto, profiles: list[dict[str, Any]]) -> Proto:
    """Add the types of plugin outputs, which no inference knows, to the graph."""
    if not has_plugins(network):
        return proto
    layers = build_plugins(
        network, proto.SerializeToString(), list(network.inputs), max_batch=1, batched=False,
        profiles=profiles, where="network",
    )  # fmt: skip
    if layers is None:
        return proto
    layers.close()
    described: Proto = onnx.ModelProto.FromString(layers.model)
    return described


class _Activations:
    """A graph that puts out its float activations, too."""

    def __init__(self, lowered: LoweredNetwork, profiles: list[dict[str, Any]]) -> None:
        from onnx import TensorProto, helper

        from headrace.network.ir import ir

        proto = prepare(lowered.network.to_proto())
        names = activation_names(_described(lowered.network, proto, profiles))
        computed = {o for node in proto.graph.node for o in node.output}
        names = [n for n in names if n in computed or n in {v.name for v in proto.graph.input}]
        there = {value.name for value in (*proto.graph.input, *proto.graph.output)}
        for name in names:
            if name not in there:
                value = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                proto.graph.output.append(value)
        network = Network(ir.from_proto(proto))
        network.plugins = dict(lowered.network.plugins)
        network.implicit_batch = lowered.network.implicit_batch
        plan = build(network, BuildOptions(batched=False, profiles=profiles))
        self._session = plan.open_session()
        self.histograms = {name: Histogram() for name in names}

    def add(self, feeds: dict[str, Array]) -> None:
        """See one batch."""
        types = {spec.name: spec.dtype for spec in self._session.inputs}
        inputs = {name: np.asarray(a, types[name]) for name, a in feeds.items()}
        activations = self._session.run(inputs) | inputs
        for name, histogram in self.histograms.items():
            histogram.add(activations[name])

    def close(self) -> None:
        """Release the runtime's memory."""
        self._session.close()


def _all_tensors(network: INetworkDefinition) -> list[ITensor]:
    return [*network._inputs, *(t for layer in network._layers for t in layer._outputs)]


def _call(calibrator: IInt8Calibrator, method: str, *arguments: object) -> Any:
    """Call the user's code; an exception ends the build."""
    try:
        return getattr(calibrator, method)(*arguments)
    except HeadraceError:
        raise
    except Exception as error:
        text = error_text(error)
        print(printable(f"[ERROR] Exception caught in {method}(): {text}"), file=sys.stderr)
        raise EngineError(
            f"{method} raised {text}", where=f"calibrator {type(calibrator).__name__}"
        ) from error
