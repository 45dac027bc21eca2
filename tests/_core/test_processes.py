"""Processes that are started, end with their parent, and whose end is worded."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import pytest

from headrace._core import fork_server
from headrace._core.processes import ProcessEnd, SpawnedProcess, start_module


@pytest.fixture(autouse=True)
def _no_warm_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is looked at: none is shared with other tests."""
    monkeypatch.setattr(fork_server, "_servers", WeakValueDictionary())


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "ended with exit status 0"),
        (3, "ended with exit status 3"),
        (-signal.SIGKILL, "was killed by SIGKILL"),
        (-40, "was killed by signal 40"),
        (None, "ended without an exit status"),
    ],
)
def test_an_end_in_words(code: int | None, text: str) -> None:
    assert str(ProcessEnd(code)) == text
    assert ProcessEnd(code).signal == text.partition(" by ")[2]


def test_a_module_runs_with_this_interpreter_and_without_the_working_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "platform.py").write_text("print('the wrong one')")
    process = start_module("platform", stdout=subprocess.PIPE, cwd=tmp_path)
    assert b"Linux" in process.communicate(timeout=30)[0]


def add(pipe: Any, more: int) -> None:
    pipe.send([signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
    while True:
        pipe.send(pipe.recv() + more)


@pytest.mark.parametrize("ignored", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGHUP)])
def test_a_function_answers_through_its_pipe(ignored: tuple[signal.Signals, ...]) -> None:
    child = SpawnedProcess(add, 2, name="adder", ignored=ignored)
    assert child.pipe.recv()[1] == (signal.SIG_IGN if signal.SIGTERM in ignored else signal.SIG_DFL)
    child.pipe.send(40)
    assert child.pipe.recv() == 42
    assert str(child.end(0.0)) == "ended without an exit status"
    child.kill()
    assert child.end(0.0) == ProcessEnd(-signal.SIGKILL)
    with pytest.raises(EOFError):
        child.pipe.recv()


PARENT = """
import time
from headrace._core.processes import SpawnedProcess
from tests._core.test_processes import stuck
if __name__ == "__main__":
    child = SpawnedProcess(stuck, name="stuck")
    print(child.pipe.recv(), flush=True)
    time.sleep(60)
"""


def stuck(pipe: Any) -> None:
    """Send the process id and call what holds Python's lock for a minute."""
    import ctypes

    pipe.send(os.getpid())
    ctypes.PyDLL(None).sleep(60)


