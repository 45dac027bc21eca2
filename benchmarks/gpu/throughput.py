"""Many videos at once, from files to JSON Lines."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import headrace
from benchmarks.cores import YOLO11N
from benchmarks.gpu.clips import (
    COUNTED_FRAMES,
    COUNTS,
    DEVICE,
    PROCESSES,
    SHARED_FRAMES,
    STREAMS,
    clip,
    config,
    show,
)
from benchmarks.gpu.decoding import decoded_together
from benchmarks.gpu.engines import items_a_second, pieces_of
from benchmarks.networks import yolo11n as yolo11n_network
from headrace.cli.inputs import spec_of
from headrace.config import ModelConfig
from headrace.infer.run_options import RunOptions
from headrace.pipeline.shares import SharedRun

READER = Path(__file__).parents[2] / "examples/conveyor/config_infer_secondary_characters.txt"


def streamed(
    path: Path, streams: int, *configs: ModelConfig, tracker: str | None = None
) -> tuple[float, float, Any]:
    """Frames a second behind the first result, and CPU microseconds a frame."""
    with tempfile.TemporaryDirectory() as folder:
        with headrace.open_pipeline(
            *configs, sources=[str(path)] * streams, outputs=f"{folder}/out.jsonl",
            tracker=tracker, device="cuda",
        ) as pipeline:  # fmt: skip
            cpu = process_time()  # without the opening
            report = pipeline.run()
        cpu = process_time() - cpu
        frames = sum(s.frames for s in report.sources)
        seconds = report.seconds - (report.first_result_s or 0.0)
        return frames / seconds, cpu / frames * 1e6, report


def streams() -> None:
    rows = []
    cfg = config(batch_size=32, network_mode=2)
    for codec, numbers in (("libx264", STREAMS), ("libx265", STREAMS[1:2])):
        path = clip(codec)
        for count in numbers:
            rate, cpu, report = streamed(path, count, cfg)
            times = (
                ", ".join(f"{k} {v:.3g}" for k, v in report.to_dict()["stages"].items())
                if ("stages" in report.to_dict())
                else ""
            )
            rows.append((f"{codec} 1080p", count, rate, rate / 30, cpu, times))
    headings = ("clip", "videos", "frames/s", "streams at 30", "CPU us a frame", "seconds")
    show("streams", headings, rows)


def cascade() -> None:
    """A detector, a tracker, and two classifiers on the objects, as published figures are taken."""
    rows = []
    configs = cascade_configs()
    for codec in ("libx264", "libx265"):
        for count in STREAMS[1:2]:
            rate, cpu, report = streamed(clip(codec), count, *configs, tracker="iou")
            items = [model.inferred for model in report.models]
            row = (f"{codec} 1080p", count, rate, rate / 30, cpu, items)
            rows.append(row)
    headings = ("clip", "videos", "frames/s", "streams at 30", "CPU us a frame", "items inferred")
    show("detector, tracker, two classifiers", headings, rows)


def cascade_configs() -> list[ModelConfig]:
    """A detector and two classifiers on its objects."""
    reader = ModelConfig.load(READER)
    second = [
        reader.with_overrides(
            gie_unique_id=number, network_mode=2, custom_lib_path=None,
            parse_classifier_func_name=None, input_object_min_width=16,
            input_object_min_height=16, batch_size=32,
        )
        for number in (2, 3)
    ]  # fmt: skip
    return [config(batch_size=32, network_mode=2, gie_unique_id=1), *second]


def looped(configs: list[str], path: str, streams: int, out: str, tracker: str | None) -> Any:
    """A pipeline of videos that begin again at their end."""
    spec = spec_of([*configs, *[path] * streams], [out], tracker)
    return spec.changed(sources=tuple(source.changed(loop=True) for source in spec.sources))


def shared(
    path: Path,
    streams: int,
    processes: int,
    models: list[ModelConfig],
    *,
    frames: int,
    tracker: str | None = None,
) -> float:
    """Frames a second of a run in several processes, between 35 and 90 % of its frames.

    Before that, engines look for their kernels, which takes them seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        configs = []
        for number, cfg in enumerate(models):
            configs.append(str(home / f"model{number}.txt"))
            Path(configs[-1]).write_text(cfg.dump())
        out = f"{folder}/out.jsonl"
        make = partial(looped, configs, str(path), streams, out, tracker)
        seen: list[tuple[float, int]] = []
        run = SharedRun(
            make,
            RunOptions(device=DEVICE, limit=frames),
            processes,
            on_frames=lambda count: seen.append((perf_counter(), count)),
        )
        run.begin()
        report = run.run()
        lines = Path(out).read_bytes().count(b"\n")
        total = streams * frames
        assert lines == report.frames == total, (lines, report.frames)
        middle = [pair for pair in seen if 0.35 * total <= pair[1] <= 0.9 * total]
        (start, before), (end, after) = middle[0], middle[-1]
        return (after - before) / (end - start)


def counts() -> None:
    """The detector in four processes, by number of videos; about as many frames of each."""
    rows = []
    processes, path = 4, clip("libx264")
    for count in COUNTS:
        alone = decoded_together(path, -(-count // processes), processes)
        rate = shared(
            path,
            count,
            processes,
            [config(batch_size=32, network_mode=2)],
            frames=max(SHARED_FRAMES // 4, COUNTED_FRAMES // count),
        )
        rows.append((count, alone, rate, rate / alone, rate / count))
        print(rows[-1], flush=True)
    headings = ("videos", "decoding alone", "detector", "ratio", "frames/s of each")
    show("H.264 1080p, four processes", headings, rows)


def shares() -> None:
    """Several processes behind one command, and as many that do nothing but decode."""
    rows = []
    for codec in ("libx264", "libx265"):
        path = clip(codec)
        for processes in PROCESSES:
            for count in STREAMS:
                each = -(-count // processes)
                alone = decoded_together(path, each, processes)
                models = cascade_configs()
                rates = [
                    shared(path, count, processes, used, frames=SHARED_FRAMES, tracker=tracker)
                    for used, tracker in ((models[:1], None), (models, "iou"))
                ]
                rows.append((f"{codec} 1080p", processes, count, alone, *rates, rates[0] / alone))
                print(rows[-1], flush=True)
    headings = ("clip", "processes", "videos", "decoding alone", "detector", "cascade", "ratio")
    show("frames a second in several processes", headings, rows)


def yolo11n() -> None:
    """A network of YOLO11n's shapes: its weights are random, and nothing passes its threshold."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        yolo11n_network(Path(folder) / "yolo11n.onnx")
        (Path(folder) / "yolo11n.txt").write_text(YOLO11N)
        cfg = ModelConfig.load(Path(folder) / "yolo11n.txt").with_overrides(
            batch_size=32, network_mode=2, pre_cluster_threshold=1.0,
            parse_bbox_func_name="NvDsInferParseYoloV11",
        )  # fmt: skip
        with headrace.Inferencer.from_config(cfg, device="cuda", streams=3) as inferencer:
            pieces = pieces_of(inferencer, 32)
            alone = max(items_a_second(inferencer, pieces, lanes) for lanes in (1, 3))
        for processes in PROCESSES:
            for count in STREAMS[:1]:
                rate = shared(clip("libx264"), count, processes, [cfg], frames=SHARED_FRAMES)
                rows.append(("libx264 1080p", processes, count, alone, rate, rate / alone))
    show("YOLO11n", ("clip", "processes", "videos", "engine alone", "frames/s", "ratio"), rows)
