"""Results in a bucket: each exactly once, whatever is killed, busy or there twice."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace
from headrace._core.retry import Backoff
from headrace.batches import bucket as bucket_module
from headrace.batches import folder as folder_module
from headrace.batches import packing
from headrace.batches.bucket import Bucket, results_place
from headrace.batches.driver import Driver
from headrace.batches.folder import MANIFEST, BatchFolder
from headrace.batches.identity import write_run
from headrace.batches.inputs import GivenInput
from headrace.batches.manifest import verify, write_manifest
from headrace.batches.storage import StorageError
from headrace.batches.summary import summarised
from headrace.batches.units import BatchUnit, UnitResult
from headrace.errors import HeadraceError
from tests.batches.fakes import FakeWorker, HereExecutor
from tests.batches.test_driver import NAMES, Killed, alone, expected
from tests.batches.test_remote import _Flaky
from tests.batches.test_running import here, rows_of_run, run
from tests.media.sources.videos import X264, write_video
from tests.profiles import examples

__all__ = ["alone", "here"]

fsspec = pytest.importorskip("fsspec")
OUT = "memory://results/batch"


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(bucket_module, "_BACKOFF", Backoff(0.0, 0.0))
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def rows(system: Any, path: str = "/results/batch") -> list[tuple[str, ...]]:
    found = []
    system.invalidate_cache()
    for name in system.find(f"{path}/objects"):
        with system.open(name) as file:
            table = pq.read_table(file, partitioning=None)
        found += [tuple(map(str, row.values())) for row in table.to_pylist()]
    return sorted(found)


def drive(names: list[str], do: Callable[[BatchUnit], UnitResult] | None = None) -> Driver:
    with results_place(OUT) as (path, bucket):
        folder = BatchFolder(path, "run", bucket)
        try:
            write_run(path, {"config": "same"})
            folder.publish("run.json")
            folder.reconcile()
            driver = Driver(folder, HereExecutor(do or FakeWorker(folder.parts).do))
            try:
                driver.run(map(GivenInput, names))
            finally:
                folder.save()
                write_manifest(path)
                folder.publish(MANIFEST)
            return driver
        finally:
            folder.close()


def sources(system: Any) -> list[tuple[str, int]]:
    return sorted((row[0], int(row[1])) for row in named_rows(system))


def named_rows(system: Any) -> Iterator[tuple[str, str]]:
    for name in system.find("/results/batch/objects"):
        with system.open(name) as file:
            table = pq.read_table(file, columns=["source", "frame"], partitioning=None)
        for row in table.to_pylist():
            yield row["source"], row["frame"]


def test_a_bucket_has_what_a_folder_has(
    here: None, memory: Any, mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    videos = [write_video(tmp_path / f"{n}.mp4", 8 + n, options=X264, seed=n) for n in range(2)]
    config = mean_config()
    done = run(config, *videos, "-o", OUT, "--threads", 2, "--jsonl", "--split", 0)
    assert done.exit_code == 0, done.output
    assert "wrote memory://results/batch" in done.output
    assert rows(memory) == rows_of_run(config, *videos)
    names = {name.removeprefix("/results/batch/") for name in memory.find("/results/batch")}
    tables = {name for name in names if name.startswith("objects/run=")}
    lines = {name for name in names if name.startswith("jsonl/")}
    assert (len(tables), len(lines)) == (1, 2)
    frames = {name for name in names if name.startswith("frames/run=")}
    assert len(frames) == 1
    assert names - tables - frames - lines == {
        "run.json", "manifest.parquet", "ledger/000000.jsonl", "ledger/000001.jsonl",
        "ledger/000002.jsonl",
    }  # fmt: skip
    again = run(config, *videos, "-o", OUT)
    assert again.exit_code != 0
    assert "has results of an earlier run" in again.output
    more = run(config, *videos, "-o", OUT, "--resume", "--jsonl", "--split", 0)
    assert "nothing was left to do: 2 were done before" in more.output
    assert verify(OUT)[:2] == (4, [])
    summary = summarised(OUT)
    assert (summary.objects, summary.classes) == (17, [("thing", 17)])
    page = tmp_path / "page.html"
    assert run("report", OUT, "-o", page).exit_code == 0
    assert page.read_text().count("data:image/") >= 1
    assert run("report", OUT).exit_code == 2


@settings(deadline=None, max_examples=examples(20))
@given(st.lists(st.integers(0, 40), max_size=4))
@pytest.mark.parametrize("small", [64 << 10, -1])
@pytest.mark.slow
def test_killed_at_any_call_no_row_is_missing_or_double(small: int, kills: list[int]) -> None:
    """Each number is the call to the storage at which a run dies, before or behind it."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    real = Bucket._call
    for kill in [*kills, None]:
        calls = 0

        def call(self: Bucket, work: Callable[[], Any], kill: int | None = kill) -> Any:
            nonlocal calls
            calls += 1
            if calls == kill:
                raise Killed
            found = real(self, work)
            calls += 1
            if calls == kill:
                raise Killed
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Bucket, "_call", call)
            patch.setattr(packing, "_SMALL_BYTES", small)
            try:
                drive(NAMES)
            except Killed:
                assert kill is not None
    assert sources(system) == expected(NAMES)
    assert verify(OUT)[1] == []


