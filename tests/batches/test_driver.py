"""The loop of a batch: every result exactly once, whatever happens to units, workers and itself."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.batches import folder as folder_module
from headrace.batches import packing
from headrace.batches.driver import Driver
from headrace.batches.executor import next_worker, room_after
from headrace.batches.folder import MANIFEST, BatchFolder, StorageError
from headrace.batches.identity import write_run
from headrace.batches.inputs import GivenInput
from headrace.batches.manifest import unit_records, verify, write_manifest
from headrace.batches.processes import ProcessExecutor
from headrace.batches.units import BatchUnit, UnitResult
from headrace.errors import HeadraceError
from headrace.media.sources.video_structure import VideoCut, VideoSpan
from tests.batches.fakes import FakeWorker, HeapCounter, HereExecutor, table_of, worker_stopped_once
from tests.profiles import examples

NAMES = [f"clip_{n}.mp4" for n in range(8)]


class Killed(BaseException):
    """Ends the driver where `kill -9` would."""


def run(path: Path, names: list[str], **options: Any) -> Driver:
    folder = BatchFolder(path, "run")
    try:
        write_run(path, {"config": "same"})
        folder.reconcile()
        do = options.pop("do", None) or FakeWorker(folder.parts).do
        driver = Driver(folder, HereExecutor(do), **options)
        driver.run(map(GivenInput, names))
        folder.save()
        write_manifest(path)
        return driver
    finally:
        folder.close()


def rows(path: Path) -> list[tuple[str, int]]:
    found = []
    for file in sorted((path / "objects").glob("*/*/*.parquet")):
        table = pq.read_table(file, partitioning=None)
        found += list(zip(table["source"].to_pylist(), table["frame"].to_pylist(), strict=True))
    return sorted(found)


def expected(names: list[str]) -> list[tuple[str, int]]:
    return sorted((name, row) for name in names for row in range(len(Path(name).name) % 4))


def test_every_input_has_its_rows_once(tmp_path: Path) -> None:
    names = [f"{'x' * n}.mp4" for n in range(8)]
    first = run(tmp_path, names[:5])
    assert (first.progress.done, first.progress.before) == (5, 0)
    second = run(tmp_path, names)
    assert (second.progress.done, second.progress.before) == (3, 5)
    assert rows(tmp_path) == expected(names)
    assert verify(tmp_path)[:2] == (4, [])  # two packs of objects and of frames


def test_a_failing_unit_is_tried_again_and_then_recorded(tmp_path: Path) -> None:
    driver = run(tmp_path, ["fail.mp4", "flaky.mp4", "good.mp4"], retries=2)
    progress = driver.progress
    assert (progress.done, progress.failed, progress.retried) == (2, 1, 3)
    assert progress.errors == [("fail.mp4", "fail.mp4: is broken")]
    records = {r.input: r for r in unit_records(tmp_path)}
    assert records["fail.mp4"].outcome == "failed"
    assert (records["fail.mp4"].attempts, records["flaky.mp4"].attempts) == (3, 2)
    again = run(tmp_path, ["fail.mp4", "flaky.mp4", "good.mp4"])
    assert (again.progress.done, again.progress.failed, again.progress.before) == (0, 0, 2)
    assert again.progress.failed_before == 1
    once_more = run(tmp_path, ["fail.mp4", "good.mp4"], retry_failed=True, retries=0)
    assert (once_more.progress.failed, once_more.progress.before) == (1, 1)


def spans_of(count: int) -> tuple[VideoSpan, ...]:
    cuts = [VideoCut(10 * n, 10 * n) for n in range(count)]
    ends = [*cuts[1:], None]
    return tuple(VideoSpan(cut, end, 10) for cut, end in zip(cuts, ends, strict=True))


def test_spans_of_a_video_are_units_that_a_restart_does_not_plan_again(tmp_path: Path) -> None:
    asked: list[tuple[str, int | None]] = []
    stop_after = 3

    def do(unit: BatchUnit) -> UnitResult:
        asked.append((unit.input, unit.span.start.frame if unit.span else None))
        if len(asked) > stop_after:
            raise Killed
        if unit.span is None:
            return UnitResult(unit, "split", "ab", 5, spans=spans_of(4))
        return FakeWorker(None).do(unit)

    with pytest.raises(Killed):
        run(tmp_path, ["video.mp4"], do=do)
    stop_after = 99
    asked.clear()
    driver = run(tmp_path, ["video.mp4"], do=do)
    assert driver.progress.before == 2
    assert driver.progress.inputs + driver.progress.spans == 4
    assert {first for _, first in asked} == {0, 10}
    records = list(unit_records(tmp_path))
    assert sorted(r.first for r in records) == [0, 10, 20, 30]
    assert {(r.sha256, r.outcome) for r in records} == {("00", "done")}


def test_a_doubtful_span_makes_the_video_whole(tmp_path: Path) -> None:
    def do(unit: BatchUnit) -> UnitResult:
        if unit.whole:
            return FakeWorker(None).do(unit)
        if unit.span is None:
            return UnitResult(unit, "split", spans=spans_of(3))
        if unit.span.start.frame == 10:
            return UnitResult(unit, "doubtful", error="9 frames came of the 10")
        return FakeWorker(None).do(unit)

    driver = run(tmp_path, ["span_.mp4", "other.mp4"], do=lambda u: do(u))
    assert driver.progress.failed == 0
    assert len(rows(tmp_path)) == 2 * (len("span_.mp4") % 4)
    assert verify(tmp_path)[:2] == (2, [])  # one pack of each
    assert [r.first for r in unit_records(tmp_path)] == [None, None]
    warnings = [r.warnings for r in unit_records(tmp_path)]
    assert warnings == [("not split: 9 frames came of the 10",)] * 2
    assert driver.progress.spans == 0


def test_a_lost_worker_costs_nothing_but_its_unit_if_it_kills(tmp_path: Path) -> None:
    seen: list[str] = []

    def do(unit: BatchUnit) -> UnitResult:
        seen.append(unit.input)
        if unit.input == "killer" or (unit.input == "waiting" and seen.count("waiting") == 1):
            begun = unit.input == "killer"
            return UnitResult(unit, "lost", error="killed by SIGSEGV", begun=begun)
        return FakeWorker(None).do(unit)

    driver = run(tmp_path, ["killer", "waiting", "good"], do=do, retries=1)
    assert (driver.progress.done, driver.progress.failed) == (2, 1)
    assert seen.count("killer") == 2
    assert driver.progress.errors == [("killer", "killed by SIGSEGV")]


def test_a_full_disk_ends_the_run_and_keeps_what_is_committed(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="the disk is full"):
        run(tmp_path, ["a.mp4", "b.mp4", "c.mp4", "full.mp4", "d.mp4"])
    driver = run(tmp_path, ["a.mp4", "b.mp4", "c.mp4", "d.mp4"])
    assert driver.progress.before + driver.progress.done == 4
    assert verify(tmp_path)[:2] == (2, [])


def test_a_disk_that_turns_read_only_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(fd: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    folder = BatchFolder(tmp_path, "run")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refused)
        with pytest.raises(StorageError, match="the file system is read-only"):
            folder.close()
    BatchFolder(tmp_path, "run").close()


def test_a_final_failure_is_not_tried_again(tmp_path: Path) -> None:
    calls: list[str] = []

    def do(unit: BatchUnit) -> UnitResult:
        calls.append(unit.input)
        final = unit.input.startswith("broken")
        return UnitResult(unit, "failed", error="it is no video", final=final)

    driver = run(tmp_path, ["broken.mp4", "other.mp4"], do=do, retries=3)
    assert driver.progress.failed == 2
    assert Counter(calls) == {"broken.mp4": 1, "other.mp4": 4}


@pytest.mark.parametrize(("most", "done"), [(0, 1), (1, 2), (2, 3), (None, 3)])
def test_a_run_ends_when_too_many_fail(tmp_path: Path, most: int | None, done: int) -> None:
    names = ["a.mp4", "fail1.mp4", "b.mp4", "fail2.mp4", "c.mp4"]
    folder = BatchFolder(tmp_path, "run")
    worker = FakeWorker(folder.parts)
    driver = Driver(folder, HereExecutor(worker.do, slots=1), retries=0, max_failed=most)
    if most in (0, 1):
        with pytest.raises(HeadraceError, match="failed, the last one") as caught:
            driver.run(map(GivenInput, names))
        assert caught.value.code == "batch-gave-up"
    else:
        driver.run(map(GivenInput, names))
    folder.close()
    assert driver.progress.done == done
    assert run(tmp_path, ["a.mp4", "b.mp4"]).progress.before >= min(done, 2)


def test_stop_ends_early_and_a_resumed_run_completes(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path, "run")
    driver = Driver(folder, HereExecutor(FakeWorker(folder.parts).do))
    driver._on_change = lambda at: driver.stop() if at.done == 2 else None
    progress = driver.run(map(GivenInput, NAMES))
    folder.close()
    assert progress.interrupted
    assert progress.done == 2
    assert run(tmp_path, NAMES).progress.before == 2
    assert rows(tmp_path) == expected(NAMES)


def test_slots_bound_what_is_under_way(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path, "run")
    executor = HereExecutor(FakeWorker(folder.parts).do, slots=4)
    taken: list[str] = []

    def names() -> Iterator[str]:
        for name in NAMES:
            taken.append(name)
            assert len(taken) - driver.progress.done <= 5
            yield name

    driver = Driver(folder, executor)
    driver.run(map(GivenInput, names()))
    folder.close()
    assert executor.most == 4


@settings(deadline=None, max_examples=examples(25))
@given(st.lists(st.integers(0, 30), max_size=4))
def test_killed_at_any_step_no_row_is_missing_or_double(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int]
) -> None:
    """Each number is the call into the file system at which a run dies."""
    path = tmp_path_factory.mktemp("batch")
    names = ["aaa.mp4", "bb.mp4", "c.mp4", "video.mp4"]

    def do(unit: BatchUnit) -> UnitResult:
        if unit.input == "video.mp4" and unit.span is None:
            return UnitResult(unit, "split", spans=spans_of(2))
        return FakeWorker(None).do(unit)

    for kill in [*kills, None]:
        calls = 0

        def step(real, *args, kill=kill, **kwargs):
            nonlocal calls
            calls += 1
            if calls == kill:
                raise Killed
            result = real(*args, **kwargs)
            calls += 1
            if calls == kill:
                raise Killed
            return result

        with (
            mock.patch("os.replace", partial(step, os.replace)),
            mock.patch("os.write", partial(step, os.write)),
        ):
            try:
                run(path, names, do=do)
            except Killed:
                continue
            except HeadraceError:
                assert kill is not None
    assert rows(path) == sorted(expected(names[:3]) + 2 * expected(["video.mp4"]))
    assert verify(path)[1] == []


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each unit keeps tables of its own."""
    monkeypatch.setattr(packing, "_SMALL_BYTES", -1)


