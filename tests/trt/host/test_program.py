"""Programs for TensorRT's C++ interface, compiled with `--exe`, started by the kernel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.custom.compile.build_library import compile_library
from headrace.errors import CustomLibraryError
from tests.trt.host.conftest import SOURCES


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled once."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    target = tmp_path_factory.mktemp("program") / "lenet"
    flags = ["-Wextra", "-Werror"]
    compile_library([SOURCES / "program.cpp"], target, program=True, debug=True, flags=flags)
    return target


def start(
    program: Path, *words: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def lenet(weights: np.ndarray, image: np.ndarray) -> np.ndarray:
    """NumPy's answer: two convolutions with ReLU and pooling, a matrix, times 8."""
    x, at = image.astype(np.float64), 0
    for maps in (4, 6):
        size = maps * x.shape[0] * 25
        kernel = weights[at : at + size].reshape(maps, x.shape[0], 5, 5)
        bias = weights[at + size : at + size + maps]
        at += size + maps
        windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), (1, 2))
        x = np.einsum("chwij,ocij->ohw", windows, kernel) + bias[:, None, None]
        x = np.maximum(x, 0)
        x = x.reshape(maps, x.shape[1] // 2, 2, x.shape[2] // 2, 2).max((2, 4))
    return 8 * weights[at:].reshape(10, 96) @ x.reshape(96)


@pytest.mark.slow
def test_a_program_builds_saves_loads_and_runs_an_engine(program: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    weights = rng.normal(0, 0.2, 4 * 25 + 4 + 6 * 4 * 25 + 6 + 960).astype(np.float32)
    image = rng.normal(size=(1, 28, 28)).astype(np.float32)
    weights.tofile(tmp_path / "weights")
    image.tofile(tmp_path / "image")
    built = start(program, "build", tmp_path / "weights", tmp_path / "plan")
    assert built.returncode == 0, built.stderr
    assert built.stderr.splitlines() == [
        "[TRT] a batch of 3; the engine has at most 2",
    ]
    ran = start(program, "run", tmp_path / "plan", tmp_path / "image", tmp_path / "result")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == "[TRT] the engine has no input or output called 'none'\n"
    assert ran.stdout == "6 weights, prob, 1.0\n"
    result = np.fromfile(tmp_path / "result", np.float32)
    np.testing.assert_allclose(result, lenet(weights, image), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_the_exit_code_and_the_name_are_the_programs(program: Path) -> None:
    done = start(program)
    assert (done.returncode, done.stderr) == (64, f"usage: {program} build|run …\n")


def test_a_call_that_fails_is_told_once(program: Path) -> None:
    done = start(program, "wrong")
    assert done.returncode == 0  # all flags are read, the last ones, too
    (line,) = done.stderr.splitlines()
    assert re.match(r"headrace: set_flag: .*BuilderFlag", line)


@pytest.mark.slow
def test_an_engine_gets_the_weights_of_another_model(program: Path, tmp_path: Path) -> None:
    models = []
    for factor in (2, 3):
        w = numpy_helper.from_array(np.full(2, factor, np.float32), "w")
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
        node = helper.make_node("Mul", ["x", "w"], ["y"])
        graph = helper.make_graph([node], "g", ends[:1], ends[1:], [w])
        opset = [helper.make_opsetid("", 13)]
        models.append(tmp_path / f"{factor}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), models[-1])
    done = start(program, "refit", *models)
    assert done.returncode == 0, done.stderr
    reason, result = done.stdout.splitlines()
    assert "/no.onnx" in reason
    assert result == "3 6"


def test_sources_without_main_are_no_program(tmp_path: Path) -> None:
    source = tmp_path / "part.cpp"
    source.write_text("int part() { return 1; }\n")
    with pytest.raises(CustomLibraryError, match=r"no source defines main\(\)"):
        compile_library([source], tmp_path / "part", program=True)


def test_a_python_that_is_not_there_is_named(program: Path) -> None:
    done = start(program, HEADRACE_PYTHON="/no/python")
    assert done.returncode == 127
    assert "/no/python cannot be started; HEADRACE_PYTHON names a Python" in done.stderr


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    command = [sys.executable, "-m", "headrace.trt.host.program", str(tmp_path / "x"), "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the program cannot be loaded" in done.stderr
