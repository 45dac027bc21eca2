"""Events of a running pipeline, and the functions that are called with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, get_args

from headrace._core.errors import HeadraceError
from headrace._core.plain_record import PlainRecord
from headrace.pipeline.stage import check_plain_function, user_call

if TYPE_CHECKING:
    from headrace.infer.batch import Batch
    from headrace.meta import FrameMeta, ObjectMeta

EventKind = Literal["source", "crossing", "crowd"]
KINDS: tuple[EventKind, ...] = get_args(EventKind)


class PipelineEvent(PlainRecord, frozen=True):
    """Something that happened.

    Attributes:
        kind: `source`: a source began or came to an end; `crossing`: an object crossed a line;
            `crowd`: a place became crowded or is not any more.
        name: the state of the source (`added`, or as in `SourceReport.state`), or the name of the
            rule.
        source_id, source: where it happened.
        meta: the frame; None for an event of a source.
        object: the object that crossed the line; None for others.
        crowded: True when a place became crowded.
    """

    kind: EventKind
    name: str
    source_id: int
    source: str
    meta: FrameMeta | None = None
    object: ObjectMeta | None = None
    crowded: bool = False


Handler = Callable[[PipelineEvent], None]


class Events:
    """Calls functions with the events they were registered for."""

    def __init__(self) -> None:
        self._handlers: dict[EventKind, tuple[Handler, ...]] = {}
        self._crowded: dict[tuple[int, str], bool] = {}

    def on(self, kind: EventKind, handler: Handler) -> None:
        """Register a function.

        Raises:
            HeadraceError: there is no such kind, or calling the function does nothing.
        """
        if kind not in KINDS:
            expected = f"one of {', '.join(KINDS)}"
            raise HeadraceError(
                f"there are no events {kind!r}", where="Pipeline.on_event", expected=expected
            )
        check_plain_function(handler, "the handler")
        self._handlers[kind] = (*self._handlers.get(kind, ()), handler)

    def tell(self, event: PipelineEvent) -> None:
        """Call the functions for an event.

        Raises:
            HeadraceError: one of them fails.
        """
        for handler in self._handlers.get(event.kind, ()):
            user_call(handler, event, "the handler")

    def look_at(self, batch: Batch, fates: Callable[[int], tuple[str, str]]) -> None:
        """Find the events of a batch that is through all stages, and tell them.

        Args:
            batch: in order.
            fates: name and state of a source that has ended.
        """
        if not self._handlers:
            return
        for meta in batch.metas:
            for event in self._of_frame(meta):
                self.tell(event)
        for source_id in batch.ended:
            for key in [k for k in self._crowded if k[0] == source_id]:
                del self._crowded[key]
            name, state = fates(source_id)
            self.tell(PipelineEvent("source", state, source_id, name))

    def _of_frame(self, meta: FrameMeta) -> Iterator[PipelineEvent]:
        if meta.analytics is None:
            return
        where = meta.source_id, meta.source
        for index, analytics in sorted(meta.objects.analytics.items()):
            for name in analytics.crossed:
                yield PipelineEvent("crossing", name, *where, meta, meta.objects[index])
        crowded: Mapping[str, bool] = meta.analytics.crowded
        for name, now in crowded.items():
            key = (meta.source_id, name)
            if now != self._crowded.get(key, False):
                self._crowded[key] = now
                yield PipelineEvent("crowd", name, *where, meta, crowded=now)
