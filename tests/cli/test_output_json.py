"""`--json` has standard output to itself, whatever libraries and packages print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace.cli.output import json_alone, print_json
from tests.network.onnx_models import image_model, save


def test_packages_that_talk_go_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "openvino.py").write_text("print('talk')\nraise ImportError('half')\n")
    save(image_model(), tmp_path / "m.onnx")
    (tmp_path / "pgie.txt").write_text("[property]\nonnx-file=m.onnx\nnetwork-type=100\n")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "build", tmp_path / "pgie.txt", "--json", "--tune", "1"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["engine"].endswith(".engine")
    assert "talk" in done.stderr


def test_what_is_no_number_of_json_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [float("inf"), 1.5], "b": (float("nan"),), "c": {"d": -float("inf")}})

    def refuse(text: str) -> None:
        raise AssertionError(text)

    data = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert data == {"a": [None, 1.5], "b": [None], "c": {"d": None}}


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--fail", is_flag=True)
def talks(as_json: bool, fail: bool) -> None:
    """Talk, and print a document."""
    os.write(1, b"talk\n")
    if as_json:
        print_json({"ready": True})
    if fail:
        raise click.ClickException("no")


@pytest.mark.parametrize("fail", [False, True])
def test_a_document_is_printed_even_before_an_error(
    capfd: pytest.CaptureFixture[str], fail: bool
) -> None:
    command = json_alone(json_alone(talks))
    words = ["--json", "--fail"] if fail else ["--json"]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == int(fail)
    assert '"ready": true' in result.stdout
    assert result.stdout.count("ready") == 1
    assert capfd.readouterr().err == "talk\n"
    CliRunner().invoke(command, [])
    assert capfd.readouterr().out == "talk\n"


@click.command()
@click.option("--json", "as_json", is_flag=True)
def refuses(as_json: bool) -> None:
    """Fail with an error of ours."""
    error = ConfigError("3 is too many", where="a.txt:1", data={"most": 2}, code="value-range")
    error.notices.append(Finding("unknown-key", "warning", "x is no key"))
    raise error


def test_an_error_is_a_document_with_code_place_and_data() -> None:
    result = CliRunner().invoke(json_alone(refuses), ["--json"])
    assert isinstance(result.exception, ConfigError)
    data = json.loads(result.stdout)
    found = data["error"]
    assert (found["code"], found["where"], found["data"]) == ("value-range", "a.txt:1", {"most": 2})
    assert [notice["code"] for notice in data["notices"]] == ["unknown-key"]
    assert CliRunner().invoke(json_alone(refuses), []).stdout == ""
