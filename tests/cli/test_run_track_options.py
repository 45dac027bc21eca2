"""`headrace run --reid`: which tracker gets the model."""

from __future__ import annotations

from pathlib import Path

from headrace.cli.inputs import with_looks
from headrace.config import TrackerSpec


def test_a_model_stands_beside_the_tracker_or_iou() -> None:
    assert with_looks(None, "m.onnx").text == "iou:reid=m.onnx"
    named = TrackerSpec(name="nvdcf-perf", settings={"probationAge": "1"})
    assert with_looks(named, "m.onnx").text == "nvdcf-perf:probationAge=1,reid=m.onnx"
    file = with_looks(TrackerSpec(config=Path("t.yml")), "m.onnx")
    assert Path(file.text).name == "t.yml"
    assert file.options == {"reid": "m.onnx"}
