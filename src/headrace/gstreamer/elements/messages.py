"""nvmsgconv: makes payloads of event messages, or of the frames and objects themselves."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from headrace._core.files import write_where_named
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import InPlace, guarded, through
from headrace.gstreamer.elements.properties import NO_EFFECT, Choices, Property
from headrace.gstreamer.elements.tree import frames_of, image_of
from headrace.gstreamer.pyds.analytics import NvDsAnalyticsFrameMeta
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.functions import (
    nvds_acquire_user_meta_from_pool,
    nvds_add_user_meta_to_batch,
)
from headrace.gstreamer.pyds.messages import (
    NvDsEventMsgMeta,
    NvDsFaceObject,
    NvDsPayload,
    NvDsPersonObject,
    NvDsVehicleObject,
)
from headrace.gstreamer.pyds.meta import (
    NvDsBatchMeta,
    NvDsFrameMeta,
    NvDsMetaType,
    NvDsObjectMeta,
    items,
)
from headrace.gstreamer.pyds.struct import Text, text_at
from headrace.media.messages.converter import ConverterConfig, read_converter_config
from headrace.media.messages.event import EventObject, MessageEvent
from headrace.media.messages.event_record import EventRecord, record_events, record_payloads
from headrace.media.messages.library import PayloadLibrary, library_for, library_payloads
from headrace.media.messages.payload import payloads
from headrace.meta import UNTRACKED_OBJECT_ID
from headrace.meta.analytics import FrameAnalytics

_SCHEMAS = ("deepstream", "minimal", "protobuf")
_CUSTOM = 257
_ATTRIBUTES = (NvDsVehicleObject, NvDsPersonObject, NvDsFaceObject)
_PAYLOADS = Choices(
    "GstNvMsgConvPayloadType",
    (
        (0, "PAYLOAD_DEEPSTREAM"), (1, "PAYLOAD_DEEPSTREAM_MINIMAL"),
        (2, "PAYLOAD_DEEPSTREAM_PROTOBUF"), (256, "PAYLOAD_RESERVED"), (257, "PAYLOAD_CUSTOM"),
    ),
)  # fmt: skip
PROPERTIES = {
    "config": Property("str", None, "names and places of sensors, INI or YAML"),
    "msg2p-lib": Property("str", None, "your library of the functions nvds_msg2p_*"),
    "payload-type": Property(
        "enum",
        0,
        "0: a message for each object; 1: one for a frame; 2: that in Protobuf",
        choices=_PAYLOADS,
    ),
    "comp-id": Property("uint", 0, "take events of this componentId alone; 0: all"),
    "debug-payload-dir": Property("str", None, "folder of copies of the payloads"),
    "multiple-payloads": Property("bool", False, NO_EFFECT),
    "msg2p-newapi": Property("bool", False, "of frames and objects, without event messages"),
    "frame-interval": Property("uint", 30, "with msg2p-newapi: every Nth frame", 1),
    "dummy-payload": Property("bool", False, "with msg2p-newapi: frames without objects, too"),
    "embedding-filter": Property("str", None, NO_EFFECT),
}


class NvMsgConv(InPlace):
    """Attaches payloads to batches."""

    __gtype_name__ = "GstNvMsgConv"
    ABOUT = ("Message Converter", "Filter/Metadata", "Makes payloads of events")
    __gsttemplates__ = through("ANY")
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._config: ConverterConfig = {}
        self._schema = _SCHEMAS[0]
        self._library: PayloadLibrary | None = None
        self._made = 0

    @guarded(False)
    def do_start(self) -> bool:
        """Read the config."""
        number = self.values["payload-type"]
        path, config = self.values["msg2p-lib"], self.values["config"] or ""
        if path or number == _CUSTOM:
            schema = "custom" if number == _CUSTOM else _SCHEMAS[min(number, len(_SCHEMAS) - 1)]
            of_metadata = self.values["msg2p-newapi"]
            self._library = library_for(path or "", schema, config, of_metadata, self.get_name())
            self._config = read_converter_config(Path(config)) if config else {}
            return True
        if number >= len(_SCHEMAS):
            raise ValueError(f"payload-type={number} is not 0 (full), 1 (minimal) or 2 (Protobuf)")
        self._schema = _SCHEMAS[number]
        path = self.values["config"]
        self._config = read_converter_config(Path(path)) if path else {}
        return True

    def do_stop(self) -> bool:
        """Let the library go."""
        if self._library is not None:
            self._library.close()
            self._library = None
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Attach the payloads of a batch."""
        batch = bridge().get(hash(buffer))
        if batch is None:
            return Gst.FlowReturn.OK
        messages: list[bytes] = []
        empty = self.values["dummy-payload"]
        with batch.meta_mutex:
            for frame in frames_of(batch):
                if not self.values["msg2p-newapi"]:
                    records = [
                        event_record(event)
                        for event in _events(frame)
                        if self.values["comp-id"] in (0, event.componentId)
                    ]
                    counts = frame_counts(frame)
                    if self._library is not None:
                        for event in record_events(records, frame.source_id):
                            messages += library_payloads(self._library, event, self._config)
                        continue
                    messages += record_payloads(records, self._schema, self._config, counts)
                elif not frame.frame_num % self.values["frame-interval"]:
                    source = image_of(batch, frame).source
                    event = frame_event(frame, source)
                    if self._library is not None:
                        messages += library_payloads(self._library, event, self._config)
                    elif event.objects or self._schema != "deepstream" or empty:
                        messages += payloads(event, self._schema, self._config)
            for message in messages:
                self._attach(batch, message)
        if messages and self.values["debug-payload-dir"]:
            self._made += 1
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
            name = f"{stamp}_{self._made:06d}.txt"
            path = Path(self.values["debug-payload-dir"]) / name
            write_where_named(path, b"\n".join(messages) + b"\n", durable=False)
        return Gst.FlowReturn.OK

    def _attach(self, batch: NvDsBatchMeta, message: bytes) -> None:
        user, nvds_payload = nvds_acquire_user_meta_from_pool(batch), NvDsPayload()
        nvds_payload.payload = message
        nvds_payload.payloadSize, nvds_payload.componentId = len(message), self.values["comp-id"]
        user.base_meta.meta_type = NvDsMetaType.NVDS_PAYLOAD_META
        user.user_meta_data = nvds_payload
        nvds_add_user_meta_to_batch(batch, user)


