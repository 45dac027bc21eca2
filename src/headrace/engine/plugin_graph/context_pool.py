"""Keep execution contexts of the plugins of an open graph: one set per run at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from headrace._core.errors import EngineError, PluginError
from headrace.plugins.context import ContextPlugin
from headrace.plugins.layer import EnginePlugin


class ContextPool:
    """See module. It owns the plugins: they end when it is closed and the last run is over.

    The layers are in the order of the plan.
    """

    def __init__(self, plugins: Sequence[EnginePlugin]) -> None:
        self._plugins = list(plugins)
        self._idle: deque[list[ContextPlugin]] = deque()
        self._lock = threading.Lock()
        self._running = 0
        self._closed = False

    def take(self) -> list[ContextPlugin]:
        """Lend a set of contexts to a run; a new one if all are lent.

        Raises:
            EngineError: the session is closed.
            PluginError: a context cannot be made.
        """
        with self._lock:
            if self._closed:
                raise EngineError("the session is closed")
            self._running += 1
            if self._idle:
                return self._idle.pop()
        contexts: list[ContextPlugin] = []
        try:
            contexts.extend(plugin.context() for plugin in self._plugins)
        except BaseException:
            for context in contexts:
                context.close()
            self._done()
            raise
        return contexts

    def give_back(self, contexts: list[ContextPlugin]) -> None:
        """Take the contexts of a run back."""
        with self._lock:
            if not self._closed:
                self._idle.append(contexts)
                self._running -= 1
                return
        for context in contexts:
            context.close()
        self._done()

    def _done(self) -> None:
        with self._lock:
            self._running -= 1
            last = self._closed and self._running == 0
        if last:
            self._end()

    def close(self) -> None:
        """End the idle contexts now, the lent ones when their runs are over, then the plugins."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            idle, self._idle = list(self._idle), deque()
            last = self._running == 0
        for contexts in idle:
            for context in contexts:
                context.close()
        if last:
            self._end()

    def _end(self) -> None:
        for plugin in self._plugins:
            with suppress(PluginError):
                plugin.close()
