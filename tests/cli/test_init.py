"""`headrace init MODEL.onnx`, and bare models on the command line and in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

import headrace as package
from headrace.config import ModelConfig
from tests.infer.recognise.models import filters, node, pixel_rows, rows_of, save
from tests.infer.recognise.test_recognise import paddle, yolov8
from tests.inside import headrace


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image.png"
    Image.fromarray(np.full((48, 64, 3), 90, np.uint8)).save(path)
    return path


def center_face(path: Path) -> Path:
    """Four convolutions on the image, traced with 32x32 pixels and a batch of 10."""
    parts = {"537": 1, "538": 2, "539": 2, "540": 10}
    nodes = [node("Conv", ["x", "w"], ["seen"], pads=[1, 1, 1, 1], strides=[4, 4])]
    nodes += [node("Conv", ["seen", f"w{n}"], [n]) for n in parts]
    weights = {f"w{n}": np.zeros((c, 8, 1, 1), np.float32) for n, c in parts.items()}
    return save(path, nodes, {"x": [10, 3, 32, 32]}, {n: [10, c, 8, 8] for n, c in parts.items()},
                constants=weights | {"w": filters(3, 0.5)})  # fmt: skip


def test_init_writes_a_folder_that_runs(tmp_path: Path, image: Path) -> None:
    yolov8(tmp_path / "m.onnx")
    done = headrace("init", "m.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["m/labels.txt", "m/config_infer.txt"]
    assert "onnx-file=../m.onnx" in (tmp_path / "m" / "config_infer.txt").read_text()
    hint = next(x for x in done.stderr.splitlines() if x.startswith("run it: headrace "))
    words = hint.removeprefix("run it: headrace ").replace("video.mp4", image.name).split()
    ran = headrace(*words[:-2], "--strict", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    again = headrace("init", "m.onnx", cwd=tmp_path)
    assert again.returncode == 1
    assert "are there already" in again.stderr
    assert headrace("init", "m.onnx", "--force", cwd=tmp_path).returncode == 0


def test_a_bare_model_runs_and_says_so_in_three_lines(tmp_path: Path, image: Path) -> None:
    yolov8(tmp_path / "m.onnx")
    done = headrace("run", "m.onnx", image.name, "-o", "out.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    notes = [x.partition("m.onnx: ")[2] for x in done.stderr.splitlines() if "m.onnx: " in x]
    assert [x.split()[0] for x in notes] == ["the", "images:", "from"]
    assert list(tmp_path.glob("m.onnx_*.engine"))
    assert (tmp_path / "out.jsonl").is_file()


def test_a_class_of_a_bare_model_is_set_without_its_count(tmp_path: Path) -> None:
    yolov8(tmp_path / "m.onnx")
    words = ["m.onnx", "--set", "class-attrs-2.topk=3"]
    done = headrace("init", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    cfg = ModelConfig.load(tmp_path / "m" / "config_infer.txt")
    assert (cfg.class_attrs(1).topk, cfg.class_attrs(2).topk) == (300, 3)
    bare = ModelConfig.load(tmp_path / "m.onnx").with_overrides(**{"class-attrs-2.topk": 3})
    assert bare.class_attrs(2) == cfg.class_attrs(2)
    wrong = headrace("init", "m.onnx", "--force", "--set", "class-attrs-9.topk=3", cwd=tmp_path)
    assert wrong.returncode == 3
    assert "beyond num-detected-classes=3" in wrong.stderr


def test_the_engine_that_recognition_builds_is_said_to_be_built(
    tmp_path: Path, image: Path
) -> None:
    rows_of(tmp_path / "m.onnx", np.float32([[0.75, 0.25]]), spread=1.0)
    first, second = (headrace("run", "m.onnx", image.name, cwd=tmp_path).stderr for _ in range(2))
    assert first.count("built from m.onnx") == 1
    assert "built from" not in second
    assert "engine: loaded" in second


def test_options_choose_between_candidates(tmp_path: Path, image: Path) -> None:
    rows_of(tmp_path / "m.onnx", np.float32([[0.75, 0.25]]), spread=400)
    done = headrace("run", "m.onnx", image.name, cwd=tmp_path)
    assert done.returncode == 4
    choice = next(x for x in done.stderr.splitlines() if "(/ 255)" in x).split()[:2]
    chosen = headrace("run", "m.onnx", image.name, *choice, cwd=tmp_path)
    assert chosen.returncode == 0, chosen.stderr
    assert "found 1 class 0" in chosen.stdout


def undecided(path: Path) -> Path:
    """A scaling and a number of classes that nothing tells."""
    names = ["detection_boxes", "detection_scores", "detection_classes", "num_detections"]
    tables = [np.zeros(shape, np.float32) for shape in ((1, 9, 4), (1, 9), (1, 9), (1, 1))]
    return rows_of(path, tables, names=names, producer="tf2onnx", spread=400)


def test_all_that_is_open_is_asked_at_once_and_init_takes_it(tmp_path: Path, image: Path) -> None:
    undecided(tmp_path / "m.onnx")
    refused = headrace("init", "m.onnx", cwd=tmp_path)
    assert refused.returncode == 4
    ran = headrace("run", "m.onnx", image.name, cwd=tmp_path)
    assert ran.stderr.splitlines()[1:] == refused.stderr.splitlines()[1:]
    lines = refused.stderr.splitlines()
    scaling, count = (next(x for x in lines if w in x).split()[:2] for w in ("(/ 255)", "(COCO: "))
    assert "in Python, as keywords: net_scale_factor=1, num_detected_classes=91" in refused.stderr
    done = headrace("init", "m.onnx", *scaling, *count, "--set", "topk=7", "--set",
                 "class-attrs-2.topk=3", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    cfg = ModelConfig.load(tmp_path / "m" / "config_infer.txt")
    assert not [n for n in cfg.notices if n.level == "warning"]
    assert cfg.net_scale_factor == pytest.approx(1 / 255)
    assert cfg.num_detected_classes == 91
    assert (cfg.class_attrs(0).topk, cfg.class_attrs(2).topk) == (7, 3)
    ran = headrace("run", "m/config_infer.txt", image.name, "--strict", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_outputs_that_nothing_reads_and_an_open_scaling(tmp_path: Path, image: Path) -> None:
    rows = np.linspace(-1, 1, 30, dtype=np.float32).reshape(1, 5, 3, 2)
    rows_of(tmp_path / "odd.onnx", [rows, np.ones((1, 6), np.float32)], names=["a", "b"],
            spread=400)  # fmt: skip
    refused = headrace("run", "odd.onnx", image.name, cwd=tmp_path)
    command = next(x for x in refused.stderr.splitlines() if "headrace init" in x)
    assert "--set net-scale-factor=" in command
    done = headrace(*command.split()[1:], "--set", "num-detected-classes=5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "now write it: odd/odd_parser.py" in done.stderr
    cfg = ModelConfig.load(tmp_path / "odd" / "config_infer.txt")
    assert cfg.num_detected_classes == 5
    assert len((tmp_path / "odd" / "labels.txt").read_text().splitlines()) == 5
    factor = command.partition("net-scale-factor=")[2].split()[0]
    assert cfg.net_scale_factor == pytest.approx(float(factor))
    again = headrace("run", "odd.onnx", image.name, "--set", f"net-scale-factor={factor}",
                  cwd=tmp_path)  # fmt: skip
    assert f"-o odd --set net-scale-factor={factor}" in again.stderr


def test_init_of_a_size_that_was_only_traced(tmp_path: Path, image: Path) -> None:
    center_face(tmp_path / "face.onnx")
    refused = headrace("run", "face.onnx", image.name, cwd=tmp_path)
    assert refused.returncode == 4
    assert "headrace init face.onnx --size 640x480" in refused.stderr
    done = headrace("init", "face.onnx", "--size", "128x96", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    copy = onnx.load(tmp_path / "face" / "face_128x96.onnx")
    shape = copy.graph.output[1].type.tensor_type.shape.dim
    assert [d.dim_value for d in shape][1:] == [2, 24, 32]
    ran = headrace("run", "face/config_infer.txt", image.name, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_init_sets_a_size_that_the_model_leaves_open(tmp_path: Path) -> None:
    yolov8(tmp_path / "m.onnx", size=("h", "w"))
    assert headrace("init", "m.onnx", "--size", "64x64", cwd=tmp_path).returncode == 0
    assert ModelConfig.load(tmp_path / "m" / "config_infer.txt").infer_dims == (3, 64, 64)


@pytest.mark.parametrize(("words", "says"), [
    ([], "give MODEL.onnx or --plugin"),
    (["m.onnx", "--plugin", "X"], "give MODEL.onnx or --plugin"),
    (["--plugin", "X", "--cpp"], "go with MODEL.onnx"),
    (["--plugin", "X", "--set", "topk=1"], "go with MODEL.onnx"),
    (["m.onnx", "--size", "64"], "give WIDTHxHEIGHT"),
    (["m.onnx", "--model", "m.onnx"], "--model goes with --plugin"),
])  # fmt: skip
def test_words_that_do_not_go_together(tmp_path: Path, words: list[str], says: str) -> None:
    yolov8(tmp_path / "m.onnx")
    done = headrace("init", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.slow
def test_a_rigid_model_keeps_its_size(tmp_path: Path) -> None:
    rows_of(tmp_path / "m.onnx", pixel_rows(84, 7), spread=500)  # its scaling is undecided
    nodes = [node("Flatten", ["x"], ["flat"]), node("MatMul", ["flat", "w"], ["y"])]
    save(tmp_path / "r.onnx", nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 4]},
         constants={"w": np.zeros((192, 4), np.float32)})  # fmt: skip
    done = headrace("init", "r.onnx", "--size", "16x16", cwd=tmp_path)
    assert done.returncode == 4
    assert "cannot be changed to images of 16x16" in done.stderr
    small = headrace("init", "m.onnx", "--size", "16x16", "-o", "small", cwd=tmp_path)
    assert small.returncode == 4
    assert not list((tmp_path / "small").glob("*"))


def test_bare_models_behind_one_another(tmp_path: Path) -> None:
    paddle(tmp_path / "det.onnx", "Sigmoid", (1, 1, 736, 1280))
    metadata = {"character": "a\nb\nc\nd"}
    paddle(tmp_path / "rec.onnx", "Softmax", (1, 40, 6), metadata=metadata)
    image = np.zeros((64, 64, 3), np.uint8)
    with package.open_pipeline(
        tmp_path / "det.onnx", tmp_path / "rec.onnx", sources=package.ArraySource([image])
    ) as pipeline:
        report = pipeline.run()
    # half the map is text: one region; the reader works on it
    assert [m.component_id for m in report.models] == [1, 2]
    assert report.models[1].inferred == report.objects["text"] == 1
    assert any("it works on the objects found" in n.sentence for n in report.notices)


def test_a_bare_classifier_behind_a_config(
    tmp_path: Path, mean_config: Callable[..., Path]
) -> None:
    rows_of(tmp_path / "c.onnx", np.float32([[0.75, 0.25]]), spread=1.0)
    config = mean_config()
    image = np.full((64, 64, 3), 255, np.uint8)
    with package.open_pipeline(
        config, tmp_path / "c.onnx", sources=package.ArraySource([image])
    ) as pipeline:
        ((_, meta),) = list(pipeline)
    (thing,) = meta.objects
    assert thing.classifiers[0].labels[0].label == "class 0"


def test_a_model_that_does_not_run_says_why_and_only_that(tmp_path: Path) -> None:
    nodes = [node("Conv", ["x", "w"], ["seen"], pads=[1, 1, 1, 1])]
    save(tmp_path / "m.onnx", nodes, {"x": [1, 3, 64, 64]}, {"nowhere": [1, 5]},
         constants={"w": filters(3, 0.5)})  # fmt: skip
    done = headrace("init", "m.onnx", cwd=tmp_path)
    assert done.returncode == 4
    assert "nowhere" in done.stderr
    assert "<no file>" not in done.stderr
    assert "num-detected-classes" not in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_name_too_long_for_an_engine_beside_it_keeps_the_engine_in_memory(
    tmp_path: Path, image: Path
) -> None:
    name = "m" * 245 + ".onnx"
    yolov8(tmp_path / name)
    done = headrace("run", name, image.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "File name too long: headrace's engine is kept in memory" in done.stderr


def test_names_of_a_model_do_not_steer_the_terminal(tmp_path: Path, image: Path) -> None:
    rows = np.zeros((1, 6, 84), np.float32)
    rows[0, :, 0] = [20, 20, 20, 20, 0.9, 0]
    names = str({0: "a\nerror: \x1b[31m" + "z" * 500, 1: "b"})
    rows_of(tmp_path / "m.onnx", rows, metadata={"names": names, "task": "detect",
            "author": "Ultralytics"})  # fmt: skip
    done = headrace("run", "m.onnx", image.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("found ")]
    assert "1 a\\nerror: \\x1b[31mzz" in line
    assert len(line) < 120


def test_force_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    yolov8(tmp_path / "m.onnx")
    folder = tmp_path / "made"
    (folder / "config_infer.txt").mkdir(parents=True)
    done = headrace("init", "m.onnx", "-o", "made", "--force", cwd=tmp_path)
    assert (done.returncode, "config_infer.txt: is a folder" in done.stderr) == (1, True)
    assert [path.name for path in folder.iterdir()] == ["config_infer.txt"]


def test_a_copy_that_was_replaced_comes_back_when_init_fails(tmp_path: Path) -> None:
    rows_of(tmp_path / "m.onnx", pixel_rows(84, 6), metadata={"author": "Ultralytics"})
    copy = tmp_path / "m" / "m_32x32.onnx"
    copy.parent.mkdir()
    copy.write_text("mine")
    options = ("--size", "32x32", "--cpp", "--force")
    done = headrace("init", "m.onnx", *options, cwd=tmp_path)
    assert done.returncode != 0
    assert copy.read_text() == "mine"
