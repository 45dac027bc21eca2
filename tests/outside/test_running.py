"""How applications from outside are run: what they start ends with them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.outside.deepstream_apps import ended


def test_what_an_application_started_ends_with_it_when_it_takes_too_long(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    beat = f"while true; do echo x >> {mark}; sleep 0.05; done"
    start = time.monotonic()
    done = ended(["bash", "-c", f"({beat}) & echo told; wait"], 0.5)
    assert (done.returncode, done.stdout) == (124, "told\n")
    assert time.monotonic() - start < 5
    beats = mark.stat().st_size
    time.sleep(0.2)
    assert mark.stat().st_size == beats > 0


def test_outputs_and_the_exit_code_come_back() -> None:
    line = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    done = ended([sys.executable, "-c", line], 20)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
