"""Versions of a model: numbers, counts, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace._core.errors import ConfigError, EngineError
from headrace.config import ModelConfig
from headrace.infer.history import ModelHistory
from headrace.infer.record import Record


def config(folder: Path, name: str, content: bytes) -> ModelConfig:
    model = folder / f"{name}.onnx"
    model.write_bytes(content)
    path = folder / f"{name}.txt"
    path.write_text(f"[property]\nonnx-file={model}\nnetwork-type=0\n")
    return ModelConfig.load(path)


def test_each_version_has_its_own_counts(tmp_path: Path) -> None:
    first, second = config(tmp_path, "a", b"1"), config(tmp_path, "b", b"2")
    history, record = ModelHistory(first), Record()
    assert (history.current.number, history.previous) == (1, None)
    record.inferred_items = 10
    history.propose(second.path, second, "update", None, ())
    assert history.current.number == 1
    history.change(record)
    record.inferred_items, record.failed_items = 15, 2
    assert history.counts(record) == {1: (10, 0), 2: (5, 2)}
    history.propose(first.path, first, "rollback", 1, ())
    history.change(record)
    other = record.successor()
    history.restarted(other)
    other.inferred_items += 7
    assert history.counts(other) == {1: (17, 0), 2: (5, 2)}
    assert [run.how for run in history.runs] == ["start", "update", "rollback", "restart"]
    previous = history.previous
    assert previous is not None
    assert previous.number == 2
    assert history.current.sha256 != previous.sha256


def test_one_version_waits_at_a_time(tmp_path: Path) -> None:
    first, record = config(tmp_path, "a", b"1"), Record()
    (tmp_path / "new").mkdir()
    second = config(tmp_path / "new", "b", b"2")
    history = ModelHistory(first)
    history.propose(second.path, second, "update", None, ())
    with pytest.raises(EngineError, match="too frequently"):
        history.propose(first.path, first, "update", None, ())
    assert history.pending
    history.change(record)
    assert (history.pending, history.current.path) == (False, second.path)
    shown = [history.shown(path) for path in (first.path, second.path, Path("/elsewhere/c.txt"))]
    assert shown == ["a.txt", "new/b.txt", "c.txt"]


def test_a_version_whose_file_has_changed_does_not_run_again(tmp_path: Path) -> None:
    first = config(tmp_path, "a", b"1")
    version = ModelHistory(first).current
    version.check_unchanged()
    (tmp_path / "a.onnx").write_bytes(b"2")
    with pytest.raises(ConfigError, match=r"a\.onnx was changed since"):
        version.check_unchanged()
    (tmp_path / "a.onnx").unlink()
    with pytest.raises(ConfigError, match="is not there any more"):
        version.check_unchanged()
