"""An inferencer that works on frames, as a stage that works on batches."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from noria.infer.batch import Batch
from noria.infer.inferencer import Inferencer, Prepared, StageTimes
from noria.notices import Notice

__all__ = ["DetectorStage"]


class DetectorStage:
    """Gives `Inferencer.prepare`, `submit` and `finish` the shape of a `Stage`."""

    def __init__(self, inferencer: Inferencer) -> None:
        self.inferencer = inferencer
        self.name = inferencer.config.path.name
        self.streams = inferencer.streams
        self.config = inferencer.config
        self.inferred_items = 0

    @property
    def times(self) -> StageTimes:
        return self.inferencer.times

    @property
    def failed_items(self) -> int:
        return self.inferencer.failed_frames

    @property
    def notices(self) -> list[Notice]:
        return self.inferencer.notices

    def begin(self, batch: Batch) -> Any:
        period, size = self.config.interval + 1, self.config.batch_size
        chosen = [i for i, number in enumerate(batch.buffers) if number % period == 0]
        running: list[tuple[list[int], Prepared, Future[dict[str, Any]]]] = []
        for start in range(0, len(chosen), size):
            places = chosen[start : start + size]
            prepared = self.inferencer.prepare([batch.frames[i] for i in places])
            running.append((places, prepared, self.inferencer.submit(prepared)))
        return batch, running

    def complete(self, pending: Any) -> None:
        batch, running = pending
        for places, prepared, outputs in running:
            metas = self.inferencer.finish(prepared, outputs.result())
            for i, meta in zip(places, metas, strict=True):
                batch.metas[i].objects = meta.objects
                batch.metas[i].inferred = meta.inferred
            self.inferred_items += len(places)

    def end_of_stream(self, source_id: int) -> None:
        """Nothing is kept from frame to frame."""
