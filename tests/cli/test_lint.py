"""`headrace lint`: text with carets, JSON, SARIF, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.diagnose.lint.catalogue import Example, all_rules
from headrace.diagnose.lint.targets import TARGETS
from tests.diagnose.lint.setups import write_example


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A detector's config with changed lines: the parameter."""
    (tmp_path / "store").mkdir()
    example = Example("yolov8", wrong=tuple(getattr(request, "param", ())))
    write_example(example, tmp_path / "case", tmp_path / "store", wrong=True)
    monkeypatch.chdir(tmp_path / "case")
    return tmp_path / "case"


def _lint(*words: str) -> Result:
    result = CliRunner().invoke(main, ["lint", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.usefixtures("folder")
def test_a_right_config_has_one_line() -> None:
    result = _lint("config.txt")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 file: 0 errors, 0 warnings")


@pytest.mark.parametrize(
    "folder", [["num-detected-classes=1", "labelfile-path=label.txt"]], indirect=True
)
@pytest.mark.usefixtures("folder")
def test_a_finding_shows_its_line_with_a_caret_and_ends_with_the_exit_code_of_a_run() -> None:
    result = _lint("config.txt")
    lines = result.stdout.splitlines()
    assert result.exit_code == 3
    (at,) = [i for i, line in enumerate(lines) if "class-count" in line]
    assert lines[at].startswith("config.txt:9:22: error class-count: num-detected-classes=1,")
    assert lines[at + 1 : at + 5] == [
        "    num-detected-classes=1",
        f"    {' ' * 21}^",
        "  set num-detected-classes=3; filter-out-class-ids hides classes",
        "  fix: write num-detected-classes=3 (--fix does)",
    ]
    assert "error missing-file" in result.stdout
    assert "near it in" in result.stdout


@pytest.mark.parametrize("folder", [["cluster-mode=4"]], indirect=True)
@pytest.mark.usefixtures("folder")
def test_warnings_fail_with_strict_only() -> None:
    assert _lint("config.txt").exit_code == 0
    assert _lint("config.txt", "--strict").exit_code == 7
    assert _lint("config.txt", "--strict", "--ignore", "clustering-missing").exit_code == 0


@pytest.mark.parametrize("folder", [["cluster-mode=4"]], indirect=True)
@pytest.mark.usefixtures("folder")
def test_json_has_the_places() -> None:
    data = json.loads(_lint("config.txt", "--json", "--select", "clustering-missing").stdout)
    (found,) = data["findings"]
    assert (found["code"], found["level"], found["line"]) == (
        "clustering-missing", "warning", 14,
    )  # fmt: skip
    assert (found["column"], found["end_column"]) == (14, 15)
    assert data["summary"] == {"errors": 0, "warnings": 1, "notes": 0}


@pytest.mark.parametrize("folder", [["topk=5"]], indirect=True)
def test_sarif_has_rules_and_regions(folder: Path) -> None:
    assert _lint("config.txt", "--sarif", "out.sarif").exit_code == 0
    (run,) = json.loads((folder / "out.sarif").read_text())["runs"]
    rules = run["tool"]["driver"]["rules"]
    (result,) = [r for r in run["results"] if r["ruleId"] == "unknown-key"]
    assert rules[result["ruleIndex"]]["id"] == "unknown-key"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "config.txt"
    assert place["region"]["startLine"] > 1
    assert (place["region"]["startColumn"], place["region"]["endColumn"]) == (1, 5)


@pytest.mark.usefixtures("folder")
def test_keys_of_the_command_line_are_checked_as_the_run_takes_them() -> None:
    result = _lint("config.txt", "--set", "net-scale-factor=1")
    assert "--set: images have the wrong range" in result.stdout
    assert "--fix" not in result.stdout
    assert _lint("config.txt", "--set", "net-scale-factor=1", "--fix").exit_code == 2


def test_rules_are_listed_and_explained() -> None:
    listed = _lint("--rules").stdout
    assert len(listed.splitlines()) == len(all_rules())
    told = _lint("--explain", "class-count").stdout
    assert "num-detected-classes=2" in told
    assert _lint("--explain", "class-coun").exit_code == 1


def test_a_rule_or_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert _lint("--select", "nothing", "config.txt").exit_code == 1
    assert _lint().exit_code == 2
    missing = _lint(str(tmp_path / "missing.txt"))
    assert missing.exit_code == 3
    assert "file-unreadable" in missing.stdout


@pytest.mark.parametrize("folder", [["num-detected-classes=2", "batchsize=4"]], indirect=True)
def test_edits_are_shown_and_written_if_that_is_confirmed(folder: Path) -> None:
    before = (folder / "config.txt").read_text()
    refused = CliRunner().invoke(main, ["lint", "config.txt", "--fix"], input="n\n")
    assert "-num-detected-classes=2" in refused.stderr
    assert "+num-detected-classes=3" in refused.stderr
    assert (folder / "config.txt").read_text() == before
    assert "can be fixed with --fix" in refused.stdout
    assert _lint("config.txt", "--fix", "--json").exit_code == 2
    done = _lint("config.txt", "--fix", "--yes")
    assert done.exit_code == 0
    assert "class-count" not in done.stdout
    assert "num-detected-classes=3" in (folder / "config.txt").read_text()


@pytest.mark.parametrize("folder", [["profile=modern"]], indirect=True)
@pytest.mark.usefixtures("folder")
def test_a_target_adds_its_differences() -> None:
    assert "target-" not in _lint("config.txt").stdout
    told = _lint("config.txt", "--target", "deepstream-9").stdout
    assert "target-headrace-only: profile is a key of Headrace" in told
    assert _lint("config.txt", "--target", "deepstream-5").exit_code == 2
    for target in TARGETS:
        assert _lint("config.txt", "--target", target).exit_code == 0
