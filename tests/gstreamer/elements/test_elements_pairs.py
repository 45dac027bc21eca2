"""The same content by application config, pipeline file and GStreamer: the same objects."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.config import load_pipeline
from tests.gstreamer.conftest import SCENE, Run, video
from tests.gstreamer.elements.test_elements_pipelines import objects_of
from tests.gstreamer.elements.test_preprocess import HALVES, rules_file

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
CASES = ("own size", "other size", "interval", "regions", "triton")


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
def test_three_roads_find_the_same(play: Run, detector: Path, tmp_path: Path, case: str) -> None:
    width, height = (960, 544) if case == "other size" else (640, 384)
    config, element, keys, before, props = detector, "nvinfer", "", "", ""
    if case == "interval":
        keys, props = "interval=2\n", "interval=2"
    elif case == "regions":
        rules = rules_file(tmp_path, HALVES)
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
        video(40) + f"! m.sink_0 nvstreammux name=m batch-size=1 width={width} height={height} "
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
