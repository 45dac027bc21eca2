"""INT8 on real models: what it costs, which layers cost it, and what keeping them brings back."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from PIL import Image

from headrace.cli import main
from headrace.config import ModelConfig
from headrace.config.enums import NetworkMode
from headrace.diagnose.calibrate.scales import calibrate
from headrace.diagnose.compare.sensitivity import sensitivity
from headrace.diagnose.evaluate.box_matching import agreement
from headrace.diagnose.evaluate.truth import read_truth, scored
from headrace.engine.backends import installed_backends
from headrace.engine.precision import CalibrationTable, export
from headrace.engine.precision.explicit import Variants
from headrace.errors import ConfigError, MediaError
from headrace.infer.model import load_or_build
from headrace.infer.model.export import export_onnx
from headrace.media import open_source
from headrace.network import network_from_onnx
from tests.engine.precision.graphs import network_of, ranges_of, run, small_net

EXAMPLES = Path(__file__).parents[3] / "examples"


def sensitive_layers(model):
    """Depthwise convolutions, and the worst other layers that are found in YOLOX-nano."""
    convolutions = [n for n in onnx.load(model).graph.node if n.op_type == "Conv"]
    depthwise = [n.name for n in convolutions for a in n.attribute if a.name == "group" and a.i > 1]
    return sorted({*depthwise, "Conv_44", "Conv_47"})


IMAGE = np.random.default_rng(1).random((2, 3, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """The demo scene with a table from 20 frames of its clip."""
    folder = tmp_path_factory.mktemp("scene")
    for item in (EXAMPLES / "conveyor").iterdir():
        if item.is_file():
            shutil.copy(item, folder)
    cfg = ModelConfig.load(folder / "config_infer_primary.txt")
    calibrate(cfg, [str(folder / "conveyor.mp4")], frames=20, method="percentile")
    return folder


def test_a_variant_is_the_export_that_keeps_the_same_layers():
    network = network_of(small_net())
    scales = {n: r / 127 for n, r in ranges_of(small_net(), {"image": IMAGE}).items()}
    variants = Variants(network, scales)
    assert list(variants.layers.values()) == ["Conv", "Conv", "MatMul"]
    for keep in ([], ["conv1"], ["conv1", "product"], list(variants.layers)[1:]):
        made = variants.network(keep).to_proto().SerializeToString()
        wanted = export(network, "int8", scales, keep=keep).to_bytes()
        for a, b in zip(run(made, {"image": IMAGE}), run(wanted, {"image": IMAGE}), strict=True):
            assert np.array_equal(a, b)
    everything = variants.network(variants.layers).to_proto()
    assert not {"QuantizeLinear", "DequantizeLinear"} & {n.op_type for n in everything.graph.node}


@pytest.mark.slow
def test_int8_costs_the_demo_at_most_one_point(scene):
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    table = CalibrationTable.load(scene / "detector.onnx.calib")
    report = sensitivity(
        cfg,
        [str(scene / "conveyor.mp4")],
        table.calibrated,
        frames=40,
        truth=scene / "truth.json",
    )
    assert report.measure == "mAP50-95"
    assert report.reference > 85
    assert report.reached
    assert report.reference - report.steps[-1].quality <= 1.0
    assert len(report.layers) == 33
    noises = [layer.noise for layer in report.layers]
    assert noises == sorted(noises, reverse=True)
    assert 10 < report.layers[0].decibels < 40


@pytest.mark.slow
def test_a_layer_made_bad_is_found_and_kept(scene):
    """One tensor's scale is far too small: its layer comes first, and is enough to keep."""
    cfg = ModelConfig.load(scene / "config_infer_primary.txt")
    scales = CalibrationTable.load(scene / "detector.onnx.calib").calibrated
    network = network_from_onnx(scene / "detector.onnx")
    layer = next(n for n in network.model.graph if n.name == "to8.1.point.conv")
    scales[layer.inputs[0].name] /= 200
    report = sensitivity(cfg, [str(scene / "conveyor.mp4")], scales, frames=10)
    assert report.measure == "agreement"
    assert report.reference == 100
    assert report.layers[0].name == "to8.1.point.conv"
    assert report.steps[0].quality < 90
    assert report.kept == ("to8.1.point.conv",)
    assert report.reached
    assert report.line == "layer-device-precision=to8.1.point.conv:fp32:gpu"


@pytest.mark.slow
def test_the_line_keeps_the_layer_in_exports_and_engines(scene, tmp_path):
    text = (scene / "config_infer_primary.txt").read_text()
    extra = "layer-device-precision=to8.1.point.conv:fp32:gpu;gone:fp32:gpu;scores:int8:gpu\n"
    for name in ("labels.txt", "detector.onnx", "conveyor_parser.py", "detector.onnx.calib"):
        shutil.copy(scene / name, tmp_path)
    keys = "[property]\nint8-calib-file=detector.onnx.calib\n" + extra
    (tmp_path / "config.txt").write_text(text.replace("[property]\n", keys))
    cfg = ModelConfig.load(tmp_path / "config.txt")
    done = export_onnx(cfg, tmp_path / "int8.onnx", "int8")
    assert done.kept == {"to8.1.point.conv": "asked for"}
    assert any("'gone'" in n.sentence for n in done.notices if n.level == "warning")
    plan = load_or_build(cfg.with_overrides(network_mode=NetworkMode.INT8))
    assert plan.header.precision == "int8"
    assert any("32 of 33 layers" in n.sentence for n in plan.decisions)
    for bad in ("scores:fp64:gpu", "scores", "scores:fp32:cpu", ":fp32:gpu"):
        with pytest.raises(ConfigError, match="layer:precision:device"):
            export_onnx(
                cfg.with_overrides(layer_device_precision=(bad,)), tmp_path / "x.onnx", "fp16"
            )


