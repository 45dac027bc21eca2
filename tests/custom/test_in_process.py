"""What `headrace run` says when a library in its own process ends it by a signal, or by exit()."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.custom import in_process, open_library

NOTE = "\nheadrace: {}: libx.so is here\n"
INSTALL = "from headrace._core import _native; _native.note_crashes('libx.so is here', 5); "
ENABLE = "import faulthandler; faulthandler.enable(); "
HARM = {
    "import ctypes; ctypes.string_at(0)": signal.SIGSEGV,
    "import os; os.abort()": signal.SIGABRT,
    "import os; os.kill(os.getpid(), 7)": signal.SIGBUS,
    "import signal; signal.raise_signal(8)": signal.SIGFPE,
    "import threading as t; from ctypes import string_at as s; "
    "x = t.Thread(target=s, args=(0,)); x.start(); x.join()": signal.SIGSEGV,
}


def died(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(("code", "number"), HARM.items())
def test_it_is_said_and_the_process_ends_as_it_would_have(
    code: str, number: signal.Signals
) -> None:
    done = died(INSTALL + code)
    assert done.returncode == -number
    assert done.stderr == NOTE.format(number.name)


@pytest.mark.parametrize(("status", "becomes"), [(0, 5), (3, 3)])
def test_a_library_that_calls_exit_is_no_success(status: int, becomes: int) -> None:
    done = died(INSTALL + f"import ctypes; ctypes.CDLL(None).exit({status})")
    assert done.returncode == becomes
    assert done.stderr == NOTE.format(f"exit({status})")


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "1 / 0", "import os; os._exit(3)"])
def test_the_usual_ends_say_nothing(ending: str) -> None:
    assert "\nheadrace: " not in "\n" + died(INSTALL + ending).stderr


def test_the_last_text_counts() -> None:
    again = INSTALL.replace("libx", "liby") + INSTALL
    assert died(again + "import os; os.abort()").stderr == NOTE.format("SIGABRT")


def test_handlers_of_others_stay() -> None:
    harm = "import ctypes; ctypes.string_at(0)"
    before = died(ENABLE + INSTALL + harm)
    assert before.returncode == -signal.SIGSEGV
    assert "Segmentation fault" in before.stderr
    assert "headrace:" not in before.stderr
    after = died(INSTALL + ENABLE + harm)
    assert after.returncode == -signal.SIGSEGV
    assert 0 <= after.stderr.find("Segmentation fault") < after.stderr.find("headrace: SIGSEGV")


def test_only_programs_of_the_command_line_note_libraries(
    zoo28: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(in_process, "_loaded", {})
    monkeypatch.setattr(in_process._native, "note_crashes", lambda text, code: said.append(text))
    open_library(zoo28)
    assert said == []
    with in_process.crashes_are_noted():
        open_library(zoo28)
    open_library(zoo28)
    (text,) = said
    assert text.startswith(f"this process has loaded {zoo28}, which is not guarded\n")
    assert "--guard always runs it in a worker process" in text
