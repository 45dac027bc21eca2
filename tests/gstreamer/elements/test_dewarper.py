"""nvdewarper: views of images as frames of a batch, the same on every road."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config.dewarper_file import load_dewarper
from headrace.gstreamer import pyds
from headrace.gstreamer.pyds.meta import items
from headrace.media import open_source
from headrace.media.dewarping import Dewarper
from headrace.pipeline.opening import open_pipeline
from tests.gstreamer.conftest import SCENE, Run
from tests.media.conftest import write_clip

FILE = """[property]
output-width=160
output-height=96
num-batch-buffers={most}
[surface0]
projection-type=3
width=200
height=120
src-fov=60
top-angle=20
bottom-angle=-20
yaw=-10
[surface1]
projection-type=10
surface-index=4
width=160
height=96
src-fov=60
top-angle=25
bottom-angle=-25
roll=10
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "dewarper.txt"
    path.write_text(FILE.format(most=4))
    return path


def views(buffer: Any) -> list[tuple[int, int, int, Any]]:
    """Source, kind, number and pixels of each frame of a batch."""
    batch: Any = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
    return [
        (f.source_id, f.surface_type, f.surface_index, batch.surfaces[f.batch_id].frame().to_rgb())
        for f in items(batch, "frame_meta_list")
    ]


def line(clip: Path, file: Path, surfaces: int, more: str = "") -> str:
    return (
        f"filesrc location={clip} ! qtdemux ! h264parse ! nvv4l2decoder ! nvvideoconvert ! "
        f"nvdewarper config-file={file} {more} ! m.sink_0 nvstreammux name=m batch-size=1 "
        f"width=160 height=96 num-surfaces-per-frame={surfaces} ! fakesink name=end sync=0"
    )


def test_a_batch_has_the_views_that_the_pipeline_file_has(
    play: Run, file: Path, tmp_path: Path
) -> None:
    clip = write_clip(tmp_path / "clip.mp4", 4, codec="libx264")
    ran = play(line(clip, file, 2), end=views)
    assert ran.errors == []
    seen = ran.seen["end"]
    assert [[one[:3] for one in batch] for batch in seen] == [[(0, 3, 0), (0, 10, 4)]] * 4
    dewarper = Dewarper(load_dewarper(file))
    with open_source(clip) as source:
        for batch, frame in zip(seen, source, strict=True):
            for (*_, pixels), view in zip(batch, dewarper.views(frame), strict=True):
                assert np.abs(pixels.astype(int) - view.to_rgb().astype(int)).mean() < 1
    pipeline = tmp_path / "pipeline.yml"
    pipeline.write_text(
        f"sources:\n  - {{uri: {clip}, dewarper: {file}}}\n"
        f"  - {{uri: {clip}, dewarper: {file}, surface: 1}}\n"
        f"models:\n  - {SCENE / 'config_infer_primary.txt'}\n"
    )
    count = 0
    with open_pipeline(pipeline) as opened:
        for frame, _ in opened:
            count += 1
            pixels = seen[frame.frame][frame.source_id][3]
            assert np.abs(pixels.astype(int) - frame.to_rgb().astype(int)).mean() < 1
    assert count == 8


@pytest.mark.parametrize(("surfaces", "more"), [(1, ""), (4, "num-batch-buffers=1")])
def test_only_the_views_that_are_asked_for_are_taken(
    play: Run, file: Path, tmp_path: Path, surfaces: int, more: str
) -> None:
    clip = write_clip(tmp_path / "clip.mp4", 2, codec="libx264")
    ran = play(line(clip, file, surfaces, more), end=views)
    assert ran.errors == []
    assert [[one[:3] for one in batch] for batch in ran.seen["end"]] == [[(0, 3, 0)]] * 2


@pytest.mark.slow
def test_objects_of_two_views_are_tracked_apart(play: Run, tmp_path: Path) -> None:
    file = tmp_path / "dewarper.txt"
    surface = (
        "[surface{0}]\nprojection-type=3\nsurface-index={0}\nwidth=320\nheight=192\nsrc-fov=60\n"
    )
    both = surface.format(0) + surface.format(1)
    file.write_text(f"[property]\noutput-width=320\noutput-height=192\n{both}")

    def ids(buffer: Any) -> list[set[int]]:
        batch: Any = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
        return [
            {obj.object_id for obj in items(frame, "obj_meta_list")}
            for frame in items(batch, "frame_meta_list")
        ]

    ran = play(
        f"filesrc location={SCENE / 'conveyor.mp4'} ! qtdemux ! h264parse ! nvv4l2decoder ! "
        f"identity eos-after=90 ! nvvideoconvert ! nvdewarper config-file={file} ! m.sink_0 "
        "nvstreammux name=m batch-size=1 width=320 height=192 num-surfaces-per-frame=2 ! nvinfer "
        f"config-file-path={SCENE / 'config_infer_primary.txt'} ! nvtracker ! fakesink name=end",
        wait_s=60, end=ids,
    )  # fmt: skip
    assert ran.errors == []
    one, other = (set().union(*(batch[view] for batch in ran.seen["end"])) for view in (0, 1))
    assert len(one) == len(other) > 3
    assert not one & other


def test_a_dewarper_without_a_file_says_so(gst: Any, tmp_path: Path) -> None:
    pipeline = gst.parse_launch("videotestsrc ! nvdewarper name=x ! fakesink")
    assert pipeline.set_state(gst.State.PLAYING) == gst.StateChangeReturn.FAILURE
    message = pipeline.get_bus().timed_pop_filtered(gst.SECOND, gst.MessageType.ERROR)
    pipeline.set_state(gst.State.NULL)
    assert "config-file is not set" in message.parse_error()[0].message
