"""Starting `headrace` so that a test can interrupt it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path


def usual_signals() -> None:
    """Take the handlers back that a shell or `nohup` has taken from this process."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def started(*args: object, cwd: Path | None = None) -> subprocess.Popen[str]:
    """`headrace` with the usual signals, even where the tests themselves run with some ignored.

    A shell starts jobs in the background with SIGINT ignored, `nohup` those with SIGHUP ignored,
    and children inherit that.
    """

    return subprocess.Popen(
        [sys.executable, "-m", "headrace", *map(str, args)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=usual_signals,
    )