def test_a_child_dies_with_its_parent_also_in_native_code(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env=environment
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


FLAGS = """
from headrace._core.processes import SpawnedProcess
from tests._core.test_processes import tell_flags
if __name__ == "__main__":
    child = SpawnedProcess(tell_flags, name="flags")
    print(child.pipe.recv())
"""


def tell_flags(pipe: Any) -> None:
    pipe.send((sys.flags.optimize, sys.flags.dont_write_bytecode))


@pytest.mark.slow
def test_flags_of_the_interpreter_are_those_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(FLAGS)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-O", "-B", str(tmp_path / "parent.py")]
    assert subprocess.check_output(command, env=environment, text=True).strip() == "(1, 1)"


def test_a_child_of_a_parent_that_has_gone_ends() -> None:
    code = "from headrace._core.processes import die_with_parent; die_with_parent(1 << 30)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1


def tell(pipe: Any, name: str) -> None:
    """Answer questions about this process."""
    while True:
        match pipe.recv():
            case "environment":
                pipe.send(os.environ.get(name))
            case "parent":
                pipe.send((os.getppid(), len(os.listdir("/proc/self/fd"))))
            case "print":
                print("printed", flush=True)
                pipe.send(None)
            case "modules":
                pipe.send("colorsys" in sys.modules)
            case "exit":
                sys.exit(7)


def asked(child: SpawnedProcess, question: str) -> Any:
    child.pipe.send(question)
    return child.pipe.recv()


def test_processes_share_one_warm_interpreter_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    children = []
    for value in ("0", "1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        children.append(
            SpawnedProcess(tell, "CUDA_VISIBLE_DEVICES", name="teller", ahead=["colorsys"])
        )
    assert [asked(child, "environment") for child in children] == ["0", "1"]
    (server, fds), (other, more) = (asked(child, "parent") for child in children)
    assert server == other != os.getpid()
    assert fds == more
    assert all(asked(child, "modules") for child in children)
    children[0].pipe.send("exit")
    assert children[0].end(20) == ProcessEnd(7)
    children[1].kill()
    assert children[1].end(0) == ProcessEnd(-signal.SIGKILL)


def test_an_environment_that_imports_may_read_has_an_interpreter_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = SpawnedProcess(tell, "HEADRACE_TEST", name="teller")
    monkeypatch.setenv("HEADRACE_TEST", "new")
    second = SpawnedProcess(tell, "HEADRACE_TEST", name="teller")
    assert [asked(child, "environment") for child in (first, second)] == [None, "new"]
    assert asked(first, "parent")[0] != asked(second, "parent")[0]
    for child in (first, second):
        child.kill()


def test_the_end_of_the_interpreter_ends_its_processes_and_the_next_has_another() -> None:
    first = SpawnedProcess(tell, "", name="teller")
    server = asked(first, "parent")[0]
    os.kill(server, signal.SIGKILL)
    assert first.end(20) == ProcessEnd(-signal.SIGKILL)
    second = SpawnedProcess(tell, "", name="teller")
    assert asked(second, "parent")[0] != server
    second.kill()


def test_a_process_prints_where_its_application_does_now(capfd: pytest.CaptureFixture[str]) -> None:
    child = SpawnedProcess(tell, "", name="teller")
    asked(child, "print")
    child.kill()
    assert capfd.readouterr().out == "printed\n"


def test_nothing_is_left_of_forgotten_processes() -> None:
    def run() -> int:
        child = SpawnedProcess(tell, "", name="teller")
        server: int = asked(child, "parent")[0]
        child.kill()
        child.pipe.close()
        return server

    run()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    server = run()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    assert not Path(f"/proc/{server}").exists()


def test_without_a_fork_a_process_is_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where something starts threads with every Python: `sitecustomize`, say."""
    monkeypatch.delattr(os, "pidfd_open")
    child = SpawnedProcess(tell, "", name="teller")
    assert asked(child, "parent")[0] == os.getpid()
    child.kill()


THREADS = (
    "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
)


def test_an_interpreter_with_threads_forks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "starts_threads.py").write_text(THREADS)
    monkeypatch.syspath_prepend(str(tmp_path))
    child = SpawnedProcess(tell, "", name="teller", ahead=["starts_threads"])
    assert asked(child, "parent")[0] == os.getpid()
    child.kill()


HERE = """
import os, signal, sys, threading
from headrace._core.fork_here import fork_here
from headrace._core.processes import SpawnedProcess
from tests._core.test_processes import asked, end_of, tell
if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: None)
    if "thread" in sys.argv:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    os.environ["HEADRACE_TEST"] = "as before"
    held = fork_here(["colorsys", "pyarrow"])
    before = os.listdir("/proc/self/fd")
    child = SpawnedProcess(tell, "HEADRACE_TEST", name="teller")
    server, fds = asked(child, "parent")
    asked(child, "print")
    print(held is not None, end_of(server), fds, asked(child, "environment"))
    print(asked(child, "modules"), "colorsys" in sys.modules, "JE_ARROW_MALLOC_CONF" in os.environ)
    print(sys.modules["pyarrow"].default_memory_pool().backend_name)
    child.kill()
    child.pipe.close()
    del child, held
    print(os.path.exists(f"/proc/{server}"))
"""


def end_of(process: int) -> bool:
    """Whether a process runs the script of this one."""
    return Path(f"/proc/{process}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes()


@pytest.mark.parametrize("words", [(), ("thread",)])
def test_a_command_forks_the_interpreter_itself_while_it_has_one_thread(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "parent.py").write_text(HERE)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(tmp_path / "parent.py"), *words]
    told = subprocess.check_output(command, env=environment, text=True).split()
    itself = str(not words)
    assert told[:3] == ["printed", itself, itself]
    assert told[4:] == ["as", "before", itself, "True", "False", "system", "False"]
