"""A model of a service that fails or does not come back: the others run on."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from headrace._core.errors import EngineError
from headrace._core.findings import Finding
from headrace.infer.batch import Batch
from headrace.media.sinks.jsonl import LineWriter
from headrace.media.sources.reconnect import MAX_TOLD, Losses
from headrace.pipeline import Pipeline
from headrace.pipeline import care as care_module
from headrace.pipeline.care import Care
from headrace.pipeline.health import Health
from headrace.pipeline.notice_follower import NoticeFollower
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource
from tests.pipeline.test_pipeline_dynamic import wait_until


class Planted(FakeModel):
    """Fails on request, as an engine whose GPU is lost does."""

    fault = ""
    freed = threading.Event()

    def begin(self, batch: Any) -> Any:
        if self.fault == "begin":
            raise EngineError("the GPU is lost")
        return super().begin(batch)

    def complete(self, pending: Any) -> None:
        if self.fault == "complete":
            raise EngineError("the GPU is lost")
        if self.fault == "hang":
            self.freed.wait(60)
        super().complete(pending)
        self.inferred_items += 1
        self.completed_items += 1
        self.results = {"attached": self.inferred_items}


def started(model: Planted, sink: FakeSink) -> tuple[Pipeline, threading.Thread]:
    source = FakeSource(10_000, delay_s=0.005, live=True)
    pipeline = Pipeline(source, [model, FakeModel(component_id=2)], [sink], keep_open=True)
    thread = threading.Thread(target=pipeline.run)
    thread.start()
    return pipeline, thread


def test_losses_of_cameras_of_one_name_are_told_each() -> None:
    notices: list[Finding] = []
    told: list[Finding] = []
    pipeline: Any = SimpleNamespace(notices=notices, drops=list)
    follower = NoticeFollower(pipeline, told.extend)
    cameras = [Losses(notices, name) for name in ("http://cam", "http://cam", "door")]
    for camera in cameras:
        camera.lost("end", 7)
    follower.look()
    for camera in cameras:
        camera.back()
    follower.look()
    follower.look()
    rows = [(n.code, n.where) for n in told]
    places = ["http://cam", "http://cam", "door"]
    assert rows == [(c, w) for c in ("connection-away", "connection-lost") for w in places]


def test_a_camera_that_comes_and_goes_is_counted_at_a_slow_rate() -> None:
    notices: list[Finding] = []
    told: list[Finding] = []
    pipeline: Any = SimpleNamespace(notices=notices, drops=list)
    follower = NoticeFollower(pipeline, told.extend)
    camera = Losses(notices, "gate")
    for _ in range(MAX_TOLD + 30):
        camera.lost("end", 7)
        for _ in range(3):
            camera.tried("refused")
            follower.look()
        camera.back()
        follower.look()
    assert len(told) == 2 * MAX_TOLD + 1
    assert " and 3 attempts in vain" in told[1].sentence


@pytest.mark.parametrize("fault", ["begin", "complete", "hang"])
def test_frames_go_on_without_a_model_that_fails(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(care_module, "_LEAST_S", 0.2)
    monkeypatch.setattr(care_module, "PATIENCE_S", 0.2)
    model, sink = Planted(), FakeSink()
    model.freed = threading.Event()
    pipeline, thread = started(model, sink)
    told: list[Any] = []
    health = Health(pipeline, answers_s=0.5)
    follower = NoticeFollower(pipeline, told.extend)
    wait_until(lambda: model.inferred_items > 3)
    health.look()
    assert health.reasons == []
    model.fault = fault
    time.sleep(0.6)
    wait_until(lambda: bool(health.reasons), 3)
    before = len(sink.of(0))
    wait_until(lambda: len(sink.of(0)) > before + 5)
    health.look()
    follower.look()
    follower.look()
    codes = [notice.code for notice in told]
    assert codes.count("model-not-ready") == 1
    assert ("model-stuck" if fault == "hang" else "model-failed") in codes
    (bad, good) = health.models
    assert (bad.state, good.state) == ("not-ready", "ready")
    assert bad.passed > 0
    assert (sink.got[0].failed, sink.got[-1].failed) == ((), (1,))
    assert LineWriter().line(sink.got[-1])[0].endswith(b'],"failed":[1]}\n')
    model.fault = ""
    model.freed.set()
    wait_until(lambda: not health.reasons, 5)
    health.look()
    follower.look()
    assert [notice.code for notice in told][-1] == "model-ready"
    pipeline.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_a_stop_waits_for_no_model_that_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(care_module, "_LEAST_S", 0.1)
    monkeypatch.setattr(care_module, "PATIENCE_S", 60.0)
    model = Planted()
    model.fault, model.freed = "hang", threading.Event()
    pipeline, thread = started(model, FakeSink())
    time.sleep(0.2)
    pipeline.stop(30)
    thread.join(20)
    assert not thread.is_alive()
    assert "model-stuck" in [notice.code for notice in pipeline.notices]
    model.freed.set()


def test_a_stuck_model_is_not_ready_while_its_batch_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its unanswered time begins with the batch, not when patience with that is over."""
    monkeypatch.setattr(care_module, "_LEAST_S", 60.0)
    model, sink = Planted(), FakeSink()
    model.freed = threading.Event()
    pipeline, thread = started(model, sink)
    health = Health(pipeline, answers_s=0.3)
    wait_until(lambda: model.inferred_items > 3)
    model.fault = "hang"
    wait_until(lambda: bool(health.reasons), 10)
    assert health.models[0].passed == 0
    model.fault = ""
    model.freed.set()
    wait_until(lambda: not health.reasons, 5)
    pipeline.stop()
    thread.join(10)


