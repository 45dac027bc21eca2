"""How thoroughly the properties are searched: `NORIA_TEST_PROFILE`, `push` (default) or `full`."""

from __future__ import annotations

import os

from hypothesis import settings

PROFILE = os.environ.get("NORIA_TEST_PROFILE", "push")
_SHARE = {"push": 5, "full": 1}


def examples(full: int) -> int:
    """Return the examples of a property in this profile: all, or a fifth but at least ten.

    Args:
        full: their number in the profile `full`.
    """
    return max(full // _SHARE[PROFILE], min(full, 10))


def load_profile() -> None:
    """Make this profile hypothesis's default. A slow machine is no error: no deadlines."""
    settings.register_profile(PROFILE, deadline=None, max_examples=examples(100))
    settings.load_profile(PROFILE)
