"""Plugins with GPU code are given the GPU's memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from noria.custom.gpu_code import gpu_evidence
from noria.custom.guard import keeper
from tests.custom.gpu import BROKEN, KINDS, Gpu, driver, gpu_library
from tests.custom.host.conftest import SOURCES, Compile

GUARDS = ["never"] + ["always"] * (keeper.can_guard() is None)
pytestmark = pytest.mark.skipif("NORIA_SANITIZED" in os.environ, reason="its runtime is there")


@pytest.fixture(scope="session", params=KINDS)
def gpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Gpu:
    return gpu_library(request.param, SOURCES / "twins.cpp", tmp_path_factory)


LIVES = """
import json, sys
import numpy as np
from noria.custom import open_library
from noria.plugins import get_plugin_registry
from tests.custom.host.test_twins import NAMES, _life
from tests.plugins.lives import X

library = open_library(sys.argv[1])
told = [n.message for n in library.decisions]
wrong = []
for kind, name in NAMES.items():
    results = _life(
        get_plugin_registry().find(name), implicit=kind == "V2",
        profiles=2 if kind in ("V2DynamicExt", "V3") else 1,
    )
    for result, n in zip(results, (2, 2, 1) * 2, strict=True):
        if not np.array_equal(result, X[:n] * np.float32(2.5)):
            wrong.append([kind, n])
import ctypes, gc
gc.collect()
driver = ctypes.CDLL("libcuda.so.1")
live = driver.cuLive() if hasattr(driver, "cuLive") else 0
print(json.dumps({"told": told, "wrong": wrong, "kinds": len(NAMES), "live": live}))
"""


def test_every_class_lives_its_life_there(gpu: Gpu, tmp_path: Path) -> None:
    found = gpu.run(LIVES, cwd=tmp_path)
    assert found["kinds"] == 5
    assert found["wrong"] == []
    assert found["live"] == 0, "memory or streams are left"
    (told,) = [t for t in found["told"] if "its plugins are given the GPU's memory" in t]
    assert ("calls cu" if gpu.driver else "has code for a GPU") in told


ELSEWHERE = """
import ctypes, json, os, shutil, sys
import numpy as np
from noria.custom import open_library
from noria.plugins import get_plugin_registry
from tests.custom.host.test_twins import _life
from tests.plugins.lives import X

def runs():
    found = _life(get_plugin_registry().find("ScaleDynamic"), implicit=False, profiles=1)
    return bool(np.array_equal(found[0], X * np.float32(2.5)))

gpu, host = sys.argv[1:]
here = os.path.abspath("libmine.so")
shutil.copy(host, here)
before = open_library(here)
on_host = [runs(), get_plugin_registry().find("ScaleDynamic").library == here]
get_plugin_registry().deregister_creator(get_plugin_registry().find("ScaleDynamic"))
shutil.copy(gpu, "new")
os.replace("new", here)
ctypes.CDLL("./libmine.so", mode=ctypes.RTLD_GLOBAL)
os.chdir("/")
print(json.dumps([*on_host, runs(), get_plugin_registry().find("ScaleDynamic").library]))
"""


def test_what_counts_is_the_file_that_was_loaded(
    gpu: Gpu, compile_host: Compile, tmp_path: Path
) -> None:
    found = gpu.run(ELSEWHERE, compile_host("twins.cpp", 10), cwd=tmp_path)
    assert found == [True, True, True, "./libmine.so"]


def write_config(folder: Path, library: Path, guard: str, plugin: str) -> Path:
    """A config, whose model has two of the plugin in its middle."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node(plugin, ["a"], ["b"], name="first", factor=2.5),
        helper.make_node("Neg", ["b"], ["c"]),
        helper.make_node(plugin, ["c"], ["y"], name="second", factor=-0.5),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "m.onnx")
    (folder / "c.txt").write_text(
        "[property]\nonnx-file=m.onnx\nbatch-size=2\nnetwork-type=100\ngie-unique-id=1\n"
        f"custom-lib-path={library}\ncustom-lib-guard={guard}\ncustom-lib-guard-timeout=2\n"
    )
    return folder / "c.txt"