@pytest.mark.slow
def test_small_results_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "_PACK_UNITS", 40)
    names = [f"p{n}.mp4" for n in range(100)]
    run(tmp_path, names)
    for kind in ("objects", "frames"):
        files = list((tmp_path / kind).glob("*/*/*.parquet"))
        assert len(files) == 3
        assert sum(pq.read_metadata(file).num_rows for file in files) == {
            "objects": len(expected(names)), "frames": 100
        }[kind]  # fmt: skip
    assert not list((tmp_path / "waiting").rglob("*.table"))
    manifest = pq.read_table(tmp_path / MANIFEST).to_pylist()
    assert {row["file"] for row in manifest} == {
        str(file.relative_to(tmp_path)) for file in (tmp_path / "objects").glob("*/*/*.parquet")
    }
    again = run(tmp_path, names)
    assert (again.progress.done, again.progress.before) == (0, 100)


@pytest.mark.slow
def test_five_thousand_small_results_are_at_most_fifty_files(tmp_path: Path) -> None:
    run(tmp_path, [f"p{n}.mp4" for n in range(5000)])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) <= 50
    assert sum(pq.read_metadata(f).num_rows for f in tmp_path.glob("frames/*/*/*.parquet")) == 5000


def test_a_damaged_pack_takes_its_units_with_it(tmp_path: Path) -> None:
    run(tmp_path, NAMES)
    run(tmp_path, [*NAMES, "more.mp4"])
    first, *_ = sorted((tmp_path / "frames").glob("*/*/*.parquet"), key=lambda p: -p.stat().st_size)
    first.write_bytes(b"not a table")
    read, faults, *_ = verify(tmp_path)
    assert (read, len(faults)) == (4, 1)
    assert "has changed since it was committed" in faults[0]
    driver = run(tmp_path, [*NAMES, "more.mp4"])
    assert (driver.progress.done, driver.progress.before) == (8, 1)
    assert rows(tmp_path) == expected([*NAMES, "more.mp4"])
    assert verify(tmp_path)[:2] == (4, [])


