"""Published applications in C and C++, byte for byte: compiled, and run on the demo scene."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.outside.conftest import checkout
from tests.outside.deepstream_apps import DETECTOR, MASKS_CONFIG, READER, SCENE, elementary

H264, URI = "{h264}", (SCENE / "conveyor.mp4").as_uri()
POSE = """
import numpy as np
from headrace.meta import Detections


def parse_masks(layers, network, params):
    from conveyor_parser import parse_conveyor
    found = parse_conveyor(layers, network, params)
    points = np.ones((17, 3), np.float32)
    masks = [points * (left, top, 1) for left, top, _, _ in found.boxes]
    return Detections(found.boxes, found.scores, found.class_ids, masks=masks)
"""
TRACKER = "[tracker]\ntracker-width=640\ntracker-height=384\nll-lib-file=/x/libnvds_mot.so\n"
SAMPLES = "sources/apps/sample_apps"
OPENCV = (
    "-I",
    "/usr/include/opencv4",
    *(f"-lopencv_{n}" for n in ("core", "imgproc", "imgcodecs")),
)


class App(NamedTuple):
    """A checkout, its sources, the compiler's options, the program's arguments and its last word.

    `config` is the name of the detector's file that is compiled in.
    """

    folder: str
    sources: str
    arguments: tuple[str, ...]
    says: str
    config: str = "dstest2_pgie_config.txt"
    options: tuple[str, ...] = ()


_YOLO = "deepstream.c modules/interrupt.c modules/perf.c"
_BY_FILE = ("-s", URI, "-c", "pose.txt")
APPS = {
    "pose": App("DeepStream-Yolo-Pose", _YOLO, _BY_FILE, "EOS"),
    "face": App("DeepStream-Yolo-Face", _YOLO, _BY_FILE, "EOS"),
    "opencv": App(
        "deepstream-yolov3-cplus", "deepstream_test1_app.cpp", (H264,), "Number = 249",
        "config_infer_primary_yoloV3.txt", OPENCV,
    ),
    "test1-rtsp": App(
        "deepstream-6.1", f"{SAMPLES}/deepstream-test1-rtsp/deepstream_test1_app.c", (H264,),
        "Number = 249", "dstest1_pgie_config.txt",
    ),
    "test2-rtsp": App(
        "deepstream-6.1", f"{SAMPLES}/deepstream-test2-rtsp/deepstream_test2_app.c", (H264,),
        "Number = 249",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
def test_it_is_compiled_and_runs_to_its_end(outside: Path, tmp_path: Path, name: str) -> None:
    app = APPS[name]
    folder = checkout(outside, app.folder)
    names = {"batch": 1, "scene": SCENE, "scratch": tmp_path}
    (tmp_path / "masks.py").write_text(POSE)
    (tmp_path / app.config).write_text(DETECTOR.format(**names))
    (tmp_path / "pose.txt").write_text(MASKS_CONFIG.format(**names))
    (tmp_path / "dstest2_tracker_config.txt").write_text(TRACKER)
    for number in (1, 2, 3):
        text = READER.format(number=number + 1, **names)
        (tmp_path / f"dstest2_sgie{number}_config.txt").write_text(text)
    video = str(elementary(tmp_path))
    headrace = str(Path(sys.executable).with_name("headrace"))
    sources = [str(folder / source) for source in app.sources.split()]
    compiled = subprocess.run(
        [headrace, "compile", "--exe", *sources, *app.options, "-o", "app"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    ran = subprocess.run(
        [headrace, "exec", "./app", *(a.format(h264=video) for a in app.arguments)],
        cwd=tmp_path, env=os.environ | {"HEADRACE_GST_DISPLAY": "none"}, timeout=300,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    output = ran.stdout + ran.stderr
    assert ran.returncode == 0, output[-2000:]
    assert app.says in output
    counts = [int(n) for n in re.findall(r"Number of objects = (\d+)", output)]
    assert not counts or sum(counts) > 250
    assert "Traceback" not in output
