"""sampleOnnxMNIST of NVIDIA/TensorRT, unchanged, with a model that knows ten images."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from headrace.custom.compile.build_library import compile_library
from tests.outside.conftest import checkout


def write_data(folder: Path) -> None:
    """Ten images of noise as digits, and a model whose scores are 20 for the right one, else 0.

    The sample turns pixels into 1 - v / 255 and makes probabilities of the scores itself.
    """
    folder.mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (10, 28, 28), np.uint8)
    for digit, image in enumerate(images):
        (folder / f"{digit}.pgm").write_bytes(b"P5\n28 28\n255\n" + image.tobytes())
    weights = np.linalg.pinv(1 - images.reshape(10, 784) / 255.0) * 20
    kernel = np.zeros((1, 1, 3, 3), np.float32)
    kernel[0, 0, 1, 1] = 1
    tensors = {"kernel": kernel, "weights": weights.astype(np.float32)}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["Input3", "kernel"], ["same"], pads=[1, 1, 1, 1]),
            helper.make_node("Flatten", ["same"], ["flat"]),
            helper.make_node("Gemm", ["flat", "weights"], ["Plus214_Output_0"]),
        ],
        "digits",
        [helper.make_tensor_value_info("Input3", onnx.TensorProto.FLOAT, [1, 1, 28, 28])],
        [helper.make_tensor_value_info("Plus214_Output_0", onnx.TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(data, name) for name, data in tensors.items()],
    )
    opset = helper.make_opsetid("", 13)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "mnist.onnx")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "major"), [("TensorRT-8.6", 8), ("TensorRT", 10)])
def test_the_sample_reads_onnx_and_finds_the_digit(
    outside: Path, tmp_path: Path, name: str, major: int
) -> None:
    root = checkout(outside, name)
    samples, common = root / "samples", root / "samples" / "common"
    program = tmp_path / "sample_onnx_mnist"
    helpers = sorted((root / "shared" / "utils").glob("*.cpp"))  # none in 8.6
    compile_library(
        [samples / "sampleOnnxMNIST" / "sampleOnnxMNIST.cpp", common / "logger.cpp", *helpers],
        program,
        program=True,
        define=[f"NV_TENSORRT_MAJOR={major}"],
        include=[common, samples, root / "shared"],
        flags=["-w"],
    )
    write_data(tmp_path / "data" / "mnist")
    for options in ([], ["--fp16"], ["--int8"]):
        done = subprocess.run([program, *options], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "&&&& PASSED" in done.stdout + done.stderr
