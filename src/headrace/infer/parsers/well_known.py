"""Built-in parsers by function name: the file of a head is imported when its name is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.infer import parsers
from headrace.infer.parsers.builtin import BuiltinParser, parse_coverage_bbox
from headrace.meta.layers import BoxParser, ClassifierParser, SegmentationParser

# List of heads -> their names, in the order of `headrace.infer.parsers.catalogue`.
_BOXES = {
    "yolo.HEADS": (
        "NvDsInferParseYolo NvDsInferParseYoloCuda HeadraceParseYoloX HeadraceParseYoloV8 "
        "HeadraceParseYoloV5 HeadraceParseYoloV8Unit HeadraceParseRTDETR NvDsInferParseYoloV11 "
        "NvDsInferParseCustomYoloV8 NvDsInferParseCustomYoloV8_cuda "
        "NvDsInferParseCustomYoloV11_cuda NvDsInferParseCustomYoloV7 "
        "NvDsInferParseCustomYoloV7_cuda"
    ),
    "nms_outputs.HEADS": (
        "HeadraceParseEfficientNMS HeadraceParseEfficientNMSUnit NvDsInferParseCustomYoloV4 "
        "NvDsInferParseCustomBatchedNMSTLT NvDsInferParseYoloV5CustomBatchedNMSTLT "
        "NvDsInferParseCustomBatchedYoloV5NMSTLT NvDsInferParseCustomEfficientDetTAO "
        "NvDsInferParseCustomTfSSD NvDsInferParseCustomNMSTLT NvDsInferParseCustomSSDTLT "
        "NvDsInferParseCustomSSD HeadraceParseDetsLabels NvDsInferParseCustomYOLOV3TLT"
    ),
    "ssd_detr.HEADS": (
        "NvDsInferParseCustomDDETRTAO NvDsInferParseCustomRTDETRTAO HeadraceParseDetr "
        "HeadraceParseDetrSoftmax"
    ),
    "ssd_detr.SSD_HEADS": (
        "HeadraceParseSSDCorners HeadraceParseSSDCenters HeadraceParseBoxesScores"
    ),
    "yolo.ANCHOR_HEADS": (
        "HeadraceParseYoloV5Raw HeadraceParseYoloV7Raw HeadraceParseYoloV5Grids "
        "HeadraceParseYoloV7Grids NvDsInferParseCustomYoloV3 NvDsInferParseCustomYoloV3_cuda "
        "NvDsInferParseCustomYoloV3Tiny NvDsInferParseCustomYoloV2 "
        "NvDsInferParseCustomYoloV2Tiny HeadraceParseYoloV2Raw"
    ),
    "rcnn.HEADS": (
        "HeadraceParseYoloObb NvDsInferParseCustomYoloV11OBB NvDsInferParseCustomFrcnnTLT "
        "NvDsInferParseCustomFasterRCNN NvDsInferParseCustomYoloOriginal"
    ),
    "centres.HEADS": "HeadraceParseCenterFace",
    "text.HEADS": "HeadraceParseTextRegions",
    "keypoints.HEADS": (
        "HeadraceParseYoloV8Pose HeadraceParseYoloV5Face HeadraceParseYoloV7Face "
        "HeadraceParseSCRFD HeadraceParseRetinaFace HeadraceParseHeatmapPose"
    ),
    "end_to_end.HEADS": (
        "HeadraceParseBoxesLabels HeadraceParseBoxesLabelsUnit HeadraceParseYoloEndPose "
        "HeadraceParseYoloEndObb HeadraceParseDetrObb HeadraceParseRTDETREnd"
    ),
    "corners.HEADS": (
        "HeadraceParseYoloCorners HeadraceParseFcos HeadraceParseYoloNasPose "
        "HeadraceParseBoxesScoresObb"
    ),
    "affinity.HEADS": "HeadraceParseTrtPose HeadraceParseOpenPose",
    "rows.HEADS": (
        "HeadraceParseYoloV7Rows HeadraceParseYoloNasRows HeadraceParseSSDRows "
        "HeadraceParsePaddleRows"
    ),
    "priors.HEADS": (
        "HeadraceParseUltraFacePriors HeadraceParseBlazeFace HeadraceParseEfficientDetRaw"
    ),
    "levels.HEADS": (
        "HeadraceParseNanoDet HeadraceParsePicoDetRaw HeadraceParseDistanceMaps "
        "HeadraceParseJoinedMaps HeadraceParseYoloXMaps HeadraceParseYuNet"
    ),
    "points.HEADS": (
        "HeadraceParseSimCC HeadraceParseLandmarks HeadraceParseBlazePose HeadraceParseMoveNet "
        "HeadraceParseMoveNetMany HeadraceParseDetsPoints HeadraceParseDetrPoints "
        "HeadraceParseDetrPose"
    ),
    "object_lists.HEADS": "HeadraceParseBoxesLabelsPoints",
    "coverage.HEADS": "NvDsInferParseCustomResnet",
}
_INSTANCES = {
    "segmentation.HEADS": (
        "NvDsInferParseYoloSeg NvDsInferParseCustomMrcnnTLT NvDsInferParseCustomMrcnnTLTV2 "
        "NvDsInferParseCustomMask2Former HeadraceParseYoloV8Seg HeadraceParseYoloV5Seg"
    ),
    "end_to_end.INSTANCE_HEADS": "HeadraceParseDetrSeg HeadraceParseYoloEndSeg",
    "object_lists.INSTANCE_HEADS": "HeadraceParseBoxesLabelsMasks",
}
_MAPS = {
    "segmentation.MAP_HEADS": (
        "HeadraceParseClassMap HeadraceParseMaskQueries NvDsInferParseCustomPeopleSemSegNet "
        "NvDsInferParseCustomSegformerTAO NvDsInferParseCustomSegformerTAO2 "
        "NvDsInferParseCustomChangeNet"
    ),
}
_CLASSIFIERS = {
    "classifiers.PARSERS": (
        "NvDsInferClassiferParseCustomSoftmax NvDsInferClassiferParseNonSoftmax "
        "NvDsInferParseCustomNVPlate NvDsParseCustomPoseClassification HeadraceParseCtc"
    ),
}


class BuiltinParsers(Mapping[str, Any]):
    """Parsers by name; asking for one imports its file, listing the names imports none."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._places = {name: place for place, row in names.items() for name in row.split()}
        self._parsers: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._parsers:
            module, _, listed = self._places[name].partition(".")
            heads = getattr(getattr(parsers, module), listed)
            if not isinstance(heads, Mapping):
                heads = {head.name: BuiltinParser(head) for head in heads}
            for key, parser in heads.items():
                self._parsers.setdefault(key, parser)
        return self._parsers[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


WELL_KNOWN: Mapping[str, BoxParser] = BuiltinParsers(_BOXES)
"""Name for `parse-bbox-func-name` -> parser."""

WELL_KNOWN_INSTANCES: Mapping[str, BoxParser] = BuiltinParsers(_INSTANCES)
"""Name for `parse-bbox-instance-mask-func-name` -> parser."""

WELL_KNOWN_SEGMENTATIONS: Mapping[str, SegmentationParser] = BuiltinParsers(_MAPS)
"""Name for `parse-segmentation-func-name` -> parser."""

WELL_KNOWN_CLASSIFIERS: Mapping[str, ClassifierParser] = BuiltinParsers(_CLASSIFIERS)
"""Name for `parse-classifier-func-name` -> parser."""


def builtin_parser(name: str | None) -> BoxParser | None:
    """The built-in parser for a config's `parse-bbox-func-name`.

    Args:
        name: the function name; None or empty means the coverage and bbox grid parser.

    Returns:
        The parser, or None when no built-in has this name.
    """
    return WELL_KNOWN.get(name) if name else parse_coverage_bbox
