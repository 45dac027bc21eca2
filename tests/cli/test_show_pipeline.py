"""`headrace show` of pipeline files and deepstream-app configs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.diagnose.lint.catalogue import Example
from tests.diagnose.lint.setups import write_example


def _show(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["show", str(folder / words[0]), *words[1:]])


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def made(*wrong: str) -> Path:
        (tmp_path / "store").mkdir()
        example = Example("app-secondary", wrong=wrong)
        write_example(example, tmp_path / "case", tmp_path / "store", wrong=True)
        return tmp_path / "case"

    return made


def test_its_own_values_and_each_model_are_shown(write: Callable[..., Path]) -> None:
    result = _show(write(), "config_app.txt", "--set-only")
    assert result.exit_code == 0
    assert "[sources 0]" in result.stdout
    assert "[models 1]" in result.stdout
    # the application decides the mode of its models
    assert "config_app.txt:17" in result.stdout
    assert "parser: built-in classifier" in result.stdout


def test_problems_of_models_and_of_the_whole_are_reported(write: Callable[..., Path]) -> None:
    folder = write("sgie.txt:operate-on-class-ids=7", "pgie.txt:labelfile-path=lost.txt")
    result = _show(folder, "config_app.txt", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 3
    assert "class-ids-beyond" in [notice["code"] for notice in data["notices"]]
    assert "lost.txt" in data["models"][0]["problems"][0]
    assert data["models"][1]["problems"] == []
    assert {row["group"] for row in data["values"]} >= {"sources 0", "models 0", "sinks 0"}


def test_passwords_in_uris_are_not_shown(write: Callable[..., Path]) -> None:
    folder = write("source0.type=4", "source0.uri=rtsp://me:secret@camera/one")
    result = _show(folder, "config_app.txt")
    assert "rtsp://camera/one" in result.stdout
    assert "secret" not in result.output
