"""nvstreamdemux: each source of a batch on a pad of its own."""

from __future__ import annotations

from headrace.gstreamer import pyds
from headrace.gstreamer.elements.bindings import Element, Gst, structure_of
from headrace.gstreamer.elements.convert import relabelled
from headrace.gstreamer.elements.element import NVMM, NvElement, pad, weakly
from headrace.gstreamer.elements.properties import Property
from headrace.gstreamer.elements.tree import batch_buffer, frames_of
from headrace.gstreamer.pyds.functions import nvds_add_frame_meta_to_batch


class NvStreamDemux(NvElement, Element):
    """Pushes the frames of source N through the pad `src_N`."""

    __gtype_name__ = "GstNvStreamDemux"
    ABOUT = ("Stream demultiplexer", "Generic", "Takes batches apart")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM), pad("src_%u", "src", "request", NVMM)
    )  # fmt: skip
    PROPERTIES = {"per-stream-eos": Property("bool", False, "a source's end goes on at once")}

    def __init__(self) -> None:
        super().__init__()
        self._outputs: dict[int, Gst.Pad] = {}
        self._started: set[int] = set()
        self._dropped: set[int] = set()  # sources without a linked pad
        self._ended: set[int] = set()
        self._caps: Gst.Caps | None = None
        self._format = "NV12"
        sink = Gst.Pad.new_from_template(self.template("sink"), "sink")
        sink.set_chain_function_full(weakly(self._chain, Gst.FlowReturn.EOS))
        sink.set_event_function_full(weakly(self._event, False))
        self.add_pad(sink)
        self.setup()

    def do_request_new_pad(
        self, template: Gst.PadTemplate, name: str | None, caps: Gst.Caps
    ) -> Gst.Pad:
        """Make the pad of a source; its number is that of the name, else the lowest free."""
        number = next(i for i in range(len(self._outputs) + 1) if i not in self._outputs)
        if name and name.rpartition("_")[2].isdigit():
            number = int(name.rpartition("_")[2])
        else:
            name = f"src_{number}"
        if number in self._outputs:
            return None
        src = Gst.Pad.new_from_template(template, name)
        src.set_active(True)
        self._outputs[number] = src
        self.add_pad(src)
        return src

    def do_release_pad(self, src: Gst.Pad) -> None:
        """Forget a pad."""
        outputs = {} if self.disposed else self._outputs
        for number, known in list(outputs.items()):
            if known is src or known.get_name() == src.get_name():
                del outputs[number]
                self._started.discard(number)
        src.set_active(False)
        self.remove_pad(src)

    def _event(self, sink: Gst.Pad, parent: Gst.Object, event: Gst.Event) -> bool:
        match event.type:
            case Gst.EventType.CAPS:
                self._caps = relabelled(event.parse_caps(), True, put={"batch-size": 1})
                self._format = structure_of(self._caps).get_string("format")
                self._started.clear()
                self._ended.clear()
                return True
            case Gst.EventType.STREAM_START | Gst.EventType.SEGMENT:
                return True  # each output has its own
            case Gst.EventType.EOS:
                for number in list(self._outputs):
                    self._end(number)
                return True
        return bool(sink.event_default(parent, event))

    def _start(self, number: int, src: Gst.Pad) -> None:
        if number in self._started:
            return
        self._started.add(number)
        src.push_event(Gst.Event.new_stream_start(f"nvstreamdemux/{number}"))
        if self._caps is not None:
            src.push_event(Gst.Event.new_caps(self._caps))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        src.push_event(Gst.Event.new_segment(segment))

    def _end(self, number: int) -> None:
        src = self._outputs.get(number)
        if src is not None and number not in self._ended:
            self._ended.add(number)
            self._start(number, src)
            src.push_event(Gst.Event.new_eos())

    def _chain(self, sink: Gst.Pad, parent: Gst.Object, buffer: Gst.Buffer) -> Gst.FlowReturn:
        try:
            return self._push_frames(buffer)
        except Exception as error:  # PyGObject would print it and go on
            self.post_error(error)
            return Gst.FlowReturn.ERROR

    def _push_frames(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        batch = self.batch_of(buffer)
        for frame in frames_of(batch):
            number = int(frame.source_id)
            src = self._outputs.get(number)
            if src is None or not src.is_linked():
                if number not in self._dropped:
                    self._dropped.add(number)
                    self.post_warning(f"nothing is linked to src_{number}: its frames are dropped")
                continue
            self._start(number, src)
            one = pyds.NvDsBatchMeta()
            one.base_meta.meta_type = pyds.NvDsMetaType.NVDS_BATCH_META
            one.max_frames_in_batch = 1
            one.surfaces = [batch.surfaces[frame.batch_id]]
            frame.batch_id = 0
            nvds_add_frame_meta_to_batch(one, frame)
            outbuf = batch_buffer(one, self._format)
            outbuf.pts, outbuf.duration = frame.buf_pts, buffer.duration
            flow = src.push(outbuf)
            if flow not in (Gst.FlowReturn.OK, Gst.FlowReturn.NOT_LINKED, Gst.FlowReturn.EOS):
                return flow
        if self.values["per-stream-eos"]:
            for number in batch.ended:
                self._end(number)
        return Gst.FlowReturn.OK
