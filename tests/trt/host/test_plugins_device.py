"""Plugins with GPU code are given the GPU's memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from headrace.binary.elf import ElfFile
from headrace.binary.gpu_code import gpu_evidence
from headrace.custom.compile.build_library import compile_library
from headrace.custom.compile.toolchain import gpu_present
from headrace.custom.guard import keeper
from tests.custom.gpu import BROKEN, KINDS, Gpu, driver, gpu_library
from tests.trt.host.conftest import SOURCES, Compile

GUARDS = ["never"] + ["always"] * (keeper.can_guard() is None)
pytestmark = pytest.mark.skipif("HEADRACE_SANITIZED" in os.environ, reason="its runtime is there")


@pytest.fixture(scope="session", params=KINDS)
def gpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Gpu:
    return gpu_library(request.param, SOURCES / "twins.cpp", tmp_path_factory)


LIVES = """
import json, sys
import numpy as np
from headrace.custom import open_library
from headrace.plugins import get_plugin_registry
from headrace.plugins import DataType
from headrace.plugins.drivers import add_layer
from headrace.network.tensor_spec import TensorSpec
from tests.trt.host.test_plugins import FIELDS, NAMES, _life
from tests.plugins.life_cycles import FLOAT, ITEM, X, profile

library = open_library(sys.argv[1])
told = [n.sentence for n in library.decisions]
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

layer = add_layer(
    get_plugin_registry().find("ScaleDynamic").create_plugin("s", FIELDS), layer="s",
    input_types=[DataType.FLOAT], implicit_batch=False,
)
built = layer.build([TensorSpec("", FLOAT, (None, *ITEM))], [FLOAT], [profile(1, 2)])
built.finish()
contexts = [built.context() for _ in range(3)]
for context in contexts:
    context.run([X])
    context.close()  # and is still referenced
gc.collect()
driver = ctypes.CDLL("libcuda.so.1")
live = driver.cuLive() if hasattr(driver, "cuLive") else 0
print(json.dumps({"told": told, "wrong": wrong, "kinds": len(NAMES), "live": live}))
"""


@pytest.mark.slow
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
from headrace.custom import open_library
from headrace.plugins import get_plugin_registry
from tests.trt.host.test_plugins import _life
from tests.plugins.life_cycles import X

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


@pytest.mark.slow
def test_what_counts_is_the_file_that_was_loaded(
    gpu: Gpu, compile_host: Compile, tmp_path: Path
) -> None:
    found = gpu.run(ELSEWHERE, compile_host("twins.cpp", 10), cwd=tmp_path)
    assert found == [True, True, True, "./libmine.so"]


REPLACED = """
import json, os, shutil, sys
import numpy as np
from headrace.custom import open_library
from headrace.plugins import DataType, get_plugin_registry
from headrace.plugins.drivers import add_layer
from headrace.network.tensor_spec import TensorSpec
from tests.trt.host.test_plugins import FIELDS
from tests.plugins.life_cycles import FLOAT, ITEM, X, profile

def put(source):
    shutil.copy(source, "new")
    os.replace("new", "libswap.so")

def right(context):
    return bool(np.array_equal(context.run([X])[0], X * np.float32(2.5)))

first, second = sys.argv[1:]
if os.path.exists("swap"):
    first, second = second, first
put(first)
held = [open_library("libswap.so")]
layer = add_layer(
    get_plugin_registry().find("ScaleDynamic").create_plugin("s", FIELDS), layer="s",
    input_types=[DataType.FLOAT], implicit_batch=False,
)
built = layer.build([TensorSpec("", FLOAT, (None, *ITEM))], [FLOAT], [profile(1, 2)])
built.finish()
context = built.context()
found = [right(context)]
put(second)
held.append(open_library("libswap.so"))
print(json.dumps([*found, right(context), right(built.context())]))
"""


@pytest.mark.parametrize("order", ["gpu first", "host first"])
@pytest.mark.slow
def test_a_library_in_the_place_of_another_changes_nothing_for_that(
    gpu: Gpu, compile_host: Compile, tmp_path: Path, order: str
) -> None:
    if order == "host first":
        (tmp_path / "swap").touch()
    host = compile_host("twins.cpp", 10)
    assert gpu.run(REPLACED, host, cwd=tmp_path) == [True, True, True]


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
import json, os, sys
import numpy as np
from headrace.config.model_config import ModelConfig
from headrace.infer.model import load_or_build
from headrace.errors import HeadraceError

configs = sys.argv[2].split(":")
values = [float(v) for v in sys.argv[3:]]
found, told = [], []
def run(session, value):
    x = np.linspace(-1, 1, 2 * 48, dtype=np.float32).reshape(2, 3, 4, 4)
    x[1, 0, 0, 0] = value
    y = session.run({"x": x})["y"]
    return bool(np.array_equal(y, np.maximum(x, 0) * np.float32(1.25)))


for config in int(os.environ.get("TIMES", "2")) * configs:
    try:
        plan = load_or_build(ModelConfig.load(config))
        with plan.open_session() as session:
            for value in values:
                try:
                    found.append(run(session, value))
                except HeadraceError as error:
                    found.append(str(error))
    except HeadraceError as error:
        found.append(str(error))
    told.append([n.sentence for n in plan.decisions])
maps = open("/proc/self/maps").read()
print(json.dumps({"found": found, "told": told, "loaded": sys.argv[1] in maps}))
"""


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.sampled
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
@pytest.mark.slow
def test_a_fault_of_a_kernel_costs_a_worker_one_batch(gpu: Gpu, tmp_path: Path) -> None:
    config = write_config(tmp_path, gpu.library, "always", "ScaleDynamic")
    good, bad, again = gpu.run(RUNS, config, 1, 666, 2, cwd=tmp_path, TIMES="1")["found"]
    assert good is True
    assert again is True
    assert BROKEN in bad
    assert "layer 'first'" in bad
    assert "its worker process is started again" in bad
    assert "headrace replay" in bad


