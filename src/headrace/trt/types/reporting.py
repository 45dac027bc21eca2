"""Loggers, error recorders, errors of parsers, and how every object of the module reports."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._core.text import error_text, printable
from headrace.trt.release import generation, versioned
from headrace.trt.types.enums import ErrorCodeTRT, make_enum
from headrace.trt.types.strict import Idle, Listed, counted

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum


Severity = make_enum("Severity", "INTERNAL_ERROR ERROR WARNING INFO VERBOSE")
_LETTERS = "FEWIV"


class ILogger(Idle):
    """Receives messages. Subclasses override `log`."""

    min_severity: NumberedEnum
    Severity = Severity
    INTERNAL_ERROR = Severity.INTERNAL_ERROR
    ERROR = Severity.ERROR
    WARNING = Severity.WARNING
    INFO = Severity.INFO
    VERBOSE = Severity.VERBOSE

    def __init__(self, min_severity: NumberedEnum = Severity.WARNING) -> None:
        self.min_severity = min_severity

    def log(self, severity: NumberedEnum, msg: str) -> None:
        """One message.

        Args:
            severity: a `Logger.Severity`; lower is worse.
            msg: without a line end.
        """
        raise NotImplementedError("log")


class Logger(ILogger):
    """Writes messages of `min_severity` and worse to standard error, with time and a letter."""

    def log(self, severity: NumberedEnum, msg: str) -> None:
        """Write one message, unless it is too slight."""
        if int(severity) <= int(self.min_severity):
            stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
            head = f"[{stamp}] [TRT] [{_LETTERS[int(severity)]}]"
            print(f"{head} {printable(msg)}", file=sys.stderr, flush=True)


class IErrorRecorder:
    """Collects errors for the application. Subclasses override the methods.

    Source: tensorrt-api spec 2.
    """

    MAX_DESC_LENGTH = 127

    def __init__(self) -> None:
        self._errors: list[tuple[NumberedEnum, str]] = []

    def num_errors(self) -> int:
        """How many there are."""
        return len(self._errors)

    def get_error_code(self, error_idx: int) -> NumberedEnum:
        """An `ErrorCodeTRT`."""
        return self._errors[error_idx][0]

    def get_error_desc(self, error_idx: int) -> str:
        """The text."""
        return self._errors[error_idx][1]

    def has_overflowed(self) -> bool:
        """Whether errors were lost."""
        return False

    def clear(self) -> None:
        """Forget all."""
        self._errors.clear()

    def report_error(self, val: NumberedEnum, desc: str) -> bool:
        """Add an error; True ends the operation."""
        self._errors.append((val, desc))
        return False


def _print_failure(method: str, error: Exception) -> None:
    text = error_text(error, kind=False)
    print(printable(f"[ERROR] Exception caught in {method}(): {text}"), file=sys.stderr)


def report(
    logger: ILogger | None,
    severity: NumberedEnum,
    text: str,
    *,
    recorder: IErrorRecorder | None = None,
    code: NumberedEnum = ErrorCodeTRT["INVALID_ARGUMENT"],
) -> None:
    """Send a message to the logger, and an error to the recorder too.

    A user's logger that fails does not stop the operation; its exception goes to standard error.
    """
    if logger is not None:
        try:
            logger.log(severity, text)
        except Exception as error:  # the user's code
            _print_failure("log", error)
    if recorder is not None and int(severity) <= int(Severity.ERROR):
        try:
            recorder.report_error(code, text[: IErrorRecorder.MAX_DESC_LENGTH])
        except Exception as error:
            _print_failure("report_error", error)


_WITHOUT_EFFECT = {
    "gpu_allocator": "gpu_allocator is kept and not called: tensors are in the host's memory",
    "set_aux_streams": "set_aux_streams has no effect: runs are in order, in one stream",
}
_noted: set[str] = set()


def note_without_effect(logger: ILogger | None, setting: str) -> None:
    """Name a setting that has no effect on a CPU, once in a process; "" is none."""
    if setting and setting not in _noted:
        _noted.add(setting)
        report(logger, Severity.WARNING, _WITHOUT_EFFECT[setting])


@versioned(
    {
        ">=9": "node_name, node_operator",
        ">=10": "local_function_stack, local_function_stack_size",
    }
)
@dataclass(frozen=True)
class ParserError(metaclass=Listed):
    """One error; its parts are methods, as in the original. Source: tensorrt-api spec 3.5."""

    _code: NumberedEnum
    _desc: str
    _node: int = -1
    _node_name: str = ""
    _operator: str = ""
    _stack: tuple[str, ...] = field(default=())

    def code(self) -> NumberedEnum:
        """An `ErrorCode`."""
        return self._code

    def desc(self) -> str:
        """The fault in words."""
        return self._desc

    def file(self) -> str:
        """Source file that noticed it."""
        return "headrace/trt/api/onnx_parser.py"

    def local_function_stack_size(self) -> int:
        """How many functions of the model are around the node."""
        return len(self._stack)

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


class CollectsErrors(metaclass=Listed):
    """Base of parsers: their errors, until they are cleared."""

    _errors: list[ParserError]

    num_errors = counted("_errors", "How many errors there are.")

    def get_error(self, index: int) -> ParserError:
        """One of them."""
        return self._errors[index]

    def clear_errors(self) -> None:
        """Forget them."""
        self._errors.clear()
