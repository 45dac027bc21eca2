"""nvinferserver: nvinfer with another configuration, over ONNX models of a Triton repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace._core.errors import ConfigError
from headrace._core.proto_text import read_proto_text
from headrace.config import ClassAttrs, ModelConfig
from headrace.config.reading import read_bytes
from headrace.gstreamer.elements.element import NVMM, through
from headrace.gstreamer.elements.infer import PROPERTIES as OF_NVINFER
from headrace.gstreamer.elements.infer import NvInfer
from headrace.gstreamer.elements.properties import Property

Message = Mapping[str, list[Any]]
_COLORS = {"IMAGE_FORMAT_RGB": 0, "IMAGE_FORMAT_BGR": 1, "IMAGE_FORMAT_GRAY": 2}
_NETWORK_TYPES = {"detection": 0, "classification": 1, "segmentation": 2, "other": 100}
_CLUSTERING = {"group_rectangle": 0, "dbscan": 1, "nms": 2}
_ATTRS = {
    "confidence_threshold": "pre_cluster_threshold", "iou_threshold": "nms_iou_threshold",
    "topk": "topk", "eps": "eps", "min_boxes": "min_boxes", "min_score": "dbscan_min_score",
    "group_threshold": "group_threshold",
}  # fmt: skip
_PARSERS = {
    "detection": "custom_parse_bbox_func", "classification": "custom_parse_classifier_func",
    "segmentation": "custom_parse_segmentation_func",
}  # fmt: skip
# 0 stands for what the file says.
PROPERTIES = OF_NVINFER | {
    "unique-id": Property("uint", 0, "number of the model; 0: of the file"),
    "process-mode": Property("uint", 0, "1: whole frames, 2: objects; 0: of the file", 0, 2),
    "batch-size": Property(
        "uint", 0, "most items the engine takes at once; 0: of the file", 0, 1024
    ),
}


class NvInferServer(NvInfer):
    """Runs a model of a Triton repository in this process; no server is asked."""

    __gtype_name__ = "GstNvInferServer"
    ABOUT = ("NvInferServer plugin", "NvInferServer", "Runs a model on batches")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def read_config(self, path: Path) -> ModelConfig:
        """Read the text of a protocol buffer."""
        return server_config(path)

    def asked(self) -> dict[str, Any]:
        """Return the config's fields that the application set; 0 is the file's."""
        overrides, void = super().asked(), ("gie_unique_id", "process_mode", "batch_size")
        return {field: value for field, value in overrides.items() if value or field not in void}


def _one(message: Message, *names: str, default: Any = None) -> Any:
    """The last value of a field of a message inside others."""
    for name in names[:-1]:
        message = (message.get(name) or [{}])[-1]
        if not isinstance(message, Mapping):
            return default
    return (message.get(names[-1]) or [default])[-1]


def server_config(path: Path) -> ModelConfig:
    """Read a configuration of nvinferserver.

    Args:
        path: the file; paths inside are relative to its folder.

    Raises:
        ConfigError: the file is refused, or names a model that is not of ONNX.
    """
    text = read_bytes(path).decode(errors="replace")
    root = read_proto_text(text, str(path), ConfigError).plain()
    infer = _one(root, "infer_config")
    if not isinstance(infer, Mapping):
        raise ConfigError("the file has no infer_config { … }", where=str(path))
    values: dict[str, Any] = {
        "gie_unique_id": _one(infer, "unique_id", default=0),
        "batch_size": max(1, _one(infer, "max_batch_size", default=1)),
        "onnx_file": _model(path, infer),
        "custom_lib_path": _beside(path, _one(infer, "custom_lib", "path")),
        "labelfile_path": _beside(path, _one(infer, "postprocess", "labelfile_path")),
        "interval": _one(root, "input_control", "interval", default=0),
        "operate_on_gie_id": _one(root, "input_control", "operate_on_gie_id", default=-1),
        "operate_on_class_ids": _all(root, "input_control", "operate_on_class_ids"),
        "output_tensor_meta": bool(_one(root, "output_control", "output_tensor_meta")),
    }
    clip = _one(root, "input_control", "process_mode") == "PROCESS_MODE_CLIP_OBJECTS"
    values["process_mode"] = 2 if clip else 1
    values |= _preprocessing(path, infer) | _postprocessing(path, infer)
    return ModelConfig(**{name: value for name, value in values.items() if value is not None})


def _all(message: Message, outer: str, name: str) -> tuple[Any, ...]:
    inner = _one(message, outer, default={})
    return tuple(inner.get(name, ())) if isinstance(inner, Mapping) else ()


def _beside(path: Path, name: str | None) -> Path | None:
    return path.parent / name if name else None


def _model(path: Path, infer: Message) -> Path:
    """The model's file: `ROOT/NAME/VERSION/model.onnx`, of the newest version for -1."""
    backend = _one(infer, "backend", default={})
    server = _one(backend, "triton") or _one(backend, "trt_is") or {}
    name, root = _one(server, "model_name"), _one(server, "model_repo", "root")
    if not name or not root:
        raise ConfigError(
            "the backend names no model_name and no model_repo { root }", where=str(path),
            fix="models run in this process, from a Triton repository of files; no server is asked",
        )  # fmt: skip
    folder = path.parent / root / str(name)
    asked = _one(server, "version", default=-1)
    versions = sorted(int(p.name) for p in folder.glob("*") if p.name.isdigit())
    version = asked if asked > 0 else versions[-1] if versions else 1
    model: Path = folder / str(version) / "model.onnx"
    if not model.is_file():
        raise ConfigError(
            f"there is no {model}", where=str(path), expected="a model of ONNX at this place"
        )
    return model


def _preprocessing(path: Path, infer: Message) -> dict[str, Any]:
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
        "net_scale_factor": _one(section, "normalize", "scale_factor"),
        "offsets": _all(section, "normalize", "channel_offsets") or None,
    }


def _postprocessing(path: Path, infer: Message) -> dict[str, Any]:
    section = _one(infer, "postprocess", default={})
    kind = next((name for name in _NETWORK_TYPES if name in section), "other")
    inner = _one(section, kind, default={})
    values: dict[str, Any] = {"network_type": _NETWORK_TYPES[kind]}
    if kind in _PARSERS:
        field = {"detection": "bbox", "classification": "classifier"}.get(kind, kind)
        values[f"parse_{field}_func_name"] = _one(inner, _PARSERS[kind])
    if kind == "detection":
        values["num_detected_classes"] = _one(inner, "num_detected_classes", default=0)
        method = next((name for name in _CLUSTERING if name in inner), "")
        values["cluster_mode"] = _CLUSTERING.get(method, 4)
        values["all_classes"] = _attrs(_one(inner, method, default={}))
    elif kind == "classification":
        values["classifier_threshold"] = _one(inner, "threshold", default=0.0)
    elif kind == "segmentation":
        values["segmentation_threshold"] = _one(inner, "threshold", default=0.0)
        values["num_detected_classes"] = _one(inner, "num_segmentation_classes", default=0)
    return values


def _attrs(clustering: Message) -> ClassAttrs:
    attrs = {field: _one(clustering, name) for name, field in _ATTRS.items()}
    return replace(ClassAttrs(), **{name: v for name, v in attrs.items() if v is not None})