@pytest.mark.slow
@pytest.mark.skipif(len(GUARDS) == 1, reason="no workers here")
def test_an_endless_kernel_is_ended_with_its_worker(gpu: Gpu, tmp_path: Path) -> None:
    config = write_config(tmp_path, gpu.library, "always", "ScaleDynamic")
    late, again = gpu.run(RUNS, config, 667, 2, cwd=tmp_path, TIMES="1")["found"]
    assert "did not return within 2 s" in late
    assert again is True


@pytest.mark.slow
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
import gc, json
import numpy as np
from headrace.errors import PluginError
from headrace.plugins.device import DeviceStage
from headrace.plugins.memory import address_of
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

# the second output cannot be copied: nothing of the call is under way when it has failed
cuda.cuRefuseCopy(2)
first, second = np.zeros(70, np.float32), np.zeros(70, np.float32)
try:
    with stage.lend([at[0]], [address_of(first), address_of(second)], [280] * 3, 0) as (i, o, w):
        for pointer in o:
            assert cuda.cuScale(i[0], pointer, 70, 3.0, stage.stream) == 0
except PluginError as error:
    said["refused"] = str(error)
first[:] = 5
with stage.lend([at[0]], [at[3]], [280, 280], 0) as (ins, outs, workspace):
    assert cuda.cuScale(ins[0], outs[0], 70, 4.0, stage.stream) == 0
said["untouched"] = bool((first == 5).all())

# the thread's own context is its own again, and one that a plugin leaves does not matter
mine = ctypes.addressof(ctypes.c_int())
cuda.cuCtxSetCurrent(ctypes.c_void_p(mine))
with stage.lend([at[0]], [at[3]], [280, 280], 0) as (ins, outs, workspace):
    assert cuda.cuScale(ins[0], outs[0], 70, 5.0, stage.stream) == 0
    cuda.cuCtxSetCurrent(ctypes.c_void_p(mine + 8))
now = ctypes.c_void_p()
cuda.cuCtxGetCurrent(ctypes.byref(now))
said["contexts"] = [bool(np.array_equal(out, a * 5)), now.value == mine]
del stage
gc.collect()
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
    assert (
        "plugin p: copying its outputs from the GPU failed: cuMemcpyDtoHAsync_v2: out of"
        in (said["refused"])
    )
    assert "unusable" not in said["refused"]
    assert said["untouched"] is True
    assert said["contexts"] == [True, True]
    assert said["live"] == 0


@pytest.mark.slow
def test_what_says_that_a_library_has_gpu_code(gpu: Gpu, compile_host: Compile) -> None:
    assert gpu_evidence(compile_host("twins.cpp", 10)) is None
    if gpu.driver is None:
        assert gpu_evidence(gpu.library) == f"{gpu.library.name} has code for a GPU"


def _linked(folder: Path, name: str, source: str, *flags: str) -> Path:
    (folder / "x.cpp").write_text(source)
    target = folder / name
    command = ["g++", "-shared", "-fPIC", str(folder / "x.cpp"), "-o", str(target), *flags]
    subprocess.run(command, check=True)
    return target


CODE = 'extern "C" const unsigned short fat[] = {0xed50, 0xba55, 1, 16, 0, 0};\n'
KERNELS = CODE + 'extern "C" int launch() { return fat[2]; }\n'
USES = 'extern "C" int launch();\nint use() { return launch(); }\n'


