"""Any bytes give a PipelineSpec or a ConfigError; see tests/fuzz/fuzz_pipeline.py."""

# ruff: noqa: E501 (tables)

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config.app.keys import APP_GROUPS
from headrace.config.pipeline_keys import SECTIONS, TOP_KEYS
from tests.fuzz.fuzz_pipeline import SEEDS, check
from tests.profiles import examples

FIRST = st.sampled_from([b"y", b"i", b"c"])


@pytest.mark.parametrize("seed", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_seeds(seed: Path) -> None:
    valid = check(seed.read_bytes())
    assert valid or not seed.name.startswith(("app_", "headrace_full", "sources"))


@settings(max_examples=examples(200))
@given(FIRST, st.binary(max_size=200))
def test_any_bytes(first: bytes, data: bytes) -> None:
    check(first + data)


@settings(max_examples=examples(300))
@given(st.sampled_from(sorted(SEEDS.glob("[ans]*"))), st.data())
def test_damaged_files(seed: Path, data: st.DataObject) -> None:
    lines = seed.read_bytes().split(b"\n")
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        what = data.draw(st.sampled_from(["drop", "double", "cut", "swap", "insert"]))
        line = lines[index]
        if what == "drop" and len(lines) > 1:
            del lines[index]
        elif what == "double":
            lines.insert(index, line)
        elif what == "cut":
            lines[index] = line[: data.draw(st.integers(0, len(line)))]
        elif what == "swap":
            lines[index], lines[0] = lines[0], lines[index]
        else:
            at = data.draw(st.integers(0, len(line)))
            lines[index] = line[:at] + data.draw(st.binary(max_size=4)) + line[at:]
    check(b"\n".join(lines))


VALUE = st.one_of(
    st.sampled_from(
        ["0", "1", "3", "-1", "1;0;0;1", "0.5", "true", "x", "a b ", "file://c%d.mp4", "rtsp://u@h",
         "[1]", "~", "usb:0", "2147483648", "*a", "&a b", "{a: b}", "%%d%9d", "iou:x=1", "/", "-", "2x2"]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=8),
)  # fmt: skip
APP_KEYS = sorted({key for group in APP_GROUPS for key in (*group.keys, *group.unused)})
NAMES = sorted({group.name.replace("N", "0") for group in APP_GROUPS} | {"source1", "sink1", "g"})
BODY = st.lists(
    st.tuples(st.sampled_from([*APP_KEYS, "bbox-border-color0", "k"]), VALUE), max_size=6
)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.sampled_from(NAMES), BODY), max_size=4), st.booleans())
def test_anything_like_an_app_config(
    groups: list[tuple[str, list[tuple[str, str]]]], yaml: bool
) -> None:
    lines = ["tests:", "  file-loop: 1"] if yaml else ["[tests]", "file-loop=1"]
    for group, body in groups:
        lines.append(f"{group}:" if yaml else f"[{group}]")
        lines.append("  enable: 1" if yaml else "enable=1")
        lines += [f"  {name}: {value}" if yaml else f"{name}={value}" for name, value in body]
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    check((b"y" if yaml else b"i") + text)


KEYS = sorted({key for section in SECTIONS.values() for key in section.keys})


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*SECTIONS, *TOP_KEYS, "k"]),
            st.one_of(VALUE, st.lists(st.tuples(st.sampled_from(KEYS), VALUE), max_size=4)),
        ),
        max_size=5,
    )
)
def test_anything_like_a_pipeline(sections: list[tuple[str, str | list[tuple[str, str]]]]) -> None:
    lines = ["sources: [{uri: a}]"]
    for name, value in sections:
        if isinstance(value, str):
            lines.append(f"{name}: {value}")
        else:
            lines += [f"{name}:", *(f"  {key}: {text}" for key, text in value)]
    check(b"y" + "\n".join(lines).encode("utf-8", "surrogatepass"))
