"""OpenVINO on the CPU. Extra: `openvino`."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.files import os_reason
from headrace._core.lazy import as_guest
from headrace._core.text import printable
from headrace._core.types import Array
from headrace.engine.backends import RunnerOptions
from headrace.engine.machine import cpu_flags, usable_cores
from headrace.network import wire
from headrace.network.external_data import WEIGHTS_FILE
from headrace.network.network import OPENVINO_DOMAIN
from headrace.network.tensor_spec import TensorSpec

_EVENTS = "openvino_telemetry"  # sends an event for each import of OpenVINO, from a thread


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Put an empty module in the place of the package, and OpenVINO sends nothing."""
    if _EVENTS in sys.modules:
        yield
        return
    sys.modules[_EVENTS] = ModuleType(_EVENTS)
    try:
        yield
    finally:
        del sys.modules[_EVENTS]


with _without_telemetry(), as_guest():
    import openvino as ov
    import openvino.properties as props
    import openvino.properties.hint as hints

if TYPE_CHECKING:
    import openvino

    from headrace.engine.backends.protocol import DLPackTensor


_NODE = (
    re.compile(r"ONNX node '<Node\((?P<op>\w+)\): (?P<node>[^>]*)>'"),
    re.compile(r"\[CPU\] (?P<op>\w+) node with name '(?P<node>[^']*)'"),
)
_UNKNOWN = re.compile(r"No conversion rule found for operations: ([^\n]+)")
# The check in OpenVINO's source that failed is of no use to a reader.
_SOURCE = re.compile(
    r"^Exception from \S+:\d+:?$|^Check '.*' failed at \S+:\d+:?$|^FrontEnd API failed.*|"
    r"^While validating.*|^Summary:$|^-- .*|^To facilitate .*|^Model wasn't fully converted.*"
)


@cache
def _core() -> openvino.Core:
    return ov.Core()


_LIMIT = "ONEDNN_MAX_CPU_ISA"
_WITHOUT_TILES = "AVX512_CORE_FP16"  # all that comes before AMX
_log = logging.getLogger("headrace.engine")


class _Tiles:
    """Whether OpenVINO of this process uses AMX; its library asks the environment once."""

    lock = threading.Lock()
    used: bool | None = None
    reported = False


def _settle_tiles(wanted: bool) -> None:
    """Let the first model of this process decide about AMX, and report a later one that differs."""
    with _Tiles.lock:
        if _Tiles.used is None:
            limited = _LIMIT in os.environ  # the user's choice stands
            if not wanted and not limited:
                os.environ[_LIMIT] = _WITHOUT_TILES
            _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")  # loads it
            if not wanted and not limited:
                del os.environ[_LIMIT]  # processes that this one starts choose for themselves
            _Tiles.used = wanted
        elif _Tiles.used != wanted and not _Tiles.reported and "amx_int8" in cpu_flags():
            _Tiles.reported = True
            runs = "openvino runs without AMX" if wanted else "openvino:amx=0 runs with AMX"
            _log.warning(
                "%s",
                printable(
                    f"an engine for {runs}: the first one of this process decided so; its results "
                    "are the same, its speed may not be"
                ),
            )


class _Variant:
    """A model compiled for one batch size, or for all; requests are made as they are needed."""

    def __init__(self, model: openvino.CompiledModel, settings: Mapping[str, object]) -> None:
        self._compiled = _core().compile_model(model, "CPU", dict(settings))
        # a model that does not use an input is compiled without it
        self._names = [port.get_names() for port in self._compiled.inputs]
        self._idle: deque[openvino.InferRequest] = deque()
        self._placing: deque[openvino.InferRequest] = deque()
        # where a shape is only known afterwards, OpenVINO 2026.4 may write elsewhere unseen
        self._static = [port.get_partial_shape().is_static for port in self._compiled.outputs]

    def layer_types(self) -> Counter[str]:
        graph = self._compiled.get_runtime_model()
        infos = (op.get_rt_info() for op in graph.get_ordered_ops())
        return Counter(i["runtimePrecision"].astype(str) for i in infos if "runtimePrecision" in i)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        arrays = [next(feeds[n] for n in names if n in feeds) for names in self._names]
        try:
            request = self._idle.pop()
        except IndexError:  # more runs at once than ever before
            request = self._compiled.create_infer_request()
        try:
            # inputs are read where they are; outputs are copied out of the request's memory
            return list(request.infer(arrays, share_inputs=True, share_outputs=False).values())
        finally:
            self._idle.append(request)

    def run_into(self, feeds: Mapping[str, Array], targets: Sequence[Array | None]) -> list[Array]:
        """`run` with separate requests, which get new places for their outputs each time."""
        arrays = [next(feeds[n] for n in names if n in feeds) for names in self._names]
        try:
            request = self._placing.pop()
        except IndexError:
            request = self._compiled.create_infer_request()
        targets = [p if s else None for p, s in zip(targets, self._static, strict=True)]
        for i, target in enumerate(targets):
            if target is not None:
                request.set_output_tensor(i, ov.Tensor(target, shared_memory=True))
        results = request.infer(arrays, share_inputs=True, share_outputs=True)
        outputs = [
            target if target is not None and _same(array, target) else array.copy()
            for target, array in zip(targets, results.values(), strict=True)
        ]
        self._placing.append(request)  # one that failed is not used again
        return outputs


