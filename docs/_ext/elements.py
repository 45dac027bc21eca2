"""The page docs/elements.md: each part of an application, on every road."""

# ruff: noqa: E501 (a table: one part per line)

from __future__ import annotations

from typing import NamedTuple

_HEAD = """# Elements on every road

A part of an application, and its name on each road: the group of a deepstream-app config, the key
of a pipeline file, the Python name, and the GStreamer element. `make schema` writes this page; a
test holds that every name is there. A cell that begins with "not:" gives the reason and the way on.
"""
_ROADS = ("Part", "Application config", "Pipeline file", "Python", "GStreamer")


class Element(NamedTuple):
    """One part; names with blanks between them."""

    part: str
    group: str
    key: str
    python: str
    gstreamer: str


ELEMENTS = (
    Element("files, streams, cameras", "[sourceN]", "sources", "open_source", "nvurisrcbin"),
    Element("a list of sources, driven by REST", "[source-list]", "rest", "Pipeline.add_source", "nvmultiurisrcbin"),
    Element("views of a wide lens", "[dewarperN]", "sources.dewarper", "not: name them in a pipeline file", "nvdewarper"),
    Element("batches of one size", "[streammux]", "frame-size", "Pipeline", "nvstreammux"),
    Element("tensors of regions", "[pre-process]", "models.preprocess", "not: name them in a pipeline file", "nvdspreprocess"),
    Element("tensors of objects", "[secondary-pre-processN]", "models.preprocess-gie-id", "not: name them in a pipeline file", "nvdspreprocess"),
    Element("the detector", "[primary-gie]", "models", "Inferencer", "nvinfer"),
    Element("a Triton model", "[primary-gie]", "models.config", "Inferencer", "nvinferserver"),
    Element("models of objects", "[secondary-gieN]", "models.process-mode", "Inferencer", "nvinfer"),
    Element("the tracker", "[tracker]", "tracker", "Tracker", "nvtracker"),
    Element("regions and lines", "[nvds-analytics]", "analytics", "open_pipeline", "nvdsanalytics"),
    Element("the mosaic", "[tiled-display]", "tiler", "Tiler", "nvmultistreamtiler"),
    Element("one output a source", "[sinkN]", "sinks.source", "Route", "nvstreamdemux"),
    Element("drawing", "[osd]", "osd", "Painter", "nvdsosd"),
    Element("class maps", "not: they are drawn without it", "osd.show-masks", "Painter", "nvsegvisual"),
    Element("video files", "[sinkN]", "sinks.codec", "open_sink", "nvv4l2h264enc nvv4l2h265enc"),
    Element("an RTSP server", "[sinkN]", "sinks.uri", "open_sink", "nvrtspoutsinkbin"),
    Element("a window", "not: --view shows a page", "not: --view shows a page", "not: --view shows a page", "nveglglessink nv3dsink"),
    Element("messages out", "[sinkN]", "sinks.uri", "open_sink", "nvmsgconv nvmsgbroker"),
    Element("one converter for several brokers", "[message-converter]", "sinks.uri", "open_sink", "nvmsgconv"),
    Element("messages in", "[message-consumerN]", "consumers", "Pipeline.record_clip", "not: call start-sr of the source"),
    Element("errors of sources as messages", "[source-list]", "errors-to", "Pipeline.on_event", "not: read the bus"),
    Element("recordings", "[sourceN]", "sinks.kind", "Pipeline.stop_clip", "nvurisrcbin"),
    Element("images of frames and objects", "[img-save]", "sinks.kind", "open_sink", "nvjpegenc"),
    Element("rates while it runs", "[application]", "rates-interval-s", "Pipeline.snapshot", "nvdslogger"),
    Element("a probe of your own", "not: use Python or a pipeline of GStreamer", "not: use Python", "Pipeline", "not: a pad probe is GStreamer's own"),
)  # fmt: skip


def _cell(text: str) -> str:
    return text if text.startswith("not:") else " ".join(f"`{name}`" for name in text.split())


def page() -> str:
    """Return the page."""
    rows = [f"| {' | '.join(_ROADS)} |", f"|{'---|' * len(_ROADS)}"]
    rows += [f"| {element.part} | {' | '.join(map(_cell, element[1:]))} |" for element in ELEMENTS]
    return _HEAD + "\n" + "\n".join(rows) + "\n"
