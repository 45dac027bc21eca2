"""nvdsmetamux: metadata of several branches joined in the images of one."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Lock

from headrace._core.errors import ConfigError
from headrace.config.reading import read_bytes, read_document
from headrace.gstreamer.elements.bindings import Element, Gst
from headrace.gstreamer.elements.element import NVMM, NvElement, pad, reported, timed, weakly
from headrace.gstreamer.elements.properties import Property
from headrace.gstreamer.elements.tree import frames_of
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import NvDsBatchMeta, NvDsFrameMeta, items

_QUEUED = 8  # buffers of a branch that wait for those of the others
_POLL_S = 0.2
_MODEL = re.compile(r"src-ids-model-([0-9]+)")
_LISTS = ("obj_meta_list", "display_meta_list", "frame_user_meta_list")


@dataclass(frozen=True)
class MuxRules:
    """The values of a config file.

    Attributes:
        active_pad: the sink whose images go on; None leaves it to the property.
        tolerance_us: by how much times of one frame may differ.
        sources: number of a model -> the sources whose objects of it stay; a model without a row
            keeps all.
    """

    active_pad: str | None = None
    tolerance_us: int | None = None
    sources: dict[int, frozenset[int]] = field(default_factory=dict)


def load_mux_rules(path: Path) -> MuxRules:
    """Read a config file of nvdsmetamux.

    Raises:
        ConfigError: it cannot be read, or holds a value that is none.
    """
    document = read_document(read_bytes(path), path)
    top = document.groups.get("property")
    texts = {} if top is None else top.last()
    sources: dict[int, frozenset[int]] = {}
    for group in document.groups.values():
        for entry in group.entries if group.name.startswith("group-") else ():
            if (match := _MODEL.fullmatch(entry.key)) is None:
                continue
            parts = [part for part in entry.text.split(";") if part.strip()]
            try:
                sources[int(match[1])] = frozenset(int(part) for part in parts)
            except ValueError:
                raise ConfigError(
                    f"{entry.key} is {entry.text!r}", where=f"{path}:{entry.line}",
                    expected="numbers of sources, such as 0;1;2",
                ) from None  # fmt: skip
    active, tolerance = texts.get("active-pad"), texts.get("pts-tolerance")
    if tolerance is not None and not tolerance.text.strip().isdigit():
        raise ConfigError(
            f"pts-tolerance is {tolerance.text!r}", where=f"{path}:{tolerance.line}",
            expected="microseconds",
        )  # fmt: skip
    return MuxRules(
        None if active is None else active.text.strip(),
        None if tolerance is None else int(tolerance.text),
        sources,
    )


@dataclass
class _Branch:
    """One sink: buffers that wait, and whether more will come."""

    waiting: deque[Gst.Buffer] = field(default_factory=deque)
    ended: bool = False


class NvDsMetaMux(NvElement, Element):
    """Pushes the buffers of the active pad, with the metadata of the same frames of all others."""

    __gtype_name__ = "GstNvDsMetaMux"
    ABOUT = ("NvDsMetaMux", "Generic", "Joins the metadata of branches")
    __gsttemplates__ = (pad("sink_%u", "sink", "request", NVMM), pad("src", "src", "always", NVMM))
    PROPERTIES = {
        "config-file": Property("str", None, "active-pad, pts-tolerance, and sources of models"),
        "active-pad": Property("str", None, "the sink whose images go on; else the first"),
        "pts-tolerance": Property("int64", 60_000, "by how many microseconds times may differ", 0),
    }

    def __init__(self) -> None:
        super().__init__()
        self._branches: dict[str, _Branch] = {}
        self._rules = MuxRules()
        self._changed, self._pushing = Condition(), Lock()
        self._stopping, self._flow = False, Gst.FlowReturn.OK
        self._end: Gst.Event | None = None  # of the active branch, while its buffers wait
        self._src = Gst.Pad.new_from_template(self.template("src"), "src")
        self.add_pad(self._src)
        self.setup()

    def do_request_new_pad(
        self, template: Gst.PadTemplate, name: str | None, caps: Gst.Caps
    ) -> Gst.Pad:
        """Make a sink."""
        number = len(self._branches)
        while name is None or name in self._branches:
            name, number = f"sink_{number}", number + 1
        sink = Gst.Pad.new_from_template(template, name)
        sink.set_chain_function_full(weakly(self._chain, Gst.FlowReturn.EOS))
        sink.set_event_function_full(weakly(self._event, False))
        with self._changed:
            self._branches[name] = _Branch()
        sink.set_active(True)
        self.add_pad(sink)
        return sink

    def do_release_pad(self, sink: Gst.Pad) -> None:
        """Take a sink away."""
        with self._changed:
            self._branches.pop(sink.get_name(), None)
            self._changed.notify_all()
        sink.set_active(False)
        self.remove_pad(sink)

    @reported(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, change: Gst.StateChange) -> Gst.StateChangeReturn:
        """Read the config file before the first buffer."""
        if change == Gst.StateChange.READY_TO_PAUSED:
            path = self.values["config-file"]
            self._rules = load_mux_rules(Path(path)) if path else MuxRules()
            self._stopping, self._flow = False, Gst.FlowReturn.OK
            if self._branches and self._active() not in self._branches:  # none: they come later
                raise ConfigError(
                    f"active-pad is {self._active()!r}", where=self.get_name(),
                    expected="one of " + ", ".join(sorted(self._branches)),
                )  # fmt: skip
        elif change == Gst.StateChange.PAUSED_TO_READY:
            with self._changed:
                self._stopping, self._end = True, None
                for branch in self._branches.values():
                    branch.waiting.clear()
                    branch.ended = False
                self._changed.notify_all()
        return Gst.Element.do_change_state(self, change)

    def _active(self) -> str:
        """Return the sink with the images; a property wins over the file."""
        of_file = None if "active-pad" in self.assigned else self._rules.active_pad
        name = of_file or self.values["active-pad"] or min(self._branches, default="sink_0")
        return str(name)

    def _tolerance_ns(self) -> int:
        own = self._rules.tolerance_us
        if "pts-tolerance" in self.assigned or own is None:
            own = int(self.values["pts-tolerance"])
        return own * 1000

    def _event(self, sink: Gst.Pad, parent: Gst.Object, event: Gst.Event) -> bool:
        name = sink.get_name()
        if event.type == Gst.EventType.EOS:
            with self._changed:
                if name in self._branches:
                    self._branches[name].ended = True
                if name == self._active():
                    self._end = event
                self._changed.notify_all()
            self._push_ready()
            return True
        return bool(self._src.push_event(event)) if name == self._active() else True

    @timed
    def _chain(self, sink: Gst.Pad, parent: Gst.Object, buffer: Gst.Buffer) -> Gst.FlowReturn:
        branch = self._branches[sink.get_name()]
        with self._changed:
            branch.waiting.append(buffer)
            self._changed.notify_all()
        self._push_ready()
        with self._changed:
            while len(branch.waiting) >= _QUEUED and not self._stopping:
                active = self._branches.get(self._active())
                if active is not None and active is not branch and active.ended:
                    branch.waiting.clear()
                    return Gst.FlowReturn.OK
                self._changed.wait(_POLL_S)
            return Gst.FlowReturn.FLUSHING if self._stopping else self._flow

    def _push_ready(self) -> None:
        """Push each buffer once its frames came through all branches."""
        with self._pushing:  # one after the other
            while (buffer := self._next()) is not None:
                flow = self._src.push(buffer)
                with self._changed:
                    self._flow = flow
                    self._changed.notify_all()
            with self._changed:  # buffers that wait for other branches come before the end
                active = self._branches.get(self._active())
                end = None if active is None or active.waiting else self._end
                self._end = self._end if end is None else None
            if end is not None:
                self._src.push_event(end)

    def _next(self) -> Gst.Buffer | None:
        with self._changed:
            active = self._branches.get(self._active())
            if active is None or not active.waiting or self._stopping:
                return None
            buffer = active.waiting[0]
            others = [b for b in self._branches.values() if b is not active]
            time_ns, slack_ns = buffer.pts, self._tolerance_ns()
            for other in others:
                while other.waiting and other.waiting[0].pts < time_ns - slack_ns:
                    other.waiting.popleft()
                if not other.waiting and not other.ended:
                    return None
            batch = self.batch_of(active.waiting.popleft())
            for other in others:
                if other.waiting and other.waiting[0].pts <= time_ns + slack_ns:
                    join(batch, self.batch_of(other.waiting.popleft()), slack_ns)
            self._changed.notify_all()
        for frame in frames_of(batch):
            self._sift(frame)
        bridge().replace(hash(buffer), batch)
        return buffer

    def _sift(self, frame: NvDsFrameMeta) -> None:
        """Take out the objects of models that the file does not name for this source."""
        objects = items(frame, "obj_meta_list")
        for obj in list(objects):
            allowed = self._rules.sources.get(int(obj.unique_component_id))
            if allowed is not None and int(frame.source_id) not in allowed:
                objects.remove(obj)


def join(batch: NvDsBatchMeta, other: NvDsBatchMeta, slack_ns: int) -> None:
    """Move the metadata of the same frames from another batch to a batch.

    Behind a tee both branches have the same metadata: nothing is moved then.

    Args:
        batch: gets them.
        other: loses them.
        slack_ns: by how much the times of one frame may differ.
    """
    for frame in frames_of(batch):
        for twin in frames_of(other):
            if twin is frame or twin.source_id != frame.source_id:
                continue
            if abs(int(twin.buf_pts) - int(frame.buf_pts)) > slack_ns:
                continue
            for name in _LISTS:
                for item in list(items(twin, name)):
                    items(twin, name).remove(item)
                    items(frame, name).append(item)
            frame.bInferDone |= twin.bInferDone
