"""Names of classes in the forms in which exporters write them."""

from __future__ import annotations

import pytest

from headrace.infer.recognise.names import COCO, characters_in, names_in


@pytest.mark.parametrize("text", [
    "{0: 'cat', 1: 'dog'}", '{"0": "cat", "1": "dog"}', "['cat', 'dog']", '["cat", "dog"]',
    "('cat', 'dog')", "cat,dog", "cat\ndog\n", " cat , dog ",
])  # fmt: skip
def test_forms(text: str) -> None:
    assert names_in({"names": text}) == (("cat", "dog"), "names")


def test_a_gap_is_a_class_without_a_name() -> None:
    assert names_in({"classes": "{0: 'cat', 2: 'dog'}"}) == (("cat", "class 1", "dog"), "classes")


@pytest.mark.parametrize("text", [
    "", "cat", "{", "[" * 5000, "{'a': 'b'}", "{-1: 'a'}", "{1000000000: 'a'}", "{1e400: 'a'}",
    "__import__('os')", "[]", "{}",
])  # fmt: skip
def test_what_is_no_list_of_names(text: str) -> None:
    assert names_in({"names": text}) is None


def test_characters_are_lines() -> None:
    assert characters_in({"character": "a\n;\n \n\u2028\n"}) == ("a", ";", " ", "\u2028")
    assert characters_in({}) == ()


def test_coco_has_its_80() -> None:
    assert len(COCO) == len(set(COCO)) == 80
    assert COCO[0] == "person"
    assert COCO[9:12] == ("traffic light", "fire hydrant", "stop sign")
    assert COCO[26] == "handbag"
    assert COCO[-1] == "toothbrush"
