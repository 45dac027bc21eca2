"""Errors of the parsers about models that they cannot take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from noria.trt.release import generation, versioned


@versioned(
    {
        ">=10": "node_name, node_operator",
        ">=10.1": "local_function_stack",
    }
)
@dataclass(frozen=True)
class ParserError:
    """One error; its parts are methods, as in the original. Source: tensorrt-api spec 3.5."""

    _code: Any
    _desc: str
    _node: int = -1
    _node_name: str = ""
    _operator: str = ""
    _stack: tuple[str, ...] = field(default=())

    def code(self) -> Any:
        """An `ErrorCode`."""
        return self._code

    def desc(self) -> str:
        """The fault in words."""
        return self._desc

    def file(self) -> str:
        """Source file that noticed it."""
        return "noria/trt/api/onnx_parser.py"

    def line(self) -> int:
        """Line in it."""
        return 0

    def func(self) -> str:
        """The importing function."""
        return f"import{self._operator}" if self._operator else "parse"

    def node(self) -> int:
        """Index of the node; -1 for the model."""
        return self._node

    def node_name(self) -> str:
        """Name of the node."""
        return self._node_name

    def node_operator(self) -> str:
        """Its operator."""
        return self._operator

    def local_function_stack(self) -> list[str]:
        """Functions of the model around it."""
        return list(self._stack)

    def __str__(self) -> str:
        if self._node < 0:
            return f"{self._code.name}: {self._desc}"
        if generation() < 10:
            where = f"In node {self._node} ({self.func()})"
        else:
            where = (
                f"In node {self._node} with name: {self._node_name} and operator: "
                f"{self._operator} ({self.func()})"
            )
        return f"{where}: {self._code.name}: {self._desc}"


class CollectsErrors:
    """Base of parsers: their errors, until they are cleared."""

    _errors: list[ParserError]

    @property
    def num_errors(self) -> int:
        """How many errors there are."""
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        """One of them."""
        return self._errors[index]

    def clear_errors(self) -> None:
        """Forget them."""
        self._errors.clear()