def test_what_waits_for_a_pack_is_packed_by_the_next_run(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path, "run")
    write_run(tmp_path, {"config": "same"})
    Driver(folder, HereExecutor(FakeWorker(folder.parts).do)).run(map(GivenInput, NAMES[:5]))
    folder.close()  # killed: nothing was packed
    assert rows(tmp_path) == []
    missing = next((tmp_path / "waiting" / "frames").rglob("*.table"))
    missing.unlink()
    driver = run(tmp_path, NAMES)
    assert (driver.progress.done, driver.progress.before) == (4, 4)
    assert rows(tmp_path) == expected(NAMES)
    assert verify(tmp_path)[:2] == (2, [])


@pytest.mark.usefixtures("alone")
def test_verify_finds_what_changed_and_resume_puts_it_right(tmp_path: Path) -> None:
    names = [f"{'x' * n}.mp4" for n in range(6)]
    run(tmp_path, names)
    files = sorted((tmp_path / "objects").glob("*/*/*.parquet"))
    files[0].unlink()
    files[1].write_bytes(b"not a table")
    data = bytearray(files[2].read_bytes())
    data[10] ^= 1
    files[2].write_bytes(data)
    strange = files[3].with_name("0123456789abcdef.parquet")
    strange.write_bytes(files[3].read_bytes())
    read, faults, *_ = verify(tmp_path)
    assert read == 12
    text = "\n".join(faults)
    assert len(faults) == 4
    assert text.count("has changed since it was committed") == 2
    assert "is gone" in text
    assert "no line of the ledger knows it" in text
    driver = run(tmp_path, names)
    assert (driver.progress.done, driver.progress.before) == (3, 3)
    assert verify(tmp_path)[:2] == (12, [])
    assert rows(tmp_path) == expected(names)


