"""nvdsvideotemplate: images of a batch changed by a C++ or Python library of the user's."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_void_p
from enum import IntEnum
from pathlib import Path
from typing import Any

from headrace._core.errors import ConfigError, CustomLibraryError
from headrace.gstreamer.cmeta import native
from headrace.gstreamer.cmeta.images import is_of_elements, sent_images
from headrace.gstreamer.elements.bindings import BaseTransform, Gst, structure_of
from headrace.gstreamer.elements.convert import FREE_FIELDS, relabelled
from headrace.gstreamer.elements.element import (
    FORMATS,
    NVMM,
    SYSTEM,
    NvElement,
    guarded,
    reported,
    through,
    weakly,
)
from headrace.gstreamer.elements.properties import COMMON, Property, unheeded
from headrace.gstreamer.elements.surface import Surface, of_planes
from headrace.gstreamer.elements.template_function import TemplateFunction
from headrace.gstreamer.elements.tree import with_surfaces
from headrace.gstreamer.pyds.bridge import bridge

_DROPPED = Gst.FlowReturn.CUSTOM_SUCCESS if Gst is not None else None
_FORMATS = Gst.Caps.from_string(f"video/x-raw, format=(string){FORMATS}")


class Result(IntEnum):
    """A library's answer to a buffer, in the order of its interface."""

    OK = 0
    DROP = 1
    ASYNC = 2
    ERROR = 3


def _call(name: str, *arguments: Any, result: type | None = c_int) -> Any:
    kinds = [c_char_p if isinstance(one, bytes) else c_int if isinstance(one, bool) else c_void_p
             for one in arguments]  # fmt: skip
    return native.call(f"headrace_template_{name}", *kinds, result=result)(*arguments)


