"""The library of message payloads of tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace.custom import include_dir
from tests.custom.built import built_once

SOURCE = Path(__file__).with_name("payloads.cpp")


def library(factory: pytest.TempPathFactory) -> Path:
    """It makes rows of text, or fails as the name of its config says."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", f"-I{include_dir()}"]
    return built_once(factory, SOURCE, [compiler, *flags])