def test_a_folder_is_held_by_one_run_and_holds_nothing_else(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path / "out", "run")
    with pytest.raises(HeadraceError, match="another batch is writing"):
        BatchFolder(tmp_path / "out", "run")
    folder.close()
    BatchFolder(tmp_path / "out", "run").close()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(HeadraceError, match=r"holds other things: thesis\.txt"):
        BatchFolder(tmp_path / "mine", "run")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="is a file, not a folder"):
        BatchFolder(tmp_path / "file", "run")


def test_a_removed_folder_is_told_and_not_made_anew(tmp_path: Path) -> None:
    import shutil

    out = tmp_path / "out"
    seen = 0

    def do(unit: BatchUnit) -> UnitResult:
        nonlocal seen
        seen += 1
        if seen == 2:
            shutil.rmtree(out)
        return FakeWorker(None).do(unit)

    folder = BatchFolder(out, "run")
    with pytest.raises(StorageError, match="removed during the run"):
        Driver(folder, HereExecutor(do)).run(map(GivenInput, NAMES))
    assert not (out / "ledger.jsonl").exists()


@pytest.mark.slow
def test_processes_survive_units_that_kill_their_worker_or_never_end(tmp_path: Path) -> None:
    names = ["kill.mp4", "hang.mp4", *NAMES]
    folder = BatchFolder(tmp_path, "run")
    executor = ProcessExecutor(partial(FakeWorker, folder.parts), 1, timeout_s=0.6)
    try:
        driver = Driver(folder, executor, retries=0)
        progress = driver.run(map(GivenInput, names))
        folder.save()
    finally:
        executor.close()
        folder.close()
    assert (progress.done, progress.failed) == (8, 2)
    assert progress.errors == [
        ("kill.mp4", "its worker process was killed by SIGKILL"),
        ("hang.mp4", "it ran longer than the limit of 0.6 s (--unit-timeout)"),
    ]
    assert rows(tmp_path) == expected(NAMES)


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim") or "MALLOC_ARENA_MAX" in os.environ,
    reason="another C library than glibc, or a choice of the environment",
)
def test_threads_of_a_worker_share_their_heaps() -> None:
    executor = ProcessExecutor(HeapCounter, 1)
    try:
        executor.submit(BatchUnit("a.mp4"))
        results: list[UnitResult] = []
        while not results:
            results = executor.collect(1.0)
    finally:
        executor.close()
    assert results[0].frames <= 3  # 16 threads; one heap may reach over a mark


