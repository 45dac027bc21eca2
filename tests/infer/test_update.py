"""Another model in place of the running one, while images flow."""

from __future__ import annotations

import re
import shutil
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.errors import ConfigError, EngineError
from headrace.infer.inferencer import Inferencer
from headrace.infer.model import load_or_build
from headrace.infer.update import ModelUpdater
from headrace.media import ArraySource
from headrace.meta import FrameMeta, InputTensor, Roi
from headrace.pipeline import Pipeline
from tests.infer.models import node, write_config, write_model
from tests.infer.scenes import Batch, batch_of, classifier, image, ran, texts

Config = Callable[..., Path]


def gain_model(folder: Path, gain: float, *, size: int = 16, batch: int = 2) -> Path:
    """A config of network-type 100 whose output is the image's mean times `gain`."""
    folder.mkdir()
    nodes = [
        node("ReduceMean", ["image"], ["mean"], axes=[1, 2, 3], keepdims=0),
        node("Mul", ["mean", "gain"], ["out"]),
    ]
    constants = {"gain": np.array([gain], np.float32)}
    write_model(
        folder / "m.onnx", nodes, {"image": ["n", 3, size, size]}, {"out": ["n"]}, constants
    )
    return write_config(
        folder, onnx_file="m.onnx", network_type=100, output_tensor_meta=1, batch_size=batch
    )


def engine_of(config: Path) -> Path:
    """The saved engine of a config, in a folder without its model."""
    plan = load_or_build(ModelConfig.load(config), threads=1)
    assert plan.path is not None
    alone = config.parent / "alone"
    alone.mkdir()
    return Path(shutil.copy(plan.path, alone / "new.engine"))


