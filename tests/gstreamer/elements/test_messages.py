"""nvmsgconv makes payloads of event messages and of objects; nvmsgbroker sends them."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.custom.converter.built import library
from tests.gstreamer.conftest import Run, video
from tests.gstreamer.elements.test_elements_pipelines import SIZE, tree, walk
from tests.media.messages.test_stream_brokers import redis_port

__all__ = ["redis_port"]

CONFIG = "[sensor0]\nid=CAM_1\n[place0]\nid=1\nplace-sub-field1=walsh\n[analytics0]\nid=XYZ\n"


def attached(buffer: Any) -> None:
    """Attach an event message as the published sample does."""
    from headrace.gstreamer import pyds

    batch = tree(buffer)
    (frame,) = walk(batch.frame_meta_list)
    user = pyds.nvds_acquire_user_meta_from_pool(batch)
    event = pyds.alloc_nvds_event_msg_meta(user)
    event.bbox.left, event.bbox.top, event.bbox.width, event.bbox.height = 1.5, 2.5, 3.0, 4.0
    event.frameId, event.trackingId, event.confidence = frame.frame_num, (1 << 64) - 1, 0.25
    event.ts = pyds.alloc_buffer(33)
    pyds.generate_ts_rfc3339(event.ts, 32)
    event.type = pyds.NvDsEventType.NVDS_EVENT_MOVING
    event.objType = pyds.NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE
    vehicle = pyds.alloc_nvds_vehicle_object()
    vehicle.type, vehicle.color, vehicle.region = "sedan", "blue", "CA"
    event.extMsg, event.extMsgSize = vehicle, 48
    user.user_meta_data = event
    user.base_meta.meta_type = pyds.NVDS_EVENT_MSG_META
    pyds.nvds_add_user_meta_to_frame(frame, user)


def made(buffer: Any) -> list[dict[str, Any]]:
    """The payloads of a batch."""
    from headrace.gstreamer import pyds

    found = []
    for user in walk(tree(buffer).batch_user_meta_list):
        assert user.base_meta.meta_type == pyds.NVDS_PAYLOAD_META
        payload = pyds.NvDsPayload.cast(user.user_meta_data)
        found.append(json.loads(ctypes.string_at(payload.payload, payload.payloadSize)))
    return found


def head(frames: int) -> str:
    return video(frames) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! "


def test_event_messages_become_full_payloads(play: Run, tmp_path: Path) -> None:
    (tmp_path / "conv.txt").write_text(CONFIG)
    (tmp_path / "copies").mkdir()
    ran = play(
        head(2) + f"nvmsgconv name=conv config={tmp_path}/conv.txt "
        f"debug-payload-dir={tmp_path}/copies ! fakesink name=end",
        conv=attached,
        end=made,
    )
    assert not ran.errors
    (message,) = ran.seen["end"][0]
    assert list(message) == [
        "messageid", "mdsversion", "@timestamp", "place", "sensor", "analyticsModule", "object",
        "event", "videoPath",
    ]  # fmt: skip
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", message["@timestamp"])
    assert message["place"]["aisle"]["id"] == "walsh"
    assert (message["sensor"]["id"], message["event"]["type"]) == ("CAM_1", "moving")
    found = message["object"]
    assert found["id"] == str((1 << 64) - 1)
    assert found["bbox"] == {
        "topleftx": 1, "toplefty": 2, "bottomrightx": 4, "bottomrighty": 6
    }  # fmt: skip
    assert found["vehicle"] == {
        "type": "sedan", "make": "", "model": "", "color": "blue", "licenseState": "CA",
        "license": "", "confidence": 0.25,
    }  # fmt: skip
    copies = sorted((tmp_path / "copies").iterdir())
    assert len(copies) == len(ran.seen["end"])
    assert json.loads(copies[0].read_text()) == message


def test_event_messages_become_minimal_payloads(play: Run) -> None:
    ran = play(head(2) + "nvmsgconv name=c payload-type=1 ! fakesink name=e", c=attached, e=made)
    (message,) = ran.seen["e"][0]
    row = f"{(1 << 64) - 1}|1.5|2.5|4.5|6.5|Vehicle|#|sedan|||blue||CA|0.25"
    assert (message["sensorId"], message["objects"]) == ("0", [row])


def test_a_library_makes_the_payloads(
    play: Run, detector: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def texts(buffer: Any) -> list[str]:
        users = [u.user_meta_data for u in walk(tree(buffer).batch_user_meta_list)]
        return [ctypes.string_at(p.payload, p.payloadSize).decode() for p in users]

    own = library(tmp_path_factory)
    ran = play(
        head(2) + f"nvinfer config-file-path={detector} ! nvmsgconv msg2p-lib={own} "
        "payload-type=257 msg2p-newapi=1 frame-interval=1 ! fakesink name=e",
        e=texts,
    )
    assert ran.errors == []
    assert ran.seen["e"][0]
    assert all(re.match(r"object 0 \w+ \d", text) for text in ran.seen["e"][0])
    ran = play(head(2) + f"nvmsgconv name=c msg2p-lib={own} ! fakesink name=e", c=attached, e=texts)
    (event,) = ran.seen["e"][0]
    assert event.startswith("events 0|")


@pytest.mark.parametrize(
    ("keys", "count"), [("", 0), ("dummy-payload=1", 1), ("payload-type=1", 1)]
)
def test_a_frame_without_objects_has_a_full_payload_on_request_alone(
    play: Run, keys: str, count: int
) -> None:
    ran = play(
        head(2) + f"nvmsgconv msg2p-newapi=1 frame-interval=1 {keys} ! fakesink name=end", end=made
    )
    assert {len(batch) for batch in ran.seen["end"]} == {count}


def counted(buffer: Any) -> None:
    """Attach an event message, and counts as nvdsanalytics does."""
    from headrace.gstreamer import pyds
    from headrace.gstreamer.pyds.analytics import NvDsAnalyticsFrameMeta

    attached(buffer)
    batch = tree(buffer)
    (frame,) = walk(batch.frame_meta_list)
    user, counts = pyds.nvds_acquire_user_meta_from_pool(batch), NvDsAnalyticsFrameMeta()
    counts.objInROIcnt, counts.objLCCumCnt = {"OC": 2}, {"Entry": 3}
    user.user_meta_data = counts
    user.base_meta.meta_type = pyds.NvDsMetaType.NVDS_FRAME_META_NVDSANALYTICS
    pyds.nvds_add_user_meta_to_frame(frame, user)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("newapi", [0, 1])
def test_counts_of_lines_and_crowds_are_in_both_payloads(
    play: Run, detector: Path, kind: int, newapi: int
) -> None:
    ran = play(
        head(2) + f"nvinfer config-file-path={detector} ! nvmsgconv name=c payload-type={kind} "
        f"msg2p-newapi={newapi} frame-interval=1 ! fakesink name=e",
        c=counted,
        e=made,
    )
    assert not ran.errors
    messages = [m for batch in ran.seen["e"] for m in batch]
    assert messages
    for message in messages:
        assert message["analytics"] == {"inside": {"OC": 2}, "crossed_total": {"Entry": 3}}


def test_objects_become_payloads_and_reach_a_broker(
    play: Run, detector: Path, tmp_path: Path, redis_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis = pytest.importorskip("redis")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ran = play(
        head(8) + f"nvinfer config-file-path={detector} ! "
        "nvmsgconv payload-type=1 msg2p-newapi=1 frame-interval=3 ! "
        "nvmsgbroker name=end proto-lib=/nowhere/libnvds_redis_proto.so "
        f"conn-str=127.0.0.1;{redis_port} topic=cars sync=0",
        end=made,
    )
    assert not ran.errors + ran.warnings
    sent = [m for batch in ran.seen["end"] for m in batch]
    assert [m["id"] for m in sent[:2]] == ["0", "3"]
    reader = redis.Redis("127.0.0.1", redis_port)
    assert [json.loads(f[b"metadata"]) for _, f in reader.xrange("cars")] == sent
    reader.close()


@pytest.mark.parametrize(
    ("rest", "error"),
    [
        ("", "proto-lib is not set"),
        ("proto-lib=libother.so", "no known adaptor"),
        ("proto-lib=libnvds_kafka_proto.so conn-str=h;9092", "topic is missing"),
    ],
)
def test_a_broker_that_is_not_named_is_an_error(play: Run, rest: str, error: str) -> None:
    ran = play(f"videotestsrc num-buffers=1 ! nvmsgbroker {rest}")
    assert error in ran.errors[0]


def test_a_release_function_is_called_once() -> None:
    from headrace.gstreamer import pyds

    batch, gone = pyds.NvDsBatchMeta(), []
    user = pyds.nvds_acquire_user_meta_from_pool(batch)
    user.user_meta_data = "mine"
    pyds.user_releasefunc(user, lambda meta, _: gone.append(meta.user_meta_data))
    pyds.user_copyfunc(user, lambda meta, _: meta)
    del user
    assert gone == ["mine"]
