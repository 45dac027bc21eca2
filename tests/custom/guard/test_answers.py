"""Answers of a worker, at load and later: any field may be forged, and none is believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.config import ModelConfig
from headrace.custom.guard import GuardOptions, ipc, keeper, process
from headrace.custom.guard.answers import read_answer
from headrace.custom.guard.crash import describe, read_report
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.guard.process import GuardedProcess
from headrace.errors import HeadraceError
from headrace.infer.model.guarded_engines import GuardedEngines
from headrace.infer.model.guarded_worker import ANSWERS
from headrace.meta import DetectionParams, Layer, NetworkInfo
from headrace.network.tensor_spec import TensorSpec
from tests.conftest import write_mean_model
from tests.creators import registry_as_before
from tests.profiles import examples, thinned

NETWORK, PARAMS = NetworkInfo(32, 32, 3), DetectionParams(1, np.zeros(1, np.float32))
NOTICE = {"code": "box-size", "level": "info", "wording": "{n:.1f} bytes", "data": {"n": 24}}
FAULT = {
    "type": "ParserError",
    "finding": {"code": "parser", "level": "error", "wording": "it failed"},
}
GOOD: dict[str, dict[str, Any]] = {
    "tell_open": {"left": [["files", "no Landlock"]]},
    "load_library": {"symbols": ["ParseA"], "initializer": True},
    "open_parser": {"parser": 0},
    "LibraryWorker.prepare": {},
    "initialize": {},
    "open_engines": {"creators": [["Scale", "1", "", True]], "notices": [NOTICE]},
    "make_network": {
        "network": 1, "plugins": ["node"], "implicit_batch": False, "notices": [NOTICE],
    },
    "build_layers": {"records": [], "blobs": [], "notices": [NOTICE], "built": []},
    "load_layer": {"layer": 1},
    "open_layer": {"context": 1},
    "call_layer": {"notices": [NOTICE]},
    "close": {},
}  # fmt: skip
HOSTILE = [
    None, True, -1, 0, 2**31, 2**63, 2**70, 1e308, float("nan"), "", "x" * 5000, "\0",
    "{n:999999999}", "{n:q}",
    "{0}", "\ud800", [], [[]], [None], ["a", 1], [1] * 70_000, {}, {"a": {}}, "always",
]  # fmt: skip


class ForgedWorker:
    """A worker's side that answers what it is told to; memory and reading are the real ones."""

    answers: dict[str, Any]  # operation -> parts of its answer
    numbers: dict[int, int]  # word -> what stands there
    arrays: dict[str, list[np.ndarray]]

    def __init__(self, *_: object) -> None:
        self.channel: Any = self
        self.busy = self.closed = False
        self.fds: dict[str, int] = {}
        self.owner, self.pid, self.pidfd, self.held = process.os.getpid(), 1, -1, ["A_TOKEN"]
        self.inputs = ipc.SharedRegion(ipc.new_memory("inputs", 1 << 16))
        self.outputs = ipc.SharedRegion(ipc.new_memory("outputs", 1 << 16))
        page = ipc.new_memory("page", ipc.CONTROL_BYTES)
        self.words = ipc.control_words(page)
        process.os.close(page)
        self.keeper = self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def reap_later(self, pid: int) -> None: ...

    def end(self, _: str) -> tuple[None, int]:
        self.close()
        return None, 9

    def close(self) -> None:
        self.closed = True
        for region in (self.inputs, self.outputs):
            if region.fd >= 0:
                process.os.close(region.fd)
                region.fd = -1

    def ask(self, *_: object) -> str:
        words, kind = self.words, type(self)
        words[ipc.STATUS] = words[ipc.WROTE] = 0
        name = "call"
        if words[ipc.OP] == ipc.MESSAGE:
            request = json.loads(self.inputs.take(0, words[ipc.MESSAGE_BYTES]))
            name = request["do"].partition(":")[2]
        out = ipc.Writer(self.outputs)
        arrays = ipc.put_arrays(kind.arrays.get(name, []), out)
        whole = {"payload": GOOD.get(name, {}), "arrays": arrays} | kind.answers.get(name, {})
        data = json.dumps(whole).encode()
        start = -(-out.end // 64) * 64
        self.outputs.ensure(start + len(data))
        self.outputs.put(start, data)
        words[ipc.SIDE_START], words[ipc.SIDE_BYTES] = start, len(data)
        words[ipc.OUTPUT_SIZE] = self.outputs.size
        words[ipc.STATUS] = "error" in whole
        for at, value in kind.numbers.items():
            words[at] = value
        return "answered"


@pytest.fixture(autouse=True)
def forged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[ForgedWorker]]:
    monkeypatch.setattr(process, "WorkerHandle", ForgedWorker)
    ForgedWorker.answers, ForgedWorker.numbers = {}, {}
    write_mean_model(tmp_path / "model.onnx")
    graph = np.frombuffer((tmp_path / "model.onnx").read_bytes(), np.uint8)
    ForgedWorker.arrays = {"make_network": [graph], "build_layers": [graph]}
    with registry_as_before():
        yield ForgedWorker


def parsed(path: Path, options: GuardOptions) -> None:
    """All that a library is asked for, up to the result of a parser."""
    library = GuardedLibrary(
        path, "cpp", abi="auto", rotation=None, guard="always", options=options
    )
    parser = library.bbox_parser("ParseA")
    if initialize := library.input_initializer():
        initialize({"a": np.zeros((2, 3), np.float32)}, NETWORK, 1)
    parser({"a": Layer("a", np.zeros(4, np.float32))}, NETWORK, PARAMS)
    for notice in library.decisions:
        str(notice)
    library.close()


