"""The proof on an NVIDIA GPU: `python -m benchmarks.gpu [PART …]`, or all parts.

It needs a GPU, onnxruntime-gpu, and the folder of real models and films (NORIA_TEST_DATA). Clips of
1920x1080 are made of one of the films, and kept in GPU_CLIPS if that names a folder; GPU_FILM is
that film, GPU_B_FRAMES how many B frames in a row they have. How many pictures the video unit
decodes a second depends on both. Parts:

  tensors     surfaces scaled on the GPU, against the same pictures copied to the host
  boxes       three films on the CPU and on the GPU, FP32 and FP16
  decode      frames a second that the video unit decodes, and nothing else
  engine      items a second of the engine alone
  graphs      a run as a CUDA graph, and without: outputs, time, processor
  streams     the whole: YOLOX-nano, FP16, N films at once, JSON Lines out
  cascade     the same with a tracker and two classifiers on the objects
  shares      both in several processes (GPU_PROCESSES), beside decoding alone in as many; on
              several GPUs where GPU_DEVICE names them (cuda:0,cuda:1)
  yolo11n     a network of its shapes in several processes, beside its engine alone
  rtsp        64 streams from a server on this machine for GPU_RTSP_SECONDS
  latency     one stream: from a picture's packet to its metadata
  memory      100,000 frames, and sources opened and closed
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
from itertools import cycle, pairwise
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import av
import numpy as np
from rich.console import Console
from rich.table import Table

import noria
from benchmarks.common import data_dir, require_device
from benchmarks.cores import YOLO11N
from benchmarks.networks import yolo11n as yolo11n_network
from benchmarks.rtsp_server import shown
from noria.cli.run import spec_of
from noria.config import ModelConfig
from noria.engine.tuning.tactic import Tactic
from noria.infer.gpu.scaler import GpuScaler
from noria.infer.items import FramePiece
from noria.infer.preprocess import Preprocessor
from noria.media import open_source
from noria.media.frame import Frame
from noria.media.sources.decoded import gpu_decoding
from noria.model.planning import load_or_build
from noria.pipeline.assembly import AssemblyOptions, assemble
from noria.pipeline.shares import SharedRun

DATA = data_dir()
FILMS = ("car-detection", "one-by-one-person-detection", "bottle-detection")
SOURCE = os.environ.get("GPU_FILM", FILMS[0])
B_FRAMES = os.environ.get("GPU_B_FRAMES")
READER = Path(__file__).parents[1] / "examples/conveyor/config_infer_secondary_characters.txt"
FRAMES = 300
SECONDS = float(os.environ.get("GPU_SECONDS", "6"))
PATIENCE_S = 120.0  # more than a process that decodes takes to begin
SHARED_FRAMES = int(os.environ.get("GPU_SHARED_FRAMES", "900"))
DEVICE = os.environ.get("GPU_DEVICE", "cuda")
PROCESSES = [int(n) for n in os.environ.get("GPU_PROCESSES", "1,4").split(",")]
STREAMS = [int(n) for n in os.environ.get("GPU_STREAMS", "32,96,160").split(",")]


def model() -> Path:
    assert DATA is not None, "NORIA_TEST_DATA names no folder of models and films"
    return DATA / "models" / "yolox_nano.onnx"


def film(name: str) -> Path:
    assert DATA is not None
    return DATA / "videos" / f"{name}.mp4"


def clip(
    codec: str, *, frames: int = FRAMES, pixels: str = "yuv420p", tune: str | None = None
) -> Path:
    """A film of 1920x1080 at 30 frames a second, of a real one."""
    folder = Path(os.environ.get("GPU_CLIPS") or tempfile.gettempdir())
    kind = "_".join(filter(None, [SOURCE, codec, pixels, str(frames), tune, B_FRAMES]))
    path = folder / f"{kind}.mp4"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with av.open(str(film(SOURCE))) as source, av.open(f"{path}.part", "w", "mp4") as out:
        stream = out.add_stream(codec, rate=30, width=1920, height=1080, pix_fmt=pixels)
        more = {"tune": tune, "bf": B_FRAMES}
        stream.options = {"preset": "veryfast", "crf": "26"} | {k: v for k, v in more.items() if v}
        pictures = cycle(list(source.decode(video=0)))
        for number, picture in zip(range(frames), pictures, strict=False):
            big = picture.reformat(width=1920, height=1080, format=pixels)
            big.pts, big.time_base = number, Fraction(1, 30)
            out.mux(stream.encode(big))
        out.mux(stream.encode(None))
    Path(f"{path}.part").rename(path)
    return path


def config(**keys: Any) -> ModelConfig:
    return ModelConfig.load(model()).with_overrides(**keys)


def show(title: str, headings: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for row in rows:
        table.add_row(*(f"{v:,.4g}" if isinstance(v, float) else str(v) for v in row))
    Console(width=140).print(table)


def pictures(path: Path, count: int) -> Iterator[Frame]:
    with open_source(str(path), gpu=0) as source:
        for number, frame in enumerate(source):
            if number == count:
                return
            yield frame


def tensors() -> None:
    """Bits of surfaces against bits of the same pictures on the host."""
    rows = []
    clips = [film(name) for name in FILMS]
    clips += [clip("libx264"), clip("libx265"), clip("libx265", pixels="yuv420p10le", frames=30)]
    for path in clips:
        there = same = worst = 0
        for frame in pictures(path, 30):
            there += frame.on_device is not None
            for filter in (0, 1, 2, 3, 4):
                for profile in ("nvinfer", "modern"):
                    pre = Preprocessor(
                        416, 416, scale=1 / 255, maintain_aspect_ratio=True,
                        scaling_filter=filter, profile=profile,  # type: ignore[arg-type]
                    )  # fmt: skip
                    placed = pre.place(frame)
                    piece = FramePiece(frame, placed.src, placed.dst, whole=True)
                    got = GpuScaler(pre)([piece], 1).numpy()
                    out = pre.empty(1)
                    host = Frame(
                        tuple(frame.planes), frame.format, frame.width, frame.height, frame.color
                    )
                    pre.write(host, placed.src, placed.dst, out)
                    same += got.tobytes() == out.tobytes()
                    worst = max(worst, float(np.abs(got - out).max()))
        rows.append((path.name, there, same, worst))
    show("tensors", ("film", "on the GPU, of 30", "equal, of 300", "largest difference"), rows)


def found(path: Path, device: str, mode: int) -> list[Any]:
    cfg = config(batch_size=8, network_mode=mode)
    with noria.open_pipeline(cfg, sources=str(path), device=device) as pipeline:
        return [meta.objects for _, meta in pipeline]


def boxes() -> None:
    """Boxes of the GPU against those of the CPU, frame by frame."""
    rows = []
    for name in FILMS:
        wanted = found(film(name), "cpu", 0)
        for mode, precision in ((0, "FP32"), (2, "FP16")):
            got = found(film(name), "cuda", mode)
            equal = both = 0
            least, drift = 1.0, 0.0
            for mine, known in zip(got, wanted, strict=True):
                equal += len(mine) == len(known)
                for i, rect in enumerate(known.rects):
                    overlaps = [_iou(rect, other) for other in mine.rects]
                    best = int(np.argmax(overlaps)) if overlaps else -1
                    if best >= 0 and overlaps[best] > 0.5:
                        both += 1
                        least = min(least, overlaps[best])
                        score = abs(float(known.confidences[i]) - float(mine.confidences[best]))
                        drift = max(drift, score)
            total = sum(len(o) for o in wanted)
            there = sum(len(o) for o in got)
            rows.append(
                (f"{name} {precision}", len(wanted), equal, total, there, both, least, drift)
            )
    headings = ("film", "frames", "same count", "CPU's", "GPU's", "matched", "least IoU", "score")
    show("boxes", headings, rows)


def _iou(a: Any, b: Any) -> float:
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return float(both / max(a[2] * a[3] + b[2] * b[3] - both, 1e-9))


def decoded(path: Path, streams: int, ready: Callable[[], object] = lambda: None) -> float:
    """Frames a second of `streams` decoders of a film again and again, each in a thread.

    `ready` is called when all have begun, before anything is measured.
    """
    counts = [0] * streams
    go, stop = threading.Event(), threading.Event()

    def work(place: int) -> None:
        with av.open(str(path), **gpu_decoding()) as container:
            context = container.streams.video[0].codec_context
            context.thread_count = 1
            while True:
                for _ in container.decode(video=0):
                    counts[place] += 1
                    if stop.is_set():
                        return
                container.seek(0)
                context.flush_buffers()

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(streams)]
    for thread in threads:
        thread.start()
    while min(counts) < 3:
        if not all(thread.is_alive() for thread in threads):
            raise RuntimeError(f"{path.name}: a decoder failed before its third picture")
        sleep(0.01)
    ready()
    start, before = perf_counter(), sum(counts)
    go.wait(SECONDS)
    rate = (sum(counts) - before) / (perf_counter() - start)
    stop.set()
    for thread in threads:
        thread.join(20)
    return rate


def decoded_together(path: Path, streams: int, processes: int) -> float:
    """Frames a second of `decoded` in several processes, which measure at the same time."""
    spawn = multiprocessing.get_context("spawn")
    workers, pipes = [], []
    try:
        for _ in range(processes):
            pipe, theirs = spawn.Pipe()
            worker = spawn.Process(target=_decode_in_step, args=(theirs, path, streams))
            worker.start()
            theirs.close()  # a pipe ends with its process
            workers.append(worker)
            pipes.append(pipe)
        _answers(workers, pipes)
        for pipe in pipes:
            with suppress(ConnectionError):  # who has ended is told below
                pipe.send("go")
        return sum(_answers(workers, pipes))
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _decode_in_step(pipe: Any, path: Path, streams: int) -> None:
    def ready() -> None:
        pipe.send(0.0)
        pipe.recv()

    pipe.send(decoded(path, streams, ready))


def _answers(workers: list[Any], pipes: list[Any]) -> list[float]:
    """What each process says next; the run ends if one has ended, or says nothing."""
    answers: list[float] = []
    until = perf_counter() + SECONDS + PATIENCE_S
    for worker, pipe in zip(workers, pipes, strict=True):
        place = f"decoding process {len(answers) + 1} of {len(workers)}"
        try:
            if not pipe.poll(max(0.0, until - perf_counter())):
                sys.exit(f"{place} did not answer within {SECONDS + PATIENCE_S:g} s")
            answers.append(pipe.recv())
        except (EOFError, ConnectionError):
            worker.join()
            sys.exit(f"{place} ended with exit status {worker.exitcode} before it answered")
    return answers


def decode() -> None:
    rows = []
    for codec, numbers in (("libx264", (1, *STREAMS)), ("libx265", STREAMS[:1])):
        for streams in numbers:
            rows.append((f"{codec} 1080p", streams, decoded(clip(codec), streams)))
    show("decode", ("clip", "streams", "frames/s"), rows)


def engine() -> None:
    rows = []
    for mode, precision in ((0, "FP32"), (2, "FP16")):
        cfg = config(batch_size=32, network_mode=mode)
        with noria.Inferencer.from_config(cfg, device="cuda", streams=3) as inferencer:
            pieces = _pieces(inferencer, 32)
            for lanes in (1, 3):
                rows.append((f"YOLOX-nano {precision}", lanes, _rate(inferencer, pieces, lanes)))
            scaler = inferencer.model.gpu_scaler
            assert scaler is not None
            start = perf_counter()
            for _ in range(50):
                scaler(pieces, 32)
            rows.append(("scaling alone, 32 frames", 1, 1600 / (perf_counter() - start)))
    show("engine", ("model", "lanes", "items/s"), rows)


def graphs() -> None:
    """One lane, tensors on the GPU from the scaler on, outputs on the host."""
    rows = []
    for items in (1, 8, 32):
        expected: dict[str, Any] = {}
        for graph in (0, 1):
            with (
                _one_lane(items, graph) as cfg,
                noria.Inferencer.from_config(cfg, device="cuda") as inferencer,
            ):
                scaler, session = inferencer.model.gpu_scaler, inferencer.session
                assert scaler is not None
                assert session.options.graph == bool(graph)
                feeds = {inferencer.model.input_name: scaler(_pieces(inferencer, items), items)}
                outputs = session.run(feeds)
                expected = expected or outputs
                off = max(float(np.abs(outputs[k] - v).max()) for k, v in expected.items())
                took, cpu = [], process_time()
                for _ in range(500):
                    start = perf_counter()
                    session.run(feeds)
                    took.append(perf_counter() - start)
                cpu = (process_time() - cpu) / len(took)
            rows.append((items, graph, off, statistics.median(took) * 1e3, cpu * 1e3))
    show("graphs", ("items", "graph", "largest difference", "ms a run", "CPU ms a run"), rows)


@contextmanager
def _one_lane(items: int, graph: int) -> Iterator[ModelConfig]:
    """A config whose engine has one lane, in a folder of its own: none is left beside the model."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(model(), folder))
        cfg = ModelConfig.load(copy).with_overrides(batch_size=items, network_mode=2)
        tactic = Tactic.parse(f"onnxruntime-cuda:streams=1,graph={graph}")
        load_or_build(cfg, tactic=tactic, device="cuda", dynamic_batch=items > 1)
        yield cfg


