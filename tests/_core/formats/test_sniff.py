import struct

import pytest

from headrace._core.formats.foreign import looks_like
from headrace._core.formats.sniff import HEAD_BYTES
from headrace._core.formats.tensorrt import is_tensorrt_engine

CASES = [
    (b"ptrt" + b"\1" * 60, "TensorRT"),
    (b"ftrt" + b"\1" * 60, "TensorRT"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12\n", "Git LFS"),
    (b"\n<!DOCTYPE html>\n<html><body>404</body></html>", "HTML"),
    (b"<html>", "HTML"),
    (b'<?xml version="1.0"?>\n<net name="x">', "OpenVINO"),
    (b"PK\x03\x04" + b"\0" * 26 + b"archive/data.pkl", "zip"),
    (b"PK\x03\x04" + b"\0" * 40, "zip archive"),
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "pickle"),
    (b"\x1c\0\0\0TFL3" + b"\0" * 20, "TensorFlow Lite"),
    (b"\x20\0\0\0\0\0\0\0" + b'{"weight":{"dtype":"F32"}}      ', "safetensors"),
    (b"\x89HDF\r\n\x1a\n", "HDF5"),
    (b"[net]\nbatch=1\n", "Darknet"),
    (b"\0" * 512, "zero bytes"),
    (b"hello, this is no model\n", "text"),
    ("ein Modell, später\n".encode(), "text"),
]


@pytest.mark.parametrize(("head", "words"), CASES)
def test_known_formats_are_named(head, words):
    size = len(head) if b"safetensors" not in head else 10_000
    assert words in (looks_like(head, size) or "")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lenet5.engine", "TensorRT"),
        ("lenet5.uff", "UFF"),
        ("lenet5.pb", "TensorFlow graph"),
        ("RFB-320.caffemodel", "Caffe model"),
        ("RFB-320.prototxt", "prototxt"),
    ],
)
def test_real_files_are_named(data_dir, name, words):
    data = (data_dir / "models" / name).read_bytes()
    assert words in (looks_like(data[:HEAD_BYTES], len(data)) or "")


def test_models_are_not_taken_for_something_else(data_dir):
    for path in (data_dir / "models").glob("*.onnx"):
        data = path.read_bytes()
        assert looks_like(data[:HEAD_BYTES], len(data)) is None


def test_random_bytes_look_like_nothing():
    assert looks_like(bytes([200, 3, 250, 17] * 40), 160) is None


@pytest.mark.parametrize(("root", "aligned"), [(16, True), (12, True), (14, False), (4, False)])
def test_the_root_of_an_old_tensorrt_engine_is_aligned(root, aligned):
    head = struct.pack("<QI", 984, root) + bytes(HEAD_BYTES)
    assert is_tensorrt_engine(head, 1000) == aligned


def test_a_truncated_old_tensorrt_engine_is_no_engine(data_dir):
    head = (data_dir / "models" / "lenet5.engine").read_bytes()[:HEAD_BYTES]
    assert is_tensorrt_engine(head, 1631456)
    assert not is_tensorrt_engine(head, 1000)
