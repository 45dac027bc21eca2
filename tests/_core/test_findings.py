"""A finding is data; its sentence is made of them and is only written out."""

from __future__ import annotations

import json
import pickle

import msgspec
import pytest

from headrace._core.errors import ConfigError, HeadraceError, ModelError
from headrace._core.findings import Finding

COUNT = Finding(
    "class-count",
    "warning",
    "{given} classes are given, and the outputs hold {held}",
    "config.txt:3",
    {"given": 3, "held": 80, "names": ["a", "b"]},
    "80",
    ("set num-detected-classes=80",),
)


def test_a_finding_without_a_code_is_refused() -> None:
    with pytest.raises(ValueError, match="without a code"):
        Finding("", "info", "something")


def test_the_sentence_is_made_of_the_data() -> None:
    assert f"{COUNT:brief}" == "3 classes are given, and the outputs hold 80"
    assert f"{COUNT:line}" == f"config.txt:3: {COUNT:brief}"
    assert str(COUNT).splitlines() == [
        f"{COUNT:line}", "  expected 80", "  set num-detected-classes=80",
    ]  # fmt: skip
    shown = Finding(
        "left-out", "info", "{share:.0%} of {names}", data={"share": 0.25, "names": [1, 2]}
    )
    assert str(shown) == "25% of 1, 2"


@pytest.mark.parametrize("text", ["a {brace}", "{", "{0} {held} }{", "{a.b}"])
def test_braces_of_a_user_stay(text: str) -> None:
    assert str(Finding("left-out", "info", text)) == text
    assert str(Finding("left-out", "info", text, data={"x": 1})) == text


def test_findings_are_values() -> None:
    same = COUNT.changed()
    assert (same, hash(same)) == (COUNT, hash(COUNT))
    assert pickle.loads(pickle.dumps(COUNT)) == COUNT
    assert msgspec.convert(msgspec.to_builtins(COUNT), Finding) == COUNT
    assert COUNT.changed(code="labels-count") != COUNT


def test_a_changed_finding_keeps_its_data() -> None:
    moved = COUNT.at("plan").changed(prefix="failed: ", suffix="!", fix=["or not"])
    assert f"{moved:line}" == f"plan: failed: config.txt:3: {COUNT:brief}!"
    assert moved.data == COUNT.data
    assert str(moved).endswith("\n  or not")


def test_json_has_code_place_and_data() -> None:
    row = json.loads(json.dumps(COUNT.to_json()))
    assert (row["code"], row["where"]) == ("class-count", "config.txt:3")
    assert row["data"] == {"given": 3, "held": 80, "names": ["a", "b"]}
    assert row["message"] == f"{COUNT:brief}"


def test_a_finding_is_raised_as_an_error() -> None:
    error = ConfigError(COUNT, where="other", fix="more")
    assert (error.code, error.where, error.data) == ("class-count", "other", COUNT.data)
    assert error.finding.level == "error"
    assert str(error).splitlines()[-2:] == ["  set num-detected-classes=80", "  more"]


def test_an_error_has_the_code_of_its_class_or_its_own() -> None:
    assert HeadraceError("no").code == "request-refused"
    assert ModelError("no").code == "model-unreadable"
    assert ModelError("no", code="opset", data={"opset": 99}).finding.code == "opset"
    assert f"{ModelError('no', where='m.onnx'):line}" == "m.onnx: no"
    assert (
        pickle.loads(pickle.dumps(ModelError("no", fix="yes"))).finding.code == "model-unreadable"
    )
