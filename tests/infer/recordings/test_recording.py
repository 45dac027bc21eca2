"""Damaged and hostile recordings are refused in plain words."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core.errors import MediaError
from headrace.infer.recordings import load_recording
from headrace.infer.recordings.records import KEY
from headrace.infer.recordings.safetensors import (
    SafetensorsFile,
    SafetensorsWriter,
    safetensors_bytes,
)
from headrace.infer.recordings.writer import one_item
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.profiles import examples

LAYERS = {n: Layer(n, np.arange(6, dtype=np.float32).reshape(2, 3)) for n in ("a/b", "é")}
PARAMS = DetectionParams(2, np.array([0.25, 0.5], np.float32), labels=("car", "bike"))
WHOLE = one_item("net", LAYERS, NetworkInfo(64, 32, 3), PARAMS)
LENGTH = int.from_bytes(WHOLE[:8], "little")
HEADER: dict[str, Any] = json.loads(WHOLE[8 : 8 + LENGTH])


def packed(header: Any, data: bytes = WHOLE[8 + LENGTH :]) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def changed(**entries: Any) -> bytes:
    return packed(HEADER | {"0/layers/é": HEADER["0/layers/é"] | entries})


def of_metadata(**entries: Any) -> bytes:
    record = json.loads(HEADER["__metadata__"][KEY]) | entries
    return packed(HEADER | {"__metadata__": {KEY: json.dumps(record)}})


def test_what_a_parser_gets_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(WHOLE)
    (item,) = load_recording(tmp_path / "r")
    assert list(item.layers) == ["a/b", "é"]
    np.testing.assert_array_equal(item.layers["é"].data, LAYERS["é"].data)
    assert item.network == NetworkInfo(64, 32, 3)
    assert item.params.labels == ["car", "bike"]
    np.testing.assert_array_equal(item.params.per_class_threshold, [0.25, 0.5])
    assert item.result is None


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "0 bytes hold no header"),
        ((1 << 62).to_bytes(8, "little") + b"{}", "hold no header of 4611686018427387904 bytes"),
        (packed(b"[" * 100_000), "header is damaged"),
        (packed(b'{"a":' * 5000), "damaged|nested"),
        (changed(data_offsets=[0, 24]), "overlaps the one before"),
        (changed(data_offsets=[25, 49]), "leaves a hole before it"),
        (changed(data_offsets=[24, 12]), "has -12 bytes"),
        (changed(dtype="F64"), r"has 24 bytes; F64 \[2, 3\] are 48"),
        (changed(dtype="BF16"), "Invalid enum value 'BF16'"),
        (changed(shape=[-2, -3]), ">= 0"),
        (changed(shape=[1 << 60]), "<= 281474976710656"),
        (changed(shape=[1] * 33 + [6]), "length <= 32"),
        (changed(more=1), "unknown field `more`"),
        (WHOLE + b"x", "48 bytes, and 49 follow the header"),
        (WHOLE[:-1], "48 bytes, and 47 follow the header"),
        (packed({}, b""), "no headrace-recording"),
        (packed(HEADER | {"__metadata__": {KEY: "[" * 100_000}}), "metadata is damaged"),
        (of_metadata(version=2), "metadata is damaged: version: Invalid enum value 2"),
        (of_metadata(models=[]), "item 0 names model 0"),
        (of_metadata(frames=[]), "its frames have other items"),
        (
            packed({k: v for k, v in HEADER.items() if k != "0/layers/a/b"}),
            "at byte 24 leaves a hole",
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    (tmp_path / "r").write_bytes(data)
    with pytest.raises(MediaError, match=found):
        load_recording(tmp_path / "r")


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, len(WHOLE) - 1),
    st.binary(min_size=0, max_size=4),
    st.integers(0, 4),
    st.booleans(),
)
def test_any_change_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, removed: int, length_fits: bool
) -> None:
    data = WHOLE[:at] + new + WHOLE[at + removed :]
    if length_fits and 8 < at < LENGTH:
        data = (LENGTH + len(new) - removed).to_bytes(8, "little") + data[8:]
    file = tmp_path_factory.getbasetemp() / "fuzzed.safetensors"
    file.write_bytes(data)
    with suppress(MediaError):
        for item in load_recording(file):
            assert {layer.data.nbytes for layer in item.layers.values()} == {24}
            assert item.result is None


def test_a_pipe_and_a_folder_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in ("pipe", ".", "absent"):
        with pytest.raises(MediaError, match="no recording can be read"):
            load_recording(tmp_path / place)


def test_types_keep_their_values(tmp_path: Path) -> None:
    arrays = {
        str(kind): np.array([[0, 1], [1, 0]]).astype(kind)
        for kind in ("?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", ">f4")
    } | {"none": np.empty((0, 3), np.float32), "scalar": np.array(3.5)}
    writer = SafetensorsWriter(tmp_path / "r", "r")
    for name, array in arrays.items():
        writer.add(name, array)
    assert not (tmp_path / "r").exists()
    writer.finish({"a": "b"})
    assert [p.name for p in tmp_path.iterdir()] == ["r"]
    assert (tmp_path / "r").read_bytes() == safetensors_bytes(arrays, {"a": "b"})
    file = SafetensorsFile(tmp_path / "r")
    for name, array in arrays.items():
        np.testing.assert_array_equal(file.read(name), array)
        assert file.read(name).shape == array.shape
    with pytest.raises(MediaError, match="has type complex128"):
        SafetensorsWriter(tmp_path / "s", "s").add("c", np.zeros(1, complex))
