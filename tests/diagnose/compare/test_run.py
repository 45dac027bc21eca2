"""Planted differences: the comparison blames their stage, and no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from headrace.config import ModelConfig
from headrace.config.enums import ColorFormat
from headrace.config.overrides import combined, given_keywords
from headrace.diagnose.calibrate.scales import calibrate
from headrace.diagnose.compare import SideSpec, Tolerance, compare
from headrace.diagnose.compare.chain import PURE, Chain, ChainTimes
from headrace.diagnose.compare.sides import open_sides
from headrace.engine.precision import CalibrationTable, export
from headrace.errors import ConfigError, MediaError
from headrace.infer.inferencer import Inferencer
from headrace.infer.model import load_or_build
from headrace.infer.run_options import RunOptions
from headrace.network import network_from_onnx

DECODE = "centre - reach[:, :2], centre + reach[:, 2:]"


def changed(scene: Path, **keys: object) -> ModelConfig:
    return combined(given_keywords(keys)).on(ModelConfig.load(scene / "config_infer_primary.txt"))


def test_a_model_is_the_same_as_itself(planted):
    found = planted()
    assert found.same
    assert found.frames == 4
    assert found.total.matched == found.total.boxes_a == found.total.boxes_b > 20
    assert found.verdict.startswith("same boxes: IoU ≥ 1.0000, scores within 0 ")
    assert not found.blamed
    assert all(stage.same for stage in found.stages)
    assert found.layers is None
    assert not found.worst


@pytest.mark.parametrize(
    ("keys", "stage", "named"),
    [
        ({"net_scale_factor": 0.002}, "input", "net-scale-factor"),
        ({"model_color_format": ColorFormat.BGR}, "input", "model-color-format"),
        ({"maintain_aspect_ratio": 0}, "input", "maintain-aspect-ratio"),
        ({"scaling_filter": 0}, "input", "scaling-filter"),
        ({"symmetric_padding": 1}, "input", "symmetric-padding"),
        ({"pre_cluster_threshold": 0.9}, "threshold", "pre-cluster-threshold"),
        ({"post_cluster_threshold": 0.9}, "threshold", "post-cluster-threshold"),
        ({"nms_iou_threshold": 0.99}, "cluster", "nms-iou-threshold"),
        ({"cluster_mode": 4}, "cluster", "cluster-mode"),
        ({"topk": 2}, "cluster", "topk"),
        ({"detected_min_w": 60}, "attach", "detected-min-w"),
        ({"filter_out_class_ids": (0,)}, "attach", "filter-out-class-ids"),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_a_planted_key_is_blamed_by_its_stage(scene, frames, keys, stage, named):
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    found = compare(cfg, changed(scene, **keys), frames, tolerance=Tolerance(0.999, 0.001))
    assert not found.same
    assert [s.name for s in found.blamed] == [stage]
    assert named in [change.key for change in found.blamed[0].keys]
    assert named in found.verdict
    # one stage differs: alone it has the whole effect
    effect = found.blamed[0].effect
    assert effect.to_dict() == found.total.to_dict()
    assert found.worst
    assert found.to_dict()["blamed"] == [stage]


def test_a_profile_is_blamed_on_what_it_changes(scene, frames):
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    found = compare(cfg, changed(scene, profile="modern"), frames, tolerance=Tolerance(1, 0))
    assert {"input"} <= {s.name for s in found.blamed} <= {"input", "attach", "cluster"}
    assert all("profile" in [k.key for k in s.keys] for s in found.blamed if s.name == "input")


def test_another_decode_is_blamed_on_the_parser(scene, frames):
    text = (scene / "conveyor_parser.py").read_text()
    assert DECODE in text
    other = scene / "other_parser.py"
    other.write_text(text.replace(DECODE, "centre - reach[:, :2], centre + reach[:, :2]"))
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    found = compare(cfg, changed(scene, custom_lib_path=other), frames)
    assert [s.name for s in found.blamed] == ["parser"]
    assert found.blamed[0].candidates.only_a > 0
    assert "custom-lib-path conveyor_parser.py → other_parser.py" in found.verdict


def test_other_names_are_blamed_on_the_labels(scene, frames):
    other = scene / "other_labels.txt"
    other.write_text((scene / "labels.txt").read_text().swapcase())
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    found = compare(cfg, changed(scene, labelfile_path=other), frames)
    assert [s.name for s in found.blamed] == ["labels"]
    assert found.total.label_changed == found.total.boxes_a
    assert "of another label" in found.verdict


def test_a_wrong_weight_is_named_by_its_node(scene, frames):
    model = onnx.load(scene / "detector.onnx")
    place = [i for i, node in enumerate(model.graph.node) if node.op_type == "Conv"][12]
    node = model.graph.node[place]
    weight = next(t for t in model.graph.initializer if t.name == node.input[1])
    values = numpy_helper.to_array(weight).copy()
    values[0] *= -2
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    onnx.save(model, scene / "wrong.onnx")
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    found = compare(cfg, changed(scene, onnx_file=scene / "wrong.onnx"), frames)
    assert [s.name for s in found.blamed] == ["engine"]
    assert found.layers.first.node == node.name
    assert found.layers.by_name
    assert f"the engine departs first at node {node.name} (Conv)" in found.verdict
    before = [t for t in found.layers.tensors if t.decibels == float("inf")]
    assert len(before) == place


@pytest.mark.slow
def test_the_one_layer_in_int8_is_named(scene, frames):
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    calibrate(cfg, [str(scene / "conveyor.mp4")], frames=6)
    network = network_from_onnx(scene / "detector.onnx")
    scales = CalibrationTable.load(scene / "detector.onnx.calib").calibrated
    layers = [n.name for n in network.model.graph if n.op_type == "Conv"]
    done = export(network, "int8", scales, keep=[n for n in layers if n != layers[12]])
    (scene / "int8.onnx").write_bytes(done.to_bytes())
    found = compare(
        cfg, changed(scene, onnx_file=scene / "int8.onnx"), frames, tolerance=Tolerance(1, 0)
    )
    assert found.layers.first.node == layers[12]
    assert found.layers.first.precision == "INT8"
    assert f"node {layers[12]} (Conv, INT8)" in found.verdict


def test_a_precision_and_an_engine_file(scene, frames, tmp_path):
    config = scene / "config_infer_primary.txt"
    found = compare(SideSpec(config), SideSpec(config, precision="fp16"), frames)
    assert found.same
    assert found.verdict.startswith("same boxes: IoU ≥ 0.99")
    engine = next(s for s in found.stages if s.name == "engine")
    assert 40 < engine.decibels < 80
    assert not engine.same
    assert {t.precision for t in found.layers.tensors} == {"FP16"}
    assert not list(scene.glob("*fp16*.engine"))  # kept in memory
    load_or_build(ModelConfig.load(config), save=False).save(tmp_path / "saved.engine")
    assert compare(config, tmp_path / "saved.engine", frames).same
    with pytest.raises(ConfigError, match="both are engines"):
        compare(tmp_path / "saved.engine", tmp_path / "saved.engine", frames)
    with pytest.raises(ConfigError, match="precision and runtime already"):
        compare(config, SideSpec(tmp_path / "saved.engine", precision="fp16"), frames)


def test_several_differences_are_ordered_by_effect(scene, frames):
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    found = compare(cfg, changed(scene, pre_cluster_threshold=0.95, detected_min_w=40), frames)
    assert [s.name for s in found.blamed][:1] == ["threshold"]
    effects = [s.effect.beyond(found.tolerance) for s in found.blamed]
    assert effects == sorted(effects, reverse=True)
    assert len(found.also) == len(found.blamed) - 1
    assert found.lost["pre-cluster-threshold"] > 0


def test_another_input_size_joins_input_and_engine(scene, frames):
    model = onnx.load(scene / "detector.onnx")
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 384
    model.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 640
    del model.graph.value_info[:]
    for value in model.graph.output:
        dims = value.type.tensor_type.shape.dim
        dims[2].dim_value, dims[3].dim_value = 48, 80
    onnx.save(model, scene / "large.onnx")
    other = changed(scene, onnx_file=scene / "large.onnx", infer_dims=(3, 384, 640))
    found = compare(cfg, other, frames[:2])
    assert found.stages[0].name == "input, engine and parser"
    assert found.blamed[0] is found.stages[0]
    assert np.isnan(found.outputs_db)


def test_a_chain_of_one_side_is_its_inferencer(scene, frames):
    config = SideSpec(scene / "config_infer_primary.txt")
    sides = open_sides(config, config, RunOptions())
    with Inferencer.from_config(scene / "config_infer_primary.txt") as inferencer:
        for frame in frames:
            chain = Chain(frame, sides, ChainTimes())
            wanted = inferencer(frame).objects
            for mix in PURE:
                found = chain.objects(mix)
                assert np.array_equal(found.boxes, np.asarray(wanted.rects))
                assert np.array_equal(found.scores, np.asarray(wanted.confidences))
    for side in sides:
        side.close()


def test_nothing_to_compare_is_refused(scene, tmp_path):
    config = scene / "config_infer_primary.txt"
    with pytest.raises(MediaError, match="no frame"):
        compare(config, config, [])
    with pytest.raises(ConfigError, match="frames=0"):
        compare(config, config, [], frames=0)
