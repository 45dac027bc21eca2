"""Batches across sources: one decoding thread for each, frames taken from them in turn.

A buffer holds at most one frame of each source. Files wait until their frame is wanted; live
sources cannot wait, so they give up their oldest waiting frame for a new one, and count it. What
they give at their begin faster than in real time may wait for a while.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from numbers import Integral
from time import monotonic, perf_counter, sleep, time_ns

from headrace._core.errors import HeadraceError
from headrace._core.text import error_text, quoted
from headrace._core.threads import as_exception, start_thread
from headrace.infer.batch import Batch, frame_meta
from headrace.media import Frame, Source
from headrace.media.resizing import FrameSize
from headrace.pipeline.channel import ChannelClosedError
from headrace.pipeline.durations import Durations
from headrace.pipeline.muxed_source import MuxedSource
from headrace.pipeline.report import SourceReport

_MIN_GROUP = 16  # frames handed on together when most of them are skipped by `interval`
_MOST_RUNS = 4  # of one cost each, that buffers are joined for
_MIN_ROOM = 2  # frames that wait for each source: one to take, one being decoded meanwhile
_POLL_S = 0.2  # how soon a stop is seen while sources give nothing
_JOIN_S = 0.02  # how long a frame waits for others of its batch
_REPORTS = 256  # of sources that are over, where sources come and go
_USUAL_FPS = 25.0
_LOOK_S = 0.05
_LEAVE_S = 1.0  # how long a source that hangs may hold up the end


class Muxer:
    """Reads sources and makes batches of them.

    Args:
        sources: with distinct `source_id`; each is closed by its thread when it ends.
        buffer_size: frames in a buffer at most; None is one of each source. With more sources
            than that they take turns.
        fill: frames to be inferred that a batch should hold: whole buffers of files are joined
            until the next one would exceed it. Buffers with live sources are joined only when they
            are complete already.
        run_rows: items of a run of the engine that costs the same with fewer; buffers of fewer
            frames are joined until they fill whole runs to nine tenths. 0: cost follows the items.
        interval: buffers between two that are inferred; those in between do not count for `fill`.
        room: frames of all sources together that may wait.
        timeout_s: with live sources: a buffer waits for frames of others until its oldest one has
            been here so long. A source that keeps it waiting in vain is not waited for until it
            gives a frame again.
        limit: stop each source after this many frames.
        size: what every frame is scaled to, in the thread of its source; None keeps theirs.
        keep_open: go on without sources, until the stop: more may be added.
        end_when_over: with `keep_open`, end when all sources that there were are over.
        begin_with_some: videos whose decoders are made one after the other are not waited for
            until they have given a frame.
        sync_wait_s: a buffer holds frames of the same time alone, and waits for those of live
            sources so much longer; None takes the next frame of each source, whatever its time.

    Attributes:
        joined: frames of files to be inferred up to which a batch takes those that are there; it
            waits for `fill`, and a moment for these.
        more_decoders: answers False while those of all but the first video are held back.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        buffer_size: int | None = None,
        fill: int = 1,
        run_rows: int = 0,
        interval: int = 0,
        room: int = 4,
        timeout_s: float = 0.04,
        limit: int | None = None,
        size: FrameSize | None = None,
        keep_open: bool = False,
        end_when_over: bool = False,
        begin_with_some: bool = False,
        sync_wait_s: float | None = None,
    ) -> None:
        self._size, self._begin_with_some = size, begin_with_some
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._feeds = [MuxedSource(i, s, self._lock) for i, s in enumerate(sources)]
        self._by_id = {feed.report.source_id: feed for feed in self._feeds}
        self._turns = list(self._feeds)  # whose turn is next, ended ones removed
        self._indices = count(len(self._feeds))
        self._gone: deque[SourceReport] = deque(maxlen=_REPORTS)  # of sources that are over
        self._gone_frames = self._gone_dropped = 0
        self._gone_s = 0.0
        self._started = False
        self._lacking: MuxedSource | None = None  # whose frames the reader waits for; None: any
        self._lacks = 0  # of these, or of frames of sources that had none: then it is woken
        self._keep_open, self._end_when_over = keep_open, end_when_over
        self.buffer_size = buffer_size
        self._fill = fill
        self._run_rows = run_rows
        self.interval = interval
        self.joined = 0
        self._all_room = room
        self._sync_wait_s = sync_wait_s
        self._began = monotonic()
        self.more_decoders: Callable[[], bool] = lambda: True
        self.timeout_s = timeout_s
        self.reading = Durations()
        self._limit = limit
        self._abandoned = False
        self._over: list[int] = []  # ids of ended sources that no batch has named yet
        self._buffer = 0
        self._stopped_at: float | None = None
        self.stopping = False  # a plain flag: signal handlers set it
        self.errors: list[Exception] = []

    @property
    def live(self) -> bool:
        """True while frames of any source come in real time."""
        return any(feed.live for feed in self._turns)

    @property
    def reports(self) -> list[SourceReport]:
        """Counts of each source so far; of those that are over, the last ones."""
        with self._lock:
            return [*self._gone, *(feed.counted() for feed in self._feeds)]

    def frame_ages(self) -> dict[int, float | None]:
        """Seconds since the latest frame of each source that is not over; None before the first."""
        now = monotonic()
        with self._lock:
            return {
                feed.report.source_id: None if feed.last_at is None else now - feed.last_at
                for feed in self._turns
            }

    def fate(self, source_id: int) -> tuple[str, str]:
        """Name of a source that gives no more frames, and how it ended."""
        report = next(r for r in self.reports if r.source_id == source_id)
        error = (report.error or "").partition("\n")[0].removeprefix(f"{report.name}: ")
        return report.name, f"{report.state}: {error}" if error else report.state

    @property
    def frames(self) -> tuple[int, int]:
        """Frames read of all sources so far, and those of them that were dropped."""
        with self._lock:
            read = sum(feed.report.frames for feed in self._feeds)
            dropped = sum(feed.report.dropped for feed in self._feeds)
            return self._gone_frames + read, self._gone_dropped + dropped

    @property
    def decode_s(self) -> float:
        """Seconds all sources together spent giving frames."""
        return self._gone_s + sum(feed.decode_s for feed in self._feeds)

    def latencies(self) -> dict[int, Durations]:
        """Times from the packets to the metadata of each live source that is not over."""
        with self._lock:
            return {number: feed.latency for number, feed in self._by_id.items() if feed.live}

    def delivered(self, frames: Sequence[Frame]) -> None:
        """Count the times from the packets of finished frames to now."""
        now_ns = time_ns()
        for frame in frames:
            if frame.live and frame.wall_ns is not None:
                feed = self._by_id.get(frame.source_id)
                if feed is not None:
                    feed.latency.add(max(0, now_ns - frame.wall_ns) / 1e9)

    def start(self) -> None:
        """Start reading."""
        with self._lock:
            self._started = True
            for feed in self._feeds:
                self._begin(feed)

    def add(self, source: Source) -> None:
        """Read one more source from now on; its id is one that no other has had."""
        with self._lock:
            feed = MuxedSource(next(self._indices), source, self._lock)
            self._feeds.append(feed)
            self._by_id[feed.report.source_id] = feed
            self._turns.append(feed)
            if self._started:
                self._begin(feed)
            self._arrived.notify()

    def remove(self, source_id: int) -> Source | None:
        """End a source at once: frames of it that wait are dropped.

        Returns:
            The source, closed; None if it has ended, or there was none.
        """
        with self._lock:
            mine = (f for f in self._turns if f.report.source_id == source_id and not f.removed)
            feed = next(mine, None)
            if feed is None:
                return None
            feed.ended = feed.removed = True
            feed.report.state = "removed"
            feed.report.frames -= len(feed.items)  # nobody gets them
            feed.items.clear()
            feed.room.notify_all()
            self._arrived.notify()
        feed.source.close()
        return feed.source

    def _begin(self, feed: MuxedSource) -> None:
        name = f"headrace-decode-{feed.index}"
        failed = partial(self._lose, feed)
        try:
            feed.thread = start_thread(partial(self._read, feed), name=name, failed=failed)
        except HeadraceError as error:  # the lock may be held
            self._fail(feed, error)
            feed.ended = True

    def abandon(self) -> None:
        """Drop waiting frames and end the sources."""
        with self._lock:
            self._abandoned = True
            self.stopping = True
            for feed in self._feeds:
                feed.items.clear()
                feed.room.notify_all()
                feed.ended = feed.ended or feed.thread is None

    def join(self, within_s: float = float("inf")) -> None:
        """Wait for the threads, but not for a live source that does not let itself be closed.

        Args:
            within_s: how long to wait for the others.
        """
        now = monotonic()
        deadline, last = now + _LEAVE_S, now + within_s
        for feed in list(self._feeds):
            if feed.thread is not None:
                if feed.thread.is_alive() and self.stopping:
                    feed.source.close()
                end = min(deadline, last) if feed.live else last
                feed.thread.join(max(0.0, end - monotonic()) if end < float("inf") else None)

    # The sources' threads.

    def _read(self, feed: MuxedSource) -> None:
        """Read one source to its end, its error, the limit or the stop."""
        source, report = feed.source, feed.report
        try:
            if feed.begins_late and feed.index > 0:
                while not (self.more_decoders() or self.stopping or feed.removed):
                    sleep(_LOOK_S)  # the driver loads a kernel, or makes a decoder
            frames = iter(source)
            while not (self.stopping or feed.removed):
                start = perf_counter()
                frame = next(frames, None)
                taken = perf_counter() - start
                feed.decode_s += taken
                self.reading.add(taken)
                if frame is None:
                    if not (self.stopping or feed.removed):
                        report.state = "ended"
                    break
                if frame.source_id != source.source_id:
                    frame = replace(frame, source_id=source.source_id)
                if self._size is not None:
                    frame = self._size.fitted(frame)
                self._put(feed, frame)
                if self._limit is not None and report.frames >= self._limit:
                    break
        except ChannelClosedError:
            pass
        except BaseException as error:
            self._fail(feed, as_exception(error))
        finally:
            try:
                source.close()
            except BaseException as error:
                self._fail(feed, as_exception(error))
            self._end(feed)

    def _lose(self, feed: MuxedSource, error: Exception) -> None:
        self._fail(feed, error)
        self._end(feed)

    def _end(self, feed: MuxedSource) -> None:
        with self._lock:
            feed.ended = True
            self._arrived.notify()

    def _fail(self, feed: MuxedSource, error: Exception) -> None:
        if feed.error is None and not feed.removed:
            feed.error = error
            feed.report.state = "failed"
            feed.report.error = error_text(error, kind=False) or type(error).__name__
            if not self._keep_open:
                self.errors.append(error)

    def _put(self, feed: MuxedSource, frame: Frame) -> None:
        until = monotonic() + feed.backlog.patience_s(frame.pts_ns) if feed.live else float("inf")
        with self._lock:
            while not (self._abandoned or feed.ended) and len(feed.items) >= self._room:
                if monotonic() >= until:
                    feed.items.popleft()
                    feed.report.dropped += 1
                else:
                    feed.room.wait(until - monotonic() if feed.live else None)
            if self._abandoned or feed.ended:
                raise ChannelClosedError
            if self._lacking is feed or (self._lacking is None and not feed.items):
                self._lacks -= 1
                if self._lacks <= 0:
                    self._arrived.notify()
            feed.last_at = monotonic()
            feed.items.append((frame, feed.last_at))
            feed.report.frames += 1
            feed.awaited = True

    @property
    def _room(self) -> int:
        """Frames of each source that may wait; the lock is held."""
        room = max(self._all_room, 2 * self.joined)
        return max(_MIN_ROOM, -(-room // len(self._turns or self._feeds)))

    # The reader's side.

    def batches(self) -> Iterator[Batch]:
        """The batches, in order; the last one may hold nothing but the ids of ended sources."""
        most = max(self._fill, _MIN_GROUP, _MOST_RUNS * self._run_rows)
        while True:
            batch = Batch([], [], [])
            inferred, until = 0, float("inf")
            while picks := self._next_buffer(max(self._fill, self.joined) - inferred, until):
                turns = len(picks) if self._buffer % (self.interval + 1) == 0 else 0
                total = len(batch.frames) + len(picks)
                full = self._full(inferred, turns) or total > most
                if full and batch.frames:
                    break
                self._take(picks, batch)
                inferred += turns
                if self._full(inferred, 1) or total >= most:
                    break
                if self.live or (self.joined and inferred >= self._fill):
                    until = min(until, 0.0 if self.live else monotonic() + _JOIN_S)
            batch.ended, self._over = self._over, []
            if batch.frames or batch.ended:
                yield batch
            if not self._turns and (self.stopping or self._is_over()):
                return

    def _is_over(self) -> bool:
        """Whether no source is left, and none is waited for."""
        ended = self._end_when_over and (bool(self._gone) or any(f.ended for f in self._feeds))
        return not self._keep_open or ended

    def _full(self, inferred: int, more: int) -> bool:
        """True if a batch with so many frames to be inferred should not have `more` of them."""
        if inferred + more <= max(self._fill, self.joined):
            return False
        if not self._run_rows:
            return True
        rows = -(-inferred // self._run_rows) * self._run_rows
        most = _MOST_RUNS * self._run_rows
        return inferred + more > rows and (10 * inferred >= 9 * rows or inferred + more > most)

    def _take(self, picks: list[MuxedSource], batch: Batch) -> None:
        """Move one frame of each of these sources into the batch, as one buffer."""
        with self._lock:
            picks = [f for f in picks if f.items]  # a source may have been removed meanwhile
            frames, few = [], self._room // 2
            for feed in sorted(picks, key=lambda f: f.index):
                frame, came_at = feed.items.popleft()
                frames.append(frame)
                batch.came_at = min(batch.came_at, came_at)
                if len(feed.items) <= few:  # its thread is not woken for each
                    feed.room.notify()
            if len(picks) < len(self._turns):
                taken = set(picks)
                self._turns = [f for f in self._turns if f not in taken] + picks
            self._drop_ended()
        batch.frames += frames
        batch.metas += map(frame_meta, frames)
        batch.buffers += [self._buffer] * len(frames)
        self._buffer += 1

    def _next_buffer(self, room: int, until: float) -> list[MuxedSource]:
        """Sources with next frames that form a buffer; none at the end.

        Args:
            room: frames that the batch has room for: the reader is not woken for each.
            until: a time of `monotonic`, after which there are none if no buffer is complete.
        """
        wait = until == float("inf")
        with self._lock:
            while True:
                deadline: float | None = None
                self._lacking = None
                self._drop_ended()
                if not self._turns:
                    if self._over or self.stopping or not wait or self._is_over():
                        return []
                    self._lacks = 0
                    self._arrived.wait(_POLL_S)
                    continue
                if self._over and wait and self._keep_open:
                    return []  # sinks hear of an end though nothing else comes
                size = self.buffer_size or len(self._turns)
                if not self.live:
                    synced = self._sync_wait_s is not None
                    turns = [f for f in self._turns if f.begun or not self._begin_with_some]
                    picks = turns if synced else turns[:size]
                    if not picks:
                        self._lacks = 1
                        self._arrived.wait(_POLL_S)
                        continue
                    self._lacking = next((f for f in picks if not f.items), None)
                    if self._lacking is None:
                        return self._of_one_time(picks)[:size] if synced else picks
                    rest = min(_JOIN_S if self.joined else _POLL_S, until - monotonic())
                    if rest <= 0:
                        return []
                    self._lacks = min(self._room, -(-room // len(picks)))
                    self._arrived.wait(rest)
                    continue
                picks = self._of_one_time([f for f in self._turns if f.items])[:size]
                lacking = [f for f in self._turns if f.awaited and not f.items]
                if picks and (not lacking or len(picks) == size):
                    return picks
                if not wait:
                    return []
                now = monotonic()
                if picks:
                    oldest = min(feed.items[0][1] for feed in picks)
                    deadline = oldest + self.timeout_s + (self._sync_wait_s or 0.0)
                    if now >= deadline:
                        for feed in lacking:
                            feed.awaited = False
                        return picks
                self._lacks = min(len(lacking), size - len(picks)) if picks else 1
                self._arrived.wait(min(_POLL_S, deadline - now) if deadline else _POLL_S)

    def _of_one_time(self, feeds: list[MuxedSource]) -> list[MuxedSource]:
        """The feeds with the earliest frame; each of `feeds` has one."""
        if self._sync_wait_s is None or len(feeds) < 2:
            return feeds
        times = {feed: feed.next_s(self._began) for feed in feeds}
        fastest = max((feed.source.fps or _USUAL_FPS for feed in feeds), default=_USUAL_FPS)
        last = min(times.values()) + 0.5 / fastest
        return [feed for feed in feeds if times[feed] < last]

    def _drop_ended(self) -> None:
        """Take sources that have given all out of the rotation; the lock is held.

        After a stop, live sources have; one that still owes a frame after a while is closed.
        """
        if self.stopping:
            self._stopped_at = self._stopped_at or monotonic()
            if monotonic() - self._stopped_at > _LEAVE_S:
                for feed in self._turns:
                    if not feed.items and not feed.ended:
                        feed.source.close()
        over = [
            f
            for f in self._turns
            if not f.items and (f.ended or self._abandoned or (self.stopping and f.live))
        ]
        if over:
            for feed in over:
                feed.ended = True  # also one that hangs: what it still gives is not wanted
                self._over.append(feed.report.source_id)
                if self._keep_open and not self.stopping:  # else `join` closes it
                    self._forget(feed)
            self._turns = [f for f in self._turns if f not in over]

    def _forget(self, feed: MuxedSource) -> None:
        """Keep the counts of a source that is over, and nothing else; the lock is held."""
        self._feeds.remove(feed)
        self._by_id.pop(feed.report.source_id, None)
        self._gone.append(feed.counted())
        self._gone_s += feed.decode_s
        self._gone_frames += feed.report.frames
        self._gone_dropped += feed.report.dropped


def check_limit(limit: object) -> None:
    """Refuse a limit that is no positive number of frames.

    Raises:
        HeadraceError: it is neither None nor an integer of 1 or more.
    """
    if limit is not None and not (isinstance(limit, Integral) and int(limit) > 0):
        raise HeadraceError(
            f"limit={quoted(repr(limit))} is no number of frames",
            where="Pipeline.limit",
            expected="an integer, 1 or more; None for all frames",
        )
