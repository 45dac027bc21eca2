"""C++ plugins whose data would be lost in an engine: errors with layer and method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from headrace.custom import CustomLibrary
from headrace.engine import BuildOptions, Session, build
from headrace.errors import PluginError
from tests.plugins.models import FLOAT, model, network
from tests.trt.host.conftest import Compile

V3_FAULTS = {
    1: "getFieldsToSerialize returned null",
    2: r"getFieldsToSerialize returned field 0 \(fault\) with a length of -4",
    3: "getFieldsToSerialize returned field 0 without a name",
    4: r"getFieldsToSerialize returned field 0 \(fault\) without data",
    5: r"field 0 \(fault\) with a length of 1073741824, more than its data has",
    6: "clone returned the plugin itself",
    7: "attachToContext returned the plugin itself",
    8: "getCapabilityInterface returned None for RUNTIME",
}
V2_FAULTS = {
    6: "clone returned the plugin itself",
    9: "serialize wrote 20 bytes or more, and getSerializationSize returned 4",
    10: "serialize wrote 4100 bytes or more, and getSerializationSize returned 4",
}


def build_faulty(op: str, fault: int, folder: Path) -> None:
    info = [helper.make_tensor_value_info(name, FLOAT, ["N", 4]) for name in "xy"]
    node = helper.make_node(op, ["x"], ["y"], name="lost", fault=fault)
    build(network(model([node], info[:1], info[1:]), folder), BuildOptions()).open_session().close()


@pytest.mark.parametrize(
    ("op", "fault", "said"),
    [
        *(("Lost3", fault, said) for fault, said in V3_FAULTS.items()),
        *(("Lost2", fault, said) for fault, said in V2_FAULTS.items()),
    ],
)
def test_lost_data_is_an_error_of_layer_and_method(
    compile_host: Compile,
    opened: Callable[[Path], CustomLibrary],
    op: str,
    fault: int,
    said: str,
    tmp_path: Path,
) -> None:
    library = opened(compile_host("lost.cpp"))
    with pytest.raises(PluginError, match=said) as caught:
        build_faulty(op, fault, tmp_path)
    assert "layer 'lost'" in str(caught.value)
    del library


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        (11, "behind the end of output 0"),
        (12, "behind the end of the workspace"),
        (16, "before the start of output 0"),
    ],
)
@pytest.mark.parametrize("middle", [False, True])
def test_writes_around_memory_are_errors_and_harm_nothing(
    compile_host: Compile,
    opened: Callable[[Path], CustomLibrary],
    fault: int,
    place: str,
    middle: bool,
    tmp_path: Path,
) -> None:
    library = opened(compile_host("lost.cpp"))
    info = [helper.make_tensor_value_info(name, FLOAT, ["N", 4]) for name in "xy"]
    nodes = [helper.make_node("Lost2", ["x"], ["y"], name="lost", fault=fault)]
    if middle:  # the runtime calls it back and has the memory of its output
        nodes = [
            helper.make_node("Abs", ["x"], ["a"]),
            helper.make_node("Lost2", ["a"], ["b"], name="lost", fault=fault),
            helper.make_node("Abs", ["b"], ["y"]),
        ]
    plan = build(network(model(nodes, info[:1], info[1:]), tmp_path), BuildOptions())
    with (
        plan.open_session() as session,
        pytest.raises(PluginError, match=f"enqueue wrote {place}") as caught,
    ):
        session.run({"x": np.ones((1, 4), np.float32)})
    assert "layer 'lost'" in str(caught.value)
    del library


def test_without_a_fault_they_are_built(
    compile_host: Compile, opened: Callable[[Path], CustomLibrary], tmp_path: Path
) -> None:
    library = opened(compile_host("lost.cpp"))
    for op in ("Lost3", "Lost2"):
        build_faulty(op, 0, tmp_path)
    del library


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (13, "enqueue returned without an error and wrote nothing to its output"),
        (14, "enqueue wrote into input 0"),
    ],
)
@pytest.mark.parametrize("middle", [False, True])
def test_nothing_that_was_not_computed_is_a_result(
    compile_host: Compile,
    opened: Callable[[Path], CustomLibrary],
    fault: int,
    said: str,
    middle: bool,
    tmp_path: Path,
) -> None:
    library = opened(compile_host("lost.cpp"))
    with (
        _session(fault, middle, tmp_path) as session,
        pytest.raises(PluginError, match=said) as caught,
    ):
        session.run({"x": np.ones((1, 4), np.float32)})
    assert "layer 'lost'" in str(caught.value)
    del library


@pytest.mark.parametrize("middle", [False, True])
def test_elements_that_were_left_out_are_reported_once(
    compile_host: Compile,
    opened: Callable[[Path], CustomLibrary],
    middle: bool,
    tmp_path: Path,
) -> None:
    library = opened(compile_host("lost.cpp"))
    with _session(15, middle, tmp_path) as session:
        for _ in range(2):
            session.run({"x": np.ones((1, 4), np.float32)})
        notices = [n for n in session.notices if n.code == "plugin-unwritten"]
    assert [n.data["elements"] for n in notices] == [1]
    del library


def _session(fault: int, middle: bool, folder: Path) -> Session:
    info = [helper.make_tensor_value_info(name, FLOAT, ["N", 4]) for name in "xy"]
    nodes = [helper.make_node("Lost2", ["x"], ["y"], name="lost", fault=fault)]
    if middle:  # the runtime calls it back and has the memory of its output
        nodes = [
            helper.make_node("Abs", ["x"], ["a"]),
            helper.make_node("Lost2", ["a"], ["b"], name="lost", fault=fault),
            helper.make_node("Abs", ["b"], ["y"]),
        ]
    plan = build(network(model(nodes, info[:1], info[1:]), folder), BuildOptions())
    return plan.open_session()
