"""24 or 28 bytes per box, for libraries that do not say: evidence, and frames that decide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace._core.findings import Finding
from headrace.binary.abi import candidates, plausibility
from headrace.custom import CustomLibrary, open_library
from headrace.custom.guard import GuardMode, keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.errors import CustomLibraryError, ParserError
from headrace.meta import DetectionParams, NetworkInfo
from tests.custom.conftest import Compile, rows_layer

NETWORK = NetworkInfo(416, 320, 3)
PARAMS = DetectionParams(3, np.zeros(3, np.float32))
FLAGS = {24: (), 28: ("-DWIDE",)}


def foreign(compile_parser: Compile, layout: int, *, quiet: bool = False) -> Path:
    return compile_parser("foreign.cpp", *FLAGS[layout], *(["-DQUIET"] if quiet else []))


def some_rows(count: int) -> np.ndarray:
    rng = np.random.default_rng(count)
    rows = rng.uniform(1, 300, (count, 6)).astype(np.float32)
    rows[:, 0] = rng.integers(0, 3, count)
    rows[:, 5] = rng.uniform(0, 1, count)
    return rows


def run(library: CustomLibrary, count: int) -> bool:
    """Whether `count` boxes come back as they were written."""
    rows = some_rows(count)
    result = library.bbox_parser("ParseRows")(rows_layer(rows), NETWORK, PARAMS)
    back = np.column_stack((result.class_ids, result.boxes, result.scores))
    return back.shape == rows.shape and bool((back == rows).all())


def said(decisions: list[Finding], words: str, level: str = "info") -> bool:
    return any(words in d.sentence and d.level == level for d in decisions)


@pytest.mark.parametrize("layout", [24, 28])
def test_code_that_grows_vectors_tells_and_a_frame_confirms(
    compile_parser: Compile, layout: int
) -> None:
    library = open_library(foreign(compile_parser, layout))
    assert said(library.decisions, f"boxes have {layout} bytes")
    assert said(library.decisions, f"grows vectors of {layout}-byte elements")
    assert run(library, 3)
    assert said(library.decisions, "confirmed: a frame of")
    told = len(library.decisions)
    assert run(library, 42)
    assert len(library.decisions) == told


@pytest.mark.parametrize("layout", [24, 28])
@pytest.mark.parametrize("count", [1, 5, 13])
def test_frames_tell_where_the_file_does_not(
    compile_parser: Compile, layout: int, count: int
) -> None:
    library = open_library(foreign(compile_parser, layout, quiet=True))
    assert said(library.decisions, "undecided")
    assert run(library, 0)
    assert run(library, count)
    assert said(library.decisions, f"boxes have {layout} bytes")


@pytest.mark.parametrize(("layout", "count"), [(24, 7), (24, 14), (28, 6), (28, 12), (28, 600)])
def test_ambiguous_lengths_are_read_as_what_is_plausible_until_a_frame_decides(
    compile_parser: Compile, layout: int, count: int
) -> None:
    library = open_library(foreign(compile_parser, layout, quiet=True))
    assert run(library, count)
    assert said(library.decisions, f"{layout} is taken")
    assert run(library, 1)
    assert said(library.decisions, f"boxes have {layout} bytes")


def test_a_frame_corrects_the_file(compile_parser: Compile, tmp_path: Path) -> None:
    # Code for another vector of 28-byte elements makes the fingerprint lie.
    library_file = tmp_path / "misleading.so"
    constant = (0x0492492492492492).to_bytes(8, "little")
    library_file.write_bytes(foreign(compile_parser, 24).read_bytes() + constant)
    library = open_library(library_file)
    assert said(library.decisions, "boxes have 28 bytes")
    assert run(library, 3)
    assert said(library.decisions, "boxes have 24 bytes after all", "warning")
    assert run(library, 7)


@pytest.mark.parametrize("layout", [24, 28])
def test_the_user_has_the_last_word(compile_parser: Compile, layout: int) -> None:
    path = foreign(compile_parser, layout)
    library = open_library(path, abi=str(layout))
    assert said(library.decisions, f"{layout} bytes each, as set")
    assert run(library, 7)

    wrong = open_library(path, abi=str(52 - layout))
    assert said(wrong.decisions, "although", "warning")
    with pytest.raises(ParserError, match="not a whole number of boxes") as caught:
        run(wrong, 1)
    assert "abi" in str(caught.value)


@pytest.mark.parametrize("guard", ["never", "always"])
@pytest.mark.parametrize(
    ("layout", "told"), [("24", "returned 1,200,000 boxes"), ("auto", "at least 1,028,571 boxes")]
)
def test_too_many_boxes_are_counted_in_their_layout(
    compile_parser: Compile, guard: GuardMode, layout: str, told: str
) -> None:
    if guard == "always" and (reason := keeper.can_guard()) is not None:
        pytest.skip(f"no workers here: {reason}")
    path = foreign(compile_parser, 24, quiet=True)
    library = open_library(path, abi=layout, guard=guard)
    rows = rows_layer(np.zeros((1_200_000, 6), np.float32))
    with pytest.raises(ParserError, match=told):
        library.bbox_parser("ParseRows")(rows, NETWORK, PARAMS)
    if isinstance(library, GuardedLibrary):
        library.close()


def test_only_three_layouts_can_be_set(compile_parser: Compile) -> None:
    with pytest.raises(CustomLibraryError, match="abi='32' is not a box layout"):
        open_library(foreign(compile_parser, 24), abi="32")


@given(count=st.integers(1, 10**6), spare=st.integers(0, 10**6), layout=st.sampled_from([24, 28]))
def test_the_true_layout_is_always_a_candidate(count: int, spare: int, layout: int) -> None:
    found = candidates(count * layout, (count + spare) * layout)
    assert layout in found
    if count % (7 if layout == 24 else 6):
        assert found == [layout]


@example(count=7, layout=24)
@example(count=6, layout=28)
@given(count=st.integers(1, 10**6), layout=st.sampled_from([24, 28]))
def test_growth_by_doubling_is_never_ambiguous(count: int, layout: int) -> None:
    capacity = 1 << (count - 1).bit_length()
    assert candidates(count * layout, capacity * layout) == [layout]


@given(count=st.integers(1, 50).map(lambda n: 42 * n), layout=st.sampled_from([24, 28]))
def test_the_true_layout_is_the_more_plausible(count: int, layout: int) -> None:
    boxes = np.zeros((count, layout // 4), np.float32)
    rows = some_rows(count)
    boxes[:, 1:6] = rows[:, 1:]
    boxes.view(np.uint32)[:, 0] = rows[:, 0]
    data = boxes.view(np.uint8).ravel()
    assert plausibility(data, 24 if layout == 24 else 28, 3, 416, 320) == 1.0
    assert plausibility(data, 28 if layout == 24 else 24, 3, 416, 320) < 0.9


@pytest.mark.parametrize(
    "box", [(3, 1, 1, 1, 1, 0.5), (0, 9000, 1, 1, 1, 0.5), (0, 1, 1, -1, 1, 0.5),
            (0, 1, 1, 1, -1, 0.5), (0, 1, 1, 1, 1, 1.5), (0, 1, 1, 1, 1, -0.5),
            (0, 1, 1, 1, 1, np.nan)],
)  # fmt: skip
def test_one_odd_number_makes_a_box_implausible(box: tuple[float, ...]) -> None:
    good = (2, 1, 1, 5, 5, 0.5)
    boxes = np.array([good, box], np.float32)
    boxes.view(np.uint32)[:, 0] = [int(good[0]), int(box[0])]
    assert plausibility(boxes.view(np.uint8).ravel(), 24, 3, 416, 320) == 0.5
