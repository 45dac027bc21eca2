"""Outputs that outlive their process: restarts, rotation, a full disk, a limit on disk."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace._core.errors import MediaError
from headrace.media import check_sinks, open_sink, open_source
from headrace.media.sinks import lasting
from headrace.media.sinks.lasting import LastingSink, Limits, split_limits
from headrace.media.sinks.opening import _CLASSES
from headrace.media.sinks.series import files_of, next_number, numbered, unfinished
from tests.media.conftest import MakeMeta, gray_frame
from tests.media.sinks.test_sinks_text import file_size_limit

LIVES = ("end", "kill", "kill", "end")
BOX = (1.0, 2.0, 10.0, 10.0, 0.9, 0.0)
WRITER = """
import os, signal, sys, time
import numpy as np
from headrace.media import open_sink
from headrace.media.frame import Frame
from headrace.meta import Detections, FrameMeta, Space
outs, first, count, how = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sinks = [open_sink(out, append=True, fps=5) for out in outs]
rng = np.random.default_rng(0)
for i in range(first, first + count):
    pixels = rng.integers(0, 255, (96, 128, 3), np.uint8)
    frame = Frame.from_array(pixels, pts_ns=(i - first) * 200_000_000)
    meta = FrameMeta("s", 0, i, frame.pts_ns, 128, 96)
    box = Detections([[10, 10, 40, 20]], [0.9], [0], space=Space.FRAME)
    meta.objects.append(box, 1, labels=["car"])
    for sink in sinks:
        sink.write(frame, meta)
time.sleep(1.05)
for sink in sinks:
    sink.write(frame, meta)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
for sink in sinks:
    sink.close()
