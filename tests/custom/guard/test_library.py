"""Guarded or not, a library gives the same results, errors and notices: every kind of function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.custom import CustomLibrary, open_library
from headrace.custom.guard import GuardOptions, LibraryDiedError, keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.errors import HeadraceError, ParserError
from headrace.meta import (
    ClassifierParams,
    DetectionParams,
    Layer,
    NetworkInfo,
    SegmentationParams,
)
from tests.custom.conftest import Compile
from tests.profiles import examples

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)

NETWORK = NetworkInfo(4, 3, 3)
BOXES = DetectionParams(3, np.float32([0.25, 0.5, 0.75]), np.float32([0.1, 0.2, 0.3]))
PARAMS = {
    "bbox": BOXES,
    "instance": BOXES,
    "classifier": ClassifierParams(0.25, [["red", "green"], ["big"]]),
    "segmentation": SegmentationParams(3, 0.5),
}
ROWS = np.float32([[1, 10, 20, 30, 40, 0.9], [2, 5, 6, 7, 8, 0.5], [0, 1, 2, 3, 4, 0.25]])
RNG = np.random.default_rng(0)
LAYERS: dict[str, list[np.ndarray]] = {
    "bbox": [ROWS],
    "instance": [ROWS, RNG.random((3, 5, 4), np.float32)],
    "classifier": [np.float32([0.1, 0.7, 0.2]), np.float32([0.6, 0.4])],
    "segmentation": [RNG.random((3, 3, 4), np.float32)],
}

# What is not the same: addresses, what happens to memory of others, who is called.
SKIPPED = {"ParseCountCallers", "ParsePastThresholds", "parse_table", "ParseMapFalse"}


def layers(kind: str) -> dict[str, Layer]:
    return {f"layer{i}": Layer(f"layer{i}", a.copy()) for i, a in enumerate(LAYERS[kind])}


@pytest.fixture(scope="module", params=["zoo28", "zoo24", "items"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[CustomLibrary, GuardedLibrary]]:
    path: Path = request.getfixturevalue(request.param)
    guarded = open_library(path, guard="always", guard_options=GuardOptions(restarts=100))
    assert isinstance(guarded, GuardedLibrary)
    yield open_library(path), guarded
    guarded.close()


def outcome(library: CustomLibrary, kind: str, name: str) -> list[Any]:
    """What three calls give: values or errors, then the notices."""
    parser = getattr(library, f"{kind}_parser")(name)
    found: list[Any] = []
    for _ in range(3):
        try:
            result = parser(layers(kind), NETWORK, PARAMS[kind])
        except ParserError as error:
            found.append((type(error), str(error)))
        else:
            found.append([_plain(getattr(result, f.name)) for f in fields(result)])
    return [*found, [str(n) for n in parser.notices]]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


KIND_OF = {
    "Mask": "instance",
    "Keypoints": "instance",
    "Attribute": "classifier",
    "Map": "segmentation",
}


@pytest.mark.sampled
def test_every_parser_of_the_test_libraries(pair: tuple[CustomLibrary, GuardedLibrary]) -> None:
    free, guarded = pair
    assert guarded.symbols() == list(free.symbols())
    seen = 0
    for name in free.symbols():
        kind = next((k for word, k in KIND_OF.items() if word in name), "bbox")
        if name in SKIPPED or any(word in name for word in ("Label", "Cuda", "TenMillion")):
            continue
        assert outcome(guarded, kind, name) == outcome(free, kind, name), name
        seen += 1
    assert seen > 8
    assert guarded.process.deaths == 0
    own = [str(n) for n in guarded.decisions if "worker process" not in str(n)]
    assert own == [str(n) for n in free.decisions]


@pytest.mark.sampled
def test_layouts_alternate(pair: tuple[CustomLibrary, GuardedLibrary]) -> None:
    """Each call is prepared for its own tensors, in a region that grows."""
    free, guarded = pair
    name = next(n for n in free.symbols() if n in ("ParseByGrowth", "ParseMasks"))
    kind = "bbox" if name == "ParseByGrowth" else "instance"
    parsers = [getattr(library, f"{kind}_parser")(name) for library in (free, guarded)]
    for count in (1, 700, 2, 9000, 1, 9000, 700):
        rows = np.tile(ROWS, (count, 1))
        given = {"layer0": Layer("layer0", rows)}
        if kind == "instance":
            given["masks"] = Layer("masks", RNG.random((len(rows), 2, 3), np.float32))
        expected, found = (p(given, NETWORK, BOXES) for p in parsers)
        assert len(found) == len(expected) == 3 * count
        assert np.array_equal(found.boxes, expected.boxes)
        if kind == "instance":
            assert all(map(np.array_equal, found.masks, expected.masks))


def test_types_and_strides(pair: tuple[CustomLibrary, GuardedLibrary]) -> None:
    """Views are passed on with their values; types that C++ has no name for are refused alike."""
    free, guarded = pair
    name = next(n for n in free.symbols() if n in ("ParseByGrowth", "ParseBoxesOnly"))
    for data in (ROWS[::2], np.asfortranarray(ROWS), ROWS.astype(np.float64), ROWS[:0]):
        results = []
        for library in (free, guarded):
            given = {"layer0": Layer("layer0", data)}
            try:
                results.append(library.bbox_parser(name)(given, NETWORK, BOXES).boxes.tolist())
            except HeadraceError as error:
                results.append(str(error))
        assert results[0] == results[1]


def test_class_maps_end_at_a_guarded_page(compile_parser: Compile, tmp_path: Path) -> None:
    library = open_library(
        compile_parser("crashes.cpp", "-g"),
        guard="always",
        guard_options=GuardOptions(crash_dir=tmp_path),
    )
    parse = library.segmentation_parser("ParseMapPast")
    with pytest.raises(LibraryDiedError, match=r"past the end of the class map \(12,288 bytes\)"):
        parse(layers("segmentation"), NetworkInfo(64, 48, 3), PARAMS["segmentation"])
    with pytest.raises(LibraryDiedError, match=r"past the end of the class map \(140 bytes\)"):
        parse(layers("segmentation"), NetworkInfo(7, 5, 3), PARAMS["segmentation"])


@pytest.mark.parametrize(
    ("kind", "name", "field"),
    [
        ("classifier", "ParseLabelLiteral", "an attributeLabel"),
        ("classifier", "ParseLabelDamaged", "an attributeLabel"),
        ("instance", "ParseMaskStatic", "a mask"),
    ],
)
def test_what_cannot_be_released_is_named(
    compile_parser: Compile, tmp_path: Path, kind: str, name: str, field: str
) -> None:
    options = GuardOptions(crash_dir=tmp_path)
    library = open_library(
        compile_parser("crashes.cpp", "-g"), guard="always", guard_options=options
    )
    parse = getattr(library, f"{kind}_parser")(name)
    errors = []
    for _ in range(2):
        with pytest.raises(LibraryDiedError) as raised:
            parse(layers(kind), NETWORK, PARAMS[kind])
        errors.append(raised.value)
    text = str(errors[0])
    assert f"the function gave {field} that headrace could not release (SIGABRT: " in text
    how = "strdup or malloc" if kind == "classifier" else "new float[]"
    assert f"{field.split()[1]} must be allocated with {how}" in text
    assert ("it was freed already" in text) == (name == "ParseLabelDamaged")
    assert "#0" not in text, "frames of libc and the interpreter say nothing"
    assert errors[0].same == errors[1].same, "the two saved calls have two places"
    assert text != str(errors[1])


def test_inputs_are_filled_in_the_worker(compile_parser: Compile) -> None:
    path = compile_parser("inputs.cpp")
    free, guarded = open_library(path), open_library(path, guard="always")
    results = []
    for library in (free, guarded):
        fill = library.input_initializer()
        assert fill is not None
        given = {"a": np.zeros((4, 2, 3), np.float32), "b": np.zeros((4, 5), np.float32)}
        try:
            fill(given, NETWORK, 4)
        except HeadraceError as error:
            results.append(str(error))
        else:
            results.append([a.tolist() for a in given.values()])
    assert results[0] == results[1]
    assert open_library(path, guard="always").input_initializer() is not None


@settings(max_examples=examples(60))
@given(words=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 300), min_size=16, max_size=16))
def test_no_answer_of_a_broken_worker_is_believed(words: list[int]) -> None:
    """Whatever numbers stand there: a result within the region, or `ProtocolError`."""
    from headrace.custom.guard.ipc import RESULT_READERS, ProtocolError, SharedRegion, new_memory

    region = SharedRegion(new_memory("test", 1 << 16))
    for read in RESULT_READERS.values():
        try:
            read(words, region)
        except ProtocolError:
            continue


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 200_000,
        b'{"decisions": [1]}',
        b'{"notices": 7}',
        b'{"error": {"type": "ParserError", "found": "", "where": null, "expected": null,'
        b' "fix": []}}',
    ],
)
def test_no_message_of_a_broken_worker_is_believed(
    items: Path, text: bytes, tmp_path: Path
) -> None:
    """It ends the worker, and is told as that; the next call has another."""
    from headrace.custom.guard import ipc

    options = GuardOptions(crash_dir=tmp_path)
    library = open_library(items, guard="always", guard_options=options)
    assert isinstance(library, GuardedLibrary)
    process = library.process
    running = process.started("test")

    class Broken:
        busy = closed = False

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

        def ask(self, *_: object) -> str:
            running.outputs.ensure(len(text))
            running.outputs.put(0, text)
            running.words[ipc.SIDE_START], running.words[ipc.SIDE_BYTES] = 0, len(text)
            running.words[ipc.STATUS] = b"error" in text
            running.words[ipc.OUTPUT_SIZE] = running.outputs.size
            return "given"

        def take_answered(self) -> int:
            return 0

    running.channel = Broken()  # type: ignore[assignment]
    with pytest.raises(LibraryDiedError, match="overwrote the memory of its worker"):
        process.invoke("headrace.custom.guard.serve:open_parser", what="test")
    assert process.pid is None
    assert process.invoke(
        "headrace.custom.guard.serve:open_parser",
        {"kind": "instance", "name": "ParseMasks"},
        what="test",
    )
    library.close()


@pytest.mark.parametrize("size", [2**37, 2**47, 2**63])
def test_no_region_is_as_large_as_a_worker_says(size: int) -> None:
    from headrace.custom.guard.ipc import ProtocolError, SharedRegion, new_memory

    region = SharedRegion(new_memory("test", 1 << 16))
    with pytest.raises((ProtocolError, OverflowError)):
        region.follow(size)