@pytest.mark.usefixtures("alone")
def test_resume_puts_right_what_verify_finds(memory: Any) -> None:
    drive(NAMES)
    first, second, *_ = memory.find("/results/batch/objects")
    memory.rm_file(first)
    memory.pipe_file(second, b"no table")
    memory.pipe_file("/results/batch/objects/run=run/shard=0/0123456789abcdef.parquet", b"x")
    faults = "\n".join(verify(OUT)[1])
    assert "is gone" in faults
    assert "has changed since it was committed" in faults
    assert "no line of the ledger knows it" in faults
    driver = drive(NAMES)
    assert (driver.progress.done, driver.progress.before) == (2, 6)
    assert sources(memory) == expected(NAMES)
    assert verify(OUT)[:2] == (16, [])


def test_of_two_runs_at_once_the_second_is_refused(memory: Any) -> None:
    one, two = Bucket(OUT), Bucket(OUT)
    one.append(b"a\n")
    with pytest.raises(StorageError, match="another batch is writing to this place"):
        two.append(b"b\n")
    one.segments = 0
    one.append(b"a\n")  # an answer that was lost on its way


@pytest.mark.parametrize("small", [64 << 10, -1])
def test_a_later_run_takes_over_and_the_earlier_loses_no_row(
    memory: Any, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """The later run removes tables that have no line yet; their lines must not come after it."""
    monkeypatch.setattr(packing, "_SMALL_BYTES", small)
    fake = FakeWorker(None)

    def do(unit: BatchUnit) -> UnitResult:
        if unit.input == NAMES[4]:
            drive(NAMES)
        return fake.do(unit)

    with pytest.raises(StorageError, match="another batch is writing to this place"):
        drive(NAMES, do)
    assert sources(memory) == expected(NAMES)
    assert verify(OUT)[1] == []


@pytest.mark.usefixtures("alone")
def test_lines_are_saved_while_a_long_unit_runs(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "_SEGMENT_S", 0.0)
    fake = FakeWorker(None)

    def do(unit: BatchUnit) -> UnitResult:
        if fake.calls:
            raise Killed
        return fake.do(unit)

    with monkeypatch.context() as patch:
        patch.setattr(BatchFolder, "save", lambda self: None)
        patch.setattr(BatchFolder, "_take_uploaded", _wait_for_uploads(BatchFolder._take_uploaded))
        with pytest.raises(Killed):
            drive(NAMES, do)
    assert drive(NAMES).progress.before == 1


def _wait_for_uploads(real: Callable[..., None]) -> Callable[..., None]:
    return lambda self, most: real(self, 0)


def test_a_gap_in_the_ledger_is_no_short_ledger(memory: Any) -> None:
    drive(NAMES)
    drive(NAMES)
    memory.rm_file("/results/batch/ledger/000000.jsonl")
    with pytest.raises(HeadraceError, match=r"ledger/000000\.jsonl is missing"):
        drive(NAMES)


def test_a_file_url_is_a_folder(
    mean_config: Callable[..., Path], tmp_path: Path, here: None
) -> None:
    video = write_video(tmp_path / "a.mp4", 5, options=X264)
    done = run(mean_config(), video, "-o", f"file://{tmp_path}/out", "--threads", 2, "-q")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "manifest.parquet").exists()


def test_other_things_are_not_touched(memory: Any) -> None:
    memory.pipe_file("/results/batch/thesis.txt", b"x")
    with pytest.raises(HeadraceError, match=r"holds other things there: thesis\.txt"):
        drive(NAMES)


