"""The same content by application config, pipeline file and GStreamer: the same objects."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.config import load_pipeline
from headrace.meta import UNTRACKED_OBJECT_ID
from tests.custom.preparation.built import library
from tests.gstreamer.conftest import SCENE, Run, video
from tests.gstreamer.elements.test_analytics import RULES
from tests.gstreamer.elements.test_elements_pipelines import objects_of, tree, walk
from tests.gstreamer.elements.test_preprocess import HALVES, rules_file
from tests.profiles import slow

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
FRAMES = 12
SERVER = """infer_config {{ unique_id: 1 max_batch_size: 1
  backend {{ triton {{ model_name: "conveyor" version: -1 model_repo {{ root: "repo" }} }} }}
  preprocess {{ network_format: IMAGE_FORMAT_RGB maintain_aspect_ratio: 1 frame_scaling_filter: 1
    normalize {{ scale_factor: 0.00392156862745098 }} }}
  postprocess {{ labelfile_path: "{folder}/labels.txt" detection {{ num_detected_classes: 6
    custom_parse_bbox_func: "parse_conveyor"
    nms {{ confidence_threshold: 0.3 iou_threshold: 0.5 topk: 50 }} }} }}
  custom_lib {{ path: "{folder}/conveyor_parser.py" }} }}
