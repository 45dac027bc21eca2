"""`headrace compare` as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from headrace.cli import main
from headrace.infer.inferencer import Inferencer
from headrace.media import open_source

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
CONFIG = "config_infer_primary.txt"


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    for item in SCENE.iterdir():
        if item.is_file():
            shutil.copy(item, folder)
    return folder


def compare(scene: Path, *options: object, b: object = CONFIG):
    words = ["compare", scene / CONFIG, scene / str(b), scene / "conveyor.mp4", "--frames", "2"]
    return CliRunner().invoke(main, [str(word) for word in (*words, *options)])


def test_the_verdict_comes_first_and_the_exit_code_says_it(scene, tmp_path):
    done = compare(scene)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("same boxes: IoU ≥ 1.0000")
    report = tmp_path / "report.html"
    done = compare(scene, "--conf", "2:0.999", "--set", "2:detected-min-w=30", "-o", report)
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("the threshold departs (pre-cluster-threshold 0.3 → 0.999): ")
    assert (
        "boxes that B lacks, by the key that drops them, in 2 frames: pre-cluster-" in done.stdout
    )
    assert "the threshold departs" in report.read_text()


@pytest.mark.slow
def test_json_has_every_figure(scene):
    done = compare(scene, "--set", "2:net-scale-factor=0.002", "--json", "--precision", "2:fp16")
    assert done.exit_code == 1, done.output
    data = json.loads(done.stdout)
    assert data["blamed"] == ["input"]
    assert data["frames"] == 2
    assert [s["stage"] for s in data["stages"]] == [
        "input", "engine", "parser", "threshold", "cluster", "attach", "labels",
    ]  # fmt: skip
    assert data["first_layer"]["precision"] == "FP16"
    assert {t["stage"] for t in data["times_ms"]} >= {"input", "engine", "parser"}


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--precision", "int8"), 2, "2:int8 is B"),
        (("--precision", "2:int3"), 2, "is not one of"),
        (("--precision", "2:int8"), 4, "int8 is to be compared, and fp32 is built"),
        (("--backend", "2:foo"), 4, "no runtime is called 'foo'"),
        (("-o", "no/such/report.html"), 6, "there is no such folder"),
        (("--set", "topk=3"), 3, "there are 2 models"),
        (("--iou", "nan"), 2, "not in the range"),
    ],
)
def test_wrong_options_are_refused(scene, options, code, text):
    done = compare(scene, *options)
    assert done.exit_code == code
    assert text in done.stderr


def test_models_of_two_kinds_are_refused(scene):
    done = compare(scene, b="config_infer_secondary_characters.txt")
    assert done.exit_code == 3
    assert "A is a detector, B a classifier" in done.stderr


@pytest.mark.slow
def test_classifiers_are_compared_by_their_attributes(scene, tmp_path):
    crops = tmp_path / "crops"
    crops.mkdir()
    with Inferencer.from_config(scene / CONFIG) as detector:
        with open_source(str(scene / "conveyor.mp4")) as source:
            image = next(iter(source))
        for number, found in enumerate(detector(image).objects):
            left, top, width, height = map(int, found.rect)
            crop = image.to_rgb()[top : top + height, left : left + width]
            Image.fromarray(crop).save(crops / f"{number}.png")
    config, report = scene / "config_infer_secondary_characters.txt", tmp_path / "report.html"
    words = ["compare", config, config, crops, "--frames", "6"]
    words += ["--set", "1:classifier-threshold=0.05"]

    def run(*more):
        return CliRunner().invoke(main, [str(word) for word in (*words, *more)])

    done = run("--set", "2:classifier-threshold=0.05")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("same attributes: scores within 0 (")
    assert "each whole image is taken as one object" in done.stderr
    done = run("-o", report, "--set", "2:classifier-threshold=0.999")
    assert done.exit_code == 1
    assert done.stdout.startswith("the parser departs (classifier-threshold 0.05 → 0.999): ")
    assert "attributes lost" in report.read_text()
    assert "<rect" not in report.read_text()


@pytest.mark.slow
def test_other_networks_are_compared_by_their_outputs(scene):
    words = ["compare", *[str(scene / CONFIG)] * 2, str(scene / "conveyor.mp4"), "--frames", "2"]
    words += ["--set", "1:network-type=100", "--set", "2:network-type=100"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("same outputs: same bits in 2 frames")
    done = CliRunner().invoke(main, [*words, "--set", "2:net-scale-factor=0.002"])
    assert done.exit_code == 1
    assert done.stdout.startswith("the input departs (net-scale-factor ")
