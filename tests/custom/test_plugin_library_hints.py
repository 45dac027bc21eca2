"""A plugin that is missing: what the library of the config has to do with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from numpy.random import _generator
from onnx import TensorProto, helper

from headrace.config import ModelConfig
from headrace.custom.guard import keeper
from headrace.custom.plugin_library import plugin_hints
from headrace.errors import CustomLibraryError, EngineError
from headrace.infer.model import load_or_build
from headrace.plugins import PluginRegistry
from tests.trt.host import conftest
from tests.trt.host.conftest import Compile

GUARDS = ["never"] + ["always"] * (keeper.can_guard() is None)
compile_host = conftest.compile_host  # fixtures
_registry_as_before = conftest._registry_as_before
OF_NONE = "libown.so registers no plugin: a source with REGISTER_TENSORRT_PLUGIN"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shape = ["N", 3, 4, 4]
    graph = helper.make_graph(
        [helper.make_node("Decode_TRT", ["x"], ["y"], name="decode")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "m.onnx")
    return tmp_path


def refusal(folder: Path, guard: str) -> str:
    (folder / "c.txt").write_text(
        "[property]\nonnx-file=m.onnx\nnetwork-type=100\ngie-unique-id=1\n"
        f"custom-lib-path=libown.so\ncustom-lib-guard={guard}\n"
    )
    with pytest.raises(EngineError) as raised:
        load_or_build(ModelConfig.load(folder / "c.txt"))
    text = str(raised.value)
    assert "operator(s) that onnxruntime does not know: Decode_TRT" in text
    assert (
        "or write it in C++: REGISTER_TENSORRT_PLUGIN(<its creator>), compiled by headrace" in text
    )
    return text


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
def test_what_it_registers_instead_is_named(
    folder: Path, compile_host: Compile, guard: str
) -> None:
    shutil.copy(compile_host("swish.cpp"), folder / "libown.so")
    assert "libown.so registers: MySwish version 1" in refusal(folder, guard)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_library_that_was_cut_off_is_named(folder: Path, zoo28: Path, guard: str) -> None:
    data = zoo28.read_bytes()
    (folder / "libown.so").write_bytes(data[: len(data) // 2])
    assert "libown.so cannot be loaded: truncated ELF file" in refusal(folder, guard)


def test_a_library_of_parsers_registers_none(folder: Path, zoo28: Path) -> None:
    shutil.copy(zoo28, folder / "libown.so")
    text = refusal(folder, "never")
    assert OF_NONE in text
    assert "must be among those that headrace compile gets" in text
    assert "headrace inspect libown.so shows what it has" in text
    (folder / "lib.py").write_text("")
    assert plugin_hints(folder / "lib.py") == plugin_hints(None) == []


def test_headrace_show_says_so_too(folder: Path, zoo28: Path) -> None:
    from headrace.diagnose.lint.dry_run import dry_run

    shutil.copy(zoo28, folder / "libown.so")
    refusal(folder, "never")
    problems = dry_run(ModelConfig.load(folder / "c.txt")).problems
    assert any(OF_NONE in str(p) for p in problems)


ASKS = """extern "C" void *getPluginRegistry();
static struct Asks { Asks() { getPluginRegistry(); } } asks;
"""


@pytest.fixture
def prebuilt(folder: Path) -> Path:
    """A library of TensorRT's own headers that asks for the registry and registers nothing."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    stub = folder / "libnvinfer.so"
    empty = ["g++", "-shared", "-x", "c", "/dev/null", "-Wl,-soname,libnvinfer.so.8"]
    subprocess.run([*empty, "-o", stub], check=True)
    (folder / "asks.cpp").write_text(ASKS)
    source = ["g++", "-shared", "-fPIC", "asks.cpp", "-Wl,--no-as-needed", stub.name]
    subprocess.run([*source, "-o", "libown.so"], cwd=folder, check=True)
    stub.unlink()
    return folder


OF_TENSORRT = (
    "libown.so registers no plugin here: it was compiled against TensorRT's own headers "
    "(needs libnvinfer.so.8; calls getPluginRegistry)"
)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_prebuilt_library_that_registers_nothing(prebuilt: Path, guard: str) -> None:
    text = refusal(prebuilt, guard)
    assert OF_TENSORRT in text
    assert "--plugins libown.so=FILE" in text
    assert text.count(OF_TENSORRT) == 1  # files of other tests may be silent, too


def test_the_parser_says_so_too(prebuilt: Path) -> None:
    import headrace.trt as trt

    trt.get_plugin_registry().load_library(str(prebuilt / "libown.so"))
    builder = trt.Builder(trt.Logger())
    parser = trt.OnnxParser(builder.create_network(1), builder.logger)
    assert not parser.parse_from_file(str(prebuilt / "m.onnx"))
    assert OF_TENSORRT in parser.get_error(0).desc()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["trtexec", "--onnx=m.onnx", "--plugins=./libown.so"],
        ["trace-plugins", "m.onnx", "--library", "libown.so"],
        ["lint", "c.txt"],
        ["show", "c.txt"],
        ["explain", "c.txt", "p.png"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.sampled
def test_commands_say_so_too(prebuilt: Path, command: list[str]) -> None:
    from PIL import Image

    Image.new("RGB", (8, 8)).save(prebuilt / "p.png")
    refusal(prebuilt, "auto")
    run = [sys.executable, "-m", "headrace", *command]
    done = subprocess.run(run, cwd=prebuilt, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert OF_TENSORRT in " ".join((done.stdout + done.stderr).split())


def test_a_library_without_plugins_says_that_it_registers_none() -> None:
    with pytest.raises(CustomLibraryError, match="it registers no plugin") as caught:
        PluginRegistry().load_library(Path(_generator.__file__))
    assert "REGISTER_TENSORRT_PLUGIN" in str(caught.value)