def _same(array: Array, target: Array) -> bool:
    """Whether the runtime kept the memory: for another shape it takes its own."""
    return array.shape == target.shape and array.ctypes.data == target.ctypes.data


class OpenVinoRunner:
    """A compiled model with a pool of infer requests.

    A model with a free batch is compiled for `max_batch` (10 to 20 % faster than for any batch,
    measured), and once more for any batch when a smaller one comes.
    """

    device = "cpu"

    def __init__(self, model: bytes, options: RunnerOptions, file: Path | None = None) -> None:
        _settle_tiles(options.amx)
        threads = options.threads or max(1, usable_cores() // options.streams)
        self._settings = {
            props.inference_num_threads(): threads * options.streams,
            props.num_streams(): options.streams,
            hints.inference_precision(): _computed_in(options),  # else what the CPU likes best
            # threads fixed to cores get in the way of decoding, and of other models' threads
            hints.enable_cpu_pinning(): False,
        }
        self._any: _Variant | None = None
        self._fixed: _Variant | None = None
        self._fixed_size: int | None = None
        self._checked: set[Hashable] = set()
        self._batched = options.batched
        self._lock = threading.Lock()
        try:
            read, names = _read(model, file)
            self.inputs = tuple(map(_spec, read.inputs, names))
            self.outputs = tuple(_spec(port) for port in read.outputs)
            self._free_batch = options.batched and _has_free_batch(read.inputs[0])
            self._model: openvino.Model = read
            if not options.batched:
                self._any = _Variant(read, self._settings)
            elif not self._free_batch:
                self._fixed = _Variant(read, self._settings)
            elif options.max_batch is not None:
                self._fixed_size = options.max_batch
                self._fixed = _Variant(_with_batch(read, options.max_batch), self._settings)
            else:
                self._any = _Variant(read, self._settings)
            one_size = options.batched and (not self._free_batch or self._fixed_size == 1)
            if one_size or all(port.get_partial_shape().is_static for port in read.inputs):
                self._model = None  # no other batch can come: its weights are not needed twice
        except EngineError:
            raise
        except Exception as error:  # whatever the binding makes of a C++ exception
            raise _worded(error, "refuses the model") from error

    def layer_types(self) -> Mapping[str, int]:
        """See `TypedRunner`."""
        variant = self._fixed or self._any
        return {} if variant is None else variant.layer_types()

    def run(self, feeds: Mapping[str, Array], *, to_host: bool = True) -> list[Array]:
        return self._run(feeds, None)

    def run_into(self, feeds: Mapping[str, Array], targets: Mapping[str, Array]) -> list[Array]:
        """See `PlacingRunner`."""
        return self._run(feeds, [targets.get(spec.name) for spec in self.outputs])

    def _run(
        self,
        feeds: Mapping[str, Array],
        targets: Sequence[Array | None] | None,
    ) -> list[Array]:
        try:
            variant = self._fixed
            if not self._batched:
                variant = self._for_shapes(feeds)
            elif self._free_batch:
                size = len(feeds[self.inputs[0].name])
                if size != self._fixed_size or variant is None:
                    variant = self._for_any_batch(size)
            if variant is None:
                raise EngineError("the session is closed")
            return variant.run(feeds) if targets is None else variant.run_into(feeds, targets)
        except RuntimeError as error:
            raise _worded(error, "failed") from error

    def _for_any_batch(self, size: int) -> _Variant | None:
        with self._lock:
            if self._model is None:
                return None
            if size not in self._checked:
                # With one thread OpenVINO 2026.4 runs on with garbage where shapes do not fit.
                _with_batch(self._model, size)
                self._checked.add(size)
            if self._any is None:
                self._any = _Variant(self._model, self._settings)
            return self._any

    def _for_shapes(self, feeds: Mapping[str, Array]) -> _Variant | None:
        key = tuple(feeds[spec.name].shape for spec in self.inputs)
        with self._lock:
            if self._model is not None and key not in self._checked:
                # as for batches: what does not fit must be refused before it runs
                fixed = self._model.clone()
                fixed.reshape(dict(zip(fixed.inputs, map(list, key), strict=True)))
                self._checked.add(key)
            return self._any

    def close(self) -> None:
        with self._lock:
            self._fixed = self._any = self._model = None


def _computed_in(options: RunnerOptions) -> openvino.Type:
    if options.half is None or options.half.upper() not in backend.capabilities():
        return ov.Type.f32
    return ov.Type.f16 if options.half == "fp16" else ov.Type.bf16


def _has_free_batch(port: openvino.Output) -> bool:
    shape = port.get_partial_shape()
    return bool(shape.rank.is_static and len(shape) > 0 and shape[0].is_dynamic)


def _with_batch(model: openvino.Model, size: int) -> openvino.Model:
    """Copy `model`, its free first axes set to `size`.

    Raises:
        RuntimeError: a shape inside does not fit.
    """
    fixed = model.clone()
    shapes = {}
    for port in fixed.inputs:
        shape = port.get_partial_shape()
        if _has_free_batch(port):
            shape[0] = size
        shapes[port] = shape
    fixed.reshape(shapes)
    return fixed


def _read(model: bytes, file: Path | None = None) -> tuple[openvino.Model, list[str]]:
    """Read a graph of ONNX, or the model of OpenVINO's own that its only node holds."""
    graph = _messages(memoryview(model), 7)[0]
    nodes = _messages(graph, 1)
    if len(nodes) != 1 or [bytes(x) for x in _messages(nodes[0], 7)] != [OPENVINO_DOMAIN.encode()]:
        read = _core().read_model(model if file is None else str(file))
        return read, _input_names(read, model)
    xml = bytes(_messages(_messages(nodes[0], 5)[0], 4)[0])
    raw = next(iter(_messages(_messages(graph, 5)[0], 9)), memoryview(b""))
    weights = (
        np.frombuffer(raw, np.uint8)
        if file is None
        else np.fromfile(file.with_name(WEIGHTS_FILE), np.uint8)
    )
    read = _core().read_model(xml, ov.Tensor(weights) if weights.size else ov.Tensor())
    shapes = {}
    names: list[list[str]] = []
    for number, ports in ((11, read.inputs), (12, read.outputs)):
        declared = _messages(graph, number)
        names.append([_text(info, 1) for info in declared])
        for port, name in zip(ports, names[-1], strict=True):
            port.get_tensor().set_names({name})
    for port, info in zip(read.inputs, _messages(graph, 11), strict=True):
        axes = _axes_of(info)
        if axes != [d.get_length() if d.is_static else -1 for d in port.get_partial_shape()]:
            shapes[port] = ov.PartialShape(axes)
    if shapes:
        read.reshape(shapes)
    return read, names[0]


def _axes_of(info: memoryview) -> list[int]:
    """Axes of a ValueInfoProto, -1 for a free one: type, tensor type, shape, dimensions."""
    shape = _messages(_messages(_messages(info, 2)[0], 1)[0], 2)[0]
    sizes = (
        next((wire.signed(v) for n, _, v in wire.fields(dim) if n == 1), 0)
        for dim in _messages(shape, 1)
    )
    return [size if size > 0 else -1 for size in sizes]


def _input_names(read: openvino.Model, model: bytes) -> list[str]:
    """Names of the inputs; one that is only handed on has lost its own, and gets it back."""
    graph = _messages(memoryview(model), 7)[0]
    declared = {_text(value, 1) for value in _messages(graph, 11)}
    names = [next(iter(sorted(port.get_names())), "") for port in read.inputs]
    if declared.issuperset(names):
        return names
    feeders: dict[str, str] = {}
    for node in _messages(graph, 1):
        inputs = _messages(node, 1)
        if inputs:
            source = wire.text(wire.BYTES, inputs[0])
            feeders |= {wire.text(wire.BYTES, out): source for out in _messages(node, 2)}
    for i, port in enumerate(read.inputs):
        while names[i] not in declared and names[i] in feeders:
            names[i] = feeders[names[i]]
        port.get_tensor().add_names({names[i]})
    return names


def _messages(data: memoryview, number: int) -> list[memoryview]:
    """The occurrences of one field of a message; nothing else of it is read."""
    return [value for n, kind, value in wire.fields(data) if n == number and kind == wire.BYTES]


def _text(data: memoryview, number: int) -> str:
    return wire.text(wire.BYTES, _messages(data, number)[0])


def _spec(port: openvino.Output, name: str | None = None) -> TensorSpec:
    name = name or next(iter(sorted(port.get_names())), "")
    kind = port.get_element_type()
    try:
        dtype = np.dtype(kind.to_dtype())
    except RuntimeError as error:  # types NumPy does not know
        raise EngineError(
            f"{name!r} is a tensor of {kind.get_type_name()}",
            fix="export the model with float inputs and outputs",
        ) from error
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        return TensorSpec(name, dtype, ())
    return TensorSpec(name, dtype, tuple(None if d.is_dynamic else d.get_length() for d in shape))


def _worded(error: Exception, what: str) -> EngineError:
    text = str(error)
    where, fix = None, []
    for pattern in _NODE:
        if match := pattern.search(text):
            where = f"node {match['node']!r} ({match['op']})"
            break
    if match := _UNKNOWN.search(text):
        ops = ", ".join(re.sub(r"-\d+\b", "", op) for op in match[1].split(", "))
        problem = f"it does not know {ops}"
        fix.append("another runtime may: --backend onnxruntime")
    else:
        lines = [line.strip() for line in text.splitlines()]
        useful = [line for line in lines if line and not _SOURCE.match(line)]
        problem = "; ".join(useful) or " ".join(lines)
        problem = re.sub(r" ?Check '.*?' failed at \S+:\d+:?", "", problem)
    return EngineError(f"openvino {what}: {problem[:500]}", where=where, fix=fix)


class OpenVinoBackend:
    """See module."""

    name = "openvino"

    def version(self) -> str:
        # 2026.4.1-22982-e213a14…-releases/2026/4: the release and its build are enough
        return "-".join(str(ov.get_version()).split("-")[:2])

    def why_not(self) -> str | None:
        return None if "CPU" in _core().available_devices else "OpenVINO finds no CPU plugin"

    def capabilities(self) -> frozenset[str]:
        """The types the processor computes in (FP32, INT8, BF16, FP16 and others)."""
        if self.why_not():
            return frozenset()
        flags = cpu_flags()
        if _Tiles.used is None and "amx_int8" in flags:  # the library's answer would settle it
            return frozenset({"FP32", "BF16", "INT8"} | ({"FP16"} & {f[7:].upper() for f in flags}))
        return frozenset(_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))

    def profile(
        self, model: bytes, options: RunnerOptions, feeds: Mapping[str, DLPackTensor], runs: int
    ) -> list[tuple[str, list[float]]]:
        """See `headrace.engine.layers.ProfilingBackend`."""
        settings = {
            props.enable_profiling(): True,
            hints.inference_precision(): _computed_in(options),
        }
        if options.threads:
            settings[props.inference_num_threads()] = options.threads
        try:
            read, _ = _read(model)
            request = _core().compile_model(read, "CPU", settings).create_infer_request()
            times: dict[str, list[float]] = {}
            for run in range(runs + 1):
                request.infer([feeds[port.any_name] for port in read.inputs], share_inputs=True)
                for layer in request.profiling_info if run else ():  # the first is never the same
                    if layer.status == ov.ProfilingInfo.Status.EXECUTED:
                        name = f"{layer.node_name} ({layer.node_type})"
                        times.setdefault(name, []).append(layer.real_time.total_seconds() * 1e3)
        except RuntimeError as error:
            raise _worded(error, "failed") from error
        return [(name, ms) for name, ms in times.items() if len(ms) == runs]

    def open_with_weights(
        self, graph: bytes, weights: memoryview, options: RunnerOptions
    ) -> OpenVinoRunner:
        """See `ExternalWeightsBackend`. OpenVINO reads files only: temporary ones are written."""
        try:
            with tempfile.TemporaryDirectory(prefix="headrace-model-") as folder:
                (Path(folder) / WEIGHTS_FILE).write_bytes(weights)
                model = Path(folder) / "model.onnx"
                model.write_bytes(graph)
                return OpenVinoRunner(graph, options, model)
        except OSError as error:
            raise EngineError(
                f"openvino reads models over 2 GiB from files, which cannot be written: "
                f"{os_reason(error)}",
                where=str(error.filename),
            ) from error

    def open(self, model: bytes, options: RunnerOptions) -> OpenVinoRunner:
        return OpenVinoRunner(model, options)


backend = OpenVinoBackend()
