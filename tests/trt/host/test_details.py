"""The methods of the C++ classes: a source calls them and counts what does not answer as it should.

The same sources are what `docs/_ext/tensorrt_methods.py` counts as tested.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.trt.host.callback_errors import CallbackErrors, collected_errors

LAYERS = (
    "windows", "elements", "sums", "shapes", "places", "control", "attention", "tensors", "refused",
)  # fmt: skip
BUILD = ("builders", "configs", "profiles", "networks", "formulas", "registries")
RUN = ("engines", "contexts", "runtimes", "refitters")
OLD = ("bindings", "plugins", "resources")
PARSER = ("parses", "fails", "parts")


def failures(path: Path, function: str, *arguments: object) -> tuple[str, CallbackErrors]:
    """The checks that fail, and what calls were refused for."""
    check = getattr(ctypes.CDLL(str(path)), function)
    check.restype = ctypes.c_char_p
    with collected_errors() as collected:
        lines = check(*arguments).decode()
    return lines, collected


@pytest.mark.slow
@pytest.mark.parametrize("part", range(len(LAYERS)), ids=LAYERS)
@pytest.mark.sampled
def test_layers(part, compile_host, opened) -> None:
    path = opened(compile_host("api_layers.cpp")).path
    lines, collected = failures(path, "check_layers", part)
    assert lines == "", collected.failures
    if LAYERS[part] != "refused":
        assert collected.failures == []
        return
    reasons = "\n".join(collected.failures)
    for method in ("INetworkDefinition::addMoE", "INetworkDefinition::addDistCollective"):
        assert f"{method}, of TensorRT 10.16, is refused: Headrace runs vision" in reasons
    assert "INetworkDefinition::addRNNv2, of the releases before 8, is refused" in reasons
    assert "ILayer::setNbRanks, of TensorRT 10.16, is refused" in reasons
    assert collected.hints[0] == "use a language-model runtime"


@pytest.mark.parametrize("part", range(len(BUILD)), ids=BUILD)
@pytest.mark.sampled
def test_builders(part, compile_host, opened) -> None:
    path = opened(compile_host("api_build.cpp")).path
    lines, collected = failures(path, "check_build", part)
    assert lines == "", collected.failures


@pytest.mark.parametrize("part", range(len(RUN)), ids=RUN)
@pytest.mark.sampled
def test_engines(part, compile_host, opened) -> None:
    path = opened(compile_host("api_run.cpp")).path
    lines, collected = failures(path, "check_run", part)
    assert lines == "", collected.failures


@pytest.mark.parametrize("part", range(len(OLD)), ids=OLD)
@pytest.mark.sampled
def test_what_releases_before_10_have(part, compile_host, opened) -> None:
    path = opened(compile_host("api_old.cpp", 8)).path
    lines, collected = failures(path, "check_old", part)
    assert lines == "", collected.failures


def _model(*nodes: onnx.NodeProto) -> bytes:
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.ones((2, 2, 1, 1), np.float32), "w"),
            numpy_helper.from_array(np.zeros(2, np.float32), "b"),
        ],
    )  # fmt: skip
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(len(PARSER)), ids=PARSER)
def test_the_parser_of_models(part, compile_host, opened, tmp_path) -> None:
    conv = helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv")
    sound = _model(conv, helper.make_node("Relu", ["c"], ["y"], name="relu"))
    broken = _model(conv, helper.make_node("NoSuchOperator", ["c"], ["y"], name="odd"))
    file = tmp_path / "model.onnx"
    file.write_bytes(sound)
    path = opened(compile_host("api_parser.cpp")).path
    lines, collected = failures(
        path, "check_parser", part, sound, len(sound), str(file).encode(), broken, len(broken)
    )
    assert lines == "", collected.failures
