"""Plugins of libraries that were compiled against TensorRT's own headers, of every line.

Their header is made of the tables that the host calls them by; that the tables are right says g++
over public headers: tests/outside/test_tensorrt_slots.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from headrace._core import _native
from headrace.binary.elf import ElfFile
from headrace.binary.tensorrt_line import tensorrt_use
from headrace.plugins import Tracer, get_plugin_registry
from tests.plugins.life_cycles import X
from tests.plugins.samples import PLUGINS, ScaleV3, Watched, creator_for
from tests.trt.host.conftest import LINES, Compile
from tests.trt.host.test_plugins import NAMES, Open, _calls, _life

KINDS = [(line, kind) for line in LINES for kind in PLUGINS if kind != "V3" or line >= 10]
RELEASES = {7: 7201, 8: 8601, 10: 101600, 11: 110100}


@pytest.fixture(autouse=True)
def _two_tactics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 8])
    Watched.reset()


@pytest.mark.parametrize(("line", "kind"), KINDS)
def test_each_class_of_each_line_lives_as_its_twin(
    compile_for_tensorrt: Compile, opened: Open, line: int, kind: str
) -> None:
    opened(compile_for_tensorrt("twins.cpp", line))
    found = get_plugin_registry().find(NAMES[kind])
    assert found is not None
    profiles = 2 if kind in ("V2DynamicExt", "V3") else 1
    traces = []
    for creator in (creator_for(PLUGINS[kind]), found):
        with Tracer() as tracer:
            results = _life(creator, implicit=kind == "V2", profiles=profiles)
        for result, n in zip(results, (2, 2, 1) * 2, strict=True):
            np.testing.assert_array_equal(result, X[:n] * np.float32(2.5))
        assert not tracer.failures
        traces.append(_calls(tracer))
    python, compiled = traces
    if line == 11:  # its classes have no such functions
        python = [c for c in python if "broadcast" not in c[3]]
        compiled = [c for c in compiled if "broadcast" not in c[3]]
    assert compiled == python
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
        creator = get_plugin_registry().find(NAMES[kind])
        assert creator is not None
        for result in _life(creator, implicit=kind == "V2", profiles=1)[:1]:
            np.testing.assert_array_equal(result, X * np.float32(2.5))
