"""Protobuf's text format."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core.proto_text import read_proto_text
from headrace.errors import ConfigError
from tests.profiles import examples


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0.5f", -0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("MODE_MAX", "MODE_MAX"),
        ("-inf", float("-inf")),
        (r''''\x41\102\n' "c"''', "AB\nc"),
    ],
)
def test_values_are_numbers_flags_and_texts(text: str, value: object) -> None:
    assert read_proto_text(f"a: {text}", "x").plain() == {"a": [value]}
    assert read_proto_text(f"a: [{text}, {text}]", "x").plain() == {"a": [value] * 2}


def test_a_fault_has_its_line_and_the_kind_of_error_that_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"x:3: '}' is not the name of a field"):
        read_proto_text("a {\n}\n}", "x", ConfigError)


VALUES = st.recursive(
    st.one_of(st.integers(-(2**31), 2**31), st.booleans(), st.text("ab \"'\\{}#", max_size=5)),
    lambda inner: st.dictionaries(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), inner, max_size=3),
    max_leaves=8,
)


def written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + " ".join(f"{k}: {written(v)}" for k, v in value.items()) + " }"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower()


def listed(value: Any) -> Any:
    return {k: [listed(v)] for k, v in value.items()} if isinstance(value, dict) else value


@settings(max_examples=examples(30))
@given(VALUES.filter(lambda value: isinstance(value, dict)))
def test_messages_are_read_as_they_were_written(message: dict[str, Any]) -> None:
    assert read_proto_text(written(message)[1:-1], "x").plain() == listed(message)


@settings(max_examples=examples(30))
@given(st.text('a1:{}[]<>,;"# \n.-', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        read_proto_text(text, "x", ConfigError)
