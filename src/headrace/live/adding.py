"""Sources of requests: checked, and opened in threads of their own, which an end does not await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace._core.threads import start_thread
from headrace.config.paths import is_live
from headrace.live.allowed import AllowedSources
from headrace.live.kept import KeptSource, KeptSources
from headrace.pipeline.decoder_memory import DecoderMemory
from headrace.pipeline.source_opening import open_requested

if TYPE_CHECKING:
    from headrace.media import Source
    from headrace.pipeline import Pipeline

_MOST = 16  # that are being opened at a time: each may hold a thread until its time is out
_LOOK_S = 0.1


class ServiceBusyError(HeadraceError):
    """A source cannot be added now: the service ends, or is opening as many as it may."""

    code = "service-busy"


class SourceAdding:
    """Adds sources to a pipeline on request.

    Args:
        pipeline: that runs.
        allowed: what requests may name.
        kept: the live ones among them.
    """

    def __init__(self, pipeline: Pipeline, allowed: AllowedSources, kept: KeptSources) -> None:
        self._pipeline, self._allowed, self._kept = pipeline, allowed, kept
        self._opening = 0

    async def add(self, uri: str, name: str | None, camera_id: str | None = None) -> int:
        """Open a source and add it; return its id.

        Raises:
            SourceRefusedError: it is none that requests may name.
            ServiceBusyError: the service ends, or opens many others.
            HeadraceError: it cannot be opened.
        """
        if self._opening >= _MOST:
            raise ServiceBusyError(f"{_MOST} sources are being opened: try again later")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[int] = loop.create_future()

        def work() -> None:
            number = self._pipeline.add_source(self._checked(uri), name=name)
            if not self._pipeline.report.interrupted:  # else the request was refused
                self._kept.keep(self._pipeline, KeptSource(number, uri, name, camera_id))
            _settle(loop, done, partial(done.set_result, number))

        def failed(error: Exception) -> None:
            _settle(loop, done, partial(done.set_exception, error))

        self._opening += 1
        done.add_done_callback(self._over)
        start_thread(work, name="headrace-add-source", failed=failed)
        while not done.done() and not self._pipeline.report.interrupted:
            await asyncio.wait([done], timeout=_LOOK_S)
        if self._pipeline.report.interrupted and not (done.done() and done.exception() is None):
            raise ServiceBusyError("the service is ending")
        return done.result()

    def _checked(self, uri: str) -> str | Source:
        """A live source, which may be away, or a path or URL to open."""
        allowed, pipeline = self._allowed.checked(uri), self._pipeline
        if not is_live(allowed):
            return allowed
        memory = DecoderMemory(len(pipeline.sources) + 1)
        return open_requested(allowed, 0, memory, pipeline.stages)

    def _over(self, done: asyncio.Future[int]) -> None:
        self._opening -= 1
        if not done.cancelled():
            done.exception()  # else asyncio logs one that nobody awaits any more


def _settle(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[int], settle: Callable[[], None]
) -> None:
    """Settle a future from another thread, unless it or its loop is over."""

    def unless_done() -> None:
        if not done.done():
            settle()

    with suppress(RuntimeError):  # the loop is closed: the service has ended
        loop.call_soon_threadsafe(unless_done)
