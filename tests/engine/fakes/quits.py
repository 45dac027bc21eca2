import os

from tests.engine.fakes import FakeBackend

backend = FakeBackend("quits", opening=lambda: os._exit(3))
