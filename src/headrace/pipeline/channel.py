"""A bounded queue between two stages that knows when either side is gone."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class ChannelClosedError(Exception):
    """The other side is gone: the writer has ended and all is read, or the reader has left."""


class Channel(Generic[T]):
    """One writer, one reader, at most `size` items waiting."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._abandoned = False

    def put(self, item: T) -> None:
        """Wait for room, then add.

        Raises:
            ChannelClosedError: the reader has left.
        """
        with self._changed:
            while len(self._items) >= self._size and not self._abandoned:
                self._changed.wait()
            if self._abandoned:
                raise ChannelClosedError
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> T:
        """Wait for an item.

        Raises:
            ChannelClosedError: the writer has ended and nothing is left.
        """
        with self._changed:
            while not self._items and not self._ended:
                self._changed.wait()
            if not self._items:
                raise ChannelClosedError
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    @property
    def empty(self) -> bool:
        """Nothing to read right now."""
        with self._changed:
            return not self._items

    def end(self) -> None:
        """End writing; waiting items can still be read."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Stop reading; waiting items are dropped, and the writer's next `put` raises."""
        with self._changed:
            self._abandoned = True
            self._items.clear()
            self._changed.notify_all()