def _events(frame: NvDsFrameMeta) -> Sequence[NvDsEventMsgMeta]:
    return [
        user.user_meta_data
        for user in items(frame, "frame_user_meta_list")
        if user.base_meta.meta_type == NvDsMetaType.NVDS_EVENT_MSG_META
        and isinstance(user.user_meta_data, NvDsEventMsgMeta)
    ]


def event_record(event: NvDsEventMsgMeta) -> EventRecord:
    """The event that an application attached.

    Raises:
        ValueError: a number of it is none of JSON.
    """
    box, signature = event.bbox, event.objSignature
    vector = signature.signature if signature.size else ()
    record = EventRecord(
        int(event.type), int(event.objType), (box.left, box.top, box.width, box.height),
        int(event.frameId), int(event.trackingId) % (1 << 64), float(event.confidence),
        _text(event.ts), int(event.sensorId), int(event.placeId), int(event.moduleId),
        _attributes(event), _text(event.objectId), _text(event.sensorStr), _text(event.videoPath),
        (event.location.lat, event.location.lon, event.location.alt),
        (event.coordinate.x, event.coordinate.y, event.coordinate.z),
        tuple(float(v) for v in vector[: signature.size]),
    )  # fmt: skip
    plain = (
        *record.box,
        record.confidence,
        *record.location,
        *record.coordinate,
        *record.signature,
    )
    if not all(map(math.isfinite, plain)):
        raise ValueError(f"an event of frame {record.frame} has a number that is not finite")
    return record


def _text(address: int) -> str:
    return text_at(address) or ""


def _attributes(event: NvDsEventMsgMeta) -> dict[str, str | int] | None:
    extension = event.extMsg
    if not event.extMsgSize or not isinstance(extension, _ATTRIBUTES):
        return None
    named: dict[str, str | int] = {
        name: _text(getattr(extension, name))
        for name, kind in vars(type(extension)).items()
        if isinstance(kind, Text)
    }
    return named | ({} if isinstance(extension, NvDsVehicleObject) else {"age": int(extension.age)})


def frame_event(frame: NvDsFrameMeta, source: str) -> MessageEvent:
    """The event of all objects of a frame."""
    objects = tuple(_object(obj) for obj in items(frame, "obj_meta_list") if _is_finite(obj))
    return MessageEvent(
        "interval",
        source,
        int(frame.source_id),
        int(frame.frame_num),
        int(frame.buf_pts),
        objects,
        frame_counts(frame),
    )


def frame_counts(frame: NvDsFrameMeta) -> dict[str, object]:
    """Counts that `nvdsanalytics` attached to a frame, as JSON has them; empty without any."""
    for user in items(frame, "frame_user_meta_list"):
        if isinstance(counts := user.user_meta_data, NvDsAnalyticsFrameMeta):
            return FrameAnalytics(
                counts.objInROIcnt,
                counts.ocStatus,
                counts.objLCCurrCnt,
                counts.objLCCumCnt,
                counts.objCnt,
            ).to_dict()
    return {}


def _is_finite(obj: NvDsObjectMeta) -> bool:
    rect = obj.rect_params
    return all(map(math.isfinite, (rect.left, rect.top, rect.width, rect.height, obj.confidence)))


def _object(obj: NvDsObjectMeta) -> EventObject:
    rect, track = obj.rect_params, int(obj.object_id)
    attributes = tuple(
        (result.classifier_type, info.result_label)
        for result in items(obj, "classifier_meta_list")
        for info in items(result, "label_info_list")
    )
    return EventObject(
        int(obj.class_id), obj.obj_label, float(obj.confidence),
        (float(rect.left), float(rect.top), float(rect.width), float(rect.height)),
        None if track in (-1, UNTRACKED_OBJECT_ID) else track, None, attributes,
    )  # fmt: skip
