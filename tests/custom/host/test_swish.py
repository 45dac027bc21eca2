"""A library of one plugin, as a user comes to it: compile, build, compile again, trace, script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from noria.custom.guard import keeper
from tests.custom.host.conftest import Compile

LIBRARY = "libmyswish.so"
CONFIG = """[property]
onnx-file=m.onnx
batch-size=2
network-type=100
gie-unique-id=1
custom-lib-path={library}
custom-lib-guard={guard}
"""
GUARDS = ["never"] + ["always"] * (keeper.can_guard() is None)


def noria(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "noria", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that needs the plugin, and a config."""
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("Relu", ["x"], ["r"]),
                helper.make_node("MySwish", ["r"], ["s"], name="swish"),
                helper.make_node("Neg", ["s"], ["y"]),
            ],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 16, 16])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "m.onnx")
    for guard in ("never", "always"):
        text = CONFIG.format(library=LIBRARY, guard=guard)
        (tmp_path / f"{guard}.txt").write_text(text)
    return tmp_path


def put(library: Path, folder: Path) -> None:
    """As `noria compile`: a new file in the place of the old one."""
    shutil.copy(library, folder / "new")
    os.replace(folder / "new", folder / LIBRARY)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_changed_library_builds_the_engine_anew(
    compile_host: Compile, folder: Path, guard: str
) -> None:
    put(compile_host("swish.cpp"), folder)
    assert "built from m.onnx" in noria("build", f"{guard}.txt", cwd=folder).stderr
    assert "engine: loaded" in noria("build", f"{guard}.txt", cwd=folder).stderr
    put(compile_host("swish.cpp", 10, "-DONE_CHANNEL"), folder)
    again = noria("build", f"{guard}.txt", cwd=folder)
    assert "the code of plugin MySwish changed" in again.stderr
    assert "built from m.onnx" in again.stderr
    assert "1,16,16" in noria("show", again.stdout.strip(), cwd=folder).stdout.replace(" ", "")


SCRIPT = """
import ctypes, tensorrt as trt
logger = trt.Logger()
ctypes.CDLL("./libmyswish.so")
trt.init_libnvinfer_plugins(logger, "")
network = trt.Builder(logger).create_network(1)
print(trt.OnnxParser(network, logger).parse_from_file("m.onnx"))
"""


def test_a_script_loads_it_with_ctypes(compile_host: Compile, folder: Path) -> None:
    put(compile_host("swish.cpp"), folder)
    (folder / "script.py").write_text(SCRIPT)
    done = noria("exec", "script.py", cwd=folder)
    assert done.stdout.split() == ["True"], done.stderr
