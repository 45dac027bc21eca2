"""Custom libraries in C++: functions, machine, and boxes that they were compiled for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace.diagnose.lint.catalogue import Example
from headrace.diagnose.lint.fixes import fixes_for
from headrace.diagnose.lint.linting import Linter, LintReport
from headrace.diagnose.lint.targets import TARGETS
from tests.custom import conftest
from tests.diagnose.lint.setups import write_example

compile_parser, zoo28 = conftest.compile_parser, conftest.zoo28  # fixtures
_ARM = (183).to_bytes(2, "little")
_FUNCTION = "parse-bbox-func-name"


@pytest.fixture
def config(zoo28: Path, tmp_path: Path) -> Path:
    """A config with a compiled library and a misspelt function."""
    example = Example("yolov8", wrong=("custom-lib-path=zoo.so", f"{_FUNCTION}=parseEcho"))
    (tmp_path / "store").mkdir()
    write_example(example, tmp_path / "case", tmp_path / "store", wrong=True)
    shutil.copyfile(zoo28, tmp_path / "case" / "zoo.so")
    return tmp_path / "case" / "config.txt"


def _lint(config: Path, target: str | None = None) -> LintReport:
    return Linter(TARGETS[target] if target else None).lint([config])


def test_a_misspelt_function_is_found_at_its_line_and_mended(config: Path) -> None:
    (found,) = [f for f in _lint(config).findings if f.severity == "error"]
    assert (found.code, found.exit_code) == ("function-missing", 5)
    assert found.place.marked == "parseEcho"
    (fix,) = fixes_for([found])
    fix.write()
    assert f"{_FUNCTION}=ParseEcho\n" in config.read_text()
    assert not [f for f in _lint(config).findings if f.severity == "error"]


def test_a_library_of_another_machine_is_named_as_such(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_AARCH64_ROOT", str(tmp_path))  # no emulator's libraries are there
    library = config.with_name("zoo.so")
    data = library.read_bytes()
    library.write_bytes(data[:18] + _ARM + data[20:])
    rules = {f.code for f in _lint(config).findings}
    assert "library-machine" in rules


def test_boxes_of_another_size_are_found_for_a_target(config: Path) -> None:
    assert "target-box-layout" in {f.code for f in _lint(config, "deepstream-6.2").findings}
    assert "target-box-layout" not in {f.code for f in _lint(config, "deepstream-9").findings}
