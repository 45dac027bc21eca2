"""Sinks: where frames and results are written to. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.lazy import lazy

if TYPE_CHECKING:
    from noria.media.sinks.base import Sink
    from noria.media.sinks.class_maps import ClassMapSink
    from noria.media.sinks.coco import CocoSink
    from noria.media.sinks.images import ImageSink
    from noria.media.sinks.jsonl import JsonLinesSink
    from noria.media.sinks.kitti import KittiSink, KittiTrackSink
    from noria.media.sinks.naming import expand_sink_path, has_placeholder
    from noria.media.sinks.opening import SINK_KINDS, check_sinks, open_sink, split_spec
    from noria.media.sinks.table import ArrowSink, ParquetSink
    from noria.media.sinks.video import VideoSink
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".base": "Sink",
            ".class_maps": "ClassMapSink",
            ".coco": "CocoSink",
            ".images": "ImageSink",
            ".jsonl": "JsonLinesSink",
            ".kitti": "KittiSink KittiTrackSink",
            ".naming": "expand_sink_path has_placeholder",
            ".opening": "SINK_KINDS check_sinks open_sink split_spec",
            ".table": "ArrowSink ParquetSink",
            ".video": "VideoSink",
        },
    )

__all__ = [
    "SINK_KINDS",
    "ArrowSink",
    "ClassMapSink",
    "CocoSink",
    "ImageSink",
    "JsonLinesSink",
    "KittiSink",
    "KittiTrackSink",
    "ParquetSink",
    "Sink",
    "VideoSink",
    "check_sinks",
    "expand_sink_path",
    "has_placeholder",
    "open_sink",
    "split_spec",
]
