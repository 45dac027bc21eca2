"""Own plugins of each class, compiled against TensorRT's public headers of many releases.

They live the same life, call by call, as the same source compiled with headrace's headers.
`HEADRACE_OUTSIDE/tensorrt-headers` has a folder a release: the `include` of that tag of
NVIDIA/TensorRT.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core import _native
from headrace.plugins import Tracer, get_plugin_registry
from tests.plugins.life_cycles import X
from tests.plugins.samples import PLUGINS, ScaleV3, Watched
from tests.trt.host.conftest import SOURCES, Compile, _registry_as_before, compile_host, opened
from tests.trt.host.test_plugins import NAMES, Open, _calls, _life

__all__ = ["_registry_as_before", "compile_host", "opened"]  # fixtures
CUDA = "typedef struct CUstream_st *cudaStream_t;\ntypedef struct CUevent_st *cudaEvent_t;\n"


def releases(outside: Path) -> list[Path]:
    """The folders of headers that have plugins of the V2 line in full: 6.0 and later."""
    folder = outside / "tensorrt-headers"
    if not folder.is_dir() or shutil.which("g++") is None:
        pytest.skip(f"no folder of headers, one a release: {folder}")
    found = [p for p in folder.iterdir() if (p / "NvInferVersion.h").is_file()]
    return sorted(found, key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)])


def version(headers: Path) -> int:
    """Ask the compiler for a release, packed as getTensorRTVersion has it."""
    code = '#include "NvInferVersion.h"\nR NV_TENSORRT_MAJOR NV_TENSORRT_MINOR NV_TENSORRT_PATCH'
    command = ["g++", "-E", "-P", "-x", "c++", f"-I{headers}", "-"]
    text = subprocess.run(command, input=code, text=True, capture_output=True, check=True).stdout
    major, minor, patch = map(int, re.findall(r"R (\d+) (\d+) (\d+)", text)[0])
    return major * (10000 if major >= 10 else 1000) + minor * 100 + patch


def build(
    headers: Path, release: int, folder: Path, source: str = "twins.cpp", *flags: str
) -> Path:
    major = release // (10000 if release >= 100000 else 1000)
    (folder / "cuda_runtime_api.h").write_text(CUDA)
    stub, library = folder / "libnvinfer.so", folder / "libtwins.so"
    empty = ["g++", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,libnvinfer.so.{major}"]
    subprocess.run([*empty, "-o", stub], check=True)
    command = ["g++", "-std=c++14", "-O1", "-w", "-shared", "-fPIC", f"-I{headers}", f"-I{folder}"]
    command += [*flags, str(SOURCES / source), "-Wl,--no-as-needed", str(stub), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def lives(kinds: list[str]) -> dict[str, tuple[list[Any], list[bytes]]]:
    """Each class's calls, and the results of its runs."""
    out = {}
    for kind in kinds:
        creator = get_plugin_registry().find(NAMES[kind])
        assert creator is not None
        with Tracer() as tracer:
            profiles = 2 if kind in ("V2DynamicExt", "V3") else 1
            results = _life(creator, implicit=kind == "V2", profiles=profiles)
        assert not tracer.failures
        np.testing.assert_array_equal(results[0], X * np.float32(2.5))
        calls = [c for c in _calls(tracer) if "broadcast" not in c[3]]
        out[kind] = calls, [r.tobytes() for r in results]
    return out


@pytest.mark.slow
def test_every_release_lives_as_its_source_compiled_here(
    outside: Path,
    tmp_path: Path,
    compile_host: Compile,
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 8])
    folders = releases(outside)
    assert len(folders) >= 12
    ours = opened(compile_host("twins.cpp", 10))
    expected = lives(list(PLUGINS))
    registry = get_plugin_registry()
    for creator in list(registry.all_creators):
        if getattr(creator, "library", "") == str(ours.path):
            registry.deregister_creator(creator)
    for headers in folders:
        Watched.reset()
        release = version(headers)
        (folder := tmp_path / headers.name).mkdir()
        library = opened(build(headers, release, folder))
        kinds = list(PLUGINS) if release >= 100000 else list(PLUGINS)[:4]
        assert lives(kinds) == {kind: expected[kind] for kind in kinds}, headers.name
        mine = [c for c in registry.all_creators if c.library == str(library.path)]
        assert {_native.foreign_origin(c.native.image)[1] for c in mine} == {release}
        for creator in mine:
            registry.deregister_creator(creator)
