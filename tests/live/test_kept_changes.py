"""Settings, regions and models that requests changed are there again after a restart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import Inferencer
from headrace.live import Address, LiveServer, LiveView
from headrace.live.allowed import ServiceRules
from headrace.live.control import Controls
from headrace.live.kept_changes import KeptChanges
from headrace.media import Frame, PixelFormat
from headrace.pipeline import Pipeline
from headrace.pipeline.analytics import Analytics, AnalyticsRules, Region, SourceRules
from headrace.pipeline.analytics.rules import ALL_SOURCES
from tests.live.test_server import Client
from tests.pipeline.fakes import FakeModel, FakeSource

FRAME = Frame.from_array(np.zeros((32, 32, 3), np.uint8), PixelFormat.RGB)
REGION = {"roi_id": "door", "left": 1, "top": 2, "width": 30, "height": 40}


def opened(file: Path, *stages: Any, interval: int = 0) -> tuple[Pipeline, Controls]:
    """One life of a service that keeps changes in a file; it does not begin."""
    view = LiveView()
    source = FakeSource(1, live=True)
    pipeline = Pipeline(source, list(stages) or FakeModel(), [view], keep_open=True)
    if interval:
        pipeline.set_interval(interval)
    controls = Controls(pipeline, view, KeptChanges(file))
    controls.restore()
    return pipeline, controls


def analytics_of(name: str = "first") -> Analytics:
    region = Region(name=name, points=((0, 0), (9, 0), (9, 9)))
    return Analytics(AnalyticsRules(sources={ALL_SOURCES: SourceRules(regions=(region,))}))


def codes(pipeline: Pipeline) -> list[str]:
    return [n.code for n in pipeline.notices if n.code.startswith(("change", "kept", "model"))]


def test_settings_come_back_until_the_files_say_something_new(tmp_path: Path) -> None:
    file = tmp_path / "state" / "changes.json"
    _, controls = opened(file)
    start = controls.settings()
    controls.change({"interval": 2, "batch_timeout_s": 0.5, "osd": {"labels": False}})
    controls.change({"batch_timeout_s": start["batch_timeout_s"]})  # as the files have it
    pipeline, again = opened(file)
    assert again.settings() == controls.settings() != start
    assert codes(pipeline) == ["changes-restored"]
    assert pipeline.notices[-1].data["names"] == ["interval", "osd labels"]
    pipeline, newer = opened(file, interval=5)  # the pipeline file has another interval now
    assert newer.settings() == {**again.settings(), "interval": 5}
    assert codes(pipeline) == ["changes-restored", "changes-forgotten"]
    assert list(json.loads(file.read_text())["changes"]) == ["osd labels"]
    newer.change({"osd": {"labels": True}})
    assert codes(opened(file)[0]) == []


def test_requests_keep_what_they_change(tmp_path: Path) -> None:
    file = tmp_path / "changes.json"
    for interval, before in ((3, 0), (0, 3)):
        view = LiveView()
        pipeline = Pipeline([], FakeModel(), [view], keep_open=True)
        rules = ServiceRules(changes=KeptChanges(file))
        server = LiveServer(pipeline, view, Address(port=0), service=rules)
        client = Client(server.address)
        assert client.json("/api/settings")["interval"] == before
        stream = {"stream": {"stream_id": "0", "interval": interval}}
        assert client.ask("/api/v1/infer/set-interval", stream)[0] == 200
        client.close()
        server.close()
        pipeline.close()
    assert json.loads(file.read_text())["changes"] == {}


def test_regions_come_back_until_their_source_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "changes.json"
    _, controls = opened(file, FakeModel(), analytics_of())
    controls.set_regions(0, [REGION])
    analytics = analytics_of()
    _, controls = opened(file, FakeModel(), analytics)
    assert [r.name for r in analytics.rules.sources[0].regions] == ["door"]
    controls.forget_source(0)
    analytics = analytics_of()
    opened(file, FakeModel(), analytics)
    assert 0 not in analytics.rules.sources
    _, controls = opened(file, FakeModel(), analytics)
    controls.set_regions(0, [REGION])
    assert codes(opened(file, FakeModel(), analytics_of("other"))[0]) == ["changes-forgotten"]


@contextmanager
def model_of(config: Path, file: Path) -> Iterator[tuple[Any, Controls, Pipeline]]:
    with Inferencer.from_config(config) as model:
        pipeline, controls = opened(file, model)
        yield model, controls, pipeline


def test_the_version_that_ran_comes_back(mean_config: Callable[..., Path], tmp_path: Path) -> None:
    config, file = mean_config(), tmp_path / "state" / "changes.json"
    shutil.copy(tmp_path / "mean.onnx", tmp_path / "second.onnx")
    other = tmp_path / "other.txt"
    other.write_text(config.read_text().replace("scale-factor=0.00392", "scale-factor=0.001"))
    with model_of(config, file) as (model, controls, _):
        controls.update_model(0, {"config": "other.txt"})
        model.process([FRAME])  # the version runs from this batch on
        controls.update_model(0, {"model": "second.onnx"})
        kept = file.read_text()
    with model_of(config, file) as (model, controls, pipeline):
        version = model.history.latest
        assert (version.number, version.config.onnx_file) == (2, tmp_path / "second.onnx")
        assert version.config.net_scale_factor < 0.002
        assert "changes-restored" in codes(pipeline)
        model.process([FRAME])
        controls.roll_back(0)
        assert json.loads(file.read_text())["changes"] == {}

    file.write_text(kept)
    (tmp_path / "second.onnx").write_bytes(b"changed")
    with model_of(config, file) as (model, controls, pipeline):
        assert model.history.latest.number == 1
        assert "change-not-restored" in codes(pipeline)
    assert json.loads(file.read_text()) == json.loads(kept)
    config.write_text(config.read_text() + "interval=1\n")  # whoever deploys files means them
    with model_of(config, file) as (model, controls, pipeline):
        assert model.history.latest.number == 1
        assert codes(pipeline) == ["changes-forgotten"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"version": 1, "changes": {"interval": {"val', "kept-unreadable"),
        ('{"version": 1, "changes": {"interval": 3}}', "kept-unreadable"),
        ('{"version": 1, "changes": []}', "kept-unreadable"),
        ('{"version": 1, "changes": {"no": {"value": 1, "start": 0}}}', "change-not-restored"),
        ('{"version": 1, "changes": {"interval": {"value": "", "start": 0}}}',
         "change-not-restored"),
        ('{"version": 1, "changes": {"model 7": {"value": 1, "start": 0}}}', "change-not-restored"),
    ],
)  # fmt: skip
def test_a_damaged_file_changes_nothing(tmp_path: Path, text: str, code: str) -> None:
    file = tmp_path / "changes.json"
    file.write_text(text)
    pipeline, controls = opened(file)
    assert codes(pipeline) == [code]
    assert controls.settings()["interval"] == 0
    aside = tmp_path / "changes.json.unreadable"
    assert (aside if code == "kept-unreadable" else file).read_text() == text
