"""warmup-engine, stabilize-buffer-count and interval through an inferencer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.errors import EngineError
from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.infer.loaded_model import Model
from headrace.infer.model import load_or_build
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.media import ArraySource
from headrace.meta import FrameMeta, InputTensor, Roi
from headrace.pipeline import Pipeline
from tests.infer.scenes import image

Config = Callable[..., Path]


def loaded(config: Path, sizes: list[int], fails: int | None = None) -> Model:
    """A model around its real engine, which notes the size of each run."""
    cfg = ModelConfig.load(config)
    session = load_or_build(cfg, threads=1).open_session(threads=1)
    run = session.run

    def noted(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        sizes.append(len(inputs["image"]))
        if len(sizes) == fails:
            raise EngineError("cold")
        return run(inputs)

    session.run = noted  # type: ignore[method-assign,assignment]
    return Model.around(cfg, session, RunOptions(), Record())


def test_warm_up_runs_every_batch_size_once(mean_config: Config) -> None:
    sizes: list[int] = []
    loaded(mean_config(warmup_engine=1, batch_size=3), sizes).session.close()
    assert sizes == [1, 2, 3]
    sizes.clear()
    loaded(mean_config(batch_size=3), sizes).session.close()
    assert sizes == []


def test_a_warm_up_that_fails_is_told_only(mean_config: Config) -> None:
    sizes: list[int] = []
    model = loaded(mean_config(warmup_engine=1, batch_size=3), sizes, fails=2)
    (told,) = [n for n in model.notices if "warm-up" in n.sentence]
    assert (told.level, sizes) == ("warning", [1, 2])
    assert "batch of 2 failed: cold" in told.sentence
    record = Record()
    with Inferencer(model, record) as inferencer:
        assert inferencer.process([image([])])[0].inferred


@pytest.mark.parametrize("interval", [0, 1])
def test_the_first_buffers_never_come_out_of_a_pipeline(mean_config: Config, interval: int) -> None:
    config = mean_config(stabilize_buffer_count=3, interval=interval)
    metas: list[FrameMeta] = []
    source = ArraySource([np.full((32, 32, 3), 255, np.uint8)] * 7)
    with Inferencer.from_config(config) as model:
        Pipeline([source], [model], on_result=metas.append).run()
    assert [m.frame for m in metas] == [3, 4, 5, 6]
    # dropped buffers are not counted by the interval
    assert [m.inferred for m in metas] == [not i % (interval + 1) for i in range(4)]


def test_frames_of_one_buffer_are_dropped_together(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config(stabilize_buffer_count=1, batch_size=4)) as model:
        frames = [image([], number=i // 2, source=i % 2) for i in range(4)]
        batch = Batch.of(frames)
        batch.buffers[:] = [0, 0, 1, 1]
        model.process(batch)
    assert [(m.frame, m.source_id) for m in batch.metas] == [(1, 0), (1, 1)]
    assert len(batch.frames) == len(batch.buffers) == 2


def test_plain_frames_are_a_buffer_each_time(mean_config: Config) -> None:
    config = mean_config(stabilize_buffer_count=2, interval=1)
    with Inferencer.from_config(config) as model:
        metas = [model.process([image([], number=i)]) for i in range(6)]
    assert [[m.inferred for m in found] for found in metas] == [
        [],
        [],
        [True],
        [False],
        [True],
        [False],
    ]


def test_tensors_of_dropped_frames_are_dropped_too(mean_config: Config) -> None:
    config = mean_config(stabilize_buffer_count=1, input_tensor_from_meta=1)
    frames = [image([], number=i) for i in range(2)]
    batch = Batch.of(frames)
    batch.buffers[:] = [0, 1]
    for place, level in enumerate((0.25, 0.75)):
        data = np.full((1, 3, 32, 32), level, np.float32)
        batch.tensors.append(InputTensor("image", data, [Roi(place, 0, 0, 32, 32)], [1], place))
    with Inferencer.from_config(config) as model:
        model.process(batch)
    (meta,) = batch.metas
    assert meta.frame == 1
    assert [o.confidence for o in meta.objects] == [0.75]


def test_an_inferencer_starts_the_count_again_with_each_pipeline(mean_config: Config) -> None:
    image_ = np.full((32, 32, 3), 255, np.uint8)
    metas: list[FrameMeta] = []
    with Inferencer.from_config(mean_config(interval=2)) as model:
        for _ in range(2):
            Pipeline([ArraySource([image_] * 2)], [model], on_result=metas.append).run()
    assert [m.inferred for m in metas] == [True, False, True, False]


def test_the_interval_can_change_while_running(mean_config: Config) -> None:
    inferred = []
    with Inferencer.from_config(mean_config(interval=3)) as model:
        for number in range(8):
            if number == 5:
                model.interval = 0
            (meta,) = model.process([image([], number=number)])
            inferred.append(meta.inferred)
    assert inferred == [True, False, False, False, True, True, True, True]
