"""Faults of a library of another processor are named as those of one for this processor are."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core import _native
from headrace.custom import open_library
from headrace.custom.emulated.emulator import Emulator
from headrace.custom.emulated.messages import HEAD, Body, Operation
from headrace.custom.emulated.process import EmulatedProcess
from headrace.custom.guard import GuardOptions, LibraryDiedError, keeper
from headrace.errors import ParserError
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.custom.guard.test_crash import DEADLY

PARAMS = DetectionParams(1, np.full(1, 0.5, np.float32))
WHITE = {"mean": Layer("mean", np.ones(3, np.float32))}
SEEN = "reading", "writing"  # which of both it was, an emulated process does not know


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
@pytest.mark.parametrize("function", DEADLY)
@pytest.mark.sampled
def test_each_fault_is_named(compile_foreign: Callable[..., Path], function: str) -> None:
    path = compile_foreign("crashes.cpp", "-g")
    options = GuardOptions(timeout_s=2.0, restarts=0, once=True)
    library = open_library(path, guard="always", guard_options=options)
    with pytest.raises(LibraryDiedError) as caught:
        library.bbox_parser(function)(WHITE, NetworkInfo(64, 64, 3), PARAMS)
    expected = DEADLY[function].replace("within 1 s", "within 2 s")
    for word in SEEN:
        expected = expected.replace(word, "accessing")
    assert expected in str(caught.value)
    if function in ("ParseSegfault", "ParseAbort", "ParseTerminate", "ParsePast", "ParseExit"):
        assert any(f"{function} at" in line for line in caught.value.death.trace)


def test_without_a_worker_the_end_is_an_error(compile_foreign: Callable[..., Path]) -> None:
    library = open_library(compile_foreign("crashes.cpp", "-g"))
    parser = library.bbox_parser("ParseSegfault")
    for _ in range(2):
        with pytest.raises(ParserError, match="SIGSEGV"):
            parser(WHITE, NetworkInfo(64, 64, 3), PARAMS)


def test_it_ends_with_its_library(compile_foreign: Callable[..., Path]) -> None:
    library: Any = open_library(compile_foreign("crashes.cpp", "-g"))
    child = library._object.process._child
    assert child.poll() is None
    del library
    gc.collect()
    assert child.poll() is not None


@pytest.mark.slow
def test_an_answer_that_is_none_ends_the_process(tmp_path: Path) -> None:
    """What the process writes is a user's: sizes, numbers and ends are looked at."""
    for answer in (b"", b"short", HEAD.pack(0, 0, 1 << 40), HEAD.pack(77, 0, 0)):
        process = stand_in(tmp_path, answer)
        with pytest.raises(_native.CustomCodeError, match="emulated process"):
            process.ask(Operation.FUNCTION, Body().text("Parse"))


def stand_in(folder: Path, answer: bytes) -> EmulatedProcess:
    """A process that gives one answer, whatever it is asked."""
    script = folder / f"{len(answer)}-{answer[:1].hex()}.py"
    script.write_text(
        "import os, sys\n"
        f"os.read(int(sys.argv[-5]), 1 << 16)\nos.write(int(sys.argv[-4]), {answer!r})\n"
    )
    shell = script.with_suffix("")
    shell.write_text(f'#!/bin/sh\nexec python3 {script} "$@"\n')
    shell.chmod(0o755)
    return EmulatedProcess(Emulator(shell, Path("/"), Path("host")))
