"""Video files: every frame with its time, as views; damage is counted; wrong files are named."""

from __future__ import annotations

import gc
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from headrace.errors import MediaError
from headrace.media import ColorSpace, PixelFormat, open_source
from tests.media.conftest import luma_of, write_clip
from tests.media.sources.videos import remuxed, turned, write_video
from tests.memory import resident
from tests.ports import free_port


def packets_of(path: Path) -> list[tuple[int, int]]:
    with av.open(str(path)) as container:
        return [(p.pos, p.size) for p in container.demux(video=0) if p.size]


def test_frames_times_and_pixels(clip: Path) -> None:
    with open_source(str(clip), source_id=3) as source:
        assert (source.width, source.height, source.fps, source.frames) == (64, 48, 25.0, 12)
        assert not source.live
        frames = list(source)
        assert list(source) == []  # read once
    assert [f.frame for f in frames] == list(range(12))
    assert [f.pts_ns for f in frames] == [i * 40_000_000 for i in range(12)]
    assert {(f.source, f.source_id, f.format) for f in frames} == {(str(clip), 3, PixelFormat.I420)}
    for i, frame in enumerate(frames):  # after close: frames keep their memory
        assert abs(float(frame.planes[0].mean()) - luma_of(i)) < 2.5
    assert source.notices == []


def test_a_video_that_players_turn_is_named(tmp_path: Path) -> None:
    with open_source(str(turned(write_clip(tmp_path / "v.mp4", 3)))) as source:
        assert {(f.width, f.height) for f in source} == {(64, 48)}
    (notice,) = source.notices
    assert (notice.code, notice.level) == ("rotation-ignored", "warning")


def test_planes_are_views_on_decoder_memory(clip: Path) -> None:
    with open_source(str(clip)) as source:
        frame = next(iter(source))
    assert frame.owner is not None
    assert all(not p.flags.owndata and not p.flags.writeable for p in frame.planes)
    address = frame.planes[0].__array_interface__["data"][0]
    assert address == frame.owner.planes[0].buffer_ptr


def test_variable_frame_rate_is_kept(tmp_path: Path) -> None:
    times = [0, 10, 25, 200, 210, 1000]
    path = write_clip(tmp_path / "v.mkv", 6, pts=times)
    with open_source(str(path)) as source:
        assert [f.pts_ns for f in source] == [t * 1_000_000 for t in times]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (None, ColorSpace.BT601),
        ((1, 1), ColorSpace.BT709),
        ((9, 1), ColorSpace.BT2020),
        ((6, 2), ColorSpace.BT601_FULL),
        ((1, 2), ColorSpace.BT709_FULL),
        ((5, 1), ColorSpace.BT601),
    ],
)
def test_color_tags(tmp_path: Path, tags: tuple[int, int] | None, expected: ColorSpace) -> None:
    path = write_clip(tmp_path / "c.mp4", 2, color=tags)
    with open_source(str(path)) as source:
        assert {f.color for f in source} == {expected}


@pytest.mark.parametrize(
    ("codec", "pix_fmt", "expected", "converted"),
    [
        ("mjpeg", "yuvj420p", PixelFormat.I420, False),
        ("mjpeg", "yuvj422p", PixelFormat.I420, True),
        ("ffv1", "yuv444p", PixelFormat.I420, True),
        ("ffv1", "gray", PixelFormat.GRAY, False),
        ("ffv1", "gray16le", PixelFormat.GRAY, True),
        ("ffv1", "bgr0", PixelFormat.RGB, True),
        ("ffv1", "yuv420p10le", PixelFormat.I420, True),
        ("rawvideo", "rgb24", PixelFormat.RGB, False),
        ("rawvideo", "nv12", PixelFormat.NV12, False),
    ],
)
def test_pixel_formats(
    tmp_path: Path, codec: str, pix_fmt: str, expected: PixelFormat, converted: bool
) -> None:
    suffix = ".nut" if codec == "rawvideo" else ".mkv"
    path = write_clip(tmp_path / f"c{suffix}", 3, codec=codec, pix_fmt=pix_fmt)
    with open_source(str(path)) as source:
        frames = list(source)
    assert [f.format for f in frames] == [expected] * 3
    told = [n.sentence for n in source.notices]
    assert len(told) == converted
    if converted:
        assert pix_fmt in told[0]
    full = pix_fmt.startswith("yuvj")
    assert frames[0].color is (ColorSpace.BT601_FULL if full else ColorSpace.BT601)


