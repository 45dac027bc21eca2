"""The frames on which set-ups are tried are those of a video in which something is to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace import open_sink
from headrace._core.errors import MediaError
from headrace.media import ArraySource
from headrace.media.frame_choice import frames_for_trials
from headrace.meta import FrameMeta


def _images(busy: range) -> Iterator[np.ndarray]:
    """Grey images; in those of `busy` a white square moves."""
    for number in range(40):
        image = np.full((64, 96, 3), 90, np.uint8)
        if number in busy:
            image[20:44, number : number + 24] = 255
        yield image


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / "video.mp4"
    with open_sink(str(path)) as sink:
        for number, image in enumerate(_images(range(24, 30))):
            frame = next(iter(ArraySource([image])))
            sink.write(frame, FrameMeta("video", 0, number, number * 40_000_000, 96, 64))
    return path


def test_of_a_video_pairs_with_objects_are_taken(video: Path) -> None:
    frames, moving = frames_for_trials(str(video), 4)
    numbers = [frame.frame for frame in frames]
    assert moving
    assert len(numbers) == 4
    assert numbers[1] == numbers[0] + 1
    assert numbers[3] == numbers[2] + 1
    assert numbers[1] < 20 <= numbers[2]
    assert 23 < numbers[2] < 30


def test_frames_of_true_boxes_are_taken_besides(video: Path) -> None:
    frames, _ = frames_for_trials(str(video), 2, [3, 39])
    assert {3, 39} <= {frame.frame for frame in frames}
    with pytest.raises(MediaError, match="no frame 40"):
        frames_for_trials(str(video), 2, [40])


@pytest.mark.parametrize(("count", "numbers"), [(1, [0]), (2, [0, 8]), (3, [0, 4, 8]), (20, None)])
def test_of_a_folder_frames_are_spread(
    tmp_path: Path, count: int, numbers: list[int] | None
) -> None:
    for number in range(9):
        Image.new("RGB", (32, 32), (number, 0, 0)).save(tmp_path / f"{number}.png")
    frames, moving = frames_for_trials(str(tmp_path), count)
    assert not moving
    assert [frame.frame for frame in frames] == (numbers or list(range(9)))


def test_a_source_without_frames_is_refused() -> None:
    with pytest.raises(MediaError, match="no frame"):
        frames_for_trials(ArraySource([]), 4)
