"""Runs of DeepStream folders whose library was compiled against TensorRT's own headers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace.custom import include_dir
from headrace.custom.guard.keeper import can_guard
from tests.inside import headrace
from tests.media.conftest import write_clip
from tests.trt.host.conftest import LINES, Compile, compile_for_tensorrt

__all__ = ["compile_for_tensorrt"]
CONFIG = """[property]
gpu-id=0
net-scale-factor=1
batch-size=1
network-mode=0
network-type=0
num-detected-classes=1
labelfile-path=labels.txt
cluster-mode=4
custom-lib-path=libnvdsinfer_custom_impl_Sums.so
engine-create-func-name=Sums
parse-bbox-func-name=NvDsInferParseCustomSums
[class-attrs-all]
pre-cluster-threshold=0.5
"""
APP = """[application]
[source0]
enable=1
type=2
uri=file://clip.mp4
[primary-gie]
enable=1
config-file=config_infer_primary.txt
"""


@pytest.fixture
def folder(compile_for_tensorrt: Compile, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder as applications have it; the image is black with a white block."""
    flags = f'-DNAME="Folder{request.param}"', f"-idirafter{include_dir()}"
    library = compile_for_tensorrt("compiled/deepstream.cpp", request.param, *flags)
    shutil.copy(library, tmp_path / "libnvdsinfer_custom_impl_Sums.so")
    (tmp_path / "config_infer_primary.txt").write_text(CONFIG)
    (tmp_path / "labels.txt").write_text("block\n")
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[20:, 40:] = 255
    Image.fromarray(pixels).save(tmp_path / "frame.png")
    return tmp_path


@pytest.mark.parametrize("folder", LINES, indirect=True)
@pytest.mark.parametrize("guard", ["never", *["always"] * (can_guard() is None)])
@pytest.mark.sampled
def test_its_boxes_come_from_its_engine_layer_and_parser(folder: Path, guard: str) -> None:
    config = (folder / "config_infer_primary.txt").read_text()
    for _ in range(2):  # built, then found again
        done = headrace(
            "run", "config_infer_primary.txt", "frame.png", "-o", "out.jsonl",
            "--set", f"custom-lib-guard={guard}", cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (record,) = map(json.loads, (folder / "out.jsonl").read_text().splitlines())
        (found,) = record["objects"]
        assert found["label"] == "block"
        assert found["confidence"] == pytest.approx(1)
        assert [found[k] for k in ("left", "top", "width", "height")] == [40, 20, 20, 20]
    assert (folder / "config_infer_primary.txt").read_text() == config


@pytest.mark.parametrize("folder", [8], indirect=True)
def test_the_folders_application_config_runs(folder: Path) -> None:
    write_clip(folder / "clip.mp4", 24)
    (folder / "app.txt").write_text(APP)
    done = headrace("run", "app.txt", "-o", "out.jsonl", cwd=folder)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    found = [len(r["objects"]) for r in records]
    assert found[:11] == [0] * 11  # dark frames
    assert found[16:23] == [6] * 7  # every cell is bright