def test_a_classifier_is_only_ranked(mean_config, tmp_path):
    import onnx

    path = mean_config(width=8, height=8, network_type=100, parse_bbox_func_name=None)
    onnx.save(small_net(), tmp_path / "mean.onnx")
    Image.fromarray(np.full((8, 8, 3), 90, np.uint8)).save(tmp_path / "p.png")
    scales = {n: r / 127 for n, r in ranges_of(small_net(), {"image": IMAGE}).items()}
    report = sensitivity(ModelConfig.load(path), [str(tmp_path / "p.png")], scales)
    assert report.reference is None
    assert len(report.layers) == 3
    assert "ranked" in report.notices[-1].sentence


@pytest.mark.slow
def test_the_command_tells_all(scene):
    words = ["calibrate", str(scene / "config_infer_primary.txt"), "--video"]
    words += [str(scene / "conveyor.mp4"), "--frames", "8", "--sensitivity", "--json"]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert "frames" not in said  # the table that is there is used
    assert said["sensitivity"]["measure"] == "agreement"
    assert len(said["sensitivity"]["layers"]) == 33
    assert CliRunner().invoke(main, [*words[:4], "--max-loss", "2"]).exit_code == 2


class TestTruth:
    def coco(self, tmp_path, **changes):
        data = {
            "images": [{"id": 7, "file_name": "a.png"}, {"id": 3, "file_name": "b.png"}],
            "categories": [{"id": 5, "name": "x"}, {"id": 2, "name": "y"}],
            "annotations": [
                {"image_id": 7, "category_id": 5, "bbox": [1, 2, 3, 4]},
                {"image_id": 3, "category_id": 2, "bbox": [5, 6, 7, 8], "iscrowd": 1},
            ],
        } | changes
        (tmp_path / "t.json").write_text(json.dumps(data))
        return tmp_path / "t.json"

    def test_images_and_classes(self, mean_config, tmp_path):
        cfg = ModelConfig.load(mean_config(num_detected_classes=2))
        for name in ("a.png", "b.png"):
            Image.new("RGB", (8, 8)).save(tmp_path / name)
        chosen, truths, notices = read_truth(self.coco(tmp_path), [], cfg, 10)
        assert [Path(c.name).name for c in chosen] == ["b.png", "a.png"]
        # no category is called as a label is: they are classes in the order of their ids
        assert [t.class_ids.tolist() for t in truths] == [[0], [1]]
        assert truths[0].crowd.tolist() == [True]
        assert "paired in their order" in notices[0].sentence
        (tmp_path / "labels.txt").write_text("other\ny\nx\n")
        cfg = cfg.with_overrides(num_detected_classes=3)
        _, truths, _ = read_truth(self.coco(tmp_path), [str(tmp_path)], cfg, 10)
        assert [t.class_ids.tolist() for t in truths] == [[1], [2]]

    @pytest.mark.parametrize(
        "changes",
        [
            {"annotations": [{"image_id": 7, "category_id": 9, "bbox": [1, 2, 3, 4]}]},
            {"annotations": [{"image_id": 7, "category_id": 5, "bbox": [1, 2, 3]}]},
            {"annotations": 5},
            {"images": None},
            {},  # no image is there
        ],
    )
    def test_refused_with_words(self, mean_config, tmp_path, changes):
        cfg = ModelConfig.load(mean_config())
        with pytest.raises(MediaError, match=r"truth|annotation"):
            read_truth(self.coco(tmp_path, **changes), [], cfg, 10)


@pytest.mark.slow
@pytest.mark.data
def test_int8_yolox_finds_what_fp32_finds(data_dir, tmp_path):
    """With its depthwise convolutions in FP32, on every CPU runtime, from the config."""
    for item in (EXAMPLES / "yolox").iterdir():
        shutil.copy(item, tmp_path)
    shutil.copy(data_dir / "models" / "yolox_nano.onnx", tmp_path)
    cfg = ModelConfig.load(tmp_path / "config_infer_primary.txt")
    images, clip = str(data_dir / "images"), str(data_dir / "videos" / "car-detection.mp4")
    calibrate(cfg, [images, clip], frames=25, method="percentile", cache=tmp_path / "t.calib")
    kept = sensitive_layers(tmp_path / "yolox_nano.onnx")
    cfg = cfg.with_overrides(
        batch_size=1,
        network_mode=NetworkMode.INT8,
        int8_calib_file=tmp_path / "t.calib",
        layer_device_precision=tuple(f"{name}:fp32:gpu" for name in kept),
    )
    frames = [*open_source(images)]
    frames += [f for i, f in enumerate(open_source(clip)) if i % 7 == 5][:50]
    assert len(frames) == 55

    def found(plan):
        return scored(cfg, plan.open_session(), frames)

    reference = found(load_or_build(cfg, precision="fp32"))
    assert sum(int((s.scores >= 0.5).sum()) for s in reference) >= 25
    runtimes = [r for r in installed_backends() if r in ("onnxruntime", "openvino")]
    for runtime in runtimes:
        plan = load_or_build(cfg, backend=runtime)
        assert plan.header.precision == "int8"
        told = f"{113 - len(kept)} of 113 layers with weights compute in INT8"
        assert any(told in n.sentence for n in plan.decisions)
        assert agreement(reference, found(plan)) >= 0.95, runtime
    half = cfg.with_overrides(layer_device_precision=())
    assert agreement(reference, found(load_or_build(half, precision="fp16"))) == 1
