"""Slow, but now and then there is nothing to do."""

import time
from itertools import count

from tests.engine.fakes import FakeBackend

_runs = count()

backend = FakeBackend("lucky", before=lambda: time.sleep(0.0 if next(_runs) % 8 == 7 else 0.02))
