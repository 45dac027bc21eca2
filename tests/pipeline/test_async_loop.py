"""`async for` over a pipeline: the same frames, and every way to leave it ends the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from headrace.errors import HeadraceError, MediaError
from headrace.pipeline import Pipeline
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource, sources, threads_left


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run it; no thread may be left, and none may hold the end up."""
    asyncio.run(asyncio.wait_for(main, 30))
    assert not threads_left()


def test_it_gives_what_a_loop_gives_and_writes_what_was_changed() -> None:
    sink = FakeSink()
    p = Pipeline(sources(9, 4), FakeModel(3, streams=2), [sink])

    async def main() -> None:
        seen = []
        async for frame, meta in p:
            meta.objects[0].display_text = f"seen {meta.frame}"
            seen.append((frame.source_id, frame.frame))
        assert [n for i, n in seen if i == 10] == list(range(9))
        assert [n for i, n in seen if i == 11] == list(range(4))
        assert p.state == "done"

    run(main())
    assert p.report.frames == 13
    assert not p.report.interrupted
    assert all(m.objects[0].display_text == f"seen {m.frame}" for m in sink.got)
    assert sink.closed == 1


def test_the_event_loop_goes_on_meanwhile() -> None:
    class Slow(FakeModel):
        def complete(self, pending: Any) -> Any:
            time.sleep(0.02)
            return super().complete(pending)

    async def main() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async for _ in Pipeline(FakeSource(10), Slow(), []):
            pass
        ticking.cancel()
        assert ticks > 30

    run(main())


def test_a_slow_task_holds_the_source_back() -> None:
    source = FakeSource(60)
    ahead = []

    async def main() -> None:
        async for _, meta in Pipeline(source, FakeModel()):
            await asyncio.sleep(0.002)
            ahead.append(source.read - meta.frame)

    run(main())
    assert max(ahead) <= 16


@pytest.mark.parametrize("way", ["async with", "aclosing", "break"])
def test_leaving_early_ends_the_run_and_writes_what_was_seen(way: str) -> None:
    source, sink = FakeSource(10_000), FakeSink()
    p = Pipeline(source, FakeModel(4), [sink])

    async def loop(pairs: Any) -> None:
        async for _, meta in pairs:
            if meta.frame == 9:
                break

    async def main() -> None:
        if way == "async with":
            async with p:
                await loop(p)
            assert p.state == "done"
        elif way == "aclosing":
            async with aclosing(aiter(p)) as pairs:  # type: ignore[type-var]
                await loop(pairs)
            assert p.state == "done"
        else:
            await loop(p)  # its end comes with that of the event loop at the latest

    run(main())
    assert p.state == "done"
    assert [m.frame for m in sink.got] == list(range(10))
    assert (sink.closed, source.closed) == (1, True)
    assert source.read < 60
    assert p.report.interrupted


@pytest.mark.parametrize("waits", [True, False])
def test_a_task_that_is_cancelled_ends_the_run(waits: bool) -> None:
    """While it waits for a frame, and while it works on one."""

    class Late(FakeModel):
        def complete(self, pending: Any) -> Any:
            if waits:
                time.sleep(0.2)
            return super().complete(pending)

    source, sink = FakeSource(10_000), FakeSink()
    p = Pipeline(source, Late(), [sink])
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        async with p:
            async for _ in p:
                if not waits:
                    await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(work())
        await begun.wait()
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert p.state == "done"

    run(main())
    assert (sink.closed, source.closed) == (1, True)


def test_being_cancelled_again_does_not_leave_it_open() -> None:
    class Late(FakeModel):
        def complete(self, pending: Any) -> Any:
            time.sleep(0.2)
            return super().complete(pending)

    p = Pipeline(FakeSource(10_000), Late())

    async def main() -> None:
        task = asyncio.create_task(anext(aiter(p)))  # type: ignore[arg-type]
        for _ in range(3):
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert p.state == "done"

    run(main())


def test_errors_arrive_behind_the_last_frame() -> None:
    sink, seen = FakeSink(), []
    p = Pipeline(FakeSource(50), FakeModel(fail_at=30), [sink])

    async def main() -> None:
        with pytest.raises(RuntimeError, match="on fire"):  # noqa: PT012 - the loop is tested
            async for _, meta in p:
                seen.append(meta.frame)

    run(main())
    assert seen == list(range(30)) == [m.frame for m in sink.got]


def test_an_error_of_the_task_goes_through() -> None:
    sink = FakeSink()

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the loop is tested
            async with Pipeline(FakeSource(10_000), FakeModel(), [sink]) as p:
                async for _ in p:
                    _ = 1 / 0

    run(main())
    assert sink.closed == 1


def test_a_sink_that_fails_behind_a_break_is_raised_by_async_with() -> None:
    async def main() -> None:
        with pytest.raises(MediaError, match="disk is full"):  # noqa: PT012 - likewise
            async with Pipeline(FakeSource(50), FakeModel(), [FakeSink(fail_at=2)]) as p:
                async for _, meta in p:
                    if meta.frame == 9:
                        break

    run(main())


def test_one_that_never_runs_is_closed() -> None:
    source = FakeSource(5)

    async def main() -> None:
        async with Pipeline(source, FakeModel()) as p:
            pass
        assert p.state == "done"

    run(main())
    assert source.closed


def test_it_runs_once() -> None:
    p = Pipeline(FakeSource(5), FakeModel())

    async def main() -> None:
        assert len([meta async for _, meta in p]) == 5
        with pytest.raises(HeadraceError, match="run already"):
            async for _ in p:
                pass

    run(main())


def test_a_second_loop_does_not_leave_the_first_one_open() -> None:
    async def main() -> None:
        async with Pipeline(FakeSource(10_000), FakeModel()) as p:
            first = aiter(p)
            await anext(first)
            with pytest.raises(HeadraceError, match="run already"):
                await anext(aiter(p))
        assert p.state == "done"

    run(main())


def test_close_from_another_task_ends_the_loop() -> None:
    p = Pipeline(FakeSource(10_000), FakeModel())
    seen = 0

    async def main() -> None:
        nonlocal seen
        async for _ in p:
            seen += 1
            if seen == 5:
                p.close()

    run(main())
    assert 5 <= seen < 60
    assert p.state == "done"


def test_many_at_once_do_not_wait_for_each_other() -> None:
    """More than the event loop's own threads, each waiting for a source that is late."""

    class Late(FakeSource):
        def __next__(self) -> Any:
            time.sleep(0.02)
            return super().__next__()

    async def one() -> int:
        return len([0 async for _ in Pipeline(Late(5), FakeModel())])

    async def main() -> None:
        start = time.monotonic()
        assert await asyncio.gather(*(one() for _ in range(40))) == [5] * 40
        assert time.monotonic() - start < 15

    run(main())
