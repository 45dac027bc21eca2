"""Follows the notices of a running pipeline, and reports each when it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING

from headrace._core.findings import Finding

if TYPE_CHECKING:
    from headrace.pipeline.pipeline import Pipeline

_COUNTS = frozenset(
    ("boxes-at-edge", "frames-dropped", "frames-not-sent", "objects-not-finite", "worker-died")
)
"""Codes of notices that count up: a run repeats them with a higher number."""
_AGAIN_S = 60.0  # between two of them
_MOST = 20_000  # that are remembered


class NoticeFollower:
    """Reports each notice once; those with a count once a minute, where the count rises.

    Args:
        pipeline: that runs.
        tell: called with new notices.
        known: notices that were told already.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        tell: Callable[[list[Finding]], None],
        known: Iterable[Finding] = (),
    ) -> None:
        self._pipeline, self._tell = pipeline, tell
        self._told: dict[object, None] = dict.fromkeys(map(_key, known))
        self._last: dict[object, tuple[float, Finding]] = {}

    def look(self) -> None:
        """Report new notices."""
        notices = [*self._pipeline.notices, *self._pipeline.drops()]
        new = [notice for notice in notices if self._is_new(notice)]
        if not new:
            return
        try:
            self._tell(new)
        except BaseException:  # a full disk: they are told by the next look
            for notice in new:
                self._told.pop(_key(notice), None)
                self._last.pop(_count_of(notice), None)
            raise

    def was_told(self, notice: Finding) -> bool:
        """Whether a notice was reported as it stands."""
        last = self._last.get(_count_of(notice))
        return _key(notice) in self._told or (last is not None and last[1] == notice)

    def _is_new(self, notice: Finding) -> bool:
        if (kind := _count_of(notice)) is not None:
            now = monotonic()
            last = self._last.get(kind)
            if last is not None and (last[1] == notice or now - last[0] < _AGAIN_S):
                return False
            self._last[kind] = now, notice
            return True
        key = _key(notice)
        if key in self._told:
            return False
        if len(self._told) >= _MOST:
            for old in list(self._told)[: _MOST // 2]:
                del self._told[old]
        self._told[key] = None
        return True


def _count_of(notice: Finding) -> object:
    """The number in a notice and its owner; None without a number."""
    if "losses" in notice.data:  # of a source that comes and goes, here and away
        return "losses", notice.where
    return (notice.code, notice.where) if notice.code in _COUNTS else None


def _key(notice: Finding) -> object:
    """One loss is one notice, also when more is known of it."""
    if "loss" in notice.data:
        return notice.code, notice.where, notice.data["loss"]
    return notice
