"""Buffers that are inferred, skipped, or discarded. Source: spec D.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noria.infer.batch import Batch


class BufferTurns:
    """Counts the buffers of a run.

    Args:
        discard: buffers at the begin of a run that are dropped (`stabilize-buffer-count`).

    Attributes:
        last_buffer: number of the latest buffer; -1 before the first.
    """

    def __init__(self, discard: int) -> None:
        self.last_buffer = -1
        self._counted = 0
        self._discard = discard
        self._discarding: int | None = None

    def restart(self) -> None:
        """Let the next buffer be inferred."""
        self._counted = 0

    def choose(self, batch: Batch, interval: int, discard: int) -> list[bool]:
        """Whether each frame's buffer is inferred; frames to be discarded leave the batch.

        The first buffer is inferred, then every (interval+1)-th.

        Args:
            batch: frames of whole buffers.
            interval: buffers skipped between two inferred ones.
            discard: as for the constructor, for a run that begins in this batch.
        """
        turns = [False] * len(batch)
        discarded: list[int] = []
        for number, places in batch.by_buffer():
            if number < self.last_buffer:  # another run has begun
                self._counted, self._discard = 0, discard
            self.last_buffer = number
            if self._discard or number == self._discarding:
                if number != self._discarding:
                    self._discard -= 1
                    self._discarding = number
                discarded += places
                continue
            turn = self._counted % (interval + 1) == 0
            self._counted += 1
            for place in places:
                turns[place] = turn
        if discarded:
            batch.drop(discarded)
            turns = [turn for i, turn in enumerate(turns) if i not in discarded]
        return turns
