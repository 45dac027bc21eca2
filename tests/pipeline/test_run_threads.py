"""How long a run waits for its threads after a stop, and what it says of those that it leaves."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

from headrace._core.findings import Finding
from headrace.media import Frame, open_sink
from headrace.meta import FrameMeta
from headrace.pipeline import Pipeline
from headrace.pipeline.run_threads import RunThreads
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource


@pytest.fixture
def blocked() -> threading.Event:
    """What a call waits for that does not come back during the run."""
    return threading.Event()


class BlockedModel(FakeModel):
    """Its fourth batch does not come back."""

    def __init__(self, until: threading.Event) -> None:
        super().__init__()
        self.until = until

    def begin(self, batch: object) -> object:
        if len(self.batches) == 3:
            self.until.wait(60)
        return super().begin(batch)  # type: ignore[arg-type]


class BlockedSink(FakeSink):
    """Its fourth frame is never written."""

    until: threading.Event
    quick = False

    def write(self, frame: object, meta: object) -> None:
        if len(self.got) == 3:
            self.until.wait(60)
        super().write(frame, meta)  # type: ignore[arg-type]


def _stopped(pipeline: Pipeline) -> list[Finding]:
    stopper = threading.Timer(0.3, pipeline.stop, [0.5])
    stopper.start()
    report = pipeline.run()
    stopper.join()
    assert report.interrupted
    return [notice for notice in report.notices if notice.code == "thread-left"]


def test_a_stage_that_does_not_come_back_is_left_and_the_files_are_finished(
    blocked: threading.Event,
) -> None:
    sink, source = FakeSink(), FakeSource(1000, delay_s=0.01)
    pipeline = Pipeline([source], [BlockedModel(blocked)], [sink])
    (notice,) = _stopped(pipeline)
    assert notice.level == "warning"
    assert str(notice).startswith("the stage model 1 did not come back after the stop")
    assert pipeline.left == ["the stage model 1"]
    assert 1 <= len(sink.got) <= 3
    assert sink.closed == 1
    blocked.set()


def test_a_sink_that_does_not_come_back_is_not_closed_under_its_call(
    blocked: threading.Event,
) -> None:
    sink = BlockedSink()
    sink.until = blocked
    pipeline = Pipeline([FakeSource(1000, delay_s=0.01)], [FakeModel()], [sink])
    (notice,) = _stopped(pipeline)
    assert notice.data == {"part": "writing"}
    assert sink.closed == 0
    blocked.set()


class QuickSink(FakeSink):
    """Needs no thread of its own; notes those that write."""

    quick = True
    wrote: ClassVar[set[str]] = set()

    def write(self, frame: Frame, meta: FrameMeta) -> None:
        self.wrote.add(threading.current_thread().name)
        super().write(frame, meta)


def test_quick_outputs_are_written_in_the_thread_of_the_last_stage() -> None:
    sink = QuickSink()
    Pipeline([FakeSource(20)], [FakeModel()], [sink]).run()
    assert len(sink.got) == 20
    assert sink.wrote == {"headrace-stage-0"}
    sink.wrote.clear()
    slow, sink = FakeSink(), QuickSink()
    Pipeline([FakeSource(20)], [FakeModel()], [sink, slow]).run()
    assert len(sink.got) == len(slow.got) == 20
    assert sink.wrote == {"headrace-write"}, "a slow one beside it holds no model up"


def test_a_quick_sink_that_does_not_come_back_is_not_closed_under_its_call(
    blocked: threading.Event,
) -> None:
    sink = BlockedSink()
    sink.until, sink.quick = blocked, True
    pipeline = Pipeline([FakeSource(1000, delay_s=0.01)], [FakeModel()], [sink])
    (notice,) = _stopped(pipeline)
    assert notice.data == {"part": "the stage model 1"}
    assert sink.closed == 0
    blocked.set()


def test_lines_of_a_file_are_quick_and_those_of_a_pipe_are_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with open_sink(f"jsonl:{tmp_path}/a") as file, open_sink(f"jsonl:{tmp_path}/pipe") as pipe:
        assert (file.quick, pipe.quick) == (True, False)
    os.close(reader)


def test_a_stop_without_a_limit_waits_for_what_is_under_way(blocked: threading.Event) -> None:
    sink = FakeSink()
    pipeline = Pipeline(
        [FakeSource(1000, delay_s=0.01)], [BlockedModel(blocked)], [sink],
        on_result=lambda meta: pipeline.stop() if meta.frame == 2 else None,
    )  # fmt: skip
    threading.Timer(0.5, blocked.set).start()
    report = pipeline.run()
    assert [n for n in report.notices if n.code == "thread-left"] == []
    assert len(sink.got) >= 3


def test_a_system_without_further_threads_ends_the_run_with_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "headrace-write":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    sink = FakeSink()
    pipeline = Pipeline([FakeSource(10)], [FakeModel()], [sink])
    with pytest.raises(Exception, match="the thread headrace-write cannot be started"):
        pipeline.run()
    assert sink.closed == 1


def test_the_end_that_was_set_first_stays() -> None:
    threads = RunThreads()
    assert not threads.limited
    threads.limit(1)
    threads.limit(60)
    assert threads.limited
    assert threads.remaining_s <= 1
    threads.limit(0)
    assert threads.remaining_s == 0.5
    blocked = threading.Event()
    started = time.monotonic()
    (left,) = threads.do("headrace-test", "a test", lambda: [blocked.wait(60)].clear(), print)
    assert time.monotonic() - started < 30
    assert left.data == {"part": "a test"}
    blocked.set()
