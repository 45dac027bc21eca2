"""Back-off: how long to wait before a try that follows one in vain."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

CLOSE_S = 4.0  # an end of a run waits so long for brokers and servers that are away


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double: before try n (from 0) at most `first_s * 2**n`, no more than `max_s`.

    With jitter it is a random time up to that: many clients of one server do not all come back at
    the same moment.

    Attributes:
        first_s: the longest wait before the first try.
        max_s: the longest wait ever.
        jitter: False waits the longest time each time.

    Raises:
        ValueError: a wait is negative.
    """

    first_s: float
    max_s: float
    _: KW_ONLY
    jitter: bool = False

    def __post_init__(self) -> None:
        if not (self.first_s >= 0 and self.max_s >= 0):
            raise ValueError(
                f"first_s={self.first_s}, max_s={self.max_s}: waits cannot be negative"
            )

    def longest_s(self, attempt: int) -> float:
        """The longest wait before try `attempt` (from 0)."""
        return min(self.max_s, self.first_s * 2.0 ** min(attempt, 64))

    def delay_s(self, attempt: int) -> float:
        """How long to wait before try `attempt` (from 0)."""
        longest = self.longest_s(attempt)
        if not self.jitter:
            return longest
        from random import uniform

        return uniform(0.0, longest)
