"""Any bytes give a ModelConfig or a ConfigError, nothing else; see tests/fuzz/fuzz_config.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config.keys import KEYS
from tests.fuzz.fuzz_config import SEEDS, check
from tests.profiles import examples


@pytest.mark.parametrize("seed", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_seeds(seed: Path) -> None:
    valid = check(seed.read_bytes())
    assert valid or "detector" not in seed.name


@settings(max_examples=examples(300))
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    check(data)


NAME = st.sampled_from([key.name for key in KEYS] + ["nonsense", ";k", "", "k[x]", "minboxes"])
VALUE = st.one_of(
    st.sampled_from(
        ["0", "1", "2", "-1", "1;2;3", "0.5", "true", "x", "a b ", "'q'", "", "[1]", "~"]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=8),
)
GROUP = st.sampled_from(
    [
        "property",
        "class-attrs-all",
        "class-attrs-0",
        "class-attrs-99999999999",
        "class-attrs-x",
        "g",
    ]
)
BODY = st.lists(st.tuples(NAME, VALUE), max_size=6)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(GROUP, BODY), max_size=3), st.booleans())
def test_anything_that_looks_like_a_config(
    groups: list[tuple[str, list[tuple[str, str]]]], yaml: bool
) -> None:
    lines = ["property:", "  gpu-id: 0"] if yaml else ["[property]", "gpu-id=0"]
    for group, body in groups:
        lines.append(f"{group}:" if yaml else f"[{group}]")
        lines += [f"  {name}: {value}" if yaml else f"{name}={value}" for name, value in body]
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    check((b"y" if yaml else b"i") + text)
