"""How thorough a run is: `HEADRACE_TEST_PROFILE` (`push` by default, or `full`), and slow cases."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

PROFILE = os.environ.get("HEADRACE_TEST_PROFILE", "push")
_SHARE = {"push": 20, "full": 1}


def examples(full: int) -> int:
    """Return the examples of a property in this profile: all, or a twentieth but at least five.

    Args:
        full: their number in the profile `full`.
    """
    return max(full // _SHARE[PROFILE], min(full, 5))


def slow(*values: Any) -> Any:
    """Return a case of `parametrize` that `make test` leaves out: others show the same."""
    return pytest.param(*values, marks=pytest.mark.slow)


def thinned(cases: Iterable[Any], every: int) -> list[Any]:
    """Return cases of `parametrize` of which each `every`-th runs at a push, all by night."""
    return [
        case if index % every == 0 else slow(*case) if isinstance(case, tuple) else slow(case)
        for index, case in enumerate(cases)
    ]


def load_profile() -> None:
    """Make this profile hypothesis's default. A slow machine is no error: no deadlines."""
    settings.register_profile(PROFILE, deadline=None, max_examples=examples(100))
    settings.load_profile(PROFILE)
    if PROFILE == "push":
        _read_no_sources()


def _read_no_sources() -> None:
    """Spare each process the search of a thousand sources for constants to draw.

    A few examples draw hardly one of them. A hypothesis without this function searches none.
    """
    with contextlib.suppress(AttributeError):
        constants = providers._local_constants
        providers._get_local_constants = lambda: constants
