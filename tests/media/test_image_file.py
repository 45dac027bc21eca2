"""Image files are opened by their content, and no larger ones than agreed are decoded."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace.errors import MediaError
from headrace.media import open_source
from headrace.media.image_file import MAX_PIXELS, max_pixels, opened_image
from headrace.media.sources.images import image_size, read_image

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n"
OTHERS = {
    "eps": "PostScript",
    "gif": "a GIF image",
    "ico": "bytes of unknown content",
    "jp2": "a JPEG 2000 image",
    "tga": "bytes of unknown content",
    "pcx": "bytes of unknown content",
}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder before all others of PATH whose `gs` leaves a file behind."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "gs").write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    (folder / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.jpeg", "a.tif", "a.webp", "a.bmp", "a.ppm"])
@pytest.mark.parametrize(
    "head", [b"", b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 30, 99) + bytes(18)]
)
def test_postscript_starts_no_program(
    tmp_path: Path, programs: Path, name: str, head: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(head + POSTSCRIPT)
    with pytest.raises(MediaError, match=r"it is PostScript, not (PNG|JPEG|TIFF|WebP|BMP|PNM)"):
        open_source(str(path))
    assert image_size(path) is None
    assert not (programs / "ran").exists()


@pytest.mark.parametrize(("suffix", "kind"), OTHERS.items())
def test_other_formats_are_refused_under_any_name(tmp_path: Path, suffix: str, kind: str) -> None:
    Image.new("RGB", (16, 16)).save(tmp_path / f"a.{suffix}")
    path = (tmp_path / f"a.{suffix}").rename(tmp_path / "a.png")
    with pytest.raises(MediaError, match=f"it is .*{kind}, not PNG"):
        read_image(path)


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "dib", "webp", "tif", "ppm", "pgm"])
def test_the_content_decides(tmp_path: Path, suffix: str) -> None:
    Image.new("L" if suffix == "pgm" else "RGB", (16, 12), 77).save(tmp_path / f"a.{suffix}")
    path = (tmp_path / f"a.{suffix}").rename(tmp_path / "b.png")
    assert read_image(path).shape == (12, 16, 3)


def png(width: int, height: int) -> bytes:
    """A PNG of a few bytes that states a size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(99)))


@pytest.mark.parametrize("comment", [b"#" + bytes(1 << 21), b"#\n" * (1 << 20), b" " * (1 << 21)])
def test_a_header_of_long_comments_is_refused(tmp_path: Path, comment: bytes) -> None:
    for head, rest in ((b"P6\n", b"\n8 8\n255\n"), (b"P5\n8 ", b"\n8\n255\n")):
        path = tmp_path / "a.ppm"
        path.write_bytes(head + comment + rest + bytes(200))
        with pytest.raises(MediaError, match="the header of the image has more than 64 kB"):
            read_image(path)
    path.write_bytes(b"P6\n#" + bytes(1000) + b"\n8 8\n255\n" + b"#" * 192)
    assert read_image(path).shape == (8, 8, 3)


@pytest.mark.parametrize("size", [(10_001, 10_000), (13_000, 13_000), (200_000, 200_000)])
def test_more_pixels_than_agreed_are_refused_before_they_are_decoded(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(*size))
    assert size[0] * size[1] > MAX_PIXELS
    with pytest.raises(MediaError, match="the image is too large") as caught:
        open_source(str(path))
    assert caught.value.code == "image-too-large"
    assert "100,000,000 pixels" in str(caught.value)
    assert image_size(path) is None


def test_the_limit_is_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (10, 10)).save(tmp_path / "a.png")
    monkeypatch.setenv("HEADRACE_MAX_IMAGE_PIXELS", "100")
    assert read_image(tmp_path / "a.png").shape == (10, 10, 3)
    monkeypatch.setenv("HEADRACE_MAX_IMAGE_PIXELS", "99")
    with pytest.raises(MediaError, match="too large: 10x10"):
        read_image(tmp_path / "a.png")
    for text in ("0", "-1", "many", "1e9"):
        monkeypatch.setenv("HEADRACE_MAX_IMAGE_PIXELS", text)
        with pytest.raises(MediaError, match="is no number of pixels"):
            max_pixels()


def test_files_that_are_too_long_or_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", Path("/dev/zero")):
        with pytest.raises(MediaError, match="no regular file"), opened_image(path):
            pass
    Image.new("RGB", (10, 10)).save(tmp_path / "a.png")
    monkeypatch.setattr("headrace.media.image_file.MAX_BYTES", 20)
    with pytest.raises(MediaError, match="at most 20 are read"):
        read_image(tmp_path / "a.png")


@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_images_are_images_or_errors(tmp_path: Path, data: st.DataObject) -> None:
    suffix = data.draw(st.sampled_from(["png", "jpg", "bmp", "webp", "tif", "ppm"]))
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    options = {"exif": exif} if suffix in ("png", "jpg", "webp", "tif") else {}
    Image.fromarray(pixels).save(tmp_path / f"a.{suffix}", **options)
    content = bytearray((tmp_path / f"a.{suffix}").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / f"b.{suffix}"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    image_size(path)
    with contextlib.suppress(MediaError):
        assert read_image(path).dtype == np.uint8


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"II*\0\0\0\0\0", "it is a TIFF image whose content is damaged"),
        (b"P6\n3secret 4\n255\n", "its content is damaged"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\0secret", "it is a PNG image whose content is damaged"),
    ],
)
def test_what_is_damaged_is_named_without_its_content(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(content)
    with pytest.raises(MediaError) as caught, opened_image(path) as image:
        image.load()
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "not TIFF" not in str(caught.value)


@pytest.mark.slow
def test_no_other_plugin_of_pillow_is_imported(tmp_path: Path) -> None:
    Image.new("RGB", (10, 10)).save(tmp_path / "a.webp")
    (tmp_path / "b.png").write_bytes(POSTSCRIPT)
    code = """
import sys
from pathlib import Path
from headrace.media.sources.images import image_size
print(*(image_size(Path(name)) for name in sys.argv[1:]), "PIL.EpsImagePlugin" in sys.modules)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "a.webp"), str(tmp_path / "b.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "(10, 10) None False"
