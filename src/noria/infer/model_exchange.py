"""The model that batches are begun with, and the change to another one between two batches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from noria._core.errors import EngineError

if TYPE_CHECKING:
    from noria.infer.model import Model
    from noria.infer.record import Record


class ModelExchange:
    """Counts the batches of each model, and closes a replaced one after the last of them.

    Attributes:
        current: new batches are begun with it.
        waiting: takes over before the next batch; None if there is none.
    """

    def __init__(self, model: Model, record: Record) -> None:
        self.current = model
        self.waiting: Model | None = None
        self._record = record
        self._in_flight: Counter[int] = Counter()  # batches between begin and complete, per model
        self._replaced: list[Model] = []

    def propose(self, model: Model) -> None:
        """Let a model wait for its turn.

        Raises:
            EngineError: another one is waiting already. Source: spec D.8.
        """
        if self.waiting is not None:
            raise EngineError("Trying to update model too frequently", where=str(model.config.path))
        self.waiting = model

    def exchange(self) -> None:
        """Make the waiting model the current one; batches of the old one finish with it."""
        model, self.waiting = self.waiting, None
        assert model is not None
        old, self.current = self.current, model
        self._record.notices += [n for n in old.all_notices() if n.level == "warning"]
        self._replaced.append(old)
        self._close_replaced()

    def take(self) -> Model:
        """The current model, for one batch; `release` it afterwards."""
        with self._record.lock:
            self._in_flight[id(self.current)] += 1
        return self.current

    def release(self, model: Model) -> None:
        """End the use of a model by one batch."""
        with self._record.lock:
            self._in_flight[id(model)] -= 1
        if self._replaced:
            self._close_replaced()

    def close(self) -> None:
        """Close all models."""
        for model in (*self._replaced, self.current, self.waiting):
            if model is not None:
                model.close()

    def _close_replaced(self) -> None:
        with self._record.lock:
            done = [m for m in self._replaced if not self._in_flight[id(m)]]
            self._replaced = [m for m in self._replaced if self._in_flight[id(m)]]
        for model in done:
            model.close()
