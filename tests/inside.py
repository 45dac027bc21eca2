"""`headrace …` as a call in the tests' own process, which costs a tenth of a process of its own.

For commands whose output, files and exit code are looked at. What may end its process, read its
standard input, leave something behind or meet a signal runs by `tests.warm`.
"""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TextIO
from unittest import mock

from headrace.cli import main
from tests import warm


def headrace(
    *args: object, cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run `headrace ARGS`; `env` comes on top of the test's environment."""
    words = [str(arg) for arg in args]
    # the first forks the process that it is in; the other one's scripts get modules of other names
    if words[0] in ("trace-plugins", "exec"):
        return warm.headrace(*words, cwd=cwd, **env)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with _as_program(out, err, cwd, env):
            code = _exit_code(words)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(["headrace", *words], code, *texts)


def _exit_code(words: list[str]) -> int:
    try:
        main(words, prog_name="headrace")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextmanager
def _as_program(
    out: IO[bytes], err: IO[bytes], cwd: Path | None, env: dict[str, str]
) -> Iterator[None]:
    """Give a call outputs, folder, environment and settings of its own, and take them back."""
    folder = os.open(".", os.O_RDONLY)
    with ExitStack() as stack:
        stack.callback(os.close, folder)
        stack.callback(os.fchdir, folder)
        stack.callback(gc.set_threshold, *gc.get_threshold())
        stack.enter_context(_usual_warnings())
        stack.enter_context(mock.patch.dict(os.environ, env))
        stack.enter_context(_standard_stream("stdout", 1, out))
        stack.enter_context(_standard_stream("stderr", 2, err))
        if cwd is not None:
            os.chdir(cwd)
        yield


@contextmanager
def _usual_warnings() -> Iterator[None]:
    """Print warnings to standard error, and those that Python prints without options."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        warnings.showwarning = _show_warning
        yield


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))


@contextmanager
def _standard_stream(name: str, number: int, file: IO[bytes]) -> Iterator[None]:
    """Lead a standard stream into a file, for Python and for what libraries and children write."""
    before = os.dup(number)
    os.dup2(file.fileno(), number)
    stream = io.TextIOWrapper(
        io.FileIO(number, "w", closefd=False), encoding="utf-8", write_through=True
    )
    try:
        with mock.patch.object(sys, name, stream):
            yield
            stream.flush()
    finally:
        os.dup2(before, number)
        os.close(before)
