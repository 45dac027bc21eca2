"""nvstreammux: frames of several sources in batches, scaled to one size, with their metadata."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition, Lock, Thread
from typing import NamedTuple

import numpy as np

from headrace._core.findings import Finding
from headrace._core.heap import HeapTrims
from headrace._core.threads import start_thread
from headrace.gstreamer import pyds
from headrace.gstreamer.elements.bindings import Element, GObject, Gst, GstVideo, structure_of
from headrace.gstreamer.elements.element import (
    NVMM,
    SYSTEM,
    NvElement,
    answered,
    pad,
    refusal,
    timed,
    weakly,
)
from headrace.gstreamer.elements.held_ends import HeldEnds
from headrace.gstreamer.elements.properties import (
    COMMON,
    NO_EFFECT,
    UINT_MAX,
    Property,
    interpolation,
    unheeded,
)
from headrace.gstreamer.elements.surface import CapsReader, Surface
from headrace.gstreamer.elements.tree import batch_buffer
from headrace.gstreamer.pyds.events import (
    PAD_ADDED,
    PAD_DELETED,
    STREAM_EOS,
    STREAM_RESET,
    push_source_event,
)
from headrace.gstreamer.pyds.functions import (
    nvds_acquire_frame_meta_from_pool,
    nvds_add_frame_meta_to_batch,
)
from headrace.media.resizing import scaled

_UPRIGHT = "rotate-0"
QUEUED = 4  # frames of a source that wait; decoders are held back beyond
POLL_S = 0.2
_FORMAT = "NV12"  # what the caps say, and what C code maps

PROPERTIES = COMMON | {
    "batch-size": Property("uint", 0, "most frames of a batch", 0, 1024),
    "batched-push-timeout": Property("int", -1, "microseconds to wait for a full batch", -1),
    "width": Property("uint", 0, "of all frames; 0: of the first one"),
    "height": Property("uint", 0, "of all frames; 0: of the first one"),
    "enable-padding": Property("bool", False, "keep the aspect ratio, with black bars"),
    "live-source": Property("bool", False, "accepted; the timeout bounds every wait"),
    "attach-sys-ts": Property("bool", True, "frames get the time of the system"),
    "async-process": Property("bool", True, "accepted; a thread of its own pushes"),
    "sync-inputs": Property("bool", False, NO_EFFECT),
    "max-latency": Property("uint", 0, NO_EFFECT),
    "num-surfaces-per-frame": Property("uint", 1, "views of the dewarper that are taken", 1, 4),
    "buffer-pool-size": Property("uint", 4, "accepted; buffers are made as needed", 4, 1024),
    "drop-pipeline-eos": Property("bool", False, "no end of stream is passed on"),
    "frame-num-reset-on-eos": Property("bool", False, "a source counts from 0 again after its end"),
    "frame-num-reset-on-stream-reset": Property(
        "bool", False, "a source counts from 0 again after its stream-reset event"
    ),
    "frame-duration": Property("uint64", (1 << 64) - 1, NO_EFFECT),
    "config-file-path": Property("str", None, NO_EFFECT),
    **unheeded(
        "bool", False,
        "sort-batch", "cache-buffer", "align-first-buffer", "extract-sei-sim-time",
        "drop-backward-sei", "extract-sei-type5-data",
    ),
    "cache-buffer-timeout": Property("int", -1, NO_EFFECT, -1),
    "sync-inputs-ntp": Property("int", 0, NO_EFFECT, 0),
    "interpolation-method": interpolation(1),
}  # fmt: skip
_NO_VIEW = (0, 0)
UNKNOWN_RATE = (30, 1)  # frames of a stream that names no rate, such as images in a row


_NTP = Gst.Caps.from_string("timestamp/x-ntp")
_NTP_TO_UNIX_NS = 2_208_988_800 * Gst.SECOND  # from 1900 to 1970


def _sender_time_ns(buffer: Gst.Buffer) -> int:
    """The time that an RTSP sender gave a frame, in ns since 1970; 0 if none is known."""
    meta = buffer.get_reference_timestamp_meta(_NTP)
    return 0 if meta is None else max(0, meta.timestamp - _NTP_TO_UNIX_NS)


class _Waiting(NamedTuple):
    """The image of a source, or several that a dewarper made of it.

    Attributes:
        views: each at the batch's size, with kind and number of the view.
        pts_ns, duration_ns: its time.
        size: width and height of the source's image, in pixels.
        ntp_ns: the time that its sender gave it, since 1970; 0 if none is known.
    """

    views: list[tuple[Surface, tuple[int, int]]]
    pts_ns: int
    duration_ns: int
    size: tuple[int, int]
    ntp_ns: int


class _Source:
    """One sink pad: its waiting frames and its state."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.waiting: deque[_Waiting] = deque()
        self.flushes = 0  # frames that were taken before the last one are stale
        self.start_ns = 0  # of its segment
        self.reader: CapsReader | None = None
        self.framerate = UNKNOWN_RATE
        self.frames = self.received = 0
        self.ended = self.announced = self.flushing = False
        self.is_known = False  # to the elements behind

    def next_pts_ns(self) -> int:
        """Time of the next frame by the frame rate, for streams that have none, such as JPEG."""
        top, bottom = self.framerate
        return int(self.received * Gst.SECOND * bottom // top)


# A source, its flushes when the frame was taken, and the frame.
_Taken = tuple[_Source, int, _Waiting]


def _is_reset(event: Gst.Event) -> bool:
    structure = structure_of(event)
    return structure is not None and structure.get_name().startswith(STREAM_RESET)


class NvStreamMux(NvElement, Element):
    """Collects a frame of each source, and pushes them from a thread of its own."""

    __gtype_name__ = "GstNvStreamMux"
    ABOUT = ("Stream multiplexer", "Generic", "Batches frames of several sources")
    __gsttemplates__ = (
        pad("sink_%u", "sink", "request", NVMM, SYSTEM),
        pad("src", "src", "always", NVMM),
    )
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._sources: dict[Gst.Pad, _Source] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._stopping = False
        self._flow = Gst.FlowReturn.OK
        self._turn = 0
        self._ended: list[int] = []
        self._gone: list[int] = []  # sources whose pads went, until the thread tells of them
        self._pushing = Lock()  # a batch is pushed before a jump, or dropped
        self._started = self._over = self._sought = False
        self._size = (0, 0)
        self._pts_ns = -1  # of the last batch
        self._held_ends = HeldEnds()
        self._src = Gst.Pad.new_from_template(self.template("src"), "src")
        self._src.set_event_function_full(weakly(self._src_event, False))
        self._src.set_query_function_full(weakly(self._src_query, False))
        self.add_pad(self._src)
        self.setup()

    # ---- pads

    def do_request_new_pad(
        self, template: Gst.PadTemplate, name: str | None, caps: Gst.Caps
    ) -> Gst.Pad:
        """Make the sink pad of a source; its number is that of the name, else the lowest free."""
        with self._changed:
            taken = {source.number for source in self._sources.values()}
            number = next(i for i in range(len(taken) + 1) if i not in taken)
            if name and name.rpartition("_")[2].isdigit():
                number = int(name.rpartition("_")[2])
            else:
                name = f"sink_{number}"
            if number in taken:
                return None
            sink = Gst.Pad.new_from_template(template, name)
            self._sources[sink] = _Source(number)
        sink.set_chain_function_full(weakly(self._chain, Gst.FlowReturn.EOS))
        sink.set_event_function_full(weakly(self._event, False))
        sink.set_query_function_full(weakly(self._query, False))
        sink.set_active(True)
        self.add_pad(sink)
        return sink

    def do_release_pad(self, sink: Gst.Pad) -> None:
        """Forget a source."""
        if self.disposed:
            self.remove_pad(sink)
            return
        with self._changed:
            source = self._sources.get(sink)
            if source is not None:
                source.flushing = True
                source.waiting.clear()
                self._changed.notify_all()
        sink.set_active(False)
        with self._changed:
            self._sources.pop(sink, None)
            if source is not None and source.is_known:
                self._gone.append(source.number)
            self._changed.notify_all()
        self.remove_pad(sink)

    def _query(self, sink: Gst.Pad, parent: Gst.Object, query: Gst.Query) -> bool:
        if query.type == Gst.QueryType.ALLOCATION:
            GstVideo.video_meta_api_get_type()
            # Decoders then give away their own padded images instead of copies.
            query.add_allocation_meta(GObject.type_from_name("GstVideoMetaAPI"), None)
            return True
        return bool(sink.query_default(parent, query))

    def _event(self, sink: Gst.Pad, parent: Gst.Object, event: Gst.Event) -> bool:
        source = self._sources.get(sink)
        if source is None:
            return False
        match event.type:
            case Gst.EventType.CAPS:
                caps = event.parse_caps()
                try:
                    source.reader = CapsReader(caps)
                except Exception as error:  # an unknown format ends the pipeline, with its name
                    self.post_error(error)
                    return False
                present, top, bottom = structure_of(caps).get_fraction("framerate")
                source.framerate = (top, bottom) if present and top > 0 else UNKNOWN_RATE
            case Gst.EventType.EOS:
                with self._changed:
                    source.ended = True
                    self._changed.notify_all()
            case Gst.EventType.STREAM_START:
                with self._changed:
                    if source.ended and self.values["frame-num-reset-on-eos"]:
                        source.frames = 0
                    source.ended = source.announced = False
                    self._changed.notify_all()
            case Gst.EventType.TAG:
                known, turn = event.parse_tag().get_string(Gst.TAG_IMAGE_ORIENTATION)
                if known and turn != _UPRIGHT:
                    text = f"the tags ask players to turn this video ({turn}), which is not done "
                    text += "here: frames are used as they come; nvvideoconvert flip-method=… "
                    text += "before this turns them"
                    finding = Finding("rotation-ignored", "warning", text, sink.get_name())
                    self.post_notices([finding])
            case Gst.EventType.SEGMENT:
                source.start_ns = event.parse_segment().start
            case Gst.EventType.FLUSH_START:
                with self._changed:
                    source.flushing = True
                    source.flushes += 1
                    source.waiting.clear()
                    self._pts_ns = -1  # a jump may lead back
                    self._changed.notify_all()
            case Gst.EventType.FLUSH_STOP:
                with self._changed:
                    source.flushing = source.ended = source.announced = False
                    source.waiting.clear()
                    self._changed.notify_all()
            case _ if _is_reset(event) and self.values["frame-num-reset-on-stream-reset"]:
                source.frames = 0
        return True

    def _src_event(self, src: Gst.Pad, parent: Gst.Object, event: Gst.Event) -> bool:
        """Pass an event to all sources; behind a jump of all of them the stream begins anew."""
        flushing = event.type == Gst.EventType.SEEK and event.parse_seek()[2] & Gst.SeekFlags.FLUSH
        if not flushing:
            return self._upstream(event)
        src.push_event(Gst.Event.new_flush_start())  # a push that waits returns
        with self._pushing:
            done = self._upstream(event)
            self._flush_stop()
        self._sought = True
        return done

    def _upstream(self, event: Gst.Event) -> bool:
        taken = [sink.push_event(event) for sink in list(self._sources)]  # by all, whoever refuses
        return all(taken)

    def _flush_stop(self) -> None:
        self._src.push_event(Gst.Event.new_flush_stop(True))
        self._started = self._over = False
        self._flow = Gst.FlowReturn.OK

    def _chain(self, sink: Gst.Pad, parent: Gst.Object, buffer: Gst.Buffer) -> Gst.FlowReturn:
        source = self._sources.get(sink)
        if source is None or source.reader is None:
            return Gst.FlowReturn.NOT_NEGOTIATED
        try:
            views, size = self._views(source.reader, buffer)
            ntp_ns = 0 if self.values["attach-sys-ts"] else _sender_time_ns(buffer)
        except Exception as error:  # PyGObject would print it and go on
            self.post_error(error)
            return Gst.FlowReturn.ERROR
        with self._changed:
            while len(source.waiting) >= QUEUED and not (source.flushing or self._stopping):
                self._changed.wait(POLL_S)
            if source.flushing or self._stopping:
                return Gst.FlowReturn.FLUSHING
            if self._flow not in (Gst.FlowReturn.OK, Gst.FlowReturn.EOS):
                return self._flow
            duration = buffer.duration if buffer.duration != Gst.CLOCK_TIME_NONE else 0
            pts = buffer.pts if buffer.pts != Gst.CLOCK_TIME_NONE else source.next_pts_ns()
            source.waiting.append(_Waiting(views, pts, duration, size, ntp_ns))
            source.received += 1
            self._changed.notify_all()
        return Gst.FlowReturn.OK

    @timed
    def _views(
        self, reader: CapsReader, buffer: Gst.Buffer
    ) -> tuple[list[tuple[Surface, tuple[int, int]]], tuple[int, int]]:
        """The images of a buffer at the batch's size, and their own size."""
        kinds = reader.views[: self.values["num-surfaces-per-frame"]] or [_NO_VIEW]
        views = [
            (self._fitted(reader.surface(buffer, number)), kind)
            for number, kind in enumerate(kinds)
        ]
        return views, (reader.width, reader.height)

    def _fitted(self, surface: Surface) -> Surface:
        """The image at the batch's size."""
        own = surface.width, surface.height
        width, height = self.values["width"], self.values["height"]
        if not (width and height):
            if self._size == (0, 0):
                self._size = own
            width, height = self._size
        if own == (width, height):
            return surface
        frame = surface.frame()
        if not self.values["enable-padding"]:
            return Surface(scaled(frame, width, height))
        ratio = min(width / own[0], height / own[1])
        fitted = Surface(scaled(frame, max(2, int(own[0] * ratio)), max(2, int(own[1] * ratio))))
        canvas = np.zeros((height, width, 4), np.uint8)
        canvas[:, :, 3] = 255
        canvas[: fitted.height, : fitted.width] = fitted.rgba()
        return Surface(None, canvas)

    def _src_query(self, src: Gst.Pad, parent: Gst.Object, query: Gst.Query) -> bool:
        """Answer questions of elements in C."""
        answers = {
            "batch_size": self.values["batch-size"] or 1, "numStreams_size": len(self._sources)
        }  # fmt: skip
        return answered(query, answers) or bool(src.query_default(parent, query))

    # ---- batches

    def do_change_state(self, change: Gst.StateChange) -> Gst.StateChangeReturn:
        """Run the thread between READY and PAUSED."""
        if change == Gst.StateChange.READY_TO_PAUSED:
            self._stopping, self._flow, self._size = False, Gst.FlowReturn.OK, (0, 0)
            self._pts_ns, self._started, self._over, self._sought = -1, False, False, False
            for source in self._sources.values():
                source.ended = source.announced = source.flushing = source.is_known = False
                source.frames = source.received = 0
        elif change == Gst.StateChange.PAUSED_TO_PLAYING:
            self._held_ends.restart()
        elif change == Gst.StateChange.PAUSED_TO_READY:
            self._stop()
        done = Gst.Element.do_change_state(self, change)
        if change == Gst.StateChange.READY_TO_PAUSED and done != Gst.StateChangeReturn.FAILURE:
            self._thread = start_thread(
                self._push_batches, name="headrace-nvstreammux", failed=self.post_error
            )
        elif change == Gst.StateChange.PAUSED_TO_READY and self._thread is not None:
            self._thread.join(timeout=10)
            self._thread = None
            for source in self._sources.values():
                source.waiting.clear()
        return done

    def _stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _push_batches(self) -> None:
        trims = HeapTrims()
        while not self._stopping:
            taken = self._take()
            trims.step()
            if self._held_ends.is_due:
                self._wake_held_ends()
            ended = self._newly_ended()
            for source in ended:
                self._announce(source)
            if taken and not self._push(taken):
                return
            for source in ended:  # behind its last frame
                if source.is_known:
                    push_source_event(hash(self._src), STREAM_EOS, source.number)
            while self._gone:
                push_source_event(hash(self._src), PAD_DELETED, self._gone.pop(0))
            if not taken and self._all_ended():
                if not self.values["drop-pipeline-eos"]:
                    self._push_end()
                self._wait_for_more()

    def _wake_held_ends(self) -> None:
        waits = [sink for sink, s in list(self._sources.items()) if not (s.ended or s.waiting)]
        for name in self._held_ends.wake(waits):
            text = f"{name} kept the end of its stream back, a fault of GStreamer: it was woken"
            self.post_notices([Finding("stream-end-held", "warning", text, self.get_name())])

    def _push_end(self) -> None:
        with self._pushing:
            if self._over or not self._all_ended():  # told already, or a jump came between
                return
            if not self._started:
                self._src.push_event(Gst.Event.new_stream_start("nvstreammux"))
            self._over = True
            self._src.push_event(Gst.Event.new_eos())

    def _wait_for_more(self) -> None:
        with self._changed:
            while not (self._stopping or self._gone) and self._all_ended():
                self._changed.wait(POLL_S)

    def _all_ended(self) -> bool:
        sources = list(self._sources.values())
        return bool(sources) and all(s.ended and not s.waiting for s in sources)

    def _newly_ended(self) -> list[_Source]:
        with self._changed:
            sources = [
                s for s in self._sources.values() if s.ended and not s.waiting and not s.announced
            ]
            for source in sources:
                source.announced = True
        return sources

    def _take(self) -> list[_Taken]:
        """Wait for a batch: a frame of each source, or those there when the time is up."""
        most = self.values["batch-size"] or 1
        timeout_us = self.values["batched-push-timeout"]
        deadline: float | None = None
        with self._changed:
            while not self._stopping:
                sources = sorted(self._sources.values(), key=lambda s: s.number)
                full = [s for s in sources if s.waiting]
                open_ = [s for s in sources if not s.ended or s.waiting]
                if not open_ and sources:
                    return []
                if full:
                    now = time.monotonic()
                    if deadline is None and timeout_us >= 0:
                        deadline = now + timeout_us / 1e6
                    if len(full) >= min(most, len(open_)) or (
                        deadline is not None and now >= deadline
                    ):
                        return [(s, s.flushes, s.waiting.popleft()) for s in self._next(full, most)]
                if (
                    self._gone
                    or self._held_ends.is_due
                    or any(s.ended and not s.waiting and not s.announced for s in sources)
                ):
                    return []
                wait = (
                    POLL_S
                    if deadline is None
                    else max(0.0, min(POLL_S, deadline - time.monotonic()))
                )
                self._changed.wait(wait)
        return []

    def _next(self, full: list[_Source], most: int) -> list[_Source]:
        """Take turns where there are more sources than places."""
        if len(full) <= most:
            self._changed.notify_all()
            return full
        start = self._turn % len(full)
        self._turn += most
        self._changed.notify_all()
        return sorted((full[start:] + full[:start])[:most], key=lambda s: s.number)

    def _start_stream(self, taken: list[_Taken]) -> None:
        source, _, waiting = taken[0]
        surface, per_frame = waiting.views[0][0], self.values["num-surfaces-per-frame"]
        top, bottom = source.framerate
        caps = (
            f"video/x-raw(memory:NVMM), format=(string){_FORMAT}, width=(int){surface.width}, "
            f"height=(int){surface.height}, framerate=(fraction){top}/{bottom}, "
            f"batch-size=(int){self.values['batch-size'] or 1}, "
            f"num-surfaces-per-frame=(int){per_frame}"
        )
        self._src.push_event(Gst.Event.new_stream_start("nvstreammux"))
        self._src.push_event(Gst.Event.new_caps(Gst.Caps.from_string(caps)))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        if self._sought:
            segment.start = segment.time = min(source.start_ns for source, *_ in taken)
        self._src.push_event(Gst.Event.new_segment(segment))

    def _push(self, taken: list[_Taken]) -> bool:
        """Push a batch; False ends the stream."""
        with self._pushing:
            fresh = [one for one in taken if one[0].flushes == one[1]]
            if not fresh:
                return True
            if self._over:  # a source began anew behind the end
                self._src.push_event(Gst.Event.new_flush_start())
                self._flush_stop()
            if not self._started:
                self._start_stream(fresh)
                self._started = True
            for source in (one[0] for one in fresh if not one[0].is_known):
                push_source_event(hash(self._src), PAD_ADDED, source.number)
                source.is_known = True
            flow = self._src.push(self._batch(fresh))
        if flow == Gst.FlowReturn.FLUSHING and not self._stopping:
            return True  # a jump is under way
        if (error := refusal(flow, self._src)) is not None:
            self.post_error(error)  # before the sources hear of it, which tell less
        with self._changed:
            self._flow = flow
            self._changed.notify_all()
        return bool(flow == Gst.FlowReturn.OK)

    def _batch(self, taken: list[_Taken]) -> Gst.Buffer:
        batch = pyds.NvDsBatchMeta()
        batch.base_meta.batch_meta = batch
        batch.base_meta.meta_type = pyds.NvDsMetaType.NVDS_BATCH_META
        batch.max_frames_in_batch = (self.values["batch-size"] or 1) * max(
            len(waiting.views) for *_, waiting in taken
        )
        batch.ended, self._ended = self._ended, []
        now_ns = time.time_ns() if self.values["attach-sys-ts"] else 0
        times, durations = [], []
        for source, _, waiting in taken:
            for surface, view in waiting.views:
                frame = nvds_acquire_frame_meta_from_pool(batch)
                frame.pad_index = frame.source_id = source.number
                frame.batch_id, frame.frame_num = len(batch.surfaces), source.frames
                frame.buf_pts, frame.ntp_timestamp = waiting.pts_ns, waiting.ntp_ns or now_ns
                frame.source_frame_width, frame.source_frame_height = waiting.size
                frame.pipeline_width, frame.pipeline_height = surface.width, surface.height
                if view != _NO_VIEW:
                    frame.surface_type, frame.surface_index = view
                    frame.num_surfaces_per_frame = len(waiting.views)
                batch.surfaces.append(surface)
                nvds_add_frame_meta_to_batch(batch, frame)
            source.frames = (source.frames + 1) & UINT_MAX
            times.append(waiting.pts_ns)
            durations.append(waiting.duration_ns)
        buffer = batch_buffer(batch, _FORMAT)
        # A source behind the others may fill a batch alone: times must not go back for that.
        self._pts_ns = max(self._pts_ns + 1, *times)
        buffer.pts, buffer.duration = self._pts_ns, max(durations) or Gst.CLOCK_TIME_NONE
        return buffer

    def _announce(self, source: _Source) -> None:
        """Tell the application that a source is over, as the original does on the bus."""
        structure = Gst.Structure.from_string(f"stream-eos, stream-id=(uint){source.number}")[0]
        self.post_message(Gst.Message.new_element(self, structure))
        self._ended.append(source.number)
