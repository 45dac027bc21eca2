from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.infer.parsers.labels import Labels, class_name, load_labels


@pytest.mark.parametrize(
    ("class_id", "name"), [(0, "person"), (1, "car"), (2, "class 2"), (-1, "class -1")]
)
def test_a_class_without_a_label_keeps_its_number(class_id: int, name: str) -> None:
    assert class_name(["person", "car"], class_id) == name
    assert class_name([], class_id) == f"class {class_id}"


@pytest.mark.parametrize(
    ("raw", "records"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"person\ncar", [["person"], ["car"]]),
        (b"person\n\ncar\n", [["person"], ["car"]]),
        (b"person\r\n\r\ncar", [["person\r"], ["\r"], ["car"]]),
        (b"red;blue;\n;\n  \n", [["red", "blue", ""], ["", ""], ["  "]]),
        (b'# no comment\n"no;quotes"', [["# no comment"], ['"no', 'quotes"']]),
        ("Straße\x0b\u2028x".encode(), [["Straße\x0b\u2028x"]]),
    ],
)
def test_records(tmp_path: Path, raw: bytes, records: list[list[str]]) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes(raw)
    labels = load_labels(path)
    assert [list(fields) for fields in labels.records] == records
    assert labels.detector == [fields[0] for fields in records]
    assert len(labels) == len(records)
    assert bool(labels.notices) == (b"\n\nc" in raw or b"\r" in raw)


FIELD = st.characters(exclude_characters=";\n", exclude_categories=["Cs"])


@given(
    lines=st.lists(
        st.lists(
            st.text(st.characters(exclude_characters=";\n", exclude_categories=["Cs"])), min_size=1
        )
    )
)
def test_every_line_that_is_not_empty_is_a_record(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("labels") / "labels.txt"
    path.write_bytes("\n".join(";".join(fields) for fields in lines).encode())
    expected = [tuple(fields) for fields in lines if fields != [""]]
    assert list(load_labels(path).records) == expected


def test_bytes_that_are_not_utf8_are_replaced_and_said(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes("car\nfaçade;bus\n".encode("latin-1"))
    labels = load_labels(path)
    assert labels.records == (("car",), ("fa\ufffdade", "bus"))
    (notice,) = labels.notices
    assert notice.level == "warning"
    assert "0xe7" in notice.sentence
    assert str(notice).startswith(f"{path}:2: ")


def test_unreadable_files_name_the_file(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path, "nul\0byte"):
        with pytest.raises(ConfigError, match="cannot be read") as error:
            load_labels(path)
        assert error.value.where == str(path)
        assert "one of the command line or a program from the working directory" in str(error.value)


def test_a_model_in_their_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes(b"ftrt" + bytes(range(60)))
    with pytest.raises(ConfigError, match="this is a TensorRT engine, not a label file"):
        load_labels(tmp_path / "labels.txt")


def test_no_labels() -> None:
    assert Labels().detector == []


@pytest.mark.parametrize(
    ("raw", "line", "words"),
    [
        (b"person\n\n\ncar\n", 2, "is empty and skipped: names behind it are one class earlier"),
        (b"person\ncar\r\nbus\r\n", 2, "a carriage return is part of the label"),
        (b"\xef\xbb\xbfperson\ncar\n", 1, "a byte order mark is part of the first label"),
        (b"0 person\n1 car\n2 bus\n", 1, "begin with their number"),
        (b"1: person\n2: car\n3: bus\n", 1, "begin with their number"),
    ],
)
def test_what_makes_other_names_than_it_seems(
    tmp_path: Path, raw: bytes, line: int, words: str
) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes(raw)
    (notice,) = load_labels(path).notices
    assert (notice.level, notice.where) == ("warning", f"{path}:{line}")
    assert words in notice.sentence


@pytest.mark.parametrize("text", ["1 cent\n2 cent\n5 cent\n", "0\n1\n2\n", "0 off\n1 on\n"])
def test_numbers_may_be_names(tmp_path: Path, text: str) -> None:
    path = tmp_path / "labels.txt"
    path.write_text(text)
    assert not load_labels(path).notices
