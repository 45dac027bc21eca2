"""The worker process: what it may not do, when it ends, what becomes of the application's calls."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.custom.compile.toolchain import gpu_present
from headrace.custom.guard import GuardOptions, LibraryDiedError, keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.guard.process import GuardedProcess
from headrace.errors import CustomLibraryError
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.custom.conftest import Compile
from tests.together import together

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)
NETWORK, PARAMS = NetworkInfo(32, 32, 3), DetectionParams(1, np.zeros(1, np.float32))


def mean(value: float) -> dict[str, Layer]:
    return {"mean": Layer("mean", np.full(3, value, np.float32))}


@pytest.fixture
def guarded(compile_parser: Compile, tmp_path: Path) -> Iterator[GuardedLibrary]:
    options = GuardOptions(crash_dir=tmp_path / "crashes", timeout_s=5, load_timeout_s=20)
    library = open_library(
        compile_parser("crashes.cpp", "-g"), guard="always", guard_options=options
    )
    assert isinstance(library, GuardedLibrary)
    yield library
    library.close()


def gone(pid: int, within_s: float = 10) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def status(pid: int | None) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def test_what_it_gives_up(guarded: GuardedLibrary) -> None:
    assert len(guarded.bbox_parser("ParseSandbox")(mean(0), NETWORK, PARAMS)) == 0
    pid = guarded.process.pid
    said = status(pid)
    assert said["NoNewPrivs"] == "1"
    assert said["Seccomp"] == "2"
    assert said["Threads"] == "1"
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert " 0 " in next(line for line in limits.splitlines() if line.startswith("Max core"))
    limit = "Max data" if gpu_present() else "Max address"
    space = next(line for line in limits.splitlines() if line.startswith(limit)).split()
    assert 4 << 30 < int(space[3]) < 6 << 30
    assert Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "1000"
    assert not [n for n in guarded.decisions if "not closed off" in str(n)]
    names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    others = [n for n in names if not n.startswith("/memfd:headrace-")]
    assert len(others) == 3 + 1 + 2, "streams, the application's link, the pair that it made itself"
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"


@pytest.mark.parametrize(
    ("flag", "phrase"),
    [
        ("-DCRASH", r"the library crashed \(SIGSEGV\), writing a null pointer while it was loaded"),
        ("-DEXIT", r"the library ended its process by exit\(3\) while it was loaded"),
        ("-DHANG", r"the library did not return within 0\.5 s and was ended while it was loaded"),
    ],
)
@pytest.mark.sampled
def test_harm_while_it_is_loaded(compile_parser: Compile, flag: str, phrase: str) -> None:
    path = compile_parser("loads.cpp", flag, "-O1")  # one frame
    with pytest.raises(CustomLibraryError, match=phrase) as error:
        open_library(path, guard="always", guard_options=GuardOptions(load_timeout_s=0.5))
    if flag == "-DCRASH":
        assert "#0 _GLOBAL__sub_I_" in str(error.value)
        assert "#1" not in str(error.value), "how the loader got there does not matter"


def test_killed_from_outside(guarded: GuardedLibrary) -> None:
    parse = guarded.bbox_parser("ParseSegfault")
    before = guarded.process.pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    with pytest.raises(
        LibraryDiedError, match=r"was killed \(SIGKILL\), perhaps .* memory ran out"
    ):
        parse(mean(0), NETWORK, PARAMS)
    assert len(parse(mean(0), NETWORK, PARAMS)) == 1
    assert guarded.process.pid != before


@pytest.mark.slow
def test_the_process_that_starts_them_is_replaced(guarded: GuardedLibrary) -> None:
    parse = guarded.bbox_parser("ParseSegfault")
    parent = int(status(guarded.process.pid)["PPid"])
    worker = guarded.process.pid
    assert worker is not None
    os.kill(parent, signal.SIGKILL)
    assert gone(worker)
    with pytest.raises(LibraryDiedError):
        parse(mean(0), NETWORK, PARAMS)
    assert len(parse(mean(0), NETWORK, PARAMS)) == 1
    assert int(status(guarded.process.pid)["PPid"]) not in (parent, os.getpid())


def test_ctrl_c_in_a_call(guarded: GuardedLibrary) -> None:
    loop, sound = guarded.bbox_parser("ParseLoop"), guarded.bbox_parser("ParseSegfault")
    main = threading.main_thread().ident
    assert main is not None
    # a shell starts background jobs with the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop(mean(1), NETWORK, PARAMS)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(sound(mean(0), NETWORK, PARAMS)) == 1
    assert guarded.process.deaths == 0


def test_calls_of_several_threads(guarded: GuardedLibrary) -> None:
    parsers = [guarded.bbox_parser(name) for name in ("ParseSegfault", "ParseNan", "ParseThrow")]

    def work(number: int) -> None:
        for i in range(60):
            found = parsers[(number + i) % 3](mean(0.01 * i), NETWORK, PARAMS)
            assert found.boxes.tolist() == [[2, 4, 6, 8]]

    together(work, 4)


def test_a_worker_is_collected_while_another_is_started(
    guarded: GuardedLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector may run in the midst of anything, with locks held."""
    process = GuardedProcess("dropped", GuardOptions())
    process.started("dropped")
    pid, dropped = process.pid, [process]
    del process
    exchange = keeper.Keeper._exchange

    def collecting(self: keeper.Keeper, *arguments: object) -> object:
        dropped.clear()
        return exchange(self, *arguments)

    monkeypatch.setattr(keeper.Keeper, "_exchange", collecting)
    other = open_library(guarded.path, guard="always")
    assert pid is not None
    assert gone(pid)
    assert len(other.bbox_parser("ParseNan")(mean(0), NETWORK, PARAMS)) == 1


