"""The options of a run act in every command that has them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from headrace._core.gpu.cuda import why_no_gpu
from headrace.custom.guard import keeper
from tests import warm
from tests.inside import headrace

Config = Callable[..., Path]
COMMANDS = {
    "run": ("run", "pgie.txt", "a.png"),
    "batch": ("batch", "pgie.txt", "a.png", "-o", "results"),
    "build": ("build", "pgie.txt"),
    "serve": ("serve", "pgie.txt", "--listen", "127.0.0.1:0"),
    "eval": ("eval", "pgie.txt", "--coco", "truth.json", "--images", "."),
    "explain": ("explain", "pgie.txt", "a.png"),
    "compare": ("compare", "pgie.txt", "pgie.txt", "a.png"),
    "record": ("record", "pgie.txt", "a.png", "-o", "a.safetensors"),
    "bench": ("bench", "pgie.txt", "--duration", "0.1"),
}
RUNS = {name: words for name, words in COMMANDS.items() if name not in ("build", "serve")}
# above the frame, and in the middle: the first one is dropped by the rules of 6.2
PARSER = """
import os

def two(layers, network, params):
    w, h = network.width, network.height
    boxes = [[w / 8, -h / 8, w / 4, h / 4], [w / 2, h / 2, w / 4, h / 4]]
    return Detections(boxes, [0.9, 0.22], [0, 0])

def leaves(layers, network, params):
    os._exit(9)
