"""Keep execution contexts of the plugins of an open graph: one set per run at a time.

Those who make execution contexts of their own, as scripts for TensorRT do, own a set each: what a
plugin keeps between calls stays with its context.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from headrace._core.errors import EngineError, PluginError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace.plugins.context import ContextPlugin
from headrace.plugins.layer import EnginePlugin

_owner: ContextVar[object | None] = ContextVar("headrace_context_owner", default=None)


@contextmanager
def runs_of(owner: object) -> Iterator[None]:
    """Runs of this thread inside the block use the set of `owner` (see `ContextPool.own`)."""
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


class ContextPool:
    """See module. It owns the plugins: they end when it is closed and the last run is over.

    The layers are in the order of the plan.

    Attributes:
        notices: events of runs, each once.
    """

    def __init__(self, plugins: Sequence[EnginePlugin]) -> None:
        self.notices: list[Finding] = []
        self._plugins = list(plugins)
        self._idle: deque[list[ContextPlugin]] = deque()
        self._owned: dict[object, list[ContextPlugin]] = {}
        self._unused: list[ContextPlugin] | None = None
        self._lock = threading.Lock()
        self._running = 0
        self._closed = False

    def take(self) -> list[ContextPlugin]:
        """Lend a set of contexts to a run: its owner's, else an idle or a new one.

        Raises:
            EngineError: the session is closed.
            PluginError: a context cannot be made.
        """
        owner = _owner.get()
        with self._lock:
            if self._closed:
                raise EngineError("the session is closed")
            self._running += 1
            if owner is not None and (own := self._owned.pop(owner, None)) is not None:
                return own
            if owner is None and self._idle:
                return self._idle.pop()
        return self._new()

    def _new(self) -> list[ContextPlugin]:
        with self._lock:
            contexts, self._unused = self._unused, None
        if contexts is not None:
            return contexts
        contexts = []
        try:
            for plugin in self._plugins:
                contexts.append(plugin.context())
                contexts[-1].report = self.report
        except BaseException:
            for context in contexts:
                context.close()
            self._done()
            raise
        return contexts

    def report(self, notice: Finding) -> None:
        """Keep a notice of a run."""
        with self._lock:
            note_once(self.notices, notice)

    def prove(self) -> None:
        """Make the first set now, so that contexts that cannot be made fail before the first run.

        Raises:
            EngineError, PluginError: as `take`.
        """
        contexts = self.take()
        with self._lock:
            if not self._closed:
                self._unused = contexts
                self._running -= 1
                return
        self._end_set(contexts)

    def own(self, owner: object) -> None:
        """Make the set of `owner`, for its runs (`runs_of`) alone; `disown` ends it.

        Raises:
            EngineError, PluginError: as `take`.
        """
        with runs_of(owner):
            self.give_back(self.take())

    def disown(self, owner: object) -> None:
        """End the set of `owner`, if it has one."""
        with self._lock:
            contexts = self._owned.pop(owner, [])
        for context in contexts:
            context.close()

    def give_back(self, contexts: list[ContextPlugin]) -> None:
        """Take the contexts of a run back."""
        owner = _owner.get()
        with self._lock:
            if not self._closed and (owner is None or owner not in self._owned):
                if owner is None:
                    self._idle.append(contexts)
                else:
                    self._owned[owner] = contexts
                self._running -= 1
                return
        self._end_set(contexts)

    def _end_set(self, contexts: list[ContextPlugin]) -> None:
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
            idle = [*self._idle, *self._owned.values()]
            idle += [] if self._unused is None else [self._unused]
            self._idle, self._unused = deque(), None
            self._owned.clear()
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
