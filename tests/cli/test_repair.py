"""The command: what it prints, its exit codes, and when it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli import main
from tests.mistakes.cases import Case, Keys
from tests.mistakes.models import MODELS
from tests.mistakes.scene import write_scenes
from tests.mistakes.setups import YOLOV8


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write_scenes(tmp_path / "store", ["images"])
    MODELS["yolov8.onnx"](tmp_path / "store" / "yolov8.onnx")
    return tmp_path / "store"


@pytest.fixture
def folder(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a config whose colours are exchanged."""
    return _case(store, tmp_path / "case", monkeypatch, {"model-color-format": 1})


def _case(store: Path, folder: Path, patch: pytest.MonkeyPatch, keys: Keys) -> Path:
    Case("", YOLOV8, keys).write(folder, store)
    patch.chdir(folder)
    return folder


def _repair(*words: str) -> Result:
    return CliRunner().invoke(main, ["repair", "config.txt", "images", "--frames", "4", *words])


@pytest.mark.slow
def test_a_choice_is_shown_and_written_only_if_asked(folder: Path) -> None:
    before = Path("config.txt").read_bytes()
    shown = _repair()
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("chosen: model-color-format=0")
    assert "+model-color-format=0" in shown.stdout
    assert "nothing is written" in shown.stdout
    assert Path("config.txt").read_bytes() == before
    assert Path("config.repair.png").stat().st_size > 10_000
    assert _repair("-o", "new.txt").exit_code == 0
    assert Path("config.txt").read_bytes() == before
    assert "model-color-format=0" in Path("new.txt").read_text()
    refused = _repair("-o", "new.txt")
    assert refused.exit_code == 2
    assert "exists" in refused.output
    data = json.loads(_repair("--json", "--write").stdout)
    assert data["outcome"] == "chosen"
    assert data["change"] == {"model-color-format": "0"}
    assert data["written"] == "config.txt"
    assert Path("config.txt").read_text() == before.decode().replace("format=1", "format=0")
    again = _repair()
    assert again.exit_code == 0
    assert again.stdout.startswith("nothing to repair")


def test_nothing_to_repair_writes_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _case(store, tmp_path / "right", monkeypatch, {})
    files = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = _repair("--write")
    assert done.exit_code == 0
    assert done.stdout.startswith("nothing to repair")
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == files


def test_undecided_has_an_exit_code_and_leaves_the_choice(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _case(store, tmp_path / "labels", monkeypatch, {})
    Path("labels.txt").write_text("a\nb\nc\nd\n")
    before = Path("config.txt").read_bytes()
    done = _repair("--write")
    assert done.exit_code == 10
    assert done.stdout.startswith("undecided: ")
    assert Path("config.txt").read_bytes() == before
    chosen = _repair("--choose", "1", "-o", "first.txt")
    assert chosen.exit_code == 0, chosen.output
    assert Path("first.txt").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--box", "3:tomato:1,2,3"], "FRAME:[LABEL:]LEFT"),
        (["--box", "x:1,2,3,4"], "FRAME:[LABEL:]LEFT"),
        (["--box", "1:a:1,2,0,4"], "has no area"),
        (["--write", "-o", "x.txt"], "one of both"),
        (["--choose", "2"], "--write or -o"),
    ],
)
def test_wrong_usage(folder: Path, words: list[str], text: str) -> None:
    done = _repair(*words)
    assert done.exit_code == 2
    assert text in done.output


def test_wrong_inputs_are_refused_before_the_search(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(folder.iterdir())
    for words, code, text in (
        (["lost.txt", "images"], 3, "lost.txt: there is no such config file"),
        (["config.txt", "lost.mp4"], 6, "lost.mp4: there is no such file"),
        (["config.txt", "labels.txt"], 6, "it is text"),
        (["config.txt", "images", "-o", "lost/new.txt"], 3, "there is no such folder"),
        (["config.txt", "images", "--picture", "lost/a.png"], 3, "there is no such folder"),
    ):
        done = CliRunner().invoke(main, ["repair", *words])
        assert (done.exit_code, text in done.output) == (code, True), done.output
    monkeypatch.setattr("os.access", lambda _, mode: not mode & os.W_OK)
    done = _repair("-o", "new.txt")
    assert (done.exit_code, "its folder is read-only" in done.output) == (3, True), done.output
    assert sorted(folder.iterdir()) == files


def test_an_interrupted_search_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headrace.cli.progress.RunProgress.at", interrupted)
    assert _repair("--write").exit_code in (1, 130)
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == files


@pytest.mark.slow
def test_true_boxes_are_read_with_and_without_a_label(folder: Path) -> None:
    for box in ("0:tomato:8,8,64,64", "0:8,8,64,64", "0:0:8,8,64,64"):
        data = json.loads(_repair("--json", "--box", box).stdout)
        assert data["outcome"] == "chosen", box
        terms = [term["name"] for term in data["candidates"][0]["terms"]]
        assert "true box" in terms
