import time

from tests.engine.fakes import FakeBackend

backend = FakeBackend("hang", before=lambda: time.sleep(600))
