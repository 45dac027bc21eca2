"""Fields of the config of a bare model, and the reason of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.config import ModelConfig
from headrace.config.class_attrs import ClassAttrs
from headrace.config.enums import ClusterMode, NetworkType, ProcessMode, ScalingFilter
from headrace.config.origin import OVERRIDE, Origin
from headrace.infer.parsers.head import CTC
from headrace.infer.recognise import exporters
from headrace.infer.recognise.deployments import IOU, SOURCE, THRESHOLD
from headrace.infer.recognise.exporters import Exporter

if TYPE_CHECKING:
    from headrace.config.overrides import Overrides
    from headrace.infer.recognise.evidence import FileEvidence
    from headrace.infer.recognise.heads import HeadReading
    from headrace.infer.recognise.images import Images
    from headrace.network.tensor_spec import TensorSpec

PROFILE = "modern"
"""The profile of bare models."""

CLASS_FIELDS = ("pre_cluster_threshold", "nms_iou_threshold", "topk")
"""Settings of all classes that a recognised model has."""

_MOST_BOXES = 300
PARSER_FIELDS = {
    NetworkType.DETECTOR: "parse_bbox_func_name",
    NetworkType.CLASSIFIER: "parse_classifier_func_name",
    NetworkType.SEGMENTATION: "parse_segmentation_func_name",
    NetworkType.INSTANCE_SEGMENTATION: "parse_bbox_instance_mask_func_name",
}
"""Field of the config that names the parser, by kind of network."""


def fields_of(overrides: Overrides) -> dict[str, Any]:
    """Fields that keys of the command line set; groups of classes wait until they are counted."""
    cfg = ModelConfig().with_lines([x for x in overrides.lines if x.group == "property"])
    return {name: getattr(cfg, name) for name in ModelConfig.FIELDS if cfg.is_set(name)}


def records(
    values: Mapping[str, object], names: tuple[str, ...], outputs: Sequence[TensorSpec]
) -> tuple[tuple[str, ...], ...]:
    """The names as records of a label file; `outputs` have the shapes for one image."""
    if values.get("network_type") is not NetworkType.CLASSIFIER:
        return tuple((name,) for name in names)
    if values.get("parse_classifier_func_name") == CTC:
        return tuple((name,) for name in names)
    attributes = []
    for output in outputs:
        count = next((d for d in output.shape[1:] if isinstance(d, int) and d != 1), 0)
        own = names if len(names) == count else tuple(f"class {i}" for i in range(count))
        attributes.append(own)
    return tuple(attributes)


def values_of_config(
    evidence: FileEvidence,
    exporter: Exporter | None,
    images: Images,
    reading: HeadReading | None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of the config, and the reason of each."""
    why = images.reasons
    # the pipeline changes both where several models run
    values: dict[str, Any] = {"gie_unique_id": 1, "process_mode": ProcessMode.PRIMARY}
    reasons = {
        "onnx_file": "the model",
        "infer_dims": why["size"],
        "model_color_format": why["order"],
        "net_scale_factor": why.get("scaling", "given"),
        "offsets": why.get("scaling", "given"),
        "maintain_aspect_ratio": why["fit"],
        "symmetric_padding": why["fit"],
    }
    values["maintain_aspect_ratio"] = images.fit != "stretch"
    values["symmetric_padding"] = images.fit == "centre"
    if images.cut:
        values["centre_crop"], reasons["centre_crop"] = images.cut, why["fit"]
    values["scaling_filter"] = ScalingFilter.BILINEAR
    reasons["scaling_filter"] = "bilinear, as training frameworks scale"
    values["profile"] = PROFILE
    reasons["profile"] = "the profile of bare models: what their training frameworks do"
    if reading is None:
        return values, reasons
    values |= reading.fields
    reasons |= dict.fromkeys(reading.fields, reading.why)
    values["network_type"] = reading.kind
    reasons["network_type"] = f"{reading.words}: {reading.why}"
    if reading.kind is NetworkType.OTHER:
        values["output_tensor_meta"] = True
        reasons["output_tensor_meta"] = "the outputs are attached as they are"
    if reading.parser:
        values[PARSER_FIELDS[reading.kind]] = reading.parser
        reasons[PARSER_FIELDS[reading.kind]] = reading.why
    if reading.classes and reading.kind is not NetworkType.CLASSIFIER:
        values["num_detected_classes"] = reading.classes
        reasons["num_detected_classes"] = reading.counted or reading.why
    trainer = exporter or exporters.Exporter("")
    texts = evidence.metadata
    least, overlap = (float(texts.get(key, default)) for key, default in
                      ((THRESHOLD, trainer.threshold), (IOU, trainer.iou)))  # fmt: skip
    if reading.kind is NetworkType.DETECTOR:
        mode = ClusterMode.NONE if reading.suppressed else ClusterMode.NMS
        values["cluster_mode"] = mode
        reasons["cluster_mode"] = (
            "the boxes are final" if reading.suppressed else "the boxes overlap"
        )
        if reading.rotated:
            values["rotated_boxes"] = True
            reasons["rotated_boxes"] = reading.why
        values["all_classes"] = ClassAttrs(
            pre_cluster_threshold=least,
            nms_iou_threshold=overlap,
            topk=_MOST_BOXES,
        )
        reasons["all_classes"] = f"as {exporter.name} does" if exporter else "usual values"
        if {THRESHOLD, IOU} & texts.keys():
            reasons["all_classes"] = f"{texts[SOURCE]} beside the model"
    elif reading.kind is NetworkType.INSTANCE_SEGMENTATION:
        values["cluster_mode"] = ClusterMode.NONE
        values["output_instance_mask"] = True
        values["all_classes"] = ClassAttrs(pre_cluster_threshold=least, topk=_MOST_BOXES)
    elif reading.kind is NetworkType.CLASSIFIER:
        values["classifier_type"] = "text" if reading.parser == CTC else "class"
    return values, reasons


def origins_of(
    reasons: Mapping[str, str | None], values: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Origin]:
    """Origins of a recognised config's fields: the model, or `own` for those that a user set."""
    origins = {name: Origin("model", text=reasons.get(name)) for name in values}
    if "all_classes" in values and "all_classes" not in own:
        origins |= {f"all_classes.{name}": origins["all_classes"] for name in CLASS_FIELDS}
    return origins | dict.fromkeys(own, OVERRIDE)