def test_batches_under_way_are_no_answers() -> None:
    """The engine is ahead of the parser, which fails each item: the model never answers."""
    stage = FakeModel()
    stage.begin = stage.complete = lambda _: None  # type: ignore[assignment]
    care, batch = Care(), Batch([], [], [])
    times = set()
    for number in range(3):
        care.begin(stage, batch)
        stage.inferred_items += 2
        stage.completed_items += 1
        stage.failed_items += 1
        care.complete(stage, number, batch)
        times.add(care.unanswered_since)
    assert len(times) == 1
    assert None not in times
    stage.completed_items += 1
    care.complete(stage, 3, batch)
    assert care.unanswered_since is None
    care.end()


def test_patience_with_a_batch_is_not_longer_than_that_with_a_model() -> None:
    pipeline, thread = started(Planted(), FakeSink())
    care = pipeline.model_segments[0].care
    assert care is not None
    wait_until(lambda: care.patience_s < care_module.PATIENCE_S)
    care._longest_s = 5.0
    assert care.patience_s == care_module.PATIENCE_S
    Health(pipeline, answers_s=3.0).look()
    assert care.patience_s == 3.0
    pipeline.stop()
    thread.join(10)


def test_a_model_that_failed_is_waited_for_shortly_until_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each further call may hang, too, and the frames of the other models would wait each time."""
    stage = FakeModel()
    calls: list[Any] = []
    monkeypatch.setattr(stage, "begin", lambda _: None)
    monkeypatch.setattr(stage, "complete", lambda _: calls.pop()())
    care, batch, freed = Care(), Batch([], [], []), threading.Event()

    def answer() -> None:
        stage.completed_items += 1

    def crash() -> None:
        stage.completed_items += 1
        stage.failed_items += 1

    def call(*works: Any) -> None:
        for work in works:
            calls.append(work)
            care.begin(stage, batch)
            care.complete(stage, None, batch)

    assert care.patience_s == care_module.PATIENCE_S
    care.most_s = 3.0
    assert care.patience_s == 3.0
    call(crash)
    first = care.patience_s
    call(answer)
    well = care.patience_s
    call(crash)
    trial = care.patience_s
    assert trial < first == well
    call(answer)
    assert care.patience_s == well
    call(crash, lambda: freed.wait(60))  # this one goes on without it
    assert care.stuck
    freed.set()
    wait_until(lambda: not care.stuck)
    assert care.patience_s == trial
    call(answer)
    assert care.patience_s == well
    care._longest_s = 1.0
    call(crash)
    assert care.patience_s == 2.0, "a slow one is not given up while it answers"
    care.end()


def test_without_keep_open_a_failure_ends_the_run() -> None:
    model = Planted()
    model.fault = "begin"
    with pytest.raises(EngineError, match="the GPU is lost"):
        Pipeline(FakeSource(5), model).run()
