"""The key table: complete against the reference list, in step with the fields, good at guessing."""

from __future__ import annotations

import csv
import dataclasses
import os
import re
from pathlib import Path

import pytest

from docs._ext.key_tables import model_tables, rewritten
from headrace.config import ClassAttrs, ModelConfig
from headrace.config.key import Key
from headrace.config.keys import CLASS_KEYS, KEYS, PROPERTY_KEYS, suggestion
from headrace.config.values import Kind

REFERENCE = Path(
    os.environ.get("HEADRACE_KEY_LIST", Path(__file__).parents[3] / "shared/spec/nvinfer_keys.csv")
)


def reference_rows() -> list[dict[str, str]]:
    if not REFERENCE.is_file():
        return []
    with REFERENCE.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["key"] != "(any key)"]


ROWS = reference_rows()
needs_reference = pytest.mark.skipif(not ROWS, reason="no reference key list: HEADRACE_KEY_LIST")


def key_of(row: dict[str, str]) -> Key:
    table = PROPERTY_KEYS if row["group"] == "property" else CLASS_KEYS
    return table[row["key"]]


@needs_reference
def test_exactly_the_reference_keys() -> None:
    reference = {(row["group"].split("-all")[0], row["key"]) for row in ROWS}
    ours = {(key.group, key.name) for key in KEYS if not key.extension}
    assert ours == reference


@needs_reference
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["key"])
def test_row_agrees_with_the_reference(row: dict[str, str]) -> None:
    key, kind, allowed = key_of(row), row["type"], row["enum_or_range"]
    words = {
        "uint": Kind.INT,
        "enum-int": Kind.INT,
        "int flag": Kind.INT_FLAG,
        "int-list;": Kind.INTS,
        "int": Kind.INT,
        "bool": Kind.FLAG,
        "float-list;": Kind.FLOATS,
        "float": Kind.FLOAT,
        "path-list;": Kind.PATHS,
        "path": Kind.PATH,
        "string-list;": Kind.STRINGS,
        "string": Kind.STRING,
    }
    if row["key"] == "max-gpu-mem-per":
        assert key.kind is Kind.PERCENT
    else:
        assert key.kind is next(words[word] for word in words if kind.startswith(word))
    if kind == "enum-int":
        assert key.enum is not None
        assert set(key.enum) == {int(n) for n in re.findall(r"(\d+)=", allowed)}
    if "negative fatal" in allowed:
        assert key.low == 0
    assert key.in_yaml == ("INI only" not in row["since_or_removed"] and row["key"] != "parse-func")
    generation = re.match(r"since (\S+?)[; ]", row["since_or_removed"] + " ")
    if generation and row["key"] != "disable-output-host-copy":
        assert key.since == generation[1]
    types = {int(n) for n in re.findall(r"\d+", row["applies_to"].split("cluster-mode")[0])}
    if types and not row["applies_to"].startswith("all"):
        assert set(key.types) - {3} <= types | {100}
    if re.fullmatch(r"-?[\d.]+", row["default"]):
        assert key.default == float(row["default"])


def test_every_key_has_its_field_and_default() -> None:
    fields = {k.field: k for k in PROPERTY_KEYS.values() if k.field}
    declared = set(ModelConfig.FIELDS) - {"all_classes", "classes"}
    assert set(fields) == declared
    for name, key in fields.items():
        assert getattr(ModelConfig(), name) == key.default, name
    class_fields = {k.field: k.default for k in CLASS_KEYS.values() if k.field}
    assert class_fields == dataclasses.asdict(ClassAttrs())


@pytest.mark.parametrize(
    ("name", "group", "words"),
    [
        ("netword-mode", "property", "network-mode"),
        ("process_mode", "property", "process-mode"),
        ("gie-mode", "property", "process-mode"),
        ("clustor-mode", "property", "cluster-mode"),
        ("Batch-Size", "property", "batch-size"),
        ("min-boxes", "class-attrs", "minBoxes"),
        ("minboxes", "class-attrs", "minBoxes"),
        ("iou-threshold", "class-attrs", "nms-iou-threshold"),
        ("nms-threshold", "property", "nms-iou-threshold in [class-attrs-all]"),
        ("confidence-threshold", "class-attrs", "pre-cluster-threshold"),
        ("input-tensor-meta", "property", "input-tensor-from-meta"),
        ("unique-id", "property", "gie-unique-id"),
        ("infer-on-gie-id", "property", "operate-on-gie-id"),
        ("num-classes", "property", "num-detected-classes"),
        ("label-file", "property", "labelfile-path"),
        ("config-file", "property", "application"),
        ("parse-func", "property", "parse-bbox-func-name"),
        ("topk", "property", "belongs into [class-attrs-all]"),
        ("cluster-mode", "class-attrs", "belongs into [property]"),
        (";batch-size", "property", "comments start with #"),
    ],
)
def test_what_was_meant(name: str, group: str, words: str) -> None:
    assert words in suggestion(name, group)[0]


def test_no_guess_for_what_resembles_nothing() -> None:
    assert suggestion("xyzzy", "property") == ("", None)


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == rewritten(page, model_tables()), "run: make schema"
    for key in KEYS:
        assert f"```{{confval}} {key.name}\n" in page


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="keys end"):
        rewritten("# A page", "")
