"""The user's C++ function: regions of frames go to it, a tensor comes back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.types import Array
from headrace.config.enums import ColorFormat
from headrace.custom.guard.crash import LibraryDiedError
from headrace.custom.guard.keeper import can_guard
from headrace.custom.nvmot.surfaces import surface_image
from headrace.custom.preparation.host import FRAME, OBJECT, REGION
from headrace.custom.preparation.library import PreparationLibrary
from headrace.media.frame import Frame
from headrace.meta import FrameMeta, Roi
from headrace.pipeline.preparation.rules import PreparationRules

_NV12 = 6  # NvBufSurfaceColorFormat
_LABEL = 127  # bytes


class CppFunction:
    """Calls it through its library.

    The function sees metadata of one batch to read: batch, frames, objects, regions; pools, the
    buffer and user metadata are not there. Images are in main memory: the frames' in NV12, the
    scaled ones in RGBA or gray. A crash costs the tensors of one batch.

    Args:
        rules: what to prepare.
        notices: findings about the library are added here.

    Raises:
        CustomLibraryError: the library cannot be loaded, or lacks a function, or refuses to start.
    """

    def __init__(self, rules: PreparationRules, notices: list[Finding]) -> None:
        assert rules.library is not None
        self._path: Path = rules.library.absolute()
        self._notices = notices
        options = rules.guard
        if options is not None and (problem := can_guard()):
            text = f"it cannot run in a worker process: {problem}; it runs in this one"
            note_once(notices, Finding("not-guarded", "warning", text, str(self._path)))
            options = None
        settings = {
            "function": rules.function,
            "shape": list(rules.shape),
            "dtype": np.dtype(rules.dtype).str,
            "order": int(rules.order),
            "color": int(rules.color_format),
            "tensor_name": rules.tensor_name,
            "unique_id": rules.unique_id,
            "config": str(Path(rules.where).absolute()),
            "user": dict(rules.user_config),
        }
        self._gray = rules.color_format is ColorFormat.GRAY
        self._library = PreparationLibrary(self._path, settings, options)
        self._tell()

    def __call__(
        self,
        frames: Sequence[Frame],
        metas: Sequence[FrameMeta],
        rois: Sequence[Roi],
        images: npt.NDArray[np.uint8],
    ) -> tuple[Array, list[Roi]] | None:
        """Make a tensor.

        Args:
            frames, metas: of the batch.
            rois: N regions of them.
            images: (N, height, width, channels) in RGB or gray.

        Returns:
            The tensor and the region of each row; None without one: the function waits for more,
            or has ended its worker.

        Raises:
            CustomLibraryError: it failed, or its answer cannot be right, or it is given up.
        """
        surfaces = [surface_image(f, _NV12, f.width, f.height) for f in frames]
        frame_rows, objects, starts = _rows(frames, metas)
        for row, surface in zip(frame_rows, surfaces, strict=True):
            row["pitch"], row["chroma_offset"] = surface.planes[0][2], surface.planes[1][3]
        if not self._gray:
            opaque = np.full((*images.shape[:3], 1), 255, np.uint8)
            images = np.concatenate((images, opaque), axis=3)
        try:
            answer = self._library.call(
                frame_rows, [s.data for s in surfaces], objects, _regions(rois, starts), images
            )
        except LibraryDiedError as error:
            if error.death is None:
                raise
            text = "a batch goes without tensors: {error}"
            data = {"error": f"{error:brief}"}
            note_once(
                self._notices,
                Finding("preparation-failed", "warning", text, str(self._path), data),
            )
            return None
        finally:
            self._tell()
        if answer is None:
            return None
        tensor, rows = answer
        return tensor, [_roi(row, starts) for row in rows]

    def _tell(self) -> None:
        for notice in self._library.notices:
            note_once(self._notices, notice)

    def close(self) -> None:
        """End the library's worker."""
        self._library.close()


def _rows(frames: Sequence[Frame], metas: Sequence[FrameMeta]) -> tuple[Array, Array, list[int]]:
    """Rows of frames and of all their objects, and where those of each frame begin."""
    frame_rows = np.zeros(len(frames), FRAME)
    for row, frame, meta in zip(frame_rows, frames, metas, strict=True):
        row["source_id"], row["number"] = frame.source_id, meta.frame
        row["width"], row["height"] = frame.width, frame.height
        row["pts_ns"] = max(0, meta.pts_ns or 0)
    counts = [len(meta.objects) for meta in metas]
    starts = [0, *np.cumsum(counts).tolist()]
    objects = np.zeros(starts[-1], OBJECT)
    for index, meta in enumerate(metas):
        rows, some = objects[starts[index] : starts[index + 1]], meta.objects
        rows["frame"] = index
        rows["object_id"], rows["class_id"] = some.object_ids, some.class_ids
        rows["component_id"], rows["confidence"] = some.component_ids, some.confidences
        for column, name in enumerate(("left", "top", "width", "height")):
            rows[name] = some.rects[:, column]
        for at, row in enumerate(rows):
            row["label"] = some[at].label.encode(errors="replace")[:_LABEL]
    return frame_rows, objects, starts


def _regions(rois: Sequence[Roi], starts: Sequence[int]) -> Array:
    rows = np.zeros(len(rois), REGION)
    for row, roi in zip(rows, rois, strict=True):
        for name in ("ratio_x", "ratio_y", "offset_left", "offset_top"):
            row[name] = getattr(roi, name)
        row["left"], row["top"], row["width"], row["height"] = (
            roi.left, roi.top, roi.width, roi.height
        )  # fmt: skip
        row["frame"] = roi.frame_index
        row["object"] = (
            -1 if roi.object_index is None else starts[roi.frame_index] + roi.object_index
        )
    return rows


def _roi(row: np.void, starts: Sequence[int]) -> Roi:
    frame, at = int(row["frame"]), int(row["object"])
    inside = starts[frame] <= at < starts[frame + 1]
    left, top, width, height = (float(row[n]) for n in ("left", "top", "width", "height"))
    return Roi(
        frame,
        left,
        top,
        width,
        height,
        ratio_x=float(row["ratio_x"]),
        ratio_y=float(row["ratio_y"]),
        offset_left=int(row["offset_left"]),
        offset_top=int(row["offset_top"]),
        object_index=at - starts[frame] if inside else None,
    )
