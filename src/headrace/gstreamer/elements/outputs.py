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
        for found in maps:
            nvds_add_user_meta_to_obj(objects[index], output_meta(batch, found))
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


def _class_map(found: SegmentationMeta) -> NvDsInferSegmentationMeta:
    made = NvDsInferSegmentationMeta()
    made.classes, made.width, made.height = found.num_classes, found.width, found.height
    made.class_map, made.class_probabilities_map = found.class_map, found.probabilities
    made.priv_data = found
    return made


def _tensors(found: TensorOutput) -> NvDsInferTensorMeta:
    layers: list[NvDsInferLayerInfo] = [
        NvDsInferLayerInfo(name, index, layer.data)
        for index, (name, layer) in enumerate(found.layers.items())
    ]
    made = NvDsInferTensorMeta(layers)
    made.unique_id, made.priv_data = found.component_id, found
    made.maintain_aspect_ratio = int(found.maintain_aspect_ratio)
    made.symmetric_padding = int(found.symmetric_padding)
    info, network = made.network_info, found.network
    info.width, info.height, info.channels = network.width, network.height, network.channels
    return made
