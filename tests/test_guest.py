"""Importing Headrace and calling it leaves the process of its host as it was."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from multiprocessing import resource_tracker
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

import pytest

import headrace
from headrace._core import fork_server
from tests.guest import differences, process_state
from tests.guest_calls import CALLS, CLOSED, CONFIG, SCENE, Host
from tests.profiles import slow

ROOT = Path(__file__).parents[1]
SOME = [slow(c) if c.__name__ in ("_batch", "_repaired") else c for c in CALLS]


def _public() -> Mapping[str, Any]:
    """Functions, and classes with functions, of the documented faces without `headrace.trt`'s.

    Name behind `headrace.` -> object; of several names the shortest.
    """
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    faces = [re.findall(r"^# (headrace\S*)$", page.read_text(), re.M) for page in pages]
    found: dict[int, tuple[str, Any]] = {}
    others = {id(getattr(headrace.trt, name)) for name in headrace.trt.__all__}
    for face in ["headrace", *(name for names in faces for name in names)]:
        module = importlib.import_module(face)
        for name in module.__all__:
            thing = getattr(module, name)
            full = f"{face}.{name}".removeprefix("headrace.")
            if _is_called(thing) and id(thing) not in others:
                before = found.get(id(thing))
                found[id(thing)] = (
                    min(before, (full, thing), key=lambda row: len(row[0]))
                    if (before)
                    else (full, thing)
                )
    return dict(found.values())


def _is_called(thing: Any) -> bool:
    if isinstance(thing, type):
        data = issubclass(thing, (Enum, BaseException)) or inspect.isabstract(thing)
        return not (data or getattr(thing, "_is_protocol", False)) and bool(_named(thing))
    return not isinstance(thing, ModuleType) and inspect.isfunction(thing)


def _named(kind: type) -> list[str]:
    """Names of a class's own public functions."""
    return [name for name, _ in _functions(kind) if not name.startswith("_")]


def _functions(kind: type) -> Iterator[tuple[str, FunctionType]]:
    for name, value in vars(kind).items():
        function = getattr(value, "__func__", value)
        if isinstance(function, FunctionType):
            yield name, function


def _codes(thing: Any) -> set[CodeType]:
    if isinstance(thing, type):
        return {function.__code__ for _, function in _functions(thing)}
    return {thing.__code__}


PUBLIC = _public()
METHODS = {
    f"{name}.{inner}": function.__code__
    for name, thing in PUBLIC.items()
    if isinstance(thing, type) and name not in CLOSED
    for inner, function in _functions(thing)
    if not inner.startswith("_")
}


def test_every_public_call_has_a_row() -> None:
    rows = {name for names in CALLS.values() for name in names.split()}
    assert rows.isdisjoint(CLOSED)
    assert (rows | set(CLOSED)) - set(PUBLIC) - set(METHODS) == set(), "no such public name"
    assert set(PUBLIC) - rows - set(CLOSED) == set(), "write rows in tests/guest_calls.py"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """An engine is built before, and what lives as long as the process is there."""
    import uvicorn  # noqa: F401

    resource_tracker.ensure_running()
    host = Host(tmp_path_factory.mktemp("host"))
    with headrace.Inferencer.from_config(CONFIG, guard="always"):
        return host


@contextmanager
def _seen_calls() -> Iterator[set[CodeType]]:
    """Collect the functions that this thread and new ones call."""
    called: set[CodeType] = set()

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.fixture(autouse=True)
def _no_warm_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """None stays for later tests: it would be a leaving of the call."""
    monkeypatch.setattr(fork_server, "_servers", WeakValueDictionary())


