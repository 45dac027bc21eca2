"""Items of one run of the engine: frames, crops, or regions of the caller; decisions on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import field

from headrace._core.errors import ParserError
from headrace._core.plain_record import PlainRecord
from headrace.infer.attach import AttachResult
from headrace.infer.cluster import ClusterResult
from headrace.infer.geometry import Crops, Rect, ScaleTransform
from headrace.meta import ClassifierMeta, Detections, FrameMeta, Roi, SegmentationMeta
from headrace.meta.detections import BatchDetections, FloatArray, IntArray

if TYPE_CHECKING:
    from headrace.infer.selection import Selection
    from headrace.media.frame import Frame


class FramePiece(PlainRecord, frozen=True):
    """Items from one frame: where they are cropped, and where they lie in the network input.

    Attributes:
        src, dst: (N, 4) int32 of `Preprocessor.place` or `fitted`; zeros of what has no area.
        whole: True for the whole frame, whose tables other frames share.
    """

    frame: Frame
    src: IntArray
    dst: IntArray
    whole: bool = False


def split_pieces(pieces: list[FramePiece], most: int) -> Iterator[tuple[list[FramePiece], int]]:
    """Parts of at most `most` items in order, each with its number of items."""
    part: list[FramePiece] = []
    count = 0
    for piece in pieces:
        start = 0
        while start < len(piece.src):
            end = min(len(piece.src), start + most - count)
            part.append(
                FramePiece(piece.frame, piece.src[start:end], piece.dst[start:end], piece.whole)
            )
            count, start = count + end - start, end
            if count == most:
                yield part, count
                part, count = [], 0
    if count:
        yield part, count


class Items(PlainRecord):
    """N items in the order of the engine's batch.

    Attributes:
        metas: the frame of each item.
        frames: its image; empty where the caller prepared the tensors.
        objects: the object of each item in its frame; None for whole frames, -1 in a region that
            shows no object.
        rects: (N, 4) float32 left, top, width, height of the crops in frame pixels, as they were
            when they were chosen; None for whole frames.
        rois: the regions of tensors that the caller prepared.
        transforms: where each item lies in the network input; None for one without area. Filled
            when whole frames are scaled.
        crops: the same for objects, a part for each frame in turn.
        parts: the selections that the items are from: selection, place of the first item in
            `selection.infer`, number of items.
        parsed: the boxes of all valid items, where an engine's thread has read them already.
        cached: frames with objects that keep an earlier result, each with the number of items of
            this run that came before it: what these say is remembered first.
    """

    metas: list[FrameMeta]
    frames: list[Frame] = field(default_factory=list)
    objects: list[int] | None = None
    rects: FloatArray | None = None
    rois: list[Roi] | None = None
    transforms: Sequence[ScaleTransform | None] = ()
    crops: list[Crops] = field(default_factory=list)
    parts: list[tuple[Selection, int, int]] = field(default_factory=list)
    cached: list[tuple[int, FrameMeta, Selection]] = field(default_factory=list)
    parsed: BatchDetections | None = None

    def __len__(self) -> int:
        return len(self.metas)

    def by_frame(self) -> Iterator[tuple[int, int]]:
        """Chosen objects, one frame after the other: the first of its items, and one past them."""
        end = 0
        for _, _, count in self.parts:
            start, end = end, end + count
            yield start, end

    def object_of(self, index: int) -> int:
        """The object that item `index` shows, -1 for none."""
        return -1 if self.objects is None else self.objects[index]

    def valid(self) -> list[bool]:
        """Whether each item was really inferred on: it has an area."""
        if self.crops:
            return [ok for part in self.crops for ok in part.valid.tolist()]
        return [transform is not None for transform in self.transforms]

    def places(self) -> list[int]:
        """Places of the items that were really inferred on."""
        return [i for i, valid in enumerate(self.valid()) if valid]

    def transform(self, index: int) -> ScaleTransform:
        """Where a valid item lies in the network input."""
        for part in self.crops:
            if index < len(part):
                return part.transform(index)
            index -= len(part)
        transform = self.transforms[index]
        assert transform is not None
        return transform

    def parent_rect(self, index: int) -> Rect | None:
        """The crop of a secondary item; results inside are relative to it."""
        if self.rects is None:
            return None
        left, top, width, height = self.rects[index].tolist()
        return Rect(left, top, width, height)

    def roi_rect(self, index: int) -> Rect | None:
        """Region of an item, where the caller prepared its tensor."""
        if self.rois is None:
            return None
        roi = self.rois[index]
        return Rect(roi.left, roi.top, roi.width, roi.height)


def roi_transform(roi: Roi) -> ScaleTransform:
    """How a region that the caller scaled lies in the network input. Source: spec A.6."""
    return ScaleTransform(
        src=Rect(roi.left, roi.top, roi.width, roi.height),
        dst=Rect(
            roi.offset_left,
            roi.offset_top,
            int(roi.width * roi.ratio_x),
            int(roi.height * roi.ratio_y),
        ),
        ratio_x=roi.ratio_x,
        ratio_y=roi.ratio_y,
        offset_x=roi.offset_left,
        offset_y=roi.offset_top,
    )


class ItemSteps(PlainRecord):
    """Results of each step for one item; None for a step that did not run.

    Attributes:
        parsed: boxes of the parser, in network space.
        clustered: the objects of these boxes, with the fate of each box.
        attached: the objects that passed the filters, and the reason of each other one.
        first: index of the first attached object among those of the frame.
        classified: the result of a classifier; None if it has no label.
        segmentation: the class map.
        error: the refusal of the parser.
    """

    parsed: Detections | None = None
    clustered: ClusterResult | None = None
    attached: AttachResult | None = None
    first: int = 0
    classified: ClassifierMeta | None = None
    segmentation: SegmentationMeta | None = None
    error: ParserError | None = None