class NvDsVideoTemplate(NvElement, BaseTransform):
    """Hands each buffer to the library, which works on its images and metadata."""

    __gtype_name__ = "GstNvDsVideoTemplate"
    ABOUT = ("NvDsVideoTemplate", "Filter/Video", "Changes images by a library of yours")
    __gsttemplates__ = through(NVMM, SYSTEM)
    PROPERTIES = {
        "gpu-id": COMMON["gpu-id"],
        "customlib-name": Property("str", None, "exports CreateCustomAlgoCtx, or a Python file"),
        "customlib-props": Property("str", None, "key:value for the library; set it once for each"),
        "dummy-meta-insert": Property("bool", False, "handed to the library"),
        "fill-dummy-batch-meta": Property("bool", False, "handed to the library"),
        **unheeded("str", None, "config-file", "props-values"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._algorithm: int | None = None
        self._function: TemplateFunction | None = None  # in place of an algorithm
        self._wishes: list[str] = []
        self.srcpad.add_probe(Gst.PadProbeType.BUFFER, weakly(self._leaving, Gst.PadProbeReturn.OK))
        self.setup()

    def changed(self, name: str) -> None:
        """Keep each `key:value`, as the property is set once for each; a running library gets it.

        Raises:
            ConfigError: it has no colon, or the library refuses it.
        """
        if name == "customlib-props":
            text = self.values[name] or ""
            if ":" not in text:
                raise ConfigError(
                    f"customlib-props is {text!r}", where=self.get_name(), expected="key:value"
                )
            self._wishes.append(text)
            if self._algorithm is not None or self._function is not None:
                self._set(text)

    def _set(self, text: str) -> None:
        key, _, value = text.partition(":")
        if self._function is not None:
            done = int(self._function.set(key.strip(), value))
        else:
            done = _call("property", self._algorithm, key.strip().encode(), value.encode())
        if done != 1:
            raise self._failed(f"the library refuses {key.strip()}", done)

    def _failed(self, text: str, done: int) -> CustomLibraryError:
        why = ""
        if done < 0:
            why = f": {_call('error', result=c_char_p).decode(errors='replace')}"
        return CustomLibraryError(f"{text}{why}", where=str(self.values["customlib-name"]))

    @reported(False)
    def do_start(self) -> bool:
        """Load the library."""
        path = Path(self.file_of("customlib-name", "your library, compiled for this machine"))
        if path.suffix == ".py":
            self._function = TemplateFunction(path)
        else:
            self._algorithm = _call("open", str(path).encode(), hash(self), result=c_void_p)
        if self._algorithm is None and self._function is None:
            raise self._failed("nvdsvideotemplate cannot use the library", -1)
        for text in self._wishes:
            self._set(text)
        return True

    @reported(False)
    def do_stop(self) -> bool:
        """Let the library go."""
        if self._algorithm is not None:
            _call("close", self._algorithm, result=None)
            self._algorithm = None
        self._function = None
        return True

    def do_transform_caps(
        self, direction: Gst.PadDirection, caps: Gst.Caps, filter_caps: Gst.Caps | None
    ) -> Gst.Caps:
        """Allow any size and format, which a C++ library chooses; a function changes neither."""
        if self._function is not None:
            return caps if filter_caps is None else filter_caps.intersect(caps)
        formats = {"format": structure_of(_FORMATS).get_value("format")}
        new_caps = caps.copy()
        new_caps.append(relabelled(caps, None, FREE_FIELDS, formats))
        if filter_caps is None:
            return new_caps
        return filter_caps.intersect_full(new_caps, Gst.CapsIntersectMode.FIRST)

    def do_fixate_caps(
        self, direction: Gst.PadDirection, caps: Gst.Caps, other: Gst.Caps
    ) -> Gst.Caps:
        """Ask the library for its output."""
        if self._function is not None:
            return other.fixate()
        copy = other.copy()
        _reference(hash(copy))
        answer = _call(
            "caps", self._algorithm, int(direction), hash(caps), hash(copy), result=c_void_p
        )
        if answer is None:
            return other.fixate()
        return _caps_at(answer).fixate()

    @reported(False)
    def do_set_caps(self, incaps: Gst.Caps, outcaps: Gst.Caps) -> bool:
        """Give the library the caps of both sides."""
        if self._function is not None:
            return True
        done = _call(
            "begin", self._algorithm, hash(self), hash(incaps), hash(outcaps),
            bool(self.values["dummy-meta-insert"]), bool(self.values["fill-dummy-batch-meta"]),
        )  # fmt: skip
        if done != 1:
            raise self._failed("the library refuses its first call, SetInitParams", done)
        return True

    @reported(False)
    def do_sink_event(self, event: Gst.Event) -> bool:
        """Let the library see an event first: it ends its work before the end of stream passes."""
        if self._algorithm is not None:
            done = _call("event", self._algorithm, hash(event))
            if done < 0:
                raise self._failed("HandleEvent failed", done)
            if not done:
                return False
        return bool(BaseTransform.do_sink_event(self, event))

    @guarded((Gst.FlowReturn.ERROR, None))
    def do_prepare_output_buffer(
        self, buffer: Gst.Buffer
    ) -> tuple[Gst.FlowReturn, Gst.Buffer | None]:
        """Hand a buffer to the library."""
        done = self._processed(buffer)
        if done == Result.OK:  # pushed here: as an output, the buffer would keep a reference
            flow = self.srcpad.push(buffer)
            return (_DROPPED if flow == Gst.FlowReturn.OK else flow), None
        if done in (Result.DROP, Result.ASYNC):
            return _DROPPED, None
        raise self._failed("ProcessBuffer failed", done)

    def _processed(self, buffer: Gst.Buffer) -> int:
        if self._function is not None:
            return Result.OK if self._function.process(self.batch_of(buffer)) else Result.DROP
        return int(_call("process", self._algorithm, hash(buffer)))

    def do_transform(self, buffer: Gst.Buffer, outbuf: Gst.Buffer) -> Gst.FlowReturn:
        """Do nothing: the library did."""
        return Gst.FlowReturn.OK

    def _leaving(self, pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        """Take over images that the library made itself, beside the metadata that it kept."""
        buffer = info.get_buffer()
        batch = bridge().get(hash(buffer))
        if batch is not None and not is_of_elements(hash(buffer)):
            caps = structure_of(pad.get_current_caps())
            size = caps.get_int("width")[1], caps.get_int("height")[1]
            format = str(caps.get_string("format"))
            surfaces: list[Surface] = [
                of_planes(planes, format, *size)
                for planes in sent_images(hash(buffer), format, *size)
            ]
            if surfaces:
                bridge().replace(hash(buffer), with_surfaces(batch, surfaces))
        return Gst.PadProbeReturn.OK


def _reference(address: int) -> None:
    """Take a reference on an object of GStreamer's that C code will give back."""
    call = ctypes.CDLL("libgstreamer-1.0.so.0").gst_mini_object_ref
    call.restype, call.argtypes = c_void_p, (c_void_p,)
    call(address)


def _caps_at(address: int) -> Gst.Caps:
    """Read caps of C, and give their reference back."""
    library = ctypes.CDLL("libgstreamer-1.0.so.0")
    library.gst_caps_to_string.restype = c_void_p
    library.gst_caps_to_string.argtypes = library.gst_mini_object_unref.argtypes = (c_void_p,)
    text = library.gst_caps_to_string(address)
    caps = Gst.Caps.from_string(ctypes.string_at(text).decode())
    native.release(text)
    library.gst_mini_object_unref(address)
    return caps
