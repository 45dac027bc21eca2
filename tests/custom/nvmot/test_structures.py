"""Layouts of the interface for low-level trackers, against published sizes and the header."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from headrace.custom import include_dir
from headrace.custom.nvmot.structures import GENERATIONS, generation_of, layouts, structure
from tests.custom.nvmot.built import SOME, macro

# of 5.0, 6.0, 6.3, 6.4, 7.0, 8.0, 9.0 and 9.1, in bytes: compiled from the public headers
SIZES = {
    "NvMOTConfig": (48, 48, 48, 48, 40, 40, 40, 40),
    "NvMOTPerTransformBatchConfig": (24, 24, 24, 24, 20, 20, 20, 20),
    "NvMOTQuery": (28, 32, 36, 56, 64, 64, 64, 64),
    "NvMOTFrame": (64, 72, 72, 72, 72, 72, 72, 104),
    "NvMOTTrackedObj": (176, 176, 184, 216, 240, 376, 376, 376),
    "NvMOTTrackedObjBatch": (16, 16, 24, 24, 24, 24, 24, 24),
    "NvMOTObjToTrack": (40,) * 8,
    "NvMOTObjToTrackList": (24,) * 8,
    "NvMOTTrackedObjList": (32,) * 8,
    "NvMOTProcessParams": (16,) * 8,
    "NvMOTConfigResponse": (20,) * 8,
    "NvDsTargetMiscDataObject": (160,) * 8,
    "NvDsTargetMiscDataStream": (32,) * 8,
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_the_published_ones(name: str) -> None:
    assert tuple(ctypes.sizeof(structure(name, g)) for g in GENERATIONS) == SIZES[name]


@pytest.mark.parametrize("generation", SOME)
def test_the_header_has_the_same_layout(generation: str, tmp_path: Path) -> None:
    lines = ["#include <cstddef>", '#include "nvdstracker.h"']
    for layout in layouts().values():
        if not layout.own or layout.since > generation:
            continue
        kind = structure(layout.name, generation)
        lines.append(f"static_assert(sizeof({layout.name}) == {ctypes.sizeof(kind)});")
        for name, *_ in kind._fields_:
            offset = getattr(kind, name).offset
            lines.append(f"static_assert(offsetof({layout.name}, {name}) == {offset});")
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join(lines))
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{include_dir()}", macro(generation)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("release", "generation"),
    [
        ("5.1", "5.0"),
        ("6.2", "6.0"),
        ("6.3", "6.3"),
        ("7.1", "7.0"),
        ("9.2", "9.1"),
        ("4.0", "5.0"),
    ],
)
def test_a_release_is_of_the_generation_before_it(release: str, generation: str) -> None:
    assert generation_of(release) == generation
