"""Objects that nothing can be cropped from, very many objects, and models in a chain."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from headrace.infer.batch import Batch
from headrace.infer.geometry import croppable
from headrace.infer.inferencer import Inferencer
from headrace.media import open_sink
from headrace.media.draw import Painter
from headrace.meta import Detections, Space
from headrace.pipeline.track import open_tracker
from tests.infer.scenes import classifier, image

Config = Callable[..., Path]

NAN, INF = float("nan"), float("inf")
ABSURD = [
    (NAN, NAN, NAN, NAN),
    (INF, INF, INF, INF),
    (-INF, 0, 10, 10),
    (0, 0, NAN, NAN),
    (0, 0, INF, INF),
    (-1e30, -1e30, 2e30, 2e30),
    (1e30, 0, 10, 10),
    (2.0**31, 0, 10, 10),
    (-(2.0**31), 0, 2.0**31, 10),
    (2147483000, 0, 1000, 10),
    (-3e9, 0, 6e9, 10),
    (0, 0, 0, 0),
    (9, 9, -5, -5),
    (5, 5, 1e-38, 1e-38),
    (0, 0, 0.5, 0.5),
    (160, 120, 10, 10),
    (159, 119, 1, 1),
    (-50, -50, 20, 20),
    (-10, -10, 20, 20),
    (10, 10, 1e9, 1e9),
    (-1e6, -1e6, 2e6, 2e6),
    (0, 0, 160, 120),
]


@pytest.fixture
def chain(mean_config: Config) -> Iterator[list[Inferencer]]:
    """A detector in crops, a classifier of all objects, and one of the detector's finds."""
    made = []

    def keep(path: Path, name: str) -> Path:
        return path.rename(path.with_name(name))

    detector = {"process_mode": 2, "gie_unique_id": 3, "operate_on_gie_id": 1, "batch_size": 16}
    made.append(keep(mean_config(**detector), "detector.txt"))
    for number, on in ((2, -1), (4, 3)):
        keys = {"gie_unique_id": number, "operate_on_gie_id": on, "classifier_threshold": 0.01}
        path = classifier(mean_config, labelfile_path="colors.txt", batch_size=16, **keys)
        path.with_name("colors.txt").write_text("red;green;blue\n")
        made.append(keep(path, f"classifier{number}.txt"))
    models = [Inferencer.from_config(path) for path in made]
    yield models
    for model in models:
        model.close()


def batch(boxes: np.ndarray, number: int) -> Batch:
    made = Batch.of([image([], number=number)], buffer=number)
    count = len(boxes)
    found = Detections.unchecked(
        boxes.copy(), np.ones(count, np.float32), np.zeros(count, np.int32), space=Space.FRAME
    )
    made.metas[0].objects.append(found, 1, labels=["thing"])
    return made


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tracker", [None, "iou"])
def test_absurd_boxes_go_through_every_model_and_sink(
    chain: list[Inferencer], tracker: str | None, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    wild = rng.standard_normal((300, 4)) * 10.0 ** rng.integers(-3, 12, (300, 4))
    boxes = np.concatenate([np.array(ABSURD), wild]).astype(np.float32)
    cropped = croppable(boxes, 160, 120)
    assert 5 < cropped.sum() < len(boxes)
    outs = ("jsonl:o.jsonl", "coco:o.json", "kitti:k", "kitti-track:t", "o.mp4", "images:i")
    sinks = []
    for out in outs:
        kind, _, name = out.rpartition(":")
        sinks.append(open_sink(f"{kind}:{tmp_path / name}" if kind else str(tmp_path / name)))
    follow = open_tracker(tracker) if tracker else None
    painter = Painter()
    for number in range(4):
        made = batch(boxes, number)
        (frame,), (meta,) = made.frames, made.metas
        if follow is not None:
            follow.update(frame, meta)
        for model in chain:
            model.process(made)
        objects = meta.objects
        parents = objects.parents[len(boxes) :]
        assert (objects.component_ids[: len(boxes)] == 1).all()
        assert cropped[parents].all()
        if follow is None:
            assert sorted(i for i in objects.classifiers if i < len(boxes)) == list(
                np.flatnonzero(cropped)
            )
        drawn = painter.draw(frame, meta)
        for sink in sinks:
            sink.write(drawn if sink.needs_pixels else frame, meta)
        repr(list(objects))
    for sink in sinks:
        sink.close()
    for model in chain:
        assert model.failed_items == 0
        assert sum("leaves nothing to crop" in n.sentence for n in model.notices) <= 1

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    for line in (tmp_path / "o.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    json.loads((tmp_path / "o.json").read_text(), parse_constant=refuse)


@pytest.mark.slow
def test_five_thousand_objects_through_a_chain_keep_their_parents(
    chain: list[Inferencer],
) -> None:
    rng = np.random.default_rng(2)
    corners = rng.uniform(0, (120, 90), (5000, 2))
    boxes = np.hstack([corners, rng.uniform(6, 30, (5000, 2))]).astype(np.float32)
    made = batch(boxes, 0)
    for model in chain:
        model.process(made)
    objects = made.metas[0].objects
    assert [m.inferred_items for m in chain] == [5000, 10_000, 5000]
    assert objects.parents.tolist() == [-1] * 5000 + list(range(5000))
    # the image is grey: a child has half the size of its parent, and both have a colour
    np.testing.assert_allclose(objects.rects[5000:, 2:], boxes[:, 2:] / 2, atol=1)
    assert [len(objects.classifiers[i]) for i in (0, 4999, 5000, 9999)] == [1, 1, 2, 2]
    assert {m.component_id for m in objects.classifiers[7000]} == {2, 4}
