"""Split videos of every key-frame structure: boxes and time stamps of the unsplit run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import av
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.batches.test_running import here, rows, run
from tests.media.sources.videos import B_FRAMES, KINDS, X264, remuxed, write_video

__all__ = ["here"]

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
FRAMES, GOP = 60, 12
Images = Sequence[np.ndarray]
Maker = Callable[[Path, Images], Path]


def encoded(**options: object) -> Maker:
    return lambda path, images: write_video(path, images=images, **options)


def again(suffix: str, **options: object) -> Maker:
    """The packets of a video with B frames in another container."""

    def make(path: Path, images: Images) -> Path:
        video = write_video(path.with_name(f"{path.stem}-first{suffix}"), options=B_FRAMES,
                          images=images)  # fmt: skip
        made = remuxed(video, path, **options)
        video.unlink()
        return made

    return make


def cut_short(path: Path, images: Images) -> Path:
    write_video(path, options=X264, images=images, container={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    return path


def without_index(path: Path, images: Images) -> Path:
    """The index at the end of a video is missing: Cues of MKV, idx1 of AVI."""
    write_video(path, images=images, options=B_FRAMES if path.suffix == ".mkv" else {},
               codec="libx264" if path.suffix == ".mkv" else "mpeg4")  # fmt: skip
    data = path.read_bytes()
    path.write_bytes(data[: data.rfind(b"\x1c\x53\xbb\x6b" if path.suffix == ".mkv" else b"idx1")])
    return path


def damaged(path: Path, images: Images) -> Path:
    write_video(path, options=X264, images=images)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(byte ^ 0x55 for byte in data[middle : middle + 400])
    path.write_bytes(data)
    return path


def of_two_sizes(path: Path, images: Images) -> Path:
    """Half of a stream has another size, as after a change of channel."""
    half = len(images) // 2
    small = [np.ascontiguousarray(image[::2, ::2]) for image in images[half:]]
    parts = [
        write_video(path.with_name(f"part{n}.ts"), options=X264, images=part,
                   container={"output_ts_offset": str(n * half / 25)})
        for n, part in enumerate((images[:half], small))
    ]  # fmt: skip
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    for part in parts:
        part.unlink()
    return path


def x265(params: str) -> dict[str, str]:
    return {"preset": "ultrafast", "x265-params": f"log-level=0:scenecut=0:{params}"}


def x264(params: str) -> dict[str, str]:
    return {"preset": "medium", "x264-params": f"scenecut=0:{params}"}


VPX = {"cpu-used": "8", "deadline": "good", "auto-alt-ref": "1", "lag-in-frames": "16"}
SVT = {"preset": "11"}
MAKERS: dict[str, Maker] = {
    **{name: encoded(**options) for name, options in KINDS.items()},
    "pyramid.mp4": encoded(options=x264("bframes=8:b-pyramid=strict:ref=6")),
    "slices.ts": encoded(options=x264("slices=4:bframes=2")),
    "interlaced.ts": encoded(options=x264("tff=1:bframes=2")),
    "hevc_closed.mp4": encoded(codec="libx265", options=x265("open-gop=0:bframes=3")),
    "hevc_closed.mkv": encoded(codec="libx265", options=x265("open-gop=0:bframes=3")),
    "hevc_closed.ts": encoded(codec="libx265", options=x265("open-gop=0:bframes=3")),
    "hevc_open.ts": encoded(codec="libx265", options=x265("open-gop=1:bframes=3")),
    "hidden_frames_vp9.webm": encoded(codec="libvpx-vp9", options=VPX),
    "hidden_frames_vp8.webm": encoded(codec="libvpx", options=VPX),
    "av1.mkv": encoded(codec="libsvtav1", options=SVT),
    "av1.mp4": encoded(codec="libsvtav1", options=SVT),
    "av1_open.mkv": encoded(codec="libsvtav1", options=SVT | {"svtav1-params": "irefresh-type=1"}),
    "fragments.mp4": encoded(
        options=B_FRAMES, container={"movflags": "frag_keyframe+empty_moov+default_base_moof"}
    ),
    "msmpeg4.avi": encoded(codec="msmpeg4v3"),
    "flv.flv": encoded(codec="flv"),
    "raw.h264": encoded(options=B_FRAMES),  # its length is not known
    "edit_list.mp4": again(".mp4", shift_s=-0.7, container={"avoid_negative_ts": "disabled"}),
    "edit_list.mov": again(".mp4", shift_s=-1.0, container={"avoid_negative_ts": "disabled"}),
    "starts_late.mp4": again(".mp4", shift_s=3.3),
    "starts_late.mkv": again(".mp4", shift_s=7200.0),
    "wraps.ts": again(".mp4", container={"output_ts_offset": str((2**33 - 90000) / 90000)}),
    "cut_short.mp4": cut_short,
    "no_index.mkv": without_index,
    "no_index.avi": without_index,
    "damaged.ts": damaged,
    "two_sizes.ts": of_two_sizes,
}  # fmt: skip


@pytest.fixture(scope="module")
def images() -> Images:
    with av.open(str(SCENE / "conveyor.mp4")) as video:
        frames = video.decode(video=0)
        small = (next(frames).reformat(320, 192) for _ in range(FRAMES))
        return [frame.to_ndarray(format="rgb24") for frame in small]


@pytest.mark.slow
def test_split_videos_have_the_boxes_and_times_of_the_unsplit_run(
    here: None, images: Images, tmp_path: Path
) -> None:
    config = shutil.copytree(SCENE, tmp_path / "scene") / "config_infer_primary.txt"
    folder = tmp_path / "videos"
    folder.mkdir()
    for name, make in MAKERS.items():
        make(folder / name, images)
    found = {}
    for seconds in (0, 0.4):
        out = tmp_path / f"out{seconds}"
        # one thread each: what several decoder threads make of damage differs from run to run
        done = run(config, folder, "-o", out, "--threads", 1, "-q", "--split", seconds)
        assert done.exit_code == 0, done.output
        found[seconds] = {}
        for row in rows(out):
            found[seconds].setdefault(Path(row[0]).name, []).append(row)
    units = {}
    for unit in pq.read_table(tmp_path / "out0.4" / "manifest.parquet").to_pylist():
        units.setdefault(Path(unit["input"]).name, []).append(unit)
    assert set(found[0]) == set(units) == set(MAKERS)
    for name, whole in found[0].items():
        assert len(whole) > 100
        assert found[0.4][name] == whole, name
        warnings = "; ".join(units[name][0]["warnings"])
        assert len(units[name]) > 1 or "not split: " in warnings or name == "raw.h264"
    cut = [name for name, parts in units.items() if len(parts) > 1]
    assert len(cut) >= 29, cut
