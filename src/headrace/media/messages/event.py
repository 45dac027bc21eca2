"""Events: objects of one frame that a message is about, and the filter that chooses them."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from headrace.meta import UNTRACKED_OBJECT_ID, FrameMeta
from headrace.meta.analytics import ObjectAnalytics
from headrace.meta.fields import EVENT_FORMS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REMEMBERED = 100_000  # tracks; the oldest are forgotten, so memory stays bounded


@dataclass(frozen=True, slots=True)
class EventObject:
    """One object of an event.

    Attributes:
        class_id, label, confidence: the detector's result.
        box: left, top, width, height in frame pixels.
        object_id: number of the track; None without a tracker.
        analytics: rules about places that it fulfils; None without any.
        attributes: results of classifiers: `classifier-type` of the config, and label.
    """

    class_id: int
    label: str
    confidence: float
    box: tuple[float, float, float, float]
    object_id: int | None = None
    analytics: ObjectAnalytics | None = None
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """Objects of one frame that a message is about.

    Attributes:
        kind: `first`, `frame`, `crossing` or `interval`.
        source, source_id: the input; `source` carries no credentials.
        frame, pts_ns: number and presentation time of the frame.
        objects: those that passed the filter.
        analytics: counts of the frame, as JSON Lines have them; empty without rules about places.
        time: wall clock when the event was made, UTC.
        id: of the message; a duplicate has the same.
    """

    kind: str
    source: str
    source_id: int
    frame: int
    pts_ns: int
    objects: tuple[EventObject, ...]
    analytics: Mapping[str, object] = field(default_factory=dict)
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def scaled(self, across: float, down: float) -> MessageEvent:
        """The event with its boxes in another space: their numbers times two factors."""
        if (across, down) == (1.0, 1.0):
            return self
        objects = []
        for one in self.objects:
            left, top, width, height = one.box
            box = (left * across, top * down, width * across, height * down)
            objects.append(replace(one, box=box))
        return replace(self, objects=tuple(objects))


def timestamp(time: datetime) -> str:
    """UTC time as ISO 8601 with milliseconds and `Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class EventFilter:
    """Chooses the objects that become events.

    Args:
        every: `first` (each track once; every object without a tracker), `frame`, `crossing`
            (objects that cross a line of the analytics), or a number N for every N-th frame of a
            source.
        classes: labels that count; empty is all.
        component: objects of this model alone; None takes those of all.
        empty: a frame without such an object is an event, too.
        stream_time: the time of an event is that of its frame in the stream, since 1970.

    Attributes:
        counted: True once a frame had results of analytics.
    """

    def __init__(
        self,
        every: str | int = "first",
        classes: Sequence[str] = (),
        *,
        component: int | None = None,
        empty: bool = False,
        stream_time: bool = False,
    ) -> None:
        self.every = every
        self.classes = frozenset(classes)
        self.component, self.empty, self.stream_time = component, empty, stream_time
        self.counted = False
        self._seen: OrderedDict[tuple[int, int], None] = OrderedDict()

    def event(self, meta: FrameMeta) -> MessageEvent | None:
        """The event of a frame; None if no object passes, unless empty ones count."""
        if isinstance(self.every, int) and meta.frame % self.every:
            return None
        self.counted = self.counted or meta.analytics is not None
        chosen = tuple(self._objects(meta))
        if not (chosen or self.empty):
            return None
        kind = self.every if isinstance(self.every, str) else "interval"
        counts = {} if meta.analytics is None else meta.analytics.to_dict()
        source = meta.source, meta.source_id
        event = MessageEvent(kind, *source, meta.frame, meta.pts_ns, chosen, counts)
        if not self.stream_time:
            return event
        return replace(event, time=_EPOCH + timedelta(microseconds=meta.pts_ns // 1000))

    def _objects(self, meta: FrameMeta) -> list[EventObject]:
        objects, chosen = meta.objects, []
        for i in range(len(objects)):
            if self.classes and objects.label(i) not in self.classes:
                continue
            if self.component not in (None, int(objects.component_ids[i])):
                continue
            analytics = objects.analytics.get(i)
            if self.every == "crossing" and not (analytics and analytics.crossed):
                continue
            confidence = float(objects.confidences[i])
            if not (np.isfinite(objects.rects[i]).all() and np.isfinite(confidence)):
                continue
            track = int(objects.object_ids[i])
            tracked = track not in (-1, UNTRACKED_OBJECT_ID)
            if tracked and self.every == "first" and not self._is_new(meta.source_id, track):
                continue
            chosen.append(EventObject(**{k: form(objects, i) for k, form in EVENT_FORMS.items()}))
        return chosen

    def _is_new(self, source_id: int, track: int) -> bool:
        key = (source_id, track)
        new = key not in self._seen
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return new
