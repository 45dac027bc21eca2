"""Input tensors that are used again: whose bars are left alone, and when they are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.inferencer import Inferencer
from headrace.infer.input_room import InputRoom
from headrace.media import Frame

SHAPE = (1, 3, 8, 8)


def places(count: int) -> list[np.ndarray]:
    return [np.zeros((1, 4), np.int32) for _ in range(count)]


def test_a_tensor_has_its_bars_for_the_same_places_alone() -> None:
    room, some = InputRoom(), places(1)
    array, filled = room.take(SHAPE, some)
    assert not filled
    address = array.ctypes.data
    room.give(array, some)
    del array
    array, filled = room.take(SHAPE, some)
    assert filled
    assert array.ctypes.data == address
    room.give(array, some)
    del array
    assert not room.take(SHAPE, places(1))[1]
    room.give(np.empty(SHAPE, np.float32), some)
    array, filled = room.take((2, *SHAPE[1:]), places(2))
    assert array.shape[0] == 2
    assert not filled


def test_a_tensor_that_somebody_keeps_is_not_given_again() -> None:
    room, some = InputRoom(), places(1)
    array, _ = room.take(SHAPE, some)
    view = array[0]
    room.give(array, some)
    del array
    array, filled = room.take(SHAPE, some)
    assert not filled
    assert not np.shares_memory(array, view)


def test_inputs_of_frames_of_changing_sizes_are_those_of_new_tensors(
    mean_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    sizes = [(64, 32), (64, 32), (20, 60), (64, 32), (64, 32), (64, 32), (40, 40)]
    frames = [
        Frame.from_array(rng.integers(0, 256, (high, wide, 3), np.uint8)) for wide, high in sizes
    ]
    given: list[np.ndarray] = []
    filled: list[bool] = []
    with Inferencer.from_config(
        mean_config(maintain_aspect_ratio=1, batch_size=1, offsets="9;8;7"), profile="modern"
    ) as model:
        model.model.watch = None  # which keeps inputs
        run = model.session.run

        def seen(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            (tensor,) = inputs.values()
            given.append(tensor.copy())
            return run(inputs)

        pre = model.model.preprocessor
        assert pre is not None
        write = pre.write

        def noted(*args: Any, **keys: Any) -> None:
            filled.append(keys["filled"])
            write(*args, **keys)

        monkeypatch.setattr(model.session, "run", seen)
        monkeypatch.setattr(pre, "write", noted)
        model.process(frames)
        monkeypatch.undo()
        assert filled == [False, True, False, False, True, True, False]
        for frame, tensor in zip(frames, given, strict=True):
            whole = pre.empty(1)
            pre(frame, whole[0])
            np.testing.assert_array_equal(tensor, whole)