RUNS = """
import json, sys
import numpy as np
from noria.config.model_config import ModelConfig
from noria.engine import load_or_build
from noria.errors import NoriaError

configs = sys.argv[2].split(":")
values = [float(v) for v in sys.argv[3:]]
found, told = [], []
def run(session, value):
    x = np.linspace(-1, 1, 2 * 48, dtype=np.float32).reshape(2, 3, 4, 4)
    x[1, 0, 0, 0] = value
    y = session.run({"x": x})["y"]
    return bool(np.array_equal(y, np.maximum(x, 0) * np.float32(1.25)))


for config in 2 * configs:
    try:
        plan = load_or_build(ModelConfig.load(config))
        with plan.open_session() as session:
            for value in values:
                try:
                    found.append(run(session, value))
                except NoriaError as error:
                    found.append(str(error))
    except NoriaError as error:
        found.append(str(error))
    told.append([n.message for n in plan.decisions])
maps = open("/proc/self/maps").read()
print(json.dumps({"found": found, "told": told, "loaded": sys.argv[1] in maps}))
"""


@pytest.mark.parametrize("guard", GUARDS)
def test_networks_with_them_are_built_saved_and_run(gpu: Gpu, tmp_path: Path, guard: str) -> None:
    plugins = ["ScaleDynamic", "ScaleV3", "ScaleV2IOExt"]
    configs = []
    for plugin in plugins:
        (tmp_path / plugin).mkdir()
        configs.append(str(write_config(tmp_path / plugin, gpu.library, guard, plugin)))
    found = gpu.run(RUNS, ":".join(configs), 1, 2, cwd=tmp_path)
    assert found["found"] == [True] * 12
    assert ["loaded" in told for told in found["told"]] == [False] * 3 + [True] * 3
    for told in found["told"]:
        assert [t for t in told if t.endswith("its plugins are given the GPU's memory")], told
    assert found["loaded"] is (guard == "never")


@pytest.mark.skipif(len(GUARDS) == 1, reason="no workers here")
def test_a_fault_of_a_kernel_costs_a_worker_one_batch(gpu: Gpu, tmp_path: Path) -> None:
    config = write_config(tmp_path, gpu.library, "always", "ScaleDynamic")
    good, bad, again, *_ = gpu.run(RUNS, config, 1, 666, 2, cwd=tmp_path)["found"]
    assert good is True
    assert again is True
    assert BROKEN in bad
    assert "layer 'first'" in bad
    assert "its worker process is started again" in bad
    assert "noria replay" in bad


@pytest.mark.skipif(len(GUARDS) == 1, reason="no workers here")
def test_an_endless_kernel_is_ended_with_its_worker(gpu: Gpu, tmp_path: Path) -> None:
    config = write_config(tmp_path, gpu.library, "always", "ScaleDynamic")
    late, again, *_ = gpu.run(RUNS, config, 667, 2, cwd=tmp_path)["found"]
    assert "did not return within 2 s" in late
    assert again is True


def test_a_fault_without_a_worker_says_that_the_process_is_lost(gpu: Gpu, tmp_path: Path) -> None:
    config = write_config(tmp_path, gpu.library, "never", "ScaleDynamic")
    good, bad, after, new = gpu.run(RUNS, config, 1, 666, 2, cwd=tmp_path)["found"]
    assert good is True
    assert f"enqueue {BROKEN}" in bad
    assert f"an earlier call {BROKEN}" in new
    for text in (bad, after, new):
        assert "layer 'first'" in text
        assert BROKEN in text
        assert "no call of CUDA works in this process any more" in text
        assert "custom-lib-guard=always" in text


