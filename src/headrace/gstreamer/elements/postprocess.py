"""nvdspostprocess: parses raw outputs that nvinfer or nvinferserver attached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import NVMM, InPlace, reported, through
from headrace.gstreamer.elements.preprocess import add_region_results, region_to_roi
from headrace.gstreamer.elements.properties import COMMON, Property
from headrace.gstreamer.elements.tree import Made, add_results, to_metas
from headrace.gstreamer.pyds.meta import NvDsBatchMeta, NvDsFrameMeta, NvDsMetaType, items
from headrace.infer.raw.outputs import RawOutputParser, outputs_config
from headrace.meta import TensorOutput

if TYPE_CHECKING:
    from headrace.gstreamer.pyds.meta import NvDsUserMeta


PROPERTIES = {key: COMMON[key] for key in ("gpu-id", "qos")} | {
    "postprocesslib-name": Property("str", None, "library with the parser; the standard one: none"),
    "postprocesslib-config-file": Property("str", None, "parser, thresholds, labels"),
    "preprocessor-support": Property("bool", False, "accepted; regions are parsed where they are"),
}


class NvDsPostProcess(InPlace):
    """Parses raw outputs by the config of a file and adds objects, classes and class maps."""

    __gtype_name__ = "GstNvDsPostProcess"
    ABOUT = ("NvDsPostProcess", "Video/Filter", "Parses raw outputs")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._parser: RawOutputParser | None = None
        self._parsed = 0

    @reported(False)
    def do_start(self) -> bool:
        """Read the config and load the parser."""
        file = self.file_of("postprocesslib-config-file", "parser and thresholds")
        self._parser = RawOutputParser(outputs_config(file, self.values["postprocesslib-name"]))
        self.post_notices(self._parser.notices)
        return True

    def do_stop(self) -> bool:
        """Close the parser's library."""
        if self._parser is not None:
            if not self._parsed:
                number = self._parser.config.component_id
                self.post_warning(
                    f"no raw outputs of model {number} came: it needs output-tensor-meta=1 and"
                    f" gie-unique-id={number}"
                )
            self.post_notices(self._parser.notices)
            self._parser.close()
            self._parser = None
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Parse the raw outputs of a batch."""
        batch, parser = self.batch_of(buffer), self._parser
        assert parser is not None
        frames, images, meta_pairs = to_metas(batch)
        for frame, image, (meta, objects) in zip(frames, images, meta_pairs, strict=True):
            known = len(objects)
            for output in self._outputs(items(frame, "frame_user_meta_list")):
                parser.parse_frame(image, meta, output)
            for index in range(known):
                for output in self._outputs(items(objects[index], "obj_user_meta_list")):
                    parser.parse_object(image, meta, index, output)
        self._parse_regions(parser, batch, frames, meta_pairs)
        with batch.meta_mutex:
            for frame, (meta, before) in zip(frames, meta_pairs, strict=True):
                add_results(batch, frame, meta, before)
        if not self.posted:
            self.post_notices(parser.notices)
        return Gst.FlowReturn.OK

    def _parse_regions(
        self,
        parser: RawOutputParser,
        batch: NvDsBatchMeta,
        frames: list[NvDsFrameMeta],
        meta_pairs: list[Made],
    ) -> None:
        """Parse the outputs for regions of nvdspreprocess."""
        for user in items(batch, "batch_user_meta_list"):
            if user.base_meta.meta_type != NvDsMetaType.NVDS_PREPROCESS_BATCH_META:
                continue
            for region in user.user_meta_data.roi_vector:
                roi = region_to_roi(region, frames, meta_pairs)
                for output in self._outputs(items(region, "roi_user_meta_list")):
                    parser.parse_region(meta_pairs[roi.frame_index][0], roi, output)
                with batch.meta_mutex:
                    add_region_results(batch, [roi], [region])

    def _outputs(self, users: Iterable[NvDsUserMeta]) -> list[TensorOutput]:
        """List the raw outputs of the config's model among metadata of applications' own."""
        assert self._parser is not None
        outputs = [
            user.user_meta_data.priv_data
            for user in users
            if user.base_meta.meta_type == NvDsMetaType.NVDSINFER_TENSOR_OUTPUT_META
            and user.user_meta_data.unique_id == self._parser.config.component_id
            and isinstance(user.user_meta_data.priv_data, TensorOutput)
        ]
        self._parsed += len(outputs)
        return outputs
