"""Raw outputs and class maps of a model, as metadata of applications' own."""

from __future__ import annotations

from headrace.gstreamer.pyds.functions import (
    nvds_acquire_user_meta_from_pool,
    nvds_add_user_meta_to_frame,
    nvds_add_user_meta_to_obj,
)
from headrace.gstreamer.pyds.inference import (
    NvDsInferLayerInfo,
    NvDsInferSegmentationMeta,
    NvDsInferTensorMeta,
)
from headrace.gstreamer.pyds.meta import (
    NvDsBatchMeta,
    NvDsFrameMeta,
    NvDsMetaType,
    NvDsObjectMeta,
    NvDsUserMeta,
)
from headrace.meta import FrameMeta, SegmentationMeta, TensorOutput


def add_outputs(
    batch: NvDsBatchMeta, frame: NvDsFrameMeta, meta: FrameMeta, objects: list[NvDsObjectMeta]
) -> None:
    """Attach class maps and raw outputs to a frame and to its objects.

    Args:
        batch: of the frame.
        frame: in the tree.
        meta: after the model.
        objects: of the tree, by their index in `meta`.
    """
    of_frame: list[SegmentationMeta | TensorOutput] = [*meta.segmentations, *meta.tensors]
    for result in of_frame:
        nvds_add_user_meta_to_frame(frame, output_meta(batch, result))
    for index, maps in meta.objects.segmentations.items():
        for segmentation in maps:
            nvds_add_user_meta_to_obj(objects[index], output_meta(batch, segmentation))
    for index, outputs in meta.objects.tensors.items():
        for output in outputs:
            nvds_add_user_meta_to_obj(objects[index], output_meta(batch, output))


def output_meta(batch: NvDsBatchMeta, result: SegmentationMeta | TensorOutput) -> NvDsUserMeta:
    """Make the metadata of a class map or of raw outputs."""
    user = nvds_acquire_user_meta_from_pool(batch)
    if isinstance(result, SegmentationMeta):
        user.base_meta.meta_type = NvDsMetaType.NVDSINFER_SEGMENTATION_META
        user.user_meta_data = _class_map(result)
    else:
        user.base_meta.meta_type = NvDsMetaType.NVDSINFER_TENSOR_OUTPUT_META
        user.user_meta_data = _tensors(result)
    return user


def _class_map(segmentation: SegmentationMeta) -> NvDsInferSegmentationMeta:
    meta = NvDsInferSegmentationMeta()
    meta.classes, meta.width, meta.height = (
        segmentation.num_classes,
        segmentation.width,
        segmentation.height,
    )
    meta.class_map, meta.class_probabilities_map = (
        segmentation.class_map,
        segmentation.probabilities,
    )
    meta.priv_data = segmentation
    return meta


def _tensors(output: TensorOutput) -> NvDsInferTensorMeta:
    layers: list[NvDsInferLayerInfo] = [
        NvDsInferLayerInfo(name, index, layer.data)
        for index, (name, layer) in enumerate(output.layers.items())
    ]
    meta = NvDsInferTensorMeta(layers)
    meta.unique_id, meta.priv_data = output.component_id, output
    meta.maintain_aspect_ratio = int(output.maintain_aspect_ratio)
    meta.symmetric_padding = int(output.symmetric_padding)
    info, network = meta.network_info, output.network
    info.width, info.height, info.channels = network.width, network.height, network.channels
    return meta
