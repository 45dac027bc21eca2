"""The published JSON schema, the reader and the types say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from docs._ext.key_tables import pipeline_tables, rewritten
from docs._ext.pipeline_schema import SCHEMA_FILE, pipeline_schema, schema_text
from headrace.config import load_pipeline
from headrace.config import pipeline_spec as types
from headrace.config.pipeline_keys import COLORS, SECTIONS, TOP_KEYS
from headrace.errors import ConfigError
from tests.profiles import examples

SCHEMA = pipeline_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TYPES = {
    "sources": types.SourceSpec,
    "models": types.ModelSpec,
    "tracker": types.TrackerSpec,
    "tiler": types.TilerSpec,
    "osd": types.OsdSpec,
    "sinks": types.SinkSpec,
}
DOCS = Path(__file__).parents[2] / "docs" / "pipeline-files.md"


def test_the_published_file_is_up_to_date() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run: make schema"
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA_FILE.read_text("utf-8")))


def test_the_documentation_is_up_to_date() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert rewritten(page, pipeline_tables()) == page, "run: make schema"


@pytest.mark.parametrize("name", TYPES)
def test_types_have_the_fields_of_the_table_with_their_defaults(name: str) -> None:
    fields = TYPES[name].FIELDS
    keys = SECTIONS[name].keys.values()
    assert set(fields) == {key.field for key in keys}
    for key in keys:
        if key.group == "pipeline" and key.default is not None:
            assert fields[key.field or ""] == key.default, key.name


def test_the_whole_has_the_fields_of_the_table() -> None:
    fields = types.PipelineSpec.FIELDS
    assert set(fields) == {*SECTIONS, *(key.field for key in TOP_KEYS.values())}
    assert fields["batch_timeout_ms"] == TOP_KEYS["batch-timeout-ms"].default


# --- documents made from the schema, and damaged ones ---------------------------------------------


def made_from(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Documents of a schema; only what ours use."""
    if "anyOf" in schema and "type" not in schema:
        return st.one_of([made_from(one) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if isinstance(kind, list):
        return st.sampled_from(["x", 1, True, 0.5])
    if kind == "string":
        if "pattern" in schema:
            if "ya?ml" in schema["pattern"]:
                return st.sampled_from(["iou", "iou:max_age=30,min_iou=0.3", "x/t.yaml", "a:b"])
            return st.from_regex(
                schema["pattern"], fullmatch=True, alphabet=st.characters(codec="latin-1")
            ).filter(lambda text: "\n" not in text)
        return st.sampled_from(["clip.mp4", "a b", "fake", "/x/y.yml", "kitti:labels", "ü", "1x1"])
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", -1000), schema.get("maximum", 1000)
        numbers = st.integers(int(-(-low // 1)), int(high))
        return numbers if kind == "integer" else st.one_of(numbers, st.floats(low, high))
    if kind == "array":
        low, high = schema.get("minItems", 0), min(schema.get("maxItems", 3), 4)
        return st.lists(made_from(schema["items"]), min_size=low, max_size=high)
    if "properties" not in schema:
        names = st.sampled_from(["all", "0", "7"] if "all" in str(schema) else ["max_age", "x-y"])
        return st.dictionaries(names, made_from(schema["additionalProperties"]), max_size=2)
    fields = {name: made_from(one) for name, one in schema["properties"].items()}
    needed = {name: fields.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(needed, optional=fields)


def reads(tmp_path: Path, document: Any) -> str | None:
    """What the reader refuses, if anything."""
    path = tmp_path / "pipe.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    try:
        spec = load_pipeline(path)
    except ConfigError as error:
        return str(error)
    (tmp_path / "again.yml").write_text(spec.dump(), encoding="utf-8")
    assert load_pipeline(tmp_path / "again.yml") == spec
    return None


# what only the reader can see, or says stricter
ONLY_THE_READER = (
    "there is no source",
    "given twice",
    "more than 1024 sources",
    "not the name of a tracker",
    "is no kind of it",
    "not a 32-bit integer",  # as a text
)


@settings(max_examples=examples(150))
@given(made_from(SCHEMA))
def test_what_the_schema_accepts_is_read(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    if VALIDATOR.is_valid(document):
        refused = reads(tmp_path_factory.getbasetemp(), document)
        assert refused is None or any(text in refused for text in ONLY_THE_READER), refused


BROKEN: list[dict[str, Any]] = [
    {},
    {"sources": []},
    {"sources": ["a"], "sinx": []},
    {"sources": [{"url": "a"}]},
    {"sources": [{"uri": "a", "repeat": 0}]},
    {"sources": [{"uri": "a", "rtp-protocol": "x"}]},
    {"sources": ["a"], "models": [{"interval": 1}]},
    {"sources": ["a"], "models": [{"config": "a", "batch-size": 2000}]},
    {"sources": ["a"], "models": [{"config": "a", "border-colors": {"x": [0, 0, 0, 1]}}]},
    {"sources": ["a"], "models": [{"config": "a", "border-colors": {"1": [0, 0, 1]}}]},
    {"sources": ["a"], "tracker": {"name": "iou", "config": "x.yml"}},
    {"sources": ["a"], "tiler": "x"},
    {"sources": ["a"], "tiler": {"rows": 65}},
    {"sources": ["a"], "osd": "maybe"},
    {"sources": ["a"], "osd": {"text-color": [1, 1, 1, 2]}},
    {"sources": ["a"], "sinks": [{"kind": "video"}]},
    {"sources": ["a"], "sinks": [{"kind": "x", "path": "y"}]},
    {"sources": ["a"], "batch-size": 0},
    {"sources": ["a"], "batch-timeout-ms": "soon"},
]


@pytest.mark.parametrize("document", BROKEN, ids=[str(d)[:60] for d in BROKEN])
def test_both_refuse(tmp_path: Path, document: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(document)
    assert reads(tmp_path, document) is not None


def test_colours_are_in_the_table() -> None:
    assert set(COLORS) <= set(SECTIONS["models"].keys)
