"""Set-ups that are refused before the first frame: parsers tried on frames of their source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import ArraySource, open_pipeline
from headrace.errors import HeadraceError
from headrace.infer.trial import tried_changes
from tests.infer.watch.detectors import config_for, frames

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
LIBRARY = """from headrace import Detections


def parse_all(layers, network, params):
    return Detections.empty()
"""
RIGHT = "HeadraceParseYoloV8"


def refused(folder: Path, **keys: Any) -> HeadraceError:
    """The error of a pipeline on five frames."""
    images = [np.asarray(frame.to_bgr()) for frame in frames(count=5)]
    config = config_for(folder, **keys)
    with pytest.raises(HeadraceError) as caught:
        open_pipeline(config, sources=ArraySource(images))
    return caught.value


@pytest.mark.parametrize(
    "keys",
    [
        {"parse_bbox_func_name": None},
        {"custom_lib_path": "missing.so", "parse_bbox_func_name": "ParseMine"},
        {"custom_lib_path": "broken.so", "parse_bbox_func_name": "ParseMine"},
    ],
    ids=["no name", "no library", "no library of this machine"],
)
def test_a_parser_that_reads_the_frames_is_set(keys: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "broken.so").write_bytes(b"\x7fELF nothing")
    error = refused(tmp_path, **keys)
    assert error.data["set"]["parse-bbox-func-name"] == RIGHT
    assert f"parse-bbox-func-name={RIGHT}" in str(error)
    assert "25 boxes in 5 frames" in str(error)
    assert ("custom-lib-path" in error.data["set"]) == ("custom_lib_path" in keys)
    row = error.data["advice"][0]  # the parser behind it reads the same boxes
    assert row["set"] == error.data["set"]
    assert row["basis"] == "tried"
    assert row["frames"] == 5


def test_functions_of_the_own_library_are_tried_and_all_are_told(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(LIBRARY)
    error = refused(tmp_path, custom_lib_path="own.py", parse_bbox_func_name="parse_al")
    assert {"parse-bbox-func-name": "parse_all"} in tried_changes(error.finding)
    assert "tried parse-bbox-func-name=parse_all: no boxes in 5 frames" in str(error)
    assert "set" not in error.data


def test_without_frames_it_is_a_guess(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError) as caught:
        open_pipeline(config_for(tmp_path, parse_bbox_func_name=None), sources="missing.mp4")
    assert "with it" not in str(caught.value)


def test_errors_of_other_kinds_are_as_they_were(tmp_path: Path) -> None:
    error = refused(tmp_path, onnx_file="missing.onnx")
    assert error.code == "missing-file"
    assert not tried_changes(error.finding)