def built(path: Path, config: Path, options: GuardOptions) -> None:
    """All that a library of networks is asked for."""
    engines = GuardedEngines(ModelConfig.load(config), path, options)
    notices: list[Any] = []
    engines.make("Make", notices)
    spec = TensorSpec("a", np.dtype(np.float32), (1,))
    engines.build(
        1, b"", [spec], max_batch=1, batched=True, profiles=[], where=str(config)
    )  # fmt: skip
    for notice in (*engines.decisions, *notices):
        str(notice)
    engines.close()


@pytest.fixture
def scene(tmp_path: Path, mean_config: Callable[..., Path]) -> Callable[[], None]:
    path = tmp_path / "lib.so"
    path.write_bytes(b"\x7fELF")
    config = mean_config()
    options = GuardOptions(crash_dir=tmp_path / "crashes", once=True, restarts=0)

    def all_of_it() -> None:
        parsed(path, options)
        built(path, config, options)

    return all_of_it


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in JSON."""
    yield path
    items: Any = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = deepcopy(value)
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return copy


CASES = [(name, path) for name, good in GOOD.items() for path in places(good)]


def test_sound_answers_are_taken(scene: Callable[[], None], forged: type[ForgedWorker]) -> None:
    forged.arrays["initialize"] = [np.ones((2, 3), np.float32)]
    scene()


@pytest.mark.parametrize(("name", "path"), thinned(CASES, 3))
def test_a_forged_field_is_an_error(
    scene: Callable[[], None], forged: type[ForgedWorker], name: str, path: tuple[Any, ...]
) -> None:
    forged.arrays["initialize"] = [np.ones((2, 3), np.float32)]
    for value in HOSTILE:
        forged.answers = {name: {"payload": replaced(GOOD[name], path, value)}}
        with _maybe():
            scene()


@pytest.mark.parametrize("name", ["load_library", "open_parser", "make_network", "initialize"])
@pytest.mark.parametrize("key", ["arrays", "error", "notices", "decisions", "payload"])
@pytest.mark.sampled
def test_what_stands_beside_an_answer_is_not_believed_either(
    scene: Callable[[], None], forged: type[ForgedWorker], name: str, key: str
) -> None:
    good = {"error": FAULT, "notices": [NOTICE], "decisions": [NOTICE]}
    good |= {"arrays": [["<f4", [2, 3], 0]], "payload": {}}
    for path in places(good[key]):
        for value in HOSTILE:
            forged.answers = {name: {key: replaced(good[key], path, value)}}
            with pytest.raises(HeadraceError) if key == "error" else _maybe():
                scene()


class _maybe:
    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> bool:
        if not isinstance(error, HeadraceError):
            return False
        assert len(str(error)) < 1 << 16
        return True


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([*GOOD, "call"]),
    answer=st.dictionaries(st.sampled_from(["payload", "arrays", "notices", "error"]), _JSON),
    words=st.dictionaries(
        st.integers(ipc.STATUS, 44), st.integers(0, 2**64 - 1) | st.integers(0, 99)
    ),
)
def test_any_answer_is_taken_or_an_error(
    scene: Callable[[], None], forged: type[ForgedWorker], name: str, answer: Any, words: Any
) -> None:
    forged.answers, forged.numbers = {name: answer}, words
    with _maybe():
        scene()


@settings(max_examples=examples(200))
@given(name=st.sampled_from(sorted(ANSWERS)), payload=_JSON)
def test_an_answer_is_of_its_class_or_refused(name: str, payload: Any) -> None:
    try:
        assert isinstance(read_answer(payload, ANSWERS[name]), ANSWERS[name])
    except ipc.ProtocolError:
        return


_LINES = st.sampled_from(
    ["signal", "exit", "hang", "gpu", "function", "release", "message", "stack-overflow", "region",
     "pc", "frame", "map", "symbol", "end"]
)  # fmt: skip


@settings(max_examples=examples(200))
@given(lines=st.lists(st.tuples(_LINES, st.text(max_size=30) | st.integers().map(hex))))
def test_any_report_of_a_crash_is_described(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(["headrace-crash 1", *(f"{key} {value}" for key, value in lines)])
    for ending in ("died", "late", "nonsense"):
        event, trace = describe(read_report(text.encode("utf-8", "replace")), -11, ending, 1.0)
        assert event
        assert all(isinstance(line, str) for line in trace)


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
def test_any_request_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the application's side sends: an error of the request, and the worker lives on."""
    monkeypatch.undo()
    worker = GuardedProcess("requests", GuardOptions())
    names = [f"headrace.custom.guard.serve:{n}" for n in ("load_library", "open_parser", "nothing")]
    names += ["headrace.nowhere:f", "", ":", "headrace.custom.guard.serve:LibraryWorker.prepare"]
    names += [
        f"headrace.infer.model.guarded_operations:{n}" for n in ("open_engines", "call_layer")
    ]

    @settings(max_examples=examples(60), deadline=None)
    @given(name=st.sampled_from(names), payload=_JSON)
    def ask(name: str, payload: Any) -> None:
        with _maybe():
            worker.invoke(name, {"payload": payload}, what="requests")
        assert (worker.deaths, worker.generation) == (0, 1)

    ask()
    worker.close()
