"""Creators of plugins of libraries for another processor: listed as those for this one are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.custom import include_dir, open_library
from headrace.custom.inspect import inspect_library
from headrace.plugins import get_plugin_registry
from tests.custom.built import kept
from tests.custom.emulated.conftest import CROSS, require_cross_compiler
from tests.plugins.samples import PLUGINS, ScaleV3
from tests.trt.host.conftest import LINES, ROOT, SOURCES, _registry_as_before, author_header
from tests.trt.host.test_plugins import live_as_twins

__all__ = ["_registry_as_before"]  # a fixture
NAMES = ["ScaleV2", "ScaleV2Ext", "ScaleV2IOExt", "ScaleDynamic", "ScaleV3"]
RELEASES = {0: 0, 7: 7201, 8: 8601, 10: 0, 11: 0}
"""What creators tell: those from 10 on and of headrace's headers tell none."""


def stub(folder: Path, soname: str) -> str:
    """Make an empty library of AArch64 of a name, to link against."""
    empty = [CROSS, "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{soname}", "-o"]
    subprocess.run([*empty, str(folder / soname)], check=True)
    return str(folder / soname)


def build(folder: Path, line: int, source: Path = SOURCES / "twins.cpp", *flags: str) -> Path:
    """Compile plugins for AArch64: against the headers of a line, of headrace with 0."""
    require_cross_compiler()
    name = f"lib{source.stem}.so"

    def make(made: Path) -> None:
        command = [CROSS, "-std=c++14", "-O1", "-shared", "-fPIC", str(source)]
        if line:
            author_header(made, line)
            named = stub(made, f"libnvinfer.so.{line}")
            command += [f"-I{made}", "-Wl,--no-as-needed", named]
        else:
            command += [f"-I{include_dir()}"]
        subprocess.run([*command, *flags, "-o", str(made / name)], check=True)

    if source.is_relative_to(folder) or not os.access(ROOT, os.W_OK):  # a test's own
        make(folder)
        return folder / name
    about = [CROSS, str(line), f"-I{source.parent}", str(source), f"-I{include_dir()}", *flags]
    tables = [*(ROOT / "scripts").glob("tensorrt_*.py"), *(ROOT / "native/foreign/slots").iterdir()]
    about += map(str, sorted(tables))
    return Path(shutil.copy(kept(make, about) / name, folder))


@pytest.mark.slow
@pytest.mark.parametrize("line", [0, *LINES])
@pytest.mark.sampled
def test_creators_and_fields_are_listed_and_plugins_live_as_their_twins(
    tmp_path: Path, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(tmp_path, line)
    report = inspect_library(path, load=True)
    assert report.load is not None
    names = NAMES if line in (0, 10, 11) else NAMES[:4]
    listed = {c.name: c for c in report.load.creators}
    assert sorted(listed) == sorted(names)
    assert {c.fields for c in listed.values()} == {("factor: FLOAT32",)}
    assert report.load.release == RELEASES[line]
    computes = "plugins compute on this machine: they have no code for a GPU"
    assert (report.tensorrt.runs if report.tensorrt else (computes,)) == (computes,)

    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 8])
    library = open_library(path)
    for kind, plugin in PLUGINS.items():
        if plugin.__name__ not in names:
            continue
        found = get_plugin_registry().find(plugin.__name__)
        live_as_twins(kind, found, line=line)
    assert not [n for n in library.decisions if n.level == "warning"]


@pytest.mark.slow
@pytest.mark.parametrize("line", [0, *LINES])
@pytest.mark.sampled
def test_plugins_without_names_of_classes_are_named_by_their_type(
    tmp_path: Path, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 8])
    library = open_library(build(tmp_path, line, SOURCES / "twins.cpp", "-fno-rtti"))
    for kind, plugin in PLUGINS.items():
        if (found := get_plugin_registry().find(plugin.__name__)) is not None:
            live_as_twins(kind, found, line=line, unnamed=True)
    assert library.decisions
