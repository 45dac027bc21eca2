"""nvdspreprocess: tensors of regions and objects, for a model downstream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import NVMM, InPlace, reported, through
from headrace.gstreamer.elements.outputs import output_meta
from headrace.gstreamer.elements.properties import COMMON, NO_EFFECT, Property
from headrace.gstreamer.elements.tree import Made, classifier_meta, to_metas
from headrace.gstreamer.pyds.functions import (
    nvds_acquire_display_meta_from_pool,
    nvds_acquire_user_meta_from_pool,
    nvds_add_display_meta_to_frame,
    nvds_add_user_meta_to_batch,
)
from headrace.gstreamer.pyds.meta import (
    NvDsBatchMeta,
    NvDsFrameMeta,
    NvDsMetaType,
    NvDsUserMeta,
    items,
)
from headrace.gstreamer.pyds.osd import MAX_ELEMENTS_IN_DISPLAY_META
from headrace.gstreamer.pyds.preprocess import (
    GstNvDsPreProcessBatchMeta,
    NvDsPreProcessTensorMeta,
    NvDsRoiMeta,
)
from headrace.media.frame import Frame
from headrace.meta import InputTensor, Roi, SegmentationMeta, TensorOutput
from headrace.pipeline.preparation import TensorPreparer, load_preparation

if TYPE_CHECKING:
    from headrace.gstreamer.pyds.struct import Struct


_BORDER = 2  # pixels, of a drawn region
PROPERTIES = {key: COMMON[key] for key in ("gpu-id", "qos")} | {
    "unique-id": Property("uint", 15, "number of this element"),
    "enable": Property("bool", True, "prepare tensors at all"),
    "process-on-frame": Property("bool", True, NO_EFFECT),
    "operate-on-gie-id": Property("int", -1, NO_EFFECT, -1),
    "target-unique-ids": Property("str", "", NO_EFFECT),
    "config-file": Property("str", "", "regions, size and normalisation"),
}


class NvDsPreProcess(InPlace):
    """Prepares tensors by the rules of a file and attaches them to the batch."""

    __gtype_name__ = "GstNvDsPreProcess"
    ABOUT = ("gst-nvdspreprocess plugin", "Video/Filter", "Prepares tensors")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._preparer: TensorPreparer | None = None
        self._told = 0  # notices of it that are posted

    @reported(False)
    def do_start(self) -> bool:
        """Read the rules."""
        rules = load_preparation(self.file_of("config-file", "the regions"))
        self._preparer, self._told = TensorPreparer(rules), 0
        self._tell(self._preparer)
        return True

    def _tell(self, preparer: TensorPreparer) -> None:
        """Post the warnings that are new."""
        new, self._told = preparer.notices[self._told :], len(preparer.notices)
        for notice in new:
            if notice.level == "warning":
                self.post_warning(str(notice))

    def do_stop(self) -> bool:
        """Forget the rules."""
        if self._preparer is not None:
            self._preparer.close()
        self._preparer = None
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Attach the tensors of a batch."""
        if self._preparer is None or not self.values["enable"]:
            return Gst.FlowReturn.OK
        batch = self.batch_of(buffer)
        frames, images, meta_pairs = to_metas(batch)
        tensors = self._preparer(images, [meta for meta, _ in meta_pairs])
        self._tell(self._preparer)
        with batch.meta_mutex:
            for tensor in tensors:
                nvds_add_user_meta_to_batch(batch, _tensor_meta(batch, tensor, frames, meta_pairs))
            for frame, image in zip(frames, images, strict=True):
                self._draw(batch, frame, image)
        return Gst.FlowReturn.OK

    def _draw(self, batch: NvDsBatchMeta, frame: NvDsFrameMeta, image: Frame) -> None:
        assert self._preparer is not None
        drawing = self._preparer.drawn(image)
        if drawing is None:
            return
        rects, color = drawing
        for start in range(0, len(rects), MAX_ELEMENTS_IN_DISPLAY_META):
            some = rects[start : start + MAX_ELEMENTS_IN_DISPLAY_META]
            display = nvds_acquire_display_meta_from_pool(batch)
            display.num_rects = len(some)
            for index, rect in enumerate(some):
                params = display.rect_params[index]
                params.left, params.top, params.width, params.height = rect
                params.border_width = _BORDER
                params.border_color.set(*color)
            nvds_add_display_meta_to_frame(frame, display)


