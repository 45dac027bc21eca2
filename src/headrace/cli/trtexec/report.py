"""Lines, blocks and numbers that trtexec prints, and files that it exports."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any, TextIO

import numpy as np

import headrace
from headrace._core.errors import EngineError
from headrace._core.files import os_errors, write_where_named
from headrace._core.text import printable
from headrace._core.types import Array, Arrays
from headrace.cli.trtexec.inference import Measured, Query
from headrace.cli.trtexec.options import Options, Shapes
from headrace.engine.backends import get_backend, installed_backends
from headrace.engine.layers import LayerInfo, LayerTime
from headrace.engine.machine import this_machine
from headrace.engine.plan import Plan

TENSORRT_VERSION = "8.6.1"
"""Report format of this trtexec version: scripts parse one."""


class Log:
    """Lines `[MM/DD/YYYY-HH:MM:SS] [I] text`.

    Results go to standard output, warnings and errors to standard error.
    Source: TensorRT facts 6.2.
    """

    def __init__(self, words: Sequence[str]) -> None:
        major, minor, patch = (int(n) for n in TENSORRT_VERSION.split("."))
        number = f"{major}{minor}{patch:02d}"
        command = " ".join(["trtexec", *words])
        self._tail = f"TensorRT.trtexec [TensorRT v{number}] # {command}"

    def running(self) -> None:
        """Print the first line."""
        print(printable(f"&&&& RUNNING {self._tail}"), flush=True)

    def ended(self, passed: bool) -> int:
        """The last line; returns the exit status."""
        print(printable(f"&&&& {'PASSED' if passed else 'FAILED'} {self._tail}"), flush=True)
        return 0 if passed else 1

    def info(self, text: str = "") -> None:
        """Print a result."""
        self._say("I", text, sys.stdout)

    def warning(self, text: str) -> None:
        """Print a warning."""
        self._say("W", text, sys.stderr)

    def error(self, text: str) -> None:
        """Print an error."""
        self._say("E", text, sys.stderr)

    @staticmethod
    def _say(letter: str, text: str, stream: TextIO) -> None:
        stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
        for line in text.splitlines() or [""]:
            print(f"[{stamp}] [{letter}] {printable(line)}", file=stream, flush=True)


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


def _enabled(value: object) -> str:
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
        ("Refit", _enabled(options.refittable)),
        ("Sparsity", "Disabled"),
        ("Safe mode", "Disabled"),
        ("Skip inference", _enabled(options.skip_inference)),
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
        ("Data transfers", _enabled(not options.has("noDataTransfers"))),
        ("Spin-wait", _enabled(options.has("useSpinWait"))),
        ("Multithreading", _enabled(options.streams > 1)),
        ("CUDA Graph", "Disabled"),
        ("Separate profiling", _enabled(options.has("separateProfileRun"))),
        ("Inputs", " ".join(f"{name}<-{path}" for name, path in options.inputs.items())),
    ]


def _reporting(options: Options) -> list[tuple[str, str]]:
    return [
        ("Verbose", _enabled(options.has("verbose"))),
        ("Averages", f"{options.avg_runs} inferences"),
        ("Percentiles", ",".join(options.percentiles)),
        ("Dump output", _enabled(options.has("dumpOutput"))),
        ("Profile", _enabled(options.has("dumpProfile"))),
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
        ("Headrace version", headrace.__version__),
        ("TensorRT version", f"{TENSORRT_VERSION} (of the report; TensorRT itself is not used)"),
    ]


def print_performance(screen: Log, measured: Measured, options: Options, batch: int) -> None:
    """Trace and summary. `batch`: the implicit one, 1 if it is explicit."""
    queries = measured.queries
    wall_s = walltime_ms(queries) / 1e3
    screen.info(
        f"Warmup completed {measured.warm_up * batch} queries over {options.warm_up_ms:g} ms"
    )
    screen.info(f"Timing trace has {len(queries) * batch} queries over {wall_s:.6g} s")
    screen.info()
    screen.info("=== Trace details ===")
    screen.info(f"Trace averages of {options.avg_runs} runs:")
    for compute, latency, enqueue in averages(queries, options.avg_runs):
        screen.info(
            f"Average on {options.avg_runs} runs - GPU latency: {compute:.6g} ms - "
            f"Host latency: {latency:.6g} ms (enqueue {enqueue:.6g} ms)"
        )
    screen.info()
    screen.info("=== Performance summary ===")
    screen.info(f"Throughput: {throughput(queries, batch):.6g} qps")
    for name, values in (
        ("Latency", [q.latency for q in queries]),
        ("Enqueue Time", [q.enqueue for q in queries]),
        ("H2D Latency", [q.h2d for q in queries]),
        ("GPU Compute Time", [q.compute for q in queries]),
        ("D2H Latency", [q.d2h for q in queries]),
    ):
        screen.info(f"{name}: {summary(values, options.percentiles)}")
    screen.info(f"Total Host Walltime: {wall_s:.6g} s")
    screen.info(f"Total GPU Compute Time: {sum(q.compute for q in queries) / 1e3:.6g} s")
    screen.info()


def time_rows(queries: Sequence[Query]) -> list[dict[str, float]]:
    """For --exportTimes."""
    return [
        {
            "startEnqMs": q.start_enqueue, "endEnqMs": q.end_enqueue,
            "startH2dMs": q.start_h2d, "endH2dMs": q.end_h2d,
            "startComputeMs": q.start_compute, "endComputeMs": q.end_compute,
            "startD2hMs": q.start_d2h, "endD2hMs": q.end_d2h,
            "h2dMs": q.h2d, "computeMs": q.compute, "d2hMs": q.d2h, "latencyMs": q.latency,
        }
        for q in queries
    ]  # fmt: skip


def print_profile(screen: Log, times: Sequence[LayerTime], runs: int) -> None:
    """For --dumpProfile."""
    heads = ("Time(ms)", "Avg.(ms)", "Median(ms)", "Time(%)", "Layer")
    total = LayerTime(
        name="Total",
        total_ms=sum(t.total_ms for t in times),
        mean_ms=sum(t.mean_ms for t in times),
        median_ms=sum(t.median_ms for t in times),
        percent=100.0,
    )
    screen.info(f"=== Profile ({runs} iterations ) ===")
    screen.info("".join(f"{head:>13}" for head in heads[:-1]) + f"   {heads[-1]}")
    for t in (*times, total):
        numbers = (f"{t.total_ms:.2f}", f"{t.mean_ms:.4f}", f"{t.median_ms:.4f}",
                   f"{t.percent:.1f}")  # fmt: skip
        screen.info("".join(f"{number:>13}" for number in numbers) + f"   {t.name}")
    screen.info()


def profile_rows(times: Sequence[LayerTime], runs: int) -> list[dict[str, Any]]:
    """For --exportProfile."""
    return [
        {"count": runs},
        *(
            {"name": t.name, "timeMs": t.total_ms, "averageMs": t.mean_ms,
             "medianMs": t.median_ms, "percentage": t.percent}
            for t in times
        ),
    ]  # fmt: skip


def output_rows(outputs: Arrays) -> list[dict[str, Any]]:
    """For --exportOutput. NaN and infinity, which JSON lacks, become null."""
    return [
        {"name": name, "dimensions": "x".join(map(str, array.shape)), "values": _values(array)}
        for name, array in outputs.items()
    ]


def _values(array: Array) -> list[Any]:
    values: list[Any] = array.ravel().tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return [v if np.isfinite(v) else None for v in values]
    return values


def print_outputs(screen: Log, outputs: Arrays) -> None:
    """For --dumpOutput."""
    screen.info("Output Tensors:")
    for name, array in outputs.items():
        screen.info(f"{name}: ({'x'.join(map(str, array.shape))})")
        for row in array.reshape(-1, array.shape[-1] if array.ndim else 1):
            screen.info(" ".join(f"{v:g}" for v in row.tolist()))


def layer_info(plan: Plan, layers: Sequence[LayerInfo], verbosity: str) -> dict[str, Any]:
    """For --exportLayerInfo and --dumpLayerInfo: as TensorRT's engine inspector has it."""
    bindings = [spec.name for spec in (*plan.inputs, *plan.outputs)]
    if verbosity not in ("detailed", "verbose"):
        return {"Layers": [layer.name for layer in layers], "Bindings": bindings}
    rows = [
        {
            "Name": layer.name,
            "LayerType": layer.operator,
            "Inputs": [{"Name": name} for name in layer.inputs],
            "Outputs": [{"Name": name} for name in layer.outputs],
            "Dimensions": layer.shape,
            "Precision": layer.precision,
            "Parameters": layer.parameters,
        }
        for layer in layers
    ]
    return {"Layers": rows, "Bindings": bindings}


