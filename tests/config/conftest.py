"""Helpers to write and load config files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.config import ModelConfig

Load = Callable[..., ModelConfig]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load `[property]` lines (INI) from `model.txt`, or a whole text under another name."""

    def load(text: str | bytes, *, name: str = "model.txt", whole: bool = False) -> ModelConfig:
        path = tmp_path / name
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(data if whole or not name.endswith(".txt") else b"[property]\n" + data)
        return ModelConfig.load(path)

    return load


@pytest.fixture
def load_yaml(load: Load) -> Load:
    """Load `key: value` lines under `property:` from `model.yml`."""

    def load_yaml(lines: str) -> ModelConfig:
        body = "".join(f"  {line}\n" for line in lines.splitlines())
        return load(f"property:\n{body}", name="model.yml")

    return load_yaml
