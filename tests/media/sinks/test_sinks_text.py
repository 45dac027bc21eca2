"""JSON Lines, COCO and KITTI: exact content, and what is on the disk when things go wrong."""

from __future__ import annotations

import contextlib
import io
import json
import math
import mmap
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import MediaError
from headrace.media import Frame, Sink, open_sink
from headrace.media.sinks.jsonl import LineWriter
from headrace.meta import Detections, FrameMeta, Space
from headrace.meta.analytics import FrameAnalytics
from tests.media.conftest import MakeMeta, gray_frame


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """As on a full disk: no file may grow beyond `size`."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def write_many(sink: Sink, frame: Frame, meta: FrameMeta, count: int) -> None:
    for _ in range(count):
        sink.write(frame, meta)


def test_json_line_exactly(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "new" / "folder" / "boxes.jsonl"
    frame = gray_frame(3, source="a/ü.mp4")
    with open_sink(str(path)) as sink:
        assert (sink.kind, sink.needs_pixels) == ("jsonl", False)
        sink.write(frame, make_meta(frame, (1.5, 2, 30.25, 40, 0.875, 1)))
        sink.write(frame, make_meta(frame))
    assert path.read_text().splitlines() == [
        '{"source":"a/ü.mp4","source_id":0,"frame":3,"pts_ns":120000000,"width":64,"height":48,"objects":'
        '[{"class_id":1,"label":"bus","confidence":0.875000,'
        '"left":1.500,"top":2.000,"width":30.250,"height":40.000}]}',
        '{"source":"a/ü.mp4","source_id":0,"frame":3,"pts_ns":120000000,"width":64,"height":48,"objects":[]}',
    ]


numbers = st.floats(width=32, min_value=-1e6, max_value=1e6)
any_number = st.floats(width=32)


@given(
    rows=st.lists(st.tuples(*[any_number] * 5, st.integers(-3, 5)), max_size=5),
    labels=st.lists(st.text(max_size=8), max_size=4),
    source=st.text(max_size=8),
)
def test_every_line_is_json(rows: list[Any], labels: list[str], source: str) -> None:
    """Whatever the labels and numbers: valid JSON, finite, close to the metadata."""
    meta = FrameMeta(source, 2, 7, -5, 64, 48)
    table = np.array([r[:5] for r in rows], np.float32).reshape(-1, 5)
    classes = np.array([r[5] for r in rows], np.int32)
    meta.objects.append(
        Detections(table[:, :4], table[:, 4], classes, space=Space.FRAME), 1, labels=labels
    )
    line, lost = LineWriter().line(meta)

    def refuse(text: str) -> Any:
        raise AssertionError(text)

    data = json.loads(line, parse_constant=refuse)
    assert line.count(b"\n") == 1
    keys = ["source", "source_id", "frame", "pts_ns", "width", "height", "objects", "inferred"]
    assert list(data) == keys
    assert (data["source"], data["source_id"], data["frame"], data["pts_ns"]) == (source, 2, 7, -5)
    assert data["inferred"] is False
    kept = [r for r in rows if all(math.isfinite(v) for v in r[:5])]
    assert lost == len(rows) - len(kept)
    assert len(data["objects"]) == len(kept)
    for got, row in zip(data["objects"], kept, strict=True):
        assert list(got) == ["class_id", "label", "confidence", "left", "top", "width", "height"]
        class_id = row[5]
        assert got["class_id"] == class_id
        assert got["label"] == (labels[class_id] if 0 <= class_id < len(labels) else "")
        values = (got["left"], got["top"], got["width"], got["height"], got["confidence"])
        for value, exact in zip(values, row[:5], strict=True):
            assert value == pytest.approx(exact, abs=6e-4)
    assert b"-0.000," not in line


def test_labels_of_several_detectors(make_meta: MakeMeta) -> None:
    frame = gray_frame()
    meta = make_meta(frame, (0, 0, 1, 1, 0.5, 0))
    box = Detections(np.ones((1, 4)), np.ones(1), np.zeros(1), space=Space.FRAME)  # type: ignore[arg-type]
    meta.objects.append(box, 2, labels=["100%"])
    writer = LineWriter()
    for _ in range(2):
        assert [o["label"] for o in json.loads(writer.line(meta)[0])["objects"]] == ["car", "100%"]
    meta.objects.labels[1] = ["renamed"]
    assert json.loads(writer.line(meta)[0])["objects"][0]["label"] == "renamed"


@pytest.mark.parametrize("limit", [None, 1000, 500])
def test_a_batch_leaves_the_lines_that_its_frames_leave_one_by_one(
    limit: int | None, tmp_path: Path, make_meta: MakeMeta
) -> None:
    frames = [gray_frame(i) for i in range(12)]
    metas = []
    for frame in frames:
        height = math.nan if frame.frame == 5 else 4
        boxes = [(i, 2, 3, height, 0.5, 1) for i in range(frame.frame % 3)]
        metas.append(make_meta(frame, *boxes))
    left = []
    for batch in (1, 5):
        path = tmp_path / f"{batch}.jsonl"
        sink = open_sink(str(path))
        error = ""
        with file_size_limit(limit or 1 << 30):
            try:
                for start in range(0, 12, batch):
                    some = slice(start, start + batch)
                    sink.write_batch(frames[some], metas[some])
                sink.close()
            except MediaError as refused:
                error = str(refused).replace(str(path), "")
        assert ("could not be written" in error) == (limit is not None)
        left.append((path.read_bytes(), error, sink.frames, sink.kept, len(sink.notices)))
    assert left[0] == left[1]
    assert left[0][0].endswith(b"\n")
    assert left[0][0].count(b"\n") == left[0][2]


class Unwritable(FrameAnalytics):
    """Analytics that are no JSON."""

    def to_dict(self) -> dict[str, Any]:
        return {"x": object()}


def test_a_line_that_cannot_be_made_leaves_those_before_it(
    tmp_path: Path, make_meta: MakeMeta
) -> None:
    frames = [gray_frame(i) for i in range(5)]
    metas = [make_meta(frame) for frame in frames]
    metas[3].analytics = Unwritable()
    path = tmp_path / "x.jsonl"
    with open_sink(str(path)) as sink:
        with pytest.raises(TypeError):
            sink.write_batch(frames, metas)
        assert sink.frames == 3
    assert [json.loads(line)["frame"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_a_batch_that_does_not_fit_has_the_lines_of_its_frames(
    tmp_path: Path, make_meta: MakeMeta
) -> None:
    """Component ids begin with the first frame that has objects of two."""
    frames = [gray_frame(i) for i in range(5)]
    text = []
    for batch in (1, 5):
        metas = [
            make_meta(f, *[(0, 0, 1, 1, 0.5, 0)] * (20 if f.frame == 4 else 1)) for f in frames
        ]
        ones = np.ones((1, 4), np.float32)
        box = Detections(ones, ones[0, :1], np.zeros(1, np.int32), space=Space.FRAME)
        metas[3].objects.append(box, 2, labels=["other"])
        path = tmp_path / f"{batch}.jsonl"
        sink = open_sink(str(path))
        parts = [slice(start, start + batch) for start in range(0, 5, batch)]
        with file_size_limit(1400):
            for part in parts[:-1]:
                sink.write_batch(frames[part], metas[part])
            with pytest.raises(MediaError, match="frame 4"):
                sink.write_batch(frames[parts[-1]], metas[parts[-1]])
        text.append(path.read_text())
    assert text[0] == text[1]
    assert ["component_id" in line for line in text[0].splitlines()] == [False] * 3 + [True]


def test_lines_can_be_followed_while_they_are_written(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.jsonl"
    with open_sink(str(path)) as sink:
        for i in range(3):
            frame = gray_frame(i)
            sink.write(frame, make_meta(frame))
            assert len(path.read_text().splitlines()) == i + 1


def test_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    code = (
        "import sys, numpy as np\n"
        "from headrace.media import Frame, open_sink\n"
        "from headrace.meta import FrameMeta\n"
        "frame = Frame.from_array(np.zeros((4, 4, 3), np.uint8))\n"
        "sink = open_sink(sys.argv[1])\n"
        "i = 0\n"
        "while True:\n"
        "    sink.write(frame, FrameMeta('s', 0, i, 0, 4, 4)); i += 1\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)])
    end = time.monotonic() + 20
    while (not path.exists() or path.stat().st_size < 20_000) and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    process.wait()
    text = path.read_text()
    text, end_of_line, cut = text.rpartition("\n")
    text += end_of_line
    # a kill may come between two pages of the last write
    assert not cut or path.stat().st_size % mmap.PAGESIZE == 0
    assert [json.loads(line)["frame"] for line in text.splitlines()] == list(
        range(text.count("\n"))
    )


def test_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    frame = gray_frame()
    with open_sink("jsonl:-") as sink:
        sink.write(frame, FrameMeta("s", 0, 0, 0, 64, 48))
    assert json.loads(capfd.readouterr().out)["source"] == "s"


def test_full_disk_keeps_whole_lines(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.jsonl"
    frame = gray_frame(5)
    meta = make_meta(frame, *[(1, 2, 3, 4, 0.5, 0)] * 3)
    with open_sink(str(path)) as sink:
        with file_size_limit(3000), pytest.raises(MediaError) as caught:
            write_many(sink, frame, meta, 100)
        assert str(path) in str(caught.value)
        assert "frame 5" in str(caught.value)
        assert f"{sink.frames} earlier frames are kept" in str(caught.value)
    lines = path.read_text().splitlines()
    assert len(lines) == sink.frames > 5
    assert all(len(json.loads(line)["objects"]) == 3 for line in lines)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_no_space_left(make_meta: MakeMeta) -> None:
    frame = gray_frame(0)
    with open_sink("jsonl:/dev/full") as sink, pytest.raises(MediaError, match="the disk is full"):
        sink.write(frame, make_meta(frame))


def coco(path: Path) -> Any:
    from faster_coco_eval import COCO

    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(str(path))


def test_coco_is_read_by_its_tools(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "out.json"
    with open_sink(str(path)) as sink:
        for i in range(4):
            frame = gray_frame(i)
            boxes = [(10 * j, 5, 8, 4, 0.5 + j / 10, j) for j in range(i)]
            sink.write(frame, make_meta(frame, *boxes, labels=("car", "bus", "tram", "never")))
        assert not path.exists()  # half a file is of no use
    assert list(tmp_path.iterdir()) == [path]
    data = json.loads(path.read_text())
    assert [(i["id"], i["frame"], i["file_name"]) for i in data["images"]] == [
        (i + 1, i, f"frame_{i:06d}.jpg") for i in range(4)
    ]
    assert [a["id"] for a in data["annotations"]] == list(range(1, 7))
    assert data["annotations"][2] == {
        "id": 3,
        "image_id": 3,
        "category_id": 1,
        "bbox": [10, 5, 8, 4],
        "area": 32,
        "iscrowd": 0,
        "score": 0.6,
    }
    names = {c["id"]: c["name"] for c in data["categories"]}
    assert names == {0: "car", 1: "bus", 2: "tram", 3: "never"}
    loaded = coco(path)
    assert len(loaded.getAnnIds()) == 6
    assert loaded.getImgIds() == [1, 2, 3, 4]


def test_coco_without_frames_or_objects(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(str(tmp_path / "none.json")):
        pass
    assert json.loads((tmp_path / "none.json").read_text())["images"] == []
    frame = gray_frame()
    with open_sink(str(tmp_path / "empty.json")) as sink:
        sink.write(frame, make_meta(frame))
    data = json.loads((tmp_path / "empty.json").read_text())
    assert (len(data["images"]), data["annotations"]) == (1, [])


def test_coco_classes_of_two_detectors_stay_apart(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame(source="folder/photo.PNG")
    meta = make_meta(frame, (0, 0, 1, 1, 0.5, 0), labels=["car"])
    box = Detections(np.ones((1, 4)), np.ones(1), np.zeros(1), space=Space.FRAME)  # type: ignore[arg-type]
    meta.objects.append(box, 2, labels=["plate"])
    with open_sink(str(tmp_path / "x.json")) as sink:
        sink.write(frame, meta)
    data = json.loads((tmp_path / "x.json").read_text())
    names = {c["id"]: c["name"] for c in data["categories"]}
    assert [names[a["category_id"]] for a in data["annotations"]] == ["car", "plate"]
    assert data["images"][0]["file_name"] == "photo.PNG"


@pytest.mark.parametrize("limit", [3000, 9000])
def test_coco_on_a_full_disk_keeps_whole_frames(
    tmp_path: Path, make_meta: MakeMeta, limit: int
) -> None:
    path = tmp_path / "x.json"
    sink = open_sink(str(path))
    frame = gray_frame(1)
    meta = make_meta(frame, *[(1, 2, 3, 4, 0.5, 0)] * 3)
    with (
        file_size_limit(limit),
        pytest.raises(MediaError, match="frame 1 could not be written") as caught,
    ):
        write_many(sink, frame, meta, 100)
    data = json.loads(path.read_text())
    assert path.stat().st_size <= limit
    assert 0 < len(data["images"]) <= sink.frames
    assert len(data["annotations"]) == 3 * len(data["images"])
    kept = len(data["images"])
    assert sink.kept == kept
    all_of_them = f"{kept} earlier frames are kept"
    some = f"the first {kept} of {sink.frames} earlier frames are kept"
    assert (all_of_them if kept == sink.frames else some) in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_coco_interrupted(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.json"
    frame = gray_frame()
    with contextlib.suppress(KeyboardInterrupt), open_sink(str(path)) as sink:
        sink.write(frame, make_meta(frame, (1, 2, 3, 4, 0.5, 0)))
        raise KeyboardInterrupt
    assert len(json.loads(path.read_text())["annotations"]) == 1
    assert [str(n.sentence) for n in sink.notices] == ["ends after 1 frame: interrupted"]


def test_kitti(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(f"kitti:{tmp_path}/labels") as sink:
        for i in range(2):
            frame = gray_frame(i)
            meta = make_meta(frame, *[(10, 20, 30, 40, 0.5, 0), (1, 2, 3, 4, 1, 7)][: 2 * i])
            meta.objects.labels[1] = ["traffic light"]
            sink.write(frame, meta)
    assert (tmp_path / "labels" / "000000.txt").read_text() == ""
    lines = (tmp_path / "labels" / "000001.txt").read_text().splitlines()
    assert lines == [
        "traffic_light 0.00 0 0.00 10.00 20.00 40.00 60.00 "
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.500000",
        "class_7 0.00 0 0.00 1.00 2.00 4.00 6.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 1.000000",
    ]
    assert all(len(line.split()) == 16 for line in lines)


def test_dota_has_the_corners_of_turned_boxes(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(f"{tmp_path}/labels.dota") as sink:
        for i in range(2):
            frame = gray_frame(i)
            meta = make_meta(frame, *[(10, 20, 30, 40, 0.5, 0), (10, 20, 30, 40, 1, 7)][: 2 * i])
            meta.objects.labels[1] = ["small vehicle"]
            meta.objects.angles = np.array([90, 0][: 2 * i], np.float32)
            sink.write(frame, meta)
    assert (tmp_path / "labels.dota" / "000000.txt").read_text() == ""
    assert (tmp_path / "labels.dota" / "000001.txt").read_text().splitlines() == [
        "45.00 25.00 45.00 55.00 5.00 55.00 5.00 25.00 small_vehicle 0 0.500000",
        "10.00 20.00 40.00 20.00 40.00 60.00 10.00 60.00 class_7 0 1.000000",
    ]


def test_kitti_files_are_named_like_images(tmp_path: Path, make_meta: MakeMeta) -> None:
    sources = ["a/p.jpg", "b/p.jpg", "a/q.png"]
    with open_sink(f"kitti:{tmp_path}") as sink:
        for i, source in enumerate(sources):
            frame = gray_frame(i, source=source)
            sink.write(frame, make_meta(frame))
        other = gray_frame(2, source="second.mp4", source_id=1)
        third = gray_frame(2, source="third.mp4", source_id=2)
        sink.write(other, make_meta(other))
        sink.write(third, make_meta(third))
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["000002.txt", "p.txt", "p_000001.txt", "q.txt", "source2_000002.txt"]


@pytest.mark.parametrize("kind", ["jsonl", "coco", "kitti", "dota"])
def test_numbers_that_are_none_are_left_out_and_said(
    tmp_path: Path, make_meta: MakeMeta, kind: str
) -> None:
    frame = gray_frame()
    nan = float("nan")
    with open_sink(f"{kind}:{tmp_path}/x") as sink:
        bad = [(nan, 0, 1, 1, 0.5, 0), (0, 0, math.inf, 1, 0.5, 0), (0, 0, 1, 1, nan, 0)]
        sink.write(frame, make_meta(frame, *bad, (1, 1, 1, 1, 0.5, 0)))
    text = "".join(p.read_text() for p in tmp_path.rglob("*") if p.is_file()).lower()
    assert "nan" not in text
    assert "inf" not in text.replace('"info"', "")
    assert "3 objects without finite numbers were left out" in [n.sentence for n in sink.notices]


def test_supervision_bridge(make_meta: MakeMeta) -> None:
    pytest.importorskip("supervision")
    frame = gray_frame()
    meta = make_meta(frame, (10, 20, 30, 40, 0.5, 1), (1, 2, 3, 4, 0.25, 0))
    found = meta.to_detections().to_supervision()
    assert found.xyxy.tolist() == [[10, 20, 40, 60], [1, 2, 4, 6]]
    assert found.confidence.tolist() == [0.5, 0.25]
    assert found.class_id.tolist() == [1, 0]


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for spec in ("jsonl:{}", "coco:{}", "kitti:{}", "images:{}", "video:{}"):
        with pytest.raises(MediaError, match="is a file, not a folder"):
            open_sink(spec.format(tmp_path / "file" / "x" / "y"))
    if os.geteuid():  # root may write anywhere
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(MediaError, match="may not be written to"):
            open_sink(str(tmp_path / "closed" / "x.jsonl"))


def test_a_read_only_file_system_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # as for root on one
    with pytest.raises(MediaError, match="may not be written to"):
        open_sink(str(tmp_path / "x.jsonl"))
    monkeypatch.setattr(os, "statvfs", lambda _: mock.Mock(f_flag=os.ST_RDONLY))
    with pytest.raises(MediaError, match="is on a read-only file system"):
        open_sink(str(tmp_path / "x.jsonl"))


@pytest.mark.parametrize("kind", ["coco", "video"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(MediaError, match="is a device or pipe"):
        open_sink(f"{kind}:{pipe}")
    assert pipe.is_fifo()
    with pytest.raises(MediaError, match="is a folder"):
        open_sink(f"{kind}:{tmp_path}")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(MediaError, match="cannot be created"):
        open_sink(f"{kind}:{tmp_path / 'loop'}")


@pytest.mark.parametrize(
    "kind", ["jsonl", "coco", "video", "parquet", "arrow", "hls", "images", "kitti", "kitti-track"]
)
@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_written_through_a_link(
    tmp_path: Path, make_meta: MakeMeta, kind: str, there: bool
) -> None:
    real, folder = tmp_path / "disk" / "real", tmp_path / "out"
    names = {"hls": "x.m3u8", "images": "frame_000000.jpg", "kitti": "000000.txt"}
    in_folder = kind in ("images", "kitti", "kitti-track")
    with open_sink(f"{kind}:{tmp_path / 'trial'}{'.m3u8' * (kind == 'hls')}") as sink:
        sink.write(frame := gray_frame(), make_meta(frame))
    made = [path.name for path in (tmp_path / "trial").iterdir()] if in_folder else []
    link = folder / (made[0] if made else names.get(kind, "x"))
    for path in (real.parent, folder):
        path.mkdir()
    link.symlink_to("../disk/real")
    if there:
        real.write_bytes(b"old")
    with (
        pytest.raises(MediaError, match="it is a link to"),
        open_sink(f"{kind}:{folder if in_folder else link}") as sink,
    ):
        sink.write(frame := gray_frame(), make_meta(frame))
    assert link.is_symlink()
    assert [p.read_bytes() for p in real.parent.iterdir()] == [b"old"] * there


def test_a_link_to_a_pipe_is_followed(tmp_path: Path, make_meta: MakeMeta) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    frame = gray_frame()
    with open_sink(f"jsonl:{tmp_path / 'link'}") as sink:
        sink.write(frame, make_meta(frame))
    assert os.read(reader, 10_000).startswith(b"{")
    os.close(reader)


@pytest.mark.parametrize("kind", ["coco", "video", "images", "jsonl", "kitti"])
def test_names_that_no_file_can_have(tmp_path: Path, kind: str) -> None:
    with pytest.raises(MediaError):
        open_sink(f"{kind}:{tmp_path}/{'n' * 300}")
    with pytest.raises(MediaError):
        open_sink(f"{kind}:{tmp_path}/a\0b")


@pytest.mark.parametrize("kind", ["jsonl", "coco"])
def test_two_runs_never_write_one_file(kind: str, tmp_path: Path) -> None:
    spec = f"{kind}:{tmp_path / 'x.out'}"
    with open_sink(spec), pytest.raises(MediaError, match="another run is writing"):
        open_sink(spec)
    open_sink(spec).close()
