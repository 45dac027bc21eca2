"""Small parsers, compiled once per session, and what parsers are called with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from headrace.custom import include_dir
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.custom.built import built_once

Compile = Callable[..., Path]
SOURCES = Path(__file__).parent / "sources"


@pytest.fixture(scope="session")
def compile_parser(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """`compile_parser(source, *flags) -> .so`; the same call compiles once."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    flags_of_all = ["-std=c++11", "-O0", "-shared", "-fPIC", f"-I{include_dir()}"]

    def compile_(source: str | Path, *flags: str) -> Path:
        return built_once(tmp_path_factory, SOURCES / source, [compiler, *flags_of_all, *flags])

    return compile_


@pytest.fixture(scope="session")
def zoo28(compile_parser: Compile) -> Path:
    """The parsers of sources/zoo.cpp with 28-byte boxes."""
    return compile_parser("zoo.cpp")


@pytest.fixture(scope="session")
def zoo24(compile_parser: Compile) -> Path:
    """The same source with 24-byte boxes."""
    return compile_parser("zoo.cpp", "-DHEADRACE_BOX_BYTES=24")


@pytest.fixture(scope="session")
def items(compile_parser: Compile) -> Path:
    """The parsers of sources/items.cpp: instances, classifiers, segmentation."""
    return compile_parser("items.cpp")


@pytest.fixture
def network() -> NetworkInfo:
    return NetworkInfo(416, 320, 3)


@pytest.fixture
def params() -> DetectionParams:
    return DetectionParams(
        3, np.array([0.25, 0.5, 0.75], np.float32), np.array([0.1, 0.2, 0.3], np.float32)
    )


@pytest.fixture
def layers() -> Mapping[str, Layer]:
    """One layer `rows` of (N, 6): class, left, top, width, height, score."""
    return rows_layer(np.array([[1, 10, 20, 30, 40, 0.9], [2, 5, 6, 7, 8, 0.5]]))


def rows_layer(rows: object) -> dict[str, Layer]:
    return {"rows": Layer("rows", np.asarray(rows, np.float32).reshape(-1, 6))}
