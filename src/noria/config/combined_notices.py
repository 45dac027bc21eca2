"""Notices that follow from several values together, such as a setting that disables another.

The ids X1 to X22 are those of the config facts, section 5.9; X1 to X4 and X20 are reported while
reading (`reading.py`), X22 is about element properties and cannot be seen in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from noria._core.notices import Notice
from noria._core.text import quoted
from noria.config.enums import ClusterMode, ColorFormat, NetworkMode, NetworkType, ProcessMode
from noria.config.keys import PROPERTY_KEYS
from noria.config.model_files import library_makes_networks, model_kind

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

_BY_FIELD = {key.field: key for key in PROPERTY_KEYS.values() if key.field}
_FUNCTIONS = {
    "parse_bbox_func_name": NetworkType.DETECTOR,
    "parse_bbox_instance_mask_func_name": NetworkType.INSTANCE_SEGMENTATION,
    "parse_classifier_func_name": NetworkType.CLASSIFIER,
    "parse_segmentation_func_name": NetworkType.SEGMENTATION,
}
_PREPROCESSING = (
    "net_scale_factor",
    "offsets",
    "mean_file",
    "model_color_format",
    "maintain_aspect_ratio",
    "symmetric_padding",
    "scaling_filter",
    "scaling_compute_hw",
    "interval",
)
_SECONDARY = tuple(k.field for k in PROPERTY_KEYS.values() if k.mode == "secondary" and k.field)


class Remark(NamedTuple):
    """One finding about `fields`; the first one gives the place.

    `complete`: nothing needs to be added about Noria not acting on these keys.
    """

    level: Literal["info", "warning"]
    fields: tuple[str, ...]
    message: str
    complete: bool = True


Rule = Callable[["ModelConfig"], Iterator[Remark]]


def rule_notices(cfg: ModelConfig) -> tuple[Notice, ...]:
    """All findings about a config, those about single keys that Noria does not act on included."""
    remarks = [remark for rule in _RULES for remark in rule(cfg)]
    reported = {name for remark in remarks if remark.complete for name in remark.fields}
    single = [*_idle(cfg, reported), *_inapplicable(cfg, reported)]
    return tuple(_notice(cfg, remark) for remark in [*remarks, *single])


def _notice(cfg: ModelConfig, remark: Remark) -> Notice:
    message = quoted(remark.message, limit=None)
    for name in remark.fields:
        origin = cfg.origin(name)
        if origin.kind != "default":
            return Notice(remark.level, message, str(origin))
    return Notice(remark.level, message, quoted(str(cfg.path), limit=None))


def _given(cfg: ModelConfig, name: str) -> bool:
    """Whether a file or program chose the value, and not the default."""
    return bool(getattr(cfg, name) != _BY_FIELD[name].default)


def _written(cfg: ModelConfig, name: str) -> bool:
    return cfg.origin(name).kind != "default"


def _names(fields: tuple[str, ...] | list[str]) -> str:
    return ", ".join(_BY_FIELD[name].name for name in fields)


def _idle(cfg: ModelConfig, reported: set[str]) -> Iterator[Remark]:
    """Keys that were read, that differ from their default, and that nothing acts on yet."""
    idle = [
        name
        for name, key in _BY_FIELD.items()
        if name not in reported and _given(cfg, name) and not _acts(cfg, name) and not key.reason
    ]
    if idle:
        places = []
        for name in idle:
            line = cfg.origin(name).line
            places.append(_BY_FIELD[name].name + (f" (line {line})" if line else ""))
        verb = "is" if len(idle) == 1 else "are"
        message = f"{', '.join(places)} {verb} read, and Noria does not act on it yet"
        if len(idle) > 1:
            message = message.replace("on it", "on them")
        yield Remark("warning", tuple(idle), message)


def _inapplicable(cfg: ModelConfig, reported: set[str]) -> Iterator[Remark]:
    """Keys that have nothing to act on here, and why."""
    for name, key in _BY_FIELD.items():
        if key.reason and name not in reported and _given(cfg, name):
            yield Remark("info", (name,), f"{key.name} has no effect: {key.reason}")


def _acts(cfg: ModelConfig, name: str) -> bool:
    key = _BY_FIELD[name]
    return key.acts and (not key.acts_for or getattr(cfg, name) in key.acts_for)


def _identity(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.gie_unique_id is None:
        yield Remark(
            "info",
            ("gie_unique_id",),
            "gie-unique-id is absent: 1 is used (the original needs it here or as a property)",
        )


def _x5_mean_file_beats_offsets(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.mean_file and cfg.offsets:
        yield Remark("warning", ("offsets",), "offsets are not used: mean-file wins")


def _x6_functions_of_other_types(cfg: ModelConfig) -> Iterator[Remark]:
    builder = cfg.engine_create_func_name
    kind = model_kind(cfg)
    if builder and kind and cfg.custom_lib_path is None:  # with a library, it says what it does
        used = {"onnx": "onnx-file", "uff": "uff-file"}.get(kind, "model-file")
        yield Remark(
            "info",
            ("engine_create_func_name",),
            f"engine-create-func-name={builder} is not called: {used} is used",
        )
    for name, network_type in _FUNCTIONS.items():
        function = getattr(cfg, name)
        if not function:
            continue
        key = _BY_FIELD[name].name
        if cfg.network_type is not network_type:
            yield Remark(
                "warning",
                (name,),
                f"{key}={function} is not used: it is for network-type {network_type}",
            )


def _x7_padding_needs_letterbox(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.symmetric_padding and not cfg.maintain_aspect_ratio:
        yield Remark(
            "warning",
            ("symmetric_padding",),
            "symmetric-padding has no effect without maintain-aspect-ratio=1",
        )


def _x8_scale_switches_offsets_off(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.net_scale_factor <= 0:
        loses = " and offsets are not applied" if cfg.offsets else ""
        yield Remark(
            "warning",
            ("net_scale_factor", "offsets") if cfg.offsets else ("net_scale_factor",),
            f"net-scale-factor={cfg.net_scale_factor:g} is not above 0: 1 is used{loses}",
        )


def _x9_precision(cfg: ModelConfig) -> Iterator[Remark]:
    """The engine reports the precision that results."""
    if cfg.network_mode in (NetworkMode.INT8, NetworkMode.BEST) and cfg.int8_calib_file is None:
        yield Remark(
            "info",
            ("network_mode",),
            f"network-mode {cfg.network_mode} without int8-calib-file: the original builds FP16",
            False,
        )


def _x10_x11_other_models(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.tlt_encoded_model and not cfg.tlt_model_key:
        yield Remark(
            "warning", ("tlt_encoded_model",), "tlt-encoded-model needs tlt-model-key", False
        )
    darknet = cfg.custom_network_config and cfg.model_file
    alone = bool(cfg.model_file) != bool(cfg.proto_file)
    if alone and not darknet and not library_makes_networks(cfg):
        here, there = (
            ("model_file", "proto_file") if cfg.model_file else ("proto_file", "model_file")
        )
        yield Remark("warning", (here,), f"{_names([here])} needs {_names([there])}", False)
    caffe = cfg.model_file and cfg.proto_file and not darknet
    if (caffe or cfg.uff_file) and not cfg.output_blob_names:
        field = "model_file" if caffe else "uff_file"
        yield Remark("warning", (field,), f"{_names([field])} needs output-blob-names", False)
    if cfg.uff_file and not (cfg.uff_input_blob_name and cfg.infer_dims):
        yield Remark(
            "warning", ("uff_file",), "uff-file needs uff-input-blob-name and infer-dims", False
        )


def _x12_masks_need_mode_4(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.cluster_mode is ClusterMode.NONE:
        return
    if cfg.network_type is NetworkType.INSTANCE_SEGMENTATION:
        yield Remark(
            "warning",
            ("cluster_mode", "network_type"),
            "network-type 3 needs cluster-mode=4: the original refuses to start",
        )
    if cfg.output_instance_mask:
        yield Remark(
            "warning",
            ("output_instance_mask",),
            "output-instance-mask needs cluster-mode=4: the original refuses to start",
            False,
        )


def _x13_dla(cfg: ModelConfig) -> Iterator[Remark]:
    if _given(cfg, "use_dla_core") and not cfg.enable_dla:
        yield Remark(
            "info",
            ("use_dla_core",),
            "use-dla-core has no effect without enable-dla=1; no DLA is driven anyway",
        )


def _x14_async(cfg: ModelConfig) -> Iterator[Remark]:
    secondary_classifier = (
        cfg.network_type is NetworkType.CLASSIFIER and cfg.process_mode is ProcessMode.SECONDARY
    )
    if cfg.classifier_async_mode and not secondary_classifier:
        yield Remark(
            "warning",
            ("classifier_async_mode",),
            "classifier-async-mode has no effect without network-type=1 and process-mode=2",
        )


def _x15_nhwc_needs_dims(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.network_input_order and cfg.infer_dims is None:
        yield Remark(
            "warning",
            ("network_input_order",),
            "network-input-order=1 needs infer-dims: the original takes the size for C,H,W",
        )


def _x16_tensor_input(cfg: ModelConfig) -> Iterator[Remark]:
    useless = tuple(name for name in _PREPROCESSING if _given(cfg, name))
    if cfg.input_tensor_from_meta and useless:
        yield Remark(
            "warning",
            ("input_tensor_from_meta", *useless),
            f"not used with input-tensor-from-meta=1: {_names(useless)}; whoever makes the tensors "
            "scales, and chooses the frames",
        )


def _x17_pool(cfg: ModelConfig) -> Iterator[Remark]:
    if not cfg.auto_inc_mem and cfg.output_tensor_meta:
        reason = _BY_FIELD["auto_inc_mem"].reason
        yield Remark(
            "info",
            ("auto_inc_mem",),
            f"auto-inc-mem has no effect: {reason} (the original can stall with auto-inc-mem=0 and "
            "output-tensor-meta=1)",
        )


def _x18_host_copy(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.disable_output_host_copy:
        reason = _BY_FIELD["disable_output_host_copy"].reason
        yield Remark(
            "info",
            ("disable_output_host_copy",),
            f"disable-output-host-copy has no effect: {reason} (in the original a parser has to "
            "read GPU memory)",
        )


def _x19_other_mode(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.process_mode is ProcessMode.PRIMARY:
        useless = tuple(n for n in _SECONDARY if _given(cfg, n) and n != "classifier_async_mode")
        if useless:
            message = f"not used with process-mode 1: {_names(useless)}"
            if "operate_on_class_ids" in useless:
                message += "; to drop classes of this model's own boxes write filter-out-class-ids"
            elif not _written(cfg, "process_mode"):
                message += "; is process-mode=2 missing?"
            yield Remark("warning", useless, message)
    elif cfg.interval:
        yield Remark("warning", ("interval",), "interval is not used with process-mode 2")


def _x21_overwrite(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.overwrite_input_tensor and not cfg.ip_tensor_file:
        yield Remark(
            "warning",
            ("overwrite_input_tensor",),
            "overwrite-input-tensor needs ip-tensor-file",
            False,
        )
    if cfg.overwrite_output_tensor and not (cfg.op_tensor_files and cfg.output_blob_names):
        yield Remark(
            "warning",
            ("overwrite_output_tensor",),
            "overwrite-output-tensor needs op-tensor-files and output-blob-names",
            False,
        )


def _scale(cfg: ModelConfig) -> Iterator[Remark]:
    if not _written(cfg, "net_scale_factor") and not cfg.input_tensor_from_meta:
        yield Remark(
            "info",
            ("net_scale_factor",),
            "net-scale-factor is absent: the model gets values up to 255 "
            "(one trained on 0..1 needs 0.00392156862745098)",
        )


def _offsets_match_channels(cfg: ModelConfig) -> Iterator[Remark]:
    channels = 1 if cfg.model_color_format is ColorFormat.GRAY else 3
    if cfg.offsets and len(cfg.offsets) != channels and not cfg.mean_file:
        yield Remark(
            "warning",
            ("offsets",),
            f"{len(cfg.offsets)} offsets for {channels} channels of model-color-format "
            f"{cfg.model_color_format}: one per channel is needed",
        )


def _detector(cfg: ModelConfig) -> Iterator[Remark]:
    """Detector settings that leave no box, or other boxes than expected."""
    if cfg.network_type is not NetworkType.DETECTOR:
        return
    if cfg.num_detected_classes == 0:
        yield Remark(
            "warning",
            ("num_detected_classes",),
            "num-detected-classes is 0: every box is dropped; write the number of classes",
        )
    attrs = {cfg.all_classes, *cfg.classes.values()}
    if all(a.pre_cluster_threshold >= 1 for a in attrs):
        yield Remark(
            "warning", (), "pre-cluster-threshold is 1 or more for every class: no box can pass"
        )
    if cfg.cluster_mode in (ClusterMode.DBSCAN, ClusterMode.HYBRID):
        if not any(a.min_boxes for a in attrs):
            yield Remark(
                "warning",
                ("cluster_mode",),
                f"cluster-mode {cfg.cluster_mode} skips DBSCAN while minBoxes is 0: every raw box "
                "goes through",
            )
        elif not any(a.eps for a in attrs):
            yield Remark(
                "warning",
                ("cluster_mode",),
                f"cluster-mode {cfg.cluster_mode} with eps 0: no box ever has a neighbour",
            )
    elif cfg.cluster_mode is ClusterMode.NMS and any(a.eps or a.min_boxes for a in attrs):
        yield Remark(
            "info",
            ("cluster_mode",),
            "eps and minBoxes have no effect with cluster-mode 2, which is NMS (DBSCAN is 1)",
        )
    yield from _mode_0(cfg)


def _mode_0(cfg: ModelConfig) -> Iterator[Remark]:
    if cfg.cluster_mode is not ClusterMode.GROUP_RECTANGLES:
        return
    ids: tuple[int | None, ...] = (0, *cfg.classes)
    lost = [
        key
        for key, name in (("topk", "topk"), ("nms-iou-threshold", "nms_iou_threshold"))
        if any(cfg.origin(name, class_id=n).kind != "default" for n in ids)
    ]
    asked = _written(cfg, "cluster_mode") or lost
    message = (
        f"cluster-mode is {0 if _written(cfg, 'cluster_mode') else 'absent'}: boxes are clustered "
        "by NMS with IoU 0.5 and the 20 best per class, as the original does since 6.0"
    )
    if lost:
        message += f"; {' and '.join(lost)} of this file lose against that"
    yield Remark(
        "warning" if asked else "info",
        ("cluster_mode",),
        f"{message}; write cluster-mode=2 for NMS with your own values",
    )


_RULES: tuple[Rule, ...] = (
    _identity,
    _x5_mean_file_beats_offsets,
    _x6_functions_of_other_types,
    _x7_padding_needs_letterbox,
    _x8_scale_switches_offsets_off,
    _x9_precision,
    _x10_x11_other_models,
    _x12_masks_need_mode_4,
    _x13_dla,
    _x14_async,
    _x15_nhwc_needs_dims,
    _x16_tensor_input,
    _x17_pool,
    _x18_host_copy,
    _x19_other_mode,
    _x21_overwrite,
    _scale,
    _offsets_match_channels,
    _detector,
)
