"""Temporary folders of batches: those of dead runs go, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.batches.scratch import scratch_folder

pytest.importorskip("fsspec")

HOLDS = """
import sys
from headrace.batches.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "waiting").mkdir()
    (folder / "waiting" / "unit.arrow").write_bytes(b"rows")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, here and in processes that start."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def _holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def _ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_folders_of_dead_runs_go_at_the_next_start(place: Path) -> None:
    dead, theirs = _holder()
    living, held = _holder()
    try:
        _ended(dead)
        assert (theirs / "waiting" / "unit.arrow").exists()
        with scratch_folder() as own:
            assert set(place.iterdir()) == {own, held}
            assert own.stat().st_mode & 0o777 == 0o700
        assert list(place.iterdir()) == [held]
        assert (held / "waiting" / "unit.arrow").exists()
    finally:
        _ended(living)


def test_links_and_folders_of_other_names_stay(place: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "ledger.jsonl").write_text("{}\n")
    link = place / "headrace-batch-1-abcdefgh"
    link.symlink_to(results)
    mine = place / "headrace-batch-results"
    mine.mkdir()
    (place / "headrace-batch-2-abcdefgh").write_text("a file")
    with scratch_folder() as own:
        (own / "link").symlink_to(results)
    assert {path.name for path in place.iterdir()} == {
        link.name, mine.name, "headrace-batch-2-abcdefgh"
    }  # fmt: skip
    assert (results / "ledger.jsonl").exists()


STALLS = """
import io, time
import fsspec

class Start(io.BytesIO):
    def read(self, size=-1):
        return super().read(size) or time.sleep(60)

class Stalls(fsspec.AbstractFileSystem):
    protocol = "stalls"

    def info(self, path, **options):
        return {"name": path, "size": 10_000_000, "type": "file"}

    def open(self, path, mode="rb", **options):
        return Start(bytes(2_000_000))

fsspec.register_implementation("stalls", Stalls)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_batch_leaves_no_copy_of_an_input(
    place: Path, mean_config: Callable[..., Path], tmp_path: Path, number: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(STALLS)
    words = [sys.executable, "-m", "headrace", "batch", str(mean_config()), "-o",
             str(tmp_path / "out"), "--workers", "1", "--threads", "1",
             "stalls://bucket/car.mp4"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not list(place.rglob("car.mp4")):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
    if number == signal.SIGKILL:
        with scratch_folder():
            pass
    assert list(place.iterdir()) == []


USES = """
import sys, tempfile
from headrace.batches.scratch import use_own_temporary_folder
use_own_temporary_folder()
print(tempfile.mkdtemp(), flush=True)
sys.stdin.read()
"""


def test_what_a_killed_actor_left_goes_at_the_next_start(place: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", USES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    _ended(process)
    assert left.is_relative_to(place)
    assert left.exists()
    with scratch_folder() as own:
        assert list(place.iterdir()) == [own]
    done = subprocess.run([sys.executable, "-c", USES], input="", text=True, check=True)
    assert done.returncode == 0
    assert not list(place.iterdir())
