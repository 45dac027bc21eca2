"""INT8 of models that hold their scales themselves: every road leaves the graph as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from headrace.config import ModelConfig
from headrace.config.enums import NetworkMode
from headrace.diagnose.calibrate.scales import calibrate
from headrace.engine import BuildOptions, build
from headrace.engine.precision import CalibrationTable
from headrace.errors import EngineError
from headrace.infer.model import load_or_build
from headrace.infer.model.export import export_onnx
from headrace.infer.model.precision import export_precision
from headrace.network import network_from_onnx
from tests.engine.precision.graphs import model

OWN = "the scales are in the model"


@pytest.fixture
def quantised(tmp_path: Path) -> Path:
    """A convolution behind a pair of nodes that quantise."""
    weights = {"w": np.ones((2, 3, 1, 1), np.float32), "s": np.float32(1 / 64),
               "z": np.int8(0)}  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["image", "s", "z"], ["bytes"]),
        helper.make_node("DequantizeLinear", ["bytes", "s", "z"], ["back"]),
        helper.make_node("Conv", ["back", "w"], ["out"]),
    ]
    shapes: Any = {"image": ["n", 3, 4, 4]}, {"out": ["n", 2, 4, 4]}
    onnx.save(model(nodes, *shapes, weights), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("mode", [NetworkMode.INT8, NetworkMode.BEST])
@pytest.mark.parametrize("table", [False, True])
def test_the_graph_is_built_as_it_is(quantised: Path, mode: NetworkMode, table: bool) -> None:
    path = quantised.with_name("cal.txt")
    if table:
        CalibrationTable.of({"image": 0.1, "back": 0.1}, "TRT-8601-EntropyCalibration2").save(path)
    cfg = ModelConfig(
        onnx_file=quantised, network_mode=mode, int8_calib_file=path if table else None
    )
    for start in ("built", "loaded"):
        plan = load_or_build(cfg)
        assert plan.path is not None
        assert plan.path.name == "m.onnx_b1_gpu0_int8.engine"
        told = [n for n in plan.decisions if OWN in n.sentence]
        assert [(n.code, n.level) for n in told] == [("int8-own-scales", "info")], start
        assert not [n for n in plan.decisions if n.level == "warning"], start


def test_a_build_without_a_config_says_so_too(quantised: Path) -> None:
    plan = build(network_from_onnx(quantised), BuildOptions(precision="int8"))
    assert [n.code for n in plan.decisions if "scale" in n.sentence] == ["int8-own-scales"]


def test_the_exported_file_has_the_same_nodes(quantised: Path) -> None:
    cfg = ModelConfig(onnx_file=quantised, network_mode=NetworkMode.INT8)
    precision, notices = export_precision(cfg)
    assert (precision, [n.level for n in notices]) == ("fp32", ["info"])
    export_onnx(cfg, quantised.with_name("out.onnx"), precision)
    kinds = [n.op_type for n in onnx.load(quantised.with_name("out.onnx")).graph.node]
    assert kinds == ["QuantizeLinear", "DequantizeLinear", "Conv"]


def test_a_table_is_not_made(quantised: Path) -> None:
    cfg = ModelConfig(onnx_file=quantised, network_mode=NetworkMode.INT8)
    with pytest.raises(EngineError, match=OWN) as failure:
        calibrate(cfg, [str(quantised)])
    assert "without int8-calib-file" in str(failure.value)
