"""Own plugins of each class, compiled against TensorRT's public headers of many releases.

They live the same life, call by call, as the same source compiled with headrace's headers and the
same options. `HEADRACE_OUTSIDE/tensorrt-headers` has a folder a release: the `include` of that tag
of NVIDIA/TensorRT.
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
from headrace.custom import CustomLibrary
from headrace.plugins import Tracer, get_plugin_registry
from tests.plugins.life_cycles import X
from tests.plugins.samples import PLUGINS, ScaleV3, Watched
from tests.trt.host.conftest import SOURCES, Compile, _registry_as_before, compile_host, opened
from tests.trt.host.test_plugins import NAMES, Open, _calls, _life

__all__ = ["_registry_as_before", "compile_host", "opened"]  # fixtures
OPTIONS = ([], ["-fno-rtti"], ["-O0"], ["-D_GLIBCXX_USE_CXX11_ABI=0"])
ENDS = {
    (6, 0, 1), (7, 0, 0), (7, 2, 1), (8, 0, 1), (8, 6, 0), (8, 6, 1), (9, 2, 0), (10, 0, 0),
    (10, 8, 0), (10, 16, 0), (11, 0, 0), (11, 1, 0),
}  # fmt: skip
"""Releases that every option is tried with: ends of lines, and the two with places of their own."""
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
    major, minor, patch = numbers(headers)
    return major * (10000 if major >= 10 else 1000) + minor * 100 + patch


def numbers(headers: Path) -> tuple[int, ...]:
    code = '#include "NvInferVersion.h"\nR NV_TENSORRT_MAJOR NV_TENSORRT_MINOR NV_TENSORRT_PATCH'
    command = ["g++", "-E", "-P", "-x", "c++", f"-I{headers}", "-"]
    text = subprocess.run(command, input=code, text=True, capture_output=True, check=True).stdout
    return tuple(map(int, re.findall(r"R (\d+) (\d+) (\d+)", text)[0]))


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


def lives(creators: dict[str, Any], kinds: list[str], seen: Path) -> dict[str, tuple[Any, ...]]:
    """Each class's fields, calls, what it was given, and results; its creator is forgotten."""
    out = {}
    Watched.reset()
    for kind in kinds:
        creator = creators[NAMES[kind]]
        with Tracer() as tracer:
            profiles = 2 if kind in ("V2DynamicExt", "V3") else 1
            results = _life(creator, implicit=kind == "V2", profiles=profiles)
        assert not tracer.failures
        np.testing.assert_array_equal(results[0], X * np.float32(2.5))
        calls = [c for c in _calls(tracer) if "broadcast" not in c[3]]
        assert len(calls) > 30
        fields = [(f.name, f.type, f.data) for f in creator.field_names]
        given = seen.read_text().splitlines()
        seen.unlink()
        assert len(given) > 10
        out[kind] = fields, calls, given, [r.tobytes() for r in results]
        get_plugin_registry().deregister_creator(creator)
    return out


def creators_of(library: CustomLibrary) -> dict[str, Any]:
    found = get_plugin_registry().all_creators
    return {c.name: c for c in found if getattr(c, "library", "") == str(library.path)}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "".join(o) or "plain")
def test_every_release_lives_as_its_source_compiled_here(
    outside: Path,
    tmp_path: Path,
    compile_host: Compile,
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 8])
    folders = releases(outside)
    monkeypatch.setenv("SEEN", str(seen := tmp_path / "seen.txt"))
    flags = [*options, "-DSEEN"]
    expected = {}
    for major in (8, 10):  # descriptors of 10 have one more shape
        ours = creators_of(opened(compile_host("twins.cpp", major, *flags)))
        expected[major] = lives(ours, list(PLUGINS), seen)
    lived = []
    for headers in folders:
        if options and numbers(headers) not in ENDS:
            continue
        release = version(headers)
        (folder := tmp_path / headers.name).mkdir()
        theirs = creators_of(opened(build(headers, release, folder, "twins.cpp", *flags)))
        kinds = list(PLUGINS) if release >= 100000 else list(PLUGINS)[:4]
        found = lives(theirs, kinds, seen)
        assert {_native.foreign_origin(c.native.image)[1] for c in theirs.values()} == {release}
        for kind in kinds:
            same = expected[10 if release >= 100000 else 8][kind]
            assert found[kind] == same, (headers.name, kind)
        lived.append(headers.name)
    print(f"{len(lived)} releases {' '.join(options)}: {', '.join(lived)}")
    assert len(lived) >= 12
