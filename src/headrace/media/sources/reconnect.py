"""When to try again after a loss, and the notices about it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import count
from threading import Lock
from time import monotonic

from headrace._core.errors import MediaError
from headrace._core.findings import Finding
from headrace._core.retry import Backoff
from headrace._core.text import counted

MAX_TOLD = 20  # losses with a notice of their own
_BACK = ("and is not back yet", "back", "not back")  # while it is away, then, and at the end
_FIRST = ("and it is not there yet", "it came", "it was not there")  # of one that never was there
_numbers = count(1)  # of all losses: two cameras may have one name


@dataclass(frozen=True, slots=True)
class ReconnectPolicy(Backoff):
    """How a live stream comes back after a loss: see `Backoff` for the waits.

    Attributes:
        first_s: the longest wait before the first try.
        max_s: the longest wait ever.
        attempts: tries after one loss until it is an error; None means without end.
        from_start: also try again if the stream is not there in the beginning. Then the source is
            there at once with size 0 x 0, and connects when it is read.
        jitter: False waits the longest time each time.

    Raises:
        ValueError: a wait or a number of tries is negative.
    """

    first_s: float = 1.0
    max_s: float = 30.0
    attempts: int | None = None
    from_start: bool = False
    _: KW_ONLY
    jitter: bool = True

    def __post_init__(self) -> None:
        Backoff.__post_init__(self)
        if self.attempts is not None and self.attempts < 0:
            raise ValueError(f"attempts={self.attempts}: must be 0 or more, or None")


class GaveUpError(MediaError):
    """A stream did not come back within its attempts."""


class Losses:
    """Losses of one source as notices: one for each, from `MAX_TOLD` on summed up.

    Args:
        notices: where they go; a notice is replaced when more is known.
        where: the name of the source.
        lost, none: how it is said, before the number of a frame, and where there was none.
        output: True for an output that is not written; False for a connection.

    Attributes:
        where: the name of the source.
    """

    def __init__(
        self,
        notices: list[Finding],
        where: str,
        lost: str = "the connection was lost at frame",
        none: str = "there was no connection",
        *,
        output: bool = False,
    ) -> None:
        self._output = output
        self._lost_at, self._none = lost, none
        self._notices = notices
        self.where = where
        self._count = self._number = 0
        self._away_s = 0.0
        self._at: int | None = None  # place of the notice about the present loss
        self._summary_at: int | None = None
        self._since = 0.0
        self._tries = 0
        self._over, self._lock = False, Lock()  # a source is closed by another thread
        self._what = self._last_try = ""
        self._words = _BACK

    @property
    def away(self) -> bool:
        """The connection is lost at present."""
        return bool(self._what)

    def lost(self, cause: str, frame: int) -> None:
        """The connection was lost after `frame` frames, unless it was away already."""
        with self._lock:
            if self._what or self._over:
                return
            self._count += 1
            self._number = next(_numbers)
            self._since, self._tries = monotonic(), 0
            what = f"{self._lost_at} {frame}" if frame else self._none
            self._what, self._words = f"{what} ({cause})", _BACK if frame else _FIRST
            self._tell(self._words[0], away=True)

    def tried(self, cause: str) -> None:
        """One try was in vain."""
        with self._lock:
            if not self._over:
                self._tries += 1
                self._last_try = f" (last try: {cause})"
                self._tell(f"{self._words[0]}{self._last_try}", away=True)

    def back(self) -> None:
        """Frames come again."""
        with self._lock:
            if not self._over:
                self._end(self._words[1])

    def stopped(self) -> None:
        """The source was closed: later losses give no notice."""
        with self._lock:
            self._over = True
            if self._what:
                self._end(self._words[2], self._last_try)

    def away_s(self) -> float:
        """How long the present loss takes already."""
        return monotonic() - self._since

    def _end(self, how: str, why: str = "") -> None:
        away_s = self.away_s()
        self._away_s += away_s
        tries = f" and {counted(self._tries, 'attempt')} in vain" if self._tries else ""
        self._tell(f"{how} after {away_s:.1f} s{tries}{why}")
        self._what = self._last_try = ""
        self._at = None

    def _tell(self, outcome: str, *, away: bool = False) -> None:
        if self._output:
            code = "output-away" if away else "output-lost"
        else:
            code = "connection-away" if away else "connection-lost"
        if self._count <= MAX_TOLD:
            text, data = f"{self._what}, {outcome}", {"loss": self._number}
            notice = Finding(code, "warning", text, self.where, data)
            self._at = self._put(self._at, notice)
        else:
            text = f"and lost {self._count - MAX_TOLD} more times, away {self._away_s:.1f} s in all"
            data = {"losses": self._count}
            notice = Finding(code, "warning", text, self.where, data)
            self._summary_at = self._put(self._summary_at, notice)

    def _put(self, at: int | None, notice: Finding) -> int:
        if at is None:
            self._notices.append(notice)
            return len(self._notices) - 1
        self._notices[at] = notice
        return at
