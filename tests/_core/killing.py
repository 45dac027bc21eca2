"""Exceptions that are raised inside of a thread's work, at a line of it."""

from __future__ import annotations

import ast
import linecache
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import headrace
from headrace._core import threads

SOURCE = Path(headrace.__file__).parent
_STARTERS = {"start_thread", "run_together", "Countdown", "RunThreads"}
_BARE = ("Thread", "Timer", "start_new_thread")
WORD = "the fault that was put in"


def thread_names() -> set[str]:
    """Beginnings of the names of all threads that the sources start."""
    names = set[str]()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if not any(word in text for word in _STARTERS):
            continue
        tree = ast.parse(text)
        words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if words & _STARTERS and path.name != "threads.py":
            texts = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant))
            found = (re.match(r"headrace-[a-z0-9-]+", t) for t in texts if isinstance(t, str))
            names |= {match[0].rstrip("-") for match in found if match}
    return names


def other_threads() -> list[str]:
    """Places that start a thread in another way, whose errors nobody hears."""
    places = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if not any(f"{name}(" in text for name in _BARE):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).rpartition(".")[2]
                if called in _BARE:
                    places.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    return places


class Kill:
    """One fault in a thread.

    Args:
        name: how the thread's name begins.
        line: of its work in our sources, counted as they are run; 0 is in place of the work.
        error: what is raised there.
    """

    def __init__(self, name: str, line: int, error: BaseException) -> None:
        self.name, self.line, self.error = name, line, error
        self.done = self.over = False
        self.bare: list[str] = []  # what Python would have printed a traceback of

    def run(self, work: Callable[[], object]) -> None:
        """Do the work until the fault."""
        if self.line == 0:
            self.done = True
            raise self.error
        left = self.line

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal left
            if not frame.f_code.co_filename.startswith(str(SOURCE)):
                return None
            if event == "line" and not (self.done or self.over) and _can_raise(frame):
                left -= 1
                if left == 0:
                    self.done = True
                    raise self.error
            return trace

        sys.settrace(trace)
        try:
            work()
        finally:
            sys.settrace(None)


def _can_raise(frame: FrameType) -> bool:
    """Whether a line can raise at all: not `try:`, nor `with`, which runs again behind its block.

    An exception there would leave a lock for ever.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return not line.lstrip().startswith(("with ", "try:"))


@contextmanager
def killing(kill: Kill, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kill]:
    """Put the fault into the first thread of its name that starts meanwhile."""
    guarded, seen = threads._guarded, threading.Event()

    def with_fault(
        work: Callable[[], object], name: str, failed: Callable[[Exception], object]
    ) -> None:
        if name.startswith(kill.name) and not seen.is_set():
            seen.set()
            guarded(lambda: kill.run(work), name, failed)
        else:
            guarded(work, name, failed)

    with monkeypatch.context() as patch:
        patch.setattr(threads, "_guarded", with_fault)
        patch.setattr(threading, "excepthook", lambda args: kill.bare.append(str(args)))
        yield kill
    kill.over = True  # some threads live as long as the program
    kill.error.__traceback__ = None  # its frames hold what the thread worked on
