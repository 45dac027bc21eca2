"""Recordings, brokers and images of objects, as C applications call them."""

from __future__ import annotations

import ctypes
import sys
import traceback
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache, wraps
from itertools import count
from pathlib import Path
from typing import Any

from headrace._core.errors import HeadraceError
from headrace._core.files import write_where_named
from headrace._core.text import printable
from headrace.config.app.messages import adaptor_protocol
from headrace.gstreamer.cmeta import native
from headrace.gstreamer.cmeta.images import pixels_of
from headrace.gstreamer.cmeta.layout import structure
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.broker import open_sender
from headrace.gstreamer.elements.element import weakly
from headrace.gstreamer.elements.recorder import PacketRecorder, RecordingInfo
from headrace.gstreamer.pyds.meta import NvDsMetaType
from headrace.gstreamer.pyds.object_encoder import NvDsObjEncUsrArgs, jpeg
from headrace.media.messages.sender import Sender

_OK, _INVALID, _INVALID_OPERATION, _ERROR = range(4)
_NOT_SUPPORTED = 3
_CONTAINERS = ("mp4", "mkv")
_DEFAULT_S, _CACHE_S = 30, 30


def _reported(failed: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Wrap a function for C: an exception goes to standard error."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except HeadraceError as error:
                print(printable(f"error: {name}: {error}"), file=sys.stderr)
            except Exception:  # C cannot take it
                traceback.print_exc()
            return failed

        return call

    return wrap


def _text(address: int | None) -> str:
    return ctypes.string_at(address).decode(errors="replace") if address else ""


class Recordings:
    """Recordings of one context: a bin that C code links behind the parser of a source."""

    def __init__(self, params: Any) -> None:
        self._params, self._session = params, -1
        self._recorder = PacketRecorder(
            Path(_text(params.dirpath) or "."),
            _text(params.fileNamePrefix) or "Smart_Record",
            _CONTAINERS[params.containerType],
            params.cacheSize or _CACHE_S,
            params.defaultDuration or _DEFAULT_S,
            self._failed,
        )
        self.bin = Gst.parse_bin_from_description(
            "queue name=packets ! fakesink sync=false async=false", True
        )
        pad = self.bin.get_by_name("packets").get_static_pad("src")
        pad.add_probe(Gst.PadProbeType.BUFFER, weakly(self._packet, Gst.PadProbeReturn.OK))

    def post_error(self, error: BaseException) -> None:
        """Tell an error of a packet."""
        self._failed(error)

    def _failed(self, error: BaseException) -> None:
        print(printable(f"error: NvDsSR: {error}"), file=sys.stderr)

    def _packet(self, pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        caps = pad.get_current_caps()
        if caps is not None:
            self._recorder.packet(info.get_buffer(), caps)
        return Gst.PadProbeReturn.OK

    def start(self, context: int, start_s: int, duration_s: int, data: int | None) -> int:
        """Begin a recording; returns its number, or -1 while there is one."""
        if self._session >= 0:
            return -1
        self._session = self._recorder.start(
            start_s, duration_s, lambda info: self._done(context, info, data)
        )
        return self._session

    def stop(self, session: int) -> bool:
        """End a recording; False if there is none of that number."""
        return self._recorder.stop(session)

    def close(self) -> None:
        """End all recordings."""
        self._recorder.close()

    def _done(self, context: int, info: RecordingInfo, data: int | None) -> None:
        self._session = -1
        if not self._params.callback:
            return
        c = structure("NvDsSRRecordingInfo")()
        name = ctypes.create_string_buffer(info.file_name.encode())
        folder = ctypes.create_string_buffer(info.file_directory.encode())
        c.ctx, c.sessionId, c.duration = context, info.session_id, info.duration
        c.filename, c.dirpath = ctypes.addressof(name), ctypes.addressof(folder)
        c.containerType = _CONTAINERS.index(info.container)
        c.width, c.height, c.containsVideo = info.width, info.height, 1
        CFUNCTYPE(c_void_p, c_void_p, c_void_p)(self._params.callback)(ctypes.addressof(c), data)


_recordings: dict[int, Recordings] = {}


@_reported(_ERROR, "NvDsSRCreate")
def _create(context: int, params: int) -> int:
    kind = structure("NvDsSRInitParams")
    wishes = kind.from_buffer_copy(ctypes.string_at(params, ctypes.sizeof(kind)))
    if wishes.containerType not in range(len(_CONTAINERS)):
        return _INVALID
    made = Recordings(wishes)
    layout = structure("NvDsSRContext")
    address = native.allocate(ctypes.sizeof(layout))
    c = layout.from_address(address)
    c.recordbin, c.initParams = hash(made.bin), wishes
    _recordings[address] = made
    c_void_p.from_address(context).value = address
    return _OK


@_reported(_ERROR, "NvDsSRStart")
def _start(context: int, session: int, start_s: int, duration_s: int, data: int | None) -> int:
    known = _recordings.get(context)
    if known is None or not session:
        return _INVALID
    number = known.start(context, start_s, duration_s, data)
    if number < 0:
        return _INVALID_OPERATION
    c_uint.from_address(session).value = number
    structure("NvDsSRContext").from_address(context).recordOn = 1
    return _OK


@_reported(_ERROR, "NvDsSRStop")
def _stop(context: int, session: int) -> int:
    known = _recordings.get(context)
    if known is None:
        return _INVALID
    structure("NvDsSRContext").from_address(context).recordOn = 0
    return _OK if known.stop(session) else _INVALID_OPERATION


@_reported(_ERROR, "NvDsSRDestroy")
def _destroy(context: int) -> int:
    known = _recordings.pop(context, None)
    if known is None:
        return _INVALID
    known.close()
    native.release(context)
    return _OK


_clients: dict[int, tuple[Callable[[str], Sender], dict[str, Sender]]] = {}
_client_numbers = count(1)


@_reported(None, "nv_msgbroker_connect")
def _connect(
    connection: bytes | None, adaptor: bytes | None, connected: int | None, config: bytes | None
) -> int:
    texts = [(one or b"").decode(errors="replace") for one in (adaptor, connection, config)]

    def opened(topic: str) -> Sender:
        return open_sender(texts[0], texts[1], topic, texts[2], "nv_msgbroker_connect")

    adaptor_protocol(texts[0])  # refuses an unknown library before the first message
    number = next(_client_numbers)
    _clients[number] = opened, {}
    return number


@_reported(1, "nv_msgbroker_send_async")
def _send(
    client: int, topic: bytes | None, payload: int, size: int, sent: int | None, data: int | None
) -> int:
    known = _clients.get(client or 0)
    if known is None or not payload:
        return 1
    name = (topic or b"").decode(errors="replace")
    if name not in known[1]:
        known[1][name] = known[0](name)
    known[1][name].put(ctypes.string_at(payload, size))
    if sent:  # it lies in the spool: what is away later is sent again
        CFUNCTYPE(None, c_void_p, c_int)(sent)(data, 0)
    return 0


@_reported(1, "nv_msgbroker_subscribe")
def _subscribe(client: int, topics: int, number: int, received: int, data: int | None) -> int:
    print(
        "warning: nv_msgbroker_subscribe: messages from a broker are not received here; "
        "the application gets none",
        file=sys.stderr,
    )
    return _NOT_SUPPORTED


@_reported(1, "nv_msgbroker_disconnect")
def _disconnect(client: int) -> int:
    known = _clients.pop(client or 0, None)
    if known is None:
        return 1
    for sender in known[1].values():
        sender.close()
    return 0


_Object, _Frame, _User = map(structure, ("NvDsObjectMeta", "NvDsFrameMeta", "NvDsUserMeta"))
_Out = structure("NvDsObjEncOutParams")


@_reported(False, "nvds_obj_enc_process")
def _encode(args: int, surface: int, obj: int | None, frame: int) -> bool:
    c_args = structure("NvDsObjEncUsrArgs").from_address(args)
    c_frame = _Frame.from_address(frame)
    whole = c_args.isFrame or not obj
    box = None
    if not whole:
        rect = _Object.from_address(obj or 0).rect_params
        right, bottom = rect.left + rect.width, rect.top + rect.height
        box = int(rect.left), int(rect.top), int(right), int(bottom)
    pixels = pixels_of(surface, c_frame.batch_id, box)
    if not pixels.size:
        return False
    wishes = NvDsObjEncUsrArgs()
    wishes.scaleImg, wishes.quality = c_args.scaleImg, c_args.quality or wishes.quality
    wishes.scaledWidth, wishes.scaledHeight = c_args.scaledWidth, c_args.scaledHeight
    data = jpeg(pixels, wishes)
    if c_args.saveImg:
        name = c_args.fileNameImg.decode(errors="replace")
        name = name or f"{c_frame.source_id}_{c_frame.frame_num}_{c_args.objNum}.jpg"
        write_where_named(Path(name), data, durable=False)
    if c_args.attachUsrMeta:
        _attach(data, frame, None if whole else obj)
    return True


def _attach(data: bytes, frame: int, obj: int | None) -> None:
    batch = _Frame.from_address(frame).base_meta.batch_meta
    acquire = native.call("nvds_acquire_user_meta_from_pool", c_void_p, result=c_void_p)
    user = _User.from_address(acquire(batch))
    memory = native.allocate(ctypes.sizeof(_Out))
    out = _Out.from_address(memory)
    out.outLen, out.outBuffer = len(data), native.allocate(len(data))
    ctypes.memmove(out.outBuffer, data, len(data))
    user.base_meta.meta_type = NvDsMetaType.NVDS_CROP_IMAGE_META
    user.user_meta_data = memory
    user.base_meta.copy_func, user.base_meta.release_func = (
        ctypes.cast(one, c_void_p).value for one in _IMAGE_CALLS
    )
    name, owner = ("obj", obj) if obj else ("frame", frame)
    add = native.call(f"nvds_add_user_meta_to_{name}", c_void_p, c_void_p)
    add(owner, ctypes.addressof(user))


def _copy_image(user: int, _: object) -> int:
    old = _Out.from_address(_User.from_address(user).user_meta_data)
    memory = native.allocate(ctypes.sizeof(_Out))
    out = _Out.from_address(memory)
    out.outLen, out.outBuffer = old.outLen, native.allocate(old.outLen)
    ctypes.memmove(out.outBuffer, old.outBuffer, old.outLen)
    return memory


def _release_image(user: int, _: object) -> None:
    address = _User.from_address(user).user_meta_data
    if address:
        native.release(_Out.from_address(address).outBuffer)
        native.release(address)
        _User.from_address(user).user_meta_data = None


_IMAGE_CALLS = native.CopyFunction(_copy_image), native.ReleaseFunction(_release_image)
_CALLS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "NvDsSRCreate": (CFUNCTYPE(c_int, c_void_p, c_void_p), _create),
    "NvDsSRStart": (CFUNCTYPE(c_int, c_void_p, c_void_p, c_uint, c_uint, c_void_p), _start),
    "NvDsSRStop": (CFUNCTYPE(c_int, c_void_p, c_uint), _stop),
    "NvDsSRDestroy": (CFUNCTYPE(c_int, c_void_p), _destroy),
    "nv_msgbroker_connect": (
        CFUNCTYPE(c_void_p, c_char_p, c_char_p, c_void_p, c_char_p), _connect
    ),
    "nv_msgbroker_send_async": (
        CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, c_void_p), _send
    ),
    "nv_msgbroker_subscribe": (
        CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_void_p, c_void_p), _subscribe
    ),
    "nv_msgbroker_disconnect": (CFUNCTYPE(c_int, c_void_p), _disconnect),
    "nvds_obj_enc_process": (
        CFUNCTYPE(c_bool, c_void_p, c_void_p, c_void_p, c_void_p), _encode
    ),
}  # fmt: skip


@cache
def serve_calls() -> list[Any]:
    """Let C code call these functions, from now on.

    Returns:
        The callbacks, which the cache keeps.
    """
    callbacks = []
    for name, (kind, function) in _CALLS.items():
        callbacks.append(kind(function))
        address = ctypes.cast(callbacks[-1], c_void_p)
        native.call("headrace_serve", c_char_p, c_void_p)(name.encode(), address)
    return callbacks