input_control {{ process_mode: PROCESS_MODE_FULL_FRAME }}
"""
CASES = (
    slow("own size"),
    slow("other size"),
    "interval",
    "regions",
    slow("regions in C++"),
    "triton",
)


def by_run(path: Path) -> list[list[tuple[Any, ...]]]:
    frames: list[list[tuple[Any, ...]]] = []
    pipeline = headrace.open_pipeline(
        path,
        limit=FRAMES,
        device="cpu",
        on_result=lambda meta: frames.append(
            [(o.label, o.confidence, (o.left, o.top, o.width, o.height)) for o in meta.objects]
        ),
    )
    pipeline.run()
    return frames


@pytest.mark.parametrize("case", CASES)
def test_three_roads_find_the_same(
    play: Run,
    detector: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    case: str,
) -> None:
    width, height = (960, 544) if case == "other size" else (640, 384)
    config, element, keys, before, props = detector, "nvinfer", "", "", ""
    if case == "interval":
        keys, props = "interval=2\n", "interval=2"
    elif case.startswith("regions"):
        rules = rules_file(tmp_path, HALVES)
        if case == "regions in C++":
            text, own = rules.read_text(), str(library(tmp_path_factory))
            rules.write_text(re.sub("(?m)^custom-lib-path=.*", f"custom-lib-path={own}", text))
        before = f"nvdspreprocess config-file={rules} ! queue ! "
        keys, props = "input-tensor-meta=1\n", "input-tensor-meta=1"
        keys += f"[pre-process]\nenable=1\nconfig-file={rules}\n"
    elif case == "triton":
        folder = tmp_path / "repo" / "conveyor" / "1"
        folder.mkdir(parents=True)
        shutil.copy(detector.parent / "detector.onnx", folder / "model.onnx")
        config, element, keys = tmp_path / "server.txt", "nvinferserver", "plugin-type=1\n"
        config.write_text(SERVER.format(folder=detector.parent))
    path = tmp_path / "app.txt"
    path.write_text(
        f"[source0]\nenable=1\ntype=2\nuri=file://{SCENE}/conveyor.mp4\n"
        f"[streammux]\nbatch-size=1\nwidth={width}\nheight={height}\n"
        f"[primary-gie]\nenable=1\ngie-unique-id=1\nconfig-file={config}\n{keys}"
    )
    application = by_run(path)
    (tmp_path / "pipeline.yml").write_text(load_pipeline(path).dump())
    assert by_run(tmp_path / "pipeline.yml") == application
    ran = play(
        video(FRAMES + 4)
        + f"! m.sink_0 nvstreammux name=m batch-size=1 width={width} height={height} "
        f"! {before}{element} config-file-path={config} {props} "
        "! nvvideoconvert ! nvdsosd name=end ! fakesink",
        end=objects_of,
    )
    assert ran.errors == []
    elements = ran.seen["end"][:FRAMES]
    assert len(elements) == FRAMES
    assert any(elements)
    for number, (one, two) in enumerate(zip(application, elements, strict=True)):
        assert {o[0] for o in two} <= {number}
        assert [o[0] for o in one] == [o[1] for o in two]
        boxes = np.array([o[2] for o in one]).reshape(-1, 4)
        assert np.allclose(boxes, np.array([o[3] for o in two]).reshape(-1, 4), atol=0.005)
        assert np.allclose([o[1] for o in one], [o[2] for o in two], atol=1e-4)


Row = tuple[str, int, tuple[float, ...], tuple[str, ...]]


class Frames:
    """What each frame holds: objects, and counts of the analytics."""

    def __init__(self) -> None:
        self.objects: dict[tuple[int, int], list[Row]] = {}
        self.counts: dict[tuple[int, int], tuple[Any, ...]] = {}

    def of_run(self, meta: Any) -> None:
        key, analytics = (meta.source_id, meta.frame), meta.analytics
        self.objects[key] = [
            (o.label, o.object_id, (o.left, o.top, o.width, o.height),
             tuple(sorted(label.label for c in o.classifiers for label in c.labels)))
            for o in meta.objects
        ]  # fmt: skip
        if analytics is not None:
            self.counts[key] = dict(analytics.inside), dict(analytics.crossed_total)

    def of_elements(self, buffer: Any) -> None:
        from headrace.gstreamer import pyds

        for frame in walk(tree(buffer).frame_meta_list):
            key = frame.pad_index, frame.frame_num
            self.objects[key] = []
            for obj in walk(frame.obj_meta_list):
                r, read = obj.rect_params, []
                for classifier in walk(obj.classifier_meta_list):
                    read += [info.result_label for info in walk(classifier.label_info_list)]
                box = (r.left, r.top, r.width, r.height)
                self.objects[key].append((obj.obj_label, obj.object_id, box, tuple(sorted(read))))
            for user in walk(frame.frame_user_meta_list):
                kind = pyds.nvds_get_user_meta_type("NVIDIA.DSANALYTICSFRAME.USER_META")
                if user.base_meta.meta_type == kind:
                    info = pyds.NvDsAnalyticsFrameMeta.cast(user.user_meta_data)
                    self.counts[key] = dict(info.objInROIcnt), dict(info.objLCCumCnt)


def frames_of_roads(app: Path) -> list[Frames]:
    """The frames of an application config, and of the pipeline file that says the same."""
    pipeline = app.with_name("pipeline.yml")
    pipeline.write_text(load_pipeline(app).dump())
    roads = []
    for path in (app, pipeline):
        frames = Frames()
        headrace.open_pipeline(path, limit=FRAMES, device="cpu", on_result=frames.of_run).run()
        roads.append(frames)
    return roads


def renamed(frames: Frames) -> dict[tuple[int, int], list[Row]]:
    """The objects that have a track, its id counted from 0 within the source."""
    names: dict[tuple[int, int], int] = {}
    result = {}
    for (source, number), rows in sorted(frames.objects.items()):
        kept = []
        for label, track, box, read in rows:
            if track not in (-1, UNTRACKED_OBJECT_ID):
                mine = sum(of == source for of, _ in names)
                first = names.setdefault((source, track), mine)
                kept.append((label, first, box, read))
        result[source, number] = kept
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [slow("tracks"), "secondary", slow("analytics"), slow("two sources")]
)
def test_three_roads_track_read_and_count_the_same(
    play: Run, detector: Path, tmp_path: Path, case: str
) -> None:
    several = case == "two sources"
    reader = tmp_path / "config_infer_secondary_characters.txt"
    for path in SCENE.iterdir():
        if path.is_file() and path.suffix in (".txt", ".onnx", ".py"):
            shutil.copy(path, tmp_path)
    rules = tmp_path / "rules.txt"
    rules.write_text(RULES)
    keys = chain = ""
    if case == "secondary":
        keys = "[secondary-gie0]\nenable=1\ngie-unique-id=2\noperate-on-gie-id=1\nbatch-size=16\n"
        keys += f"config-file={reader}\n"
        chain = f"nvinfer config-file-path={reader} batch-size=16 ! "
    elif case == "analytics":
        keys = f"[nvds-analytics]\nenable=1\nconfig-file={rules}\n"
        chain = f"nvdsanalytics config-file={rules} ! "
    source = f"enable=1\ntype=2\nuri=file://{SCENE}/conveyor.mp4\n"
    app = tmp_path / "app.txt"
    app.write_text(
        f"[source0]\n{source}" + (f"[source1]\n{source}" if several else "") +
        f"[streammux]\nbatch-size={1 + several}\nwidth=1280\nheight=768\n"
        f"[primary-gie]\nenable=1\ngie-unique-id=1\nconfig-file={detector}\n"
        "[tracker]\nenable=1\n" + keys
    )  # fmt: skip
    roads = frames_of_roads(app)
    elements = Frames()
    more = f" {video(FRAMES + 4)} ! m.sink_1 " if several else ""
    ran = play(
        video(FRAMES + 4)
        + f"! m.sink_0 nvstreammux name=m batch-size={1 + several} width=1280 height=768 "
        f"! nvinfer config-file-path={detector} ! nvtracker ! {chain}nvvideoconvert ! "
        f"nvdsosd name=end ! fakesink {more}",
        end=elements.of_elements,
    )
    assert ran.errors == []
    one, two, three = (renamed(frames) for frames in (*roads, elements))
    assert one == two
    assert len(one) == FRAMES * (1 + several)
    assert any(one.values())
    for key, rows in one.items():
        assert [(r[0], r[1], r[3]) for r in rows] == [(r[0], r[1], r[3]) for r in three[key]], key
        boxes = np.array([r[2] for r in rows]).reshape(-1, 4)
        assert np.allclose(boxes, np.array([r[2] for r in three[key]]).reshape(-1, 4), atol=0.005)
    if case == "analytics":
        assert roads[0].counts == roads[1].counts
        assert len(roads[0].counts) == FRAMES
        # nvtracker takes objects without a track away before they are counted
        whole = [key for key, rows in one.items() if len(rows) == len(roads[0].objects[key])]
        assert len(whole) > FRAMES // 2
        assert all(elements.counts[key][0] == roads[0].counts[key][0] for key in whole)
        assert all(elements.counts[key][1] == roads[0].counts[key][1] for key in one)
        assert any(counts[0] for counts in roads[0].counts.values())
    if case == "secondary":
        assert any(row[3] for rows in one.values() for row in rows)
