"""Calls in a worker give what calls in this process give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.custom import open_library
from headrace.custom.guard import GuardOptions, keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.validate import CheckedParser
from headrace.errors import HeadraceError
from headrace.meta import BoxParser, DetectionParams, Layer, NetworkInfo
from tests.custom.conftest import Compile
from tests.profiles import examples

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)
SHAPE = (1, 20_000)  # large enough for memory that is shared
NETWORKS = NetworkInfo(32, 32, 3), NetworkInfo(64, 48, 3)
PARAMS = [DetectionParams(n, np.linspace(0.1, 0.5, n, dtype=np.float32)) for n in (1, 3)]
RETURNED, FALSE, THROWN, NAN, WILD_CLASS, IN_PLACE = range(6)

Parsers = tuple[CheckedParser, CheckedParser, GuardedLibrary]
Step = tuple[int, int, int, bool, int, int, int]


@pytest.fixture(scope="module", params=["28", "24", "told by frames"])
def parsers(
    compile_parser: Compile, tmp_path_factory: pytest.TempPathFactory, request: Any
) -> Iterator[Parsers]:
    """One in this process, one in a worker, and that; boxes of both layouts."""
    flags = {
        "28": (),
        "24": ("-DHEADRACE_BOX_BYTES=24",),
        "told by frames": ("-DHEADRACE_NO_ABI_MARKER",),
    }
    path = compile_parser("commands.cpp", *flags[request.param])
    options = GuardOptions(crash_dir=tmp_path_factory.mktemp("crashes"))
    worker = open_library(path, guard="always", guard_options=options)
    assert isinstance(worker, GuardedLibrary)
    yield *(library.bbox_parser("ParseCommand") for library in (open_library(path), worker)), worker
    worker.close()


steps = st.lists(
    st.tuples(
        st.integers(RETURNED, IN_PLACE),
        st.sampled_from([0, 1, 5, 3000]),  # the last outgrows the first output region
        st.integers(0, 100),
        st.booleans(),  # shared, or to be copied
        st.integers(0, 1),
        st.integers(0, 1),
        st.integers(0, 4),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(steps=steps)
@pytest.mark.sampled
def test_the_same_as_in_this_process(parsers: Parsers, steps: list[Step]) -> None:
    results: list[list[Any]] = [[], []]
    *pair, worker = parsers
    arena = worker.output_memory
    for kind, count, value, shared, network, params, layout in steps:
        array = arena.take(np.float32, SHAPE) if shared else np.empty(SHAPE, np.float32)
        assert array is not None
        layers = laid_out(array, layout)
        for parse, seen in zip(pair, results, strict=True):
            array[...] = 0
            array[0, :4] = kind, count, value, value
            seen.append(outcome(parse, layers, NETWORKS[network], PARAMS[params]))
            array[0, :4] = kind, count, value + 1, value
            seen.append(outcome(parse, layers, NETWORKS[network], PARAMS[params]))
    assert results[0] == results[1]
    here, there = ([n.sentence for n in p.notices] for p in pair)
    assert here == there


def laid_out(array: np.ndarray[Any, Any], layout: int) -> Mapping[str, Layer]:
    """Layers with the same numbers at their start, described in another way each."""
    if layout == 1:
        return {"a": Layer("a", array.reshape(2, -1))}
    if layout == 2:
        return {"other": Layer("other", array)}
    if layout == 3:
        return MappingProxyType({"a": Layer("a", array)})
    if layout == 4:  # two layers, the second not dense
        return {"a": Layer("a", array), "b": Layer("b", array[:, ::2])}
    return {"a": Layer("a", array)}


@pytest.mark.slow
def test_calls_go_on_when_the_memory_of_requests_has_moved(parsers: Parsers) -> None:
    _, parse, library = parsers
    array = np.zeros((1, 64), np.float32)
    for value in (7, 8, 9):
        array[0, :3] = RETURNED, 5, value
        found = parse({"a": Layer("a", array)}, NETWORKS[0], PARAMS[0])
        assert found.boxes[0, 0] == value
        running = library.process._worker
        assert running is not None
        before = running.inputs.size
        with pytest.raises(HeadraceError):
            library.bbox_parser("No" * before)
        assert running.inputs.size > before


class _Changing:
    """A layer whose `data` changes the dict that it is in."""

    def __init__(self, layers: dict[str, Layer], array: np.ndarray[Any, Any]) -> None:
        self.layers, self.array = layers, array
        self.change: Any = None

    @property
    def data(self) -> np.ndarray[Any, Any]:
        if self.change:
            self.change(self.layers)
        return self.array


@pytest.mark.sampled
def test_layers_that_change_or_are_none_end_no_worker(parsers: Parsers) -> None:
    library = parsers[2]
    parse = library.bbox_parser("ParseCommand")
    array = np.zeros((1, 64), np.float32)
    array[0, :3] = RETURNED, 2, 7
    layers: dict[str, Layer] = {}
    changing = _Changing(layers, array)
    layers["a"], layers["b"] = changing, Layer("b", array)  # type: ignore[assignment]
    for _ in range(3):
        assert parse(layers, NETWORKS[0], PARAMS[0]).boxes[:, 2].tolist() == [2, 2]
    worker = library.process.pid
    # layers count as they are when the call begins
    changing.change = lambda layers: layers.pop("b", None)
    assert parse(layers, NETWORKS[0], PARAMS[0]).boxes[:, 2].tolist() == [2, 2]
    changing.change = lambda layers: layers.setdefault("b", Layer("b", array))
    assert parse(layers, NETWORKS[0], PARAMS[0]).boxes[:, 2].tolist() == [1, 1]
    with pytest.raises(HeadraceError, match="has no attribute"):
        parse({"a": None, "b": layers["b"]}, NETWORKS[0], PARAMS[0])  # type: ignore[dict-item]
    assert library.process.pid == worker


def outcome(
    parse: BoxParser, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> Any:
    try:
        found = parse(layers, network, params)
    except HeadraceError as error:
        return type(error).__name__, error.finding.sentence, error.finding.expectation
    arrays = (found.boxes, found.scores, found.class_ids)
    assert found.angles is None
    return [a.tobytes() for a in arrays]


@pytest.mark.sampled
def test_results_are_not_overwritten_by_later_calls(parsers: Parsers) -> None:
    _, parse, _ = parsers
    array = np.zeros(SHAPE, np.float32)
    kept = []
    for value in (7, 8, 9):
        array[0, :3] = RETURNED, 5, value
        kept.append(parse({"a": Layer("a", array)}, NETWORKS[0], PARAMS[0]))
    assert [found.boxes[0, 0] for found in kept] == [7, 8, 9]
    assert all((found.scores == PARAMS[0].per_class_threshold[0]).all() for found in kept)
