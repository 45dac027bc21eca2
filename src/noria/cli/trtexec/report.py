"""Reports that trtexec prints and exports after it has run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import EngineError
from noria.cli.trtexec.inference import Measured
from noria.cli.trtexec.log import Log
from noria.cli.trtexec.options import Options
from noria.cli.trtexec.statistics import Query, averages, summary, throughput, walltime_ms
from noria.engine.layers import LayerInfo, LayerTime
from noria.engine.plan import Plan
from noria.engine.store import write_atomically


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


def output_rows(outputs: Mapping[str, npt.NDArray[Any]]) -> list[dict[str, Any]]:
    """For --exportOutput. NaN and infinity, which JSON lacks, become null."""
    return [
        {"name": name, "dimensions": "x".join(map(str, array.shape)), "values": _values(array)}
        for name, array in outputs.items()
    ]


def _values(array: npt.NDArray[Any]) -> list[Any]:
    flat = array.ravel()
    if flat.dtype.kind == "f" and not np.isfinite(flat).all():
        return [v if np.isfinite(v) else None for v in flat.tolist()]
    values: list[Any] = flat.tolist()
    return values


def print_outputs(screen: Log, outputs: Mapping[str, npt.NDArray[Any]]) -> None:
    """For --dumpOutput."""
    screen.info("Output Tensors:")
    for name, array in outputs.items():
        screen.info(f"{name}: ({'x'.join(map(str, array.shape))})")
        for row in array.reshape(-1, array.shape[-1] if array.ndim else 1):
            screen.info(" ".join(f"{v:g}" for v in row.tolist()))


def layer_info(plan: Plan, layers: Sequence[LayerInfo], verbosity: str) -> dict[str, Any]:
    """For --exportLayerInfo and --dumpLayerInfo: as TensorRT's engine inspector has it.

    Args:
        verbosity: `detailed`, or `layer_names_only`.
    """
    bindings = [spec.name for spec in (*plan.inputs, *plan.outputs)]
    if verbosity not in ("detailed", "verbose"):
        return {"Layers": [layer.name for layer in layers], "Bindings": bindings}
    rows = []
    for layer in layers:
        row = asdict(layer)
        rows.append(
            {
                "Name": row["name"],
                "LayerType": row["operator"],
                "Inputs": [{"Name": name} for name in row["inputs"]],
                "Outputs": [{"Name": name} for name in row["outputs"]],
                "Dimensions": row["shape"],
                "Precision": row["precision"],
                "Parameters": row["parameters"],
            }
        )
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
    try:
        with open(path, "rb") as file:
            head = file.read(64).lstrip()
    except OSError as error:
        raise EngineError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not head.startswith((b"{", b"[")):
        raise EngineError(
            "is not a JSON file and is not overwritten", where=str(path), fix="choose another name"
        )


def export_json(path: Path, data: Any) -> None:
    """Write `data`, whole or not at all; a pipe or device gets it piece by piece.

    Raises:
        EngineError: the file cannot be written, or is not JSON, see `check_export`.
    """
    check_export(path)
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            write_atomically(Path(os.path.realpath(path)), [text.encode()])
    except OSError as error:
        raise EngineError(f"cannot be written: {error.strerror}", where=str(path)) from error
