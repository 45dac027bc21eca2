"""Messages as an output: events of the frames go to a broker."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from headrace._core.urls import url_name
from headrace.media.frame import Frame
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.converter import read_adaptor_config, read_converter_config
from headrace.media.messages.event import EventFilter
from headrace.media.messages.payload import SCHEMAS, payloads
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import REFUSED, REFUSED_BEFORE, Spool, spool_folder
from headrace.media.sinks.base import Sink
from headrace.media.sinks.options import SinkOptions
from headrace.meta import FrameMeta

_OPTIONS = ("every", "classes", "schema", "config", "spool", "adaptor", "user")


class MessageSink(Sink):
    """Sends events of the frames to a broker, at least once.

    Args:
        name: the URL, as `mqtt://HOST/TOPIC?every=first&classes=car,person&schema=headrace`.
    """

    kind = "messages"

    def __init__(self, name: str, path: Path) -> None:
        name = name.removeprefix("messages:")
        shown = url_name(name)
        url = urlsplit(name)
        sink_options = SinkOptions(url.query, shown, _OPTIONS)
        self._filter = _filter(sink_options)
        self._schema = sink_options.choice("schema", SCHEMAS, "headrace")
        config, adaptor = sink_options.text("config"), sink_options.text("adaptor")
        self._config = read_converter_config(Path(config)) if config else None
        address = BrokerAddress.from_url(
            url, shown, user=sink_options.text("user") or None,
            options=read_adaptor_config(Path(adaptor)) if adaptor else {},
        )  # fmt: skip
        broker = broker_for(address)
        folder = (
            Path(sink_options.text("spool")) if sink_options.text("spool") else spool_folder(shown)
        )
        super().__init__(shown, folder)
        self._spool = Spool(folder)
        self._sender = Sender(self._spool, broker, mark=self._schema == "headrace")

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        event = self._filter.event(meta)
        if event is not None:
            for message in payloads(event, self._schema, self._config):
                self._sender.put(message)

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
                f"{left} bytes of messages wait in {self.path}; "
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
        if dropped := self._spool.dropped_bytes:
            self._notice(
                "messages-lost",
                "warning",
                f"{dropped} bytes of the oldest messages were lost{reason}",
            )


def _filter(options: SinkOptions) -> EventFilter:
    every, classes = options.text("every", "first"), options.names("classes")
    if every in ("first", "frame", "crossing"):
        return EventFilter(every, classes)
    if not (every.isascii() and every.isdigit() and int(every[:10]) > 0):
        raise options.unknown("every", "first, frame, crossing or a number from 1")
    return EventFilter(int(every[:10]), classes)
