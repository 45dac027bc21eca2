"""Every planted mistake is named in the first lines, and of right set-ups nothing is said."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.mistakes import correct, mistakes
from tests.mistakes.cases import Case, faults, run_case
from tests.mistakes.repairs import KEPT, RIGHT_BY_OPTIONS, verdict
from tests.mistakes.store import fill
from tests.session import made_once

ALL = [*mistakes.CASES, *correct.CASES]
ELSEWHERE = os.environ.get("HEADRACE_MISTAKES")


def _params(cases: list[Case]) -> list[object]:
    """Make a test of each case; every sixth runs at every push, the others by night."""
    return [
        pytest.param(
            case,
            id=case.name,
            marks=[pytest.mark.xfail(reason=case.waits, strict=True)]
            if case.waits
            else [pytest.mark.slow] * bool(place % 6),
        )
        for place, case in enumerate(cases)
    ]


def _seldom(cases: list[Case]) -> list[object]:
    """Make a test of each case; every fortieth runs at every push."""
    return [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] * bool(place % 40))
        for place, case in enumerate(cases)
    ]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "mistakes", fill)


@pytest.mark.parametrize("case", _params(ALL))
def test_case(case: Case, store: Path, tmp_path: Path) -> None:
    case.write(tmp_path / "case", store)
    outcome = run_case(tmp_path / "case")
    assert not faults(outcome), "\n".join(outcome.lines)


@pytest.mark.parametrize("case", _seldom([c for c in mistakes.CASES if c.name not in KEPT]))
@pytest.mark.sampled
def test_a_mistake_is_undone(case: Case, store: Path, tmp_path: Path) -> None:
    result = verdict(case, tmp_path, store)
    assert not result.worse, result
    assert result.fate in ("repaired", "same boxes"), result


@pytest.mark.slow
@pytest.mark.parametrize("case", _seldom([c for c in mistakes.CASES if c.name in KEPT]))
def test_what_no_key_undoes_is_not_made_worse(case: Case, store: Path, tmp_path: Path) -> None:
    result = verdict(case, tmp_path, store)
    assert not result.worse, result
    assert result.fate != "wrong", result


@pytest.mark.parametrize(
    "case", _seldom([c for c in correct.CASES if c.name not in RIGHT_BY_OPTIONS])
)
def test_a_right_set_up_needs_no_repair(case: Case, store: Path, tmp_path: Path) -> None:
    result = verdict(case, tmp_path, store)
    nothing_there = "a source that shows objects, or a true box, decides"
    assert result.words.startswith("nothing speaks against it") or nothing_there in result.words


@pytest.mark.skipif(not ELSEWHERE, reason="no HEADRACE_MISTAKES")
@pytest.mark.parametrize(
    "path", sorted(Path(ELSEWHERE or ".").rglob("case.yml")) if ELSEWHERE else []
)
def test_case_from_elsewhere(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path.parent, tmp_path / "case", symlinks=True)
    outcome = run_case(tmp_path / "case")
    assert not faults(outcome), "\n".join(outcome.lines)


def test_names_are_unique_and_the_corpus_is_large() -> None:
    assert len({case.name for case in ALL}) == len(ALL)
    assert len(mistakes.CASES) >= 60
    assert len(correct.CASES) >= 30
