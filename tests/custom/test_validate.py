"""What a parser may return, and what is made of the rest."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.custom import MAX_OBJECTS, checked
from headrace.errors import ConfigError, ParserError
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo, Space

Call = Callable[[Any], Detections]


@pytest.fixture
def check(layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams) -> Call:
    """What a checked parser gives that returns the argument."""
    return lambda result: checked(lambda *_: result, "my.py: parse")(layers, network, params)


def test_sound_results_are_passed_on_untouched(check: Call) -> None:
    result = Detections([[1, 2, 3, 4]], [0.5], [7])
    assert check(result) is result
    empty = Detections.empty()
    assert check(empty) is empty


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "returned None"),
        (([[1, 2, 3, 4]], [1], [0]), "returned a tuple"),
        (np.zeros((3, 6)), "returned a numpy.ndarray"),
        (3, "returned an int"),
        (Detections.empty(Space.FRAME), "boxes in frame space"),
        (Detections([[1, 2, 3, 4]] * 3, [0.5] * 3, [7, 2, -1]), "class id -1 (box 2)"),
    ],
)
def test_what_is_no_result_is_named(check: Call, result: Any, words: str) -> None:
    with pytest.raises(ParserError) as caught:
        check(result)
    assert words in str(caught.value)
    assert "my.py: parse" in str(caught.value)


def test_absurd_counts_are_refused(check: Call) -> None:
    n = MAX_OBJECTS + 1
    boxes = np.broadcast_to(np.float32(1), (n, 4))
    many = Detections(boxes, np.ones(n, np.float32), np.zeros(n, np.int32))
    with pytest.raises(ParserError, match="returned 1,000,001 boxes"):
        check(many)


@pytest.mark.parametrize("field", ["boxes", "scores", "class_ids"])
def test_fields_assigned_after_construction_are_checked_again(check: Call, field: str) -> None:
    result = Detections([[1, 2, 3, 4]], [0.5], [7])
    setattr(result, field, {"boxes": [[1, 2, 3, 4]], "scores": [0.5], "class_ids": [7.0]}[field])
    again = check(result)
    assert (again.boxes.dtype, again.scores.dtype, again.class_ids.dtype) == (
        np.float32,
        np.float32,
        np.int32,
    )
    setattr(result, field, np.zeros((2, 3)))
    with pytest.raises(ParserError, match="has shape") as caught:
        check(result)
    assert (caught.value.where or "").startswith("my.py: parse: Detections.")
    assert caught.value.exit_code == ParserError.exit_code


def masked(*masks: Any) -> Detections:
    n = len(masks)
    return Detections([[1, 2, 3, 4]] * n, [0.5] * n, list(range(n)), masks=list(masks))


def test_masks_of_sound_results_are_passed_on_untouched(check: Call) -> None:
    result = masked(np.ones((3, 4)), np.empty((0, 0)))
    assert check(result) is result


def test_masks_with_odd_numbers_are_taken_from_their_objects() -> None:
    result = masked([[1, np.nan]], [[1, 2]], [[-np.inf]])
    parser = checked(lambda *_: result, "p")
    for _ in range(2):
        found = parser({}, NetworkInfo(1, 1, 1), DetectionParams(3, np.zeros(3, np.float32)))
        assert found.masks is not None
        assert [m.shape for m in found.masks] == [(0, 0), (1, 2), (0, 0)]
    assert result.masks is not None
    assert result.masks[0].size == 2  # the parser's own list is left alone
    assert [n.sentence[:20] for n in parser.notices] == ["2 of 3 masks of a fr"]


def test_masks_of_absurd_size_are_refused(check: Call) -> None:
    with pytest.raises(ParserError, match="the largest of 16,777,217"):
        check(masked(np.broadcast_to(np.float32(1), (1, (1 << 24) + 1)).view()))
    big = np.zeros((4096, 4096), np.float32)
    with pytest.raises(ParserError, match="masks of 285,212,672 pixels"):
        check(masked(*[big] * 17))


def test_masks_assigned_after_construction_are_checked_again(check: Call) -> None:
    result = masked([[1.0]], [[2.0]])
    result.masks = [np.ones((2, 2)), np.ones((1, 1), np.uint8)]  # type: ignore[list-item]
    again = check(result)
    assert again.masks is not None
    assert [m.dtype for m in again.masks] == [np.float32] * 2
    for wrong in ([np.ones((2, 2))], [np.ones(3), np.ones(3)], 5):
        result.masks = wrong  # type: ignore[assignment]
        with pytest.raises(ParserError):
            check(result)


@given(
    values=hnp.arrays(
        np.float32,
        st.tuples(st.integers(0, 30), st.just(6)),
        elements=st.sampled_from([0.0, 1.5, -7.0, np.nan, np.inf, -np.inf]),
    ),
    with_masks=st.booleans(),
)
@example(values=np.float32([[0, 0, 1, 1, np.nan, 0], [0, 0, 1, 1, 1, 0]]), with_masks=False)
@example(values=np.float32([[0, 0, 1, 1, 1, np.inf], [0, np.inf, 1, 1, 1, 0]]), with_masks=True)
def test_rows_with_a_value_that_is_no_number_go_and_others_stay(
    values: np.ndarray, with_masks: bool
) -> None:
    ids = np.arange(len(values))
    masks = [np.full((1, 1), i, np.float32) for i in ids] if with_masks else None
    result = Detections(values[:, :4], values[:, 4], ids, masks=masks, angles=values[:, 5])
    parser = checked(lambda *_: result, "p")
    params = DetectionParams(1, np.zeros(1, np.float32))
    for _ in range(2):
        kept = parser({}, NetworkInfo(1, 1, 1), params)
    expected = [i for i in ids if np.isfinite(values[i]).all()]
    assert kept.class_ids.tolist() == expected
    if kept.masks is not None:
        assert [int(m[0, 0]) for m in kept.masks] == expected
    assert len(parser.notices) == (len(expected) < len(ids))


def test_any_exception_becomes_a_parser_error(
    layers: Mapping[str, Layer],
    network: NetworkInfo,
    params: DetectionParams,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> Detections:
        raise ConfigError("no anchors", expected="9 anchors")

    with pytest.raises(ParserError, match="no anchors"):
        checked(fail, "p")(layers, network, params)

    def interrupted(*_: Any) -> Detections:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading, "main_thread", threading.current_thread)
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):  # Ctrl-C may come while a parser runs
        checked(interrupted, "p")(layers, network, params)
    monkeypatch.setattr(threading, "main_thread", lambda: None)
    with pytest.raises(ParserError, match="KeyboardInterrupt"):
        checked(interrupted, "p")(layers, network, params)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemExit(0), "tried to end the program"),
        (GeneratorExit(), "GeneratorExit"),
        (BaseException("odd"), "odd"),
    ],
)
def test_a_parser_cannot_end_the_program(error: BaseException, words: str, tmp_path: Path) -> None:
    def leave(*_: Any) -> Detections:
        raise error

    params = DetectionParams(1, np.zeros(1, np.float32))
    with pytest.raises(ParserError, match=words):
        checked(leave, "p", folder=tmp_path)({}, NetworkInfo(1, 1, 1), params)


def test_keypoints_are_checked(check: Call) -> None:
    points = np.zeros((2, 5, 3), np.float32)
    result = Detections([[1, 2, 3, 4]] * 2, [0.5] * 2, [7] * 2, keypoints=points)
    assert check(result) is result
    points[1, 3, 0] = np.nan
    assert check(result).keypoints.shape == (1, 5, 3)
    result.keypoints = np.zeros((2, 5, 2), np.float32)
    with pytest.raises(ParserError, match=r"keypoints has shape \(2, 5, 2\)"):
        check(result)
    many = Detections([[1, 2, 3, 4]], [0.5], [7], keypoints=np.zeros((1, 5000, 3)))
    with pytest.raises(ParserError, match="5,000 keypoints"):
        check(many)
