"""Runs in which a model had no results at all."""

from __future__ import annotations

import pytest

from headrace.errors import EngineError, HeadraceError, ParserError, PluginError
from headrace.pipeline.report import ModelReport, RunReport, without_results


def _told(inferred: int, failed: int, **results: int) -> HeadraceError | None:
    good = ModelReport("good", 1, 5)
    other = ModelReport("other", 2, inferred, failed, results=results)
    return without_results(RunReport("source", models=[good, other]))


@pytest.mark.parametrize(
    ("counts", "lost", "kind", "code", "words"),
    [
        ((2, 2), {}, ParserError, 5, "none of the 2 outputs of other could be parsed"),
        ((1, 1), {}, ParserError, 5, "the only output of other could not be parsed"),
        ((0, 0), {"crashed": 4}, PluginError, 5, "none of the 4 item(s) of other was inferred"),
        ((0, 0), {"crashed": 1, "no_memory": 2}, PluginError, 5, "none of the 3 item(s)"),
        ((0, 0), {"no_memory": 2}, EngineError, 4, "no memory for the outputs of any batch"),
    ],
)
def test_it_is_an_error(
    counts: tuple[int, int], lost: dict[str, int], kind: type[HeadraceError], code: int, words: str
) -> None:
    error = _told(*counts, **lost)
    assert type(error) is kind
    assert words in str(error)
    assert error.exit_code == code


@pytest.mark.parametrize(("counts", "lost"), [((0, 0), {}), ((3, 2), {}), ((1, 0), {"crashed": 9})])
def test_anything_else_is_none(counts: tuple[int, int], lost: dict[str, int]) -> None:
    assert _told(*counts, **lost) is None


def test_a_summary_says_what_was_lost() -> None:
    assert str(ModelReport("m", 1, results={"crashed": 2})) == "m: 0 inferred, 2 lost"
