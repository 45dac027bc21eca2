"""Another model while the pipeline runs, and the signal that tells of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gstreamer.conftest import SCENE, video
from tests.gstreamer.elements.test_elements_pipelines import SIZE, objects_of, tree, walk


def renamed(detector: Path, **more: str) -> Path:
    """The detector's config with labels that begin with `new`, and other values."""
    labels = detector.with_name("new_labels.txt")
    old = detector.with_name("labels.txt").read_text().split()
    labels.write_text("".join(f"new {name}\n" for name in old))
    text = detector.read_text().replace(str(detector.with_name("labels.txt")), str(labels))
    for key, value in more.items():
        text = text.replace(key.replace("_", "-") + "=", f"{value}\n#")
    path = detector.with_name(f"pgie_new{len(more)}.txt")
    path.write_text(text)
    return path


@pytest.mark.slow
def test_another_model_while_frames_pass(gst: Any, detector: Path) -> None:
    """The signal tells the start and each attempt; a model that does not fit is refused."""
    pipeline = gst.parse_launch(
        f"nvurisrcbin uri={(SCENE / 'conveyor.mp4').as_uri()} file-loop=1 ! m.sink_0 "
        f"nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvinfer name=n config-file-path={detector} ! fakesink name=end"
    )
    told: list[tuple[int, str]] = []
    labels: list[str] = []
    numbers: list[int] = []
    infer = pipeline.get_by_name("n")
    infer.connect("model-updated", lambda _, status, path: told.append((status, path)))

    def look(_: Any, info: Any) -> int:
        found = objects_of(info.get_buffer())
        numbers.extend({one[0] for one in found})
        labels.extend(one[1] for one in found)
        return 1

    def wait(ready: Callable[[], bool]) -> None:
        start = time.monotonic()
        while not ready():
            assert time.monotonic() - start < 20
            time.sleep(0.01)

    pipeline.get_by_name("end").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    pipeline.set_state(gst.State.PLAYING)
    try:
        wait(lambda: bool(labels))
        assert told == [(0, str(detector))]
        smaller = renamed(detector, infer_dims="infer-dims=3;96;160")
        infer.set_property("config-file-path", str(smaller))
        wait(lambda: len(told) == 2)
        assert told[1] == (1, str(smaller))
        bus = pipeline.get_bus()
        warned = bus.timed_pop_filtered(2 * gst.SECOND, gst.MessageType.WARNING).parse_warning()[0]
        assert "the model was not updated" in warned.message
        assert not any(label.startswith("new") for label in labels)
        other = renamed(detector)
        infer.set_property("config-file-path", str(other))
        wait(lambda: len(told) == 3)
        assert told[2] == (0, str(other))
        wait(lambda: labels[-1].startswith("new"))
        assert bus.pop_filtered(gst.MessageType.ERROR) is None
    finally:
        pipeline.set_state(gst.State.NULL)
    assert numbers == sorted(numbers)
    kinds = [label.startswith("new") for label in labels]
    assert kinds == sorted(kinds), "an old name came behind a new one"
    infer.set_state(gst.State.READY)
    infer.set_state(gst.State.PAUSED)  # it starts with the model that ran last
    assert told[3:] == [(0, str(other))]
    infer.set_property("config-file-path", str(detector))
    infer.set_state(gst.State.NULL)  # it waits for a model that is being loaded
    assert told[4:] == [(0, str(detector))]


def test_a_property_voids_both_keys_of_the_file_that_choose_objects(
    play: Any, detector: Path, tmp_path: Path
) -> None:
    """Without, the file's class would leave the reader nothing. Source: nvinfer's parser."""
    for name in ("classifier.onnx", "labels_characters.txt", "conveyor_parser.py"):
        (tmp_path / name).write_bytes((SCENE / name).read_bytes())
    name = "config_infer_secondary_characters.txt"
    text = (SCENE / name).read_text()
    reader = tmp_path / name
    reader.write_text(text.replace("[property]", "[property]\noperate-on-class-ids=55", 1))

    def read(buffer: Any) -> int:
        return sum(
            len(list(walk(obj.classifier_meta_list)))
            for frame in walk(tree(buffer).frame_meta_list)
            for obj in walk(frame.obj_meta_list)
        )

    found = {}
    for how in ("", "infer-on-gie-id=1"):
        ran = play(
            video(12) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! nvinfer "
            f"config-file-path={detector} ! nvinfer config-file-path={reader} {how} ! "
            "fakesink name=end",
            end=read,
        )
        assert ran.errors == []
        found[how] = sum(ran.seen["end"])
    assert found[""] == 0 < found["infer-on-gie-id=1"]
