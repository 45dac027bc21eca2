"""Base of the elements: properties from a table, pad templates, errors on the bus."""

from __future__ import annotations

import ctypes
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import WeakMethod

from headrace._core.errors import ConfigError, HeadraceError
from headrace._core.text import error_text, printable
from headrace._core.threads import as_exception
from headrace.gstreamer.cmeta import native
from headrace.gstreamer.elements.bindings import VERSION, BaseTransform, GLib, GObject, Gst
from headrace.gstreamer.elements.properties import Property, gproperties
from headrace.gstreamer.elements.surface import RAW_FORMATS
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.struct import function

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.gstreamer.pyds.meta import NvDsBatchMeta


R = TypeVar("R")
_CUSTOM_QUERY = 500 << 8  # numbers of gst-nvquery.h begin there

FORMATS = "{ " + ", ".join(RAW_FORMATS) + " }"
SIZES = (
    "width=(int)[1,2147483647], height=(int)[1,2147483647], framerate=(fraction)[0/1,2147483647/1]"
)
NVMM = f"video/x-raw(memory:NVMM), format=(string){FORMATS}, {SIZES}"
SYSTEM = f"video/x-raw, format=(string){FORMATS}, {SIZES}"


def pad(name: str, direction: str, presence: str, *caps: str) -> Gst.Pad | None:
    """Make a pad template.

    Args:
        name: of the pad, such as `sink_%u`.
        direction: `sink` or `src`.
        presence: `always`, `request` or `sometimes`.
        caps: alternatives.
    """
    return Gst.PadTemplate.new(
        name,
        Gst.PadDirection.SINK if direction == "sink" else Gst.PadDirection.SRC,
        getattr(Gst.PadPresence, presence.upper()),
        Gst.Caps.from_string("; ".join(caps)),
    )


def through(*caps: str) -> tuple[Gst.PadTemplate, Gst.PadTemplate]:
    """Make the templates of one input and one output that take the same caps."""
    return pad("sink", "sink", "always", *caps), pad("src", "src", "always", *caps)


@cache
def _floating() -> tuple[Callable[..., object], Callable[..., object]]:
    library = ctypes.CDLL("libgobject-2.0.so.0")
    ref = function(library.g_object_ref, ctypes.c_void_p, ctypes.c_void_p)
    return ref, function(library.g_object_force_floating, None, ctypes.c_void_p)


