"""Videos, the model and the settings of the proof."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

import av
from rich.console import Console
from rich.table import Table

from benchmarks.common import data_dir
from headrace.config import ModelConfig
from headrace.media import open_source
from headrace.media.frame import Frame

DATA = data_dir()
VIDEOS = ("car-detection", "one-by-one-person-detection", "bottle-detection")
SOURCE = os.environ.get("GPU_VIDEO", VIDEOS[0])
B_FRAMES = os.environ.get("GPU_B_FRAMES")
FRAMES = 300
SECONDS = float(os.environ.get("GPU_SECONDS", "6"))
SHARED_FRAMES = int(os.environ.get("GPU_SHARED_FRAMES", "900"))
DEVICE = os.environ.get("GPU_DEVICE", "cuda")
PROCESSES = [int(n) for n in os.environ.get("GPU_PROCESSES", "1,4").split(",")]
COUNTS = [int(n) for n in os.environ.get("GPU_COUNTS", "32,64,96,128,160,192,256").split(",")]
COUNTED_FRAMES = 60_000
STREAMS = [int(n) for n in os.environ.get("GPU_STREAMS", "32,96,160").split(",")]


def model() -> Path:
    assert DATA is not None, "HEADRACE_TEST_DATA names no folder of models and videos"
    return DATA / "models" / "yolox_nano.onnx"


def video(name: str) -> Path:
    assert DATA is not None
    return DATA / "videos" / f"{name}.mp4"


def clip(
    codec: str, *, frames: int = FRAMES, pixels: str = "yuv420p", tune: str | None = None
) -> Path:
    """A video of 1920x1080 at 30 frames a second, of a real one."""
    folder = Path(os.environ.get("GPU_CLIPS") or tempfile.gettempdir())
    kind = "_".join(filter(None, [SOURCE, codec, pixels, str(frames), tune, B_FRAMES]))
    path = folder / f"{kind}.mp4"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with av.open(str(video(SOURCE))) as source, av.open(f"{path}.part", "w", "mp4") as out:
        stream = out.add_stream(codec, rate=30, width=1920, height=1080, pix_fmt=pixels)
        more = {"tune": tune, "bf": B_FRAMES}
        stream.options = {"preset": "veryfast", "crf": "26"} | {k: v for k, v in more.items() if v}
        images = cycle(list(source.decode(video=0)))
        for number, image in zip(range(frames), images, strict=False):
            big = image.reformat(width=1920, height=1080, format=pixels)
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


def images(path: Path, count: int) -> Iterator[Frame]:
    with open_source(str(path), gpu=0) as source:
        for number, frame in enumerate(source):
            if number == count:
                return
            yield frame
