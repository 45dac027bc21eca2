"""Logs as JSON: one object a line, whatever is in the names."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.live.log import (
    MOST_WAITING,
    errors_logged,
    log_as_json,
    log_end,
    log_notice,
    log_sources,
)
from headrace.pipeline import Pipeline
from tests.pipeline.fakes import FakeModel, FakeSource


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger("headrace")
    before = root.handlers[:], root.level, root.propagate
    found = io.StringIO()
    log_as_json(found)
    yield found
    root.handlers[:], root.propagate = before[0], before[2]
    root.setLevel(before[1])


def test_sources_that_come_and_go(stream: io.StringIO) -> None:
    hostile = 'a"\n\x1b[31m\u2028b'
    sources = [FakeSource(3, name=hostile), FakeSource(3, fail_at=1, name="bad")]
    pipeline = Pipeline(sources, FakeModel())
    log_sources(pipeline)
    pipeline.run()
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {(r["source"], r["state"], r["level"]) for r in rows} == {
        (hostile, "ended", "info"),
        ("bad", "failed", "warning"),
    }
    assert all(r["event"] == "source" and r["time"].endswith("Z") for r in rows)
    assert stream.getvalue().isascii()


def test_an_error_with_its_trace(stream: io.StringIO) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("headrace.live").exception("it failed")
    (row,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (row["level"], row["message"]) == ("error", "it failed")
    assert "ValueError: broken" in row["error"]


def test_an_error_has_its_fix(stream: io.StringIO, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended, errors_logged(logging.getLogger("headrace.live")):
        ModelConfig.load(tmp_path / "tcp://127.0.0.1:9")
    (row,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (row["code"], row["exit_code"]) == ("file-unreadable", ended.value.code)
    assert "headrace run CONFIG SOURCE" in row["fix"][0]


def test_a_notice_has_no_empty_fields(stream: io.StringIO) -> None:
    log_notice(logging.getLogger("headrace.live"), Finding("page-ended", "info", "it ended"))
    (row,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert row.keys() == {"time", "level", "message", "event", "code"}


def test_the_end_has_the_counts(stream: io.StringIO) -> None:
    report = Pipeline(FakeSource(3), FakeModel()).run()
    log_end(report)
    (row,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (row["event"], row["frames"], row["outputs"]) == ("stopped", 3, [])
    assert row["message"].startswith("stopped after 3 frames in ")
    assert sum(row["objects"].values()) == sum(report.objects.values()) > 0


class FullDisk(io.StringIO):
    """Takes nothing while it is full."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


@pytest.mark.parametrize("more", [0, 7])
def test_lines_wait_while_the_log_takes_none(
    stream: io.StringIO, more: int, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = FullDisk()
    logger = log_as_json(disk)
    logger.info("before")
    disk.full = True
    for number in range(MOST_WAITING + more - 1):
        logger.info("line %d", number)
    disk.full = False
    logger.info("after")
    texts = [json.loads(line)["message"] for line in disk.getvalue().splitlines()]
    told = [f"{more} lines of the log could not be written"] if more else []
    kept = [f"line {number}" for number in range(more, MOST_WAITING + more - 1)]
    assert texts == ["before", *told, *kept, "after"]
    assert capsys.readouterr().err == ""
