"""One signal ends a command, whatever call it is in."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.cli.ending import signals_watched, unwatch_signals
from tests.cli.processes import usual_signals

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
FILES = ("detector.onnx", "config_infer_primary.txt", "conveyor_parser.py", "labels.txt")
# The call is one in C that no signal ends and that leaves the interpreter free: a mutex locked
# twice. The file says that it is reached.
SCRIPT = """
import ctypes
from headrace.cli import main

def block(*args, **options):
    open("blocked", "w").close()
    lock, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_lock(lock)

{place} = block
main()
"""
PLACES = {
    "a model is loaded": "import onnxruntime; onnxruntime.InferenceSession",
    "a source is opened": "import av; av.open",
    "a frame is read": "from headrace.media.sources.video import VideoSource as v; v.__iter__",
    "a frame is prepared": "from headrace.infer.inferencer import Inferencer as i; i.begin",
    "boxes are clustered": "from headrace.infer.inferencer import Inferencer as i; i.complete",
    "a frame is written": "from headrace.pipeline.outlet import Outlet as o; o.write",
    "a run is judged": "from headrace.infer.inferencer import Inferencer as i; i.conclude",
    "its parts are closed": "from headrace.infer.inferencer import Inferencer as i; i.close",
}


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    for name in (*FILES, "conveyor.mp4"):
        shutil.copy(SCENE / name, tmp_path)
    return tmp_path


@contextmanager
def _blocked(folder: Path, place: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`headrace ARGUMENTS` in a call that does not come back."""
    (folder / "script.py").write_text(SCRIPT.format(place=place))

    with subprocess.Popen(
        [sys.executable, "script.py", *arguments], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=usual_signals,
    ) as process:  # fmt: skip
        end = time.monotonic() + 60
        while not (folder / "blocked").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)
        yield process
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_a_run_ends_with_the_first_signal(scene: Path, name: str) -> None:
    arguments = ["run", "config_infer_primary.txt", "conveyor.mp4", "-o", "o.jsonl"]
    arguments += ["--limit", "5"] if name == "a run is judged" else []
    opening = name in ("a model is loaded", "a source is opened")
    with _blocked(scene, PLACES[name], *arguments) as process:
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=30)  # without a watch it takes for ever
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert list(scene.glob(".*.lock")) + list(scene.glob("*.lock")) == []
    assert (scene / "o.jsonl").exists() == (not opening)


def test_a_command_that_is_over_leaves_no_watch_behind() -> None:
    before = {thread.name for thread in threading.enumerate()}
    with signals_watched():
        assert "headrace-signals" in {thread.name for thread in threading.enumerate()}
    end = time.monotonic() + 10
    while {thread.name for thread in threading.enumerate()} - before:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert signal.set_wakeup_fd(-1) == -1


def test_signals_are_those_of_before_when_a_command_is_over() -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with signals_watched():
        during = [signal.getsignal(number) for number in numbers]
        assert signal.SIG_DFL not in during
        unwatch_signals()  # as before a script of the user
        assert [signal.getsignal(number) for number in numbers] == before
    assert [signal.getsignal(number) for number in numbers] == before


INTERRUPTED = """""
import os, signal, sys
from importlib.machinery import ExtensionFileLoader
from headrace.cli.ending import signals_watched

def within(frame):
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return "onnx" in frame.f_locals["self"].name
        frame = frame.f_back
    return False

calls = 0
def look(frame, event, argument):
    global calls
    if event == "call" and within(frame.f_back):
        calls += 1
        if calls == int(sys.argv[1]):
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)

try:
    with signals_watched():
        sys.setprofile(look)
        import onnx
        sys.setprofile(None)
        signal.pause()
except KeyboardInterrupt:
    print("interrupted", calls)
"""


@pytest.mark.parametrize("call", [3, 60])
def test_an_interrupt_waits_for_an_extension_that_is_being_imported(call: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(call)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"interrupted {call}\n"