def test_conversion_keeps_levels_and_range(tmp_path: Path) -> None:
    """yuvj422p to I420 only halves chroma: luma stays the same bytes."""
    path = write_clip(tmp_path / "c.mkv", 2, codec="mjpeg", pix_fmt="yuvj422p")
    with av.open(str(path)) as container:
        raw = [
            np.frombuffer(f.planes[0], np.uint8).reshape(48, -1)[:, :64].copy()
            for f in container.decode(video=0)
        ]
    with open_source(str(path)) as source:
        for frame, expected in zip(source, raw, strict=True):
            np.testing.assert_array_equal(frame.planes[0], expected)


def test_odd_size(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "o.mkv", 3, size=(65, 47), codec="ffv1")
    with open_source(str(path)) as source:
        frame = next(iter(source))
    assert [p.shape for p in frame.planes] == [(47, 65), (24, 33), (24, 33)]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("victim", [5, 11])
@pytest.mark.sampled
def test_a_damaged_frame_is_left_out(tmp_path: Path, threads: int, victim: int) -> None:
    path = write_clip(tmp_path / "d.mp4", options={"bf": "0", "x264-params": "keyint=4"})
    data = bytearray(path.read_bytes())
    at, size = packets_of(path)[victim]
    data[at + 4 : at + size] = random.Random(1).randbytes(size - 4)
    path.write_bytes(data)
    with open_source(str(path), threads=threads) as source:
        frames = list(source)
    assert len(frames) == 11
    assert source.skipped == 1
    assert [(n.level, n.sentence) for n in source.notices] == [
        ("warning", "1 damaged frame was left out")
    ]
    assert [f.pts_ns for f in frames] == [i * 40_000_000 for i in range(12) if i != victim]


