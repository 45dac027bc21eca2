"""A parser for custom libraries whose answers are told, item after item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.meta import Layer

Answer = Callable[[int, Mapping[str, Layer]], Any]

_answer: Answer | None = None
_calls = 0

LIBRARY = "from tests.conformance.scripted import NvDsInferInitializeInputLayers, parse\n"


def tell(answer: Answer | None) -> None:
    """What the next calls return: `answer(number of the call, layers)`."""
    global _answer, _calls
    _answer, _calls = answer, 0


def calls() -> int:
    """Calls since `tell`."""
    return _calls


def parse(layers: Mapping[str, Layer], network: Any, params: Any) -> Any:
    """Any kind of parser: the case knows which."""
    global _calls
    assert _answer is not None, "nobody has told what to answer"
    _calls += 1
    return _answer(_calls - 1, layers)


def NvDsInferInitializeInputLayers(layers: Any, network: Any, max_batch: int) -> bool:
    """Leave the further inputs at zero."""
    return True
