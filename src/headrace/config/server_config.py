"""Configs of nvinferserver, the text of a protocol buffer, as configs of nvinfer.

The ONNX model of the Triton repository that they name runs in this process; no server is asked.
Source: `nvdsinferserver_{plugin,config,common}.proto`, 5.0 to 9.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.config.class_attrs import ClassAttrs
from headrace.config.enums import NetworkType
from headrace.config.origin import Origin
from headrace.config.values import Values

Message = Mapping[str, list[Any]]
_COLORS = {"IMAGE_FORMAT_RGB": 0, "IMAGE_FORMAT_BGR": 1, "IMAGE_FORMAT_GRAY": 2}
_NETWORK_TYPES = {"detection": 0, "classification": 1, "segmentation": 2, "other": 100}
_CLUSTERING = {"group_rectangle": 0, "dbscan": 1, "nms": 2}
_ATTRS = {
    "confidence_threshold": "pre_cluster_threshold", "iou_threshold": "nms_iou_threshold",
    "topk": "topk", "eps": "eps", "min_boxes": "min_boxes", "min_score": "dbscan_min_score",
    "group_threshold": "group_threshold",
}  # fmt: skip
_BOUNDS = {
    "min_width": "detected_min_w", "min_height": "detected_min_h", "max_width": "detected_max_w",
    "max_height": "detected_max_h",
}  # fmt: skip
_PARSERS = {
    "detection": "custom_parse_bbox_func", "classification": "custom_parse_classifier_func",
    "segmentation": "custom_parse_segmentation_func",
}  # fmt: skip
_MARK = re.compile(rb"^[ \t]*infer_config\s*\{", re.MULTILINE)
_UNUSED = {
    ("infer_config", "extra", "custom_process_funcion"): "the library's own processing is not "
    "called: pre- and post-processing are those of this file",
    ("infer_config", "lstm"): "states are not carried from frame to frame",
    (
        "infer_config",
        "postprocess",
        "triton_classification",
    ): "classes come of the outputs, without the server's own labels",
}


def is_server_config(data: bytes) -> bool:
    """Whether a file is a config of nvinferserver."""
    return _MARK.search(data) is not None


def _one(message: Message, *names: str, default: Any = None) -> Any:
    """The last value of a field of a message inside others."""
    for name in names[:-1]:
        message = (message.get(name) or [{}])[-1]
        if not isinstance(message, Mapping):
            return default
    return (message.get(names[-1]) or [default])[-1]


def _all(message: Message, *names: str) -> tuple[Any, ...]:
    inner = _one(message, *names[:-1], default={}) if names[1:] else message
    return tuple(inner.get(names[-1], ())) if isinstance(inner, Mapping) else ()


def read_server_config(
    data: bytes, path: Path
) -> tuple[Values, dict[str, Origin], tuple[Finding, ...]]:
    """Read a config of nvinferserver as fields of `ModelConfig`.

    Args:
        data: the text.
        path: the file; paths inside are relative to its folder.

    Raises:
        ConfigError: the file is refused, or names a model that is not of ONNX.
    """
    from headrace._core.proto_text import read_proto_text

    root = read_proto_text(data.decode(errors="replace"), str(path), ConfigError).plain()
    infer = _one(root, "infer_config")
    if not isinstance(infer, Mapping):
        raise ConfigError("the file has no infer_config { … }", where=str(path))
    values: Values = {
        "gie_unique_id": _one(infer, "unique_id", default=0) or None,
        "batch_size": max(1, _one(infer, "max_batch_size", default=1)),
        "onnx_file": _model(path, infer),
        "custom_lib_path": _beside(path, _one(infer, "custom_lib", "path")),
        "labelfile_path": _beside(path, _one(infer, "postprocess", "labelfile_path")),
        "gpu_id": _one(infer, "gpu_ids", default=0),
        "interval": _one(root, "input_control", "interval", default=0),
        "operate_on_gie_id": _one(root, "input_control", "operate_on_gie_id", default=-1),
        "operate_on_class_ids": _all(root, "input_control", "operate_on_class_ids"),
        "output_tensor_meta": bool(_one(root, "output_control", "output_tensor_meta")),
        "classifier_type": _one(root, "output_control", "classifier_type"),
        "classifier_async_mode": bool(_one(root, "input_control", "async_mode")),
        "secondary_reinfer_interval": _one(root, "input_control", "secondary_reinfer_interval"),
        "crop_objects_to_roi_boundary": bool(_one(infer, "clip_object_outside_roi")),
    }
    for name in _BOUNDS:
        limit = _one(root, "input_control", "object_control", "bbox_filter", name)
        values[f"input_object_{name}"] = limit
    clip = _one(root, "input_control", "process_mode") == "PROCESS_MODE_CLIP_OBJECTS"
    values["process_mode"] = 2 if clip else 1
    if not clip:
        del values["classifier_async_mode"]
    if "input_tensor_from_meta" in infer:
        values["input_tensor_from_meta"] = True
    else:
        values |= _preprocessing(path, infer)
    values |= _postprocessing(path, infer, root)
    values = {name: value for name, value in values.items() if value is not None}
    origins = {name: Origin("file", path, 1, "infer_config", "") for name in values}
    return values, origins, _notices(root, infer, path)


def _notices(root: Message, infer: Message, path: Path) -> tuple[Finding, ...]:
    texts = []
    if _one(infer, "backend", "triton", "grpc") is not None:
        texts.append("grpc names a server: none is asked, the model runs in this process")
    for names, why in _UNUSED.items():
        if _one(root, *names) is not None:
            texts.append(f"{'.'.join(names)} is not applied: {why}")
    return tuple(Finding("not-applied", "warning", text, quoted(str(path))) for text in texts)


def _beside(path: Path, name: str | None) -> Path | None:
    return path.parent / name if name else None


def _model(path: Path, infer: Message) -> Path:
    """The model's file: `ROOT/NAME/VERSION/model.onnx`, of the newest version for -1."""
    backend = _one(infer, "backend", default={})
    server = _one(backend, "triton") or _one(backend, "trt_is") or {}
    name, root = _one(server, "model_name"), _one(server, "model_repo", "root")
    if not name or not root:
        url = _one(server, "grpc", "url")
        asks = f", but the server {quoted(str(url))}" if url else ""
        raise ConfigError(
            f"the backend names no model_name and no model_repo {{ root }}{asks}", where=str(path),
            fix="models run in this process, from a Triton repository of files: model_repo "
            '{ root: "FOLDER" } with FOLDER/NAME/1/model.onnx',
        )  # fmt: skip
    folder = path.parent / root / str(name)
    asked = _one(server, "version", default=-1)
    versions = sorted(int(p.name) for p in folder.glob("*") if p.name.isdecimal())
    version = asked if isinstance(asked, int) and asked > 0 else versions[-1] if versions else 1
    model: Path = folder / str(version) / "model.onnx"
    others = [p.name for p in model.parent.glob("model.*")] if not model.is_file() else []
    if others:
        raise ConfigError(
            f"the model of {quoted(str(name))} is {quoted(others[0])}", where=str(path),
            expected=f"a model of ONNX: {model}",
            fix="export it as ONNX beside that file; docs/export.md says how",
        )  # fmt: skip
    if not model.is_file():
        raise ConfigError(
            f"there is no {model}", where=str(path), expected="a model of ONNX at this place"
        )
    return model


