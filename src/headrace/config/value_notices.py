"""Notices of values that are legal and probably not meant, alone or together with others.

The ids X1 to X22 are those of the config facts, section 5.9; X1 to X4 and X20 are reported while
reading (`reading.py`), X22 is about element properties and cannot be seen in a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.config.document import Document, Entry
from headrace.config.enums import (
    PARSER_FIELDS,
    ClusterMode,
    ColorFormat,
    NetworkMode,
    NetworkType,
    ProcessMode,
)
from headrace.config.field_checks import KEY_OF_FIELD
from headrace.config.key import Key
from headrace.config.keys import PROPERTY_KEYS
from headrace.config.model_files import foreign_value, library_makes_networks, model_kind
from headrace.config.values import Kind

if TYPE_CHECKING:
    from headrace.config.model_fields import ModelFields

_COMMENT = re.compile(r"\s(#|;|//)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"\s*([\"']).*\1\s*", re.DOTALL)
_LEADING_INT = re.compile(r"\s*[+-]?[0-9]+")
_TEXTS = (Kind.STRING, Kind.PATH, Kind.STRINGS, Kind.PATHS)
# YAML: texts that the original cuts shorter, or longer, than the others; up to which generation.
_CUTS = {
    "output-blob-names": (63, ""),
    "output-io-formats": (63, ""),
    "classifier-type": (63, ""),
    "layer-device-precision": (63, " up to 6.3"),
    "custom-network-config": (4095, ""),
}


def remark_text(document: Document, entry: Entry, key: Key) -> None:
    """Add notices about one entry with an accepted text: quotes, comments and blanks inside."""
    if key.kind not in _TEXTS:
        _remark_on_number(document, entry, key)
        return
    text, name, form = entry.text, key.name, document.form_of(entry)
    if not text:
        text = f"{name} is empty and counts as absent"
        document.remark(entry.line, text, "info", code="value-empty")
        return
    remarks = []
    if _QUOTED.fullmatch(text):
        remarks.append(("value-quoted", "the quotes are part of the value: remove them"))
    if form == "ini" and _COMMENT.search(text) and key.kind in (Kind.STRING, Kind.PATH):
        message = "what looks like a comment is part of the value: put it on its own line"
        remarks.append(("value-comment", message))
    if text != text.rstrip():
        remarks.append(("value-blank", "the blank at the end is part of the value: remove it"))
    if key.kind is Kind.PATH and (text.startswith("~") or "$" in text):
        remarks.append(("path-variable", "neither ~ nor $NAME is expanded"))
    if name.endswith("func-name") and not remarks and not _IDENTIFIER.fullmatch(text):
        message = "no function can be called that: letters, digits and _ only"
        remarks.append(("function-name", message))
    if form == "yaml" and key.kind is Kind.STRINGS and "" in text.split(";"):
        message = "there is an empty item: no semicolon behind the last one in YAML"
        remarks.append(("list-item", message))
    for code, message in remarks:
        document.remark(entry.line, f"{document.written(entry)}: {message}", code=code)
    cut, until = _CUTS.get(name, (1023, "")) if form == "yaml" else (1023, "")
    items = text.split(";") if key.kind is Kind.STRINGS else [text]
    if key.kind in (Kind.STRING, Kind.STRINGS) and any(len(i.encode()) > cut for i in items):
        message = f"the original{until} cuts it after {cut} bytes, Headrace does not"
        message = f"{document.written(entry)}: {message}"
        document.remark(entry.line, message, "info", code="value-cut")


def _remark_on_number(document: Document, entry: Entry, key: Key) -> None:
    """Report the rest of a text of which only the start is read as a number."""
    text = entry.text
    if key.kind in (Kind.INT, Kind.INT_FLAG, Kind.FLAG):
        items = [text]
    elif key.kind is Kind.INTS:
        items = text.removesuffix(";").split(";") if text else []
    else:
        return
    # YAML reads all of a hexadecimal number, but for keys that are read loosely
    whole = document.form_of(entry) == "yaml" and not key.loose and key.kind is not Kind.INTS
    for item in items:
        match = _LEADING_INT.match(item)
        rest = item[match.end() :].strip() if match else ""
        if match is None and key.kind is Kind.INTS:
            text = f"{document.written(entry)}: the item '{quoted(item)}' is read as 0"
            document.remark(entry.line, text, code="list-item")
        elif match and rest and not rest.startswith(("#", "//")) and not whole:
            document.remark(
                entry.line,
                f"{document.written(entry)}: only {match[0].strip()} is read, "
                f"'{quoted(rest)}' is not",
                code="number-rest",
            )


_PREPROCESSING = (
    "net_scale_factor", "offsets", "mean_file", "model_color_format", "maintain_aspect_ratio",
    "symmetric_padding", "scaling_filter", "scaling_compute_hw", "interval",
)  # fmt: skip
_SECONDARY = tuple(k.field for k in PROPERTY_KEYS.values() if k.mode == "secondary" and k.field)


class Remark(NamedTuple):
    """One finding about `fields`; the first one gives the place.

    `complete`: nothing needs to be added about Headrace not acting on these keys.
    """

    level: Literal["info", "warning"]
    fields: tuple[str, ...]
    message: str
    code: str
    complete: bool = True


Rule = Callable[["ModelFields"], Iterator[Remark]]


def rule_notices(cfg: ModelFields) -> tuple[Finding, ...]:
    """All findings about a config, those about keys that Headrace does not act on included."""
    remarks = [remark for rule in _RULES for remark in rule(cfg)]
    reported = {name for remark in remarks if remark.complete for name in remark.fields}
    single = [*_idle(cfg, reported), *_inapplicable(cfg, reported)]
    return tuple(_notice(cfg, remark) for remark in [*remarks, *single])


def _notice(cfg: ModelFields, remark: Remark) -> Finding:
    message = quoted(remark.message, limit=None)
    for name in remark.fields:
        origin = cfg.origin(name)
        if origin.kind != "default":
            return Finding(remark.code, remark.level, message, str(origin))
    return Finding(remark.code, remark.level, message, quoted(str(cfg.path), limit=None))


def _given(cfg: ModelFields, name: str) -> bool:
    """Whether a file or program chose the value, and not the default."""
    return bool(getattr(cfg, name) != KEY_OF_FIELD[name].default)


def _written(cfg: ModelFields, name: str) -> bool:
    return cfg.origin(name).kind != "default"


def _names(fields: list[str]) -> str:
    return ", ".join(KEY_OF_FIELD[name].name for name in fields)


def _idle(cfg: ModelFields, reported: set[str]) -> Iterator[Remark]:
    """Keys that were read, that differ from their default, and that nothing acts on yet."""
    idle = [
        name
        for name, key in KEY_OF_FIELD.items()
        if name not in reported and _given(cfg, name) and not _acts(cfg, name) and not key.reason
    ]
    if idle:
        lines = {name: cfg.origin(name).line for name in idle}
        listing = ", ".join(
            KEY_OF_FIELD[name].name + (f" (line {line})" if line else "")
            for name, line in lines.items()
        )
        verb, them = ("is", "it") if len(idle) == 1 else ("are", "them")
        message = f"{listing} {verb} read, and Headrace does not act on {them} yet"
        yield _warn(message, *idle, code="key-idle")


def _inapplicable(cfg: ModelFields, reported: set[str]) -> Iterator[Remark]:
    """Keys that have nothing to act on here, and why."""
    for name, key in KEY_OF_FIELD.items():
        if key.reason and name not in reported and _given(cfg, name):
            yield _info(f"{key.name} has no effect: {key.reason}", name, code="key-without-effect")


def _acts(cfg: ModelFields, name: str) -> bool:
    key = KEY_OF_FIELD[name]
    return key.acts and (not key.acts_for or getattr(cfg, name) in key.acts_for)


def _warn(message: str, *fields: str, code: str, complete: bool = True) -> Remark:
    return Remark("warning", fields, message, code, complete)


def _info(message: str, *fields: str, code: str, complete: bool = True) -> Remark:
    return Remark("info", fields, message, code, complete)


def _functions(cfg: ModelFields) -> Iterator[Remark]:
    if cfg.gie_unique_id is None:
        message = (
            "gie-unique-id is absent: 1 is used, or the first number that no other model has; "
        )
        message += "the original, and --generation, refuse it"
        yield _info(message, "gie_unique_id", code="unique-id-absent")
    if cfg.mean_file and cfg.offsets:  # X5
        message = "offsets are not used: mean-file wins"
        yield _warn(message, "offsets", code="mean-file-wins")
    # X6
    builder = cfg.engine_create_func_name
    kind = model_kind(cfg)
    if builder and kind and cfg.custom_lib_path is None:  # with a library, it says what it does
        used = {"onnx": "onnx-file", "uff": "uff-file"}.get(kind, "model-file")
        message = f"engine-create-func-name={builder} is not called: {used} is used"
        yield _info(message, "engine_create_func_name", code="builder-unused")
    for network_type, name in PARSER_FIELDS.items():
        function = getattr(cfg, name)
        if function and cfg.network_type is not network_type:
            key = KEY_OF_FIELD[name].name
            message = f"{key}={function} is not used: it is for network-type {network_type}"
            yield _warn(message, name, code="function-of-other-type")


def _preprocessing(cfg: ModelFields) -> Iterator[Remark]:
    if cfg.symmetric_padding and not cfg.maintain_aspect_ratio:  # X7
        message = "symmetric-padding has no effect without maintain-aspect-ratio=1"
        yield _warn(message, "symmetric_padding", code="padding-without-ratio")
    if cfg.net_scale_factor <= 0:  # X8
        loses = " and offsets are not applied" if cfg.offsets else ""
        message = f"net-scale-factor={cfg.net_scale_factor:g} is not above 0: 1 is used{loses}"
        fields = ["net_scale_factor", *(["offsets"] if cfg.offsets else [])]
        yield _warn(message, *fields, code="scale-not-positive")


def _engine(cfg: ModelFields) -> Iterator[Remark]:
    # X9; the engine reports the precision that results
    if cfg.network_mode in (NetworkMode.INT8, NetworkMode.BEST) and cfg.int8_calib_file is None:
        message = (
            f"network-mode {cfg.network_mode} without int8-calib-file: the original builds FP16"
        )
        yield _info(message, "network_mode", code="int8-of-original", complete=False)
    # X10, X11
    encoded = cfg.tlt_encoded_model and not foreign_value(cfg, "tlt-encoded-model")
    if encoded and not cfg.tlt_model_key:
        message = "tlt-encoded-model needs tlt-model-key"
        yield _warn(message, "tlt_encoded_model", code="encoded-model-key", complete=False)
    darknet = cfg.custom_network_config and cfg.model_file
    alone = bool(cfg.model_file) != bool(cfg.proto_file)
    if alone and not darknet and not library_makes_networks(cfg):
        here, there = ("model", "proto") if cfg.model_file else ("proto", "model")
        message = f"{here}-file needs {there}-file"
        sighting = foreign_value(cfg, f"{here}-file")
        if sighting is not None:
            message = f"{here}-file takes Caffe's and Darknet's models: {sighting.summary}"
        yield _warn(message, f"{here}_file", code="model-in-halves", complete=False)
    caffe = cfg.model_file and cfg.proto_file and not darknet
    if (caffe or cfg.uff_file) and not cfg.output_blob_names:
        kind = "model" if caffe else "uff"
        message = f"{kind}-file needs output-blob-names"
        yield _warn(message, f"{kind}_file", code="outputs-not-named", complete=False)
    if cfg.uff_file and not (cfg.uff_input_blob_name and cfg.infer_dims):
        message = "uff-file needs uff-input-blob-name and infer-dims"
        yield _warn(message, "uff_file", code="uff-input", complete=False)


def _outputs(cfg: ModelFields) -> Iterator[Remark]:
    if cfg.cluster_mode is not ClusterMode.NONE:  # X12
        refused = "needs cluster-mode=4: the original refuses to start"
        if cfg.network_type is NetworkType.INSTANCE_SEGMENTATION:
            message = f"network-type 3 {refused}"
            yield _warn(message, "cluster_mode", "network_type", code="masks-clustered")
        if cfg.output_instance_mask:
            message = f"output-instance-mask {refused}"
            yield _warn(message, "output_instance_mask", code="masks-clustered", complete=False)
    if _given(cfg, "use_dla_core") and not cfg.enable_dla:  # X13
        message = "use-dla-core has no effect without enable-dla=1; no DLA is driven anyway"
        yield _info(message, "use_dla_core", code="dla")
    secondary_classifier = (
        cfg.network_type is NetworkType.CLASSIFIER and cfg.process_mode is ProcessMode.SECONDARY
    )
    if cfg.classifier_async_mode and not secondary_classifier:  # X14
        message = "classifier-async-mode has no effect: it is for classifiers (network-type=1) of "
        message += "the objects that another model finds (process-mode=2)"
        yield _warn(message, "classifier_async_mode", code="async-without-objects")


def _tensors(cfg: ModelFields) -> Iterator[Remark]:
    if cfg.network_input_order and cfg.infer_dims is None:  # X15
        message = "network-input-order=1 needs infer-dims: the original takes the size for C,H,W"
        yield _warn(message, "network_input_order", code="order-without-dims")
    useless = [name for name in _PREPROCESSING if _given(cfg, name)]
    if cfg.input_tensor_from_meta and useless:  # X16
        message = (
            f"not used with input-tensor-from-meta=1: {_names(useless)}; whoever makes the tensors "
            "scales, and chooses the frames"
        )
        fields = ["input_tensor_from_meta", *useless]
        yield _warn(message, *fields, code="unused-with-own-tensors")
    if not cfg.auto_inc_mem and cfg.output_tensor_meta:  # X17
        message = (
            f"auto-inc-mem has no effect: {KEY_OF_FIELD['auto_inc_mem'].reason} (the original can "
            "stall with auto-inc-mem=0 and output-tensor-meta=1)"
        )
        yield _info(message, "auto_inc_mem", code="key-without-effect")
    if cfg.disable_output_host_copy:  # X18
        reason = KEY_OF_FIELD["disable_output_host_copy"].reason
        message = (
            f"disable-output-host-copy has no effect: {reason} (in the original a parser has to "
            "read GPU memory)"
        )
        yield _info(message, "disable_output_host_copy", code="key-without-effect")


def _other_mode(cfg: ModelFields) -> Iterator[Remark]:  # X19
    if cfg.process_mode is ProcessMode.PRIMARY:
        useless = [n for n in _SECONDARY if _given(cfg, n) and n != "classifier_async_mode"]
        if useless:
            message = f"not used with process-mode 1: {_names(useless)}"
            if "operate_on_class_ids" in useless and "operate_on_gie_id" not in useless:
                message += "; to drop classes of this model's own boxes write filter-out-class-ids"
            elif not _written(cfg, "process_mode"):
                message += "; for a model of the objects that another one finds, process-mode=2 "
                message += "is missing"
            yield _warn(message, *useless, code="key-of-other-mode")
    elif cfg.interval:
        message = "interval is not used with process-mode 2"
        yield _warn(message, "interval", code="key-of-other-mode")


def _values(cfg: ModelFields) -> Iterator[Remark]:
    # X21
    if cfg.overwrite_input_tensor and not cfg.ip_tensor_file:
        message = "overwrite-input-tensor needs ip-tensor-file"
        yield _warn(message, "overwrite_input_tensor", code="tensor-files", complete=False)
    if cfg.overwrite_output_tensor and not (cfg.op_tensor_files and cfg.output_blob_names):
        message = "overwrite-output-tensor needs op-tensor-files and output-blob-names"
        yield _warn(message, "overwrite_output_tensor", code="tensor-files", complete=False)
    if not _written(cfg, "net_scale_factor") and not cfg.input_tensor_from_meta:
        message = (
            "net-scale-factor is absent: the model gets values up to 255 "
            "(one trained on 0..1 needs 0.00392156862745098)"
        )
        yield _info(message, "net_scale_factor", code="scale-absent")
    channels = 1 if cfg.model_color_format is ColorFormat.GRAY else 3
    if cfg.offsets and len(cfg.offsets) != channels and not cfg.mean_file:
        message = (
            f"{len(cfg.offsets)} offsets for {channels} channels of model-color-format "
            f"{cfg.model_color_format}: one per channel is needed"
        )
        yield _warn(message, "offsets", code="offsets-count")


def _detector(cfg: ModelFields) -> Iterator[Remark]:
    """Detector settings that leave no box, or other boxes than expected."""
    if cfg.network_type is not NetworkType.DETECTOR:
        return
    if cfg.num_detected_classes == 0:
        message = "num-detected-classes is 0: every box is dropped; write the number of classes"
        yield _warn(message, "num_detected_classes", code="no-classes")
    attrs = {cfg.all_classes, *cfg.classes.values()}
    if all(a.pre_cluster_threshold >= 1 for a in attrs):
        message = "pre-cluster-threshold is 1 or more for every class: no box can pass"
        yield _warn(message, code="threshold-above-all")
    mode = f"cluster-mode {cfg.cluster_mode}"
    # a library, or NMS in the model, may apply a threshold of its own
    own = cfg.custom_lib_path or cfg.cluster_mode is ClusterMode.NONE
    if not own and all(a.pre_cluster_threshold <= 0 for a in attrs):
        message = "pre-cluster-threshold is 0 for every class: every candidate counts as a box"
        yield _warn(message, code="threshold-0")
    suppresses = cfg.cluster_mode in (ClusterMode.NMS, ClusterMode.HYBRID)
    if suppresses and any(a.nms_iou_threshold <= 0 for a in attrs):
        message = "nms-iou-threshold is 0: of boxes of a class that touch, only the best stays"
        yield _warn(message, code="nms-iou-0")
    if cfg.cluster_mode in (ClusterMode.DBSCAN, ClusterMode.HYBRID):
        hybrid = cfg.cluster_mode is ClusterMode.HYBRID
        if not any(a.min_boxes for a in attrs):
            left = (
                "NMS alone runs, as with cluster-mode=2" if hybrid else "every raw box goes through"
            )
            message = f"{mode} skips DBSCAN while minBoxes is 0: {left}"
            yield _warn(message, "cluster_mode", code="dbscan-skipped")
        elif not any(a.eps for a in attrs):
            left = ", and NMS does the work" if hybrid else ""
            message = f"{mode} with eps 0: no box ever has a neighbour{left}"
            yield _warn(message, "cluster_mode", code="dbscan-eps-0")
    elif cfg.cluster_mode is ClusterMode.NMS and any(a.eps or a.min_boxes for a in attrs):
        message = "eps and minBoxes have no effect with cluster-mode 2, which is NMS (DBSCAN is 1)"
        yield _info(message, "cluster_mode", code="cluster-keys-unused")
    elif cfg.cluster_mode is ClusterMode.GROUP_RECTANGLES:
        yield _mode_0(cfg)


def _mode_0(cfg: ModelFields) -> Remark:
    ids = (0, *cfg.classes)
    replaced = cfg.effective_cluster.overrides
    lost = [
        key
        for key, name in (("topk", "topk"), ("nms-iou-threshold", "nms_iou_threshold"))
        if any(
            cfg.origin(name, class_id=n).kind != "default"
            and getattr(cfg.class_attrs(n or 0), name) != replaced[name]
            for n in ids
        )
    ]
    written = _written(cfg, "cluster_mode")
    message = (
        f"cluster-mode is {0 if written else 'absent'}: boxes are clustered "
        "by NMS with IoU 0.5 and the 20 best per class, as the original does since 6.0"
    )
    if lost:
        message += f"; {' and '.join(lost)} of this file lose against that"
    message += "; write cluster-mode=2 for NMS with your own values"
    level = _warn if written or lost else _info
    return level(message, "cluster_mode", code="cluster-mode-0")


_RULES: tuple[Rule, ...] = (
    _functions, _preprocessing, _engine, _outputs, _tensors, _other_mode, _values, _detector
)  # fmt: skip
