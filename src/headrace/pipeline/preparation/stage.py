"""`nvdspreprocess` as a step of a pipeline: tensors of a batch for the models behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headrace._core.findings import Finding
from headrace.infer.batch import Batch
from headrace.media.frame import Frame
from headrace.meta import FrameMeta
from headrace.meta.figures import Point, Stroke
from headrace.pipeline.preparation.preparer import TensorPreparer
from headrace.pipeline.preparation.rules_file import load_preparation


class Preparation:
    """A probe that prepares the tensors of regions or objects, and draws the regions.

    Args:
        path: a config file of `nvdspreprocess`; regions are in pixels of the pipeline's frames.
        operate_on: the model whose objects are cut out, over the file's; None leaves the file's.

    Raises:
        ConfigError: the file is refused.
        CustomLibraryError: its function cannot be loaded.
    """

    def __init__(self, path: Path, operate_on: int | None = None) -> None:
        rules = load_preparation(path)
        if operate_on is not None:
            rules = replace(rules, operate_on=operate_on)
        self._preparer = TensorPreparer(rules)
        self._by_buffer = any(group.interval for group in rules.groups)
        self.notices: Sequence[Finding] = self._preparer.notices

    def __call__(self, batch: Batch) -> None:
        """Add tensors to a batch; intervals count buffers, as the original's batches."""
        if not self._by_buffer:
            batch.tensors += self._preparer(batch.frames, batch.metas)
        else:
            for _, places in batch.by_buffer():
                frames = [batch.frames[i] for i in places]
                for tensor in self._preparer(frames, [batch.metas[i] for i in places]):
                    for roi in tensor.rois:
                        roi.frame_index = places[roi.frame_index]
                    batch.tensors.append(tensor)
        for frame, meta in batch:
            self._draw(frame, meta)

    def close(self) -> None:
        """End the worker of the user's function."""
        self._preparer.close()

    def _draw(self, frame: Frame, meta: FrameMeta) -> None:
        drawn = self._preparer.drawn(frame)
        if drawn is None:
            return
        rects, color = drawn
        red, green, blue, alpha = color
        for left, top, width, height in rects:
            corners: tuple[Point, ...] = (
                (left, top), (left + width, top), (left + width, top + height), (left, top + height)
            )  # fmt: skip
            meta.figures.append(Stroke(corners, (red, green, blue, alpha), closed=True))
