"""Watchers of a pipeline: rates of its sources, and a model file that changes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Event

from headrace._core.threads import say_failure, start_thread
from headrace.gstreamer.elements.logger import Rates
from headrace.gstreamer.servicemaker.media import (
    FrameSampler,
    MediaChunk,
    MediaExtractor,
    VideoFrame,
)
from headrace.gstreamer.servicemaker.metadata import BatchMetadata
from headrace.gstreamer.servicemaker.nodes import Node
from headrace.gstreamer.servicemaker.probes import BatchMetadataOperator, Probe

_POLL_S = 0.5

__all__ = [
    "EngineFileMonitor",
    "FrameSampler",
    "MediaChunk",
    "MediaExtractor",
    "PerfMonitor",
    "VideoFrame",
]


class _Counter(BatchMetadataOperator):
    def __init__(self, monitor: PerfMonitor) -> None:
        self._monitor = monitor

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        self._monitor.count(batch_meta)


class PerfMonitor:
    """Prints the frames a second of each source.

    Args:
        batch_size: accepted.
        interval: seconds between two lines.
        source_type: accepted.
        show_name: True prints the name of a source that has one.
    """

    def __init__(
        self, batch_size: int, interval: float = 5, source_type: str = "", show_name: bool = True
    ) -> None:
        self._interval, self._show_name = interval, show_name
        self._rates = Rates()
        self._paused = False

    def apply(self, node: Node, tips: str = "") -> None:
        """Count the frames that pass a pad of an element."""
        Probe("perf-monitor", _Counter(self)).connect(node, tips, self._failed)

    def _failed(self, error: BaseException) -> None:
        raise error

    def count(self, batch: BatchMetadata) -> None:
        """Count the frames of a batch."""
        if not self._paused:
            self._rates.count(int(frame.source_id) for frame in batch.frame_items)
            self._rates.print_every(self._interval)

    def add_stream(
        self, source_id: int, uri: str = "", sensor_id: str = "", sensor_name: str = ""
    ) -> None:
        """Give a source its name."""
        if self._show_name and (sensor_name or sensor_id):
            self._rates.names[source_id] = sensor_name or sensor_id

    def remove_stream(self, source_id: int) -> None:
        """Forget a source."""
        self._rates.forget(source_id)

    def pause(self) -> None:
        """Count no frames until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """Count again."""
        self._paused = False


class EngineFileMonitor:
    """Loads a model anew when its file changes, while the pipeline runs.

    Args:
        node: an `nvinfer`.
        path: of the engine; empty watches nothing.

    Attributes:
        started: True after `start`.
    """

    def __init__(self, node: Node, path: str | Path | None) -> None:
        self._node, self._path = node, Path(path) if path else None
        self._ended = Event()
        self.started = False

    def start(self) -> None:
        """Watch the file from now on."""
        self.started = True
        self._ended.clear()
        if self._path is not None:
            start_thread(
                partial(self._watch, self._path),
                name="headrace-engine-file",
                failed=partial(say_failure, f"the watch over {self._path}"),
            )

    def stop(self) -> None:
        """End the watch."""
        self.started = False
        self._ended.set()

    def _watch(self, path: Path) -> None:
        known = _changed_s(path)
        while not self._ended.wait(_POLL_S):
            if (changed := _changed_s(path)) not in (known, 0.0):
                known = changed
                self._node.set("model-engine-file", str(path))


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # not there, or not yet
