"""The same content by application config, pipeline file and GStreamer: files, tiles, recordings."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import headrace
from headrace.config import load_pipeline
from tests.gstreamer.conftest import SCENE, Run, video
from tests.gstreamer.elements.test_elements_pairs import FRAMES, Frames, frames_of_roads, renamed
from tests.gstreamer.elements.test_recorder import SOURCE, Recorded

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
SIZE = (640, 384)
OBJECTS = """[property]
enable=1
target-unique-ids=2
process-on-frame=0
operate-on-gie-id=1
network-input-order=0
processing-width=128
processing-height=96
network-input-shape=16;1;96;128
network-color-format=2
tensor-data-type=0
tensor-name=parcel
maintain-aspect-ratio=0
scaling-filter=1
custom-lib-path=libcustom2d_preprocess.so
custom-tensor-preparation-function=CustomTensorPreparation
[user-configs]
pixel-normalization-factor=0.00392156862745098
[group-0]
src-ids=-1
process-on-all-objects=1
input-object-min-width=60
input-object-min-height=40
"""


def other_video(path: Path) -> Path:
    """The scene from its 40th frame on: other content of the same size."""
    with av.open(str(SCENE / "conveyor.mp4")) as source, av.open(str(path), "w") as target:
        stream = source.streams.video[0]
        out = target.add_stream("libx264", rate=int(stream.average_rate or 30))
        out.width, out.height, out.pix_fmt = stream.width, stream.height, "yuv420p"
        out.options = {"crf": "12", "bf": "0"}
        for frame in islice(source.decode(stream), 40, 60):
            copy = av.VideoFrame.from_ndarray(frame.to_ndarray(format="rgb24"))
            target.mux(out.encode(copy))
        target.mux(out.encode(None))
    return path


def images(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [f.to_ndarray(format="gray") for f in container.decode(video=0)]


def differ(one: Sequence[np.ndarray], two: Sequence[np.ndarray]) -> float:
    """The largest mean difference of two images of a pair, in levels."""
    pairs = zip(one, two, strict=True)
    return max(float(np.abs(a.astype(int) - b.astype(int)).mean()) for a, b in pairs)


def app_file(folder: Path, detector: Path, second: Path, keys: str) -> Path:
    path = folder / "app.txt"
    path.write_text(
        f"[source0]\nenable=1\ntype=2\nuri=file://{SCENE}/conveyor.mp4\n"
        f"[source1]\nenable=1\ntype=2\nuri=file://{second}\n"
        f"[streammux]\nbatch-size=2\nwidth={SIZE[0]}\nheight={SIZE[1]}\n"
        f"[primary-gie]\nenable=1\ngie-unique-id=1\nconfig-file={detector}\n"
        f"[osd]\nenable=1\ndisplay-text=0\nborder-width=3\n{keys}"
    )
    (folder / "pipeline.yml").write_text(load_pipeline(path).dump())
    return path


def run_of(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run a pipeline in a folder of its own, where its files go."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    headrace.open_pipeline(path, limit=FRAMES, device="cpu", palette="config").run()
    return folder


HEAD = (
    "! m.sink_0 nvstreammux name=m batch-size=2 batched-push-timeout=2000000 "
    f"width={SIZE[0]} height={SIZE[1]} ! nvinfer config-file-path={{detector}} ! "
)


def head(detector: Path, second: Path) -> tuple[str, str]:
    some = f"! identity eos-after={FRAMES + 4} "
    first = video(None) + some + HEAD.format(detector=detector)
    more = f" filesrc location={second} ! qtdemux ! h264parse ! nvv4l2decoder {some}! m.sink_1 "
    return first, more


@pytest.mark.slow
def test_a_mosaic_is_the_same_picture(
    play: Run, detector: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # outputs of the pipeline file are named from here
    second = other_video(tmp_path / "other.mp4")
    keys = "[tiled-display]\nenable=1\nrows=1\ncolumns=2\nwidth=640\nheight=192\n"
    keys += "[sink0]\nenable=1\ntype=3\noutput-file=o.mp4\nbitrate=8000000\n"
    app = app_file(tmp_path, detector, second, keys)
    one = run_of(app, tmp_path / "a", monkeypatch)
    run_of(tmp_path / "pipeline.yml", tmp_path / "b", monkeypatch)
    first, more = head(detector, second)
    ran = play(
        f"{first} nvmultistreamtiler rows=1 columns=2 width=640 height=192 ! nvvideoconvert ! "
        f"nvdsosd display-text=0 ! nvvideoencfilesinkbin bitrate=8000000 "
        f"output-file={tmp_path}/elements.mp4 {more}"
    )
    assert ran.errors == []
    wanted = images(one / "o.mp4")
    assert len(wanted) == FRAMES
    assert differ(wanted, images(tmp_path / "o.mp4")) == 0
    assert wanted[0].shape == (192, 640)
    left, right = np.hsplit(wanted[5].astype(int), 2)
    assert np.abs(left - right).mean() > 2
    assert differ(wanted, images(tmp_path / "elements.mp4")[:FRAMES]) < 2


@pytest.mark.slow
def test_two_sinks_get_their_sources(
    play: Run, detector: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # outputs of the pipeline file are named from here
    second = other_video(tmp_path / "other.mp4")
    keys = "".join(
        f"[sink{n}]\nenable=1\ntype=3\noutput-file=o{n}.mp4\nsource-id={n}\nbitrate=8000000\n"
        for n in range(2)
    )
    app = app_file(tmp_path, detector, second, keys)
    one = run_of(app, tmp_path / "a", monkeypatch)
    run_of(tmp_path / "pipeline.yml", tmp_path / "b", monkeypatch)
    first, more = head(detector, second)
    outs = "".join(
        f"d.src_{n} ! queue ! nvvideoconvert ! nvdsosd display-text=0 ! nvvideoencfilesinkbin "
        f"bitrate=8000000 output-file={tmp_path}/elements{n}.mp4 "
        for n in range(2)
    )
    ran = play(f"{first} nvstreamdemux name=d {outs} {more}")
    assert ran.errors == []
    for n in range(2):
        wanted = images(one / f"o{n}.mp4")
        assert len(wanted) == FRAMES
        assert differ(wanted, images(tmp_path / f"o{n}.mp4")) == 0
        assert differ(wanted, images(tmp_path / f"elements{n}.mp4")[:FRAMES]) < 2
    assert differ(images(one / "o0.mp4"), images(one / "o1.mp4")) > 2


@pytest.mark.slow
def test_dumps_hold_what_the_elements_found(
    play: Run, detector: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # outputs of the pipeline file are named from here
    second = other_video(tmp_path / "other.mp4")
    keys = "[application]\ngie-kitti-output-dir={0}/boxes\nkitti-track-output-dir={0}/tracks\n"
    keys += "[tracker]\nenable=1\n"
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, road in zip(folders, ("app.txt", "pipeline.yml"), strict=True):
        app_file(tmp_path, detector, second, keys.format(folder))
        run_of(tmp_path / road, folder, monkeypatch)
    files = [
        {p.relative_to(folder): p.read_text() for p in folder.rglob("*.txt")} for folder in folders
    ]
    assert files[0] == files[1]
    assert len(files[0]) == 2 * 2 * FRAMES
    seen: dict[str, list[str]] = {}

    def note(buffer: Any) -> None:
        frames = Frames()
        frames.of_elements(buffer)
        for (source, number), rows in frames.objects.items():
            texts = [f"{r[0]} {' '.join(f'{v:.6f}' for v in corners(r[2]))}" for r in rows]
            seen[f"00_{source:03d}_{number:06d}.txt"] = sorted(texts)

    first, more = head(detector, second)
    ran = play(f"{first} nvvideoconvert ! nvdsosd name=end ! fakesink {more}", end=note)
    assert ran.errors == []
    for path, text in files[0].items():
        if path.parts[0] != "boxes":
            continue
        lines = [line.split(" ") for line in text.splitlines()]
        assert all(len(words) == 16 for words in lines)
        rows = sorted(f"{words[0]} {' '.join(words[4:8])}" for words in lines)
        wanted = seen[path.name]
        assert [r.split(" ")[0] for r in rows] == [w.split(" ")[0] for w in wanted]
        numbers = [[float(v) for v in r.split(" ")[1:]] for r in rows]
        others = [[float(v) for v in w.split(" ")[1:]] for w in wanted]
        assert np.allclose(numbers, others, atol=0.005)


def corners(box: tuple[float, ...]) -> tuple[float, ...]:
    left, top, width, height = box
    return left, top, left + width, top + height


@pytest.mark.slow
def test_a_reader_takes_prepared_objects(play: Run, detector: Path, tmp_path: Path) -> None:
    for path in SCENE.iterdir():
        if path.is_file() and path.suffix in (".txt", ".onnx", ".py"):
            shutil.copy(path, tmp_path)
    reader, rules = tmp_path / "config_infer_secondary_characters.txt", tmp_path / "objects.txt"
    rules.write_text(OBJECTS)
    app = tmp_path / "app.txt"
    app.write_text(
        f"[source0]\nenable=1\ntype=2\nuri=file://{SCENE}/conveyor.mp4\n"
        "[streammux]\nbatch-size=1\nwidth=1280\nheight=768\n"
        f"[primary-gie]\nenable=1\ngie-unique-id=1\nconfig-file={detector}\n[tracker]\nenable=1\n"
        "[secondary-gie0]\nenable=1\ngie-unique-id=2\noperate-on-gie-id=1\nbatch-size=16\n"
        f"config-file={reader}\ninput-tensor-meta=1\n"
        f"[secondary-pre-process0]\nenable=1\nconfig-file={rules}\n"
    )
    roads = frames_of_roads(app)
    elements = Frames()
    ran = play(
        video(FRAMES + 4) + "! m.sink_0 nvstreammux name=m batch-size=1 width=1280 height=768 ! "
        f"nvinfer config-file-path={detector} ! nvtracker ! nvdspreprocess config-file={rules} ! "
        f"nvinfer config-file-path={reader} batch-size=16 input-tensor-meta=1 ! nvvideoconvert ! "
        "nvdsosd name=end ! fakesink",
        end=elements.of_elements,
    )
    assert ran.errors == []
    one, two, three = (renamed(frames) for frames in (*roads, elements))
    assert one == two
    for key, rows in one.items():
        assert [(r[0], r[1], r[3]) for r in rows] == [(r[0], r[1], r[3]) for r in three[key]], key
    assert any(row[3] for rows in one.values() for row in rows)


def packets(path: Path) -> list[int]:
    """Sums of the ends of coded pictures: parsers put delimiters before some."""
    with av.open(str(path)) as container:
        return [zlib.crc32(bytes(p)[-24:]) for p in container.demux(video=0) if p.size]


@pytest.mark.slow
def test_recordings_hold_the_packets_of_the_source(
    gst: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    app = tmp_path / "app.txt"
    for folder, road in zip(folders, (app, tmp_path / "pipeline.yml"), strict=False):
        app.write_text(
            f"[source0]\nenable=1\ntype=4\nuri=file://{SCENE}/conveyor.mp4\nsmart-record=2\n"
            f"smart-rec-dir-path={folder}\nsmart-rec-file-prefix=belt\nsmart-rec-interval=1\n"
            "smart-rec-start-time=0\nsmart-rec-default-duration=2\n"
        )
        (tmp_path / "pipeline.yml").write_text(load_pipeline(app).dump())
        headrace.open_pipeline(road, limit=100, device="cpu").run()
    settings = f"smart-record=2 smart-rec-dir-path={folders[2]} smart-rec-file-prefix=belt"
    Recorded(gst, f"{SOURCE} {settings}", {25: ("start-sr", None, 0, 2, None)})
    whole = packets(SCENE / "conveyor.mp4")
    for folder in folders:
        first = sorted(folder.glob("belt_*.mp4"))[0]
        held = packets(first)
        assert len(held) > 25, folder.name
        assert held[0] in whole, folder.name
        at = whole.index(held[0])
        assert held == whole[at : at + len(held)], folder.name