@pytest.mark.parametrize("call", SOME, ids=lambda call: call.__name__.strip("_"))
def test_a_call_leaves_the_process_as_it_was(
    host: Host, call: Callable[[Host], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(host.folder)
    before = process_state()
    with _seen_calls() as called:
        call(host)
    assert differences(before, process_state(before)) == {}
    missing = [name for name in CALLS[call].split() if not called & _codes(PUBLIC[name])]
    assert not missing, "the row names what it does not call"


@pytest.mark.slow
def test_the_rows_call_every_public_method(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(host.folder)
    with _seen_calls() as called:
        for call in CALLS:
            shutil.rmtree(host.folder / "batch", ignore_errors=True)
            call(host)
    missing = [name for name, code in METHODS.items() if code not in called and name not in CLOSED]
    assert not missing, "write calls in tests/guest_calls.py"


_IMPORTS = """
import pathlib, sys
sys.path.insert(0, {root!r})
import av, numpy, onnx, onnxruntime, PIL.Image, pyarrow.parquet, starlette, uvicorn  # their own
import importlib.util
from headrace._core import fork_server
from tests.guest import differences, process_state
before = process_state()
import headrace
from headrace._core.lazy import import_extra
from tests.guest_calls import Host, quantised
from tests.profiles import slow
for name in headrace.__all__:
    try:
        getattr(headrace, name)
    except headrace.HeadraceError as error:
        print("not here:", name, error, file=sys.stderr)
with headrace.Inferencer.from_config({config!r}) as model:
    pass
for package, call in (
    ("openvino", lambda: importlib.import_module("headrace.engine.backends.openvino")),
    ("faster_coco_eval", lambda: import_extra("faster_coco_eval", "eval")),
    ("trackers", lambda: headrace.open_tracker("bytetrack")),
):
    if importlib.util.find_spec(package):
        call()
quantised(Host(pathlib.Path({folder!r})))
after = process_state(before)
print(differences(before, after))
"""


@pytest.mark.slow
def test_importing_everything_changes_nothing(tmp_path: Path) -> None:
    code = _IMPORTS.format(root=str(ROOT), config=str(CONFIG), folder=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{}\n"


_LEFT_OPEN = """
import sys
import numpy as np
import headrace
from headrace.live import Address, LiveServer, LiveView
config, video, out = sys.argv[1:]
model = headrace.Inferencer.from_config(config)
model(np.zeros((384, 640, 3), np.uint8))
guarded = headrace.Inferencer.from_config(config, guard="always")
guarded(np.zeros((384, 640, 3), np.uint8))
source = headrace.open_source(video)
frames = iter(source)
next(frames)
view = LiveView()
pipeline = headrace.open_pipeline(config, sources=[video, video], outputs=[out, view])
results = iter(pipeline)
next(results)
server = LiveServer(pipeline, view, Address(port=0))
"""


@pytest.mark.slow
def test_what_is_left_open_says_nothing_at_the_end(host: Host) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LEFT_OPEN, str(CONFIG), str(host.video), host.out("left.jsonl")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_nothing_depends_on_the_order_of_a_set(tmp_path: Path) -> None:
    """Texts of errors and choices, with five seeds of the hashes of strings."""
    (tmp_path / "a.txt").write_text(
        "[property]\nonnx-file=none.onnx\nnetwork-tipe=0\nclustermode=2\nlabelfile=x\n"
        "output-blob-names=a;b;c\n[class-attrs-x]\ntopk=1\n[class-attrs-al]\ntopk=2\n"
    )
    commands = (
        ["lint", str(tmp_path / "a.txt"), "--notes"], ["show", str(CONFIG), "--json"],
        ["show", str(SCENE / "detector.onnx")], ["run", str(tmp_path / "a.txt"), "none.mp4"],
    )  # fmt: skip
    for command in commands:
        outputs = {
            subprocess.run(
                [sys.executable, "-m", "headrace", *command], capture_output=True, check=False,
                cwd=SCENE, env={**_environment(), "PYTHONHASHSEED": str(seed)}, timeout=120,
            ).stdout
            for seed in range(4)
        }  # fmt: skip
        assert len(outputs) == 1, command


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)
