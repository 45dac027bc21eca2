import time

from tests.engine.fakes import FakeBackend

backend = FakeBackend("slow", before=lambda: time.sleep(0.02))
