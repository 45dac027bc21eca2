"""nvdspreprocess and an nvinfer that takes its tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gstreamer.conftest import Run, video
from tests.gstreamer.elements.test_elements_pipelines import SIZE, objects_of, tree, walk

RULES = """[property]
enable=1
target-unique-ids=1
process-on-frame=1
network-input-order=0
processing-width=320
processing-height=192
network-input-shape=4;3;192;320
network-color-format=0
tensor-data-type=0
tensor-name=image
maintain-aspect-ratio=1
scaling-filter=1
custom-lib-path=/opt/nvidia/deepstream/deepstream/lib/gst-plugins/libcustom2d_preprocess.so
custom-tensor-preparation-function=CustomTensorPreparation
[user-configs]
pixel-normalization-factor=0.00392156862745098
[group-0]
src-ids=0
"""
KEY = "clip-object-outside-roi"
WHOLE, HALVES = "process-on-roi=0\n", "process-on-roi=1\nroi-params-src-0=0;0;640;384;0;0;320;384\n"


def pipeline(detector: Path, rules: Path | None) -> str:
    prepared = "" if rules is None else f"nvdspreprocess config-file={rules} ! queue ! "
    taken = "" if rules is None else "input-tensor-meta=1"
    return (
        video(40) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! {prepared}"
        f"nvinfer config-file-path={detector} {taken} ! nvdsosd name=end ! fakesink"
    )


def rules_file(folder: Path, group: str) -> Path:
    path = folder / "config_preprocess.txt"
    path.write_text(RULES + group)
    return path


def test_the_boxes_are_those_without(play: Run, detector: Path, tmp_path: Path) -> None:
    def done(buffer: Any) -> Any:
        (frame,) = walk(tree(buffer).frame_meta_list)
        return frame.bInferDone, objects_of(buffer)

    plain = play(pipeline(detector, None), end=done)
    ran = play(pipeline(detector, rules_file(tmp_path, WHOLE)), end=done)
    assert plain.errors == ran.errors == []
    assert all("input-tensor-from-meta" in text for text in ran.warnings)
    assert sum(len(found) for _, found in ran.seen["end"]) > 100
    for (one, found), (other, wanted) in zip(ran.seen["end"], plain.seen["end"], strict=True):
        assert one == other == 1
        assert [f[:2] for f in found] == [w[:2] for w in wanted]
        if found:
            np.testing.assert_allclose([f[3] for f in found], [w[3] for w in wanted], atol=1e-3)


def test_regions_are_seen_drawn_and_hold_the_objects(
    play: Run, detector: Path, tmp_path: Path
) -> None:
    from headrace.gstreamer import pyds

    def look(buffer: Any) -> Any:
        batch = tree(buffer)
        (user,) = walk(batch.batch_user_meta_list)
        assert user.base_meta.meta_type == pyds.NVDS_PREPROCESS_BATCH_META
        data = pyds.GstNvDsPreProcessBatchMeta.cast(user.user_meta_data)
        assert data.target_unique_ids == [1]
        assert data.tensor_meta.tensor_shape == [2, 3, 192, 320]
        assert data.tensor_meta.buffer_size == 2 * 3 * 192 * 320 * 4
        (frame,) = walk(batch.frame_meta_list)
        assert all(region.frame_meta is frame for region in data.roi_vector)
        (display,) = walk(frame.display_meta_list)
        drawn = [display.rect_params[i].width for i in range(display.num_rects)]
        return [region.roi.width for region in data.roi_vector], drawn, objects_of(buffer)

    ran = play(pipeline(detector, rules_file(tmp_path, HALVES)), end=look)
    assert ran.errors == []
    assert all(seen[:2] == ([640, 320], [640, 320]) for seen in ran.seen["end"])
    left = [o for _, _, found in ran.seen["end"] for o in found if o[3][0] + o[3][2] < 300]
    both = sum(len(found) for _, _, found in ran.seen["end"])
    assert len(left) > 20
    assert both > len(left)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("tensor-name=image", "tensor-name=input_1:0"), "a tensor for component 1 is called"),
        (("network-input-shape=4", "network-input-shape=0"), "network-input-shape=0"),
    ],
)
def test_a_wrong_file(
    play: Run, detector: Path, tmp_path: Path, change: tuple[str, str], wanted: str
) -> None:
    path = rules_file(tmp_path, WHOLE)
    path.write_text(path.read_text().replace(*change))
    ran = play(pipeline(detector, path))
    assert wanted in str(ran.errors + ran.warnings)


@pytest.mark.slow
def test_objects_are_cut_at_their_region_unless_told_otherwise(
    play: Run, detector: Path, tmp_path: Path
) -> None:
    rules = rules_file(tmp_path, "process-on-roi=1\nroi-params-src-0=0;0;150;384\n")
    ends = {}
    for cut in (1, 0):
        line = pipeline(detector, rules).replace("tensor-meta=1", f"tensor-meta=1 {KEY}={cut}")
        ran = play(line, end=objects_of)
        assert ran.errors == []
        ends[cut] = max(f[3][0] + f[3][2] for found in ran.seen["end"] for f in found)
    assert round(ends[1]) == 150 < ends[0] - 1
