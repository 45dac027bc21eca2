"""A pipeline of elements, built by name: `Pipeline`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import Any

from headrace._core.errors import ConfigError, HeadraceError, MediaError
from headrace._core.text import printable
from headrace._core.threads import as_exception, start_thread
from headrace.gstreamer.elements.bindings import Gst, structure_of
from headrace.gstreamer.elements.recorder import RecordingInfo
from headrace.gstreamer.elements.register import register
from headrace.gstreamer.elements.sources import NvMultiUriSrcBin, NvUriSrcBin
from headrace.gstreamer.servicemaker import nodes
from headrace.gstreamer.servicemaker.buffers import Feeder, Receiver
from headrace.gstreamer.servicemaker.nodes import Node
from headrace.gstreamer.servicemaker.probes import CommonFactory, Probe

_POLL_NS = 100_000_000
_WAIT_S = 0.2


class PipelineState(IntEnum):
    """States of a pipeline and its elements."""

    INVALID = 0
    EMPTY = 1
    NULL = 1
    READY = 2
    PAUSED = 3
    PLAYING = 4


@dataclass(frozen=True)
class StateTransitionMessage:
    """An element, or the pipeline, reached another state.

    Attributes:
        origin: its name.
        old_state, new_state: before and after.
    """

    origin: str
    old_state: PipelineState
    new_state: PipelineState


@dataclass(frozen=True)
class DynamicSourceMessage:
    """A source came or went.

    Attributes:
        source_id: its number.
        source_added: True if it came.
        sensor_id, sensor_name, uri: as they were given.
    """

    source_id: int
    source_added: bool
    sensor_id: str = ""
    sensor_name: str = ""
    uri: str = ""


class EOSMessage:
    """The stream ended."""


OnMessage = Callable[[Any], None]


class PipelineError(HeadraceError):
    """An element of a pipeline failed."""

    code = "pipeline-failed"


class Pipeline:
    """Elements that are added, linked and started by name.

    Args:
        name: of the pipeline.
        config_file: a YAML file of nodes and edges that it starts with.

    Raises:
        ConfigError: the file names elements, properties or links that are not there.
        MissingExtraError: GStreamer is not installed.
    """

    def __init__(self, name: str, config_file: str | Path | None = None) -> None:
        register()
        self._pipeline = Gst.Pipeline.new(name)
        self._nodes: dict[str, Node] = {}
        self._sensors: dict[str, str] = {}  # id -> name of the source
        self._sessions: list[tuple[str, NvUriSrcBin, int]] = []
        self._attached: list[Callable[[], None]] = []  # take operators off
        self._on_message: OnMessage | None = None
        self._thread: Thread | None = None
        self._ended, self._stopping = Event(), Event()
        self._error: BaseException | None = None
        if config_file is not None:
            from headrace.gstreamer.servicemaker.description import build

            build(self, Path(config_file))

    def add(self, kind: str, name: str, properties: Mapping[str, object] | None = None) -> Pipeline:
        """Add an element.

        Args:
            kind: name of its factory, such as `nvinfer`.
            name: of the element, once in a pipeline.
            properties: to be set.

        Raises:
            ConfigError: there is no such element or property, or the name is taken.
        """
        if name in self._nodes:
            raise ConfigError(f"there are two elements called {name!r}", where=kind)
        element = Gst.ElementFactory.make(kind, name)
        if element is None:
            raise ConfigError(
                f"GStreamer has no element {kind!r}", where=name,
                fix=f"headrace exec gst-inspect-1.0 {kind} looks for it",
            )  # fmt: skip
        node = self._nodes[name] = Node(element)
        node.set(properties or {})
        self._pipeline.add(element)
        if self._thread is not None:
            element.sync_state_with_parent()
        return self

    def __getitem__(self, name: str) -> Node:
        if name not in self._nodes:
            known = ", ".join(self._nodes) or "none yet"
            raise ConfigError(f"there is no element called {name!r}", expected=f"one of: {known}")
        return self._nodes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def link(self, *route: Any) -> Pipeline:
        """Link elements in a row, or two by their pads.

        Args:
            route: names of elements; or two pairs: of names, and of pads or their templates, such
                as `("src", "mux"), ("", "sink_%u")`.

        Raises:
            ConfigError: an element or a pad is missing, or formats do not fit.
        """
        if isinstance(route[0], str):
            for source, target in pairwise(route):
                nodes.link(self[source], self[target])
        else:
            (source, target), (out, into) = route
            nodes.link(self[source], self[target], out, into)
        return self

    def attach(
        self,
        target: str,
        what: Probe | Feeder | Receiver | str,
        name: str = "",
        tips: str = "",
        properties: Mapping[str, object] | None = None,
    ) -> Pipeline:
        """Attach a probe, a feeder, a receiver, or a named operator to an element.

        Args:
            target: name of the element.
            what: the object, or the name of an operator.
            name: of the probe, for a named operator.
            tips: a pad for probes: the output unless it says `sink`.
            properties: of a named operator.

        Raises:
            ConfigError: the element, the operator, the pad or a property is missing.
        """
        node = self[target]
        attachment = CommonFactory.create(what, name or what) if isinstance(what, str) else what
        if attachment is None:
            return self
        if isinstance(attachment, Probe):
            attachment.set(properties or {})
            self._attached.append(attachment.connect(node, tips, self._fail))
        else:
            self._attached.append(attachment.connect(node.element, self._fail))
        return self

    def prepare(self, on_message: OnMessage | None = None) -> Pipeline:
        """Open everything, without a start; messages come from now on.

        Args:
            on_message: gets each message, in a thread of the pipeline.
        """
        self._watch(on_message)
        self._pipeline.set_state(Gst.State.PAUSED)
        return self

    def activate(self) -> Pipeline:
        """Start a pipeline that is prepared."""
        self._watch(self._on_message)
        self._pipeline.set_state(Gst.State.PLAYING)
        return self

    def start(self, on_message: OnMessage | None = None) -> Pipeline:
        """Start; returns at once.

        Args:
            on_message: gets each message, in a thread of the pipeline.
        """
        self._watch(on_message)
        return self.activate()

    def wait(self) -> Pipeline:
        """Wait for the end of the stream, an error, or `stop`.

        Raises:
            PipelineError: an element failed.
            Exception: of the application's own code in an operator, a provider, a retriever.
        """
        try:
            while not self._ended.wait(_WAIT_S):
                if self._thread is None:
                    raise PipelineError("the pipeline was not started", fix="pipeline.start()")
        except KeyboardInterrupt:
            self.stop()
            raise
        if self._error is not None:
            raise self._error
        return self

    def stop(self) -> Pipeline:
        """End the stream early; the main thread waits for that, others do not."""
        self._stop()
        if self._thread is not None and current_thread() is main_thread():
            self._thread.join()
        return self

    deactivate = stop

    def pause(self) -> Pipeline:
        """Hold the stream."""
        self._pipeline.set_state(Gst.State.PAUSED)
        return self

    def resume(self) -> Pipeline:
        """Go on after `pause`."""
        self._pipeline.set_state(Gst.State.PLAYING)
        return self

    def seek(self, timestamp: int) -> Pipeline:
        """Jump to a time of presentation, in nanoseconds.

        Raises:
            PipelineError: the sources cannot jump.
        """
        if not self._pipeline.seek_simple(Gst.Format.TIME, Gst.SeekFlags.FLUSH, timestamp):
            raise PipelineError("the sources cannot jump to a time")
        return self

    @property
    def is_running(self) -> bool:
        """True from the start to the end."""
        return self._thread is not None and not self._ended.is_set()

    def start_recording(
        self,
        source: str,
        start: int,
        duration: int,
        callback: Callable[[RecordingInfo], None] | None = None,
    ) -> int:
        """Record a source from its packets, and return the number of the session.

        Args:
            source: name of an `nvurisrcbin` with `smart-record`, or the sensor's id of a list.
            start: seconds before now, as far as they are kept.
            duration: seconds after now; 0: the source's default.
            callback: is called with the recording when its file is complete.

        Raises:
            PipelineError: there is no such source, or it cannot record.
        """
        element = self._recording_source(source)
        done = callback or (lambda info: None)
        try:
            number = element.record(start, duration, done)
        except MediaError as error:
            raise PipelineError(str(error), where=source) from error
        self._sessions.append((source, element, number))
        return len(self._sessions) - 1

    def stop_recording(self, source: str) -> None:
        """End all recordings of a source.

        Raises:
            PipelineError: there is no such source.
        """
        element = self._recording_source(source)
        for _, other, number in self._sessions:
            if other is element:
                element.stop_recording(number)

    def stop_recording_by_session_id(self, session_id: int) -> None:
        """End one recording.

        Raises:
            PipelineError: `start_recording` gave no such number.
        """
        if not 0 <= session_id < len(self._sessions):
            raise PipelineError(
                f"there is no recording session {session_id}",
                expected=f"one of the {len(self._sessions)} that start_recording gave",
            )
        _, element, number = self._sessions[session_id]
        element.stop_recording(number)

    def name_sensor(self, sensor_id: str, source: str) -> None:
        """Let a source be called by its sensor's id, too."""
        self._sensors[sensor_id] = source

    def _recording_source(self, source: str) -> NvUriSrcBin:
        node = self._nodes.get(self._sensors.get(source, source))
        element: Any = None if node is None else node.element
        if isinstance(element, NvMultiUriSrcBin):
            element = element.source_of(source)
        if not isinstance(element, NvUriSrcBin):
            known = [
                name for name, one in self._nodes.items() if isinstance(one.element, NvUriSrcBin)
            ]
            raise PipelineError(
                f"no source of recordings is called {source!r}",
                expected=", ".join([*known, *self._sensors]) or "an nvurisrcbin",
            )
        return element

    def _fail(self, error: BaseException) -> None:
        """End with an error of the application's code, from any thread."""
        self._error = self._error or error
        self._stop()

    def _stop(self) -> None:
        self._stopping.set()
        wake = Gst.Structure.new_empty("stop")  # the thread that waits for messages
        self._pipeline.get_bus().post(Gst.Message.new_application(self._pipeline, wake))

    def _watch(self, on_message: OnMessage | None) -> None:
        self._on_message = on_message or self._on_message
        if self._thread is None:
            name = f"headrace-bus-{self._pipeline.get_name()}"
            self._thread = start_thread(self._follow, name=name, failed=self._broke)

    def _broke(self, error: BaseException) -> None:
        self._error = self._error or error
        self._ended.set()

    def _follow(self) -> None:
        """Handle messages until the end; only this thread stops the elements."""
        bus = self._pipeline.get_bus()
        try:
            while not self._stopping.is_set():
                message = bus.timed_pop(_POLL_NS)
                if message is not None and self._handle(message):
                    break
        except BaseException as error:  # of on_message, the application's
            self._error = self._error or as_exception(error)
        finally:
            self._pipeline.set_state(Gst.State.NULL)
            for take_off in self._attached:  # a circle through GStreamer is never collected
                take_off()
            self._ended.set()

    def _handle(self, message: Gst.Message) -> bool:
        """Pass a message on; True at the end."""
        origin = message.src.get_name() if message.src is not None else ""
        if message.type == Gst.MessageType.ERROR:
            error, detail = message.parse_error()
            text = (detail or "").strip().splitlines()
            self._error = self._error or PipelineError(
                error.message, where=origin, fix=text[-1:] if text != [error.message] else None
            )
            return True
        if message.type == Gst.MessageType.WARNING:
            text = f"warning: {origin}: {message.parse_warning()[0].message}"
            print(printable(text), file=sys.stderr)
        elif message.type == Gst.MessageType.EOS:
            self._tell(EOSMessage())
            return True
        elif message.type == Gst.MessageType.STATE_CHANGED:
            old, new, _ = message.parse_state_changed()
            self._tell(StateTransitionMessage(origin, PipelineState(old), PipelineState(new)))
        elif message.type == Gst.MessageType.ELEMENT:
            structure = structure_of(message)
            if structure.get_name() in ("stream-add", "stream-remove"):
                values = {
                    name: structure.get_value(key) or ""
                    for name, key in (
                        ("sensor_id", "sensor-id"), ("sensor_name", "sensor-name"), ("uri", "uri")
                    )
                }  # fmt: skip
                added = structure.get_name() == "stream-add"
                number = int(structure.get_value("source-id"))
                self._tell(DynamicSourceMessage(number, added, **values))
        return False

    def _tell(self, message: Gst.Message) -> None:
        if self._on_message is not None:
            self._on_message(message)
