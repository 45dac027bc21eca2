"""Right and quick for its first 40 runs, then it is gone."""

import os
import signal
from itertools import count

from tests.engine.fakes import FakeBackend

_runs = count()


def _die_late() -> None:
    if next(_runs) > 40:
        os.kill(os.getpid(), signal.SIGKILL)


backend = FakeBackend("later_crash", before=_die_late)
