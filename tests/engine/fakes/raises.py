from headrace.errors import EngineError
from tests.engine.fakes import FakeBackend


def _refuse() -> None:
    raise EngineError("no kernel for Mul", where="node 'double'")


backend = FakeBackend("raises", opening=_refuse)
