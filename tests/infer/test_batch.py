"""What travels from stage to stage."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.infer.batch import Batch
from headrace.media import Frame
from headrace.meta import InputTensor, Roi


def frames(*ids: tuple[int, int]) -> list[Frame]:
    image = np.zeros((4, 6, 3), np.uint8)
    return [Frame.from_array(image, frame=n, source=f"s{i}", source_id=i) for i, n in ids]


def test_a_batch_of_frames_has_metadata_of_each() -> None:
    batch = Batch.of(frames((0, 3), (1, 7)), buffer=5)
    assert [(m.source, m.source_id, m.frame) for m in batch.metas] == [("s0", 0, 3), ("s1", 1, 7)]
    assert [(m.width, m.height, m.inferred) for m in batch.metas] == [(6, 4, False)] * 2
    assert batch.buffers == [5, 5]
    assert [(f.frame, m.frame) for f, m in batch] == [(3, 3), (7, 7)]
    assert repr(batch) == "Batch(2 frames of 2 sources)"


def test_buffers_are_told_apart() -> None:
    batch = Batch.of(frames((0, 0), (1, 0), (0, 1), (0, 2)))
    batch.buffers = [4, 4, 5, 7]
    assert list(batch.by_buffer()) == [(4, [0, 1]), (5, [2]), (7, [3])]
    assert list(Batch.of([]).by_buffer()) == []


def test_parts_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 frames, 1 metas and 2 buffer"):
        Batch(frames((0, 0), (0, 1)), Batch.of(frames((0, 0))).metas, [0, 0])


def test_tensors_go_with_the_frames_they_show() -> None:
    batch = Batch.of(frames((0, 0), (1, 0), (2, 0)))
    for place in range(3):
        roi = Roi(place, 0, 0, 6, 4)
        batch.tensors.append(InputTensor("x", np.zeros((1, 2)), [roi], [1], meta_id=place))
    batch.drop([1])
    assert [m.source for m in batch.metas] == ["s0", "s2"]
    assert [(t.meta_id, t.rois[0].frame_index) for t in batch.tensors] == [(0, 0), (2, 1)]