def _tensor_meta(
    batch: NvDsBatchMeta,
    tensor: InputTensor,
    frames: Sequence[NvDsFrameMeta],
    meta_pairs: Sequence[Made],
) -> NvDsUserMeta:
    regions = []
    for roi in tensor.rois:
        region = NvDsRoiMeta()
        rect = region.roi
        rect.left, rect.top, rect.width, rect.height = roi.left, roi.top, roi.width, roi.height
        region.frame_meta = frames[roi.frame_index]
        if roi.object_index is not None:
            region.object_meta = meta_pairs[roi.frame_index][1][roi.object_index]
        region.scale_ratio_x, region.scale_ratio_y = roi.ratio_x, roi.ratio_y
        region.offset_left, region.offset_top = roi.offset_left, roi.offset_top
        regions.append(region)
    values = NvDsPreProcessTensorMeta(tensor.data)
    values.tensor_name, values.meta_id = tensor.name, tensor.meta_id
    values.maintain_aspect_ratio = int(tensor.maintain_aspect_ratio)
    user = nvds_acquire_user_meta_from_pool(batch)
    user.base_meta.meta_type = NvDsMetaType.NVDS_PREPROCESS_BATCH_META
    user.user_meta_data = data = GstNvDsPreProcessBatchMeta()
    data.tensor_meta, data.roi_vector = values, regions
    data.target_unique_ids = list(tensor.target_ids)
    return user


def prepared_tensors(
    batch: NvDsBatchMeta, frames: Sequence[NvDsFrameMeta], meta_pairs: Sequence[Made]
) -> list[tuple[InputTensor, list[NvDsRoiMeta]]]:
    """List the tensors of a batch, each with its regions in the tree.

    Raises:
        HeadraceError: a region's frame or object is not in the batch any more.
    """
    tensors = []
    for user in items(batch, "batch_user_meta_list"):
        if user.base_meta.meta_type != NvDsMetaType.NVDS_PREPROCESS_BATCH_META:
            continue
        data: GstNvDsPreProcessBatchMeta = user.user_meta_data
        values = data.tensor_meta
        tensor = InputTensor(
            values.tensor_name,
            values.raw_tensor_buffer.values,
            [region_to_roi(region, frames, meta_pairs) for region in data.roi_vector],
            data.target_unique_ids,
            meta_id=values.meta_id,
            maintain_aspect_ratio=bool(values.maintain_aspect_ratio),
        )
        tensors.append((tensor, data.roi_vector))
    return tensors


def region_to_roi(
    region: NvDsRoiMeta, frames: Sequence[NvDsFrameMeta], meta_pairs: Sequence[Made]
) -> Roi:
    """Make the region of a tensor as stages use it.

    Raises:
        HeadraceError: its frame or object is not in the batch any more.
    """
    rect, shown, index = region.roi, region.object_meta, None
    frame_index = next((i for i, frame in enumerate(frames) if frame is region.frame_meta), -1)
    if frame_index >= 0 and shown is not None:
        known = meta_pairs[frame_index][1]
        index = next((i for i, obj in enumerate(known) if obj is shown), -1)
    if frame_index < 0 or index == -1:
        raise HeadraceError(
            "a tensor of nvdspreprocess shows a frame or an object that the batch does not have",
            where="nvinfer",
            fix="put nvdspreprocess and the nvinfer that takes its tensors into one branch, with"
            " no element between them that takes frames or objects away",
        )
    return Roi(
        frame_index,
        rect.left,
        rect.top,
        rect.width,
        rect.height,
        region.scale_ratio_x,
        region.scale_ratio_y,
        int(region.offset_left),
        int(region.offset_top),
        index,
    )


def add_region_results(
    batch: NvDsBatchMeta, rois: Sequence[Roi], regions: Sequence[Struct]
) -> None:
    """Add the results of a model on regions to these: classes, class maps and raw outputs."""
    for roi, region in zip(rois, regions, strict=True):
        for result in roi.classifiers:
            items(region, "classifier_meta_list").append(classifier_meta(batch, result))
        outputs: list[SegmentationMeta | TensorOutput] = [*roi.segmentations, *roi.tensors]
        for output in outputs:
            items(region, "roi_user_meta_list").append(output_meta(batch, output))