def _preprocessing(path: Path, infer: Message) -> Values:
    section = _one(infer, "preprocess", default={})
    color = _one(section, "network_format", default="IMAGE_FORMAT_RGB")
    if color not in _COLORS:
        raise ConfigError(
            f"network_format: {color}", where=str(path), expected="one of " + ", ".join(_COLORS)
        )
    return {
        "model_color_format": _COLORS[color],
        "network_input_order": int(_one(section, "tensor_order") == "TENSOR_ORDER_NHWC"),
        "maintain_aspect_ratio": bool(_one(section, "maintain_aspect_ratio")),
        "symmetric_padding": bool(_one(section, "symmetric_padding")),
        "scaling_filter": _one(section, "frame_scaling_filter"),
        "net_scale_factor": _one(section, "normalize", "scale_factor"),
        "offsets": _all(section, "normalize", "channel_offsets") or None,
        "mean_file": _beside(path, _one(section, "normalize", "mean_file")),
    }


def _postprocessing(path: Path, infer: Message, root: Message) -> Values:
    section = _one(infer, "postprocess", default={})
    kind = next((name for name in _NETWORK_TYPES if name in section), "other")
    inner = _one(section, kind, default={})
    values: Values = {"network_type": NetworkType(_NETWORK_TYPES[kind])}
    if kind in _PARSERS:
        field = {"detection": "bbox", "classification": "classifier"}.get(kind, kind)
        values[f"parse_{field}_func_name"] = _one(inner, _PARSERS[kind])
    if kind == "detection":
        values["num_detected_classes"] = _one(inner, "num_detected_classes", default=0)
        method = next((name for name in _CLUSTERING if name in inner), "")
        values["cluster_mode"] = _CLUSTERING.get(method, 4)
        values["all_classes"] = _attrs(_one(inner, method, default={}), _ATTRS)
        _classes(values, inner, root)
    elif kind == "classification":
        values["classifier_threshold"] = _one(inner, "threshold", default=0.0)
    elif kind == "segmentation":
        values["segmentation_threshold"] = _one(inner, "threshold", default=0.0)
        values["num_detected_classes"] = _one(inner, "num_segmentation_classes", default=0)
    return values


def _attrs(fields: Message, names: Mapping[str, str]) -> ClassAttrs:
    attrs = {field: _one(fields, name) for name, field in names.items()}
    return replace(ClassAttrs(), **{name: v for name, v in attrs.items() if v is not None})


def _classes(values: Values, detection: Message, root: Message) -> None:
    """Thresholds and bounds of single classes, and classes that are left out."""
    common: ClassAttrs = values["all_classes"]
    control = _one(root, "output_control", "detect_control", default={})
    bounds = _one(control, "default_filter", "bbox_filter")
    if isinstance(bounds, Mapping):
        common = _over(common, bounds)
    classes: dict[int, ClassAttrs] = {}
    for entry in _all(detection, "per_class_params"):
        if isinstance(entry, Mapping) and isinstance(_one(entry, "key"), int):
            threshold = _one(entry, "value", "pre_threshold")
            if threshold is not None:
                number = _one(entry, "key")
                classes[number] = replace(common, pre_cluster_threshold=float(threshold))
    for entry in _all(control, "specific_class_filters") if isinstance(control, Mapping) else ():
        number = _one(entry, "key") if isinstance(entry, Mapping) else None
        limits = _one(entry, "value", "bbox_filter", default={}) if number is not None else {}
        if isinstance(number, int) and isinstance(limits, Mapping):
            classes[number] = _over(classes.get(number, common), limits)
    values["all_classes"] = common
    if classes:
        values["classes"] = classes
    left_out = _all(control, "filter_out_class_ids") if isinstance(control, Mapping) else ()
    if left_out:
        values["filter_out_class_ids"] = left_out


def _over(attrs: ClassAttrs, bounds: Message) -> ClassAttrs:
    given = {field: _one(bounds, name) for name, field in _BOUNDS.items()}
    return replace(attrs, **{name: v for name, v in given.items() if v is not None})
