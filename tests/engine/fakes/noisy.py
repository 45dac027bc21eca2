"""Prints while it works, as native runtimes do."""

import os

from tests.engine.fakes import FakeBackend

backend = FakeBackend("noisy", before=lambda: os.write(1, b"hello from the runtime\n" * 100))
