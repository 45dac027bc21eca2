"""Record of a run for `headrace exec --report`: pipelines, frames, times, names of pyds."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from types import ModuleType
from typing import Any, TypeVar

from headrace._core.pages.graphs import Box, Link
from headrace.gstreamer import pyds
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import NvElement, Stopwatch
from headrace.gstreamer.elements.pipeline_graph import pipeline_graph
from headrace.gstreamer.elements.register import register
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import NvDsBatchMeta, items

R = TypeVar("R")

_LISTS = {
    "objects": "obj_meta_list",
    "display metadata": "display_meta_list",
    "user metadata of frames": "frame_user_meta_list",
}
_KINDS = {
    "class maps": pyds.NvDsMetaType.NVDSINFER_SEGMENTATION_META,
    "raw outputs": pyds.NvDsMetaType.NVDSINFER_TENSOR_OUTPUT_META,
    "event messages": pyds.NvDsMetaType.NVDS_EVENT_MSG_META,
}


@dataclass
class ElementUse:
    """Buffers that one element gave, or took if it is a sink.

    Attributes:
        factory: name of its kind.
        ours: True for Headrace's elements.
        buffers: how many.
        frames: of their batches; a buffer without a batch counts as one.
        first_s, last_s: times of the first and the last one, in seconds of a clock.
    """

    factory: str
    ours: bool
    buffers: int = 0
    frames: int = 0
    first_s: float = 0.0
    last_s: float = 0.0

    @property
    def fps(self) -> float | None:
        """Frames a second between the first buffer and the last; None for fewer than two."""
        span = self.last_s - self.first_s
        return None if span <= 0 else self.frames * (1 - 1 / self.buffers) / span


@dataclass
class Usage:
    """Elements, properties, metadata and names of `pyds` that an application used.

    Attributes:
        elements: by name, in the order in which buffers reached them.
        settings: element, property, value and note of each property that is set on Headrace's.
        metadata: how many of each kind left each element.
        names: of `pyds`, how often each was read.
        missing: names of `pyds` that are not there.
        probes: pad -> calls and CPU seconds of an application's probes.
        image: of the pipeline, in the language of Graphviz, with caps.
        graph: the boxes and links of the same image.
    """

    elements: dict[str, ElementUse] = field(default_factory=dict)
    settings: list[tuple[str, str, str, str]] = field(default_factory=list)
    metadata: dict[str, Counter[str]] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    probes: dict[str, list[float]] = field(default_factory=dict)
    image: str = ""
    graph: tuple[tuple[Box, ...], tuple[Link, ...]] = ((), ())
    _seen: set[Gst.Pipeline] = field(default_factory=set)

    def start(self) -> None:
        """Watch the pipelines of this process from now on, and the names read of `pyds`."""
        register()
        Stopwatch.spent = {}
        sys.modules["pyds"] = RecordedModule(pyds, self)
        set_state, add_probe = Gst.Element.set_state, Gst.Pad.add_probe

        def watched_set_state(element: Gst.Element, state: Gst.State) -> Gst.StateChangeReturn:
            if isinstance(element, Gst.Pipeline):
                if state in (Gst.State.PAUSED, Gst.State.PLAYING):
                    self._watch(element, add_probe)
                else:
                    self._draw(element)
            return set_state(element, state)

        def timed_add_probe(
            sink: Gst.Pad,
            mask: Gst.PadProbeType,
            callback: Callable[..., Gst.PadProbeReturn],
            *data: object,
        ) -> object:
            if not str(getattr(callback, "__module__", "")).startswith("headrace."):
                callback = self._timed(sink, callback)
            return add_probe(sink, mask, callback, *data)

        Gst.Element.set_state, Gst.Pad.add_probe = watched_set_state, timed_add_probe

    def _timed(self, sink: Gst.Pad, callback: Callable[..., R]) -> Callable[..., R]:
        parent = sink.get_parent_element()
        name = f"{parent.get_name() if parent else '?'}.{sink.get_name()}"
        tally = self.probes.setdefault(name, [0, 0.0])

        @wraps(callback)
        def call(*arguments: object) -> R:
            start = time.thread_time()
            try:
                return callback(*arguments)
            finally:
                tally[0] += 1
                tally[1] += time.thread_time() - start

        return call

    def _watch(self, pipeline: Gst.Pipeline, add_probe: Callable[..., int]) -> None:
        if pipeline in self._seen:
            return
        self._seen.add(pipeline)
        elements: list[Gst.Element] = []
        pipeline.iterate_recurse().foreach(elements.append)
        for element in reversed(elements):
            self._count(element, add_probe)
        pipeline.connect("deep-element-added", lambda _, __, one: self._count(one, add_probe))

    def _count(self, element: Gst.Element, add_probe: Callable[..., int]) -> None:
        factory = element.get_factory()
        if factory is None or (isinstance(element, Gst.Bin) and not isinstance(element, NvElement)):
            return
        use = ElementUse(factory.get_name(), isinstance(element, NvElement))
        self.elements[element.get_name()] = use
        if use.ours:
            self._note_settings(element)
        meta = self.metadata.setdefault(element.get_name(), Counter())

        def look(sink: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
            now, batch = time.monotonic(), bridge().get(hash(info.get_buffer()))
            use.first_s, use.last_s = use.first_s or now, now
            use.buffers += 1
            use.frames += 1 if batch is None else batch.num_frames_in_batch
            if batch is not None:
                meta.update(_counted(batch))
            return Gst.PadProbeReturn.OK

        def probe(_: object, one: Gst.Pad) -> None:
            if one.get_direction() == direction:
                add_probe(one, Gst.PadProbeType.BUFFER, look)

        sink = element.find_property("sync") is not None and not element.srcpads
        direction = Gst.PadDirection.SINK if sink else Gst.PadDirection.SRC
        for one in element.pads:
            probe(None, one)
        element.connect("pad-added", probe)

    def _note_settings(self, element: NvElement) -> None:
        named: Gst.Element = element
        for name in sorted(element.assigned):
            row = element.PROPERTIES[name]
            note = row.text if row.text.startswith("accepted") else ""
            self.settings.append((named.get_name(), name, str(element.values[name]), note))

    def _draw(self, pipeline: Gst.Pipeline) -> None:
        if pipeline in self._seen:
            details = Gst.DebugGraphDetails.MEDIA_TYPE | Gst.DebugGraphDetails.CAPS_DETAILS
            details |= Gst.DebugGraphDetails.NON_DEFAULT_PARAMS
            self.image = Gst.debug_bin_to_dot_data(pipeline, details) or self.image
            self.graph = pipeline_graph(pipeline, self._told)

    def _told(self, element: Gst.Element) -> str:
        use = self.elements.get(element.get_name())
        if use is None or not use.buffers:
            return ""
        rate = "" if use.fps is None else f", {use.fps:.1f} a second"
        plain = not use.ours and use.frames == use.buffers  # no batch came
        counted = f"{use.buffers} buffers" if plain else f"{use.frames} frames"
        return f"{counted}{rate}"

    def finish(self) -> None:
        """Draw pipelines that the application left running."""
        for pipeline in self._seen:
            if not self.image:
                self._draw(pipeline)


def _counted(batch: NvDsBatchMeta) -> Counter[str]:
    counts = Counter({"batches": 1})
    for frame in items(batch, "frame_meta_list"):
        counts["frames"] += 1
        for name, attribute in _LISTS.items():
            counts[name] += len(items(frame, attribute))
        for obj in items(frame, "obj_meta_list"):
            counts["classifier results"] += len(items(obj, "classifier_meta_list"))
            counts["user metadata of objects"] += len(items(obj, "obj_user_meta_list"))
            counts["masks"] += obj.mask_params.size > 0
            counts["tracked objects"] += obj.object_id != pyds.UNTRACKED_OBJECT_ID
        kinds = [user.base_meta.meta_type for user in items(frame, "frame_user_meta_list")]
        for name, kind in _KINDS.items():
            counts[name] += kinds.count(kind)
    return Counter({name: count for name, count in counts.items() if count})


class RecordedModule(ModuleType):
    """A module that notes which names of another one are read."""

    def __init__(self, module: ModuleType, usage: Usage) -> None:
        super().__init__(module.__name__, module.__doc__)
        public = [name for name in dir(module) if not name.startswith("_")]
        vars(self).update(_module=module, _usage=usage, __all__=public)

    def __getattr__(self, name: str) -> Any:
        usage: Usage = vars(self)["_usage"]
        try:
            value = getattr(vars(self)["_module"], name)
        except AttributeError:
            if not name.startswith("__"):
                usage.missing[name] += 1
            raise
        if not name.startswith("__"):
            usage.names[name] += 1
        return value
