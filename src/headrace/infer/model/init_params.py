"""The configuration as engine creators and model parsers read it, in C++ and in Python.

Source: custom-library spec 1.4.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from headrace._core import _native
from headrace._core.errors import ConfigError
from headrace.config.model_files import darknet_cfg

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig

PATHS = {
    "protoFilePath": "proto_file",
    "modelFilePath": "model_file",
    "uffFilePath": "uff_file",
    "onnxFilePath": "onnx_file",
    "tltEncodedModelFilePath": "tlt_encoded_model",
    "int8CalibrationFilePath": "int8_calib_file",
    "modelEngineFilePath": "model_engine_file",
    "labelsFilePath": "labelfile_path",
    "meanImageFilePath": "mean_file",
    "customLibPath": "custom_lib_path",
}
TEXTS = {
    "tltModelKey": "tlt_model_key",
    "uffInputBlobName": "uff_input_blob_name",
    "customBBoxParseFuncName": "parse_bbox_func_name",
    "customClassifierParseFuncName": "parse_classifier_func_name",
    "customBBoxInstanceMaskParseFuncName": "parse_bbox_instance_mask_func_name",
    "customSegmentationParseFuncName": "parse_segmentation_func_name",
    "customEngineCreateFuncName": "engine_create_func_name",
}
NUMBERS = {
    "uniqueID": "component_id",
    "networkMode": "network_mode",
    "uffInputOrder": "uff_input_order",
    "netInputOrder": "network_input_order",
    "maxBatchSize": "batch_size",
    "networkScaleFactor": "net_scale_factor",
    "networkInputFormat": "model_color_format",
    "networkType": "network_type",
    "numDetectedClasses": "num_detected_classes",
    "classifierThreshold": "classifier_threshold",
    "segmentationThreshold": "segmentation_threshold",
    "gpuID": "gpu_id",
    "useDLA": "enable_dla",
    "dlaCore": "use_dla_core",
    "outputBufferPoolSize": "output_buffer_pool_size",
    "forceImplicitBatchDimension": "force_implicit_batch_dim",
    "workspaceSize": "workspace_size",
    "clusterMode": "cluster_mode",
    "segmentationOutputOrder": "segmentation_output_order",
    "disableOutputHostCopy": "disable_output_host_copy",
    "autoIncMem": "auto_inc_mem",
    "maxGPUMemPer": "max_gpu_mem_per",
    "useStronglyTyped": "strongly_typed",
    "warmupEngine": "warmup_engine",
    "inputFromPreprocessedTensor": "input_tensor_from_meta",
}
LISTS = {
    "outputLayerNames": "output_blob_names",
    "outputIOFormats": "output_io_formats",
    "layerDevicePrecisions": "layer_device_precision",
}

NETWORK_CONFIG = "customNetworkConfigFilePath"
CLASS = ("pre_cluster_threshold", "post_cluster_threshold", "eps", "min_boxes",
         "group_threshold", "dbscan_min_score", "nms_iou_threshold", "topk")  # fmt: skip
"""Attributes of a class, in the order that `InitParams.set_classes` takes."""

MODEL_FILES = ("onnx_file", "model_file", "proto_file", "uff_file", "tlt_encoded_model",
               "int8_calib_file", "custom_network_config")  # fmt: skip
"""Fields of model files. The last one is text in the config; `darknet_cfg` finds its file."""


def init_params(cfg: ModelConfig, params: Any = None) -> Any:
    """Fill a `_native.InitParams`, or an object with its methods, with the values of `cfg`.

    Raises:
        ConfigError: a path or name is longer than the original has room for.
    """
    params = params or _native.InitParams()
    values = _values(cfg)
    for field in (*PATHS, *TEXTS, NETWORK_CONFIG):
        if values[field]:
            try:
                params.set_text(field, values[field])
            except ValueError as error:
                raise ConfigError(str(error), where=str(cfg.path)) from error
    for field in NUMBERS:
        if values[field] is not None:
            params.set_number(field, float(values[field]))
    for field in LISTS:
        params.set_list(field, values[field])
    params.set_offsets(values["offsets"])
    if cfg.infer_dims:
        params.set_infer_dims(*cfg.infer_dims)
    pairs = _dynamic_properties(cfg)
    params.set_list("dynamicPropertyKeys", [name for name, _ in pairs])
    params.set_list("dynamicPropertyValues", [value for _, value in pairs])
    params.set_classes([[float(getattr(c, key)) for key in CLASS] for c in cfg.per_class])
    return params


def python_init_params(cfg: ModelConfig) -> SimpleNamespace:
    """Give the configuration under the names of C++'s `NvDsInferContextInitParams`.

    Paths are text, empty where a key is not set.
    """
    more = {
        "inferInputDims": tuple(cfg.infer_dims or ()),
        "dynamicProperties": dict(_dynamic_properties(cfg)),
    }
    return SimpleNamespace(**_values(cfg), **more)


def _values(cfg: ModelConfig) -> dict[str, Any]:
    """Texts, numbers and lists by their field; a number that is not set is None."""
    values: dict[str, Any] = {}
    for name, key in {**PATHS, **TEXTS}.items():
        value = getattr(cfg, key, None)
        values[name] = "" if value is None else os.fspath(value)
    for name, key in NUMBERS.items():
        value = getattr(cfg, key, None)
        values[name] = value if isinstance(value, float) or value is None else int(value)
    for name, key in LISTS.items():
        values[name] = [str(item) for item in getattr(cfg, key, None) or ()]
    values[NETWORK_CONFIG] = os.fspath(darknet_cfg(cfg)) if cfg.custom_network_config else ""
    values["offsets"] = [float(v) for v in cfg.offsets or ()]
    return values


def model_files(cfg: ModelConfig) -> dict[str, Path]:
    """Map keys to the files that an engine creator may read."""
    paths = {key.replace("_", "-"): getattr(cfg, key, None) for key in MODEL_FILES[:-1]}
    if cfg.custom_network_config:
        paths["custom-network-config"] = darknet_cfg(cfg)
    return {key: path for key, path in paths.items() if path is not None and path.is_file()}


def _dynamic_properties(cfg: ModelConfig) -> list[tuple[str, str]]:
    items = (cfg.dynamic_properties or "").split(";")
    pairs = (item.partition("=") for item in items if item)
    return [(name.strip(), value.strip()) for name, _, value in pairs]
