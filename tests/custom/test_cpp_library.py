"""C++ detector parsers of both generations: what reaches them, what comes back."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ModelConfig
from headrace.custom import open_library
from headrace.custom.cpp_parsers import ParserReturnedFalseError
from headrace.errors import CustomLibraryError, ParserError
from headrace.infer.parser_choice import custom_library
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo
from tests.custom.conftest import Compile, rows_layer
from tests.memory import resident
from tests.profiles import examples
from tests.together import together

GROWERS = ("ParseByGrowth", "ParseByAssignment", "ParseByResize")


@pytest.fixture(params=["zoo28", "zoo24"])
def zoo(request: pytest.FixtureRequest) -> Path:
    """The zoo in each of the two layouts."""
    path = request.getfixturevalue(request.param)
    assert isinstance(path, Path)
    return path


def rows_of(detections: Detections) -> np.ndarray:
    return np.column_stack((detections.class_ids, detections.boxes, detections.scores))


@pytest.mark.parametrize("name", GROWERS)
@pytest.mark.parametrize("count", [0, 1, 2, 6, 7, 42, 1000])
def test_boxes_of_both_layouts_are_what_the_parser_wrote(
    zoo: Path, name: str, count: int, network: NetworkInfo, params: DetectionParams
) -> None:
    rng = np.random.default_rng(count)
    rows = rng.uniform(0, 400, (count, 6)).astype(np.float32)
    rows[:, 0] = rng.integers(0, 3, count)
    library = open_library(zoo)
    result = library.bbox_parser(name)(rows_layer(rows), network, params)
    np.testing.assert_array_equal(rows_of(result), rows)
    assert result.angles is None
    assert any("marker" in d.sentence for d in library.decisions)


@settings(max_examples=examples(50))
@given(rows=st.lists(st.tuples(st.integers(0, 2), *[st.floats(-1e4, 1e4, width=32)] * 5)))
def test_both_layouts_of_one_source_agree(
    zoo24: Path, zoo28: Path, rows: list[tuple[float, ...]]
) -> None:
    network, params = NetworkInfo(416, 320, 3), DetectionParams(3, np.zeros(3, np.float32))
    results = [
        rows_of(open_library(z).bbox_parser("ParseByGrowth")(rows_layer(rows), network, params))
        for z in (zoo24, zoo28)
    ]
    np.testing.assert_array_equal(results[0], np.asarray(rows, np.float32).reshape(-1, 6))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("way", ["dict", "mapping", "copied"])
def test_every_argument_arrives(
    zoo: Path, network: NetworkInfo, params: DetectionParams, way: str
) -> None:
    tensors = {
        "f": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        "half": np.array([[1, 2]], np.float16),
        "i8": np.array([-5, 6], np.int8),
        "i32": np.array([[70000]], np.int32),
        "wide": np.array([1 << 20] * 3, np.int64),
        "u8": np.array([200, 100], np.uint8),
        "flag": np.array([True, False, True]),
        "scalar": np.array(3.5, np.float32),
        "many": np.ones((1, 2, 1, 2, 1, 2, 1, 2), np.float32),
        "nothing": np.empty((0, 6), np.float32),
    }
    tensors["f"].flags.writeable = way != "copied"
    layers: Mapping[str, Layer] = {name: Layer(name, data) for name, data in tensors.items()}
    if way == "mapping":
        layers = MappingProxyType(layers)
    rows = rows_of(open_library(zoo).bbox_parser("ParseEcho")(layers, network, params))
    np.testing.assert_array_equal(rows[0], [3, 416, 320, 3, len(layers), 0.5])
    pre, post = params.per_class_threshold, params.per_class_post_threshold
    for i in range(3):
        np.testing.assert_array_equal(rows[1 + i], [i, pre[i], post[i], pre[i], 1, 0.5])
    codes = dict(zip(tensors, [0, 1, 2, 3, 4, 5, 5, 0, 0, 0], strict=True))
    for i, (name, data) in enumerate(tensors.items()):
        head, *dims, sums = rows[4 + 6 * i : 10 + 6 * i]
        shape = data.shape or (1,)
        np.testing.assert_array_equal(
            head, [codes[name], len(shape), data.size, i + 1, 0, len(name)]
        )
        np.testing.assert_array_equal(
            np.array(dims)[:, 1:3].ravel(), [*shape, *[0] * (8 - len(shape))]
        )
        values = data.view(np.uint16) if name == "half" else data
        assert sums[1] == values.astype(np.float64).sum()


def test_layers_in_any_memory_order_arrive_contiguous(
    zoo28: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    parser = open_library(zoo28).bbox_parser("ParseByGrowth")
    rows = np.array([[1, 10, 20, 30, 40, 0.9], [2, 5, 6, 7, 8, 0.5]], np.float32)
    for same in (
        np.asfortranarray(rows),
        rows[::-1].copy()[::-1],
        np.repeat(rows, 2, axis=1)[:, ::2],
    ):
        assert not same.flags.c_contiguous
        result = parser({"rows": Layer("rows", same)}, network, params)
        np.testing.assert_array_equal(rows_of(result), rows)


def test_what_changes_between_calls_arrives(
    zoo: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    """Calls like the last one are told less; any other one is told all."""
    networks = [network, NetworkInfo(64, 48, 1)]
    thresholds = [params, DetectionParams(3, np.array([0.1, 0.2, 0.3], np.float32))]
    data = [np.arange(6, dtype=np.float32), np.ones((2, 3), np.int32)]
    library = open_library(zoo)
    parser = library.bbox_parser("ParseEcho")
    first: dict[tuple[int, ...], np.ndarray] = {}
    rng = np.random.default_rng(0)
    for step in range(200):
        if step % 3 != 2:  # two calls alike now and then
            choice = tuple(int(n) for n in rng.integers(0, 2, 5))
        name = ["a", "another"][choice[2]]
        layers = {name: Layer(name, data[choice[3]]), "last": Layer("last", data[choice[4]])}
        arguments = layers, networks[choice[0]], thresholds[choice[1]]
        if choice not in first:
            first[choice] = rows_of(library.bbox_parser("ParseEcho")(*arguments))
        np.testing.assert_array_equal(rows_of(parser(*arguments)), first[choice])
    assert len({rows.tobytes() for rows in first.values()}) == len(first) > 20


def test_layers_that_are_not_aligned_arrive_aligned(
    zoo28: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    rows = np.array([[1, 10, 20, 30, 40, 0.9]], np.float32)
    odd = np.frombuffer(bytearray(1 + rows.nbytes), np.uint8)[1:].view(np.float32).reshape(1, 6)
    odd[:] = rows
    parser = open_library(zoo28).bbox_parser("ParseByGrowth")
    result = parser({"rows": Layer("rows", odd)}, network, params)
    np.testing.assert_array_equal(rows_of(result), rows)


def test_parsers_may_decode_in_place_but_not_into_read_only_memory(
    zoo28: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    parser = open_library(zoo28).bbox_parser("ParseInPlace")
    frozen = np.zeros((1, 6), np.float32)
    frozen.flags.writeable = False
    result = parser({"rows": Layer("rows", frozen)}, network, params)
    assert result.scores[0] == 1.0
    assert frozen[0, 5] == 0.0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros((1, 6)), "layer rows is float64"),
        (np.zeros((1, 6), ">f4"), "layer rows is >f4"),
        (np.zeros((1,) * 9, np.float32), "layer rows has 9 axes"),
    ],
)
def test_tensors_that_cpp_cannot_take_are_named(
    zoo28: Path, network: NetworkInfo, params: DetectionParams, data: np.ndarray, words: str
) -> None:
    parser = open_library(zoo28).bbox_parser("ParseByGrowth")
    with pytest.raises(ParserError, match=words):
        parser({"rows": Layer("rows", data)}, network, params)


def test_false_is_a_parser_error_of_its_own(
    zoo: Path, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    with pytest.raises(ParserReturnedFalseError, match="returned false"):
        open_library(zoo).bbox_parser("ParseFalse")(layers, network, params)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ParseThrow", "threw std::runtime_error: layer 'conf' is missing"),
        ("ParseThrowOdd", "threw an exception of type Odd"),
    ],
)
def test_exceptions_become_parser_errors_and_the_next_frame_works(
    zoo28: Path,
    layers: Mapping[str, Layer],
    network: NetworkInfo,
    params: DetectionParams,
    name: str,
    words: str,
) -> None:
    library = open_library(zoo28)
    with pytest.raises(ParserError) as caught:
        library.bbox_parser(name)(layers, network, params)
    assert words in str(caught.value)
    assert name in str(caught.value)
    assert len(library.bbox_parser("ParseByGrowth")(layers, network, params)) == 2


def test_broken_boxes_are_removed_and_said_once(
    zoo: Path, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    parser = open_library(zoo).bbox_parser("ParseNan")
    for _ in range(3):
        result = parser(layers, network, params)
        np.testing.assert_array_equal(rows_of(result), [[1, 1, 2, 3, 4, 0.5]])
    assert len(parser.notices) == 1
    assert "3 of 4 boxes" in parser.notices[0].sentence


def test_class_ids_beyond_any_configuration_are_dropped_as_the_original_does(
    zoo: Path, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    library = open_library(zoo)
    parser = library.bbox_parser("ParseNegativeClass")
    for _ in range(2):
        np.testing.assert_array_equal(parser(layers, network, params).class_ids, [0])
    warnings = [d for d in library.decisions if d.level == "warning"]
    assert len(warnings) == 1
    assert "4294967295" in warnings[0].sentence


def test_ten_million_boxes_are_refused(
    zoo: Path, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    with pytest.raises(ParserError, match="expected at most 1,000,000"):
        open_library(zoo).bbox_parser("ParseTenMillion")(layers, network, params)


def test_thresholds_read_past_the_configured_classes_let_nothing_through(
    zoo28: Path, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    parser = open_library(zoo28).bbox_parser("ParsePastThresholds")
    assert len(parser(layers, network, params)) == 0


def test_one_library_is_entered_by_one_thread_at_a_time(
    zoo28: Path, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    def most(_: int) -> int:
        parser = open_library(zoo28).bbox_parser("ParseCountCallers")
        return max(int(parser(layers, network, params).class_ids[0]) for _ in range(5))

    assert together(most, 4) == [1, 1, 1, 1]


def test_the_interpreter_runs_while_a_parser_does(
    zoo28: Path, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    parser = open_library(zoo28).bbox_parser("ParseCountCallers")
    done = threading.Event()
    steps = 0

    def work() -> None:
        for _ in range(20):
            parser(layers, network, params)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.0005):
        steps += 1
    thread.join()
    assert steps > 5


def test_rotation_is_ignored_unless_asked_for(
    zoo24: Path,
    zoo28: Path,
    layers: Mapping[str, Layer],
    network: NetworkInfo,
    params: DetectionParams,
) -> None:
    def angles(path: Path, rotation: bool | None) -> np.ndarray | None:
        library = open_library(path, rotation=rotation)
        return library.bbox_parser("ParseByGrowth")(layers, network, params).angles

    assert angles(zoo28, None) is None
    np.testing.assert_array_equal(angles(zoo28, True), np.float32([-0.499, -0.499]))
    assert angles(zoo24, True) is None
    chosen = custom_library(ModelConfig(rotated_boxes=True), zoo28)
    assert chosen.bbox_parser("ParseByGrowth")(layers, network, params).angles is not None


def test_symbols_and_missing_names(zoo28: Path, compile_parser: Compile) -> None:
    library = open_library(zoo28)
    assert set(GROWERS) < set(library.symbols())
    assert library.kind == "cpp"
    with pytest.raises(CustomLibraryError) as caught:
        library.bbox_parser("NvDsParseByGrowt")
    assert "did you mean ParseByGrowth?" in str(caught.value)
    assert "ParseNan" in str(caught.value)
    with pytest.raises(CustomLibraryError, match="parse_table is a variable"):
        library.bbox_parser("parse_table")
    with pytest.raises(CustomLibraryError, match="works on GPU memory"):
        library.bbox_parser("ParseTiltedCuda")
    with pytest.raises(CustomLibraryError, match=r'write extern "C" before') as caught:
        open_library(compile_parser("mangled.cpp")).bbox_parser("ParseForgotten")
    assert "_Z14ParseForgotten" in str(caught.value)


LOADS_AND_CALLS = """
#include <cstdlib>
__attribute__((constructor)) static void registers() {
    const char *address = std::getenv("CALLED_WHILE_IT_IS_LOADED");
    if (address) reinterpret_cast<void (*)()>(std::strtoull(address, nullptr, 10))();
}
"""


def test_libraries_are_looked_at_and_let_go_while_another_waits_for_the_interpreter(
    tmp_path: Path,
) -> None:
    """An initialiser has the loader's lock: who has the interpreter must not wait for that."""
    (tmp_path / "own.cpp").write_text(LOADS_AND_CALLS)
    for name in ("first.so", "second.so"):
        command = ["g++", "-O0", "-shared", "-fPIC", "own.cpp", "-o", name]
        subprocess.run(command, check=True, cwd=tmp_path)
    script = """
import ctypes, os, threading, time
from headrace._core._native import SharedObject

held = [SharedObject("./first.so")]
is_called = threading.Event()

@ctypes.CFUNCTYPE(None)
def called():
    is_called.set()
    time.sleep(0.3)

def let_go():
    is_called.wait()
    held[0].has("registers")
    held.clear()

os.environ["CALLED_WHILE_IT_IS_LOADED"] = str(ctypes.cast(called, ctypes.c_void_p).value)
thread = threading.Thread(target=let_go)
thread.start()
SharedObject("./second.so")
thread.join()
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=60)


def test_stripped_library_works(
    zoo28: Path,
    tmp_path: Path,
    layers: Mapping[str, Layer],
    network: NetworkInfo,
    params: DetectionParams,
) -> None:
    bare = tmp_path / "bare.so"
    subprocess.run(
        ["strip", "--strip-all", "-R", ".comment", "-o", str(bare), str(zoo28)], check=True
    )
    library = open_library(bare)
    assert library.symbols() == open_library(zoo28).symbols()
    assert len(library.bbox_parser("ParseByGrowth")(layers, network, params)) == 2


def test_calls_leave_no_memory_behind(
    zoo28: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    parser = open_library(zoo28).bbox_parser("ParseByAssignment")
    layers = rows_layer(np.zeros((20000, 6), np.float32))  # 560 kB of boxes

    for _ in range(20):
        parser(layers, network, params)
    before = resident()
    for _ in range(300):
        parser(layers, network, params)
    assert resident() - before < 20e6  # a leak of one vector a call would be 168 MB


class _Changing:
    """A layer whose `data` changes the dict that it is in."""

    def __init__(self, layers: dict[str, Layer], change: str) -> None:
        self.layers, self.change = layers, change

    @property
    def data(self) -> np.ndarray:
        array = np.array([0, 2, 7, 0], np.float32)  # two boxes
        if self.change == "grows":
            self.layers["b"] = Layer("b", array)
        else:
            self.layers.pop("b", None)
        return array


@pytest.mark.parametrize(("change", "left"), [("grows", 1), ("shrinks", 2)])
def test_layers_that_change_while_they_are_looked_at(
    compile_parser: Compile,
    network: NetworkInfo,
    params: DetectionParams,
    change: str,
    left: int,
) -> None:
    parse = open_library(compile_parser("commands.cpp")).bbox_parser("ParseCommand")
    layers: dict[str, Layer] = {}
    layers["a"] = _Changing(layers, change)  # type: ignore[assignment]
    if change == "shrinks":
        layers["b"] = Layer("b", np.zeros(3, np.float32))
    found = parse(layers, network, params)
    assert found.boxes[:, 2].tolist() == [left, left]  # those that it had when the call began
