"""Files that an engine was built from, compared by content."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from headrace.engine import fingerprint
from headrace.engine.fingerprint import fingerprint_files, what_changed


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were really read."""
    read: list[Path] = []
    real = fingerprint.hash_file

    def counted(path: Path) -> Any:
        read.append(path)
        return real(path)

    monkeypatch.setattr(fingerprint, "hash_file", counted)
    return read


def old(path: Path, content: bytes) -> Path:
    """A file that was written an hour ago, as far as its own time tells."""
    path.write_bytes(content)
    then = time.time() - 3600
    os.utime(path, (then, then))
    return path


def test_a_file_that_settled_is_read_once(
    tmp_path: Path, hashed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = old(tmp_path / "m.onnx", b"abc")
    monkeypatch.setattr(fingerprint, "_SETTLED_NS", 0)  # its inode changed a moment ago
    record = fingerprint_files(model, {})
    assert what_changed(record, model) is None
    assert hashed == [model]
    old(model, b"abd")
    assert what_changed(record, model) == "model file changed"


def test_a_file_that_changed_just_now_is_read_each_time(tmp_path: Path, hashed: list[Path]) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"abc")
    record = fingerprint_files(model, {})
    times = model.stat()
    model.write_bytes(b"abd")
    os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert what_changed(record, model) == "model file changed"
    assert len(hashed) == 2


def test_renaming_is_no_change_and_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    model, data = tmp_path / "m.onnx", tmp_path / "m.data"
    model.write_bytes(b"abc")
    data.write_bytes(b"weights")
    record = fingerprint_files(model, {"m.data": data})
    assert what_changed(record, model.rename(tmp_path / "n.onnx")) is None
    data.unlink()
    assert "m.data" in str(what_changed(record, tmp_path / "n.onnx"))
    (tmp_path / "n.onnx").unlink()
    assert what_changed(record, tmp_path / "n.onnx") == "model file is gone"
