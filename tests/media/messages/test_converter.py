"""Config files of the message converter in both forms."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.media.messages.converter import numbers, read_converter_config, sensor_object
from tests.profiles import examples

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[sensor0]\nid: CAM_1\n", ":2"),
        (b"[sensor0]\nid=CAM_1\nid 2\n", ":3"),
        (b"[sensor0]\nid=\xff\n", ":2.*UTF-8"),
        (b"x" * 2_000_000, "larger"),
    ],
)
def test_a_fault_of_the_ini_form_has_its_line(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "a.txt").write_bytes(text)
    with pytest.raises(ConfigError, match=rf"a\.txt{words}|{words}"):
        read_converter_config(tmp_path / "a.txt")


def test_a_value_may_be_empty_and_names_are_read_whatever_their_case(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("[Sensor0]\nID=\nDescription=50% ; off  \nid=CAM:1=a\n")
    (tmp_path / "a.yml").write_text("Sensor0:\n  ID:\n  Description: 50% ; off\n  id: CAM:1=a\n")
    found = read_converter_config(tmp_path / "a.txt")
    assert found == {"sensor0": {"id": "CAM:1=a", "description": "50% ; off"}}
    assert found == read_converter_config(tmp_path / "a.yml")


@settings(max_examples=examples(30))
@given(st.text(max_size=20))
def test_numbers_are_always_numbers_of_json(text: str) -> None:
    found = numbers(text, "lat lon alt")
    assert list(found) == ["lat", "lon", "alt"]
    assert all(abs(v) < float("inf") for v in found.values())
