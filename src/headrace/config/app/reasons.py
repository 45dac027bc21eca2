"""Why keys of deepstream-app configs have no effect, or another one, in words."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._core.findings import Level


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something has no effect; a warning when results or outputs differ by it."""

    level: Level
    text: str


def unused(*rows: tuple[Reason, str]) -> dict[str, Reason]:
    """Reasons by key, from each reason with the names of its keys."""
    return {name: reason for reason, names in rows for name in names.split()}


HARDWARE = Reason("info", "memory kinds, GPUs and hardware units are not chosen here")
SPEED = Reason("info", "speeds are always measured and reported")
TRANSPORT = Reason("info", "buffers of the transport are chosen by themselves")
RTSP_FEED = Reason("info", "the RTSP server of type=4 gets its images without a port between")
CLOCK = Reason("info", "frames keep the times of their stream")
DECODE = Reason("warning", "every frame is decoded")
SEI = Reason("warning", "data inside the video stream is not read")
AUDIO = Reason("warning", "there is no audio")
DUMPS = Reason("warning", "trackers write no files")
SYNC = Reason("warning", "sources are not held to the clocks of their senders")
NEW_MUX = Reason("info", "it counts for the original's new muxer alone (USE_NEW_NVSTREAMMUX=yes)")
OWN_SIZE = Reason("info", "trackers but libraries of the user look at frames in their own size")
PAST = Reason("info", "past frames are metadata of the GStreamer element nvtracker alone")
RESET = Reason("warning", "tracking ids are never reset and never reused")
REID = Reason("warning", "trackers use no tensors of other models")
SURFACE_SOURCE = Reason("info", "it is a number in the metadata of the original's surfaces alone")
WINDOW = Reason("info", "they are the size of a window")
PACE = Reason("info", "frames are written as they come, not at the pace of playing")
CONVERTER = Reason(
    "info",
    "messages are made of the objects that the frames carry, and sent by the broker's own client",
)
ENCODERS = Reason("warning", "only models of nvinfer are run")
IDENTITY = Reason("info", "it names nothing here")
OLD_TRACKER = Reason("warning", "a tracker's settings are those of ll-config-file")
RECREATE = Reason("info", "the pipeline is not set up again while it runs")
NOTHING_THERE = Reason("info", "the original reads it and passes it on to nothing")
LISTED = Reason("info", "each item of the list has its own")
LABELS = Reason(
    "info", "as in the original, labels come from the model's own file; --labels replaces them"
)
OF_OBJECTS = Reason("info", "regions of whole frames are cut out of no objects, as in the original")
