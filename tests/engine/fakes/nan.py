from tests.engine.fakes import FakeBackend

backend = FakeBackend("nan", after=lambda outputs: [a * float("nan") for a in outputs])
