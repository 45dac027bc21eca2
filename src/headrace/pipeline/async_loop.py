"""A loop over a pipeline for `async for`: the event loop goes on while frames are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from inspect import GEN_CLOSED, getgeneratorstate
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class AsyncLoop(Generic[T]):
    """Runs a generator in a thread of its own, one step for each one that is asked for.

    Args:
        steps: runs in that thread only, its end included; gives anything but None.
        stop: lets a step that waits come to its end.
    """

    def __init__(self, steps: Generator[T, None, None], stop: Callable[[], None]) -> None:
        self._steps = steps
        self._stop = stop
        self._thread = ThreadPoolExecutor(1, "headrace-async")
        self._closing: Future[None] | None = None

    async def __aiter__(self) -> AsyncGenerator[T, None]:
        """Give every step; however it is left, the generator is closed before that is over."""
        loop = asyncio.get_running_loop()
        try:
            while (
                step := await loop.run_in_executor(self._thread, next, self._steps, None)
            ) is not None:
                yield step
        finally:
            await self.close()

    async def close(self) -> None:
        """End the generator and wait for that, also when the task is cancelled meanwhile.

        Raises:
            CancelledError: it was.
        """
        if self._closing is None:
            if getgeneratorstate(self._steps) != GEN_CLOSED:
                self._stop()
            self._closing = self._thread.submit(self._steps.close)
        try:
            await _finished(asyncio.wrap_future(self._closing))
        finally:
            self._thread.shutdown()  # it has nothing to do any more


async def in_thread(function: Callable[[], object]) -> None:
    """Call a function without holding the event loop up; to its end, also when cancelled."""
    await _finished(asyncio.ensure_future(asyncio.to_thread(function)))


async def _finished(work: asyncio.Future[Any]) -> None:
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as error:
            cancelled = error
    work.result()
    if cancelled is not None:
        raise cancelled
