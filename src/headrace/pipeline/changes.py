"""Changes and measurements of a pipeline that runs."""

from __future__ import annotations

import threading
from dataclasses import is_dataclass, replace
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol

from headrace._core.errors import HeadraceError
from headrace.media.sinks.base import OutputState, Sink
from headrace.pipeline.outlet import Recorder
from headrace.pipeline.report import drop_notice
from headrace.pipeline.turns import never_inferred

if TYPE_CHECKING:
    from collections import deque

    from headrace._core.findings import Finding
    from headrace.media import Source
    from headrace.pipeline.durations import Durations
    from headrace.pipeline.mux import Muxer
    from headrace.pipeline.outlet import Outlet
    from headrace.pipeline.report import Meter
    from headrace.pipeline.segment import Segment


_DRAIN_S = 1.0  # for batches that a model had begun before it was replaced


class Companion(Protocol):
    """Works beside a pipeline in a thread of its own, and changes nothing of its frames."""

    notices: list[Finding]

    def follow(self, pipeline: Any) -> None:
        """Begin."""

    def close(self) -> None:
        """End."""


class RunningChanges:
    """Changes parts of a pipeline between two batches; a base of `Pipeline`."""

    _mux: Muxer
    _outlet: Outlet
    _segments: list[Segment]
    _meters: list[Meter]
    _left: deque[Finding]
    _owned: list[Any]
    _companions: list[Companion]
    _run_size: int
    stages: list[Any]
    sources: list[Source]
    _keep_open: bool
    _state: str
    _coming_and_going: threading.Lock
    _next_id: int

    def _require_open_for_sources(self) -> None:
        if not self._keep_open or self._state == "done" or self._mux.stopping:
            why = "its run is over" if self._keep_open else "it was made without keep_open=True"
            raise HeadraceError(f"no source can be added: {why}", where=repr(self))

    def _new_id(self, least: int) -> int:
        """The id of another source: `least`, or the next that no source has had."""
        with self._coming_and_going:
            number = max(least, self._next_id)
            self._next_id = number + 1
        return number

    def attach(self, companion: Companion) -> None:
        """Let a companion begin; it is closed with the pipeline, and its notices are of the run."""
        self._companions.append(companion)
        self._owned.append(companion)
        companion.follow(self)

    def _companion_notices(self) -> list[Finding]:
        return [notice for companion in self._companions for notice in companion.notices]

    @property
    def models(self) -> list[Any]:
        """The models among the stages, in their order."""
        return self._models()

    @property
    def interval(self) -> int:
        """Buffers skipped between two that the primary models run on."""
        return self._mux.interval

    def set_interval(self, interval: int) -> None:
        """Change the interval of the primary models from the next buffer on; any thread.

        Raises:
            HeadraceError: it is negative, or no model has one.
        """
        primary = [model for model in self._models() if not model.secondary]
        if interval < 0 or not primary:
            why = "is negative" if interval < 0 else "no model has one"
            raise HeadraceError(f"interval={interval}: {why}", where=repr(self))
        for model in primary:
            model.interval = interval
        self._mux.interval = interval
        self._watch_turns()

    def _watch_turns(self) -> None:
        """Warn where sources that came, went, or a new interval leave some without inference."""
        primary = [model.interval for model in self._models() if not model.secondary]
        count, size = len(self.sources), self._mux.buffer_size
        self._left += never_inferred(count, size, primary, live=self._mux.live)

    @property
    def batch_timeout_s(self) -> float:
        """How long a buffer of live sources waits for frames of the others; may be changed."""
        return self._mux.timeout_s

    @batch_timeout_s.setter
    def batch_timeout_s(self, seconds: float) -> None:
        self._mux.timeout_s = seconds

    def change_drawing(self, **options: Any) -> None:
        """Change options of the `Painter` of the outputs, from the next frame on; any thread.

        Outputs that show images as they come, and those without images, are left alone.
        """
        painter = self._outlet.painter
        if is_dataclass(painter) and not isinstance(painter, type):
            self._outlet.painter = replace(painter, **options)

    @property
    def latency(self) -> Durations:
        """How long each batch took from its oldest frame to the end of its writing."""
        return self._outlet.latency

    @property
    def source_latencies(self) -> dict[int, Durations]:
        """From the packet of a frame to its metadata, by the id of each live source."""
        return self._mux.latencies()

    @property
    def outputs(self) -> list[OutputState]:
        """The state of each output that is a file, a stream or a broker."""
        return [s.state for s in self._outlet.sinks if isinstance(s, Sink) and s.kind != "view"]

    def drops(self) -> list[Finding]:
        """List a notice for each live source that dropped frames."""
        return [n for report in self._mux.reports if (n := drop_notice(report)) is not None]

    def frame_ages(self) -> dict[int, float | None]:
        """Seconds since the latest frame of each source that is not over; None before the first."""
        return self._mux.frame_ages()

    def note(self, notice: Finding) -> None:
        """Add a notice to those of the run; any thread."""
        self._left.append(notice)

    def restart_model(self, index: int) -> None:
        """Load a model anew, in the place of the present one, which may be stuck; any thread.

        Args:
            index: among `models`.

        Raises:
            HeadraceError: there is none that can be, or it cannot be loaded; the present one stays.
        """
        segment = self.model_segments[index] if 0 <= index < len(self.model_segments) else None
        old: Any = None if segment is None else segment.stage
        if segment is None or segment.care is None or not hasattr(old, "reopened"):
            raise HeadraceError(f"there is no model {index} that can be restarted")
        stage = old.reopened()
        stage.restart(self._run_size, live=True)
        stuck = segment.care.stuck
        segment.stage = stage
        segment.care.forget()
        self.stages = [stage if item is old else item for item in self.stages]
        self._owned[:] = [stage if item is old else item for item in self._owned]
        for meter in self._meters:
            if meter.model is old:
                meter.model = stage
        if not stuck:  # else it would be waited for
            sleep(_DRAIN_S)
            old.close()

    @property
    def model_segments(self) -> list[Segment]:
        """The segments with a model, in the order of `models`."""
        return [segment for segment in self._segments if segment.stage is not None]

    def record_clip(
        self, source_id: int, *, back_s: float | None = None, length_s: float | None = None
    ) -> bool:
        """Record a clip of a source around now, as after an event. Safe from any thread.

        Args:
            source_id: the source.
            back_s: seconds ahead of now at which it begins, as far as packets are kept; None as
                the output says.
            length_s: seconds from there to its end; None as the output says.

        Returns:
            False if the source is not there, or is no video.

        Raises:
            HeadraceError: no output of the pipeline takes clips.
        """
        several = [r.record(source_id, back_s=back_s, length_s=length_s) for r in self._recorders()]
        return any(several)

    def stop_clip(self, source_id: int) -> bool:
        """End the clip of a source before its time. Safe from any thread.

        Returns:
            False if the source is not there, or is no video.

        Raises:
            HeadraceError: no output of the pipeline takes clips.
        """
        ended = [recorder.end_recording(source_id) for recorder in self._recorders()]
        return any(ended)

    def _recorders(self) -> list[Recorder]:
        recorders: list[Recorder] = [
            sink for sink in self._outlet.sinks if isinstance(sink, Recorder)
        ]
        if not recorders:
            raise HeadraceError(
                "no output takes clips", where=repr(self), fix="-o 'clip:DIR?on=call' is one"
            )
        return recorders

    @property
    def durations(self) -> dict[str, Durations]:
        """How long each step takes: `decode` a frame, a model by its name a batch, `write` one.

        A model's time is from the begin of a batch to its end, with the waiting for the engine.
        """
        durations = {"decode": self._mux.reading}
        for segment in self._segments:
            name = "steps" if segment.stage is None else str(segment.stage.name)
            durations[name if name not in durations else f"{name}-{len(durations)}"] = (
                segment.running
            )
        if self._outlet.sinks:
            durations["write"] = self._outlet.writing
        return durations

    def _models(self) -> list[Any]:
        return [s.stage for s in self._segments if s.stage is not None]
