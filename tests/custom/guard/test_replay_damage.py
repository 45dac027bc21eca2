"""`noria replay` of folders that are not as they were written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from noria.custom.guard.errors import LibraryDied
from noria.custom.guard.repro import Case, load_case, save_case
from noria.errors import CustomLibraryError
from noria.meta import ClassifierParams, Layer, NetworkInfo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    params = ClassifierParams(0.5, [["a"]])
    network = NetworkInfo(4, 4, 3)
    case = Case(Path("lib.so"), "0", "classifier", "Parse", "auto", None, network, params)
    data = np.arange(12, dtype=np.float32)
    saved = save_case(case, {"y": Layer("y", data)}, LibraryDied("it crashed"), tmp_path)
    assert isinstance(saved, Path)
    return saved


def test_a_sound_folder(folder: Path) -> None:
    case, layers, said = load_case(folder)
    assert (case.kind, case.name, said["found"]) == ("classifier", "Parse", "it crashed")
    np.testing.assert_array_equal(layers["y"].data, np.arange(12, dtype=np.float32))
    described = folder / "case.json"
    described.rename(folder / "elsewhere.json")
    described.symlink_to("elsewhere.json")
    assert load_case(folder)[0] == case


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.unlink()
        make(file)

    return change


DAMAGE: list[tuple[str, Callable[[Path], object], str]] = [
    ("case.json", _instead(lambda f: f.symlink_to("/dev/zero")), "it is no regular file"),
    ("case.json", _instead(os.mkfifo), "it is no regular file"),
    ("case.json", _instead(Path.mkdir), "it is no regular file"),
    ("case.json", Path.unlink, "No such file"),
    ("case.json", lambda f: os.truncate(f, 1 << 32), "it has 4294967296 bytes, and at most"),
    ("case.json", lambda f: f.write_text("[" * 100000), "its JSON is nested too deeply"),
    ("case.json", lambda f: f.write_text("[]"), "the JSON in it is a list, not an object"),
    ("case.json", lambda f: f.write_text("null"), "the JSON in it is null"),
    ("case.json", lambda f: f.write_text('"x"'), "the JSON in it is text"),
    ("case.json", lambda f: f.write_text("{}"), "it is no case of this version"),
    ("layer_0.npy", _instead(os.mkfifo), "it is no regular file"),
    ("layer_0.npy", _instead(lambda f: f.symlink_to("/dev/zero")), "it is no regular file"),
    ("layer_0.npy", lambda f: os.truncate(f, 0), "EOF"),
    ("layer_0.npy", lambda f: os.truncate(f, 100), "EOF"),
    ("layer_0.npy", lambda f: os.truncate(f, 173), "it has 173 bytes; float32 (12,) is 176"),
    ("layer_0.npy", lambda f: os.truncate(f, 1 << 33), "it has 8589934592 bytes, and at most"),
    (
        "layer_0.npy",
        lambda f: np.save(f, np.array([{}], object), allow_pickle=True),
        "it has Python objects, not numbers",
    ),
    (
        "layer_0.npy",
        lambda f: f.write_bytes(f.read_bytes().replace(b"(12,), }        ", b"(1000000000,), }")),
        "it has 176 bytes; float32 (1000000000,) is 4000000128",
    ),
]


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGE)
def test_a_damaged_folder_is_refused_with_its_file(
    folder: Path, name: str, damage: Callable[[Path], object], words: str
) -> None:
    damage(folder / name)
    with pytest.raises(CustomLibraryError) as caught:
        load_case(folder)
    assert caught.value.where == str(folder / name)
    assert caught.value.found.startswith("there is no saved call to replay: ")
    assert words in caught.value.found
    assert caught.value.expected
    assert caught.value.fix


def test_layers_are_files_of_the_folder(folder: Path) -> None:
    np.save(folder.parent / "other.npy", np.zeros(1, np.float32))
    said = json.loads((folder / "case.json").read_text())
    said["layers"][0]["file"] = "../other.npy"
    (folder / "case.json").write_text(json.dumps(said))
    with pytest.raises(CustomLibraryError, match="No such file"):
        load_case(folder)
