"""What a library has no business with in the process of its host, to be compared."""

from __future__ import annotations

import decimal
import faulthandler
import gc
import locale
import logging
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_start_method
from typing import Any

import numpy as np
import pytest

_CACHES = frozenset(("headrace-keeper",))  # that live as long as the process
_THEIRS = "supervision."  # loggers of a package that it sets up itself
_KEPT = ("/memfd:headrace-stand-in-", "/proc/")


def process_state(before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Settings that belong to the whole program; threads of `before` may have ended."""
    return {
        "warning filters": [tuple(map(str, row)) for row in warnings.filters],
        "showwarning": warnings.showwarning,
        "signal handlers": {n: signal.getsignal(n) for n in signal.valid_signals()},
        "environment": {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
        "locale": locale.setlocale(locale.LC_ALL),
        "logging": _logging(),
        "threads": _threads(before["threads"] if before else None),
        "working directory": os.getcwd(),
        "umask": _umask(),
        "import path": list(sys.path),
        "finders": [len(sys.meta_path), len(sys.path_hooks)],
        "hooks": [sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook],
        "streams": [id(sys.stdin), id(sys.stdout), id(sys.stderr)],
        "garbage collector": [gc.isenabled(), *gc.get_threshold()],
        "random numbers": [hash(random.getstate()), hash(np.random.get_state()[1].tobytes())],  # type: ignore[union-attr, index]
        "numbers": [np.geterr(), str(decimal.getcontext()), sys.get_int_max_str_digits()],
        "recursion": sys.getrecursionlimit(),
        "faults": faulthandler.is_enabled(),
        "start of processes": get_start_method(allow_none=True),
        "limits": [resource.getrlimit(n) for n in range(8)],
        "cores": os.sched_getaffinity(0),
        "tracing": [sys.gettrace(), sys.getprofile(), threading.gettrace()],
        "descriptors": _descriptors(before["descriptors"] if before else None),
        "printing": np.get_printoptions(),
        "Pillow": _of_module("PIL.Image", "MAX_IMAGE_PIXELS"),
    }


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    """For a room of tests: each leaves the process as it found it.

    Tests draw random numbers of their own, and keep pipes to processes that they share.
    """
    before = process_state()
    yield
    left = differences(before, process_state(before))
    assert left.keys() <= {"random numbers", "descriptors"}, left


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Name -> values before and after, of what is not the same."""
    return {k: (v, after[k]) for k, v in before.items() if v != after[k]}


def _of_module(module: str, name: str) -> Any:
    """A setting of another package; what it has before it is imported is not known."""
    import importlib

    return getattr(importlib.import_module(module), name)


def _logging() -> list[Any]:
    """Levels, handlers and switches of the loggers that are more than names."""
    root = logging.getLogger()
    loggers = [
        root,
        *(
            x
            for x in root.manager.loggerDict.values()
            if isinstance(x, logging.Logger) and not x.name.startswith(_THEIRS)
        ),
    ]
    rows = []
    for logger in loggers:
        handlers = [h for h in logger.handlers if not isinstance(h, logging.NullHandler)]
        row = (logger.level, handlers, logger.filters, logger.disabled, logger.propagate)
        if logger is root or row != (0, [], [], False, True):
            rows.append((logger.name, *map(str, row)))
    return [logging.root.manager.disable, sorted(rows)]


def _threads(before: list[str] | None) -> list[str]:
    """Names of threads; those of `before` where none is new, once the new ones had time to end."""
    end = time.monotonic() + 5
    while True:
        names = sorted(t.name for t in threading.enumerate() if t.name not in _CACHES)
        if before is None or time.monotonic() > end:
            return names
        if not Counter(names) - Counter(before):
            return before
        time.sleep(0.01)


def _descriptors(before: Counter[str] | None) -> Counter[str]:
    """Open files, pipes and sockets; those of `before` where none is new."""
    found = Counter(
        target
        for number in os.listdir("/proc/self/fd")
        if (target := _target(number)) and not target.startswith(_KEPT)
    )
    return before if before is not None and not found - before else found


def _target(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # the one of the listing
        return ""


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