"""


CPP = """
#include "nvdsinfer_custom_impl.h"
extern "C" bool Parse(std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &,
                      NvDsInferParseDetectionParams const &,
                      std::vector<NvDsInferObjectDetectionInfo> &objects) {
    NvDsInferObjectDetectionInfo o = {};
    o.left = 2; o.top = 4; o.width = 6; o.height = 8; o.detectionConfidence = 0.5f;
    objects.push_back(o);
    return true;
}
"""


@pytest.fixture
def scene(mean_config: Config, tmp_path: Path) -> Path:
    """pgie.txt and a.png."""
    mean_config().rename(tmp_path / "pgie.txt")
    Image.new("RGB", (64, 48), (255, 0, 0)).save(tmp_path / "a.png")
    (tmp_path / "truth.json").write_text(json.dumps({
        "images": [{"id": 1, "file_name": "a.png", "width": 64, "height": 48}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [32, 24, 16, 12],
                         "area": 192, "iscrowd": 0}],
        "categories": [{"id": 1, "name": "thing"}],
    }))  # fmt: skip
    return tmp_path


@pytest.fixture
def two(mean_config: Config, scene: Path) -> Path:
    """The scene with a parser of two boxes."""
    mean_config(parser=PARSER, parse_bbox_func_name="two").rename(scene / "pgie.txt")
    return scene


def _found(command: str, scene: Path, *options: str) -> int:
    """Objects that a command finds."""
    json_too = [] if command == "record" else ["--json"]
    words = list(COMMANDS[command])
    if command == "batch":
        words[-1] = f"results{len(list(scene.iterdir()))}"
        words += ["--workers", "1"]
    done = headrace(*words, *options, *json_too, cwd=scene)
    assert done.returncode == 0, done.stderr
    if command == "record":
        found = re.search(r"(\d+) objects?\b", done.stdout)
        assert found is not None
        return int(found[1])
    data = json.loads(done.stdout)
    match command:
        case "run":
            return sum(data["objects"].values())
        case "batch":
            return int(data["objects"])
        case "explain":
            return int(data["models"][0]["objects"])
        case "compare":
            return int(data["objects"]["boxes_a"])
        case _:
            result = data["results"][0]
            return int(result["at_config"]["right"] + result["at_config"]["false"])


@pytest.mark.parametrize("device", ["gpu", "cuda:1234", "cpu,cpu"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sampled
def test_a_name_that_no_device_has_is_wrong_usage(scene: Path, command: str, device: str) -> None:
    done = headrace(*COMMANDS[command], "--device", device, cwd=scene)
    assert done.returncode == 2, done.stderr
    assert "--device" in done.stderr
    assert "cuda:" in done.stderr


@pytest.mark.parametrize("devices", ["cuda,cuda:1", "cuda:0,cuda:0", "cuda:0,", "cpu,cuda:0"])
def test_several_devices_are_different_gpus(scene: Path, devices: str) -> None:
    done = headrace(*COMMANDS["run"], "--device", devices, cwd=scene)
    assert done.returncode == 2, done.stderr
    assert "cuda:0,cuda:1" in done.stderr


@pytest.mark.skipif(why_no_gpu() is None, reason="there is a GPU")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sampled
def test_a_gpu_that_is_not_there_is_an_error(scene: Path, command: str) -> None:
    before = sorted(scene.iterdir())
    done = headrace(*COMMANDS[command], "--device", "cuda", cwd=scene)
    assert done.returncode == 4, done.stderr
    assert "--device cuda: " in done.stderr
    assert "--device cpu runs without one" in done.stderr
    assert [p for p in sorted(scene.iterdir()) if p.suffix == ".engine"] == []
    assert set(before) <= set(scene.iterdir())


def test_the_engine_of_a_backend_has_its_device(scene: Path) -> None:
    done = headrace("build", "pgie.txt", "--device", "cpu", "--backend", "onnxruntime", cwd=scene)
    assert done.returncode == 2
    assert "leave --device out" in done.stderr
    done = headrace("build", "pgie.txt", "--device", "cpu", cwd=scene)
    assert done.returncode == 0, done.stderr
    again = headrace(*COMMANDS["run"], "--device", "cpu", cwd=scene)
    assert "engine: loaded" in again.stderr


COUNTED = [
    pytest.param(name, marks=[pytest.mark.slow] * (name == "batch"))
    for name in RUNS
    if name != "bench"
]


@pytest.mark.parametrize("command", COUNTED)
@pytest.mark.sampled
def test_rules_and_thresholds_of_a_run_act(two: Path, command: str) -> None:
    assert _found(command, two) == 2
    assert _found(command, two, "--generation", "6.2") == 1
    assert _found(command, two, "--profile", "modern") == 0  # in the border; below 0.25
    sides = ("1:", "2:") if command == "compare" else ("",)
    over = [word for s in sides for word in ("--conf", f"{s}0.5", "--labels", f"{s}labels.txt")]
    assert _found(command, two, *over) == 1


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "build"])
def test_a_release_refuses_a_config_without_an_id_on_every_road(scene: Path, command: str) -> None:
    text = (scene / "pgie.txt").read_text()
    (scene / "pgie.txt").write_text(text.replace("gie-unique-id=1\n", ""))
    done = headrace(*COMMANDS[command], "--generation", "9.1", cwd=scene)
    assert done.returncode == 3, done.stderr
    assert "pgie.txt: gie-unique-id is absent" in done.stderr
    assert "generation 9.1 refuses to start without it" in done.stderr


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
@pytest.mark.parametrize("command", [name for name in RUNS if name != "batch"])
@pytest.mark.sampled
def test_a_guarded_library_does_not_end_the_command(
    mean_config: Config, scene: Path, command: str
) -> None:
    mean_config(parser=PARSER, parse_bbox_func_name="leaves").rename(scene / "pgie.txt")
    bare = warm.headrace(*RUNS[command], "--guard", "never", cwd=scene)
    assert bare.returncode == 9
    done = headrace(*RUNS[command], "--guard", "always", cwd=scene)
    assert done.returncode in (0, 1, 5), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.parametrize("command", ["run", "eval", "explain", "record", "show", "lint"])
def test_the_layout_of_boxes_is_the_one_given(
    mean_config: Config, scene: Path, command: str
) -> None:
    (scene / "parse.cpp").write_text(CPP)
    headrace("compile", "parse.cpp", "-o", "libparse.so", cwd=scene)
    mean_config(custom_lib_path="libparse.so", parse_bbox_func_name="Parse").rename(
        scene / "pgie.txt"
    )
    words = RUNS.get(command, (command, "pgie.txt"))
    done = headrace(*words, "--abi", "24", cwd=scene)
    words_of_it = "could not be parsed" if command == "eval" else "24 bytes each, as set"
    assert words_of_it in done.stderr + done.stdout
    assert "24 bytes each, as set" not in headrace(*words, cwd=scene).stderr


def test_options_that_stand_for_keys_are_shown_as_origins(scene: Path) -> None:
    words = ["--profile", "modern", "--abi", "24", "--guard", "never"]
    done = headrace("show", "pgie.txt", *words, "--set-only", cwd=scene)
    for option in ("--profile", "--abi", "--guard"):
        assert re.search(rf"{option}$", done.stdout, re.M)
    linted = headrace("lint", "pgie.txt", "--fix", "--profile", "modern", cwd=scene)
    assert linted.returncode == 2
    twice = headrace("lint", "--together", "pgie.txt", "pgie.txt", "--profile", "modern", cwd=scene)
    assert "there are 2 models" not in twice.stderr


def test_scales_follow_the_profile(scene: Path) -> None:
    words = ("calibrate", "pgie.txt", "--images", "a.png", "--scales-only", "--cache")
    tables = []
    for profile in ("nvinfer", "modern"):
        done = headrace(*words, f"{profile}.calib", "--profile", profile, cwd=scene)
        assert done.returncode == 0, done.stderr
        tables.append((scene / f"{profile}.calib").read_text())
    assert tables[0] != tables[1]


@pytest.mark.slow
def test_a_batch_builds_draws_and_runs_as_asked(scene: Path) -> None:
    words = ("batch", "pgie.txt", "a.png", "--workers", "1", "--video", "-o")
    first = headrace(*words, "first", cwd=scene)
    assert "built from mean.onnx" in first.stderr
    assert "built from mean.onnx" not in headrace(*words, "second", cwd=scene).stderr
    again = headrace(
        *words, "third", "--rebuild", "--palette", "config", "--streams", "2", cwd=scene
    )
    assert again.stderr.count("built from mean.onnx") == 1
    drawn = [next((scene / name).rglob("*.mp4")).read_bytes() for name in ("first", "third")]
    assert drawn[0] != drawn[1]


def test_a_tactic_and_an_engine_say_where_they_run(scene: Path) -> None:
    tactic = headrace("bench", "pgie.txt", "--tactic", "onnxruntime", "--device", "cpu", cwd=scene)
    assert tactic.returncode == 2
    assert "leave --device out" in tactic.stderr
    engine = headrace("bench", "some.engine", "--device", "cpu", cwd=scene)
    assert engine.returncode == 2
    assert "some.engine is an engine of one device" in engine.stderr