class NvElement:
    """Mixed into elements: values of properties, and errors as messages.

    Attributes:
        PROPERTIES: those of the element.
        ABOUT: its name, kind and purpose, as gst-inspect-1.0 shows them.
        values: of the properties.
        assigned: names of the properties that the application set.
        posted: texts of the notices that `post_notices` put on the bus.
    """

    PROPERTIES: Mapping[str, Property] = {}
    ABOUT: tuple[str, str, str]

    def __init_subclass__(cls) -> None:
        """Declare the properties and the description of a class before GObject registers it."""
        super().__init_subclass__()
        if "ABOUT" in vars(cls):
            cls.__gstmetadata__ = (*cls.ABOUT, "Headrace")  # type: ignore[attr-defined]
        if "PROPERTIES" in vars(cls):
            cls.__gproperties__ = gproperties(cls.PROPERTIES)  # type: ignore[attr-defined]

    def setup(self) -> None:
        """Complete the construction; each element calls it last in its own."""
        self.values = {name: row.default for name, row in self.PROPERTIES.items()}
        self.assigned: set[str] = set()
        self.posted: set[str] = set()
        if VERSION < (3, 50):  # else the first reference of C is lost
            ref, force = _floating()
            ref(hash(self))
            force(hash(self))
            # An element that C makes keeps its Python part until Python first gets it from C.
            GObject.Value(GObject.TYPE_OBJECT, self).get_object()

    @property
    def disposed(self) -> bool:
        """True where the part in Python is gone and GStreamer takes the rest apart."""
        return "values" not in vars(self)

    @classmethod
    def template(cls, name: str) -> Gst.PadTemplate:
        """Return a pad template of the class; GStreamer's own look-up fails within construction."""
        templates: tuple[Gst.PadTemplate, ...] = vars(cls)["__gsttemplates__"]
        return next(t for t in templates if t.name_template == name)

    def do_get_property(self, spec: GObject.ParamSpec) -> Any:
        """Return the value of a property."""
        return self.values[spec.name]

    def do_set_property(self, spec: GObject.ParamSpec, value: Any) -> None:
        """Set a property."""
        row = self.PROPERTIES[spec.name]
        value = int(value) if row.kind == "enum" else value
        if row.is_ignored and value not in (row.default, *row.idle, self.values[spec.name]):
            name = type(self).__name__.lower()
            text = f"warning: {name}: {spec.name}={value} has no effect yet"
            print(printable(text), file=sys.stderr)
        self.values[spec.name] = value
        self.assigned.add(spec.name)
        self.changed(spec.name)

    def changed(self, name: str) -> None:
        """React to a property that the application set."""

    def file_of(self, name: str, content: str) -> str:
        """Return the path that a property holds.

        Args:
            name: of the property.
            content: what the file holds, for the message.

        Raises:
            ConfigError: the property is not set.
        """
        if not self.values[name]:
            element: Gst.Element = self
            raise ConfigError(
                f"{name} is not set", where=element.get_name(), expected=f"the file of {content}"
            )
        return str(self.values[name])

    def batch_of(self, buffer: Gst.Buffer) -> NvDsBatchMeta:
        """Return the metadata of a batch.

        Raises:
            HeadraceError: the buffer has none.
        """
        batch = bridge().get(hash(buffer))
        if batch is None:
            element: Gst.Element = self
            raise HeadraceError(
                f"a buffer without batch metadata came to {type(self).__name__.lower()}",
                where=element.get_name(),
                fix="put nvstreammux in front of it",
            )
        return batch

    def post_error(self, error: BaseException) -> None:
        """Put an error on the bus: the pipeline ends with it.

        One before the pipeline runs stands on stderr, too: where a change of state fails, most
        applications say so and end without a look at the bus.
        """
        element: Gst.Element = self
        if element.current_state < Gst.State.PAUSED:
            name = element.get_name()
            said = str(error) if isinstance(error, HeadraceError) else error_text(error)
            print(printable(f"error: {name}: {said.removeprefix(f'{name}: ')}"), file=sys.stderr)
        if isinstance(error, HeadraceError):
            text, detail = f"{error:brief}", str(error)
        else:
            text, detail = printable(error_text(error)), "".join(traceback.format_exception(error))
        self._post(Gst.Message.new_error, text, detail)

    def post_warning(self, text: str, detail: str = "") -> None:
        """Put a warning on the bus."""
        self._post(Gst.Message.new_warning, text, detail)

    def post_notices(self, notices: Iterable[Finding]) -> None:
        """Put notices on the bus, each once: warnings, and others as messages of information."""
        for notice in notices:
            text = str(notice)
            if text not in self.posted:
                self.posted.add(text)
                warns = notice.level == "warning"
                self._post(Gst.Message.new_warning if warns else Gst.Message.new_info, text, "")

    def _post(
        self, make: Callable[[Gst.Element, GLib.Error, str], Gst.Message], text: str, detail: str
    ) -> None:
        error = GLib.Error.new_literal(Gst.StreamError.quark(), text, int(Gst.StreamError.FAILED))
        element: Gst.Element = self
        element.post_message(make(element, error, detail))


