"""Frames of videos in queues, and the other helpers of `pyservicemaker` for applications."""

from __future__ import annotations

import logging
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest

from headrace.errors import ConfigError
from tests.gstreamer.conftest import SCENE

SECOND = 1_000_000_000
CLIP = str(SCENE / "conveyor.mp4")
SIZE = (160, 96)


def _times(queue: Queue[Any]) -> list[float]:
    times = []
    while (frame := queue.get(timeout=30)) is not None:
        assert frame.tensor.shape == (SIZE[1], SIZE[0], 3)
        times.append(frame.timestamp / SECOND)
    return times


@pytest.mark.slow
@pytest.mark.parametrize("enable_seek", [True, False])
@pytest.mark.sampled
def test_parts_of_a_video_come_as_they_were_asked_for(gst: Any, enable_seek: bool) -> None:
    from headrace.gstreamer.servicemaker.utils import MediaChunk, MediaExtractor

    chunks = [
        MediaChunk(CLIP),
        MediaChunk(CLIP, 5 * SECOND, 2 * SECOND),
        MediaChunk(CLIP, duration=4 * SECOND, interval=SECOND),
        MediaChunk(CLIP, 1 * SECOND, -1, 3 * SECOND),
    ]
    options = {"scaling": SIZE, "n_thread": 2, "q_size": 4, "blocking": True}
    with MediaExtractor(chunks, enable_seek=enable_seek, **options) as extractor:
        whole, part, seconds, sparse = map(_times, extractor())
    assert len(whole) == 250
    assert np.allclose(np.diff(whole), 0.04)
    assert (len(part), part[0], part[-1]) == (50, 5.0, 6.96)
    assert np.allclose(seconds, range(4), atol=0.04)
    assert np.allclose(sparse, [1, 4, 7], atol=0.04)


@pytest.mark.slow
def test_a_full_queue_drops_frames_and_never_the_end(gst: Any) -> None:
    from headrace.gstreamer.servicemaker.utils import MediaChunk, MediaExtractor

    with MediaExtractor([MediaChunk(CLIP)], scaling=SIZE, q_size=2) as extractor:
        (queue,) = extractor()
        extractor._threads[0].join(timeout=0.5)
        assert 1 <= len(_times(queue)) < 250


def test_parts_are_added_while_it_runs(gst: Any) -> None:
    from headrace.gstreamer.servicemaker.utils import MediaChunk, MediaExtractor

    with MediaExtractor(scaling=SIZE, q_size=50) as extractor:
        assert extractor() == []
        queues = [extractor.append(MediaChunk(CLIP, n * SECOND, SECOND // 2)) for n in (0, 2)]
        assert [round(_times(queue)[0], 2) for queue in queues] == [0.0, 2.0]
    with pytest.raises(ConfigError, match="takes no more"):
        MediaExtractor([]).append(MediaChunk(CLIP))


def test_a_video_that_is_not_there_ends_its_queue_alone(
    gst: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from headrace.gstreamer.servicemaker.utils import MediaChunk, MediaExtractor

    absent = str(tmp_path / "absent.mp4")
    chunks = [MediaChunk(absent), MediaChunk(CLIP, 0, SECOND)]
    with MediaExtractor(chunks, scaling=SIZE, q_size=50) as extractor:
        assert [len(_times(queue)) for queue in extractor()] == [0, 25]
    assert absent in capfd.readouterr().err


def test_numbers_that_do_not_fit_are_refused(gst: Any) -> None:
    from headrace.gstreamer.servicemaker.utils import MediaExtractor

    for options in ({"q_size": 0}, {"n_thread": 0}, {"scaling": (0, 2)}, {"batch_size": -1}):
        with pytest.raises(ConfigError, match="positive numbers"):
            MediaExtractor([], **options)


def test_loggers_write_to_stderr_from_their_level_on(
    gst: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from headrace.gstreamer.servicemaker.logging import get_logger

    logger = get_logger("parcels")
    assert get_logger("parcels") is logger
    logger.debug("unseen")
    logger.setLevel("DEBUG")
    logger.debug("a belt")
    assert logger.level == logging.DEBUG
    text = capsys.readouterr().err
    assert "DEBUG pyservicemaker.parcels: a belt" in text
    assert "unseen" not in text


def test_converters_are_postprocessors(gst: Any) -> None:
    from headrace.gstreamer.servicemaker import postprocessing

    for kind in ("ObjectDetectorOutputConverter", "ObjectClassifierOutputConverter"):
        assert issubclass(getattr(postprocessing, kind), postprocessing.PostProcessing)
    with pytest.raises(TypeError, match="abstract"):
        postprocessing.PostProcessing()
