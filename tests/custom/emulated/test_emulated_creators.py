"""Creators of plugins of libraries for another processor: listed as those for this one are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace.custom import include_dir, open_library
from headrace.custom.inspect import inspect_library
from headrace.errors import PluginError
from headrace.plugins import PluginFieldCollection, get_plugin_registry
from tests.custom.emulated.conftest import CROSS, require_cross_compiler
from tests.trt.host.conftest import LINES, SOURCES, _registry_as_before, author_header

__all__ = ["_registry_as_before"]  # a fixture
NAMES = ["ScaleV2", "ScaleV2Ext", "ScaleV2IOExt", "ScaleDynamic", "ScaleV3"]
RELEASES = {0: 0, 7: 7201, 8: 8601, 10: 0, 11: 0}
"""What creators tell: those from 10 on and of headrace's headers tell none."""


def build(folder: Path, line: int) -> Path:
    """Compile the twins for AArch64: against the headers of a line, of headrace with 0."""
    require_cross_compiler()
    library = folder / "libtwins.so"
    command = [CROSS, "-std=c++14", "-O1", "-shared", "-fPIC", str(SOURCES / "twins.cpp")]
    if line:
        author_header(folder, line)
        stub = folder / f"libnvinfer.so.{line}"
        empty = [CROSS, "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{stub.name}", "-o"]
        subprocess.run([*empty, str(stub)], check=True)
        command += [f"-I{folder}", "-Wl,--no-as-needed", str(stub)]
    else:
        command += [f"-I{include_dir()}"]
    subprocess.run([*command, "-o", str(library)], check=True)
    return library


@pytest.mark.parametrize("line", [0, *LINES])
@pytest.mark.sampled
def test_creators_and_fields_are_listed_and_plugins_refused_by_name(
    tmp_path: Path, line: int
) -> None:
    path = build(tmp_path, line)
    report = inspect_library(path, load=True)
    assert report.load is not None
    names = NAMES if line in (0, 10, 11) else NAMES[:4]
    listed = {c.name: c for c in report.load.creators}
    assert sorted(listed) == sorted(names)
    assert {c.fields for c in listed.values()} == {("factor: FLOAT32",)}
    assert report.load.release == RELEASES[line]

    library = open_library(path)
    creator = get_plugin_registry().find("ScaleDynamic")
    assert creator is not None
    with pytest.raises(PluginError, match=r"libtwins\.so, which is built for another processor"):
        creator.create_plugin("layer", PluginFieldCollection([]))
    assert not [n for n in library.decisions if n.level == "warning"]
