"""Processes that are started, end with their parent, and whose end is worded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headrace._core.processes import ProcessEnd, SpawnedProcess, start_module


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "ended with exit status 0"),
        (3, "ended with exit status 3"),
        (-signal.SIGKILL, "was killed by SIGKILL"),
        (-40, "was killed by signal 40"),
        (None, "ended without an exit status"),
    ],
)
def test_an_end_in_words(code: int | None, text: str) -> None:
    assert str(ProcessEnd(code)) == text
    assert ProcessEnd(code).signal == text.partition(" by ")[2]


def test_a_module_runs_with_this_interpreter_and_without_the_working_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "platform.py").write_text("print('the wrong one')")
    process = start_module("platform", stdout=subprocess.PIPE, cwd=tmp_path)
    assert b"Linux" in process.communicate(timeout=30)[0]


def add(pipe: Any, more: int) -> None:
    pipe.send([signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
    while True:
        pipe.send(pipe.recv() + more)


@pytest.mark.parametrize("ignored", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGHUP)])
def test_a_function_answers_through_its_pipe(ignored: tuple[signal.Signals, ...]) -> None:
    child = SpawnedProcess(add, 2, name="adder", ignored=ignored)
    assert child.pipe.recv()[1] == (signal.SIG_IGN if signal.SIGTERM in ignored else signal.SIG_DFL)
    child.pipe.send(40)
    assert child.pipe.recv() == 42
    assert str(child.end(0.0)) == "ended without an exit status"
    child.kill()
    assert child.end(0.0) == ProcessEnd(-signal.SIGKILL)
    with pytest.raises(EOFError):
        child.pipe.recv()


PARENT = """
import time
from headrace._core.processes import SpawnedProcess
from tests._core.test_processes import stuck
if __name__ == "__main__":
    child = SpawnedProcess(stuck, name="stuck")
    print(child.pipe.recv(), flush=True)
    time.sleep(60)
"""


def stuck(pipe: Any) -> None:
    """Send the process id and call what holds Python's lock for a minute."""
    import ctypes

    pipe.send(os.getpid())
    ctypes.PyDLL(None).sleep(60)


def test_a_child_dies_with_its_parent_also_in_native_code(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env=environment
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_child_of_a_parent_that_has_gone_ends() -> None:
    code = "from headrace._core.processes import die_with_parent; die_with_parent(1 << 30)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
