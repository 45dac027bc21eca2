"""A damaged environment gets one error with the command that mends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace._core import environment
from headrace._core.environment import damage_text, damages


def _fake(folder: Path, name: str, version: str, files: str = "") -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(files)


def test_this_environment_is_whole() -> None:
    assert damages() == []
    assert damage_text(ImportError("of a user's module")) == ""


def test_each_kind_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(tmp_path, "too_old", "13.0.9")
    _fake(tmp_path, "half", "2.0", "half/__init__.py,,\nhalf/core.py,,\nhalf/core.pyc,,\n")
    _fake(tmp_path, "sound", "14.2.1rc1")
    _fake(tmp_path, "in_its_place", "3.1")
    monkeypatch.setitem(environment._INSTEAD, "known-by-two-names", "in-its-place")
    asked = [
        "too-old>=14.2", "half>=1", "sound>=14.2", "absent>=3", "known-by-two-names>=3",
        "not-asked>=9; extra == 'other'",
    ]  # fmt: skip
    monkeypatch.setattr(environment, "requires", lambda _: asked)
    monkeypatch.syspath_prepend(tmp_path)
    assert damages() == [
        "too-old>=14.2: 13.0.9 is installed",
        "half>=1: 2 of its files are missing",
        "absent>=3: is not installed",
        "pip install --force-reinstall 'too-old>=14.2' 'half>=1' 'absent>=3'",
    ]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("click", "raise ImportError('cannot import name Group')"),
        ("av", "version = 1"),
        ("msgspec", "from msgspec import _core_that_is_not_there"),
    ],
)
def test_a_command_names_it_and_prints_no_traceback(tmp_path: Path, name: str, code: str) -> None:
    """A package whose files were replaced in part, before those of the environment."""
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text(code + "\n")
    _fake(tmp_path, name, "0.1")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "doctor"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{name}>=" in done.stderr
    assert "0.1 is installed" in done.stderr
    assert "pip install --force-reinstall" in done.stderr