STAGE = """
import json
import numpy as np
from noria.errors import PluginError
from noria.plugins.device import DeviceStage
from noria.plugins.memory import address_of
import ctypes, threading

cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuScale.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_size_t, ctypes.c_float, ctypes.c_void_p]
stage = DeviceStage("plugin p")
a, b = np.arange(70, dtype=np.float32), np.full(3, 5, np.float32)
out, none = np.zeros(70, np.float32), np.empty(0, np.float32)
at = [address_of(x) for x in (a, b, none, out)]
said = {}

def use():
    # an output in the memory of an input, one of its own, an input twice, one without elements
    with stage.lend([at[0], at[1], at[0], at[2]], [at[1], at[3]],
                    [12, 280, 280, 12, 280, 0], 100) as (ins, outs, workspace):
        said["shared"] = [ins[0] == ins[2], outs[0] == ins[1], len({*ins, *outs, workspace})]
        said["aligned"] = [p % 256 for p in (*ins, *outs, workspace)]
        assert cuda.cuScale(ins[1], outs[0], 3, 2.0, stage.stream) == 0
        assert cuda.cuScale(ins[0], outs[1], 70, 3.0, stage.stream) == 0

thread = threading.Thread(target=use)  # in another one than where it was made
thread.start()
thread.join()
said["values"] = [b.tolist(), bool(np.array_equal(out, a * 3)), a.tolist() == list(range(70))]
try:
    with stage.lend([at[0]], [at[3]], [280, 280], 1 << 40):
        said["room"] = "there was"
except PluginError as error:
    said["room"] = str(error)
try:
    with stage.lend([at[0]], [at[3]], [280, 280], 0) as (ins, outs, workspace):
        said["without"] = workspace
        raise ValueError("of the plugin")
except ValueError as error:
    said["passes"] = str(error)
out[:] = 0
with stage.lend([at[0]], [at[3]], [280, 280], 0) as (ins, outs, workspace):
    assert cuda.cuScale(ins[0], outs[0], 70, 4.0, stage.stream) == 0
said["again"] = bool(np.array_equal(out, a * 4))
del stage
said["live"] = cuda.cuLive()
print(json.dumps(said))
"""


def test_memory_is_lent_as_it_is_on_the_host(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    said = Gpu(Path("unused"), driver(tmp_path_factory)).run(STAGE, cwd=tmp_path)
    assert said["shared"] == [True, True, 5]
    assert set(said["aligned"]) == {0}
    assert said["values"] == [[10.0] * 3, True, True]
    assert "plugin p" in said["room"]
    room = "it needs 1099511628800 bytes of the GPU's memory: cuMemAlloc_v2: out of memory"
    assert room in said["room"]
    assert said["without"] == 0
    assert said["passes"] == "of the plugin"
    assert said["again"] is True
    assert said["live"] == 0


def test_what_says_that_a_library_has_gpu_code(gpu: Gpu, compile_host: Compile) -> None:
    assert gpu_evidence(compile_host("twins.cpp", 10)) is None
    if gpu.driver is None:
        assert gpu_evidence(gpu.library) == f"{gpu.library.name} has code for a GPU"


def test_gpu_code_in_a_library_beside(compile_host: Compile, tmp_path: Path) -> None:
    kernels = tmp_path / "libkernels.so"
    (tmp_path / "k.cpp").write_text(
        'extern "C" const unsigned short fat[] = {0xed50, 0xba55, 1, 16, 0, 0};\n'
        'extern "C" int launch() { return fat[2]; }\n'
    )
    (tmp_path / "u.cpp").write_text('extern "C" int launch();\nint use() { return launch(); }\n')
    for source, target, flags in (
        ("k.cpp", kernels, []),
        ("u.cpp", tmp_path / "libuse.so", [f"-L{tmp_path}", "-lkernels", f"-Wl,-rpath,{tmp_path}"]),
        ("k.cpp", tmp_path / "libcudnn.so.9", ["-Wl,-soname,libcudnn.so.9"]),
        (
            "u.cpp",
            tmp_path / "libwith.so",
            [f"-L{tmp_path}", "-l:libcudnn.so.9", f"-Wl,-rpath,{tmp_path}"],
        ),
    ):
        command = ["g++", "-shared", "-fPIC", str(tmp_path / source), "-o", str(target), *flags]
        subprocess.run(command, check=True)
    assert gpu_evidence(tmp_path / "libuse.so") == "libkernels.so has code for a GPU"
    assert gpu_evidence(tmp_path / "libwith.so") is None, "what NVIDIA's have says nothing"
    (tmp_path / "text.so").write_text("no library")
    assert gpu_evidence(tmp_path / "text.so") is None
    assert gpu_evidence(tmp_path / "none.so") is None
