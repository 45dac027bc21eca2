"""Loggers and error recorders, and the way that every object of the module reports to them."""

from __future__ import annotations

import sys
import time
from typing import Any

from noria.trt.api.enums import ErrorCodeTRT, make_enum

Severity = make_enum("Severity", "INTERNAL_ERROR ERROR WARNING INFO VERBOSE")
_LETTERS = "FEWIV"


class ILogger:
    """Receives messages. Subclasses override `log`."""

    Severity = Severity
    INTERNAL_ERROR = Severity.INTERNAL_ERROR
    ERROR = Severity.ERROR
    WARNING = Severity.WARNING
    INFO = Severity.INFO
    VERBOSE = Severity.VERBOSE

    def __init__(self, min_severity: Any = Severity.WARNING) -> None:
        self.min_severity = min_severity

    def log(self, severity: Any, msg: str) -> None:
        """One message.

        Args:
            severity: a `Logger.Severity`; lower is worse.
            msg: without a line end.
        """
        raise NotImplementedError("log")

    def __enter__(self) -> ILogger:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Logger(ILogger):
    """Writes messages of `min_severity` and worse to standard error, with time and a letter."""

    def log(self, severity: Any, msg: str) -> None:
        """Write one message, unless it is too slight."""
        if int(severity) <= int(self.min_severity):
            stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
            print(f"[{stamp}] [TRT] [{_LETTERS[int(severity)]}] {msg}", file=sys.stderr, flush=True)


class IErrorRecorder:
    """Collects errors for the application. Subclasses override the methods.

    Source: tensorrt-api spec 2.
    """

    MAX_DESC_LENGTH = 127

    def __init__(self) -> None:
        self._errors: list[tuple[Any, str]] = []

    def num_errors(self) -> int:
        """How many there are."""
        return len(self._errors)

    def get_error_code(self, error_idx: int) -> Any:
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

    def report_error(self, val: Any, desc: str) -> bool:
        """Add an error; True ends the operation."""
        self._errors.append((val, desc))
        return False


def report(
    logger: Any,
    severity: Any,
    text: str,
    *,
    recorder: Any = None,
    code: Any = ErrorCodeTRT.INVALID_ARGUMENT,
) -> None:
    """Send a message to the logger, and an error to the recorder too.

    A user's logger that fails does not stop the operation; its exception goes to standard error.
    """
    if logger is not None:
        try:
            logger.log(severity, text)
        except Exception as error:  # the user's code
            print(f"[ERROR] Exception caught in log(): {error}", file=sys.stderr)
    if recorder is not None and int(severity) <= int(Severity.ERROR):
        try:
            recorder.report_error(code, text[: IErrorRecorder.MAX_DESC_LENGTH])
        except Exception as error:
            print(f"[ERROR] Exception caught in report_error(): {error}", file=sys.stderr)