def _pieces(inferencer: noria.Inferencer, count: int) -> list[FramePiece]:
    pre = inferencer.model.preprocessor
    assert pre is not None
    frames = list(pictures(clip("libx264"), count))
    placed = [pre.place(frame) for frame in frames]
    return [FramePiece(f, p.src, p.dst, whole=True) for f, p in zip(frames, placed, strict=True)]


def _rate(inferencer: noria.Inferencer, pieces: list[FramePiece], lanes: int) -> float:
    """Items a second of the engine, each lane with one tensor of its own."""
    scaler, session = inferencer.model.gpu_scaler, inferencer.session
    assert scaler is not None

    def work(_: int) -> float:
        feeds = {inferencer.model.input_name: scaler(pieces, len(pieces))}
        for _ in range(5):
            session.run(feeds)
        start, count = perf_counter(), 0
        while perf_counter() - start < SECONDS / 2:
            session.run(feeds)
            count += len(pieces)
        return count / (perf_counter() - start)

    with ThreadPoolExecutor(lanes) as pool:
        return sum(pool.map(work, range(lanes)))


def streamed(
    path: Path, streams: int, *configs: ModelConfig, tracker: str | None = None
) -> tuple[float, float, Any]:
    """Frames a second behind the first result, and CPU microseconds a frame."""
    with tempfile.TemporaryDirectory() as folder:
        with noria.open_pipeline(
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
    headings = ("clip", "films", "frames/s", "streams at 30", "CPU us a frame", "seconds")
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
    headings = ("clip", "films", "frames/s", "streams at 30", "CPU us a frame", "items inferred")
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
    """A pipeline of films that begin again at their end."""
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
            AssemblyOptions(device=DEVICE, limit=frames),
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
    headings = ("clip", "processes", "films", "decoding alone", "detector", "cascade", "ratio")
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
        with noria.Inferencer.from_config(cfg, device="cuda", streams=3) as inferencer:
            pieces = _pieces(inferencer, 32)
            alone = max(_rate(inferencer, pieces, lanes) for lanes in (1, 3))
        for processes in PROCESSES:
            for count in STREAMS[:1]:
                rate = shared(clip("libx264"), count, processes, [cfg], frames=SHARED_FRAMES)
                rows.append(("libx264 1080p", processes, count, alone, rate, rate / alone))
    show("YOLO11n", ("clip", "processes", "films", "engine alone", "frames/s", "ratio"), rows)


def rtsp() -> None:
    """Streams of 30 frames a second over loopback, in several processes: none may stall."""
    seconds, count = float(os.environ.get("GPU_RTSP_SECONDS", "600")), 64
    rows = []
    for processes in PROCESSES:
        with (
            shown(clip("libx264", tune="zerolatency")) as url,
            tempfile.TemporaryDirectory() as name,
        ):
            file, out = Path(name) / "model.txt", Path(name) / "out.jsonl"
            file.write_text(config(batch_size=32, network_mode=2).dump())
            seen: list[float] = []
            run = SharedRun(
                partial(spec_of, [str(file), *[url] * count], [str(out)], None),
                AssemblyOptions(device=DEVICE, limit=int(30 * seconds)),
                processes,
                on_frames=lambda _, seen=seen: seen.append(perf_counter()),
            )
            run.begin()
            started = perf_counter()
            report = run.run()
            taken = perf_counter() - started
            given = [source.frames - source.dropped for source in report.sources]
            assert out.read_bytes().count(b"\n") == sum(given)
        again = sum(source.reconnects for source in report.sources)
        row = (
            processes, count, taken, report.frames / count / taken, min(given),
            max(given), report.dropped_frames, again,
            max(b - a for a, b in pairwise(seen)),
        )  # fmt: skip
        rows.append(row)
    headings = (
        "processes", "streams", "seconds", "frames/s of each", "least lines", "most", "dropped",
        "reconnects", "longest pause of all, s",
    )  # fmt: skip
    show("RTSP", headings, rows)


def latency() -> None:
    """From the packet of a picture to its metadata; a camera's stream has no B frames."""
    rows = []
    for graph in (0, 1):
        with _one_lane(1, graph) as cfg:
            took = sorted(_latencies(cfg)[30:])
        times = [1e3 * took[round((len(took) - 1) * part)] for part in (0.5, 0.9, 0.99, 1)]
        rows.append((graph, len(took), *times))
    show("latency", ("graph", "frames", "median ms", "90 %", "99 %", "longest"), rows)


def _latencies(cfg: ModelConfig) -> list[float]:
    handed: dict[int, float] = {}
    took: list[float] = []
    warm = threading.Event()
    source = open_source(str(clip("libx264", tune="zerolatency")), gpu=0)
    source.live = True  # as a camera's: nothing is held back for throughput
    read = source._decode  # type: ignore[attr-defined]

    def timed(context: Any, packets: Any) -> Any:
        def paced() -> Iterator[Any]:
            for number, packet in enumerate(packets):
                if number == 10:
                    warm.wait(60)  # the engine's first run looks for algorithms
                sleep(1 / 60)
                if packet.pts is not None:
                    handed[round(packet.pts * packet.time_base * 1_000_000_000)] = perf_counter()
                yield packet

        return read(context, paced())

    source._decode = timed  # type: ignore[attr-defined]

    def result(meta: Any) -> None:
        warm.set()
        if meta.pts_ns in handed:
            took.append(perf_counter() - handed[meta.pts_ns])

    noria.open_pipeline(cfg, sources=source, on_result=result, device="cuda").run()
    return took


def memory() -> None:
    import subprocess

    def used() -> tuple[float, float]:
        text = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096 / 1e6, float(text.split()[0])

    rows = [("start", *used())]
    total = int(os.environ.get("GPU_MEMORY_FRAMES", "100000"))
    seen = 0

    def result(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen % (total // 10) == 0:
            rows.append((f"{seen:,} frames", *used()))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.txt"
        file.write_text(config(batch_size=32, network_mode=2).dump())
        spec = looped([str(file)], str(clip("libx264")), 32, f"{folder}/out.jsonl", None)
        options = AssemblyOptions(device="cuda", limit=total // 32)
        made = assemble(spec, options, on_result=result)
        made.pipeline.run()
        made.close()
    for number in range(int(os.environ.get("GPU_MEMORY_SOURCES", "500"))):
        list(pictures(clip("libx264"), 2))
        if number % 100 == 99:
            rows.append((f"{number + 1} sources", *used()))
    show("memory", ("after", "RSS MB", "GPU MB"), rows)


PARTS = {
    f.__name__: f
    for f in (
        tensors, boxes, decode, engine, graphs, streams, cascade, shares, yolo11n, rtsp, latency,
        memory,
    )
}  # fmt: skip


def report() -> None:
    names = (sys.argv[1:] if sys.argv[0].endswith("gpu.py") else []) or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"benchmarks.gpu has no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    require_device("cuda", "benchmarks.gpu")
    if DATA is None:
        sys.exit("NORIA_TEST_DATA names no folder of models and films; expected one with models/")
    for name in names:
        start = perf_counter()
        PARTS[name]()
        print(f"{name}: {perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    report()
