"""PPM mean files. Source: spec A.4."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from headrace.errors import ConfigError
from headrace.infer.mean_file import load_mean


@pytest.fixture
def write(tmp_path):
    def write_file(data: bytes):
        path = tmp_path / "mean.ppm"
        path.write_bytes(data)
        return path

    return write_file


def test_pillow_file_reads_back(write):
    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PPM")
    mean = load_mean(write(buffer.getvalue()), 7, 5, 3)
    assert mean.dtype == np.float32
    np.testing.assert_array_equal(mean, pixels)


@pytest.mark.parametrize(
    "header", [b"P6\n2 2\n255\n", b"P6 2 2 31 ", b"P6\t2\r\n2 65535\n", b"P6 2 2 255\n"]
)
def test_accepted_headers(write, header):
    body = bytes(range(12))
    mean = load_mean(write(header + body + b"trailing bytes"), 2, 2, 3)
    assert mean.ravel().tolist() == list(body)


def test_one_separator_byte_only(write):
    mean = load_mean(write(b"P6\n1 1\n255\n\n\t "), 1, 1, 3)
    assert mean.ravel().tolist() == [10, 9, 32]


def test_grey_models_read_one_byte_per_pixel(write):
    mean = load_mean(write(b"P6\n2 2\n255\n\x01\x02\x03\x04"), 2, 2, 1)
    assert mean.shape == (2, 2, 1)
    assert mean.ravel().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"P5\n2 2\n255\n" + bytes(12), "'P5', which is not a PPM"),
        (b"P3\n2 2\n255\n" + b"1 " * 12, "text PPM"),
        (b"P6\n2 3\n255\n" + bytes(18), "is 2x3"),
        (b"P6\n2 2\n255\n" + bytes(11), "11 bytes of pixels"),
        (b"P6\n# made by a tool\n2 2\n255\n" + bytes(12), "comment"),
        (b"P6\n2 x\n255\n" + bytes(12), "is 2xx"),
        (b"P6\n" + b"9" * 5000 + b" 2\n255\n", "is 9999"),
        (b"P6\n2 2", "ends within its header"),
        (b"P6", "ends within its header"),
        (b"", "not a PPM"),
        (b" \n", "not a PPM"),
        (b"\xff\xd8\xff\xe0 jpeg", "not a PPM"),
    ],
)
def test_refused_files_say_why(write, data, message):
    path = write(data)
    with pytest.raises(ConfigError, match=message) as error:
        load_mean(path, 2, 2, 3, where="config.txt:7: mean-file")
    assert str(path) in str(error.value)
    assert str(error.value).startswith("config.txt:7: mean-file")


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.ppm", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_mean(path, 2, 2, 3)


@given(data=st.binary(max_size=60) | st.binary(max_size=40).map(lambda b: b"P6\n" + b))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.ppm"
    path.write_bytes(data)
    with contextlib.suppress(ConfigError):
        assert load_mean(path, 2, 1, 3).shape == (1, 2, 3)
