"""Messages as an output: events of the frames go to a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headrace._core.notices import note_once
from headrace._core.text import counted, quoted
from headrace._core.urls import url_name
from headrace.media.frame import Frame
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.converter import read_adaptor_config, read_converter_config
from headrace.media.messages.copies import MessageCopies
from headrace.media.messages.event import EventFilter, MessageEvent
from headrace.media.messages.library import library_for, library_payloads
from headrace.media.messages.payload import SCHEMAS, payloads
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import REFUSED, REFUSED_BEFORE, Spool, spool_folder
from headrace.media.sinks.base import Delivery, Sink
from headrace.media.sinks.options import SinkOptions
from headrace.media.sources.base import Source
from headrace.media.sources.reconnect import Losses
from headrace.meta import FrameMeta

_MOST_NAMED = 5
_OPTIONS = (
    "every", "boxes", "classes", "schema", "config", "spool", "adaptor", "user", "component",
    "empty", "time", "pause", "copies", "library", "interface",
)  # fmt: skip
_MAX_COMPONENT = 1 << 31


class MessageSink(Sink):
    """Sends events of the frames to a broker, at least once.

    Boxes are in pixels of the pipeline's frames, or with `boxes=source` in those of the source,
    where the pipeline scales frames.

    Args:
        name: the URL, as `mqtt://HOST/TOPIC?every=first&classes=car,person&schema=headrace`, with
            `component=1` for the objects of one model, `empty=1` for frames without objects, too,
            `time=stream` for the times of the frames, `pause=0.01` for a rest of the sender, and
            `copies=DIR` for a file of each message; `library=LIB.so` makes the payloads by the
            functions nvds_msg2p_*, of `interface=metadata` or `events`.
    """

    kind = "messages"

    def __init__(self, name: str, path: Path) -> None:
        name = name.removeprefix("messages:")
        shown = url_name(name)
        url = urlsplit(name)
        sink_options = SinkOptions(url.query, shown, _OPTIONS)
        self._filter = _filter(sink_options)
        copies = sink_options.text("copies")
        self._copies = MessageCopies(Path(copies)) if copies else None
        self._of_source = sink_options.choice("boxes", ("frame", "source"), "frame") == "source"
        self._sizes: dict[int, tuple[int, int]] = {}  # of sources, in pixels
        self._schema = sink_options.choice("schema", SCHEMAS, "headrace")
        config, adaptor = sink_options.text("config"), sink_options.text("adaptor")
        interface = sink_options.choice("interface", ("metadata", "events"), "metadata")
        self._library = library_for(
            sink_options.text("library"), self._schema, config, interface == "metadata", shown
        )
        self._config = read_converter_config(Path(config)) if config else None
        address = BrokerAddress.from_url(
            url, shown, user=sink_options.text("user") or None,
            options=read_adaptor_config(Path(adaptor)) if adaptor else {},
        )  # fmt: skip
        broker = broker_for(address)
        chosen = sink_options.text("spool")
        folder = Path(chosen) if chosen else spool_folder(shown)
        super().__init__(shown, folder)
        self._spool = Spool(folder, ours=not chosen)
        watch = Losses(self.notices, shown, "sending stopped at message", "nothing was sent")
        self._sender = Sender(
            self._spool,
            broker,
            mark=self._schema == "headrace",
            watch=watch,
            pause_s=sink_options.number("pause", 0.0, 60, "seconds"),
        )
        if self._spool.foreign:
            self._notice(
                "spool-foreign",
                "warning",
                f"{folder} holds what is none of the spool's, and stays there: "
                + ", ".join(quoted(name) for name in self._spool.foreign[:_MOST_NAMED]),
            )

    @property
    def delivery(self) -> Delivery:
        """Counts of the messages so far."""
        sender = self._sender
        return Delivery(
            self.name, sender.sent, sender.waiting, sender.refused, sender.lost, sender.failures,
            sender.away, sender.last_error,
        )  # fmt: skip

    def begin(self, source: Source) -> None:
        """Remember the size of the images of a source."""
        if source.width and source.height:
            self._sizes[source.source_id] = source.width, source.height

    def end_by(self, deadline: float) -> None:
        """Wait for the broker until then."""
        self._sender.end_by(deadline)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        event = self._filter.event(meta)
        if event is not None:
            if self._of_source and (size := self._sizes.get(meta.source_id)) is not None:
                event = event.scaled(size[0] / meta.width, size[1] / meta.height)
            for message in self._payloads(event):
                self._sender.put(message)
                if self._copies is not None:
                    self._copies.put(message)

    def _payloads(self, event: MessageEvent) -> list[bytes]:
        if self._library is None:
            return payloads(event, self._schema, self._config)
        made = library_payloads(self._library, event, self._config)
        for notice in self._library.notices:
            note_once(self.notices, notice)
        return made

    def _finish(self) -> None:
        if self._filter.every == "crossing" and not self._filter.counted:
            self._notice(
                "messages-none",
                "warning",
                "every=crossing, and no rules about places ran: no message was sent; --analytics "
                "names them",
            )
        left = self._sender.close()
        reason = f" ({self._sender.last_error})" if self._sender.last_error else ""
        if left:
            self._notice(
                "messages-waiting",
                "warning",
                f"{counted(left, 'message')} left waiting in {self.path}; "
                f"the next run with this output sends them{reason}",
            )
        if refused := self._sender.refused:
            self._notice(
                "messages-refused",
                "warning",
                f"the service refuses {refused} message(s) for their content: the "
                f"newest lie in {self._spool.folder / REFUSED} and {REFUSED_BEFORE}",
            )
        if dropped := self._spool.dropped_refused_bytes:
            self._notice(
                "messages-lost",
                "warning",
                f"{dropped} bytes of the oldest refused messages were deleted",
            )
        if lost := self._sender.lost:
            self._notice("messages-lost", "warning", f"{counted(lost, 'message')} lost{reason}")
        if damaged := self._spool.damaged_bytes:
            self._notice(
                "spool-damaged",
                "warning",
                f"{damaged} bytes in {self.path} are no whole message, and are left out: a crash "
                "or the disk cut them",
            )


def _filter(options: SinkOptions) -> EventFilter:
    every, classes = options.text("every", "first"), options.names("classes")
    more: dict[str, Any] = {
        "component": None,
        "empty": options.choice("empty", ("0", "1"), "0") == "1",
        "stream_time": options.choice("time", ("now", "stream"), "now") == "stream",
    }
    if options.text("component"):
        more["component"] = options.whole("component", 0, _MAX_COMPONENT, "a gie-unique-id")
    if every in ("first", "frame", "crossing"):
        return EventFilter(every, classes, **more)
    if not (every.isascii() and every.isdigit() and int(every[:10]) > 0):
        raise options.unknown("every", "first, frame, crossing or a number from 1")
    return EventFilter(int(every[:10]), classes, **more)
