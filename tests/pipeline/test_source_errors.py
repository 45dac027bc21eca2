"""Sources that fail are messages to a broker."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import MediaError
from headrace.media import ArraySource, Source
from headrace.media.sources.base import FailedSource
from headrace.pipeline import Pipeline
from headrace.pipeline.source_errors import SourceErrors

IMAGE = np.zeros((8, 8, 3), np.uint8)


def sent(tmp_path: Path, *sources: Source) -> list[dict[str, str]]:
    path = tmp_path / "errors.jsonl"
    pipeline = Pipeline(list(sources), keep_open=True, end_when_over=True)
    pipeline.attach(SourceErrors(f"events+file://{path}", tmp_path / "spool"))
    pipeline.run()
    assert not [n for n in pipeline.notices if n.where and "events+file" in n.where]
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_source_that_fails_is_one_message(tmp_path: Path) -> None:
    broken = FailedSource(MediaError("the disk is gone"), "door", 1)
    (message,) = sent(tmp_path, ArraySource([IMAGE] * 3), broken)
    assert message.pop("timestamp").endswith("Z")
    assert message.pop("event").startswith("the disk is gone")
    assert message == {"stream_id": "1", "type": "CRITICAL", "source": "door"}


def test_a_source_that_is_away_may_come_back(tmp_path: Path) -> None:
    source = ArraySource([IMAGE] * 3, name="gate")
    source._notice("connection-away", "warning", "there was no connection")
    (message,) = sent(tmp_path, source)
    assert (message["type"], message["source"]) == ("FUNCTIONAL", "gate")
    assert "no connection" in message["event"]


def test_sources_that_end_are_none(tmp_path: Path) -> None:
    assert sent(tmp_path, ArraySource([IMAGE] * 3)) == []


def test_a_url_that_leads_nowhere() -> None:
    with pytest.raises(MediaError):
        SourceErrors("mqtt://host")
