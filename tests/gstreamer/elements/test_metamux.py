"""nvdsmetamux joins the metadata of branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace._core.errors import ConfigError
from headrace.gstreamer import pyds
from headrace.gstreamer.elements.metamux import MuxRules, join, load_mux_rules
from headrace.gstreamer.pyds.meta import items
from tests.gstreamer.conftest import Run, video


def objects(buffer: Any) -> dict[int, list[int]]:
    """Source -> numbers of the models of its objects."""
    batch: Any = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
    return {
        int(frame.source_id): [int(o.unique_component_id) for o in items(frame, "obj_meta_list")]
        for frame in items(batch, "frame_meta_list")
    }


def model(detector: Path, tmp_path: Path, number: int) -> Path:
    path = tmp_path / f"model_{number}.txt"
    lines = [
        f"gie-unique-id={number}" if line.startswith("gie-unique-id") else line
        for line in detector.read_text().splitlines()
    ]
    path.write_text("\n".join(lines))
    return path


def launch(play: Run, detector: Path, tmp_path: Path, config: str, behind: str) -> Any:
    file = tmp_path / "metamux.txt"
    file.write_text(config)
    mux = "nvstreammux batch-size=1 width=640 height=384"
    return play(
        f"nvdsmetamux name=x config-file={file} ! fakesink name=end "
        f"{video(6)} ! tee name=t "
        f"t. ! queue ! a.sink_0 {mux} name=a ! nvinfer config-file-path={detector} ! x.sink_0 "
        f"t. ! queue ! b.sink_0 {mux} name=b ! {behind} ! x.sink_1",
        end=objects,
    )


def test_objects_of_both_branches_are_on_the_active_one(
    play: Run, detector: Path, tmp_path: Path
) -> None:
    second = model(detector, tmp_path, 2)
    ran = launch(
        play, detector, tmp_path, "[property]\nactive-pad=sink_0\n",
        f"nvinfer config-file-path={second}",
    )  # fmt: skip
    assert ran.errors == []
    seen = ran.seen["end"]
    assert len(seen) >= 6
    for frame in seen:
        numbers = frame[0]
        assert numbers.count(1) == numbers.count(2) > 0


def test_a_model_keeps_the_sources_that_the_file_names(
    play: Run, detector: Path, tmp_path: Path
) -> None:
    second = model(detector, tmp_path, 2)
    ran = launch(
        play, detector, tmp_path,
        "[property]\nactive-pad=sink_1\n[group-0]\nsrc-ids-model-1=1;2\nsrc-ids-model-2=0\n",
        f"nvinfer config-file-path={second}",
    )  # fmt: skip
    assert ran.errors == []
    assert all(set(frame[0]) == {2} for frame in ran.seen["end"])


def test_a_pad_that_is_not_there_is_refused(play: Run, detector: Path, tmp_path: Path) -> None:
    ran = launch(play, detector, tmp_path, "[property]\nactive-pad=sink_7\n", "identity")
    assert any("active-pad is 'sink_7'" in text for text in ran.errors)


def test_pads_may_come_behind_the_start(gst: Any) -> None:
    mux = gst.ElementFactory.make("nvdsmetamux", None)
    assert mux.set_state(gst.State.PAUSED) != gst.StateChangeReturn.FAILURE
    assert mux.request_pad_simple("sink_0").is_active()
    mux.set_state(gst.State.NULL)


def test_a_config_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mux.txt"
    path.write_text(
        "[property]\nenable=1\nactive-pad=sink_1\npts-tolerance=40000\n"
        "[group-0]\nsrc-ids-model-1=0;1\nsrc-ids-model-3=2\n"
    )
    sources = {1: frozenset({0, 1}), 3: frozenset({2})}
    assert load_mux_rules(path) == MuxRules("sink_1", 40000, sources)


@pytest.mark.parametrize(
    "text", ["[property]\npts-tolerance=soon\n", "[group-0]\nsrc-ids-model-1=a;b\n"]
)
def test_a_value_that_is_none_names_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mux.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"mux.txt:2"):
        load_mux_rules(path)


def batch(times: list[int], number: int) -> Any:
    made = pyds.nvds_create_batch_meta(len(times))
    for source, time in enumerate(times):
        frame = pyds.nvds_acquire_frame_meta_from_pool(made)
        frame.source_id, frame.buf_pts = source, time
        obj = pyds.nvds_acquire_obj_meta_from_pool(made)
        obj.unique_component_id = number
        pyds.nvds_add_obj_meta_to_frame(frame, obj, None)
        pyds.nvds_add_frame_meta_to_batch(made, frame)
    return made


def test_frames_of_other_times_are_not_joined(gst: Any) -> None:
    first, second = batch([100, 100], 1), batch([104, 120], 2)
    join(first, second, 10)
    numbers = [
        [o.unique_component_id for o in items(frame, "obj_meta_list")]
        for frame in items(first, "frame_meta_list")
    ]
    assert numbers == [[1, 2], [1]]
    join(first, first, 10)  # behind a tee: the same batch
    assert [len(items(f, "obj_meta_list")) for f in items(first, "frame_meta_list")] == [2, 1]
