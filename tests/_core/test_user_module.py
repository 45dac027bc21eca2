"""Users' files are imported while other threads import, too."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from headrace._core.user_module import import_file


@pytest.fixture
def _quick_threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_quick_threads")
def test_modules_of_other_threads_come_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    over, names = threading.Event(), []

    def grow() -> None:
        while not over.is_set() and len(names) < 50_000:
            names.append(f"made_meanwhile_{len(names)}")
            sys.modules[names[-1]] = sys

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        for _ in range(30):
            assert import_file(tmp_path / "mine.py").x == 1
    finally:
        over.set()
        thread.join()
        for name in names:
            sys.modules.pop(name, None)