def refusal(flow: Gst.FlowReturn, src: Gst.Pad) -> HeadraceError | None:
    """Word why a pad's buffers go no further; None where they do, or where nothing is wrong.

    An element that pushes from a thread of its own posts this: no element before it would, once
    the sources have ended.

    Args:
        flow: what the push returned.
        src: the pad.
    """
    if flow >= Gst.FlowReturn.OK or flow in (Gst.FlowReturn.FLUSHING, Gst.FlowReturn.EOS):
        return None
    name, peer = src.get_parent_element().get_name(), src.get_peer()
    if flow == Gst.FlowReturn.NOT_LINKED:
        return HeadraceError(
            f"{name} has nothing linked behind it that takes its images", where=name,
            fix="link its output to a sink",
        )  # fmt: skip
    if flow == Gst.FlowReturn.NOT_NEGOTIATED and peer is not None:
        caps = src.get_current_caps()
        return HeadraceError(
            f"the elements behind {name} do not take its images",
            where=f"{name} -> {peer.get_parent_element().get_name()}",
            expected=peer.query_caps(None).to_string(),
            fix=f"{name} gives {'no caps' if caps is None else caps.to_string()}",
        )
    return HeadraceError(f"the elements behind {name} failed ({flow.value_nick})", where=name)


def weakly(method: Callable[..., R], gone: R | None = None) -> Callable[..., R | None]:
    """Wrap a method for signals, probes and functions of pads: it keeps its element not alive.

    A part of an element that holds a method of the element is a circle through C, which Python's
    collector cannot see. What it raises becomes an error on the bus: it is called in a thread of
    GStreamer's, where PyGObject would print a traceback and go on.

    Args:
        method: bound to an element.
        gone: the result once the element is gone, and after an error.
    """
    reference = WeakMethod(method)

    def call(*arguments: object) -> R | None:
        try:
            alive = reference()
            return gone if alive is None else alive(*arguments)
        except BaseException as error:
            failed: Any = reference()
            if failed is not None:
                failed.__self__.post_error(as_exception(error))
            return gone

    return call


def answered(query: Gst.Query, answers: Mapping[str, int]) -> bool:
    """Answer a query of elements in C; False for one that is none of these.

    Args:
        query: of the pad; nobody else has it.
        answers: the value for each of gst-nvquery.h, by its word there.
    """
    if query.type < _CUSTOM_QUERY:
        return False
    for name, value in answers.items():
        is_it = native.call(f"gst_nvquery_is_{name}", ctypes.c_void_p, result=ctypes.c_int)
        if is_it(hash(query)):
            put = native.call("headrace_answer_query", ctypes.c_void_p, ctypes.c_uint)
            put(hash(query), value)
            return True
    return False


class Stopwatch:
    """CPU time of the elements' code in Python, for a report.

    Attributes:
        spent: name of the element -> seconds; None measures nothing.
    """

    spent: ClassVar[dict[str, float] | None] = None


def timed(method: Callable[..., R]) -> Callable[..., R]:
    """Wrap a method of an element: its CPU time counts where a report is asked for."""

    def call(self: Gst.Element, *arguments: object) -> R:
        if Stopwatch.spent is None:
            return method(self, *arguments)
        start = time.thread_time()
        try:
            return method(self, *arguments)
        finally:
            name = self.get_name()
            spent = time.thread_time() - start
            Stopwatch.spent[name] = Stopwatch.spent.get(name, 0.0) + spent

    return call


def reported(failed: R) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Wrap a virtual function: an exception becomes a message and the value `failed`."""

    def wrap(method: Callable[..., R]) -> Callable[..., R]:
        def call(self: NvElement, *arguments: object) -> R:
            try:
                return method(self, *arguments)
            except BaseException as error:  # PyGObject would print it and go on
                if isinstance(error, HeadraceError):
                    self.post_notices(error.notices)
                self.post_error(as_exception(error))
                return failed

        return call

    return wrap


def guarded(failed: R) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Wrap a virtual function as `reported` does; its CPU time counts, too."""
    return lambda method: reported(failed)(timed(method))


class InPlace(NvElement, BaseTransform):
    """Base of the elements that read or change the metadata of batches, and no buffer's bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.set_in_place(True)
        self.set_passthrough(True)  # the images are not in the buffer
        self.setup()

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Work on a buffer; returns its flow."""
        raise NotImplementedError

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Work on a buffer of the stream."""
        return self.process(buffer)