@pytest.mark.parametrize("name", ["libkernels.so", "libcuda_kernels.so", "libcurvature.so.2"])
@pytest.mark.sampled
def test_gpu_code_in_a_library_beside(tmp_path: Path, name: str) -> None:
    flags = [f"-L{tmp_path}", "-Wl,--no-as-needed", f"-l:{name}", f"-Wl,-rpath,{tmp_path}"]
    _linked(tmp_path, name, KERNELS, f"-Wl,-soname,{name}")
    user = _linked(tmp_path, "libuse.so", USES, *flags)
    assert gpu_evidence(user) == f"{name} has code for a GPU"
    other = _linked(tmp_path, "libother.so", "int use() { return 1; }\n", *flags)
    assert gpu_evidence(other) is None, "it calls nothing of it"
    host = 'extern "C" { extern const unsigned headrace_headers_cuda_host;\n'
    host += "const unsigned headrace_headers_cuda_host = 1; }\n"
    assert gpu_evidence(_linked(tmp_path, "libhost.so", USES + host, *flags)) is None


def test_what_says_nothing(tmp_path: Path) -> None:
    _linked(tmp_path, "libcudnn.so.9", KERNELS, "-Wl,-soname,libcudnn.so.9")
    flags = [f"-L{tmp_path}", "-l:libcudnn.so.9", f"-Wl,-rpath,{tmp_path}"]
    assert gpu_evidence(_linked(tmp_path, "libwith.so", USES, *flags)) is None, "NVIDIA's own"
    (tmp_path / "text.so").write_text("no library")
    (tmp_path / "folder.so").mkdir()
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "loop.so").symlink_to("loop.so")
    for kind in ("text", "folder", "pipe", "loop", "none"):
        assert gpu_evidence(tmp_path / f"{kind}.so") is None
    os.mkfifo(tmp_path / "libgone.so")
    (tmp_path / "libwith.so").unlink()
    _linked(tmp_path, "libgone2.so", KERNELS, "-Wl,-soname,libgone.so")
    flags = [f"-L{tmp_path}", "-l:libgone2.so", f"-Wl,-rpath,{tmp_path}"]
    assert gpu_evidence(_linked(tmp_path, "libwith.so", USES, *flags)) is None


@pytest.mark.skipif(gpu_present(), reason="there nvcc compiles it")
@pytest.mark.slow
def test_what_is_compiled_for_the_host_stays_there(tmp_path: Path) -> None:
    source = SOURCES / "swish.cpp"
    plain, marked = (
        compile_library([source], tmp_path / f"lib{mode}.so", cuda=mode).library
        for mode in ("auto", "host")
    )
    mark = "headrace_headers_cuda_host"
    assert mark not in ElfFile.read(plain).exported()
    assert mark in ElfFile.read(marked).exported()


LOADS = """
import faulthandler, json, shutil, sys, threading
import numpy as np
from headrace.custom import open_library
from headrace.plugins.memory import read_at

faulthandler.dump_traceback_later(60, exit=True)
values, over, reads = np.arange(4, dtype=np.float32), threading.Event(), [0]

def read():
    while not over.is_set():
        read_at(values.ctypes.data, (4,), np.float32)
        reads[0] += 1

thread = threading.Thread(target=read)
thread.start()
for number in range(12):
    shutil.copy(sys.argv[2], f"lib{number}.so")
    open_library(f"lib{number}.so")
over.set()
thread.join()
print(json.dumps(reads[0] > 12))
"""


@pytest.mark.slow
def test_looking_for_the_driver_waits_for_no_library(
    compile_host: Compile, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one = Gpu(Path("unused"), driver(tmp_path_factory))
    assert one.run(LOADS, compile_host("twins.cpp", 10), cwd=tmp_path) is True


def test_drivers_that_are_none_are_told(tmp_path: Path) -> None:
    code = "import json\nfrom headrace._core.gpu.cuda import AnyMemory, why_lost, why_no_gpu\n"
    code += "print(json.dumps([why_no_gpu(), why_lost(), AnyMemory().on_device(4096)]))"
    _linked(tmp_path, "libcuda.so.1", 'extern "C" int cuInit(unsigned) { return 0; }\n')
    lacks = Gpu(Path("unused"), tmp_path).run(code, cwd=tmp_path)
    assert lacks == ["the NVIDIA driver has no cuDeviceGetCount", None, False]
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF damaged")
    damaged = Gpu(Path("unused"), tmp_path).run(code, cwd=tmp_path)
    assert "the NVIDIA driver cannot be loaded: " in damaged[0]
    assert damaged[1:] == [None, False]
