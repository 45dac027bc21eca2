"""The log of a service as JSON, one object a line, for programs that collect logs."""

from __future__ import annotations

import json
import logging
import sys
from collections import deque
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from headrace._core.errors import HeadraceError
from headrace._core.json_record import finite_data
from headrace._core.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace._core.findings import Finding
    from headrace.pipeline import Pipeline, RunReport
    from headrace.pipeline.events import PipelineEvent

MOST_WAITING = 1000
"""Lines that wait for a log that takes none."""

_COUNTS = ("frames", "dropped", "failed", "objects", "seconds", "outputs")
_OF_FINDING = ("code", "where", "data", "expected", "fix")
_FIELDS = ("event", "source", "source_id", "state", "url", *_OF_FINDING, "exit_code", *_COUNTS)


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON: `time` (UTC), `level`, `message` and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, without its end; ASCII alone, so nothing in it moves a cursor."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        row: dict[str, object] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        row |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            row["error"] = self.formatException(record.exc_info)
        return json.dumps(finite_data(row))


class LastingHandler(logging.StreamHandler[TextIO]):
    """Keeps the lines that a stream does not take, as on a full disk, and writes them later.

    Attributes:
        waiting: the latest lines that could not be written, `MOST_WAITING` at most.
        lost: lines that were pushed out of these.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.waiting: deque[str] = deque()
        self.lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record behind those that wait; nothing is raised, nor printed elsewhere."""
        self.waiting.append(self.format(record))
        if len(self.waiting) > MOST_WAITING:
            self.waiting.popleft()
            self.lost += 1
        with suppress(OSError, ValueError):  # ValueError: it is closed
            if self.lost:
                text = f"{counted(self.lost, 'line')} of the log could not be written"
                self._put(json.dumps({"level": "warning", "message": text, "event": "log-lost"}))
                self.lost = 0
            while self.waiting:
                self._put(self.waiting[0])
                self.waiting.popleft()

    def _put(self, line: str) -> None:
        self.stream.write(line + self.terminator)
        self.flush()


def log_as_json(stream: TextIO | None = None) -> logging.Logger:
    """Send everything that Headrace logs to a stream as JSON; None is standard error.

    Returns:
        The logger of the service.
    """
    handler = LastingHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger("headrace")
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
    return logging.getLogger("headrace.live")


def log_sources(pipeline: Pipeline) -> None:
    """Log each source that is added, ends, fails or is removed; its notices come with the run's."""
    logger = logging.getLogger("headrace.live")

    def log(event: PipelineEvent) -> None:
        level = logging.WARNING if event.name.startswith("failed") else logging.INFO
        extra = {"source": event.source, "source_id": event.source_id}
        extra |= {"event": "source", "state": event.name.partition(":")[0]}
        logger.log(level, "source %s: %s", event.source_id, event.name, extra=extra)

    pipeline.on_event("source", log)


def log_notice(logger: logging.Logger, notice: Finding, **more: object) -> None:
    """Log a notice with the fields that it has; `more`: further ones of the line."""
    level = getattr(logging, notice.level.upper(), logging.INFO)
    row = notice.to_json()
    extra = {"event": "notice", **{name: row[name] for name in _OF_FINDING if row[name]}, **more}
    logger.log(level, row["message"], extra=extra)


@contextmanager
def errors_logged(logger: logging.Logger | None) -> Iterator[None]:
    """Log an error of the block as an object, and end the program with its code.

    Args:
        logger: None leaves errors alone.
    """
    try:
        yield
    except HeadraceError as error:
        if logger is None:
            raise
        for notice in error.notices:
            log_notice(logger, notice)
        log_notice(logger, error.finding, event="error", exit_code=error.exit_code)
        sys.exit(error.exit_code)


def log_end(report: RunReport) -> None:
    """Log the counts of a service that has stopped."""
    counts = (
        report.frames, report.dropped_frames, report.failed_frames, dict(report.objects),
        round(report.seconds, 1), list(report.outputs),
    )  # fmt: skip
    extra = {"event": "stopped", **dict(zip(_COUNTS, counts, strict=True))}
    words = (report.frames, report.seconds)
    logging.getLogger("headrace.live").info(
        "stopped after %d frames in %.1f s", *words, extra=extra
    )
