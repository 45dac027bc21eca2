"""Functions of pyds that need a pipeline which runs."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.gstreamer import pyds
from tests.gstreamer.conftest import Run, video

MUX = "m.sink_0 nvstreammux name=m batch-size=1 width=320 height=192"


def test_an_image_by_its_address_is_the_image(play: Run) -> None:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

    def look(buffer: Any) -> tuple[bool, tuple[int, ...]]:
        kind, shape, strides, capsule, size = pyds.get_nvds_buf_surface_gpu(hash(buffer), 0)
        assert (kind, strides, size) == (np.uint8, (320 * 4, 4, 1), 320 * 192 * 4)
        raw = (ctypes.c_uint8 * size).from_address(get(capsule, None))
        values = np.ctypeslib.as_array(raw).reshape(shape)
        values[0, 0] = 1, 2, 3, 4
        image = pyds.get_nvds_buf_surface(hash(buffer), 0)
        pyds.unmap_nvds_buf_surface(hash(buffer), 0)
        return bool((image == values).all()), tuple(image[0, 0])

    ran = play(f"{video(2)} ! {MUX} ! fakesink name=s", s=look)
    assert ran.errors == []
    assert set(ran.seen["s"]) == {(True, (1, 2, 3, 4))}


def test_metadata_is_locked_and_latency_is_not_measured(play: Run) -> None:
    def look(buffer: Any) -> int:
        batch = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
        pyds.nvds_acquire_meta_lock(batch)
        pyds.nvds_release_meta_lock(batch)
        return pyds.nvds_measure_buffer_latency(hash(buffer))

    ran = play(f"{video(2)} ! {MUX} ! fakesink name=s", s=look)
    assert (ran.errors, set(ran.seen["s"])) == ([], {0})


def test_an_event_sets_the_interval_of_a_model_that_runs(
    play: Run, gst: Any, detector: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[bool, int]] = []
    pipelines: list[Any] = []
    launch = gst.parse_launch
    monkeypatch.setattr(
        gst, "parse_launch", lambda text: pipelines.append(launch(text)) or pipelines[-1]
    )

    def send(buffer: Any) -> None:
        if not sent:
            model = pipelines[-1].get_by_name("i")
            done = pyds.gst_element_send_nvevent_interval_update(hash(model), "0", 1000)
            sent.append((done, model.get_property("interval")))

    def look(buffer: Any) -> int:
        frame = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer)).frame_meta_list.data
        return int(frame.bInferDone)

    model = f"nvinfer name=i config-file-path={detector}"
    ran = play(f"{video(6)} ! {MUX} ! identity name=a ! {model} ! fakesink name=s", a=send, s=look)
    pipelines.clear()
    assert (ran.errors, sent) == ([], [(True, 1000)])
    assert sum(ran.seen["s"]) == 1


def test_an_event_lets_a_source_count_from_0_again(
    play: Run, gst: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipelines: list[Any] = []
    launch = gst.parse_launch
    monkeypatch.setattr(
        gst, "parse_launch", lambda text: pipelines.append(launch(text)) or pipelines[-1]
    )
    sent: list[bool] = []

    def send(buffer: Any) -> None:
        if buffer.pts > gst.SECOND // 4 and not sent:
            source = pipelines[-1].get_by_name("a")
            sent.append(pyds.gst_element_send_nvevent_new_stream_reset(hash(source), 0))

    def look(buffer: Any) -> int:
        return int(pyds.gst_buffer_get_nvds_batch_meta(hash(buffer)).frame_meta_list.data.frame_num)

    mux = f"{MUX} frame-num-reset-on-stream-reset=1"
    ran = play(
        f"videotestsrc num-buffers=30 ! identity name=a ! {mux} ! fakesink name=s",
        a=send, s=look,
    )  # fmt: skip
    pipelines.clear()
    assert (ran.errors, sent) == ([], [True])
    numbers = ran.seen["s"]
    assert len(numbers) == 30
    assert numbers.count(0) == 2


def test_only_rtsp_sources_note_the_senders_time(gst: Any) -> None:
    source = gst.ElementFactory.make("rtspsrc", None)
    pyds.configure_source_for_ntp_sync(hash(source))
    assert source.get_property("add-reference-timestamp-meta")
