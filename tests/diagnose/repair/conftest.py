"""Set-ups of the painted squares, with mistakes, in folders of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mistakes.cases import Case, Setup
from tests.mistakes.models import MODELS
from tests.mistakes.scene import write_scenes

Write = Callable[..., Path]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images and models of all set-ups."""
    folder = tmp_path_factory.mktemp("store")
    write_scenes(folder, ["images", "empty", "alike"])
    for name in ("yolov8.onnx", "ssd.onnx", "classifier.onnx", "plain.onnx"):
        MODELS[name](folder / name)
    return folder


@pytest.fixture
def write(store: Path, tmp_path: Path) -> Write:
    """Write a set-up with changed keys; gives its config, beside `images`."""

    def written(setup: Setup, keys: dict[str, Any] | None = None, **case: Any) -> Path:
        folder = tmp_path / f"case{len(list(tmp_path.iterdir()))}"
        Case("", setup, keys or {}, **case).write(folder, store)
        return folder / next(iter(setup.configs), "yolov8.onnx")

    return written