def check_export(path: Path) -> None:
    """Refuse to write JSON where it would replace something else; before anything is measured.

    Raises:
        EngineError: the folder is missing, or a file stands there that is not JSON.
    """
    if not path.parent.is_dir():
        raise EngineError(
            "there is no such folder", where=str(path.parent), fix="make it, or choose another one"
        )
    if not path.is_file() or not path.stat().st_size:
        return
    with os_errors(EngineError, "cannot be read", path), open(path, "rb") as file:
        head = file.read(64).lstrip()
    if not head.startswith((b"{", b"[")):
        raise EngineError(
            "is not a JSON file and is not overwritten", where=str(path), fix="choose another name"
        )


def export_json(path: Path, data: object) -> None:
    """Write `data`, whole or not at all; a pipe or device gets it piece by piece.

    Raises:
        EngineError: the file cannot be written, or is not JSON, see `check_export`.
    """
    check_export(path)
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    with os_errors(EngineError, "cannot be written", path):
        write_where_named(path, text.encode())


def percentile(values: Sequence[float], percent: str | float) -> float:
    """The greatest value after the greatest floor((100 - percent) % of all) are left out.

    Args:
        values: at least one, in any order.
        percent: 0 to 100.
    """
    ordered = sorted(values)
    left_out = int(len(ordered) * (100 - Fraction(str(percent))) / 100)
    return ordered[max(0, len(ordered) - 1 - left_out)]


