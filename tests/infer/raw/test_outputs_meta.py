"""output-tensor-meta: raw outputs on frames and objects, and how long they live."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.infer.inferencer import Inferencer
from tests.infer.scenes import batch_of, classifier, image

Config = Callable[..., Path]
RED, GREEN = ("red", (10, 10, 40, 40)), ("green", (60, 10, 40, 40))


def test_frames_carry_their_own_row(mean_config: Config) -> None:
    config = mean_config(output_tensor_meta=1, batch_size=2, maintain_aspect_ratio=1)
    with Inferencer.from_config(config) as model:
        frames = [image([(c, (0, 0, 160, 120))]) for c in ("red", "green", "blue")]
        metas = model.process(frames)
    found = [meta.tensors[0] for meta in metas]
    rows = np.stack([t["mean"] for t in found])
    np.testing.assert_allclose(rows, np.eye(3) * 0.75, atol=1e-4)  # a quarter is padding
    assert [t.batch_index for t in found] == [0, 1, 0]
    assert [(t.component_id, t.network.width, t.maintain_aspect_ratio) for t in found] == [
        (1, 32, True)
    ] * 3
    assert not found[0].symmetric_padding
    assert [len(t.batch["mean"]) for t in found] == [2, 2, 1]
    assert found[1].address("mean") - found[0].address("mean") == 3 * 4
    with pytest.raises(KeyError, match="no output 'max'; there are mean"):
        found[0]["max"]


def test_results_come_before_tensors_and_both_are_there(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config(output_tensor_meta=1)) as model:
        (meta,) = model.process([image([("red", (0, 0, 160, 120))])])
    assert len(meta.objects) == len(meta.tensors) == 1


def test_objects_carry_theirs(mean_config: Config) -> None:
    config = classifier(mean_config, output_tensor_meta=1)
    batch = batch_of([[RED, GREEN]])
    with Inferencer.from_config(config) as model:
        model.process(batch)
    (meta,) = batch.metas
    assert meta.tensors == []
    rows = np.stack([o.tensors[0]["mean"] for o in meta.objects])
    np.testing.assert_allclose(rows, np.eye(3)[:2], atol=1e-4)


def test_objects_of_type_100_get_nothing_else(mean_config: Config) -> None:
    config = classifier(
        mean_config, network_type=100, classifier_threshold=None, output_tensor_meta=1
    )
    batch = batch_of([[RED]])
    with Inferencer.from_config(config) as model:
        model.process(batch)
    (meta,) = batch.metas
    assert [len(o.tensors) for o in meta.objects] == [1]
    assert (meta.inferred, meta.objects[0].display_text) == (False, "thing")


def test_an_asynchronous_classifier_attaches_none(mean_config: Config) -> None:
    config = classifier(mean_config, classifier_async_mode=1, output_tensor_meta=1)
    with Inferencer.from_config(config) as model:
        batch = batch_of([[RED]], ids=[1])
        model.process(batch)
    assert batch.metas[0].objects[0].tensors == ()


def test_outputs_live_as_long_as_somebody_holds_them(mean_config: Config) -> None:
    config = mean_config(output_tensor_meta=1, tensor_meta_pool_size=2)
    with Inferencer.from_config(config) as model:
        held = [model.process([image([], number=i)])[0].tensors[0] for i in range(20)]
        assert len({t.address("mean") for t in held}) == 20
        value = float(held[0]["mean"][0])
        gone = weakref.ref(held[0].batch["mean"])
        del held
        gc.collect()
        assert gone() is None
    assert value == pytest.approx(60 / 255, abs=1e-4)
