"""A model of a service that fails or does not come back: the others run on."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from headrace._core.errors import EngineError
from headrace.pipeline import Pipeline
from headrace.pipeline import care as care_module
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
        self.results = {"attached": self.inferred_items}


def started(model: Planted, sink: FakeSink) -> tuple[Pipeline, threading.Thread]:
    source = FakeSource(10_000, delay_s=0.005, live=True)
    pipeline = Pipeline(source, [model, FakeModel(component_id=2)], [sink], keep_open=True)
    thread = threading.Thread(target=pipeline.run)
    thread.start()
    return pipeline, thread


@pytest.mark.parametrize("fault", ["begin", "complete", "hang"])
def test_frames_go_on_without_a_model_that_fails(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(care_module, "_LEAST_S", 0.2)
    monkeypatch.setattr(care_module, "_FIRST_S", 0.2)
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
    monkeypatch.setattr(care_module, "_FIRST_S", 60.0)
    model = Planted()
    model.fault, model.freed = "hang", threading.Event()
    pipeline, thread = started(model, FakeSink())
    time.sleep(0.2)
    pipeline.stop(30)
    thread.join(20)
    assert not thread.is_alive()
    assert "model-stuck" in [notice.code for notice in pipeline.notices]
    model.freed.set()


def test_without_keep_open_a_failure_ends_the_run() -> None:
    model = Planted()
    model.fault = "begin"
    with pytest.raises(EngineError, match="the GPU is lost"):
        Pipeline(FakeSource(5), model).run()
