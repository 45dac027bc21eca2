"""The store: what the cases share."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import onnx

from tests.mistakes.cases import Case, Setup, run_case
from tests.mistakes.models import MODELS
from tests.mistakes.scene import write_scenes
from tests.mistakes.setups import YOLOV5, YOLOX

ENGINES = {"yolov5.engine": YOLOV5, "yolox.engine": YOLOX}
_TINY = 1e-5  # a scale that leaves nothing of the tensors that decide


def fill(store: Path) -> None:
    """Write the images of every scene, every model, engines and a calibration table."""
    write_scenes(store)
    for name, write in MODELS.items():
        write(store / name)
    for name, setup in ENGINES.items():
        _build(setup, store / "built" / name, store)
        (built,) = (store / "built" / name).glob("*.engine")
        shutil.copyfile(built, store / name)
    (store / "bad.table").write_text(_table(store / "yolov8.onnx"))


def _build(setup: Setup, folder: Path, store: Path) -> None:
    Case("", setup, command=["build", "config.txt"]).write(folder, store)
    assert run_case(folder).code == 0


def _table(model: Path) -> str:
    """A calibration table of the model with ranges that are far too small."""
    graph = onnx.load(model).graph
    names = [graph.input[0].name, *(name for node in graph.node for name in node.output)]
    scale = struct.pack(">f", _TINY).hex()
    return "TRT-8501-EntropyCalibration2\n" + "".join(f"{name}: {scale}\n" for name in names)
