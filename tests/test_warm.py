"""Commands forked off a process that has imported Headrace are what they are by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import headrace

SCRIPT = """\
import os, sys, time
import beside
print(sys.argv, os.getcwd(), os.environ["WORD"], beside.name, sys.stdin.read(), __name__)
print("told", file=sys.stderr)
if sys.argv[1] == "die":
    os.abort()
if sys.argv[1] == "hang":
    time.sleep(300)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("word", ["0", "7", "x", "die"])
def test_output_exit_code_folder_and_environment(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("name = 'beside'\n")
    monkeypatch.setenv("WORD", "one")
    alone = subprocess.run(
        [sys.executable, "-m", "headrace", "exec", "script.py", word],
        capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    forked = headrace("exec", "script.py", word, cwd=tmp_path)
    assert forked.returncode == alone.returncode
    assert forked.stdout == alone.stdout
    assert forked.stderr == alone.stderr
    if word == "0":
        assert " two beside" in headrace("exec", "script.py", "0", cwd=tmp_path, WORD="two").stdout


def test_what_hangs_is_killed_and_the_next_one_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("name = 'beside'\n")
    with pytest.raises(subprocess.TimeoutExpired):
        headrace("exec", "script.py", "hang", cwd=tmp_path, timeout=1, WORD="")
    assert headrace("exec", "script.py", "3", cwd=tmp_path, WORD="").returncode == 3


def test_a_command_that_does_not_exist() -> None:
    assert "Did you mean 'run'" in headrace("rnu").stderr
