"""Video and images: what is written can be read again, also when the end came early."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import MediaError
from headrace.media import ColorSpace, Frame, PixelFormat, Sink, open_sink, open_source
from headrace.media.pixels import to_rgb
from headrace.media.sinks.naming import VIDEO_FORMATS
from headrace.media.sinks.whole_video import cut_to_whole
from headrace.meta import FrameMeta
from tests.media.conftest import MakeMeta, gray_frame, luma_of
from tests.media.sinks.test_sinks_text import file_size_limit
from tests.profiles import examples, slow


def write_noise(sink: Sink, make_meta: MakeMeta, count: int) -> None:
    """Frames that hardly compress, 5 a second."""
    rng = np.random.default_rng(0)
    for i in range(count):
        pixels = rng.integers(0, 255, (96, 128, 3), np.uint8)
        frame = Frame.from_array(pixels, pts_ns=i * 200_000_000)
        sink.write(frame, make_meta(frame))


def write_then_interrupt(path: Path, make_meta: MakeMeta, count: int) -> Sink:
    with contextlib.suppress(KeyboardInterrupt), open_sink(str(path)) as sink:
        for i in range(count):
            sink.write(gray_frame(i), make_meta(gray_frame(i)))
        raise KeyboardInterrupt
    return sink


def read(path: Path) -> list[Frame]:
    with open_source(str(path)) as source:
        return list(source)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov", ".m4v"])
def test_video(tmp_path: Path, make_meta: MakeMeta, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    times = [0, 40, 55, 200, 1000]  # ms, variable rate
    with open_sink(str(path), fps=25) as sink:
        assert (sink.kind, sink.needs_pixels) == ("video", True)
        for i, ms in enumerate(times):
            frame = gray_frame(i, pts_ns=ms * 1_000_000)
            sink.write(frame, make_meta(frame))
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
    frames = read(path)
    assert [round(f.pts_ns / 1e6) for f in frames] == times
    assert [abs(f.planes[0].mean() - luma_of(i)) < 2 for i, f in enumerate(frames)] == [True] * 5


def test_videos_one_after_the_other_hold_one_encoder(tmp_path: Path, make_meta: MakeMeta) -> None:
    """A service that begins a file every ten minutes may see no full collection for hours."""
    gc.collect()
    gc.disable()
    try:
        for number in range(5):
            with open_sink(str(tmp_path / f"{number}.mp4")) as sink:
                sink.write(gray_frame(0), make_meta(gray_frame(0)))
            del sink
        held = [thing for thing in gc.get_objects() if isinstance(thing, av.VideoStream)]
    finally:
        gc.enable()
    assert len(held) <= 1


@settings(max_examples=examples(10))
@given(steps=st.lists(st.integers(1, 10**9), min_size=1, max_size=8))
def test_times_survive(tmp_path_factory: pytest.TempPathFactory, steps: list[int]) -> None:
    path = tmp_path_factory.mktemp("v") / "x.mp4"
    times = np.cumsum([0, *(s + 20_000 for s in steps)]).tolist()
    with open_sink(str(path)) as sink:
        for i, t in enumerate(times):
            frame = gray_frame(i, (16, 16), pts_ns=t)
            sink.write(frame, FrameMeta("s", 0, i, t, 16, 16))
    got = [f.pts_ns for f in read(path)]
    assert len(got) == len(times)
    assert np.abs(np.array(got) - times).max() <= 6000  # half a tick of 1/90000 s


def test_times_that_stand_still(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.mp4"
    with open_sink(str(path), fps=10) as sink:
        for i, t in enumerate((0, 100_000_000, 100_000_000, 50_000_000)):
            frame = gray_frame(i, pts_ns=t)
            sink.write(frame, make_meta(frame))
    assert [f.pts_ns for f in read(path)] == [0, 100_000_000, 200_000_000, 300_000_000]
    assert [n.code for n in sink.notices] == ["times-replaced"]


def test_odd_size_is_padded(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.mp4"
    with open_sink(str(path)) as sink:
        frame = gray_frame(0, (65, 47))
        sink.write(frame, make_meta(frame))
    (back,) = read(path)
    assert (back.width, back.height) == (66, 48)
    assert np.abs(back.planes[0].astype(int) - luma_of(0)).max() <= 2
    assert [n.level for n in sink.notices] == ["info"]


@pytest.mark.parametrize("format", list(PixelFormat))
def test_every_pixel_format(tmp_path: Path, make_meta: MakeMeta, format: PixelFormat) -> None:
    rgb = (200, 60, 60)
    if format in (PixelFormat.RGB, PixelFormat.BGR):
        values = rgb if format is PixelFormat.RGB else rgb[::-1]
        frame = Frame.from_array(np.full((48, 64, 3), values, np.uint8), format)
        expected = rgb
    elif format is PixelFormat.GRAY:
        frame = Frame.from_array(np.full((48, 64), 99, np.uint8), format)
        expected = (99, 99, 99)
    else:
        made = gray_frame(0)
        y, u, v = made.planes
        planes = (y, np.stack((u, v), 2)) if format is PixelFormat.NV12 else made.planes
        frame = Frame(planes, format, 64, 48)
        gray = round((luma_of(0) - 16) * 255 / 219)
        expected = (gray, gray, gray)
    path = tmp_path / "x.mp4"
    with open_sink(str(path)) as sink:
        for _ in range(3):
            sink.write(frame, make_meta(frame))
    for back in read(path)[:1]:
        assert np.abs(to_rgb(back).astype(int) - expected).max() <= 5


@pytest.mark.parametrize("color", [ColorSpace.BT601, ColorSpace.BT709, ColorSpace.BT709_FULL])
def test_color_tags_are_kept(tmp_path: Path, make_meta: MakeMeta, color: ColorSpace) -> None:
    path = tmp_path / "x.mp4"
    with open_sink(str(path)) as sink:
        frame = gray_frame(0, color=color)
        sink.write(frame, make_meta(frame))
    assert [f.color for f in read(path)] == [color]


def test_frames_of_another_size_are_fitted(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.mp4"
    with open_sink(str(path)) as sink:
        for i, size in enumerate(((64, 48), (128, 48), (20, 48))):
            frame = gray_frame(i, size)
            sink.write(frame, make_meta(frame))
    frames = read(path)
    assert [(f.width, f.height) for f in frames] == [(64, 48)] * 3
    wide = frames[1].planes[0]
    assert abs(int(wide[24, 32]) - luma_of(1)) < 6
    assert abs(int(wide[2, 32]) - 16) < 6  # the bar above
    assert [n.level for n in sink.notices] == ["warning"]


def test_interrupted_video_plays(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "x.mp4"
    sink = write_then_interrupt(path, make_meta, 7)
    assert len(read(path)) == 7
    assert list(tmp_path.iterdir()) == [path]
    sink.close()  # again is no harm
    with pytest.raises(MediaError, match="after the end"):
        sink.write(gray_frame(8), make_meta(gray_frame(8)))


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_full_disk_keeps_a_video_that_plays(
    tmp_path: Path, make_meta: MakeMeta, suffix: str
) -> None:
    path = tmp_path / f"x{suffix}"
    sink = open_sink(str(path), fps=5, preset="ultrafast")
    with file_size_limit(400_000):
        with pytest.raises(MediaError) as caught:
            write_noise(sink, make_meta, 300)
        sink.abort("disk full")
    assert str(path) in str(caught.value)
    assert "size limit" in str(caught.value)
    whole = len(read(path))
    assert whole >= 10
    assert f"the first {whole} of {sink.frames} earlier frames are kept" in str(caught.value)
    assert sink.kept == whole
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_disk_too_small_for_anything_that_plays_keeps_what_was_there(
    tmp_path: Path, make_meta: MakeMeta, suffix: str
) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"an older video")
    sink = open_sink(str(path), fps=5, preset="ultrafast")
    with (
        file_size_limit(4096),
        pytest.raises(MediaError, match="none of the earlier frames is kept"),
    ):
        write_noise(sink, make_meta, 300)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"an older video"


@pytest.mark.parametrize("name", ["x.mp4", "x.json", "x.jsonl", "tracks", "images"])
def test_a_folder_removed_in_mid_run_is_an_error(
    tmp_path: Path, make_meta: MakeMeta, name: str
) -> None:
    kinds = {"tracks": "kitti-track:", "images": "images:"}
    folder = tmp_path / "out"
    sink = open_sink(f"{kinds.get(name, '')}{folder / name}")

    def go_on() -> None:
        sink.write(gray_frame(1), make_meta(gray_frame(1)))
        sink.close()

    sink.write(gray_frame(0), make_meta(gray_frame(0)))
    shutil.rmtree(folder)
    with pytest.raises(MediaError, match=r"its folder .* was removed during the run") as caught:
        go_on()
    assert "none of the earlier frames is kept" in str(caught.value)
    assert sink.kept == 0


@pytest.mark.parametrize("name", ["x.mp4", "x.json"])
def test_a_link_in_the_place_of_the_part_is_not_followed(
    tmp_path: Path, make_meta: MakeMeta, name: str
) -> None:
    own = tmp_path / "own.txt"
    own.write_text("mine")
    (tmp_path / f"{name}.part").symlink_to(own)
    with pytest.raises(MediaError, match=r"x\.\w+\.part is a link"):
        open_sink(str(tmp_path / name)).write(gray_frame(), make_meta(gray_frame()))
    assert own.read_text() == "mine"


def test_killed_process_leaves_a_part_that_plays(tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    code = (
        "import os, signal, sys, numpy as np\n"
        "from headrace.media import Frame, open_sink\n"
        "from headrace.meta import FrameMeta\n"
        "sink = open_sink(sys.argv[1], fps=5, preset='ultrafast', threads=1)\n"
        "rng = np.random.default_rng(0)\n"
        "for i in range(80):\n"
        "    pixels = rng.integers(0, 255, (96, 128, 3), np.uint8)\n"
        "    frame = Frame.from_array(pixels, pts_ns=i * 200_000_000)\n"
        "    sink.write(frame, FrameMeta('s', 0, i, 0, 128, 96))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert not path.exists()
    with open_source(str(path) + ".part") as source:
        assert sum(1 for _ in source) >= 10


@pytest.mark.parametrize("name", ["x.mp4", "x.mov", "x.mkv"])
@pytest.mark.parametrize("fps", [slow(1), 4])
@pytest.mark.parametrize(("live", "held"), [(False, 12), (True, 1)])
def test_a_part_of_a_slow_source_has_all_but_two_seconds_and_what_the_encoder_holds(
    tmp_path: Path, name: str, fps: int, live: bool, held: int
) -> None:
    """Key frames, one in two seconds at the expected rate, are 12 to 50 seconds apart here."""
    sink = open_sink(str(tmp_path / name), threads=1)
    rng = np.random.default_rng(0)
    for i in range(60):
        pixels = rng.integers(0, 255, (48, 64, 3), np.uint8)
        frame = Frame.from_array(pixels, pts_ns=i * 1_000_000_000 // fps)
        frame = replace(frame, live=live, fps=float(fps))
        sink.write(frame, FrameMeta("s", 0, i, 0, 64, 48))
    part = shutil.copy(tmp_path / f"{name}.part", tmp_path / f"killed.{name}")
    sink.close()
    assert cut_to_whole(Path(part), VIDEO_FORMATS[Path(name).suffix]) >= 60 - 2 * fps - held
    assert len(read(tmp_path / name)) == 60


def test_no_frames_no_video(tmp_path: Path) -> None:
    with open_sink(str(tmp_path / "x.mp4")) as sink:
        pass
    assert list(tmp_path.iterdir()) == []
    assert [n.level for n in sink.notices] == ["warning"]


def test_an_older_video_is_replaced_only_when_the_new_one_is_done(
    tmp_path: Path, make_meta: MakeMeta
) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(b"old")
    with open_sink(str(path)) as sink:
        sink.write(gray_frame(), make_meta(gray_frame()))
        assert path.read_bytes() == b"old"
    assert len(read(path)) == 1


def test_image_folder(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(f"{tmp_path}/out/") as sink:
        assert sink.kind == "images"
        for i in (0, 12):
            sink.write(gray_frame(i), make_meta(gray_frame(i)))
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["frame_000000.jpg", "frame_000012.jpg"]
    (back,) = read(tmp_path / "out" / "frame_000012.jpg")
    gray = (luma_of(12) - 16) * 255 / 219
    assert abs(back.planes[0].mean() - gray) < 2


def test_png_is_exact(tmp_path: Path, make_meta: MakeMeta) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    frame = Frame.from_array(pixels, PixelFormat.RGB)
    with open_sink(f"{tmp_path}/p_%03d.png") as sink:
        sink.write(frame, make_meta(frame))
    (back,) = read(tmp_path / "p_000.png")
    np.testing.assert_array_equal(back.planes[0], pixels)


def test_images_keep_their_names(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame(0, source="photos/cat.png")
    with open_sink(f"images:{tmp_path}/out") as sink:
        sink.write(frame, make_meta(frame))
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["cat.jpg"]


def test_one_image(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "one.jpg"
    with open_sink(str(path)) as sink:
        sink.write(gray_frame(), make_meta(gray_frame()))
        with pytest.raises(MediaError, match="more than one frame"):
            sink.write(gray_frame(), make_meta(gray_frame()))
    assert len(read(path)) == 1


def test_full_disk_leaves_no_half_image(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame(size=(640, 480))
    sink = open_sink(f"images:{tmp_path}")
    with file_size_limit(500), pytest.raises(MediaError, match="frame 0 could not be written"):
        sink.write(frame, make_meta(frame))
    assert list(tmp_path.iterdir()) == []


def test_full_disk_leaves_the_older_image(tmp_path: Path, make_meta: MakeMeta) -> None:
    old = tmp_path / "frame_000000.jpg"
    old.write_bytes(b"older")
    frame = gray_frame(size=(640, 480))
    sink = open_sink(f"images:{tmp_path}")
    with file_size_limit(500), pytest.raises(MediaError, match="frame 0 could not be written"):
        sink.write(frame, make_meta(frame))
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_bytes() == b"older"


def test_an_image_goes_not_where_a_link_points(tmp_path: Path, make_meta: MakeMeta) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "one.jpg"
    link.symlink_to(tmp_path / "there" / "other.jpg")
    with pytest.raises(MediaError, match="it is a link to"), open_sink(str(link)) as sink:
        sink.write(gray_frame(), make_meta(gray_frame()))
    assert link.is_symlink()
    assert list((tmp_path / "there").iterdir()) == []


def test_images_being_read_are_not_overwritten(tmp_path: Path, make_meta: MakeMeta) -> None:
    path = tmp_path / "a.jpg"
    with open_sink(str(path)) as sink:
        sink.write(gray_frame(), make_meta(gray_frame()))
    before = path.read_bytes()
    with open_source(str(tmp_path / "*.jpg")) as source, open_sink(f"images:{tmp_path}") as sink:
        frame = next(iter(source))
        with pytest.raises(MediaError, match="overwritten"):
            sink.write(frame, make_meta(frame))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("out.xyz", r"'\.xyz' does not say"),
        ("out", "without extension"),
        ("koko:out", r"'koko' is not a kind.*\n.*\n  did you mean coco:PATH"),
        ("out.mp5", "did you mean mp4:PATH"),
        ("jsonl:", "path is missing"),
        ("", "empty"),
        ("images:a_%d_%d.png", "not a pattern"),
        ("images:a_%s.png", "not a pattern"),
    ],
)
def test_specs_that_are_refused(
    spec: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MediaError, match=said):
        open_sink(spec)


def test_output_is_not_the_input(clip: Path) -> None:
    link = clip.with_name("link.mp4")
    link.symlink_to(clip)
    for spec in (str(clip), str(link), f"jsonl:{clip}", f"images:{clip.parent}"):
        with pytest.raises(MediaError, match="which this run reads or writes"):
            open_sink(spec, inputs=[str(clip), str(clip.parent)])
    with pytest.raises(MediaError, match="which this run reads or writes"):
        open_sink("new.mp4", inputs=["./new.mp4", "rtsp://x/y"])


def test_interrupt_inside_a_write_loses_nothing(
    tmp_path: Path, make_meta: MakeMeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while FFmpeg writes: the bytes are written, then the interrupt is raised."""
    path = tmp_path / "x.mp4"
    real, calls = os.pwrite, []

    def pwrite(fd: int, data: bytes, at: int) -> int:
        calls.append(at)
        if len(calls) == 3:
            real(fd, data[:5], at)  # cut in the middle
            raise KeyboardInterrupt
        return real(fd, data, at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with contextlib.suppress(KeyboardInterrupt), open_sink(str(path), fps=5) as sink:
        write_noise(sink, make_meta, 100)
    assert len(calls) > 3
    assert sink.frames < 99
    assert len(read(path)) >= sink.frames


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 5)])
def test_tiny_frames(tmp_path: Path, make_meta: MakeMeta, size: tuple[int, int]) -> None:
    path = tmp_path / "x.mp4"
    with open_sink(str(path)) as sink:
        sink.write(gray_frame(0, size), make_meta(gray_frame(0, size)))
    assert len(read(path)) == 1


def test_a_size_the_encoder_refuses(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame(0, (20000, 2))
    sink = open_sink(str(tmp_path / "x.mp4"))
    with pytest.raises(MediaError, match="20000x2"):
        sink.write(frame, make_meta(frame))
    sink.abort("refused")
    assert list(tmp_path.iterdir()) == []
