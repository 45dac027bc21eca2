"""nvdspostprocess finds in raw outputs what nvinfer would have found itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gstreamer.conftest import SCENE, Run, video
from tests.gstreamer.elements.test_elements_pipelines import SIZE, objects_of, tree, walk
from tests.gstreamer.elements.test_preprocess import HALVES, rules_file

OUTPUTS = """property:
  gpu-id: 0
  process-mode: 1
  num-detected-classes: 6
  gie-unique-id: 1
  cluster-mode: 2
  network-type: 0
  labelfile-path: {scene}/labels.txt
  parse-bbox-func-name: parse_conveyor
class-attrs-all:
  pre-cluster-threshold: 0.3
  nms-iou-threshold: 0.5
  topk: 50
"""
LIBRARY = f"postprocesslib-name={SCENE}/conveyor_parser.py"


def outputs_file(folder: Path, text: str = OUTPUTS) -> Path:
    path = folder / "config_detector.yml"
    path.write_text(text.format(scene=SCENE))
    return path


def raw(folder: Path, detector: Path) -> Path:
    """The detector's config without its parser."""
    keys = ("custom-lib-path", "parse-bbox", "num-detected", "cluster-mode", "labelfile", "pre-",
            "nms-", "topk", "[class")  # fmt: skip
    lines = [line for line in detector.read_text().splitlines() if not line.startswith(keys)]
    path = folder / "raw.txt"
    path.write_text("\n".join([*lines, "network-type=100", "output-tensor-meta=1", ""]))
    return path


def same(found: list[Any], wanted: list[Any]) -> None:
    assert sum(map(len, wanted)) > 100
    for one, other in zip(found, wanted, strict=True):
        assert [o[:2] for o in one] == [o[:2] for o in other]
        for place in (2, 3):
            np.testing.assert_array_equal([o[place] for o in one], [o[place] for o in other])


@pytest.mark.parametrize("regions", [False, True])
@pytest.mark.sampled
def test_boxes(play: Run, detector: Path, tmp_path: Path, regions: bool) -> None:
    head = video(40) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} "
    taken = ""
    if regions:
        head += f"! nvdspreprocess config-file={rules_file(tmp_path, HALVES)} "
        taken = "input-tensor-meta=1"
    end = "! nvdsosd name=end ! fakesink"
    itself = play(head + f"! nvinfer config-file-path={detector} {taken} {end}", end=objects_of)
    later = play(
        head + f"! nvinfer config-file-path={raw(tmp_path, detector)} {taken} ! queue ! "
        f"nvdspostprocess {LIBRARY} postprocesslib-config-file={outputs_file(tmp_path)} {end}",
        end=objects_of,
    )
    assert itself.errors == later.errors == []
    same(later.seen["end"], itself.seen["end"])


@pytest.mark.slow
def test_codes_of_objects(play: Run, detector: Path, tmp_path: Path) -> None:
    for name in ("classifier.onnx", "labels_characters.txt", "conveyor_parser.py"):
        (tmp_path / name).write_bytes((SCENE / name).read_bytes())
    text = (SCENE / "config_infer_secondary_characters.txt").read_text()
    reader = tmp_path / "reader.txt"
    reader.write_text(text)
    given = ("custom-lib-path", "parse-", "labelfile", "classifier", "network-type")
    lines = [line for line in text.splitlines() if not line.startswith(given)]
    only = tmp_path / "reader_raw.txt"
    only.write_text("\n".join([*lines, "network-type=100", "output-tensor-meta=1", ""]))
    outputs = tmp_path / "outputs.txt"
    wanted = ("[property]", "gie-unique-id", *given)
    outputs.write_text(
        "\n".join(line for line in text.splitlines() if line.startswith(wanted)) + "\n"
    )

    def codes(buffer: Any) -> list[tuple[str, list[str]]]:
        (frame,) = walk(tree(buffer).frame_meta_list)
        return [
            (
                obj.obj_label,
                [
                    label.result_label
                    for found in walk(obj.classifier_meta_list)
                    for label in walk(found.label_info_list)
                ],
            )
            for obj in walk(frame.obj_meta_list)
        ]

    head = (
        video(60) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvinfer config-file-path={detector} ! "
    )
    itself = play(head + f"nvinfer config-file-path={reader} ! fakesink name=end", end=codes)
    later = play(
        head + f"nvinfer config-file-path={only} ! nvdspostprocess "
        f"postprocesslib-config-file={outputs} ! fakesink name=end",
        end=codes,
    )
    assert itself.errors == later.errors == []
    assert itself.seen["end"] == later.seen["end"]
    assert sum(bool(found) for seen in itself.seen["end"] for _, found in seen) > 50


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("network-type: 0", "network-type: 100"), "network-type=100 parses nothing"),
        (("parse_conveyor", "parse_conveyer"), "did you mean parse_conveyor?"),
        (("cluster-mode: 2", "cluster-mode: 9"), "cluster-mode: 9"),
    ],
)
def test_a_wrong_file(
    play: Run, detector: Path, tmp_path: Path, change: tuple[str, str], wanted: str
) -> None:
    path = outputs_file(tmp_path, OUTPUTS.replace(*change))
    ran = play(
        video(5) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvdspostprocess {LIBRARY} postprocesslib-config-file={path} ! fakesink"
    )
    assert wanted in str(ran.errors)


def test_functions_of_the_standard_library_have_their_names_here(tmp_path: Path) -> None:
    from headrace.infer.raw.outputs import outputs_config

    text = OUTPUTS.replace("parse_conveyor", "NvDsPostProcessParseCustomTfSSD")
    cfg = outputs_config(outputs_file(tmp_path, text), "/opt/lib/libpostprocess_impl.so")
    assert cfg.parse_bbox_func_name == "NvDsInferParseCustomTfSSD"
    assert cfg.custom_lib_path is None
