"""nvdspostprocess: parses raw outputs that nvinfer or nvinferserver attached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import NVMM, InPlace, pad
from headrace.gstreamer.elements.preprocess import Made, add_region_results, region_to_roi
from headrace.gstreamer.elements.properties import COMMON, Property
from headrace.gstreamer.elements.tree import add_results, frames_of, image_of, to_frame_meta
from headrace.gstreamer.pyds.meta import NvDsBatchMeta, NvDsFrameMeta, NvDsMetaType, items
from headrace.infer.raw_outputs import RawOutputParser, outputs_config
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
    __gstmetadata__ = ("NvDsPostProcess", "Video/Filter", "Parses raw outputs", "Headrace")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM), pad("src", "src", "always", NVMM))
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._parser: RawOutputParser | None = None
        self._noticed: set[str] = set()
        self._parsed = 0

    def do_start(self) -> bool:
        """Read the config and load the parser."""
        try:
            file = self.file_of("postprocesslib-config-file", "parser and thresholds")
            self._parser = RawOutputParser(outputs_config(file, self.values["postprocesslib-name"]))
        except Exception as error:  # PyGObject would print it and go on
            self.post_error(error)
            return False
        self._report(self._parser)
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
            self._report(self._parser)
            self._parser.close()
            self._parser = None
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Parse the raw outputs of a batch."""
        batch, parser = self.batch_of(buffer), self._parser
        assert parser is not None
        frames = frames_of(batch)
        images = [image_of(batch, frame) for frame in frames]
        pairs = zip(frames, images, strict=True)
        meta_pairs = [to_frame_meta(frame, image) for frame, image in pairs]
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
        if not self._noticed:
            self._report(parser)
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

    def _report(self, parser: RawOutputParser) -> None:
        """Put warnings on the bus, each once."""
        for notice in parser.notices:
            text = str(notice)
            if notice.level == "warning" and text not in self._noticed:
                self._noticed.add(text)
                self.post_warning(text)
