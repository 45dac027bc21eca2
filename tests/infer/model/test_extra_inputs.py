"""Inputs beside the image, filled once by a custom library: Python and C++."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from headrace.custom import include_dir
from headrace.errors import CustomLibraryError, HeadraceError
from headrace.infer.inferencer import Inferencer
from tests.infer.models import node, write_config, write_model
from tests.infer.scenes import image

PYTHON = """
calls = []

def NvDsInferInitializeInputLayers(layers, network, max_batch):
    calls.append(max_batch)
    assert all((a == 0).all() for a in layers.values())
    layers["size"][:, 0] = network.height
    layers["size"][:, 1] = network.width + len(calls)
    layers["gain"][:] = 0.5
    return True
"""

CPP = """
#include "nvdsinfer_custom_impl.h"
extern "C" bool NvDsInferInitializeInputLayers(
    const std::vector<NvDsInferLayerInfo> &inputs, const NvDsInferNetworkInfo &network,
    unsigned int max_batch) {
    for (const NvDsInferLayerInfo &input : inputs) {
        float *values = static_cast<float *>(input.buffer);
        const bool size = input.inferDims.numElements == 2;
        const unsigned int rows = size ? max_batch : 1;
        for (unsigned int i = 0; i < rows * input.inferDims.numElements; ++i)
            values[i] = !size ? 0.5f : i % 2 ? network.width + 1 : network.height;
    }
    return true;
}
"""


def sized_model(folder: Path, library: str | None, **keys: object) -> Path:
    """out (n, 2) = size (n, 2) * gain (1) + mean of the image."""
    nodes = [
        node("ReduceMean", ["image"], ["mean"], axes=[1, 2, 3], keepdims=0),
        node("Unsqueeze", ["mean", "axis"], ["column"]),
        node("Mul", ["size", "gain"], ["scaled"]),
        node("Add", ["scaled", "column"], ["out"]),
    ]
    write_model(
        folder / "m.onnx",
        nodes,
        {"image": ["n", 3, 16, 24], "size": ["n", 2], "gain": [1]},
        {"out": ["n", 2]},
        {"axis": np.array([1], np.int64)},
    )
    return write_config(
        folder,
        onnx_file="m.onnx",
        network_type=100,
        output_tensor_meta=1,
        batch_size=4,
        custom_lib_path=library,
        **keys,
    )


def outputs(config: Path) -> list[list[float]]:
    """Of three runs of 1, 3 and 2 images of plain 60."""
    found = []
    with Inferencer.from_config(config) as model:
        for count in (1, 3, 2):
            metas = model.process([image([], source=i) for i in range(count)])
            found += [m.tensors[0]["out"].tolist() for m in metas]
    return found


def test_python_fills_them_once(tmp_path: Path) -> None:
    (tmp_path / "fill.py").write_text(PYTHON)
    # called once: a second call would make the width 26
    assert outputs(sized_model(tmp_path, "fill.py")) == [[16 / 2 + 60, 25 / 2 + 60]] * 6


def test_cpp_fills_them_once(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    (tmp_path / "fill.cpp").write_text(CPP)
    subprocess.run(
        [compiler, "-shared", "-fPIC", f"-I{include_dir()}", "fill.cpp", "-o", "libfill.so"],
        cwd=tmp_path,
        check=True,
    )
    assert outputs(sized_model(tmp_path, "libfill.so")) == [[16 / 2 + 60, 25 / 2 + 60]] * 6


def test_the_config_fills_them(tmp_path: Path) -> None:
    config = sized_model(tmp_path, None, input_values="size:16,25;gain:0.5")
    assert outputs(config) == [[16 / 2 + 60, 25 / 2 + 60]] * 6


def test_the_config_wins_over_the_library(tmp_path: Path) -> None:
    (tmp_path / "fill.py").write_text(PYTHON)
    config = sized_model(tmp_path, "fill.py", input_values="size:7")
    assert outputs(config) == [[7 / 2 + 60, 7 / 2 + 60]] * 6


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("size", "has no numbers behind a colon"),
        ("size:a", "has no numbers behind a colon"),
        ("scale:1", "no input beside the image is called 'scale'"),
        ("size:1,2,3;gain:1", "3 values for input size"),
        ("gain:1", r"further inputs \(size"),
    ],
)
def test_values_that_do_not_fit_are_refused(tmp_path: Path, values: str, words: str) -> None:
    with pytest.raises(HeadraceError, match=words):
        Inferencer.from_config(sized_model(tmp_path, None, input_values=values))


def test_without_a_library_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CustomLibraryError, match=r"further inputs .*size.*gain") as caught:
        Inferencer.from_config(sized_model(tmp_path, None))
    assert "def NvDsInferInitializeInputLayers(layers, network, max_batch)" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return False", "returned false"),
        ("raise RuntimeError('no table')", "no table"),
        ("layers['size'] = layers['size'][:3]", "size"),
    ],
)
def test_a_function_that_fails(tmp_path: Path, body: str, words: str) -> None:
    (tmp_path / "fill.py").write_text(
        f"def NvDsInferInitializeInputLayers(layers, network, max_batch):\n    {body}\n"
    )
    with pytest.raises(CustomLibraryError, match=words) as caught:
        Inferencer.from_config(sized_model(tmp_path, "fill.py"))
    assert "fill.py" in str(caught.value)


def test_a_library_without_the_function(tmp_path: Path) -> None:
    (tmp_path / "fill.py").write_text("def parse(layers, network, params):\n    return None\n")
    with pytest.raises(CustomLibraryError, match="nothing fills them"):
        Inferencer.from_config(sized_model(tmp_path, "fill.py"))
