"""The blocks that trtexec prints before it begins."""

from __future__ import annotations

import noria
from noria.cli.trtexec.log import TENSORRT_VERSION, Log
from noria.cli.trtexec.options import Options, Shapes
from noria.engine.backends import get_backend, installed_backends
from noria.engine.machine import this_machine


def print_blocks(screen: Log, options: Options) -> None:
    """Options of the command line, block by block. Source: TensorRT facts 6.2."""
    for title, rows in (
        ("Model Options", _model(options)),
        ("Build Options", _build(options)),
        ("System Options", _system(options)),
        ("Inference Options", _inference(options)),
        ("Reporting Options", _reporting(options)),
        ("Device Information", _device()),
    ):
        screen.info(f"=== {title} ===")
        for name, value in rows:
            screen.info(f"{name}: {value}")
        screen.info()


def _on(value: object) -> str:
    return "Enabled" if value else "Disabled"


def _shapes(shapes: Shapes) -> str:
    named = (f"{name}:{'x'.join(map(str, dims))}" for name, dims in shapes.items())
    return ",".join(named) or "model"


def _model(options: Options) -> list[tuple[str, str]]:
    if options.has("onnx"):
        return [("Format", "ONNX"), ("Model", options.text("onnx")), ("Output", "")]
    output = options.text("output").replace(",", " ")
    if options.has("uff"):
        return [("Format", "UFF"), ("Model", options.text("uff")),
                ("Uff Inputs Layout", "NHWC" if options.has("uffNHWC") else "NCHW"),
                ("Input", options.text("uffInput")), ("Output", output)]  # fmt: skip
    if options.has("deploy"):
        return [("Format", "Caffe"), ("Model", options.text("model")),
                ("Prototxt", options.text("deploy")), ("Output", output)]  # fmt: skip
    return [("Format", "*"), ("Model", ""), ("Output", "")]


def _build(options: Options) -> list[tuple[str, str]]:
    implicit = options.has("deploy") or options.has("uff")
    words = ["FP32", *(n for n in ("FP16", "BF16", "INT8") if _asked(options, n.lower()))]
    rows = [
        ("Max batch", str(options.max_batch or options.batch or 1) if implicit
         else "explicit batch"),
        ("Memory Pools", "workspace: default"),
        ("minTiming", "1"),
        ("avgTiming", "8"),
        ("Precision", "+".join(words)),
        ("LayerPrecisions", options.text("layerPrecisions")),
        ("Calibration", options.text("calib") or ("Dynamic" if "INT8" in words else "")),
        ("Refit", "Disabled"),
        ("Sparsity", "Disabled"),
        ("Safe mode", "Disabled"),
        ("Skip inference", _on(options.skip_inference)),
        ("Save engine", options.text("saveEngine")),
        ("Load engine", options.text("loadEngine")),
        ("Profiling verbosity", options.text("profilingVerbosity") or "layer_names_only"),
        ("timingCacheMode", "global" if options.has("timingCacheFile") else "local"),
        ("timingCacheFile", options.text("timingCacheFile")),
        ("BuilderOptimizationLevel", str(-1 if options.level is None else options.level)),
        ("Input(s)s format", "fp32:CHW"),
        ("Output(s)s format", options.text("outputIOFormats") or "fp32:CHW"),
    ]  # fmt: skip
    best = options.opt_shapes or options.shapes
    if not best:
        return [*rows, ("Input build shapes", "model")]
    low, high = options.min_shapes or best, options.max_shapes or best
    rows += [
        (f"Input build shape: {name}",
         f"{_dims(low.get(name, dims))}+{_dims(dims)}+{_dims(high.get(name, dims))}")
        for name, dims in best.items()
    ]  # fmt: skip
    return rows


def _dims(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _asked(options: Options, name: str) -> bool:
    return options.has(name) or (options.has("best") and name in ("fp16", "int8"))


def _system(options: Options) -> list[tuple[str, str]]:
    libraries = " ".join(map(str, options.libraries))
    return [("Device", options.text("device") or "0"), ("DLACore", ""), ("Plugins", libraries)]


def _inference(options: Options) -> list[tuple[str, str]]:
    implicit = options.has("deploy") or options.has("uff")
    return [
        ("Batch", str(options.batch or 1) if implicit else "Explicit"),
        ("Input inference shapes", _shapes(options.shapes or options.opt_shapes)),
        ("Iterations", str(options.iterations)),
        ("Duration", f"{options.duration_s:g}s (+ {options.warm_up_ms:g}ms warm up)"),
        ("Sleep time", f"{options.sleep_ms:g}ms"),
        ("Idle time", f"{options.idle_ms:g}ms"),
        ("Inference Streams", str(options.streams)),
        ("Data transfers", _on(not options.has("noDataTransfers"))),
        ("Spin-wait", _on(options.has("useSpinWait"))),
        ("Multithreading", _on(options.streams > 1)),
        ("CUDA Graph", "Disabled"),
        ("Separate profiling", _on(options.has("separateProfileRun"))),
        ("Inputs", " ".join(f"{name}<-{path}" for name, path in options.inputs.items())),
    ]


def _reporting(options: Options) -> list[tuple[str, str]]:
    return [
        ("Verbose", _on(options.has("verbose"))),
        ("Averages", f"{options.avg_runs} inferences"),
        ("Percentiles", ",".join(options.percentiles)),
        ("Dump output", _on(options.has("dumpOutput"))),
        ("Profile", _on(options.has("dumpProfile"))),
        ("Export timing to JSON file", options.text("exportTimes")),
        ("Export output to JSON file", options.text("exportOutput")),
        ("Export profile to JSON file", options.text("exportProfile")),
    ]


def _device() -> list[tuple[str, str]]:
    machine = this_machine()
    names = installed_backends()
    return [
        ("Selected Device", machine.cpu),
        ("Device ID", "0"),
        ("Cores", str(machine.cores)),
        ("Runtimes", ", ".join(f"{name} {get_backend(name).version()}" for name in names)),
        ("Noria version", noria.__version__),
        ("TensorRT version", f"{TENSORRT_VERSION} (of the report; TensorRT itself is not used)"),
    ]
