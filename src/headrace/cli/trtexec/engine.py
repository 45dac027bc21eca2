"""The engine that trtexec runs: built from a model, or loaded."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from headrace._core.errors import EngineError
from headrace._core.files import os_reason, write_atomically
from headrace._core.formats.tensorrt import is_tensorrt_file
from headrace.cli.trtexec.options import Options, Shapes
from headrace.cli.trtexec.report import Log
from headrace.engine.backends import DEFAULT_BACKEND, installed_backends
from headrace.engine.builder import BuildOptions, build
from headrace.engine.plan import Plan
from headrace.engine.plan_header import Precision
from headrace.engine.precision.cache import CalibrationTable
from headrace.engine.precision.rules import PrecisionRules
from headrace.engine.tensorrt_plan import plan_from_tensorrt
from headrace.engine.tuning.tune import TuneOptions
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec
from headrace.trt.api.refitter import make_refittable

LEVEL_BUDGETS_S = (0, 5, 10, 20, 60, 180)
"""Seconds of tuning by --builderOptimizationLevel; 3 is the level if there is a timing cache."""

_CACHE_MARK = b"headrace timing cache"


def engine_for(options: Options, screen: Log) -> tuple[Plan, Profile]:
    """Build or load, and save if asked.

    Raises:
        ModelError, EngineError: as reading, building, loading, saving does.
    """
    loaded = options.path("loadEngine")
    if loaded is not None:
        started = perf_counter()
        plan = plan_from_tensorrt(loaded) if is_tensorrt_file(loaded) else Plan.load(loaded)
        screen.info(f"Engine loaded in {perf_counter() - started:.6g} sec.")
        screen.info(f"Loaded engine with size: {_mib(plan):.6g} MiB")
        _told(plan, screen)
        profile = run_shapes(plan.inputs, options, plan.header.max_batch)
    else:
        plan, profile = _built(options, screen)
    target = options.path("saveEngine")
    if target is not None:
        plan.save(target)
    return plan, profile


def _built(options: Options, screen: Log) -> tuple[Plan, Profile]:
    screen.info("Start parsing network model.")
    started = perf_counter()
    network = _network(options)
    screen.info(f"Finished parsing network model. Parse time: {perf_counter() - started:.6g}")
    started = perf_counter()
    if options.has("onnx"):
        profile = fix_shapes(network, options)
        if options.batch or options.max_batch:
            screen.warning("--batch and --maxBatch are for Caffe and UFF models: use --shapes")
    else:
        largest = options.max_batch or options.batch or 1
        profile = run_shapes(network.inputs, options, largest)
    for warning in profile.warnings:
        screen.warning(warning)
    with ExitStack() as opened:
        tuning = _tuning(options, screen, opened)
        plan = build(
            network,
            BuildOptions(
                max_batch=profile.max_batch,
                batched=len(network.inputs[0].shape) > 1,
                precision=_precision(options),
                rules=_rules(options, network),
                runtime=options.text("backend") or (None if tuning else DEFAULT_BACKEND),
                threads=None if tuning else options.threads,
                streams=None if tuning else options.streams,
                tuning=tuning,
                time_int8=True,
                image_range=(-1.0, 1.0),
            ),
        )
    if options.refittable:
        plan = make_refittable(plan)
    _told(plan, screen)
    screen.info(f"Engine built in {perf_counter() - started:.6g} sec.")
    screen.info(f"Created engine with size: {_mib(plan):.6g} MiB")
    return plan, profile


def _network(options: Options) -> Network:
    outputs = [name for name in options.text("output").split(",") if name]
    if options.has("onnx"):
        from headrace.network.onnx_file import network_from_onnx

        return network_from_onnx(options.text("onnx"))
    if options.has("uff"):
        from headrace.network.uff.importer import network_from_uff

        name, dims = None, None
        if options.has("uffInput"):
            name, *numbers = options.text("uffInput").split(",")
            plain = all(n.isascii() and n.isdigit() and len(n) < 10 for n in numbers)
            if len(numbers) != 3 or not plain:
                raise EngineError(f"--uffInput={options.text('uffInput')}", expected="NAME,C,H,W")
            dims = [int(n) for n in numbers]
        return network_from_uff(
            options.text("uff"),
            input_name=name,
            input_dims=dims,
            input_order="NHWC" if options.has("uffNHWC") else "NCHW",
            outputs=outputs,
        )
    if options.has("deploy"):
        from headrace.network.caffe.importer import network_from_caffe

        if not options.has("model"):
            raise EngineError("--model is missing", expected="the caffemodel with the weights")
        return network_from_caffe(options.text("deploy"), options.text("model"), outputs=outputs)
    raise EngineError("no model is given", expected="--onnx, --uff, --deploy or --loadEngine")


_RESTS: dict[str, Precision] = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16", "int8": "int8"}


def _precision(options: Options) -> Precision:
    rest = _layer_precisions(options).get("*", "")
    if rest in _RESTS:
        return _RESTS[rest]
    int8, fp16 = options.has("int8"), options.has("fp16")
    if options.has("best") or (int8 and fp16):
        return "best"
    if int8:
        return "int8"
    return "fp16" if fp16 else "bf16" if options.has("bf16") else "fp32"


def _rules(options: Options, network: Network) -> PrecisionRules:
    path = options.path("calib")
    rules = PrecisionRules(
        pins=_pins(options, _layer_names(network)),
        outputs=_output_types(options, [s.name for s in network.outputs]),
    )
    if path is None:
        return rules
    return replace(rules, table=CalibrationTable.load(path), table_name=path.name)


def _layer_names(network: Network) -> list[str]:
    """The names of layers; those without one are called as in the engine."""
    nodes = network.model.graph
    return [node.name or f"{node.op_type}_{i}" for i, node in enumerate(nodes)]


_LAYER_TYPES = ("fp32", "fp16", "bf16", "int8", "int32")


def _layer_precisions(options: Options) -> dict[str, str]:
    """--layerPrecisions: layer, or a pattern with *, -> its type; "*" alone is for the rest."""
    if options.text("precisionConstraints") == "none":
        return {}
    precisions = {}
    for item in filter(None, options.text("layerPrecisions").split(",")):
        name, _, precision = item.rpartition(":")
        name = name.strip("'\"")
        if not name or precision not in _LAYER_TYPES or (precision == "bf16" and name != "*"):
            raise EngineError(
                f"--layerPrecisions has the item {item!r}",
                expected="NAME:PRECISION, one of fp32, fp16, int8, int32; NAME may have *, and is "
                "* alone for all other layers, which may be bf16, too",
            )
        precisions[name] = precision
    return precisions


def _pins(options: Options, layers: Sequence[str]) -> dict[str, str]:
    """The types of single layers; exact names go before patterns, the first pattern wins."""
    pins: dict[str, str] = {}
    asked = {n: p for n, p in _layer_precisions(options).items() if n != "*"}
    for name, precision in sorted(asked.items(), key=lambda one: "*" in one[0]):
        matching = [name]
        if "*" in name:
            parts = ".*".join(map(re.escape, name.split("*")))
            matching = [layer for layer in layers if re.fullmatch(parts, layer)]
            if not matching:
                raise EngineError(
                    f"--layerPrecisions: no layer is called like {name!r}",
                    expected="one of " + ", ".join(layers[:5]) + (", …" if layers[5:] else ""),
                )
        for layer in matching:
            pins.setdefault(layer, precision)
    return {n: p for n, p in pins.items() if p != "int32"}  # whole numbers stay what they are


def _output_types(options: Options, names: Sequence[str]) -> dict[str, str]:
    items = [item for item in options.text("outputIOFormats").split(",") if item]
    if len(items) not in (0, 1, len(names)):
        raise EngineError(
            f"--outputIOFormats has {len(items)} items", expected=f"one, or {len(names)}"
        )
    types = {}
    for name, item in zip(names, items * (1 if len(items) > 1 else len(names)), strict=False):
        kind, _, layout = item.partition(":")
        if kind not in ("fp32", "fp16", "int32", "int8") or layout not in ("", "chw"):
            raise EngineError(
                f"--outputIOFormats has the item {item!r}",
                expected="TYPE:chw, the type one of fp32, fp16, int32, int8",
            )
        types[name] = kind
    return types


def _tuning(options: Options, screen: Log, opened: ExitStack) -> TuneOptions | None:
    """Whether to tune, and with which times; they go back into the file in the end."""
    file = options.path("timingCacheFile")
    level = options.level if options.level is not None else 3 if file else 0
    budget = LEVEL_BUDGETS_S[level]
    if not budget:
        return None
    folder = None
    if file is not None:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="headrace-timings-")))
        if _unpack(file, folder, screen):
            opened.callback(_pack, folder, file, screen)
    asked = options.text("backend")
    return TuneOptions(
        budget_s=budget,
        objective="latency" if options.streams == 1 else "throughput",
        runtimes=[asked] if asked else installed_backends(),
        cache=folder,
        use_cache=not options.has("noBuilderCache"),
    )


def _unpack(file: Path, folder: Path, screen: Log) -> bool:
    """Take the times out of `file`; whether it may be written."""
    if not file.exists():
        return True
    try:
        with zipfile.ZipFile(file) as archive:
            ours = archive.comment == _CACHE_MARK
            for info in archive.infolist() if ours else ():
                if "/" not in info.filename and info.file_size < 1 << 20:
                    (folder / info.filename).write_bytes(archive.read(info))
    except (OSError, zipfile.BadZipFile, RuntimeError, ValueError):
        ours = False
    if not ours:
        screen.warning(f"{file} is not a timing cache of headrace: it is neither read nor written")
        return False
    return True


def _pack(folder: Path, file: Path, screen: Log) -> None:
    temporary = folder / "all.zip"
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = _CACHE_MARK
            for entry in sorted(folder.glob("*.json")):
                archive.write(entry, entry.name)
        write_atomically(file, [temporary.read_bytes()])
    except OSError as error:
        screen.warning(f"{file}: the timing cache cannot be written: {os_reason(error)}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)


def _told(plan: Plan, screen: Log) -> None:
    for notice in plan.decisions:
        (screen.warning if notice.level == "warning" else screen.info)(str(notice))


def _mib(plan: Plan) -> float:
    return sum(record.size_bytes for record in plan.header.blobs) / 2**20


@dataclass(frozen=True, slots=True)
class Profile:
    """Batch and shapes that a network is built for.

    Attributes:
        max_batch: most items, where the batch stays free; else what it is fixed at.
        shapes: input -> shape to run with.
        warnings: what does not happen as asked.
    """

    max_batch: int
    shapes: Mapping[str, tuple[int, ...]]
    warnings: Sequence[str]


def fix_shapes(network: Network, options: Options) -> Profile:
    """Fix the free axes of the network's inputs as asked; axes without a request become 1.

    The batch stays free if --minShapes and --maxShapes differ in it.

    Raises:
        EngineError: a shape is for no input, has another rank, or contradicts a fixed axis.
    """
    from headrace.network.ir import ir

    warnings: list[str] = []
    best = options.opt_shapes or options.shapes or options.max_shapes or options.min_shapes
    least, most = options.min_shapes or best, options.max_shapes or best
    _check_names([least, best, most, options.shapes], [s.name for s in network.inputs])
    run, batches = {}, []
    fixed_by_name: dict[str, int] = {}
    for number, (spec, value) in enumerate(
        zip(network.inputs, network.model.graph.inputs, strict=True)
    ):
        dynamic = any(not isinstance(d, int) for d in spec.shape)
        preferred = _of(best, spec)
        if preferred is None:
            preferred = tuple(d if isinstance(d, int) else 1 for d in spec.shape)
            if dynamic:
                warnings.append(
                    f"Dynamic dimensions required for input: {spec.name}, but no shapes were "
                    f"provided. Automatically overriding shape to: {_text(preferred)}"
                )
        _check_fits(spec, preferred)
        low, high = _of(least, spec) or preferred, _of(most, spec) or preferred
        asked = _of(options.shapes, spec) or preferred
        for shape in (low, high, asked):
            _check_fits(spec, shape)
        if any(not lo <= x <= hi for lo, x, hi in zip(low, asked, high, strict=True)):
            raise EngineError(
                f"input {spec.name}: {_text(asked)} is outside of {_text(low)} … {_text(high)}"
            )
        if low[1:] != high[1:]:
            warnings.append(
                f"input {spec.name}: an engine of headrace is built for one size, {_text(asked)}; "
                "only the batch may vary"
            )
        free = bool(spec.shape) and not isinstance(spec.shape[0], int) and low[0] != high[0]
        if number == 0:
            batches = [high[0]] if high else [1]
        axes: list[int | str | None] = list(asked)
        if free:
            axes[0] = spec.shape[0] or "batch"
        for name, length in zip(spec.shape, axes, strict=True):
            if isinstance(name, str) and isinstance(length, int):
                fixed_by_name.setdefault(name, length)
        value.shape = ir.Shape(axes)
        run[spec.name] = tuple(asked)
    _fix_outputs(network, fixed_by_name)
    return Profile(max(batches), run, warnings)


def run_shapes(inputs: Sequence[TensorSpec], options: Options, max_batch: int) -> Profile:
    """Shapes to run an engine with.

    Raises:
        EngineError: --shapes does not fit the engine.
    """
    _check_names([options.shapes], [s.name for s in inputs])
    run = {}
    batch = options.batch or 1
    for spec in inputs:
        shape = _of(options.shapes, spec)
        if shape is None:
            shape = tuple(d if isinstance(d, int) else batch for d in spec.shape)
        _check_fits(spec, shape)
        if spec.shape and not isinstance(spec.shape[0], int) and shape[0] > max_batch:
            raise EngineError(
                f"input {spec.name}: a batch of {shape[0]}, the engine takes 1 to {max_batch}"
            )
        run[spec.name] = shape
    return Profile(max_batch, run, ())


def _of(shapes: Shapes, spec: TensorSpec) -> tuple[int, ...] | None:
    return shapes.get(spec.name, shapes.get(""))


def _check_names(shape_sets: Sequence[Shapes], names: Sequence[str]) -> None:
    for shapes in shape_sets:
        for name in shapes:
            if name and name not in names:
                raise EngineError(
                    f"Cannot find input tensor with name {name!r} in the network inputs",
                    expected=", ".join(names),
                )


def _check_fits(spec: TensorSpec, shape: tuple[int, ...]) -> None:
    fits = len(shape) == len(spec.shape) and all(
        not isinstance(want, int) or want == have
        for want, have in zip(spec.shape, shape, strict=True)
    )
    if fits:
        return
    if all(isinstance(d, int) for d in spec.shape):
        raise EngineError(
            f"input {spec} is static: it does not take the shape {_text(shape)}",
            fix="leave the shape out, or export the model with free axes",
        )
    raise EngineError(f"input {spec} does not take the shape {_text(shape)}")


def _fix_outputs(network: Network, fixed: Mapping[str, int]) -> None:
    """The same name means the same number."""
    from headrace.network.ir import ir

    graph = network.model.graph
    for value in (*graph.outputs, *(v for node in graph for v in node.outputs)):
        if value.shape is not None and any(not isinstance(d, int) for d in value.shape):
            value.shape = ir.Shape(
                [d if isinstance(d, int) else fixed.get(d.value or "", d) for d in value.shape]
            )


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
