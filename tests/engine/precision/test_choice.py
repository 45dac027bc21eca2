"""What stands beside a calibration table: read strictly, and only for its own table."""

from hashlib import sha256

import pytest

from headrace.engine.precision import CalibrationTable
from headrace.engine.precision.choice import (
    Agreement,
    Int8Choice,
    TensorChoice,
    choice_of,
    choice_path,
)
from headrace.engine.precision.rules import PrecisionRules
from headrace.errors import EngineError


def agreement(fp32=100, int8=100, equal=98):
    return Agreement(
        runtime="onnxruntime", weight_bits=8, frames=20, fp32=fp32, int8=int8, equal=equal
    )


def choice_for(table, **values):
    return Int8Choice(table=sha256(table.to_bytes()).hexdigest(), **values)


@pytest.fixture
def table(tmp_path):
    made = CalibrationTable.of({"image": 0.01})
    made.save(tmp_path / "a.calib")
    return made


def test_what_was_saved_is_read(table, tmp_path):
    tensors = {"image": TensorChoice(low=-0.5, high=2.0, factors=(1.0, 0.25))}
    choice = choice_for(table, keep=("conv",), tensors=tensors, agreement=agreement())
    assert choice.save(tmp_path / "a.calib") == tmp_path / "a.calib.json"
    read, notice = choice_of(table, tmp_path / "a.calib")
    assert read == choice
    assert notice.level == "info"
    assert (
        "agrees with FP32 on 98 % of the boxes (98 of FP32's 100 found, 2 more;" in notice.sentence
    )
    assert "1 layers in FP32" in notice.sentence


@pytest.mark.parametrize(
    ("found", "share", "level"),
    [
        ({}, 0.98, "info"),
        ({"equal": 94}, 0.94, "warning"),
        ({"int8": 125, "equal": 100}, 200 / 225, "warning"),  # boxes of INT8 alone count as well
        ({"fp32": 0, "int8": 0, "equal": 0}, 1.0, "info"),
    ],
)
def test_less_than_95_per_cent_is_warned_of(table, found, share, level):
    measured = agreement(**found)
    assert measured.share == share
    assert choice_for(table, agreement=measured).notice("t").level == level


def test_a_plain_table_says_that_nothing_is_known(table, tmp_path):
    read, notice = choice_of(table, tmp_path / "a.calib")
    assert read is None
    assert notice.level == "info"
    assert "not known" in notice.sentence


def test_that_of_another_table_is_not_used(table, tmp_path):
    choice_for(CalibrationTable.of({"image": 0.02})).save(tmp_path / "a.calib")
    read, notice = choice_of(table, tmp_path / "a.calib")
    assert read is None
    assert notice.level == "warning"
    assert "another a.calib" in notice.sentence


@pytest.mark.parametrize("text", [b"", b"{}", b'{"table": "x"}', b'{"table": 1, "more": 2}'])
def test_what_is_none_is_refused(table, tmp_path, text):
    choice_path(tmp_path / "a.calib").write_bytes(text)
    with pytest.raises(EngineError, match="headrace calibrate"):
        choice_of(table, tmp_path / "a.calib")


def test_an_engine_of_another_choice_is_built_anew(table):
    rules = [
        PrecisionRules(table=table, choice=choice)
        for choice in (None, choice_for(table), choice_for(table, keep=("conv",)))
    ]
    for built in rules:
        for now in rules:
            differs = now.difference(built.record("int8"), "int8", "int8", "onnxruntime")
            assert (differs is None) == (built is now)


def test_a_pin_goes_before_the_choice(table):
    rules = PrecisionRules(
        table=table, pins={"a": "int8"}, choice=choice_for(table, keep=("a", "b"))
    )
    assert rules.keep == ("b",)
