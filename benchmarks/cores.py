"""What more cores give: `python -m benchmarks.cores [batch] [precisions]`, two Markdown tables.

`batch`: `headrace batch` with YOLOX-nano over 30 s videos, so many videos for each core, on the
first 1, 2, 4, … cores of this machine. `precisions`: `headrace build --tune` in FP32, BF16 and
INT8. HEADRACE_TEST_DATA names the folder of models and videos. CORES_SECONDS (20) is the time of a
tuning, CORES_VIDEOS (4) the number of videos for each core, CORES_ROUNDS (2) how often each is run,
CORES_COUNTS (1,2,4,…) the numbers of cores; the first is the reference. CORES_MODEL=demo takes the
detector of the demo and its video of 10 s instead, which need no data.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, data_dir
from benchmarks.networks import yolo11n
from headrace.engine.machine import this_machine

DEMO = os.environ.get("CORES_MODEL") == "demo"
SCENE = ROOT / "examples" / ("conveyor" if DEMO else "yolox")
VIDEO, FRAMES = ("conveyor.mp4", 250) if DEMO else ("car-detection.mp4", 377)
VIDEOS, ROUNDS = (int(os.environ.get(f"CORES_{k}", n)) for k, n in (("VIDEOS", 4), ("ROUNDS", 2)))
COUNTS = [int(n) for n in os.environ.get("CORES_COUNTS", "1,2,4,8,16,32,64").split(",")]
SECONDS = os.environ.get("CORES_SECONDS", "20")
PRECISIONS = ("fp32", "bf16", "int8")
YOLO11N = """[property]
onnx-file=yolo11n.onnx
net-scale-factor=0.0039215697906911373
num-detected-classes=80
maintain-aspect-ratio=1
symmetric-padding=1
batch-size=1
"""


def main(parts: Sequence[str]) -> None:
    """Print the tables of the parts named, or of all."""
    cores = sorted(os.sched_getaffinity(0))
    physical = {_siblings(core) for core in cores}
    print(f"{this_machine()}; {len(cores)} processors of {len(physical)} cores\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(SCENE, folder / "scene", ignore=shutil.ignore_patterns("*.engine"))
        video = SCENE / VIDEO
        if not DEMO:
            data = data_dir()
            assert data is not None, "HEADRACE_TEST_DATA names no folder of models and videos"
            shutil.copy(data / "models" / "yolox_nano.onnx", folder / "scene")
            video = data / "videos" / VIDEO
        if not parts or "batch" in parts:
            batch_table(folder, video, cores)
        if not parts or "precisions" in parts:
            precision_table(folder, video, len(cores))


def _siblings(core: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    return path.read_text().strip() if path.exists() else str(core)


def batch_table(folder: Path, video: Path, cores: Sequence[int]) -> None:
    """Frames a second of the whole, and of the engine alone, by the number of cores."""
    config = folder / "scene" / "config_infer_primary.txt"
    _headrace(["build", str(config), "--backend", "onnxruntime"], cores)
    counts = [n for n in COUNTS if n <= len(cores)]
    rates: dict[int, list[float]] = {n: [] for n in counts}
    alone: dict[int, list[float]] = {n: [] for n in counts}
    for turn in range(ROUNDS):
        for n in counts if turn % 2 == 0 else counts[::-1]:
            videos = folder / f"videos{n}"
            videos.mkdir(exist_ok=True)
            for number in range(n * VIDEOS):
                link = videos / f"{number:03}.mp4"
                if not link.is_symlink():
                    link.symlink_to(video)
            out = folder / f"out{n}_{turn}"
            words = ["batch", str(config), str(videos), "-o", str(out), "--workers", str(n),
                     "--threads", "1", "--device", "cpu", "--json"]  # fmt: skip
            done = json.loads(_headrace(words, cores[:n]))
            assert done["frames"] == n * VIDEOS * FRAMES, done
            rates[n].append(done["fps"])
            alone[n].append(_engine_alone(folder / "scene", cores[:n]))
    print("| cores | frames/s | per core | of one core's | engine alone, items/s | of one's "
          "| core hours per million frames |\n|---|---|---|---|---|---|---|")  # fmt: skip
    one, engine = (statistics.median(found[counts[0]]) for found in (rates, alone))
    for n in counts:
        fps, items = (statistics.median(found[n]) for found in (rates, alone))
        hours = 1e6 / (fps / n) / 3600
        print(f"| {n} | {fps:.1f} | {fps / n:.1f} | {fps / n / one:.1%} | {items:.1f} "
              f"| {items / n / engine:.1%} | {hours:.2f} |", flush=True)  # fmt: skip
    print()


def _engine_alone(folder: Path, cores: Sequence[int]) -> float:
    """Items a second of the engine with nothing around it, one session of one thread a core."""
    (engine,) = folder.glob("*.engine")
    code = (
        "import sys;from headrace.batches.placement import engine_rate;from headrace.engine "
        "import Plan;"
        "print(engine_rate(Plan.load(sys.argv[1]), int(sys.argv[2]), 1, window_s=4.0))"
    )
    words = [sys.executable, "-c", code, str(engine), str(len(cores))]
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, preexec_fn=_bound_to(cores)
    )
    return float(done.stdout)


def precision_table(folder: Path, video: Path, cores: int) -> None:
    """Items a second of `headrace build --tune`, by model and precision."""
    (folder / "yolo11n").mkdir()
    yolo11n(folder / "yolo11n" / "yolo11n.onnx")
    (folder / "yolo11n" / "config_infer_primary.txt").write_text(YOLO11N)
    print("| model | precision | the fastest way | items/s | per core | of FP32's |")
    print("|---|---|---|---|---|---|")
    for name, shown in (("scene", "the model"), ("yolo11n", "YOLO11n's shapes")):
        config = folder / name / "config_infer_primary.txt"
        table = folder / name / "table.calib"
        _headrace(["calibrate", str(config), "--video", str(video), "--frames", "40", "--cache",
                str(table), "--scales-only"])  # fmt: skip
        first = 0.0
        for precision in PRECISIONS:
            words = ["build", str(config), "--precision", precision, "--tune", SECONDS, "--rebuild",
                     "--set", f"int8-calib-file={table}", "--json"]  # fmt: skip
            found = json.loads(_headrace(words))
            best = _chosen(found["tactics"])
            rate = best.get("items_per_s", 0.0)
            first = first or rate
            shown_rate = f"{rate:.1f} | {rate / cores:.1f} | {rate / first:.2f}"
            kept = "" if found["precision"] == precision else f" ({found['precision']})"
            row = f"| {shown} | {precision}{kept} | {best.get('tactic', 'none')} | {shown_rate} |"
            print(row, flush=True)


def _chosen(tactics: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next((one for one in tactics if one["chosen"]), {})


def _headrace(words: Sequence[str], cores: Sequence[int] | None = None) -> str:
    """The output of a command, run on some cores only."""
    bound = None if cores is None else _bound_to(cores)
    done = subprocess.run(
        [sys.executable, "-m", "headrace", *words], capture_output=True, text=True, preexec_fn=bound
    )
    if done.returncode:
        sys.exit(f"headrace {' '.join(words)}: {done.stderr}{done.stdout}")
    return done.stdout


def _bound_to(cores: Sequence[int]) -> Callable[[], None]:
    return lambda: os.sched_setaffinity(0, cores)


if __name__ == "__main__":
    main(sys.argv[1:])
