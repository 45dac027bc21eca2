"""What must hold whatever is in the frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.meta import UNTRACKED_OBJECT_ID, FrameMeta
from headrace.pipeline.track import open_tracker
from tests.pipeline.track.scenes import ALL, IMAGE, meta
from tests.profiles import examples

# few places and sizes: objects come back, overlap by equal amounts, and stand on each other
OBJECT = st.tuples(
    st.sampled_from([0, 8, 16, 40, 60]),
    st.sampled_from([0, 8, 40]),
    st.sampled_from([20, 30]),
    st.sampled_from([20, 30]),
    st.integers(0, 1),
    st.sampled_from([0.5, 0.9]),
)
FRAMES = st.lists(st.one_of(st.none(), st.lists(OBJECT, max_size=7)), min_size=1, max_size=12)


def frame(number: int, objects: list[tuple[float, ...]] | None, source_id: int = 0) -> FrameMeta:
    table = np.reshape(objects or [], (-1, 6))
    return meta(
        number,
        table[:, :4],
        classes=table[:, 4].astype(int),
        scores=table[:, 5],
        source_id=source_id,
        inferred=objects is not None,
    )


def named(m: FrameMeta) -> list[tuple[float, ...]]:
    """Every object with its id, in an order of their own."""
    o = m.objects
    return sorted(
        (*rect, class_id, score, name)
        for rect, class_id, score, name in zip(
            o.rects.tolist(),
            o.class_ids.tolist(),
            o.confidences.tolist(),
            o.object_ids.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("spec", [*ALL, "iou:max_tracks=4", "iou:max_new_iou=1"])
@settings(max_examples=examples(25))
@given(frames=FRAMES, seed=st.integers(0, 2**16))
def test_the_order_of_objects_does_not_matter(
    spec: str, frames: list[list[tuple[float, ...]] | None], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    plain, shuffled = open_tracker(spec), open_tracker(spec)
    for number, objects in enumerate(frames):
        a = frame(number, objects)
        mixed = None if objects is None else [objects[i] for i in rng.permutation(len(objects))]
        b = frame(number, mixed)
        plain.update(IMAGE, a)
        shuffled.update(IMAGE, b)
        assert named(a) == named(b)


@pytest.mark.parametrize("spec", ALL)
@settings(max_examples=examples(25))
@given(frames=FRAMES, ends=st.sets(st.integers(0, 11)))
def test_an_id_is_one_object_of_one_source_and_never_comes_again(
    spec: str, frames: list[list[tuple[float, ...]] | None], ends: set[int]
) -> None:
    tracker = open_tracker(spec)
    owner: dict[int, tuple[int, int, int]] = {}
    stream = [0, 0]
    highest = 0
    for number, objects in enumerate(frames):
        for source in (0, 1):
            m = frame(number, objects, source)
            tracker.update(IMAGE, m)
            o = m.objects
            tracked = o.object_ids != UNTRACKED_OBJECT_ID
            names = o.object_ids[tracked].tolist()
            assert len(set(names)) == len(names)
            for name, class_id in zip(names, o.class_ids[tracked].tolist(), strict=True):
                mine = (source, stream[source], class_id)
                assert owner.setdefault(name, mine) == mine
            new = sorted(i for i in names if i > highest)
            assert new == list(range(highest + 1, highest + 1 + len(new)))  # none is left out
            highest += len(new)
            assert o.tracker_confidences is not None
            assert ((o.tracker_confidences > 0) == tracked).all()
            if number in ends and source == 0:
                tracker.end_of_stream(0)
                stream[0] += 1