"""


def life(outs: list[Path], first: int, count: int, how: str) -> None:
    names = ",".join(map(str, outs))
    command = [sys.executable, "-c", WRITER, names, str(first), str(count), how]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == (-signal.SIGKILL if how == "kill" else 0), done.stderr


def frames_in(path: Path) -> list[int]:
    return [json.loads(line)["frame"] for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_lives_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("x.jsonl", "x.mp4", "x.mkv", "x.parquet", "x.arrow")]
    for number, how in enumerate(LIVES):
        life(outs, 100 * number, 30, how)
    first = [100 * number for number in range(len(LIVES))]
    assert set(frames_in(outs[0])) == {i for n in first for i in range(n, n + 30)}
    for kind in (".mp4", ".mkv"):
        files = [path for _, path in files_of(tmp_path / f"x{kind}")]
        assert [path.name for path in files] == [
            numbered(tmp_path / f"x{kind}", n).name for n in range(len(LIVES))
        ]
        for path in files:
            with open_source(str(path)) as source:
                assert sum(1 for _ in source) >= 15
    for kind in (".parquet", ".arrow"):
        tables = [
            pq.read_table(path) if kind == ".parquet" else pa.ipc.open_file(path).read_all()
            for _, path in files_of(tmp_path / f"x{kind}")
        ]
        assert len(tables) == len(LIVES)
        frames = [set(table["frame"].to_pylist()) for table in tables]
        assert frames == [set(range(n, n + 30)) for n in first]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("cut", [1, 5, 4000])
def test_half_a_line_is_removed_and_reported(tmp_path: Path, make_meta: MakeMeta, cut: int) -> None:
    path = tmp_path / "x.jsonl"
    with open_sink(str(path)) as sink:
        for i in range(100):
            sink.write(gray_frame(i), make_meta(gray_frame(i), BOX))
    os.truncate(path, path.stat().st_size - cut)
    rest = path.read_bytes()
    whole = rest.count(b"\n") + (cut == 1)
    torn = cut != 1 and not rest.endswith(b"\n")
    with open_sink(str(path), append=True) as sink:
        assert [n.code for n in sink.notices] == ["output-recovered"] * torn
        sink.write(gray_frame(500), make_meta(gray_frame(500), BOX))
    assert frames_in(path) == [*range(whole), 500]


def test_zeros_at_the_end_are_removed(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"frame":1}\n{"fra' + bytes(70_000))
    with open_sink(str(path), append=True) as sink:
        sink.write(gray_frame(2), make_meta(gray_frame(2)))
    assert frames_in(path) == [1, 2]


def test_without_append_an_output_is_replaced(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.jsonl"
    for i in range(2):
        with open_sink(str(path)) as sink:
            sink.write(gray_frame(i), make_meta(gray_frame(i)))
    assert frames_in(path) == [1]


@pytest.mark.parametrize("kind", ["kitti", "kitti-track", "dota", "images"])
def test_a_folder_gets_the_next_number(tmp_path: Path, make_meta: MakeMeta, kind: str) -> None:
    for _ in range(3):
        with open_sink(f"{kind}:{tmp_path}/out", append=True) as sink:
            sink.write(gray_frame(0), make_meta(gray_frame(0), BOX))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.0001", "out.0002"]
    assert all(len(list(path.iterdir())) == 1 for path in tmp_path.iterdir())


def test_numbered_images_and_documents_get_the_next_number(
    tmp_path: Path, make_meta: MakeMeta
) -> None:
    for _ in range(2):
        for name in ("f_%02d.png", "x.json"):
            with open_sink(f"{tmp_path}/{name}", append=True) as sink:
                sink.write(gray_frame(0), make_meta(gray_frame(0), BOX))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["f_00.0001.png", "f_00.png", "x.0001.json", "x.json"]


def test_what_cannot_be_finished_is_kept_under_a_name_that_says_so(
    tmp_path: Path, make_meta: MakeMeta
) -> None:
    (tmp_path / "x.json.part").write_bytes(b'{"annotations":[')
    (tmp_path / "x.parquet.part").write_bytes(b"PAR1, and no footer")
    for name in ("x.json", "x.parquet"):
        with open_sink(f"{tmp_path}/{name}", append=True) as sink:
            assert [n.code for n in sink.notices] == ["output-unfinished"]
            sink.write(gray_frame(0), make_meta(gray_frame(0), BOX))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["x.0001.json", "x.0001.parquet", "x.json.unfinished", "x.parquet.unfinished"]


def test_a_part_that_another_run_writes_is_left_alone(tmp_path: Path, make_meta: MakeMeta) -> None:
    first = open_sink(f"{tmp_path}/x.parquet", append=True)
    first.write(gray_frame(0), make_meta(gray_frame(0), BOX))
    second = open_sink(f"{tmp_path}/x.parquet", append=True)
    second.write(gray_frame(1), make_meta(gray_frame(1), BOX))
    for sink in (second, first):
        sink.close()
    frames = [pq.read_table(tmp_path / f"x{n}.parquet")["frame"].to_pylist() for n in ("", ".0001")]
    assert frames == [[0], [1]]


def test_rotation_by_size_within_a_limit_on_disk(
    tmp_path: Path, make_meta: MakeMeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasting, "_LOOK_S", 0.0)
    sink = open_sink(f"{tmp_path}/x.jsonl?size=2k&disk=10k")
    for i in range(400):
        sink.write(gray_frame(i), make_meta(gray_frame(i), BOX))
    sink.close()
    files = [path for _, path in files_of(tmp_path / "x.jsonl")]
    assert 5 < len(files) <= 9
    frames = [frame for path in files for frame in frames_in(path)]
    assert frames == list(range(frames[0], 400))
    assert sum(path.stat().st_size for path in files) <= 10 << 10
    with open_sink(f"{tmp_path}/x.jsonl", append=True) as again:  # the newest goes on
        again.write(gray_frame(400), make_meta(gray_frame(400)))
        assert again.path == files[-1]
    assert frames_in(files[-1])[-1] == 400


def test_rotation_by_time(
    tmp_path: Path, make_meta: MakeMeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasting, "_LOOK_S", 0.0)
    now = time.monotonic()
    monkeypatch.setattr(lasting, "monotonic", lambda: now)
    sink = open_sink(f"{tmp_path}/x.mp4?rotate=1m", fps=25)
    for i in range(60):
        now += 5
        sink.write(gray_frame(i), make_meta(gray_frame(i)))
    sink.close()
    files = [path for _, path in files_of(tmp_path / "x.mp4")]
    assert len(files) in (5, 6)
    counts = []
    for path in files:
        with open_source(str(path)) as source:
            counts.append(sum(1 for _ in source))
    assert sum(counts) == 60


@pytest.mark.parametrize("name", ["x.jsonl", "x.mp4", "x.parquet", "x.json"])
def test_a_full_disk_ends_one_output_until_there_is_room(
    tmp_path: Path, make_meta: MakeMeta, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(lasting, "_TRY_S", 0.0)
    monkeypatch.setattr("headrace.media.sinks.table._JOURNAL_S", 0.0)
    room = True
    monkeypatch.setattr(LastingSink, "_room", lambda _: room)
    sink = open_sink(f"{tmp_path}/{name}", append=True, fps=5)
    rng = np.random.default_rng(0)

    def write(count: int) -> None:
        for _ in range(count):
            frame = gray_frame(sink.frames + sink.state.dropped, (128, 96))
            frame.planes[0][:] = rng.integers(0, 255, (96, 128), np.uint8)
            sink.write(frame, make_meta(frame, *[BOX] * 20))

    write(10)
    with file_size_limit(60_000):
        room = False
        write(200)
        state = sink.state
        assert not state.up
        assert (state.failures, state.dropped > 0) == (1, True)
        assert "size limit" in state.last_error
        assert [n.code for n in sink.notices if n.code == "output-away"]
    room = True
    write(10)
    assert sink.state.up
    sink.close()
    codes = [n.code for n in sink.notices]
    assert "output-lost" in codes
    assert "output-away" not in codes
    assert "frames-not-written" in codes
    assert sink.frames + sink.state.dropped == 220
    if name == "x.jsonl":
        assert len(frames_in(tmp_path / name)) == sink.frames


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("rotate=90&size=3M", Limits(90, 3 << 20)),
        ("rotate=1.5h", Limits(5400)),
        ("disk=2G", Limits(0, 0, 2 << 30)),
        ("rotate=2d", Limits(172_800)),
        ("size=10k", Limits(0, 10240)),
    ],
)
def test_limits(text: str, limits: Limits) -> None:
    assert split_limits("jsonl", Path(f"a/x.jsonl?{text}"), "x") == (Path("a/x.jsonl"), limits)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("x.mp4?rotate=soon", "rotate=soon is unknown"),
        ("x.mp4?size=0", "size=0 is unknown"),
        ("x.mp4?roate=1h", "'roate' is not an option"),
        ("x.m3u8?rotate=1h", "rotate=1h means nothing for hls"),
        ("clip:x?size=1M", "size=1M means nothing for clip"),
        ("x.jsonl?size=1M", "is also"),
    ],
)
def test_options_that_are_refused(tmp_path: Path, out: str, words: str) -> None:
    with pytest.raises(MediaError, match=words):
        check_sinks([out], [tmp_path / "y", Path("x.jsonl")])


def test_names_of_a_series(tmp_path: Path) -> None:
    path = tmp_path / "rec.mp4"
    assert next_number(path) == 0
    for name in ("rec.mp4", "rec.0007.mp4.part", "rec.0002.mp4", "rec.x.mp4", "other.mp4"):
        (tmp_path / name).touch()
    assert [file.name for _, file in files_of(path)] == [
        "rec.mp4", "rec.0002.mp4", "rec.0007.mp4.part",
    ]  # fmt: skip
    assert numbered(path, next_number(path)).name == "rec.0008.mp4"
    target = unfinished(tmp_path / "rec.mp4.part")
    target.touch()
    assert [target.name, unfinished(tmp_path / "rec.mp4.part").name] == [
        "rec.mp4.unfinished", "rec.mp4.unfinished.2",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", sorted(_CLASSES))
def test_a_lasting_output_is_fed_as_the_plain_one(kind: str) -> None:
    module, name = _CLASSES[kind]
    plain = getattr(importlib.import_module(f"headrace.media.sinks{module}"), name)
    assert plain.needs_pixels == (kind in (*lasting._WITH_PIXELS, "publish"))
    assert plain.fills_folder == (kind in lasting._FOLDERS)
