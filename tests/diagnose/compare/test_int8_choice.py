"""INT8 by `headrace calibrate` with no further option: how many boxes stay, and who says so."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from PIL import Image

from headrace.cli import main
from headrace.config import ModelConfig
from headrace.config.enums import ClusterMode, NetworkMode
from headrace.diagnose.calibrate.scales import select_frames
from headrace.diagnose.compare import int8_choice
from headrace.diagnose.compare.int8_agreement import Judge, moved
from headrace.diagnose.compare.int8_choice import choose_int8
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.diagnose.evaluate.truth import scored
from headrace.engine.precision import CalibrationTable
from headrace.engine.precision.choice import Agreement, Int8Choice
from headrace.infer.model import load_or_build
from headrace.infer.model.export import export_onnx
from headrace.media import open_source
from tests.engine.precision.graphs import ranges_of, small_net

EXAMPLES = Path(__file__).parents[3] / "examples"


def invoke(*words):
    return CliRunner().invoke(main, [str(w) for w in words], catch_exceptions=False)


def copied_scene(folder):
    """Copy the demo scene, whose config names a table that is not there."""
    for item in (EXAMPLES / "conveyor").iterdir():
        if item.is_file():
            shutil.copy(item, folder)
    path = folder / "config_infer_primary.txt"
    keys = "[property]\nint8-calib-file=detector.calib\n"
    path.write_text(path.read_text().replace("[property]\n", keys))
    return path


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """The demo scene, calibrated on 16 frames of its clip."""
    folder = tmp_path_factory.mktemp("scene")
    path = copied_scene(folder)
    result = invoke("calibrate", path, "--video", folder / "conveyor.mp4", "--frames", 16, "--json")
    assert result.exit_code == 0, result.output
    return folder, json.loads(result.stdout)


def held_out(cfg, video, used, runtimes=("onnxruntime", "openvino"), most=60):
    """The agreement on frames that were not calibrated on, at the config's thresholds."""
    [clip], _ = select_frames([str(video)], used)
    seen = {int(i * clip.step) for i in range(clip.frames)}
    with open_source(str(video), live=False) as source:
        frames = [f for i, f in enumerate(source) if i not in seen]
    frames = frames[:: max(1, len(frames) // most)]
    plain = load_or_build(cfg.with_overrides(network_mode=NetworkMode.FP32), rebuild=True)
    reference = scored(cfg, plain.open_session(), frames)
    int8 = cfg.with_overrides(network_mode=NetworkMode.INT8)
    judge, figures = replace(Judge.of(cfg), margins=(1.0,)), {}
    for runtime in runtimes:
        plan = load_or_build(int8, backend=runtime, rebuild=True)
        assert plan.header.precision == "int8"
        found = scored(cfg, plan.open_session(), frames)
        figures[runtime] = judge.agreement(reference, found, runtime)
    return figures


@pytest.mark.slow
def test_the_demo_keeps_its_boxes_on_other_frames(scene):
    folder, said = scene
    assert said["agreement"]["share"] >= 0.95
    assert said["agreement"]["frames"] == 16
    assert len(said["keep"]) <= 6
    assert said["layers"] == 33
    cfg = ModelConfig.load(folder / "config_infer_primary.txt")
    for figure in held_out(cfg, folder / "conveyor.mp4", 16).values():
        assert figure.share >= 0.95


@pytest.mark.slow
def test_builds_and_runs_show_the_figure(scene, tmp_path):
    folder, _ = scene
    shutil.copytree(folder, tmp_path / "a")
    config, table = tmp_path / "a" / "config_infer_primary.txt", tmp_path / "a" / "detector.calib"
    beside = tmp_path / "a" / "detector.calib.json"
    built = invoke("build", config, "--precision", "int8")
    assert "INT8 agrees with FP32" in built.stderr, built.stderr
    config.write_text(config.read_text().replace("network-mode=0", "network-mode=1"))
    run = ("run", config, folder / "conveyor.mp4", "--limit", "2")
    assert "INT8 agrees with FP32" in invoke(*run).stderr

    choice = Int8Choice.from_json(beside.read_bytes())
    figure = msgspec.structs.replace(choice.agreement, equal=choice.agreement.fp32 // 2)
    msgspec.structs.replace(choice, agreement=figure).save(table)
    poor = invoke("build", config, "--precision", "int8")
    assert poor.exit_code == 0
    assert "less than 95 %" in poor.stderr
    assert invoke("build", config, "--precision", "int8", "--strict").exit_code != 0
    assert invoke(*run, "--strict").exit_code != 0

    beside.unlink()
    plain = invoke("build", config, "--precision", "int8")
    assert plain.exit_code == 0
    assert "agrees with FP32 is not known" in plain.stderr
    assert "33 of 33 layers" in plain.stderr


@pytest.mark.slow
def test_exports_have_what_was_chosen_with_zero_points_of_0(scene, tmp_path):
    folder, said = scene
    cfg = ModelConfig.load(folder / "config_infer_primary.txt")
    done = export_onnx(cfg, tmp_path / "int8.onnx", "int8")
    assert set(said["keep"]) <= set(done.kept)
    graph = onnx.load(tmp_path / "int8.onnx").graph
    values = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    zeros = [values[n.input[2]] for n in graph.node if n.op_type == "QuantizeLinear"]
    assert zeros
    assert all(z.dtype == np.int8 and not z.any() for z in zeros)
    assert any(name.endswith("_even") for n in graph.node for name in n.output)


@pytest.mark.slow
def test_a_new_table_takes_away_the_old_figure(scene, tmp_path):
    folder, _ = scene
    shutil.copytree(folder, tmp_path / "a")
    config = tmp_path / "a" / "config_infer_primary.txt"
    words = ("calibrate", config, "--video", folder / "conveyor.mp4", "--frames", 2, "--overwrite")
    assert invoke(*words, "--scales-only").exit_code == 0
    assert not (tmp_path / "a" / "detector.calib.json").exists()


@pytest.mark.slow
def test_without_a_parser_the_table_is_written_and_the_reason_said(tmp_path):
    config = copied_scene(tmp_path)
    (tmp_path / "conveyor_parser.py").write_text("def other(): pass\n")
    words = ("calibrate", config, "--video", tmp_path / "conveyor.mp4", "--frames", 2)
    result = invoke(*words)
    assert result.exit_code == 0
    assert "agreement of INT8 with FP32 is not measured" in result.stderr
    assert (tmp_path / "detector.calib").exists()


def test_a_model_without_boxes_gets_ranges_alone(mean_config, tmp_path):
    path = mean_config(width=8, height=8, network_type=100, parse_bbox_func_name=None)
    onnx.save(small_net(), tmp_path / "mean.onnx")
    Image.fromarray(np.full((8, 8, 3), 90, np.uint8)).save(tmp_path / "p.png")
    image = np.random.default_rng(1).random((2, 3, 8, 8)).astype(np.float32)
    ranges = ranges_of(small_net(), {"image": image})
    table = CalibrationTable.of({n: r / 127 for n, r in ranges.items()})
    done = choose_int8(ModelConfig.load(path), [str(tmp_path / "p.png")], table, frames=1)
    assert done.choice.agreement is None
    assert done.choice.keep == ()
    assert "image" in done.choice.tensors
    assert "detectors on whole frames only" in done.notices[-1].sentence
    assert 20 < done.notices[-1].data["decibels"] < 80
    saved = type(done.choice).from_json(done.choice.to_bytes())
    assert saved.notice("table").sentence == done.notices[-1].sentence


def boxes(*rows):
    data = np.array(rows, np.float64).reshape(-1, 6)
    return Scored(data[:, :4], data[:, 4].astype(np.int64), data[:, 5])


def judge_of(mean_config, **keys):
    """At the config's thresholds alone."""
    cfg = ModelConfig.load(mean_config(**keys))
    return replace(Judge.of(cfg), margins=(1.0,))


def test_boxes_agree_each_once_in_class_and_place(mean_config):
    judge = judge_of(mean_config)

    def agreement(*two):
        return judge.agreement([two[0]], [two[1]], "onnxruntime")

    true = boxes((0, 0, 10, 10, 1, 0.9), (50, 0, 10, 10, 1, 0.8))
    same = agreement(true, true)
    assert (same.fp32, same.int8, same.equal, same.share) == (2, 2, 2, 1.0)
    other = boxes((0, 0, 10, 10, 2, 0.9), (54, 0, 10, 10, 1, 0.8))
    assert agreement(true, other).equal == 0
    twice = boxes((0, 0, 10, 10, 1, 0.9), (1, 0, 10, 10, 1, 0.7), (50, 0, 10, 10, 1, 0.8))
    found = agreement(true, twice)
    assert (found.int8, found.equal) == (3, 2)
    assert found.share == pytest.approx(0.8)
    nothing = boxes()
    assert agreement(true, nothing).share == 0
    assert agreement(nothing, nothing).share == 1


def test_boxes_are_counted_at_thresholds_around_that_of_their_class():
    cfg = ModelConfig.load(EXAMPLES / "conveyor" / "config_infer_primary.txt")
    rare = replace(cfg.all_classes, pre_cluster_threshold=0.8)
    cfg = cfg.with_overrides(
        all_classes=replace(cfg.all_classes, pre_cluster_threshold=0.4),
        classes={1: rare},
        cluster_mode=ClusterMode.NMS,
    )
    judge = Judge.of(cfg)
    assert judge.cfg.all_classes.pre_cluster_threshold == pytest.approx(0.3)
    assert judge.cfg.classes[1].pre_cluster_threshold == pytest.approx(0.6)
    true = boxes((0, 0, 10, 10, 0, 0.41), (50, 0, 10, 10, 1, 0.81))
    found = judge.agreement([true], [true], "onnxruntime")
    # of 0.75, 0.87, 1, 1.15 and 1.33 times the threshold the first three are reached
    assert (found.thresholds, found.fp32, found.equal) == (5, 6, 6)
    weaker = boxes((0, 0, 10, 10, 0, 0.36), (50, 0, 10, 10, 1, 0.9))
    found = judge.agreement([true], [weaker], "onnxruntime")
    assert (found.fp32, found.int8, found.equal) == (6, 5, 5)


def test_clusters_other_than_nms_are_judged_at_the_threshold_alone():
    cfg = ModelConfig.load(EXAMPLES / "conveyor" / "config_infer_primary.txt")
    judge = Judge.of(cfg.with_overrides(cluster_mode=ClusterMode.DBSCAN))
    assert judge.margins == (1.0,)
    assert judge.cfg.all_classes == cfg.all_classes


def test_a_box_that_crosses_the_threshold_has_moved_little():
    true = [boxes((0, 0, 10, 10, 1, 0.9), (50, 0, 10, 10, 1, 0.31))]
    assert moved(true, true) == pytest.approx(0)
    assert moved(true, [boxes((0, 0, 10, 10, 1, 0.9))]) == pytest.approx(0)
    shifted = [boxes((0, 0, 10, 10, 1, 0.8), (50, 0, 10, 10, 1, 0.31))]
    assert moved(true, shifted) == pytest.approx(0.005)
    assert moved(true, [boxes((0, 0, 10, 10, 1, 0.8))]) == pytest.approx(0.01 * 3 / 2)
    assert moved(true, [boxes()]) == float("inf")


def test_a_box_is_held_against_the_nearest_one():
    """Beside each other: the surer one of INT8 is not the partner of the surer one of FP32."""
    true = [boxes((0, 0, 10, 10, 1, 0.9), (2, 0, 10, 10, 1, 0.8))]
    found = [boxes((2, 0, 10, 10, 1, 0.85), (0, 0, 10, 10, 1, 0.84))]
    assert moved(true, found) == pytest.approx((0.06**2 + 0.05**2) / 2)


@pytest.mark.slow
def test_of_counts_that_are_good_enough_the_best_is_taken(scene, monkeypatch):
    folder, _ = scene
    shares = iter([0.90, 0.955, 0.96])  # 0, 4 and 5 of 33 layers; 8 are too many to be tried
    monkeypatch.setattr(int8_choice, "_STEPS", (0, 4, 5, 8))
    monkeypatch.setattr(int8_choice._Search, "_ranked", lambda _, layers: layers)
    monkeypatch.setattr(
        Judge,
        "agreement",
        lambda *_: Agreement(
            runtime="onnxruntime", weight_bits=8, frames=4, fp32=1000, int8=1000,
            equal=round(1000 * next(shares)),
        ),
    )  # fmt: skip
    cfg = ModelConfig.load(folder / "config_infer_primary.txt")
    table = CalibrationTable.load(folder / "detector.calib")
    done = choose_int8(cfg, [str(folder / "conveyor.mp4")], table, frames=4)
    assert len(done.choice.keep) == 5
    assert done.choice.agreement.equal == 960


@pytest.mark.slow
def test_yolox_keeps_its_boxes_on_other_frames(data_dir, tmp_path):
    shutil.copytree(EXAMPLES / "yolox", tmp_path, dirs_exist_ok=True)
    shutil.copy(data_dir / "models" / "yolox_nano.onnx", tmp_path)
    video, config = data_dir / "videos" / "car-detection.mp4", tmp_path / "config.txt"
    text = (tmp_path / "config_infer_primary.txt").read_text()
    config.write_text(text.replace("[property]", "[property]\nint8-calib-file=yolox.calib"))
    result = invoke("calibrate", config, "--video", video, "--frames", 150, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["layers"] == 113
    assert len(said["keep"]) <= 20
    for figure in held_out(ModelConfig.load(config), video, 150, most=240).values():
        assert figure.equal >= 0.95 * figure.fp32, figure.text
