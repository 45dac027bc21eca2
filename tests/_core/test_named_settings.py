"""The grammar of trackers and tactics."""

from __future__ import annotations

import pytest

from headrace._core.named_settings import split_settings


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("iou", "iou", {}),
        (" iou: ", "iou", {}),
        ("iou: min-hits = 3 ,,max_age=7,", "iou", {"min_hits": "3", "max_age": "7"}),
        ("a:b=c:d=e,f", "a", {"b": "c:d=e", "f": ""}),
        ("a:b=1,b=2", "a", {"b": "2"}),
        ("", "", {}),
    ],
)
def test_a_name_and_its_settings(text: str, name: str, settings: dict[str, str]) -> None:
    assert split_settings(text) == (name, settings)