@pytest.mark.slow
def test_a_worker_that_is_stopped_while_it_opens_is_replaced_and_no_unit_is_to_blame(
    tmp_path: Path,
) -> None:
    folder = BatchFolder(tmp_path, "run")
    executor = ProcessExecutor(partial(worker_stopped_once, folder.parts), 1, timeout_s=5)
    try:
        progress = Driver(folder, executor, retries=0).run(map(GivenInput, NAMES))
        folder.save()
    finally:
        executor.close()
        folder.close()
    assert (progress.done, progress.failed, progress.retried) == (8, 0, 0)
    assert rows(tmp_path) == expected(NAMES)


@pytest.mark.slow
def test_stopped_workers_hold_no_end_up(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path, "run")
    executor = ProcessExecutor(partial(FakeWorker, folder.parts), 3)
    pids = [worker.process.process.pid for worker in executor._processes]
    for pid in pids:
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
    executor.close()
    folder.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid or 0, 0)


def test_a_long_unit_waits_for_the_worker_that_is_free_first() -> None:
    assert [room_after(UnitResult(BatchUnit("a"), "done", seconds=s)) for s in (0.1, 3)] == [2, 1]
    assert next_worker([1, 0, 2], [1, 1, 2]) == 1
    assert next_worker([1, 1, 2], [1, 2, 2]) == 1
    assert next_worker([1, 1], [2, 2]) == 0
    assert next_worker([1, 2, 0], [1, 2, 0]) is None


SCRIPT = """
import sys
from functools import partial
from pathlib import Path
from headrace.batches.driver import Driver
from headrace.batches.folder import BatchFolder
from headrace.batches.inputs import GivenInput
from headrace.batches.processes import ProcessExecutor
from tests.batches.fakes import FakeWorker

if __name__ == "__main__":
    folder = BatchFolder(Path(sys.argv[1]), "run")
    folder.reconcile()
    executor = ProcessExecutor(partial(FakeWorker, folder.parts), 2)
    try:
        numbers = range(int(sys.argv[2]))
        names = (f"clip_{n}_{'x' * (n % 4)}.mp4" for n in numbers)
        Driver(folder, executor).run(map(GivenInput, names))
        folder.save()
    finally:
        executor.close()
        folder.close()
"""


@pytest.mark.slow
def test_killed_by_the_system_again_and_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    out, count = tmp_path / "out", 1500
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(script), str(out), str(count)]
    kills = 0
    for number in range(40):
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        try:
            process.wait(1.2 + 0.037 * number)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            time.sleep(0.2)
    else:
        subprocess.run(command, env=environment, check=True)
    names = [f"clip_{n}_{'x' * (n % 4)}.mp4" for n in range(count)]
    assert kills >= 2
    assert rows(out) == expected(names)
    folder = BatchFolder(out, "run")
    assert folder.ledger.counts() == {"done": count}
    folder.close()


def test_tables_of_fakes_depend_on_their_names() -> None:
    assert table_of("a", 2).num_rows == 2
