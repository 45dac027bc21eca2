"""Engines of TensorRT read without TensorRT: release, GPU, names, plugins, exporters' metadata."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.formats.tensorrt import built_by, read_engine_facts, tensors_text


def name(text: str, width: int = 8) -> bytes:
    return len(text).to_bytes(width, "little") + text.encode()


def engine(*names: str) -> bytes:
    """The beginning of a file of TensorRT 8.6 or later, then names behind their lengths."""
    head = b"ftrt" + struct.pack("<IQQ", 0, 0, 0) + bytes((10, 3, 0, 26))
    return head + b"".join(name(text) + b"\xff\0" for text in names)


def test_facts_of_an_engine(tmp_path: Path) -> None:
    data = engine("images", "output0", "/model.22/dfl/conv/Conv", "images", "NVIDIA RTX 4090")
    data += b"\0\0EfficientNMS_TRT\0\0" + name("Roi_TRT", 4) + b"\0noise of weights=<"
    (tmp_path / "a.engine").write_bytes(data)
    facts = read_engine_facts(tmp_path / "a.engine")
    assert facts.built_by == "TensorRT 10.3.0.26"
    assert facts.gpu == "NVIDIA RTX 4090"
    assert facts.names == ("images", "output0", "/model.22/dfl/conv/Conv")
    assert facts.plugins == ("EfficientNMS_TRT", "Roi_TRT")
    assert facts.metadata == {}


def test_metadata_that_an_exporter_wrote_in_front(tmp_path: Path) -> None:
    text = json.dumps({"task": "detect", "names": {"0": "cat"}, "imgsz": [640, 640]}).encode()
    (tmp_path / "a.engine").write_bytes(struct.pack("<I", len(text)) + text + engine("images"))
    facts = read_engine_facts(tmp_path / "a.engine")
    assert facts.metadata["imgsz"] == [640, 640]
    assert facts.names == ("images",)
    assert facts.built_by == "TensorRT 10.3.0.26"


@pytest.mark.parametrize(("data", "words"), [
    (b"ptrt" + struct.pack("<I", 213), "TensorRT 8.4"),
    (b"ptrt" + struct.pack("<I", 96), "TensorRT 8.5 or older"),
    (b"ptrt", "TensorRT 8.5 or older"),
    (b"ftrt", "TensorRT 8.6 or newer"),
    (b"ftrt" + b"\xee" * 40, "TensorRT 8.6 or newer"),
    (b"vtrt" + b"\xee" * 40, "TensorRT-RTX"),
])  # fmt: skip
def test_the_release_of_older_engines(data: bytes, words: str) -> None:
    assert built_by(data) == words


def test_a_real_engine(data_dir: Path) -> None:
    facts = read_engine_facts(data_dir / "models" / "lenet5.engine")
    assert facts.gpu == "NVIDIA Tegra X2"
    assert {"input_1", "dense_1/Softmax"} <= set(facts.names)
    assert facts.shapes["input_1"] == (1, 28, 28)
    assert facts.shapes["dense_1/Softmax"] == (1, 1, 10)


def dimensions(*sizes: int, kinds: int = 0) -> bytes:
    count = len(sizes)
    table = (-4, 12 + 4 * count, 4, count, *sizes, count, *[kinds] * count)
    return struct.pack(f"<{len(table)}i", *table)


@pytest.mark.parametrize(("behind", "shape"), [
    (dimensions(3, 640, 640), (3, 640, 640)),
    (dimensions(3, 0, 640), None),
    (dimensions(3, 640, 640, kinds=99), None),
    (dimensions(3, 640, 640)[:-4], None),
    (dimensions(*range(1, 10)), None),
    (bytes(60), None),
])  # fmt: skip
def test_shapes_of_older_engines(
    tmp_path: Path, behind: bytes, shape: tuple[int, ...] | None
) -> None:
    data = b"ptrt" + struct.pack("<I", 232) + name("images", 4) + b"\0\0" + behind
    (tmp_path / "a.engine").write_bytes(data)
    facts = read_engine_facts(tmp_path / "a.engine")
    assert facts.shapes.get("images") == shape
    assert facts.names[0] == "images"


def tagged(kind: int, *parts: bytes) -> bytes:
    """A value of the newer engines' stream: tag, version, content."""
    return struct.pack("<HH", 0x8000 + kind, 1) + b"".join(parts)


def number(value: int) -> bytes:
    return tagged(7, struct.pack("<i", value))


def tensor(
    text: str, sizes: tuple[int, ...], role: int, *, place: int = 0, wide: bool = False
) -> bytes:
    """The record of a tensor, as engines of TensorRT 8.6 to 10.15 have it."""
    length = struct.pack("<Q", len(text.encode()))
    data = tagged(0x26, number(place), tagged(0x9D))
    data += tagged(0x18, length) + b"\1\x80" + tagged(0xC, length, text.encode())
    data += tagged(0x37, tagged(3, b"\0"), tagged(0xE, number(0)), tagged(3, b"\0"), b"\0\1\x80")
    data += tagged(9, struct.pack("<9q", 8, *range(8))) + number(0) + b"\xc8\x7f"
    kind, form = (0xEA, "q") if wide else (0x11, "i")
    axes = struct.pack(f"<Q{len(sizes)}{form}", len(sizes), *sizes)
    data += tagged(kind, number(len(sizes))) + b"\1\x80" + tagged(9 if wide else 7, axes)
    data += struct.pack("<H", 0xFFFF - 0x8000 - kind)
    return data + tagged(0x24, number(0)) + tagged(0x53, number(role)) + b"\x62\x7f\x60\x7f"


@pytest.mark.parametrize("wide", [False, True])
def test_inputs_and_outputs_of_newer_engines(tmp_path: Path, wide: bool) -> None:
    data = engine() + tensor("/model.0/Conv_output_0", (1, 16, 320, 320), 0, place=1, wide=wide)
    data += tensor("output0", (-1, 84, 8400), 1, wide=wide)
    data += tensor("images", (-1, 3, 640, 640), 0, wide=wide)
    data += tensor("größe", (), 0, wide=wide) + tensor("far", (2**40,) * wide, 7, wide=wide)
    (tmp_path / "a.engine").write_bytes(data)
    facts = read_engine_facts(tmp_path / "a.engine")
    assert facts.inputs == {"images": (-1, 3, 640, 640), "größe": ()}
    assert facts.outputs == {"output0": (-1, 84, 8400)}
    assert tensors_text(facts.outputs) == "output0 ?x84x8400"


@given(st.binary(max_size=200), st.integers(0, 300))
def test_a_damaged_record_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int
) -> None:
    path = tmp_path_factory.mktemp("x") / "a.engine"
    whole = engine() + tensor("images", (1, 3, 8, 8), 0)
    path.write_bytes(whole[:start] + data + whole[start + len(data) :])
    read_engine_facts(path)
    path.write_bytes(whole[:start])
    assert read_engine_facts(path).inputs in ({}, {"images": (1, 3, 8, 8)})


@given(st.binary(max_size=200))
def test_any_engine_is_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("x") / "a.engine"
    for start in (b"", engine("images"), struct.pack("<I", 30) + b"{"):
        path.write_bytes(start + data)
        read_engine_facts(path)
