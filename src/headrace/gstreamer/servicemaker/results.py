"""Results of models and rules on frames and objects, as operators see them."""

from __future__ import annotations

from typing import Any

from headrace.gstreamer.pyds.analytics import NvDsAnalyticsFrameMeta, NvDsAnalyticsObjInfo
from headrace.gstreamer.pyds.inference import NvDsInferSegmentationMeta, NvDsInferTensorMeta
from headrace.gstreamer.pyds.meta import NvDsClassifierMeta, items
from headrace.gstreamer.servicemaker.tensor import Tensor
from headrace.gstreamer.servicemaker.view import Alias, MetaView


class TensorOutputUserMetadata(MetaView):
    """Raw outputs of a model for one frame or object."""

    KIND = NvDsInferTensorMeta
    unique_id = Alias("unique_id")

    def get_layers(self) -> dict[str, Tensor]:
        """Return the outputs by name, without the axis of the batch; views in main memory."""
        return {
            one.layerName: Tensor(one.buffer.values.reshape(one.dims.d[: one.dims.numDims]))
            for one in map(self.meta.output_layers_info, range(self.meta.num_output_layers))
        }


class SegmentationUserMetadata(MetaView):
    """The class of each pixel of a network's output.

    Attributes:
        class_map: (height, width) int32, -1 where no class wins.
        class_probabilities_map: the raw output; empty if the model gives none.
    """

    KIND = NvDsInferSegmentationMeta
    unique_id, classes = Alias("unique_id"), Alias("classes")
    width, height = Alias("width"), Alias("height")
    class_map = Alias("class_map")

    @property
    def class_probabilities_map(self) -> Any:
        """The raw output; empty if the model gives none."""
        probabilities = self.meta.class_probabilities_map
        return self.meta.class_map[:0] if probabilities is None else probabilities


class AnalyticsFrameMeta(MetaView):
    """Counts of a frame by the name of the rule; see `NvDsAnalyticsFrameMeta` of `pyds`."""

    KIND = NvDsAnalyticsFrameMeta
    unique_id, oc_status = Alias("unique_id"), Alias("ocStatus")
    obj_in_roi_cnt, obj_cnt = Alias("objInROIcnt"), Alias("objCnt")
    obj_lc_curr_cnt, obj_lc_cum_cnt = Alias("objLCCurrCnt"), Alias("objLCCumCnt")


class AnalyticsObjInfo(MetaView):
    """Names of the rules that an object fulfils; see `NvDsAnalyticsObjInfo` of `pyds`."""

    KIND = NvDsAnalyticsObjInfo
    unique_id, roi_status = Alias("unique_id"), Alias("roiStatus")
    oc_status, lc_status = Alias("ocStatus"), Alias("lcStatus")
    dir_status, obj_status = Alias("dirStatus"), Alias("objStatus")


class ClassifierMetadata(MetaView):
    """The result of a classifier."""

    KIND = NvDsClassifierMeta
    unique_component_id = Alias("unique_component_id")

    @property
    def n_labels(self) -> int:
        """Number of attributes."""
        return len(items(self.meta, "label_info_list"))

    def get_n_label(self, n: int) -> str:
        """Return the text of an attribute, counted from 0.

        Raises:
            IndexError: there is no such attribute.
        """
        return str(list(items(self.meta, "label_info_list"))[n].result_label)
