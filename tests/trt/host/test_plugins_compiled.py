"""Plugins of libraries that were compiled against TensorRT's own headers, of every line.

Their header is made of the tables that the host calls them by; that the tables are right says g++
over public headers: tests/outside/test_tensorrt_slots.py.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from headrace._core import _native
from headrace.binary.elf import ElfFile
from headrace.binary.tensorrt_line import tensorrt_use
from headrace.errors import PluginError
from headrace.plugins import DataType, PluginFieldCollection, get_plugin_registry
from headrace.plugins.drivers import add_layer
from headrace.trt.host import plugins as host_plugins
from tests.plugins.life_cycles import ITEM, X
from tests.plugins.samples import PLUGINS, ScaleV3, Watched
from tests.trt.host.conftest import LINES, Compile
from tests.trt.host.test_plugins import NAMES, Open, _life, live_as_twins
from tests.warm import headrace

KINDS = [(line, kind) for line in LINES for kind in PLUGINS if kind != "V3" or line >= 10]
RELEASES = {7: 7201, 8: 8601, 10: 101600, 11: 110100}


@pytest.fixture(autouse=True)
def _two_tactics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 8])
    Watched.reset()


@pytest.mark.parametrize(("line", "kind"), KINDS)
@pytest.mark.sampled
def test_each_class_of_each_line_lives_as_its_twin(
    compile_for_tensorrt: Compile, opened: Open, line: int, kind: str
) -> None:
    opened(compile_for_tensorrt("twins.cpp", line))
    found = get_plugin_registry().find(NAMES[kind])
    assert found is not None
    live_as_twins(kind, found, line=line)
    line_told, release = _native.foreign_origin(found.native.image)
    assert (line_told, release) == (line, 0 if kind == "V3" and not release else RELEASES[line])


@pytest.mark.parametrize("line", LINES)
def test_it_is_told_what_a_library_was_compiled_for(
    compile_for_tensorrt: Compile, opened: Open, line: int
) -> None:
    path = compile_for_tensorrt("twins.cpp", line)
    use = tensorrt_use(ElfFile.read(path))
    assert use is not None
    assert (use.line, use.soname, use.mixed) == (line, f"libnvinfer.so.{line}", None)
    assert {"IPluginV2DynamicExt", "IPluginV2IOExt", "IPluginCreator"} <= set(use.bases)
    assert ("IPluginV3" in use.bases) == (line >= 10)
    told = {n.code: n for n in opened(path).decisions}
    assert str(line) in told["library-tensorrt"].sentence
    assert not [n for n in told.values() if n.level == "warning"]


@pytest.mark.parametrize(
    "flags",
    [("-fno-rtti",), ("-O0",), ("-O3",), ("-D_GLIBCXX_USE_CXX11_ABI=0",), ("-fno-exceptions",)],
    ids=lambda f: f[0],
)
@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_the_compilers_options_make_no_difference(
    compile_for_tensorrt: Compile, opened: Open, line: int, flags: tuple[str, ...]
) -> None:
    opened(compile_for_tensorrt("twins.cpp", line, *flags))
    for kind in PLUGINS if line >= 10 else list(PLUGINS)[:4]:
        found = get_plugin_registry().find(NAMES[kind])
        live_as_twins(kind, found, line=line, unnamed=flags == ("-fno-rtti",))


@pytest.mark.parametrize("line", [7, 8, 10])
@pytest.mark.sampled
def test_one_that_names_no_libnvinfer_is_told_by_its_classes_and_creators(
    compile_for_tensorrt: Compile, opened: Open, tmp_path: Path, line: int
) -> None:
    path = tmp_path / f"libunnamed{line}.so"  # of its own: not yet open in this process
    shutil.copy(compile_for_tensorrt("twins.cpp", line, "-DUNNAMED", named=False), path)
    use = tensorrt_use(ElfFile.read(path))
    assert use is not None
    assert (use.line, use.soname) == (10 if line == 10 else None, None)
    opened(path)
    for kind in PLUGINS if line >= 10 else list(PLUGINS)[:4]:
        creator = get_plugin_registry().find(NAMES[kind])
        assert creator is not None
        np.testing.assert_array_equal(
            _life(creator, implicit=kind == "V2", profiles=1)[0], X * np.float32(2.5)
        )
        assert _native.foreign_origin(creator.native.image)[0] == line


def test_creators_that_a_library_lists_are_registered(
    compile_for_tensorrt: Compile, opened: Open
) -> None:
    opened(compile_for_tensorrt("compiled_abuses.cpp", 10, "-DEXPORTED"))
    assert get_plugin_registry().find("Abuse") is not None


def _added(opened: Open, path: Path) -> Any:
    opened(path)
    creator = get_plugin_registry().find("Abuse")
    assert creator is not None
    plugin = creator.create_plugin("layer", PluginFieldCollection([]))
    if plugin is None:
        raise PluginError("createPlugin returned null")
    return add_layer(plugin, layer="a", input_types=[DataType.FLOAT], implicit_batch=False)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_shapes_are_computed_with_the_hosts_expressions(
    compile_for_tensorrt: Compile, opened: Open, line: int
) -> None:
    layer = _added(opened, compile_for_tensorrt("compiled_abuses.cpp", line, "-DCOMPUTED"))
    (shape,) = layer.output_shapes([(-1, *ITEM)])
    assert [str(axis) for axis in shape][1:] == [str(ITEM[0] * 2), str(-(-ITEM[1] // 3))]
    layer.output_types([DataType.FLOAT])
    layer.close()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("-DNULL_PLUGIN", "returned null"),
        ("-DNULL_CLONE", "clone"),
        ("-DSTRANGE_EXPRESSION", "axis 0, an expression that is not of this call"),
        ("-DOTHER_LINE={other}", "names TensorRT {text}"),
    ],
)
@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_abuses_are_named(
    compile_for_tensorrt: Compile, opened: Open, line: int, flag: str, words: str
) -> None:
    other, text = ("101600", "10.16.0") if line == 8 else ("8601", "8.6.1")
    path = compile_for_tensorrt("compiled_abuses.cpp", line, flag.format(other=other))
    with pytest.raises(Exception, match=words.format(text=text)):
        _added(opened, path).output_shapes([(-1, *ITEM)])


@pytest.mark.parametrize(("headers", "linked"), [(8, 10), (10, 8), (7, 8), (8, 7)])
@pytest.mark.sampled
def test_headers_and_link_of_different_lines_are_told(
    compile_for_tensorrt: Compile, opened: Open, headers: int, linked: int
) -> None:
    library = opened(compile_for_tensorrt("compiled_abuses.cpp", headers, link=linked))
    assert get_plugin_registry().find("Abuse") is None
    told = " ".join(n.sentence for n in library.decisions if n.level == "warning")
    assert "the places of their functions differ" in told
    assert "registered no creator that can be called" in told or "different releases" in told


def test_code_for_a_gpu_is_refused_by_name_without_one(
    compile_for_tensorrt: Compile, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_plugins, "look_at", lambda image, path: "it has code for a GPU")
    monkeypatch.setattr(host_plugins, "why_no_gpu", lambda: "there is no NVIDIA driver")
    opened(compile_for_tensorrt("twins.cpp", 8))
    for kind in list(PLUGINS)[:4]:
        creator = get_plugin_registry().find(NAMES[kind])
        assert creator is not None
        with pytest.raises(PluginError, match=r"enqueue of Scale\w+ runs on a GPU") as raised:
            _life(creator, implicit=kind == "V2", profiles=1)
        assert "compiled for TensorRT 8.6.1" in str(raised.value)
        assert any("stand for it" in fix for fix in raised.value.finding.remedies)


@pytest.mark.parametrize(("line", "kind"), [(7, "V2IOExt"), (8, "V2DynamicExt"), (11, "V3")])
@pytest.mark.sampled
def test_trtexec_builds_with_it_and_loads_the_engine_again(
    compile_for_tensorrt: Compile, tmp_path: Path, line: int, kind: str
) -> None:
    node = helper.make_node(NAMES[kind], ["x"], ["y"], name="scale", factor=2.5)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2, 4, 4]) for n in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    values = np.linspace(-1, 1, 32, dtype=np.float32)
    values.tofile(tmp_path / "x.bin")
    library = compile_for_tensorrt("twins.cpp", line)
    short = ["--duration=0", "--warmUp=0", "--iterations=1"]
    engine = tmp_path / "m.engine"
    build = [f"--onnx={tmp_path / 'm.onnx'}", f"--saveEngine={engine}", "--skipInference"]
    done = headrace("trtexec", *build, f"--dynamicPlugins={library}")
    assert done.returncode == 0, done.stdout + done.stderr
    load = [f"--loadEngine={engine}", f"--loadInputs=x:{tmp_path / 'x.bin'}", *short]
    without = headrace("trtexec", *load)
    assert without.returncode
    assert f"that are not registered: {NAMES[kind]}" in without.stderr
    output = tmp_path / "y.json"
    done = headrace("trtexec", *load, f"--staticPlugins={library}", f"--exportOutput={output}")
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(output.read_text())
    np.testing.assert_allclose(found["values"], values * 2.5, rtol=1e-5)
