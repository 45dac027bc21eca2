"""Where batches leave: which sink gets which frames, drawn or not, tiled or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from headrace._core.errors import HeadraceError
from headrace._core.plain_record import PlainRecord
from headrace._core.retry import CLOSE_S
from headrace.media.sinks.base import Delivery, Sink
from headrace.pipeline.durations import Durations

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.infer.batch import Batch
    from headrace.media import Frame, Source
    from headrace.media.draw import Painter
    from headrace.meta import FrameMeta


_Sinks: TypeAlias = "tuple[tuple[Sink, ...], tuple[Sink, ...]]"
"""Sinks that need no pixels, and those that do."""
_NOWHERE: _Sinks = ((), ())


class Composes(Protocol):
    """Makes one image of several."""

    def compose(self, pairs: Sequence[tuple[Frame, FrameMeta]]) -> tuple[Frame, FrameMeta]:
        """One image of the latest frame of each source, with their objects moved into it."""


@runtime_checkable
class Recorder(Protocol):
    """A sink that records clips of sources."""

    def record(
        self, source_id: int, *, back_s: float | None = None, length_s: float | None = None
    ) -> bool:
        """Record around now; False if the source is not there, or is no video."""

    def end_recording(self, source_id: int) -> bool:
        """End a recording; False if the source is not there, or is no video."""


class Route(PlainRecord, frozen=True):
    """Which frames go into a sink.

    Attributes:
        sink: takes them.
        only_source: id of the one source whose frames it gets; None is all.
        tiled: it gets one composed image per buffer instead. None decides: if the pipeline has a
            tiler, sinks that show pixels and are not for one source are tiled.
        tapped: a probe writes its frames, further up; here it is closed alone.
    """

    sink: Sink
    only_source: int | None = None
    tiled: bool | None = None
    tapped: bool = False


def routes_of(sinks: Sequence[Sink | Route | tuple[Sink, int | None]]) -> list[Route]:
    """Sinks, sinks with a source, and routes, all as routes."""
    parts = (item if isinstance(item, tuple | Route) else (item,) for item in sinks)
    return [part if isinstance(part, Route) else Route(*part) for part in parts]


class Outlet:
    """Writes batches into sinks, from one thread; each image is drawn at most once.

    Args:
        routes: sinks and what they get.
        painter: draws for the sinks that show pixels; None draws with the defaults.
        tiler: composes the images of tiled sinks.
        source_ids: ids that there are; None: sources come and go.
        fate: name of a source that has ended, and in a few words how; None: nobody asks.

    Attributes:
        quick: no sink is waited for: what writes needs no thread of its own.
        busy: True while a batch is written.

    Raises:
        HeadraceError: a route names a source that there is not, or is tiled without a tiler.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        painter: Painter | None,
        tiler: Composes | None,
        source_ids: Sequence[int] | None,
        fate: Callable[[int], tuple[str, str]] | None = None,
    ) -> None:
        # dark cells of a `Tiler` say why; another composer need not know of it
        self._tell_end = None if fate is None else getattr(tiler, "end", None)
        self._fate = fate
        self.draw_s = 0.0
        self.write_s = 0.0
        self.tile_s = 0.0
        self.writing = Durations()
        self.latency = Durations()  # from the oldest frame of a batch to its end
        self._tiler = tiler
        self._routes = list(routes)
        for route in routes:
            known = source_ids is None or route.only_source in (None, *source_ids)
            if not known and source_ids is not None:
                raise HeadraceError(
                    f"there is no source {route.only_source} for it",
                    where=str(route.sink.path),
                    expected=f"one of {', '.join(map(str, source_ids))}",
                )
            if route.tiled and tiler is None:
                raise HeadraceError(
                    "is to be tiled, but there is no tiler",
                    where=str(route.sink.path),
                    fix="pass tiler=Tiler(...) to the pipeline",
                )
        self.sinks: list[Sink] = []  # each once, in the order given
        for route in routes:
            if route.sink not in self.sinks:
                self.sinks.append(route.sink)
        if painter is None and any(sink.needs_pixels for sink in self.sinks):
            from headrace.media.draw import Painter

            painter = Painter()
        self.painter = painter
        tiled = [r for r in routes if self._is_tiled(r)]
        self._tiled = _by_need([r.sink for r in tiled])
        self._plain = [r for r in routes if r not in tiled and not r.tapped]
        takes_all = len(routes) == 1 and self._plain and routes[0].only_source is None
        self.quick = all(getattr(sink, "quick", False) for sink in self.sinks)
        self.busy = False
        plain = takes_all and not self.sinks[0].needs_pixels
        self._single = self.sinks[0] if plain and isinstance(self.sinks[0], Sink) else None
        self._by_source: dict[int, _Sinks] = {}
        self._latest: dict[int, tuple[Frame, FrameMeta]] = {}

    def begin(self, source: Source) -> None:
        """Announce a source to the sinks that get its frames."""
        for route in self._routes:
            if route.only_source in (None, source.source_id):
                route.sink.begin(source)

    def _is_tiled(self, route: Route) -> bool:
        if route.tiled is None:
            return self._tiler is not None and route.sink.needs_pixels and route.only_source is None
        return route.tiled

    def write(self, batch: Batch) -> None:
        """Write every frame of a batch, in order; the tiled image follows each buffer."""
        self.busy = True
        try:
            self._write(batch)
        finally:
            self.busy = False

    def _write(self, batch: Batch) -> None:
        start = perf_counter()
        before = self.draw_s + self.tile_s
        if self._single is not None:
            self._single.write_batch(batch.frames, batch.metas)
        elif self._tiled is _NOWHERE:
            for frame, meta in zip(batch.frames, batch.metas, strict=True):
                self._put(self._sinks_of(meta.source_id), frame, meta)
        else:
            for _, indices in batch.by_buffer():
                for i in indices:
                    frame, meta = batch.frames[i], batch.metas[i]
                    self._put(self._sinks_of(meta.source_id), frame, meta)
                    self._latest[meta.source_id] = frame, meta
                self._put(self._tiled, *self._compose())
            for source_id in batch.ended:
                self._latest.pop(source_id, None)
                if self._tell_end is not None and self._fate is not None:
                    self._tell_end(source_id, *self._fate(source_id))
        for source_id in batch.ended:
            self._by_source.pop(source_id, None)
            for sink in self.sinks:
                sink.end(source_id)
        taken = perf_counter() - start
        if batch.frames and batch.came_at < float("inf"):
            self.latency.add(monotonic() - batch.came_at)
        self.writing.add(taken)
        self.write_s += taken - (self.draw_s + self.tile_s - before)

    def _sinks_of(self, source_id: int) -> _Sinks:
        sinks = self._by_source.get(source_id)
        if sinks is None:
            receivers = [r.sink for r in self._plain if r.only_source in (None, source_id)]
            sinks = self._by_source[source_id] = _by_need(receivers)
        return sinks

    def _put(self, sinks: _Sinks, frame: Frame, meta: FrameMeta) -> None:
        plain, images = sinks
        for sink in plain:
            sink.write(frame, meta)
        if images:
            assert self.painter is not None
            start = perf_counter()
            drawn = self.painter.draw(frame, meta)
            self.draw_s += perf_counter() - start
            for sink in images:
                sink.write(drawn, meta)

    def _compose(self) -> tuple[Frame, FrameMeta]:
        assert self._tiler is not None
        start = perf_counter()
        composed = self._tiler.compose([self._latest[i] for i in sorted(self._latest)])
        self.tile_s += perf_counter() - start
        return composed

    @property
    def deliveries(self) -> list[Delivery]:
        """Counts of messages of each output that sends some."""
        found = (sink.delivery for sink in self.sinks if isinstance(sink, Sink))
        return [delivery for delivery in found if delivery is not None]

    @property
    def notices(self) -> list[Finding]:
        """Of the tiler, the painter and the sinks."""
        tiler = getattr(self._tiler, "notices", ())
        painter = [] if self.painter is None else self.painter.notices
        return [*tiler, *painter, *(n for sink in self.sinks for n in sink.notices)]

    def close(self, within_s: float = CLOSE_S) -> list[BaseException]:
        """Close every sink; returns the errors of those that could not be closed.

        All of them together wait so long for brokers and servers.
        """
        errors: list[BaseException] = []
        deadline = monotonic() + within_s
        for sink in self.sinks:
            if isinstance(sink, Sink):
                sink.end_by(deadline)
        for sink in self.sinks:
            try:
                sink.close()
            except BaseException as error:
                errors.append(error)
        return errors


def _by_need(sinks: Sequence[Sink]) -> _Sinks:
    """Sinks that need no pixels, and those that do."""
    if not sinks:
        return _NOWHERE
    return (
        tuple(s for s in sinks if not s.needs_pixels),
        tuple(s for s in sinks if s.needs_pixels),
    )
