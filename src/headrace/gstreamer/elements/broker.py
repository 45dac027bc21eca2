"""nvmsgbroker: sends the payloads of batches to a broker."""

from __future__ import annotations

import ctypes
from pathlib import Path

from headrace._core.errors import MediaError
from headrace._core.text import counted
from headrace.config.app.messages import adaptor_protocol
from headrace.gstreamer.elements.bindings import BaseSink, Gst
from headrace.gstreamer.elements.element import NvElement, guarded, pad
from headrace.gstreamer.elements.properties import NO_EFFECT, Property
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import NvDsMetaType, items
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.converter import read_adaptor_config
from headrace.media.messages.sender import Sender, Watches
from headrace.media.messages.spool import Spool, spool_folder

_SPOOLS = 16
PROPERTIES = {
    "proto-lib": Property("str", None, "its name chooses the protocol; it is not loaded"),
    "conn-str": Property("str", None, "HOST;PORT, with ;TOPIC for Kafka and ;USER for AMQP"),
    "config": Property("str", None, "config file of the adaptor, with [message-broker]"),
    "topic": Property("str", None, "topic, stream or routing key"),
    "comp-id": Property("uint", 0, "take payloads of this componentId alone; 0: all"),
    "new-api": Property("bool", False, "accepted; the adaptors are Headrace's own"),
    "sleep-time": Property("uint", 0, NO_EFFECT),
}


def _spool(name: str) -> Spool:
    """The first spool of a name that no other element or process uses."""
    for number in range(_SPOOLS - 1):
        try:
            return Spool(spool_folder(f"{name} {number}"), ours=True)
        except MediaError:  # taken; one that cannot be used at all fails below, too
            continue
    return Spool(spool_folder(f"{name} {_SPOOLS - 1}"), ours=True)


def open_sender(
    adaptor: str, connection: str, topic: str, config: str, where: str, watch: Watches | None = None
) -> Sender:
    """Open the spool of a broker and begin to send its messages.

    Args:
        adaptor: file of the original's adaptor; its name chooses the protocol.
        connection: HOST;PORT, with ;TOPIC for Kafka and ;USER for AMQP.
        topic: topic, stream or routing key.
        config: file of the adaptor with [message-broker], if any.
        where: what an error names.
        watch: hears of the connection.

    Raises:
        MediaError: the protocol or the address is none.
    """
    scheme = adaptor_protocol(adaptor)
    options = read_adaptor_config(Path(config)) if config else {}
    address = BrokerAddress.from_connection(scheme, connection, topic, options, where)
    port = f":{address.port}" if address.port else ""
    name = f"gst {scheme}://{address.host}{port}/{address.path}"
    return Sender(_spool(name), broker_for(address), mark=False, watch=watch)


class _Watch:
    """Posts a warning when sending stops, once each time."""

    def __init__(self, element: NvElement) -> None:
        self._element = element
        self._away = False

    def lost(self, cause: str, at: int) -> None:
        """It stopped."""
        if not self._away:
            self._away = True
            self._element.post_warning(f"sending stopped at message {at}: {cause}; tried again")

    def tried(self, cause: str) -> None:
        """It is stopped still."""

    def back(self) -> None:
        """It goes on."""
        self._away = False

    def stopped(self) -> None:
        """The end came first; `do_stop` counts waiting messages."""


class NvMsgBroker(NvElement, BaseSink):
    """Spools payloads and sends them; a broker that is away stalls nothing."""

    __gtype_name__ = "GstNvMsgBroker"
    ABOUT = ("Message Broker", "Sink/Metadata", "Sends payloads to a broker")
    __gsttemplates__ = (pad("sink", "sink", "always", "ANY"),)
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._sender: Sender | None = None
        self.setup()

    @guarded(False)
    def do_start(self) -> bool:
        """Connect to the broker."""
        if not self.values["proto-lib"]:
            raise MediaError("proto-lib is not set", expected="such as libnvds_mqtt_proto.so")
        self._sender = open_sender(
            self.values["proto-lib"], self.values["conn-str"] or "", self.values["topic"] or "",
            self.values["config"] or "", self.get_name(), _Watch(self),
        )  # fmt: skip
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        """Send the waiting messages; a warning counts those that stay."""
        sender, self._sender = self._sender, None
        if sender is not None:
            left = sender.close()
            if left or sender.refused or sender.lost:
                self.post_warning(
                    f"{counted(left, 'message')} left for the next run, {sender.refused} are "
                    f"refused, {sender.lost} lost: {sender.last_error or 'no error'}"
                )
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_render(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Hand the payloads of a buffer to the sender."""
        batch = bridge().get(hash(buffer))
        if batch is None or self._sender is None:
            return Gst.FlowReturn.OK
        with batch.meta_mutex:
            payloads = [
                user.user_meta_data
                for user in items(batch, "batch_user_meta_list")
                if user.base_meta.meta_type == NvDsMetaType.NVDS_PAYLOAD_META
            ]
        for payload in payloads:
            if self.values["comp-id"] in (0, payload.componentId):
                self._sender.put(ctypes.string_at(payload.payload, payload.payloadSize))
        return Gst.FlowReturn.OK
