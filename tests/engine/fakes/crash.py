import os
import signal

from tests.engine.fakes import FakeBackend

backend = FakeBackend("crash", before=lambda: os.kill(os.getpid(), signal.SIGSEGV))
