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
from PIL import Image

from headrace.custom import open_library
from headrace.custom.guard import keeper
from headrace.plugins import get_plugin_registry
from tests.profiles import slow
from tests.trt.host.conftest import Compile
from tests.warm import headrace, started_anew

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
    """As `headrace compile`: a new file in the place of the old one."""
    shutil.copy(library, folder / "new")
    os.replace(folder / "new", folder / LIBRARY)


@pytest.mark.parametrize("guard", [slow("never"), *GUARDS[1:]])
@pytest.mark.slow
def test_a_changed_library_builds_the_engine_anew(
    compile_host: Compile, folder: Path, guard: str
) -> None:
    put(compile_host("swish.cpp"), folder)
    assert "built from m.onnx" in headrace("build", f"{guard}.txt", cwd=folder).stderr
    assert "engine: loaded" in headrace("build", f"{guard}.txt", cwd=folder).stderr
    put(compile_host("swish.cpp", 10, "-DONE_CHANNEL"), folder)
    again = headrace("build", f"{guard}.txt", cwd=folder)
    assert "the code of plugin MySwish changed" in again.stderr
    assert "built from m.onnx" in again.stderr
    assert "1,16,16" in headrace("show", again.stdout.strip(), cwd=folder).stdout.replace(" ", "")


SCRIPT = """
import ctypes, tensorrt as trt
logger = trt.Logger()
ctypes.CDLL("./libmyswish.so")
trt.init_libnvinfer_plugins(logger, "")
network = trt.Builder(logger).create_network(1)
print(trt.OnnxParser(network, logger).parse_from_file("m.onnx"))
"""


@pytest.mark.slow
def test_a_script_loads_it_with_ctypes(compile_host: Compile, folder: Path) -> None:
    put(compile_host("swish.cpp"), folder)
    (folder / "script.py").write_text(SCRIPT)
    done = started_anew("exec", "script.py", cwd=folder)
    assert done.stdout.split() == ["True"], done.stderr


@pytest.mark.parametrize("guard", GUARDS)
def test_a_trace_of_a_config_sees_it(compile_host: Compile, folder: Path, guard: str) -> None:
    put(compile_host("swish.cpp"), folder)
    done = headrace("trace-plugins", f"{guard}.txt", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "getOutputDimensions" in done.stdout or "get_output_dimensions" in done.stdout
    assert ", 0 failed" in done.stdout


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.slow
def test_a_wrong_type_names_the_plugin(compile_host: Compile, folder: Path, guard: str) -> None:
    put(compile_host("swish.cpp", 10, "-DWRONG_TYPE"), folder)
    done = headrace("build", f"{guard}.txt", cwd=folder)
    assert done.returncode == 4
    assert "plugin MySwish (node 'swish') takes float32 and says that its outputs are int32" in (
        done.stderr
    )


def test_a_missing_library_is_named_first(folder: Path) -> None:
    (folder / "c.txt").write_text(
        "[property]\nbatch-size=1\ngie-unique-id=1\nnetwork-type=100\n"
        "custom-lib-path=libnone.so\nengine-create-func-name=Make\n"
    )
    Image.new("RGB", (16, 16)).save(folder / "p.png")
    for command in (["build", "c.txt"], ["trace-plugins", "c.txt"], ["run", "c.txt", "p.png"]):
        done = headrace(*command, cwd=folder)
        assert done.returncode == 3
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1
        assert "custom-lib-path=libnone.so: there is no such file" in errors[0]
        assert "names no model" not in done.stderr


def test_a_file_without_creators_is_told(folder: Path) -> None:
    (folder / LIBRARY.replace("so", "py")).write_text("x = 1\n")
    text = CONFIG.format(library="libmyswish.py", guard="auto")
    (folder / "c.txt").write_text(text)
    done = headrace("build", "c.txt", cwd=folder)
    told = done.stderr.index("libmyswish.py was loaded and registers no creator")
    assert told < done.stderr.index("headrace init --plugin")


PARSER = """#include "nvdsinfer_custom_impl.h"
{} bool NvDsInferParseMine(
    std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &,
    NvDsInferParseDetectionParams const &, std::vector<NvDsInferObjectDetectionInfo> &) {{
    return true;
}}
"""


@pytest.mark.slow
def test_what_a_library_lacks_is_told_when_it_is_compiled(folder: Path) -> None:
    shutil.which("g++") or pytest.skip("no g++")
    (folder / "plain.cpp").write_text(PARSER.format(""))
    done = headrace("compile", "plain.cpp", cwd=folder)
    assert "no parser functions" in done.stdout
    assert 'write extern "C" before NvDsInferParseMine' in done.stderr
    shown = headrace("inspect", "libplain.so", cwd=folder).stdout
    assert 'write extern "C" before NvDsInferParseMine' in shown


@pytest.mark.slow
def test_a_library_of_plugins_needs_no_parser(compile_host: Compile, folder: Path) -> None:
    put(compile_host("swish.cpp"), folder)
    for options in ([], ["--no-load"]):
        shown = headrace("inspect", LIBRARY, *options, cwd=folder).stdout
        assert "extern" not in shown


@pytest.mark.slow
@pytest.mark.skipif("HEADRACE_SANITIZED" in os.environ, reason="its runtime is there")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_sanitized_library_says_what_to_preload(folder: Path, guard: str) -> None:
    shutil.which("g++") or pytest.skip("no g++")
    (folder / "mine.cpp").write_text(PARSER.format('extern "C"'))
    done = headrace("compile", "mine.cpp", "-o", LIBRARY, "--sanitize", "address", cwd=folder)
    assert done.returncode == 0, done.stderr
    done = headrace("inspect", LIBRARY, cwd=folder)
    assert "-fsanitize=address" in done.stdout
    code = f"""
import headrace.custom
headrace.custom.open_library({LIBRARY!r}, guard={guard!r}).bbox_parser("NvDsInferParseMine")
"""
    failed = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    (line,) = [x for x in failed.stderr.splitlines() if "LD_PRELOAD=" in x]
    preload = line.strip().removesuffix(" headrace run …")
    ran = subprocess.run(
        ["bash", "-c", f'{preload} "$0" -c "$1"', sys.executable, code],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("line", [0, 8])
def test_a_library_that_another_file_replaced_is_loaded_anew(
    compile_host: Compile, compile_for_tensorrt: Compile, folder: Path, line: int
) -> None:
    """The loader takes the name for the library that it loaded first, which stays."""

    def compiled(source: str) -> Path:
        return compile_for_tensorrt(source, line) if line else compile_host(source)

    registry = get_plugin_registry()
    first, second = compiled("twins.cpp"), compile_for_tensorrt("compiled_abuses.cpp", 10)
    for library, names in ((first, "ScaleDynamic"), (second, "Abuse"), (first, "ScaleDynamic")):
        put(library, folder)
        handle = registry.load_library(folder / LIBRARY)
        assert handle is not None
        assert names in [c.name for c in handle.creators]
        registry.deregister_library(handle)
        assert registry.find(names) is None


def test_a_library_that_is_overwritten_while_it_is_loaded_is_told(
    compile_host: Compile, folder: Path
) -> None:
    library = folder / LIBRARY
    shutil.copy(compile_host("swish.cpp"), library)
    first = open_library(library)
    os.utime(library, ns=(0, 0))
    again = open_library(library)
    assert first.path == again.path
    assert [n for n in again.decisions if "overwritten since" in n.sentence]
