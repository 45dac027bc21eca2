import time

from tests.engine.fakes import FakeBackend

backend = FakeBackend("quick", before=lambda: time.sleep(0.005))
