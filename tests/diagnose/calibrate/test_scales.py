"""Calibration of a config: what is seen, resumed bit for bit, refused with words."""

import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from PIL import Image

from headrace.cli import main
from headrace.config import ModelConfig
from headrace.diagnose.calibrate.scales import calibrate, calibration_path, select_frames
from headrace.engine.precision import CalibrationTable
from headrace.engine.precision.collect import ActivationRunner, Collector
from headrace.errors import EngineError, MediaError
from headrace.network import network_from_onnx
from tests.engine.precision.graphs import small_net

SCENE = Path(__file__).parents[3] / "examples" / "conveyor"


@pytest.fixture
def config(mean_config, tmp_path):
    """A config of the small net on 8x8 images, and a folder of 20 images."""
    path = mean_config(width=8, height=8)
    onnx.save(small_net(), tmp_path / "mean.onnx")
    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    for i in range(20):
        pixels = rng.integers(0, 200 + i, (12, 16, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{i}.png")
    return ModelConfig.load(path)


def test_minmax_is_the_largest_value_that_the_config_shows(config, tmp_path):
    images = str(tmp_path / "images")
    report = calibrate(config, [images], method="minmax")
    assert report.path == tmp_path / "mean.onnx.calib"
    assert report.frames == 20
    network = network_from_onnx(tmp_path / "mean.onnx")
    runner = ActivationRunner(network)
    assert list(report.table.scales) == runner.names
    from headrace.infer.preprocess import Preprocessor
    from headrace.media import open_source

    shown = Preprocessor.from_config(config, 8, 8, 3)
    largest = dict.fromkeys(runner.names, 0.0)
    for frame in open_source(images):
        batch = shown.empty(1)
        shown(frame, batch[0])
        for name, values in runner.run(batch).items():
            largest[name] = max(largest[name], float(np.abs(values).max()))
    for name, scale in report.table.scales.items():
        assert scale == pytest.approx(largest[name] / 127, rel=1e-5)
    assert report.table.scales["image"] * 127 <= 1.0
    assert CalibrationTable.load(report.path).to_bytes() == report.table.to_bytes()


@pytest.mark.parametrize("method", ["entropy", "percentile"])
def test_methods_clip_below_the_largest(config, tmp_path, method):
    images = [str(tmp_path / "images")]
    widest = calibrate(config, images, method="minmax", cache=tmp_path / "a").table.scales
    made = calibrate(
        config, images, method=method, percentile=95.0, cache=tmp_path / "b"
    ).table.scales
    assert all(0 < made[n] <= widest[n] * 1.0001 for n in widest)
    if method == "percentile":
        assert made["r1"] < 0.9 * widest["r1"]


@pytest.mark.parametrize("batch_size", [1, 3])
def test_an_interrupted_run_goes_on_and_ends_the_same(config, tmp_path, batch_size, monkeypatch):
    cfg = config.with_overrides(batch_size=batch_size)
    images = [str(tmp_path / "images")]
    whole = calibrate(cfg, images, cache=tmp_path / "whole").table
    seen = []

    def interrupt() -> None:
        seen.append(1)
        if len(seen) == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(cfg, images, cache=tmp_path / "cut", on_frame=interrupt)
    assert not (tmp_path / "cut").exists()
    assert (tmp_path / "cut.partial").exists()
    report = calibrate(cfg, images, cache=tmp_path / "cut")
    assert 9 <= report.resumed <= 11
    assert report.frames == 20
    assert report.table.to_bytes() == whole.to_bytes()
    assert not (tmp_path / "cut.partial").exists()
    assert any("goes on after" in n.sentence for n in report.notices)


@pytest.mark.parametrize("damage", ["other config", "bytes", "cut", "negative"])
def test_a_state_that_does_not_fit_is_told_and_left(config, tmp_path, damage):
    images = [str(tmp_path / "images")]
    count = iter(range(100))

    def interrupt() -> None:
        if next(count) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(config, images, cache=tmp_path / "t", on_frame=interrupt)
    state = tmp_path / "t.partial"
    cfg = config
    if damage == "other config":
        cfg = config.with_overrides(net_scale_factor=0.5)
    elif damage == "bytes":
        state.write_bytes(b"no archive")
    elif damage == "cut":
        state.write_bytes(state.read_bytes()[:500])
    else:
        with np.load(state) as saved:
            parts = {name: saved[name] for name in saved.files}
        parts["frames"] = np.array(-3)
        with open(state, "wb") as file:
            np.savez(file, **parts)
    report = calibrate(cfg, images, cache=tmp_path / "t")
    assert report.resumed == 0
    assert report.frames == 20
    assert any("not continued" in n.sentence for n in report.notices)


def test_a_batch_counted_in_part_is_never_saved(config, tmp_path, monkeypatch):
    """An interruption while histograms are counted must not count a batch twice later."""
    original = Collector.add
    calls = []

    def broken(self, images, count=None):
        calls.append(1)
        if len(calls) == 4:
            self.whole = False
            raise KeyboardInterrupt
        original(self, images, count)

    monkeypatch.setattr(Collector, "add", broken)
    with pytest.raises(KeyboardInterrupt):
        calibrate(config, [str(tmp_path / "images")], cache=tmp_path / "t")
    assert not (tmp_path / "t.partial").exists()


def test_a_model_with_a_fixed_batch(config, tmp_path):
    proto = small_net()
    images = [str(tmp_path / "images")]
    free = calibrate(config, images, method="minmax", cache=tmp_path / "a").table
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 8
    for value in proto.graph.output:
        value.type.tensor_type.shape.dim[0].dim_value = 8
    onnx.save(proto, tmp_path / "mean.onnx")
    report = calibrate(config, images, method="minmax", cache=tmp_path / "b")
    assert report.frames == 20
    for name, scale in free.scales.items():
        assert report.table.scales[name] == pytest.approx(scale, rel=1e-5)


def test_frames_are_spread_evenly(tmp_path):
    for i in range(10):
        Image.new("RGB", (8, 8), (i, 0, 0)).save(tmp_path / f"{i}.png")
    chosen, notices = select_frames([str(tmp_path)], 5)
    assert [int(i * chosen[0].step) for i in range(chosen[0].frames)] == [0, 2, 4, 6, 8]
    assert not notices
    chosen, notices = select_frames([str(tmp_path), str(tmp_path)], 30)
    assert [c.frames for c in chosen] == [10, 10]
    assert "10 frames, 15" in notices[0].sentence


def test_what_is_there_is_not_overwritten(config, tmp_path):
    (tmp_path / "t").write_text("precious")
    images = [str(tmp_path / "images")]
    with pytest.raises(EngineError, match="--overwrite"):
        calibrate(config, images, cache=tmp_path / "t")
    assert (tmp_path / "t").read_text() == "precious"
    for kept in (tmp_path / "t", config.path, config.onnx_file):
        before = kept.read_bytes()
        with pytest.raises(EngineError, match="is not a calibration table and is not overwritten"):
            calibrate(config, images, cache=kept, overwrite=True)
        assert kept.read_bytes() == before
    with pytest.raises(EngineError, match="no such folder"):
        calibrate(config, images, cache=tmp_path / "no" / "t")
    (tmp_path / "t").write_text("TRT-8601-EntropyCalibration2\n")
    calibrate(config, images, cache=tmp_path / "t", overwrite=True)
    assert (tmp_path / "t").read_text().startswith("TRT-100300-EntropyCalibration2\nimage: ")


def test_no_such_source_and_no_model(config, tmp_path):
    with pytest.raises(MediaError):
        calibrate(config, [str(tmp_path / "none")])
    calib = tmp_path / "named.calib"
    assert calibration_path(config.with_overrides(int8_calib_file=calib)) == calib


def test_the_command(tmp_path):
    for name in ("config_infer_primary.txt", "detector.onnx", "labels.txt", "conveyor.mp4"):
        shutil.copy(SCENE / name, tmp_path)
    config = str(tmp_path / "config_infer_primary.txt")
    words = ["calibrate", config, "--video", str(tmp_path / "conveyor.mp4"), "--frames", "3"]
    result = CliRunner().invoke(main, [*words, "--tensorrt", "8.6.1"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "detector.onnx.calib")
    assert "int8-calib-file=detector.onnx.calib" in result.stderr
    table = CalibrationTable.load(tmp_path / "detector.onnx.calib")
    assert table.header == "TRT-8601-EntropyCalibration2"
    assert table.scales["image"] == pytest.approx(1 / 127, rel=0.02)
    assert {"scores", "distances"} <= set(table.scales)
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 4
    assert "--overwrite" in again.output
    assert CliRunner().invoke(main, ["calibrate", config]).exit_code == 2


@pytest.mark.parametrize(
    ("keys", "advice"),
    [
        ("", "to use it: network-mode=1 and int8-calib-file=../{table} in "),
        ("network-mode=1\n", "to use it: int8-calib-file=../{table} in "),
        ("network-mode=1\nint8-calib-file=../{table}\n", ""),
    ],
)
@pytest.mark.sampled
def test_the_command_names_the_keys_that_a_run_still_lacks(tmp_path, keys, advice):
    shutil.copy(SCENE / "detector.onnx", tmp_path)
    shutil.copy(SCENE / "conveyor.mp4", tmp_path)
    table = "detector.onnx.calib"
    config = tmp_path / "folder" / "config.txt"
    config.parent.mkdir()
    text = "[property]\nonnx-file=../detector.onnx\nnet-scale-factor=0.0039215697\n"
    config.write_text(text + "network-type=100\n" + keys.format(table=table))
    words = ["calibrate", str(config), "--video", str(tmp_path / "conveyor.mp4"), "--frames", "2"]
    result = CliRunner().invoke(main, [*words, "--scales-only"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = re.findall("to use it: .* in ", result.stderr)
    assert "".join(found) == advice.format(table=table)