class Told:
    """What on_updated was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Path]] = []

    def __call__(self, status: int, path: Path) -> None:
        self.calls.append((status, path))


def test_no_frame_of_a_pipeline_is_lost(tmp_path: Path) -> None:
    """Updates are started by a probe; each frame has one result, of the old model or the new."""
    first = gain_model(tmp_path / "a", 1)
    second = engine_of(gain_model(tmp_path / "b", 2))
    third = gain_model(tmp_path / "c", 3)
    told = Told()
    metas: list[FrameMeta] = []
    frames = [np.full((20, 20, 3), 10, np.uint8)] * 60
    with Inferencer.from_config(first, threads=1, streams=2) as model:
        updater = ModelUpdater(model, told)

        def probe(batch: Batch) -> None:
            for frame in batch.frames:
                if frame.frame == 20:
                    updater.update(engine=second)
                elif frame.frame == 40:
                    updater.update(config=third)
                if frame.frame in (21, 41):
                    updater.wait(20)

        report = Pipeline([ArraySource(frames)], [probe, model], on_result=metas.append).run()
        assert model.inferred_items == 60
    assert told.calls == [(0, second), (0, third)]
    assert updater.errors == []
    assert [m.frame for m in metas] == list(range(60))
    assert report.frames == 60
    values = [round(float(m.tensors[0]["out"].item())) for m in metas]
    assert [len(m.tensors) for m in metas] == [1] * 60
    assert values == sorted(values)
    assert set(values) == {10, 20, 30}
    assert values[19] == 10
    assert values[24] == 20
    assert values[44] == 30


@pytest.mark.parametrize("spoil", ["size", "batch", "file", "suffix", "text"])
def test_what_does_not_fit_keeps_the_old_model(tmp_path: Path, spoil: str) -> None:
    config = gain_model(tmp_path / "a", 1)
    words = {
        "size": "32x32 pixels",
        "batch": "batch",
        "file": "is not there either",
        "suffix": "is not a config for an update",
        "text": "is not key=value",
    }[spoil]
    told = Told()
    with Inferencer.from_config(config, threads=1) as model:
        updater = ModelUpdater(model, told)
        if spoil == "size":
            path = engine_of(gain_model(tmp_path / "b", 2, size=32))
            updater.update(engine=path)
        elif spoil == "batch":
            path = engine_of(gain_model(tmp_path / "b", 2, batch=1))
            updater.update(engine=path)
        elif spoil == "file":
            path = tmp_path / "none.engine"
            updater.update(engine=path)
        else:
            path = tmp_path / ("new.conf" if spoil == "suffix" else "new.txt")
            path.write_text("nothing\n")
            updater.update(config=path)
        assert updater.wait(20)
        session = model.session
        (meta,) = model.process([image([])])
        assert model.session is session
        (warning,) = [n for n in model.notices if "was not updated" in n.sentence]
    assert float(meta.tensors[0]["out"].item()) == pytest.approx(60)
    ((status, told_path),) = told.calls
    assert (status != 0, told_path) == (True, path)
    (error,) = updater.errors
    assert str(error) in warning.sentence
    assert re.search(words, str(error))


def test_one_update_at_a_time(tmp_path: Path) -> None:
    config = gain_model(tmp_path / "a", 1)
    gate = threading.Event()
    with Inferencer.from_config(config, threads=1) as model:
        updater = ModelUpdater(model, lambda status, path: gate.wait(10))
        updater.update(config=config)
        with pytest.raises(ConfigError, match="Trying to update model too frequently"):
            updater.update(config=config)
        assert not updater.wait(0.01)
        gate.set()
        assert updater.wait(20)
        # loaded, but no batch has come since
        updater.update(config=config)
        assert updater.wait(20)
        assert "Trying to update model too frequently" in str(updater.errors[0])
        model.process([image([])])
        updater.update(config=config)
        assert updater.wait(20)
        assert len(updater.errors) == 1
        for wrong in ({}, {"config": config, "engine": config}):
            with pytest.raises(ConfigError, match="a config, an engine, a model or a version"):
                updater.update(**wrong)


def test_a_crash_while_loading_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, told = gain_model(tmp_path / "a", 1), Told()
    with Inferencer.from_config(config, threads=1) as model:
        updater = ModelUpdater(model, told)

        def crash(*args: object) -> None:
            raise MemoryError("two models do not fit")

        monkeypatch.setattr("headrace.infer.update.Model.load", crash)
        updater.update(config=config)
        assert updater.wait(20)
        assert float(model.process([image([])])[0].tensors[0]["out"].item()) == pytest.approx(60)
    assert told.calls == [(1, config)]
    assert "two models do not fit" in str(updater.errors[0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.txt", "a secret line\n[property]\nnet-scale-factor=secret\n"),
        ("c.txt", "[property]\nonnx-file=secret.onnx\n"),
        ("c.yml", "secret: [\n"),
        ("none.txt", None),
    ],
)
def test_clients_read_no_line_of_a_config_that_is_refused(
    tmp_path: Path, name: str, text: str | None
) -> None:
    config = gain_model(tmp_path / "a", 1)
    (tmp_path / "secret_file.txt").touch()
    if text is not None:
        (tmp_path / name).write_text(text)
    with Inferencer.from_config(config, threads=1) as model:
        updater = ModelUpdater(model)
        updater.update(config=tmp_path / name)
        assert updater.wait(20)
        (told,) = updater.told
        assert told == model.history.refused[-1]["reason"]
    assert told.startswith(name)
    assert told.endswith("cannot be used as it is; the service's log says why")
    assert "secret" not in told
    assert len(str(updater.errors[0])) > 30, "the log has all of it"


def test_tracked_objects_are_forgotten(mean_config: Config) -> None:
    config = classifier(mean_config)
    red = [("red", (10, 10, 40, 40))]
    with Inferencer.from_config(config) as model:
        assert ran(model, batch_of([red], number=0, ids=[7])) == 1
        assert ran(model, batch_of([red], number=1, ids=[7])) == 0
        updater = ModelUpdater(model)
        updater.update(config=config)
        assert updater.wait(20)
        batch = batch_of([red], number=2, ids=[7])
        assert ran(model, batch) == 1
        assert texts(batch) == [["thing red "]]
        assert ran(model, batch_of([red], number=3, ids=[7])) == 0


def test_what_is_under_way_finishes_with_the_old_model(tmp_path: Path) -> None:
    first, second = gain_model(tmp_path / "a", 1), gain_model(tmp_path / "b", 2)
    with Inferencer.from_config(first, threads=1) as model:
        old = model.begin(Batch.of([image([], number=0)]))
        updater = ModelUpdater(model)
        updater.update(config=second)
        assert updater.wait(20)
        new = model.begin(Batch.of([image([], number=1)], buffer=1))
        for pending in (old, new):
            model.complete(pending)
        values = [float(p.batch.metas[0].tensors[0]["out"].item()) for p in (old, new)]
    assert values == [pytest.approx(60), pytest.approx(120)]


def test_an_asynchronous_classifier_is_flushed_first(mean_config: Config) -> None:
    config = classifier(mean_config, classifier_async_mode=1)
    red = [("red", (10, 10, 40, 40))]
    with Inferencer.from_config(config) as model:
        old = model.session
        run = old.run
        old.run = lambda inputs: (time.sleep(0.2), run(inputs))[1]  # type: ignore[method-assign]
        for number in range(2):
            model.process(batch_of([red], number=number, ids=[number]))
        updater = ModelUpdater(model)
        updater.update(config=config)
        assert updater.wait(20)
        model.process(batch_of([red], number=2, ids=[9]))
        assert model.session is not old
        assert model.inferred_items >= 2, "what the old model had begun is done"
        with pytest.raises(EngineError, match="closed"):
            run({"image": np.zeros((1, 3, 32, 32), np.float32)})


def test_every_session_is_closed(tmp_path: Path) -> None:
    """Also that of a model whose turn never came, and after an error."""
    config = gain_model(tmp_path / "a", 1)
    sessions = []
    with Inferencer.from_config(config, threads=1) as model:
        sessions.append(model.session)
        updater = ModelUpdater(model)
        model.session.run = failing  # type: ignore[method-assign]
        with pytest.raises(EngineError, match="Failed to dequeue"):
            model.process([image([])])
        for _ in range(2):
            updater.update(config=config)
            assert updater.wait(20)
            sessions.append(model._models.waiting.session)  # type: ignore[union-attr]
            if len(sessions) == 2:
                model.process([image([])])
    for session in sessions:
        if session.run is not failing:
            with pytest.raises(EngineError, match="closed"):
                session.run({"image": np.zeros((1, 3, 16, 16), np.float32)})
    assert sessions[0]._runner is None  # type: ignore[attr-defined]


def failing(inputs: object) -> dict[str, np.ndarray]:
    raise EngineError("told to fail")


def test_models_that_take_tensors_of_the_caller(mean_config: Config) -> None:
    """The original hangs. Source: spec D.8."""
    config = mean_config(input_tensor_from_meta=1)
    with Inferencer.from_config(config) as model:
        updater = ModelUpdater(model)
        for number in range(2):
            batch = Batch.of([image([], number=number)])
            data = np.full((1, 3, 32, 32), 0.5, np.float32)
            batch.tensors.append(InputTensor("image", data, [Roi(0, 0, 0, 32, 32)], [1]))
            model.process(batch)
            assert len(batch.metas[0].objects) == 1
            updater.update(config=config)
            assert updater.wait(20)
        assert updater.errors == []


def test_keys_of_the_element_are_not_read_again(tmp_path: Path) -> None:
    first, second = gain_model(tmp_path / "a", 1), gain_model(tmp_path / "b", 2)
    second.write_text(second.read_text() + "interval=3\noutput-tensor-meta=0\ngie-unique-id=9\n")
    with Inferencer.from_config(first, threads=1) as model:
        updater = ModelUpdater(model)
        updater.update(config=second)
        assert updater.wait(20)
        metas = [model.process([image([], number=i)])[0] for i in range(3)]
        assert model.interval == 0
    values = [float(m.tensors[0]["out"].item()) for m in metas]
    assert values == [pytest.approx(120)] * 3
    assert [m.tensors[0].component_id for m in metas] == [1, 1, 1]
    assert left_keys(model) == ["gie-unique-id", "interval", "output-tensor-meta"]


def left_keys(model: Inferencer) -> object:
    (notice,) = [n for n in model.notices if n.code == "keys-not-taken"]
    return notice.data["keys"]


def test_thresholds_that_an_update_leaves_are_named(mean_config: Config) -> None:
    config = mean_config()
    new = config.with_name("new.txt")
    new.write_text(f"{config.read_text()}\n[class-attrs-all]\npre-cluster-threshold=0.77\n")
    with Inferencer.from_config(config, threads=1) as model:
        assert model.update_model(config=config).wait(20)
        model(np.zeros((32, 32, 3), np.uint8))
        assert "keys-not-taken" not in [n.code for n in model.notices]
        assert model.update_model(config=new).wait(20)
        assert left_keys(model) == ["pre-cluster-threshold"]


class Fleeting:
    """A model that nobody holds, as one that an update has just replaced; its watch looks at it."""

    def __init__(self) -> None:
        self.watch = SimpleNamespace(judge=partial(Fleeting._judge, weakref.proxy(self)))

    def _judge(self, final: bool = False) -> None:
        assert self.watch is not None

    def all_notices(self) -> list[Any]:
        return []


def test_a_model_is_held_while_its_notices_are_read(
    mean_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Inferencer.from_config(mean_config()) as model, monkeypatch.context() as patch:
        patch.setattr(Inferencer, "model", property(lambda _: Fleeting()))
        assert isinstance(model.notices, list)
        model.conclude()