def summary(values: Sequence[float], percents: Sequence[str]) -> str:
    """`min = … ms, max = …, mean = …, median = …, percentile(90%) = …`."""
    ordered = sorted(values)
    parts = [
        f"min = {ordered[0]:.6g} ms",
        f"max = {ordered[-1]:.6g} ms",
        f"mean = {sum(ordered) / len(ordered):.6g} ms",
        f"median = {median(ordered):.6g} ms",
        *(f"percentile({float(p):g}%) = {percentile(ordered, p):.6g} ms" for p in percents),
    ]
    return ", ".join(parts)


def walltime_ms(queries: Sequence[Query]) -> float:
    """From the start of the first run to the end of the last."""
    return max(q.end_d2h for q in queries) - min(q.start_h2d for q in queries)


def throughput(queries: Sequence[Query], batch: int = 1) -> float:
    """Queries per second of wall time; a run of an implicit batch counts as `batch` of them."""
    return len(queries) * batch / walltime_ms(queries) * 1e3


def averages(queries: Sequence[Query], size: int) -> list[tuple[float, float, float]]:
    """Mean compute, latency and enqueue time of each full group of `size` runs, in order."""
    groups = [queries[i : i + size] for i in range(0, len(queries) - size + 1, size)]
    return [
        (
            sum(q.compute for q in group) / size,
            sum(q.latency for q in group) / size,
            sum(q.enqueue for q in group) / size,
        )
        for group in groups
    ]