def test_a_busy_storage_is_asked_again_and_a_refusal_is_not(
    memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = Bucket("memory://key:secret@results/batch")
    answers: list[Exception] = [OSError("503 Slow Down"), TimeoutError("too slow")]
    asked = 0

    def put(self: Any, source: str, target: str, **_: object) -> None:
        nonlocal asked
        asked += 1
        if answers:
            raise answers.pop(0)
        self.pipe_file(target, content)

    content = b"abc"
    monkeypatch.setattr(type(memory), "put_file", put)
    monkeypatch.chdir(tmp_path)
    Path("x").write_bytes(content)
    made.put(Path("x"), "y")
    assert (asked, made.repeated) == (3, 2)
    answers = [PermissionError("Access Denied for key:secret@results")]
    with pytest.raises(StorageError, match="the storage refuses") as caught:
        made.put(Path("x"), "y")
    assert asked == 4
    assert "secret" not in str(caught.value)
    answers = [FileNotFoundError("bucket")]
    with pytest.raises(StorageError, match="there is no such bucket"):
        made.put(Path("x"), "y")
    answers = [OSError("503 Slow Down")] * 9
    with pytest.raises(StorageError, match="503 Slow Down"):
        made.put(Path("x"), "y")
    assert len(answers) == 4
    answers, content = [], b""
    with pytest.raises(StorageError, match="y has 0 bytes there after an upload of 3"):
        made.put(Path("x"), "y")


@pytest.mark.usefixtures("alone")
def test_a_storage_that_dies_ends_the_run_and_keeps_what_is_committed(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = type(memory).put_file, 0

    def put(self: Any, source: str, target: str, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count > 5:
            raise OSError("503 Service Unavailable")
        return real(self, source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "put_file", put)
        with pytest.raises(StorageError, match="503 Service Unavailable"):
            drive(NAMES)
    driver = drive(NAMES)
    assert driver.progress.before + driver.progress.done == 8
    assert sources(memory) == expected(NAMES)


@pytest.mark.slow
def test_a_bucket_that_is_busy_and_a_driver_that_is_killed_lose_nothing(
    mean_config: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3fs = pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    folder = tmp_path / "videos"
    folder.mkdir()
    videos = [write_video(folder / f"{n:02}.mp4", 6, options=X264, seed=n) for n in range(40)]
    moto = server.ThreadedMotoServer(port=0)
    moto.start()
    address = "http://{}:{}".format(*moto.get_host_and_port())
    system = s3fs.S3FileSystem(endpoint_url=address)
    system.mkdir("results")
    _Flaky.target, _Flaky.count = address, 0
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Flaky)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    environment = os.environ | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.server_port}"}
    config = mean_config()
    words = [sys.executable, "-m", "headrace", "batch", str(config), str(folder), "--jsonl", "-o",
             "s3://results/batch", "--workers", "1", "--threads", "1"]  # fmt: skip
    try:
        process = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while len(system.find("results/batch/jsonl", refresh=True)) < 5:
            assert time.monotonic() < until
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(system.find("results/batch/jsonl", refresh=True)) < 40
        done = subprocess.run([*words, "--resume"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert _Flaky.count > 60  # of which every third was answered by 503
        assert rows(system, "results/batch") == rows_of_run(config, *videos)
        checked = subprocess.run(
            [sys.executable, "-m", "headrace", "batch", "-o", "s3://results/batch", "--verify"],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert checked.stdout == "42 result files read, 0 faults; 40 inputs done\n", checked.stderr
        gone = subprocess.run(
            [*words[:-5], "s3://nowhere/x", *words[-4:]], env=environment, capture_output=True,
            text=True,
        )  # fmt: skip
        assert gone.returncode != 0
        assert "there is no such bucket" in gone.stderr
    finally:
        proxy.shutdown()
        moto.stop()


def test_python_takes_a_url(
    memory: Any, mean_config: Callable[..., Path], tmp_path: Path, here: None
) -> None:
    video = write_video(tmp_path / "a.mp4", 5, options=X264)
    report = headrace.batch(mean_config(), inputs=video, out=OUT, threads=1, workers=1)
    assert report.path == "memory://results/batch"
    assert report.to_dict()["folder"] == "memory://results/batch"
    assert len(rows(memory)) == 5