def test_a_file_cut_off_ends_early(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "t.mp4", 40, container_options={"movflags": "faststart"})
    at, size = packets_of(path)[25]
    path.write_bytes(path.read_bytes()[: at + size // 2])
    with open_source(str(path), threads=1) as source:
        count = len(list(source))
    assert 20 <= count <= 25
    assert f"ended early, at frame {count} of 40" in [n.sentence for n in source.notices]


def test_missing_index_is_named(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "m.mp4", 20)
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"moov") - 4])
    with pytest.raises(MediaError, match="index"):
        open_source(str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b"just words\n", "it is text"), (b"\x00\xff" * 50, "100 bytes")],
)
def test_not_a_video(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(content)
    with pytest.raises(MediaError, match=said):
        open_source(str(path))


def test_sound_only(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.rate = 8000
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    with pytest.raises(MediaError, match=r"no video in it \(audio\)"):
        open_source(str(path))


def test_missing_file_offers_the_nearest(clip: Path) -> None:
    with pytest.raises(MediaError, match=r"no such file\n.*clip\.mp4"):
        open_source(str(clip.with_name("klip.mp4")))
    with pytest.raises(MediaError):
        open_source("")


def test_file_url(clip: Path) -> None:
    with open_source(clip.as_uri()) as source:
        assert len(list(source)) == 12


def test_no_camera() -> None:
    with pytest.raises(MediaError, match="there is no camera 77"):
        open_source("camera:77")
    with pytest.raises(MediaError, match="there is no camera 77"):
        open_source("/dev/video77")


@pytest.mark.parametrize("scheme", ["rtsp", "http", "tcp"])
def test_refused_connection_shows_no_credentials(scheme: str) -> None:
    port = free_port()
    with pytest.raises(MediaError, match="connection refused") as caught:
        open_source(f"{scheme}://me:hunter2@127.0.0.1:{port}/live?key=hunter2", timeout_s=2)
    error: BaseException | None = caught.value
    assert error is not None
    assert f"{scheme}://127.0.0.1:{port}/live" in str(error)
    while error is not None:
        assert "hunter2" not in repr(error)
        error = error.__cause__ or error.__context__


def test_a_silent_peer_times_out() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        url = f"rtsp://127.0.0.1:{server.getsockname()[1]}/x"
        with pytest.raises(MediaError, match="cannot be opened"):
            open_source(url, timeout_s=0.5)


def test_http_stream(clip: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1", "-d", str(clip.parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        text=True,
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().split("port ")[1].split()[0]
        with open_source(f"http://u:hunter2@127.0.0.1:{port}/clip.mp4") as source:
            frames = list(source)
        assert len(frames) == 12
        assert frames[0].source == source.name == f"http://127.0.0.1:{port}/clip.mp4"
        assert not source.live
        assert source.frames == 12
    finally:
        server.terminate()
        server.wait()
        server.stdout and server.stdout.close()


@pytest.mark.slow
def test_memory_stays_flat(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "long.mp4", 2000, options={"preset": "ultrafast"})

    def decode() -> None:
        with open_source(str(path)) as source:
            assert sum(1 for _ in source) == 2000
        gc.collect()

    decode()
    before = resident()
    decode()
    # 2,000 frames of 64x48 are 9 MB: keeping them would show.
    assert resident() - before < 4 << 20


def test_size_changes_mid_stream(tmp_path: Path) -> None:
    path = tmp_path / "both.ts"
    parts = [
        write_clip(tmp_path / f"{i}.ts", 5, size=s) for i, s in enumerate(((64, 48), (96, 80)))
    ]
    path.write_bytes(b"".join(p.read_bytes() for p in parts))
    with open_source(str(path), threads=1) as source:
        sizes = [(f.width, f.height) for f in source]
    assert (source.width, source.height) == (64, 48)
    assert sizes[0] == (64, 48)
    assert sizes[-1] == (96, 80)


@pytest.mark.slow
def test_real_videos(data_dir: Path) -> None:
    with open_source(str(data_dir / "videos" / "car-detection.mp4")) as source:
        frames = sum(1 for _ in source)
    assert (frames, source.frames, source.fps) == (377, 377, 12.5)
    assert source.notices == []


@pytest.mark.parametrize("name", ["a:b.mp4", "jsonl:x.mp4", "new\nline.mp4", "%d [1].mp4"])
def test_a_file_is_no_url_whatever_its_name(
    clip: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clip.parent)
    clip.rename(name)
    with open_source(name) as source:
        assert next(iter(source)).source == name


@pytest.mark.parametrize("name", ["n" * 300, "n" * 300 + ".jpg", "a/" * 3000])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(MediaError):
        open_source(f"{tmp_path}/{name}")


def test_a_recording_that_begins_late_is_whole(tmp_path: Path) -> None:
    """As the second file of a rotated recording: its times go on."""
    path = remuxed(write_video(tmp_path / "a.mp4"), tmp_path / "late.mkv", shift_s=60.0)
    with open_source(str(path)) as source:
        assert source.frames == 60
        assert sum(1 for _ in source) == 60
        assert source.notices == []


def test_a_closed_source_that_is_kept_holds_no_decoder(clip: Path) -> None:
    def decoders() -> int:
        return sum(isinstance(each, av.CodecContext) for each in gc.get_objects())

    before = decoders()
    source = open_source(str(clip))
    assert len(list(source)) == 12
    assert source.rewind()
    assert len(list(source)) == 12
    assert decoders() > before
    source.close()
    assert decoders() == before
