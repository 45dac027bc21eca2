"""Images: every kind becomes RGB; folders come in natural order and say what they left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from headrace.errors import MediaError
from headrace.media import PixelFormat, open_source
from headrace.media.names import natural_key
from headrace.media.sources.images import _STRIP_BYTES, read_image


def save(path: Path, color: Any = (200, 100, 50), *, mode: str = "RGB", **options: Any) -> Path:
    Image.new(mode, (8, 6), color).save(path, **options)
    return path


def test_one_image(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png")
    with open_source(str(path), source_id=2) as source:
        assert (source.width, source.height, source.frames, source.fps) == (8, 6, 1, None)
        frames = list(source)
    (frame,) = frames
    assert (frame.format, frame.source, frame.source_id) == (PixelFormat.RGB, str(path), 2)
    assert (frame.planes[0] == (200, 100, 50)).all()


@pytest.mark.parametrize(
    ("mode", "color", "expected"),
    [
        ("L", 77, (77, 77, 77)),
        ("1", 1, (255, 255, 255)),
        ("RGBA", (10, 20, 30, 40), (10, 20, 30)),
        ("LA", (9, 100), (9, 9, 9)),
        ("P", 0, (0, 0, 0)),
        ("I;16", 0x8000, (128, 128, 128)),
    ],
)
def test_modes(tmp_path: Path, mode: str, color: Any, expected: tuple[int, ...]) -> None:
    pixels = read_image(save(tmp_path / "m.png", color, mode=mode))
    assert pixels.shape == (6, 8, 3)
    assert pixels.dtype == np.uint8
    assert (pixels == expected).all()


def test_cmyk_and_float(tmp_path: Path) -> None:
    pixels = read_image(save(tmp_path / "c.tif", (0, 255, 255, 0), mode="CMYK"))
    assert (np.abs(pixels.astype(int) - (255, 0, 0)) <= 2).all()
    assert (read_image(save(tmp_path / "f.tif", 0.5, mode="F")) == 128).all()
    assert (read_image(save(tmp_path / "g.tif", 99.6, mode="F")) == 100).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied(tmp_path: Path, orientation: int) -> None:
    upright = np.zeros((6, 8, 3), np.uint8)
    upright[0, 0] = 255
    # What a camera stores so that a viewer turns it back.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "o.png"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif)
    with open_source(str(path)) as source:
        assert (source.width, source.height) == (8, 6)
        np.testing.assert_array_equal(next(iter(source)).planes[0], upright)


def test_folder(tmp_path: Path) -> None:
    for name in ("f10.png", "f9.png", "F1.PNG"):
        save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "sub").mkdir()
    with open_source(str(tmp_path)) as source:
        assert source.frames == 3
        frames = list(source)
    assert [Path(f.source).name for f in frames] == ["F1.PNG", "f9.png", "f10.png"]
    assert [f.frame for f in frames] == [0, 1, 2]
    assert [f.pts_ns for f in frames] == [0, 40_000_000, 80_000_000]
    assert [n.sentence for n in source.notices] == ["not images, left out: notes.txt"]


def test_folder_at_another_rate(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    save(tmp_path / "b.png")
    with open_source(str(tmp_path), fps=10) as source:
        assert [f.pts_ns for f in source] == [0, 100_000_000]


def test_sizes_differ(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    Image.new("RGB", (20, 10)).save(tmp_path / "b.png")
    with open_source(str(tmp_path)) as source:
        assert [(f.width, f.height) for f in source] == [(8, 6), (20, 10)]


def test_glob(tmp_path: Path) -> None:
    for name in ("a1.png", "a2.png", "b1.png"):
        save(tmp_path / name)
    with open_source(str(tmp_path / "a*.png")) as source:
        assert [Path(f.source).name for f in source] == ["a1.png", "a2.png"]
    with pytest.raises(MediaError, match="matches no file"):
        open_source(str(tmp_path / "z*.png"))


def test_a_name_with_brackets_is_a_file(tmp_path: Path) -> None:
    save(tmp_path / "a[1].png")
    with open_source(str(tmp_path / "a[1].png")) as source:
        assert len(list(source)) == 1


def test_folders_without_images(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="0 files, none of them an image"):
        open_source(str(tmp_path))
    (tmp_path / "a.mp4").touch()
    with pytest.raises(MediaError, match=r"has 1 file, none of them an image"):
        open_source(str(tmp_path))


def test_broken_images_in_a_folder_are_left_out(tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(
        tmp_path / "b.jpg"
    )
    whole = (tmp_path / "b.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "c.jpg").write_bytes(b"text")
    with open_source(str(tmp_path)) as source:
        frames = list(source)
    assert [(f.frame, Path(f.source).name) for f in frames] == [(0, "b.jpg")]
    assert source.skipped == 2
    (notice,) = source.notices
    assert notice.level == "warning"
    assert "a.jpg" in notice.sentence
    assert "c.jpg" in notice.sentence


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b"hello", "text"), (b"\x89PNG\r\n\x1a\n" + bytes(40), "image")],
)
def test_not_an_image(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(MediaError, match=said):
        open_source(str(path))


def test_no_image_at_all_can_be_read(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"no")
    with open_source(str(tmp_path)) as source, pytest.raises(MediaError, match="not one"):
        list(source)


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_natural_order(numbers: list[int]) -> None:
    paths = [Path(f"img_{n}.png") for n in numbers]
    assert sorted(paths, key=natural_key) == [Path(f"img_{n}.png") for n in sorted(numbers)]


@given(st.lists(st.text(st.characters(exclude_characters="/\0"), min_size=1)))
def test_any_names_can_be_sorted(names: list[str]) -> None:
    sorted((Path("x" + n) for n in names), key=natural_key)


def test_an_image_read_in_strips_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (37, 20, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    monkeypatch.setattr("headrace.media.sources.images._STRIP_BYTES", 5 * 60 + 7)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png"), pixels)


PEAK = """
import sys
from pathlib import Path
from PIL import Image
from headrace.media.sources import images

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

Image.preinit()
images._STRIP_BYTES = int(sys.argv[2])
before = peak()
pixels = images.read_image(Path(sys.argv[1]))
print((peak() - before) / pixels.nbytes)
"""


@pytest.mark.slow
def test_a_large_image_is_held_by_pillow_and_once_more(tmp_path: Path) -> None:
    Image.new("RGB", (8000, 8000), (1, 2, 3)).save(tmp_path / "a.png", compress_level=1)

    def peak(strip: int) -> float:
        command = [sys.executable, "-c", PEAK, str(tmp_path / "a.png"), str(strip)]
        return float(subprocess.run(command, capture_output=True, check=True).stdout)

    pillows, ours = 4 / 3, 1  # bytes for each byte of the frame
    assert peak(_STRIP_BYTES) < pillows + ours + 0.25
    assert peak(1 << 40) > pillows + ours + 0.9  # one more copy
