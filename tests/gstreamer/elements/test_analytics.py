"""nvdsanalytics counts as `headrace run --analytics` does, and applications read it as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.meta import UNTRACKED_OBJECT_ID
from tests.gstreamer.conftest import SCENE, Run, video
from tests.gstreamer.elements.test_elements_pipelines import SIZE, tree, walk

RULES = """[property]
enable=1
config-width=1280
config-height=768
osd-mode=2
[roi-filtering-stream-0]
enable=1
roi-SCAN=400;120;880;120;880;660;400;660
[overcrowding-stream-0]
enable=1
roi-JAM=0;0;1280;0;1280;768;0;768
object-threshold=5
[line-crossing-stream-0]
enable=1
line-crossing-READ=680;132;820;132;752;100;752;660
mode=exact
[direction-detection-stream-0]
enable=1
direction-EAST=0;100;100;100
"""


FRAMES = 100


def counts(buffer: Any) -> tuple[Any, ...]:
    """Everything that the published sample reads."""
    from headrace.gstreamer import pyds

    types = pyds.NvDsMetaType
    (frame,) = walk(tree(buffer).frame_meta_list)
    objects = []
    for obj in walk(frame.obj_meta_list):
        for user in walk(obj.obj_user_meta_list):
            kind = pyds.nvds_get_user_meta_type("NVIDIA.DSANALYTICSOBJ.USER_META")
            assert user.base_meta.meta_type == kind == types.NVDS_OBJ_META_NVDSANALYTICS
            info = pyds.NvDsAnalyticsObjInfo.cast(user.user_meta_data)
            objects.append((obj.object_id, info.roiStatus, info.lcStatus, bool(info.dirStatus)))
    (user,) = walk(frame.frame_user_meta_list)
    kind = pyds.nvds_get_user_meta_type("NVIDIA.DSANALYTICSFRAME.USER_META")
    assert user.base_meta.meta_type == kind == types.NVDS_FRAME_META_NVDSANALYTICS
    found = pyds.NvDsAnalyticsFrameMeta.cast(user.user_meta_data)
    shown = [(d.num_lines, d.num_labels, d.num_arrows) for d in walk(frame.display_meta_list)]
    return found.objInROIcnt, found.objLCCumCnt, found.ocStatus, objects, shown


@pytest.mark.slow
def test_it_counts_as_a_run_does(play: Run, detector: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text(RULES)
    ran = play(
        video(FRAMES) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvinfer config-file-path={detector} ! nvtracker ! "
        f"nvdsanalytics config-file={rules} ! nvdsosd name=end ! fakesink",
        end=counts,
    )
    assert ran.errors == []
    seen = ran.seen["end"][: FRAMES - 10]  # the decoder drops some of the last ones
    assert seen[0][4] == [(9, 4, 2)]  # two polygons, a line; its arrow and the direction's
    pipeline = headrace.open_pipeline(
        detector, sources=SCENE / "conveyor.mp4", tracker="iou", analytics=rules, limit=len(seen)
    )
    wanted = []
    with pipeline:
        for _, meta in pipeline:
            found = meta.analytics
            # nvtracker takes objects without a track away: those of the first frames
            tracked = (meta.objects.object_ids != UNTRACKED_OBJECT_ID).all()
            wanted.append((found.crossed_total, tracked, found.inside))
    assert [s[1] for s in seen] == [w[0] for w in wanted]
    full = [(s[0], w[2]) for s, w in zip(seen, wanted, strict=True) if w[1]]
    assert len(full) > FRAMES // 2
    assert [s for s, _ in full] == [w for _, w in full]
    assert wanted[-1][0]["READ"] >= 3
    crossed = [o for s in seen for o in s[3] if o[2]]
    assert len(crossed) == wanted[-1][0]["READ"]
    assert any(o[1] == ["SCAN"] for s in seen for o in s[3])


def test_a_wrong_file_stops_the_pipeline(play: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text(RULES.replace("680;132", "680"))
    ran = play(
        video() + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvdsanalytics config-file={rules} ! fakesink"
    )
    assert "rules.txt" in str(ran.errors)
