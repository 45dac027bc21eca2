"""Config files of the message converter in both forms."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.media.messages.converter import numbers, read_converter_config, sensor_object

INI = "[sensor0]\nenable=1\nid=CAM_1\nlocation=45.2;-75.4;48\n[place1]\nenable=0\nid=1\n"
YAML = (
    "sensor0:\n  enable: 1\n  id: CAM_1\n  location: 45.2;-75.4;48\nplace1:\n  enable: 0\n  id: 1\n"
)


def test_both_forms_are_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(INI)
    (tmp_path / "a.yml").write_text(YAML)
    found = read_converter_config(tmp_path / "a.txt")
    assert found == read_converter_config(tmp_path / "a.yml")
    assert sensor_object(found, 0, "x")["id"] == "CAM_1"
    assert sensor_object(found, 1, "x")["id"] == "x"


@pytest.mark.parametrize("text", ["- 1", "sensor0: 3", "sensor0:\n  id: [1]\n", "a: b: c", "7"])
def test_other_forms_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yml").write_text(text)
    with pytest.raises(ConfigError, match=r"a\.yml"):
        read_converter_config(tmp_path / "a.yml")


@settings(max_examples=30)
@given(st.text(max_size=20))
def test_numbers_are_always_numbers_of_json(text: str) -> None:
    found = numbers(text, "lat lon alt")
    assert list(found) == ["lat", "lon", "alt"]
    assert all(abs(v) < float("inf") for v in found.values())