def test_nothing_is_left_behind(guarded: GuardedLibrary, compile_parser: Compile) -> None:
    path = compile_parser("crashes.cpp", "-g")
    gc.collect()  # libraries of other tests
    before = len(os.listdir("/proc/self/fd"))
    pids = []
    for i in range(8):
        library = open_library(path, guard="always")
        assert isinstance(library, GuardedLibrary)
        library.bbox_parser("ParseNan")(mean(1), NETWORK, PARAMS)
        pids.append(library.process.pid)
        if i % 2:
            library.close()  # the others are collected
        del library
    assert all(pid is not None and gone(pid) for pid in pids)
    assert len(os.listdir("/proc/self/fd")) == before


SCRIPT = """
import sys, numpy as np
from headrace.custom import open_library
from headrace.meta import DetectionParams, Layer, NetworkInfo
library = open_library(sys.argv[1], guard="always")
parse = library.bbox_parser("ParseLoop")
print(library.process.pid, flush=True)
params = DetectionParams(1, np.zeros(1, "f4"))
parse({"mean": Layer("mean", np.ones(3, "f4"))}, NetworkInfo(8, 8, 3), params)
"""


@pytest.mark.slow
def test_it_ends_with_the_application(compile_parser: Compile) -> None:
    path = compile_parser("crashes.cpp", "-g")
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True
    ) as application:
        assert application.stdout is not None
        worker = int(application.stdout.readline())
        parent = int(status(worker)["PPid"])
        time.sleep(0.2)
        application.kill()
    assert gone(worker)
    assert gone(parent)


def test_a_forked_application_has_workers_of_its_own(guarded: GuardedLibrary) -> None:
    inherited = guarded.bbox_parser("ParseNan")
    worker = guarded.process.pid
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            library = open_library(guarded.path, guard="always")
            found = library.bbox_parser("ParseNan")(mean(0), NETWORK, PARAMS)
            again = inherited(mean(0), NETWORK, PARAMS)
            code = 0 if len(found) == len(again) == 1 and guarded.process.pid != worker else 2
            guarded.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(inherited(mean(0), NETWORK, PARAMS)) == 1
    assert (guarded.process.pid, guarded.process.deaths) == (worker, 0)


def reversed_sum(worker: object, payload: dict, arrays: list[np.ndarray]) -> tuple[dict, list]:
    """What any part of Headrace may ask a worker: arrays and JSON there and back."""
    if payload.get("exit"):
        os._exit(9)
    return {"sum": float(arrays[0].sum()), **payload}, [arrays[0][::-1]]


def test_any_function_can_be_called_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (Path(__file__).parent, Path(__file__).parents[3]):  # what it imports, too
        monkeypatch.syspath_prepend(str(folder))
    process = GuardedProcess("anything", GuardOptions())
    call = f"{Path(__file__).stem}:reversed_sum"
    values = np.arange(100_000, dtype=np.float64)
    answer, (back,) = process.invoke(call, {"a": [1, "ü"]}, [values], what="anything: sum")
    assert answer == {"sum": values.sum(), "a": [1, "ü"]}
    assert np.array_equal(back, values[::-1])
    with pytest.raises(LibraryDiedError, match=r"anything: sum.*exit status 9"):
        process.invoke(call, {"exit": True}, [values], what="anything: sum")
    process.invoke(call, {}, [values], what="anything: sum")
    process.close()


def test_reports_are_read_as_far_as_they_go() -> None:
    from headrace.custom.guard.crash import describe, read_report

    whole = (
        b"headrace-crash 1\nsignal 11 1 0x10 write\nfunction f\n"
        b"region 0x1000 0x2000 output layer x\n"
        b"pc 0x5000\nframe 0x5000\nmap 4000-6000 r-xp 0 00:00 0 /nowhere/lib.so\n"
        b"symbol 0x5000 16 _Z3foov\nend\n"
    )
    found, trace = describe(read_report(whole), -11, "died", 1)
    assert found == "crashed (SIGSEGV), writing a null pointer"
    assert trace == ["#0 foo() + 16 (lib.so)"]
    for size in range(len(whole)):
        describe(read_report(whole[:size]), -11, "died", 1)
        describe(read_report(b"headrace-crash 1\n" + whole[size:][::-1]), -11, "died", 1)
    assert read_report(b"something else") is None


def test_a_limit_beyond_all_clocks_is_none(compile_parser: Compile) -> None:
    options = GuardOptions(timeout_s=1e30, load_timeout_s=1e30)
    library = open_library(
        compile_parser("crashes.cpp", "-g"), guard="always", guard_options=options
    )
    assert isinstance(library, GuardedLibrary)
    assert library.process.pid is not None
    library.close()


def test_modules_that_cannot_be_imported_ahead_keep_no_worker_from_starting(
    compile_parser: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = keeper.Keeper()
    own.import_ahead(["headrace.nothing"])
    monkeypatch.setattr("headrace.custom.guard.handle.keeper", lambda: own)
    library = open_library(compile_parser("crashes.cpp", "-g"), guard="always")
    assert isinstance(library, GuardedLibrary)
    assert library.process.pid is not None
    library.close()
    own.close()
