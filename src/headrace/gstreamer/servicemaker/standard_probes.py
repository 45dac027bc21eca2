"""Operators that pipelines name: rates, latencies, counts, events, KITTI files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from headrace._core.files import write_where_named
from headrace.gstreamer.elements.logger import Rates
from headrace.gstreamer.servicemaker import osd
from headrace.gstreamer.servicemaker.metadata import BatchMetadata, ObjectMetadata
from headrace.gstreamer.servicemaker.probes import BatchMetadataOperator, probe
from headrace.meta import UNTRACKED_OBJECT_ID

_NS_PER_MS = 1e6


@probe("measure_fps_probe", {"interval": ("integer", 5, "seconds between two lines")})
class FpsMeter(BatchMetadataOperator):
    """Prints the frames a second of each source."""

    def __init__(self) -> None:
        self._rates = Rates()

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        """Count the frames of a batch."""
        self._rates.count(int(frame.source_id) for frame in batch_meta.frame_items)
        self._rates.print_every(max(1, int(self.get_property("interval"))))


@probe("measure_latency_probe")
class LatencyMeter(BatchMetadataOperator):
    """Prints the time of each frame since the multiplexer took it, with `attach-sys-ts`."""

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        """Print the latencies of a batch."""
        now_ns = time.time_ns()
        for frame in batch_meta.frame_items:
            if frame.ntp_timestamp:
                latency = (now_ns - frame.ntp_timestamp) / _NS_PER_MS
                where = f"Source id = {frame.source_id} Frame_num = {frame.frame_number}"
                print(f"{where} Frame latency = {latency:.3f} (ms)", flush=True)


@probe("sample_video_probe", {"font-size": ("integer", 12, "size of the text")})
class CountMarker(BatchMetadataOperator):
    """Writes the numbers of persons (class 2) and vehicles (class 0) into each image."""

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        """Mark the frames of a batch."""
        for frame in batch_meta.frame_items:
            classes = [one.class_id for one in frame.object_items]
            text = osd.Text()
            text.display_text = f"Person={classes.count(2)},Vehicle={classes.count(0)}"
            text.x_offset, text.y_offset = 10, 12
            text.font.name, text.font.size = osd.FontFamily.Serif, self.get_property("font-size")
            text.font.color = osd.Color(1.0, 1.0, 1.0)
            text.set_bg_color, text.bg_color = True, osd.Color()
            display = batch_meta.acquire_display_meta()
            display.add_text(text)
            frame.append(display)


@probe(
    "add_message_meta_probe",
    {
        "frame-interval": ("integer", 1, "every Nth frame"),
        "source-config": ("string", "", "list of sources: names of cameras"),
        "label-file": ("string", "", "labels, one a line"),
    },
)
class EventMaker(BatchMetadataOperator):
    """Attaches an event for each object, for `nvmsgconv`."""

    def __init__(self) -> None:
        self._labels: list[str] | None = None
        self._sensors: list[Any] = []

    def _prepare(self) -> list[str]:
        from headrace.gstreamer.servicemaker.description import SourceConfig

        if path := self.get_property("source-config"):
            config = SourceConfig()
            config.load(path)
            self._sensors = config.sensor_list
        path = self.get_property("label-file")
        return Path(path).read_text().split("\n") if path else []

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        """Attach the events of a batch."""
        if self._labels is None:
            self._labels = self._prepare()
        for frame in batch_meta.frame_items:
            if frame.frame_number % max(1, int(self.get_property("frame-interval"))):
                continue
            known = frame.source_id < len(self._sensors)
            sensor = self._sensors[frame.source_id] if known else None
            for one in frame.object_items:
                event = batch_meta.acquire_event_message_meta()
                name, uri = (sensor.sensor_id, sensor.uri) if sensor else ("N/A", "N/A")
                event.generate(one, frame, name, uri, self._labels)
                frame.append(event)


@probe(
    "kitti_dump_probe",
    {
        "kitti-dir": ("string", "/tmp/kitti", "folder of the files"),
        "tracker-kitti-output": ("boolean", False, "boxes of the tracker"),
    },
)
class KittiWriter(BatchMetadataOperator):
    """Writes a file for each frame, with a line for each object; makes the folder."""

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        """Write the files of a batch."""
        folder = Path(self.get_property("kitti-dir"))
        folder.mkdir(parents=True, exist_ok=True)
        tracked = bool(self.get_property("tracker-kitti-output"))
        for frame in batch_meta.frame_items:
            path = folder / f"{frame.pad_index:03d}_{frame.frame_number:06d}.txt"
            text = "".join(_kitti_line(one, tracked) for one in frame.object_items)
            write_where_named(path, text.encode(errors="backslashreplace"), durable=False)


def _kitti_line(one: ObjectMetadata, tracked: bool) -> str:
    box = one.meta.tracker_bbox_info.org_bbox_coords if tracked else one.rect_params
    number = "" if one.object_id == UNTRACKED_OBJECT_ID and not tracked else f" {one.object_id}"
    corners = (box.left, box.top, box.left + box.width, box.top + box.height)
    score = one.tracker_confidence if tracked else one.confidence
    numbers = " ".join(f"{value:f}" for value in corners)
    return f"{one.label}{number} 0.0 0 0.0 {numbers} {'0.0 ' * 7}{score:f}\n"
