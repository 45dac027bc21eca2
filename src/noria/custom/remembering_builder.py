"""The builder that functions of custom libraries get which make the engine themselves."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["remembering_builder"]


def remembering_builder(tell: Callable[[int, str], None]) -> Any:
    """A `trt.Builder` that remembers the last network that an engine was built from: `last`.

    Args:
        tell: gets the severity and the text of each message.
    """
    # the room `trt` is behind this one: engines are made there only when a library asks
    trt: Any = import_module("noria.trt")

    class Log(trt.ILogger):  # type: ignore[misc]
        def log(self, severity: Any, msg: str) -> None:
            tell(int(severity), str(msg))

    class Builder(trt.Builder):  # type: ignore[misc]
        last: Any = None

        def _plan(self, network: Any, config: Any) -> Any:
            plan = super()._plan(network, config)
            self.last = network if plan is not None else self.last
            return plan

    return Builder(Log())
