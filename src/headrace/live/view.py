"""`LiveView`: a sink that keeps the latest frame of each source for viewers."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from headrace.media.draw import Painter
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink
from headrace.media.sinks.images import encode_image
from headrace.meta import FrameMeta
from headrace.meta.fields import VIEW_FORMS

if TYPE_CHECKING:
    from headrace.meta import Objects

_RATE_S = 2.0  # over which frames per second are counted
_OVER = 8  # sources that are over whose last frames are kept


@dataclass(slots=True)
class _Latest:
    """The last frame of a source."""

    frame: Frame
    meta: FrameMeta
    number: int  # of all frames that were shown, over all sources
    times: deque[float] = field(default_factory=deque)
    images: dict[int, bytes] = field(default_factory=dict)  # width -> JPEG


@dataclass(frozen=True, slots=True)
class LiveImage:
    """A drawn frame as JPEG, with its objects.

    Attributes:
        source_id: of its source.
        number: rises with every frame that any source shows.
        jpeg: the image.
        meta: of the frame.
    """

    source_id: int
    number: int
    jpeg: bytes
    meta: FrameMeta


class LiveView(Sink):
    """Keeps the latest frame of each source; frames are drawn and encoded when they are asked for.

    Taking a frame is no work for the pipeline, whoever watches and however slowly.

    Args:
        painter: draws; None draws with the defaults. It may be changed at any time.
    """

    kind = "view"

    def __init__(self, painter: Painter | None = None) -> None:
        super().__init__("view", Path("view"))
        self.painter = painter or Painter()
        self._lock = threading.Lock()
        self._encoding = threading.Lock()  # one image at a time: watchers share it
        self._latest: dict[int, _Latest] = {}
        self._given: dict[int, _Latest] = {}  # the last one that was drawn
        self._over = deque[int]()  # sources that gave their last frame
        self._number = 0
        self._listeners: set[Callable[[], None]] = set()

    def note_end(self, text: str) -> None:
        """Note that the page has ended."""
        self._notice("page-ended", "warning", text)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        now = monotonic()
        with self._lock:
            self._number += 1
            before = self._latest.get(meta.source_id)
            times = deque[float]() if before is None else before.times
            times.append(now)
            while now - times[0] > _RATE_S:
                times.popleft()
            self._latest[meta.source_id] = _Latest(frame, meta, self._number, times)
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    @property
    def over(self) -> bool:
        """True once no frame comes any more."""
        return self._closed

    def _finish(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def end(self, source_id: int) -> None:
        """Keep the last frame of a source that is over until some more are."""
        with self._lock:
            self._over.append(source_id)
            if len(self._over) > _OVER:
                self._forget(self._over.popleft())

    def forget(self, source_id: int) -> None:
        """Show a source no more."""
        with self._lock:
            self._forget(source_id)

    def _forget(self, source_id: int) -> None:
        self._latest.pop(source_id, None)
        self._given.pop(source_id, None)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function, from the pipeline's thread, with each frame that comes."""
        with self._lock:
            self._listeners.add(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Stop calling a function."""
        with self._lock:
            self._listeners.discard(listener)

    def newer(self, seen: dict[int, int]) -> list[int]:
        """Sources of `seen` (id -> number of the last image) that have a newer frame."""
        with self._lock:
            return [i for i, n in seen.items() if i in self._latest and self._latest[i].number > n]

    def image(self, source_id: int, width: int) -> LiveImage | None:
        """The latest frame of a source, drawn, at most `width` pixels wide; None: it has none."""
        with self._encoding:
            with self._lock:
                latest = self._latest.get(source_id)
                if latest is None:
                    return None
                self._given[source_id] = latest
            jpeg = latest.images.get(width)
            if jpeg is None:
                drawn = self.painter.draw(latest.frame, latest.meta)
                jpeg = encode_image(drawn, ".jpg", max_width=width)
                latest.images[width] = jpeg
            return LiveImage(source_id, latest.number, jpeg, latest.meta)

    def frame_of(self, source_id: int, number: int) -> tuple[Frame, FrameMeta] | None:
        """The frame of an image if it is the last one given, else the latest; None: none yet."""
        with self._lock:
            drawn, latest = self._given.get(source_id), self._latest.get(source_id)
        chosen = drawn if drawn is not None and drawn.number == number else latest
        return None if chosen is None else (chosen.frame, chosen.meta)

    def rates(self) -> dict[int, float]:
        """Frames per second of each source."""
        now = monotonic()
        with self._lock:
            every = {i: list(latest.times) for i, latest in self._latest.items()}
        return {i: _rate(times, now) for i, times in every.items()}

    def counts(self) -> dict[int, dict[str, int]]:
        """Objects of each label in the latest frame of each source."""
        with self._lock:
            metas = {i: latest.meta for i, latest in self._latest.items()}
        return {i: dict(_labels(meta.objects).most_common()) for i, meta in metas.items()}


def _rate(times: list[float], now: float) -> float:
    recent = [t for t in times if now - t <= _RATE_S]
    if len(recent) < 2:
        return 0.0
    return (len(recent) - 1) / max(1e-6, recent[-1] - recent[0])


def _labels(objects: Objects) -> Counter[str]:
    return Counter(objects.label(i) or f"class {objects.class_ids[i]}" for i in range(len(objects)))


def objects_as_data(meta: FrameMeta) -> list[dict[str, Any]]:
    """The objects of a frame as the page shows them; boxes are in pixels of the frame."""
    objects = meta.objects
    return [
        {key: form(objects, i) for key, form in VIEW_FORMS.items()} for i in range(len(objects))
    ]
