"""Past frames: boxes from before the first report of an object, and across its gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer import pyds
from headrace.gstreamer.elements.past_frames import PastFrames, Rect, Tracked
from tests.gstreamer.conftest import Run, video


def _seen(number: int, left: float) -> Tracked:
    return Tracked(number, 2, "parcel", _box(left), 0.8)


def _box(left: float) -> Rect:
    return (left, 10.0, 40.0, 20.0)


def _frames(stream: Any) -> list[tuple[int, float, int]]:
    (obj,) = stream.list()
    assert (obj.classId, obj.objLabel) == (2, "parcel")
    return [(one.frameNum, one.tBbox.left, one.age) for one in obj.list()]


def test_boxes_from_before_the_first_report_come_with_it() -> None:
    past = PastFrames()
    assert past.update(0, 0, [], [_box(0), _box(300)]) is None
    assert past.update(0, 1, [], [_box(5)]) is None
    stream = past.update(0, 2, [_seen(7, 10)], [])
    assert stream is not None
    assert _frames(stream) == [(0, 0.0, 0), (1, 5.0, 1)]
    assert past.update(0, 3, [_seen(7, 15)], []) is None


def test_a_gap_is_filled_on_the_straight_way() -> None:
    past = PastFrames()
    past.update(1, 10, [_seen(3, 0)], [])
    stream = past.update(1, 14, [_seen(3, 40)], [])
    assert stream is not None
    assert stream.streamID == 1
    assert _frames(stream) == [(11, 10.0, 1), (12, 20.0, 2), (13, 30.0, 3)]


def test_boxes_elsewhere_and_of_other_sources_are_no_past() -> None:
    past = PastFrames()
    past.update(0, 0, [], [_box(300)])
    past.update(1, 0, [], [_box(0)])
    assert past.update(0, 1, [_seen(1, 5)], []) is None
    past.update(1, 1, [], [])
    assert past.update(1, 2, [_seen(1, 5)], []) is None, "the frame between shows nothing"


def test_a_source_that_ended_is_forgotten() -> None:
    past = PastFrames()
    past.update(0, 5, [_seen(1, 0)], [])
    past.forget(0)
    assert past.update(0, 9, [_seen(1, 0)], []) is None


@pytest.mark.slow
def test_a_tracker_attaches_them_to_the_batch(play: Run, detector: Path, tmp_path: Path) -> None:
    config = tmp_path / "tracker.yml"
    config.write_text("TargetManagement:\n  probationAge: 3\n  maxShadowTrackingAge: 20\n")

    def look(buffer: Any) -> list[tuple[int, int, int]]:
        batch = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
        node, found = batch.batch_user_meta_list, []
        now = batch.frame_meta_list.data.frame_num
        while node is not None:
            user = pyds.NvDsUserMeta.cast(node.data)
            if user.base_meta.meta_type == pyds.NvDsMetaType.NVDS_TRACKER_PAST_FRAME_META:
                data = pyds.NvDsTargetMiscDataBatch.cast(user.user_meta_data)
                for stream in pyds.NvDsTargetMiscDataBatch.list(data):
                    for obj in pyds.NvDsTargetMiscDataStream.list(stream):
                        for frame in pyds.NvDsTargetMiscDataObject.list(obj):
                            found.append((now, frame.frameNum, obj.uniqueId))
            node = node.next
        return found

    ran = play(
        f"{video(80)} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={detector} ! nvtracker ll-config-file={config} ! "
        "fakesink name=s",
        s=look,
    )
    assert ran.errors == []
    past = [one for found in ran.seen["s"] for one in found]
    assert past
    assert all(frame < now for now, frame, _ in past)
