"""Calibration tables: TensorRT's text, read strictly, kept byte for byte."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.precision.cache import DEFAULT_HEADER, CalibrationTable, table_header
from headrace.errors import EngineError
from tests.fuzz import fuzz_calibration

FUZZ = Path(__file__).parents[2] / "fuzz"
SEEDS = sorted((FUZZ / "seeds" / "calibration").glob("*"))

SAMPLE = b"""\
TRT-8601-EntropyCalibration2
images: 3c010a14
scope/conv: out: 3d2a3bb1
(Unnamed Layer* 3) [Activation]_output: 3c8ef2a9
unused: 0
"""


def test_scales_are_the_bits_of_float32():
    table = CalibrationTable.from_bytes(SAMPLE)
    assert list(table.scales) == [
        "images",
        "scope/conv: out",
        "(Unnamed Layer* 3) [Activation]_output",
        "unused",
    ]
    assert table.scales["images"] * 127 == pytest.approx(1.0002, abs=1e-4)
    assert "unused" not in table.calibrated
    assert table.algorithm == "EntropyCalibration2"


# Source of the value: custom-library facts 3.2 (an input in [0, 1])
def test_the_known_sample_value():
    table = CalibrationTable.from_bytes(b"TRT-7000-EntropyCalibration2\ndata: 3c008912\n")
    assert table.scales["data"] == pytest.approx(0.00784518, rel=1e-6)


@pytest.mark.parametrize("data", [SAMPLE, SAMPLE.replace(b"\n", b"\r\n"), SAMPLE[:-1]])
def test_round_trip_byte_for_byte(data, tmp_path):
    (tmp_path / "in").write_bytes(data)
    CalibrationTable.load(tmp_path / "in").save(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data


names = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)
scales = st.floats(0, width=32, allow_infinity=False, allow_subnormal=True)


@given(st.dictionaries(names, scales, max_size=8))
def test_a_made_table_reads_back(entries):
    entries = {n: abs(s) for n, s in entries.items() if n.strip() and not n.endswith(":")}
    made = CalibrationTable.of(entries)
    read = CalibrationTable.from_bytes(made.to_bytes())
    assert dict(read.scales) == entries
    assert read.header == DEFAULT_HEADER
    assert list(read.scales) == list(entries)


def test_made_lines_have_eight_digits():
    text = CalibrationTable.of({"a": 2.0**-140, "b": 1.0}).to_bytes().decode()
    lines = text.splitlines()[1:]
    assert lines == ["a: 00000200", "b: 3f800000"]
    assert struct.unpack(">f", bytes.fromhex("00000200"))[0] == 2.0**-140


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "first line"),
        (b"1\ndata: 3c008912\n", "first line is '1'"),
        (b"TRT-8601-E\nx 3c008912\n", "t:2: the line is"),
        (b"TRT-8601-E\nx: 123456789\n", "t:2"),
        (b"TRT-8601-E\n: 3c008912\n", "t:2"),
        (b"TRT-8601-E\na: 0\nx: 7f800000\n", "t:3: tensor 'x' has the scale inf"),
        (b"TRT-8601-E\nx: bc008912\n", "scale -0.007"),
        (b"TRT-8601-E\nx: 1\nx: 2\n", "two different scales"),
        (b"TRT-8601-E\na: 0\nx: 3c00", "t:3: the file ends in the line 'x: 3c00'"),
    ],
)
def test_refused_with_its_line(data, said):
    with pytest.raises(EngineError) as caught:
        CalibrationTable.from_bytes(data, "t")
    assert said in str(caught.value)


@pytest.mark.parametrize("scales", [{"x": -1.0}, {"x": float("nan")}, {"x": 1e39}, {"a\nb": 1.0}])
def test_what_no_line_can_hold_is_refused(scales):
    with pytest.raises(EngineError):
        CalibrationTable.of(scales)


def test_no_file_a_folder_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("none", ".", "pipe"):
        with pytest.raises(EngineError):
            CalibrationTable.load(tmp_path / name)


def test_a_model_in_its_place_is_named(tmp_path):
    (tmp_path / "calib.table").write_bytes(b"ftrt" + bytes(range(60)))
    with pytest.raises(EngineError, match="this is a TensorRT engine"):
        CalibrationTable.load(tmp_path / "calib.table")


def test_headers_of_releases():
    assert table_header("8.6.1") == "TRT-8601-EntropyCalibration2"
    assert table_header("10.0.1") == "TRT-100001-EntropyCalibration2"
    assert table_header("7.1.3", "MinMaxCalibration") == "TRT-7103-MinMaxCalibration"
    for bad in ("8.6", "a.b.c", "8.6.1.2", ""):
        with pytest.raises(EngineError):
            table_header(bad)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda p: p.name)
def test_seeds_replay(seed):
    fuzz_calibration.one_input(seed.read_bytes())


@given(st.binary(max_size=300))
def test_any_bytes(data):
    fuzz_calibration.one_input(data)


@given(st.lists(st.tuples(st.integers(0, len(SAMPLE)), st.binary(max_size=6)), max_size=4))
def test_mutated_tables(edits):
    data = SAMPLE
    for at, put in edits:
        data = data[:at] + put + data[at + len(put) :]
    fuzz_calibration.one_input(data)
