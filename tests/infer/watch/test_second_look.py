"""Strong responses that the model's parser does not read: what the second look says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.inferencer import Inferencer
from headrace.infer.watch.rules import is_finding
from tests.infer.recognise.models import rows_of
from tests.infer.watch.detectors import frames

KEYS = "[property]\nonnx-file=m.onnx\nnet-scale-factor=0.0039215697906911373\ncluster-mode=4\n"
CLASSES = "[class-attrs-all]\npre-cluster-threshold=0.25\n"


def judged(folder: Path, rows: Any, keys: str) -> tuple[dict[str, str], list[str]]:
    """Findings of the watch after three images, and the reasons for no objects."""
    names = ["output0", "output1"][: 1 if isinstance(rows, np.ndarray) else len(rows)]
    rows_of(folder / "m.onnx", rows, names=names)
    config = folder / "config.txt"
    config.write_text(f"{KEYS}{keys}\n{CLASSES}")
    with Inferencer.from_config(config) as model:
        for frame in frames("objects", ("red",))[:3]:
            model.process([frame])
        model.conclude()
        said = {n.code: str(n) for n in model.notices if is_finding(n)}
        return said, model.losses.reasons


def final_rows(scale: float) -> Any:
    """Two objects as corners, score, class, and rows of zeros."""
    rows = np.zeros((1, 20, 6), np.float32)
    rows[0, 0] = 8 * scale, 4 * scale, 40 * scale, 30 * scale, 0.9, 0
    rows[0, 1] = 20 * scale, 22 * scale, 60 * scale, 50 * scale, 0.8, 1
    return rows


def test_final_rows_in_unit_are_named_and_are_the_reason(tmp_path: Path) -> None:
    keys = "num-detected-classes=2\nparse-bbox-func-name=NvDsInferParseYolo"
    said, reasons = judged(tmp_path, final_rows(1 / 64), keys)
    assert "boxes are in 0..1, and NvDsInferParseYolo reads pixels" in said["boxes-in-0..1"]
    assert "boxes are in 0..1" in reasons[0]
    assert "sees nothing" not in reasons[0]


@pytest.mark.parametrize("parser", ["HeadraceParseYoloEndSeg", "HeadraceParseYoloV8Seg"])
def test_masked_rows_in_unit_are_named(tmp_path: Path, parser: str) -> None:
    if parser == "HeadraceParseYoloEndSeg":
        rows = np.concatenate([final_rows(1 / 64), np.zeros((1, 20, 32), np.float32)], axis=2)
    else:
        rows = np.zeros((1, 4 + 2 + 32, 84), np.float32)
        rows[0, :5, :6] = np.array([[0.5, 0.4, 0.2, 0.3, 0.9]], np.float32).T
    masks = np.full((1, 32, 16, 16), -1, np.float32)
    keys = "network-type=3\nnum-detected-classes=2\noutput-instance-mask=1\n"
    keys += f"parse-bbox-instance-mask-func-name={parser}"
    said, reasons = judged(tmp_path, [rows, masks], keys)
    assert f"boxes are in 0..1, and {parser} reads pixels" in said["boxes-in-0..1"]
    assert "boxes are in 0..1" in reasons[0]


def test_final_rows_in_pixels_are_right(tmp_path: Path) -> None:
    keys = "num-detected-classes=2\nparse-bbox-func-name=NvDsInferParseYolo"
    said, reasons = judged(tmp_path, final_rows(1), keys)
    assert "boxes-in-0..1" not in said
    assert reasons == []


@pytest.mark.parametrize("found", [True, False])
def test_an_instance_parser_that_is_silent_on_poses(tmp_path: Path, found: bool) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "from headrace import Detections\n"
        "def parse(layers, network, params):\n"
        "    return Detections(np.zeros((0, 4)), [], [], masks=[])\n"
    )
    rows = np.zeros((1, 56, 84), np.float32)
    rows[0, :5, 3] = 30, 30, 20, 24, 0.9 if found else 0.01
    rows[0, :5, 9] = 12, 40, 16, 10, 0.8 if found else 0.01
    keys = "network-type=3\nnum-detected-classes=1\noutput-instance-mask=1\n"
    keys += "parse-bbox-instance-mask-func-name=parse\ncustom-lib-path=own.py"
    said, _ = judged(tmp_path, rows, keys)
    named = "network-type=0 with parse-bbox-func-name=HeadraceParseYoloV8Pose"
    assert (named in said.get("parser-silent", "")) is found


@pytest.mark.parametrize("width", [6, 38, 7])
def test_final_rows_are_no_candidates_of_as_many_classes(tmp_path: Path, width: int) -> None:
    """Box, score and class number have the shape of two scores."""
    rows = np.concatenate([final_rows(1), np.zeros((1, 20, width - 6), np.float32)], axis=2)
    keys = {
        6: "parse-bbox-func-name=HeadraceParseYoloV8",
        7: "rotated-boxes=1\nparse-bbox-func-name=HeadraceParseYoloObb",
        38: "network-type=3\nparse-bbox-instance-mask-func-name=HeadraceParseYoloV8Seg",
    }
    outputs = [rows, np.full((1, 32, 16, 16), -1, np.float32)] if width == 38 else rows
    said, _ = judged(tmp_path, outputs, f"num-detected-classes=2\n{keys[width]}")
    assert "has class numbers" in said["boxes-odd"]
    final = {6: "NvDsInferParseYolo", 7: "HeadraceParseYoloEndObb", 38: "HeadraceParseYoloEndSeg"}
    assert f"={final[width]} (with it: 6 boxes" in said["boxes-odd"]


def test_candidates_of_two_classes_are_right(tmp_path: Path) -> None:
    rows = np.zeros((1, 20, 6), np.float32)
    rows[0, :, :4], rows[0, :, 4] = (32, 32, 20, 20), np.linspace(0.9, 0.1, 20)
    rows[0, :, 5] = np.linspace(0.1, 0.8, 20)
    said, _ = judged(
        tmp_path, rows, "num-detected-classes=2\nparse-bbox-func-name=HeadraceParseYoloV8"
    )
    assert "boxes-odd" not in said


@pytest.mark.parametrize(("parser", "count"), [("Detr", 8), ("DetrSoftmax", 7)])
@pytest.mark.parametrize("softmax", [True, False])
def test_the_last_logit_tells_soft_max_from_sigmoid(
    tmp_path: Path, parser: str, count: int, softmax: bool
) -> None:
    logits = np.full((1, 20, 8), -6, np.float32)
    logits[0, :, 7] = 6 if softmax else -7
    logits[0, :2, 1:3], logits[0, :2, 7] = np.eye(2) * 12 - 4, -7
    places = np.linspace(0.2, 0.8, 20)
    boxes = np.stack([places, places, *np.full((2, 20), 0.2)], axis=1)[None]
    keys = f"num-detected-classes={count}\nparse-bbox-func-name=HeadraceParse{parser}"
    said, _ = judged(tmp_path, [logits, boxes.astype(np.float32)], keys)
    right = softmax is (parser == "DetrSoftmax")
    assert ("boxes-odd" in said) is not right
    if not right:
        assert (
            f"={'HeadraceParseDetrSoftmax' if softmax else 'HeadraceParseDetr'}"
            in said["boxes-odd"]
        )
        assert "6 boxes in 3 frames" in said["boxes-odd"]
