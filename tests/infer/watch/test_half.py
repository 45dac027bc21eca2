"""FP16 of a config, tried on the first frames: what is said, what is not, and the two ways."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from headrace import ArraySource, open_pipeline
from headrace.config import ModelConfig
from headrace.infer.watch.half_trial import try_half
from tests.engine.tuning.test_half_check import net

CONFIG = """[property]
onnx-file=net.onnx
network-mode={mode}
network-type=100
net-scale-factor=0.00392156862745098
gie-unique-id=1
output-tensor-meta=1
"""


@pytest.fixture
def findings(tmp_path):
    """Runs a made network over a made video, and gives the findings by code."""

    def run(first=1e4, second=1e-4, *, mode=2, frames=12, keys=""):
        onnx.save(net(first, second), tmp_path / "net.onnx")
        path = tmp_path / "config.txt"
        path.write_text(CONFIG.format(mode=mode) + keys)
        images = [np.full((32, 32, 3), 100 + 5 * i, np.uint8) for i in range(1, frames + 1)]
        outputs = []
        with open_pipeline(path, sources=ArraySource(images)) as pipeline:
            for _, meta in pipeline:
                outputs += [t["scores"] for t in meta.tensors]
            report = pipeline.notices
        return {n.code: n for n in report}, outputs

    return run


@pytest.mark.parametrize("frames", [2, 12, 30])
def test_an_overflow_is_told_with_a_way_out_that_was_tried(findings, frames):
    told, outputs = findings(frames=frames)
    found = told["fp16-overflow"]
    assert found.level == "warning"
    assert found.where.endswith("config.txt:3")
    assert found.data["layer"] == "scale_up"
    assert 65504 < found.data["largest"] < 1e6
    assert found.data["outputs"] == ["scores"]
    assert "here FP32 is computed" in f"{found}"
    assert np.isfinite(outputs).all()
    pins = found.advice[0].split()[0]
    assert pins == "layer-device-precision=" + ";".join(
        f"{name}:fp32:gpu" for name in ("scale_up", "relu", "shift", "scale_down")
    )
    told, _ = findings(frames=frames, keys=f"{pins}\n")
    assert not {"fp16-overflow", "fp16-values-lost"} & set(told)


def test_the_full_simulation_gives_what_fp16_gives(findings):
    told, outputs = findings(keys="fp16-simulation=full\n")
    assert not np.isfinite(outputs).all()
    assert "fp16-overflow" in told
    assert "here FP32" not in f"{told['fp16-overflow']}"
    assert "outputs-not-finite" not in told  # it has its reason already
    assert "rounds each result to FP16" in f"{told['layers-precision']}"
    told, halves = findings(10.0, 0.1, keys="fp16-simulation=full\n")
    assert not {"fp16-overflow", "outputs-not-finite"} & set(told)
    _, singles = findings(10.0, 0.1)
    assert 0 < np.abs(np.subtract(halves, singles)).max() < 0.05


def test_small_values_that_become_0_are_told(findings):
    told, _ = findings(1e-9, 6e4)
    found = told["fp16-values-lost"]
    assert found.data["layer"] == "scale_up"
    assert "tried on these images" in found.advice[0]


@pytest.mark.parametrize(
    ("first", "second", "mode", "keys"),
    [(1e4, 1e-4, 0, ""), (1e4, 1e-4, 2, "fp16-simulation=off\n"), (10.0, 0.1, 2, "")],
)
def test_nothing_is_said_where_nothing_is_wrong_or_asked(findings, first, second, mode, keys):
    told, _ = findings(first, second, mode=mode, keys=keys)
    assert not [code for code in told if code.startswith("fp16-")]


def test_int8_without_a_table_is_fp16_in_the_original(findings):
    assert "fp16-overflow" in findings(mode=1)[0]


def test_noise_takes_the_place_of_images(tmp_path):
    onnx.save(net(1e4, 1e-4), tmp_path / "net.onnx")
    cfg = ModelConfig(onnx_file=tmp_path / "net.onnx", net_scale_factor=1 / 255, batch_size=1)
    assert try_half(cfg, ()).fault.layer == "scale_up"
