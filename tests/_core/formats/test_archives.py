"""NN Archives: the model in one, unpacked once, and files that only look like one."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from headrace._core.formats.archives import (
    cache_folder,
    is_bare_model,
    is_nn_archive,
    model_file,
    unpacked_model,
)
from headrace.errors import ModelError

CONFIG = {"model": {"metadata": {"path": "m.onnx"}}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def packed(path: Path, config: Any = CONFIG, **files: bytes) -> Path:
    """An archive with these files (`a__b` is `a.b`); a config of None is left out."""
    kind: Any = {".xz": "w:xz", ".gz": "w:gz"}.get(path.suffix, "w")
    content = {name.replace("__", "."): data for name, data in files.items()}
    if config is not None:
        content = {"./config.json": json.dumps(config).encode()} | content
    with tarfile.open(path, kind) as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["a.tar.xz", "a.tar.gz", "a.tar", "a.nnarchive"])
def test_the_model_and_its_config_are_unpacked_once(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / name, m__onnx=b"model", m__data=b"weights", other__txt=b"x")
    assert is_nn_archive(path)
    assert is_bare_model(path)
    model = model_file(path)
    assert model.read_bytes() == b"model"
    assert sorted(p.name for p in model.parent.iterdir()) == ["config.json", "m.data", "m.onnx"]
    assert model.parent.parent == cache_folder()
    written = model.stat().st_mtime_ns
    assert unpacked_model(path) == model
    assert model.stat().st_mtime_ns == written


@pytest.mark.parametrize("config", [
    None, {"model": {}}, {"model": {"metadata": {"path": 3}}}, [1],
    {"model": {"metadata": {"path": "../m.onnx"}}}, {"model": {"metadata": {"path": ""}}},
])  # fmt: skip
def test_others_are_no_archives_of_a_model(tmp_path: Path, config: Any) -> None:
    path = packed(tmp_path / "a.tar", config, m__onnx=b"model")
    assert not is_nn_archive(path)
    assert model_file(path) == path
    with pytest.raises(ModelError, match="no config"):
        unpacked_model(path)


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    (tmp_path / "a.tar.xz").write_bytes(b"\xfd7zXZ\x00 and no more")
    assert not is_nn_archive(tmp_path / "a.tar.xz")
    assert not is_nn_archive(tmp_path / "none.tar.xz")
    assert not is_bare_model(tmp_path / "a.txt")


def test_nothing_is_written_outside_of_its_folder(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tar", **{"m__onnx": b"model", "../m.bin": b"x", "/m.bin": b"x"})
    model = model_file(path)
    assert sorted(p.name for p in model.parent.iterdir()) == ["config.json", "m.onnx"]
    assert not list(tmp_path.rglob("m.bin"))


def test_a_model_that_is_missing_is_named(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tar", other__onnx=b"model")
    with pytest.raises(ModelError, match="which is not in it"):
        model_file(path)
    assert not any(cache_folder().iterdir())
