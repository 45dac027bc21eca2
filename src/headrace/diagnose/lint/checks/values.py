"""Checks of a config's values: legal ones that leave nothing, or contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.findings import Data, Finding, Level
from headrace._core.text import quoted
from headrace.config.enums import ClusterMode, NetworkType, ProcessMode
from headrace.config.keys import PROPERTY_KEYS
from headrace.config.model_files import library_makes_networks
from headrace.infer.parsers import BuiltinParser
from headrace.infer.trial import advised

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.class_attrs import ClassAttrs
    from headrace.diagnose.lint.subject import CheckedConfig

_DUMPS = ("raw_output_file_write", "dump_input_tensor", "dump_output_tensor")
_THRESHOLDS = ("pre_cluster_threshold", "post_cluster_threshold")
_SUPPRESSED = re.compile(r"NMS|DETR")  # heads whose boxes come without duplicates
_LEAST_PERCENT = 5  # from here on a threshold is written in percent
_RAW = re.compile(r"HeadraceParse(Yolo(X|V8|V5|V5Raw)|SSD\w+|BoxesScores)")


def value_checks(checked: CheckedConfig) -> Iterator[Finding]:
    """Check the values of a config against each other."""
    cfg = checked.cfg
    yield from _detector(cfg)
    yield from _clustering(checked)
    yield from _thresholds(cfg)
    yield from _secondary(cfg)
    yield from _paths(cfg)
    yield from _offsets(cfg)
    yield from _labels(checked)
    yield from _library(checked)
    for name in _DUMPS:
        if getattr(cfg, name):
            text = f"{_key(name)}=1 writes files in every run"
            yield _at(cfg, name, "dump-left-on", text, "info")


def _key(field: str) -> str:
    return field.replace("_", "-")


def _at(
    cfg: ModelConfig, field: str, code: str, text: str, level: Level = "warning",
    data: Data | None = None,
    *, class_id: int | None = None,
) -> Finding:  # fmt: skip
    where = cfg.origin(field, class_id=class_id).where or str(cfg.path)
    return Finding(code, level, text, where, data or {})


def _classes(cfg: ModelConfig) -> Iterator[tuple[int, str, ClassAttrs]]:
    """Yield number, group and settings of each group of classes; -1 is that of all."""
    yield -1, "class-attrs-all", cfg.all_classes
    for number, attrs in cfg.classes.items():
        yield number, f"class-attrs-{number}", attrs


def _detector(cfg: ModelConfig) -> Iterator[Finding]:
    if not cfg.network_type.has_class_attrs:
        return
    count, out = cfg.num_detected_classes, set(cfg.filter_out_class_ids)
    if count and out >= set(range(count)):
        text = f"filter-out-class-ids drops each of the {count} classes: no box is left"
        yield _at(cfg, "filter_out_class_ids", "every-class-filtered", text)
    elif beyond := sorted(n for n in out if n >= count > 0):
        text = f"filter-out-class-ids names class {beyond[0]}, and num-detected-classes={count}"
        yield _at(cfg, "filter_out_class_ids", "filtered-class-beyond", text)
    for number, group, attrs in _classes(cfg):
        if attrs.topk == 0:
            yield _of_class(cfg, number, "topk", "topk-0", f"topk=0 in [{group}] keeps no box")
        for side in ("w", "h"):
            low = getattr(attrs, f"detected_min_{side}")
            high = getattr(attrs, f"detected_max_{side}")
            if 0 < high < low:
                text = f"detected-min-{side}={low} is above detected-max-{side}={high} in [{group}]"
                text += ": no box is left"
                yield _of_class(cfg, number, f"detected_min_{side}", "size-limits", text)


def _of_class(
    cfg: ModelConfig, number: int, field: str, code: str, text: str, data: Data | None = None
) -> Finding:
    return _at(cfg, field, code, text, data=data, class_id=number)


def _clustering(checked: CheckedConfig) -> Iterator[Finding]:
    cfg, choice = checked.cfg, checked.dry.choice
    if cfg.network_type is not NetworkType.DETECTOR:
        return
    for number, group, attrs in _classes(cfg):
        nms = cfg.cluster_mode in (ClusterMode.NMS, ClusterMode.HYBRID)
        if nms and attrs.nms_iou_threshold >= 1:
            text = f"nms-iou-threshold=1 in [{group}] suppresses nothing: every duplicate stays"
            yield _of_class(cfg, number, "nms_iou_threshold", "nms-iou-1", text)
    suppressing = _suppresses(checked)
    if choice is None or not isinstance(choice.parser, BuiltinParser) or suppressing is None:
        return
    head = choice.parser.head.name
    if cfg.cluster_mode is ClusterMode.NONE and not suppressing:
        text = f"cluster-mode=4 leaves every box of {head}, and the model suppresses none: the "
        text += "same object is found many times"
        finding = _at(cfg, "cluster_mode", "clustering-missing", text)
        yield advised(finding, [{"cluster-mode": "2"}])
    elif suppressing and cfg.cluster_mode is not ClusterMode.NONE and cfg.is_set("cluster_mode"):
        text = f"the outputs that {head} reads are suppressed by the model: cluster-mode="
        text += f"{int(cfg.cluster_mode)} suppresses again"
        yield _at(cfg, "cluster_mode", "clustering-twice", text, "info")


def _suppresses(checked: CheckedConfig) -> bool | None:
    """Whether the boxes come without duplicates; None where that is not known."""
    choice, network = checked.dry.choice, checked.network
    if choice is None or not isinstance(choice.parser, BuiltinParser):
        return None
    if _SUPPRESSED.search(choice.parser.head.name):
        return True
    if network is None or not _RAW.fullmatch(choice.parser.head.name):
        return None
    kinds = {node.op_type for node in network.model.graph.all_nodes()}
    if any("NMS" in kind or kind == "NonMaxSuppression" for kind in kinds):
        return True
    # a model that chooses its best rows has an end of its own
    return None if "TopK" in kinds else False


def _thresholds(cfg: ModelConfig) -> Iterator[Finding]:
    kind = cfg.network_type
    single = {
        NetworkType.CLASSIFIER: "classifier_threshold",
        NetworkType.SEGMENTATION: "segmentation_threshold",
        NetworkType.INSTANCE_SEGMENTATION: "segmentation_threshold",
    }.get(kind)
    if single and getattr(cfg, single) >= 1:
        text = f"{_key(single)}={getattr(cfg, single):g}: no probability is above it"
        yield _at(cfg, single, "threshold-above-all", text)
    if not kind.has_class_attrs:
        return
    for number, group, attrs in _classes(cfg):
        for name in _THRESHOLDS:
            value = getattr(attrs, name)
            if value > 1 or (value == 1 and name == "post_cluster_threshold"):
                text = f"{_key(name)}={value:g} in [{group}]: no score is above it"
                data = {}
                if _LEAST_PERCENT <= value <= 100 and value.is_integer():
                    text += "; is {write} meant?"
                    data["write"] = f"{value / 100:g}"
                yield _of_class(cfg, number, name, "threshold-above-all", text, data)


def _secondary(cfg: ModelConfig) -> Iterator[Finding]:
    if cfg.process_mode is not ProcessMode.SECONDARY:
        return
    for side in ("width", "height"):
        low = getattr(cfg, f"input_object_min_{side}")
        high = getattr(cfg, f"input_object_max_{side}")
        if 0 < high < low:
            text = f"input-object-min-{side}={low} is above input-object-max-{side}={high}: no "
            text += "object is inferred on"
            yield _at(cfg, f"input_object_min_{side}", "object-limits", text)
    if cfg.batch_size == 1:
        text = "batch-size=1 infers on one object at a time; 16 is usual for process-mode=2"
        yield _at(cfg, "batch_size", "batch-of-one", text, "info")


def _paths(cfg: ModelConfig) -> Iterator[Finding]:
    for key in PROPERTY_KEYS.values():
        value = getattr(cfg, key.field, None) if key.field else None
        if not isinstance(value, Path):
            continue
        assert key.field is not None
        written = cfg.origin(key.field).text or ""
        if written.startswith("/"):
            text = f"{key.name} is an absolute path: on another machine it is somewhere else"
            yield _at(cfg, key.field, "path-absolute", text, "info")


def _offsets(cfg: ModelConfig) -> Iterator[Finding]:
    unit = cfg.offsets and 0 < max(map(abs, cfg.offsets)) <= 1
    if unit and cfg.net_scale_factor < 0.1 and not cfg.mean_file:
        shown = ";".join(f"{255 * v:g}" for v in cfg.offsets)
        text = "offsets are subtracted from bytes, before net-scale-factor: these, in 0..1, move "
        text += "the image by nothing; write {write}"
        yield _at(cfg, "offsets", "offsets-in-unit", text, data={"write": shown})


def _labels(checked: CheckedConfig) -> Iterator[Finding]:
    cfg, labels = checked.cfg, checked.dry.labels
    path = cfg.labelfile_path
    if not labels.records:
        if cfg.network_type is NetworkType.DETECTOR and not path:
            text = "labelfile-path is absent: objects have the number of their class as label"
            yield Finding("labels-absent", "info", text, str(cfg.path))
        return
    if cfg.network_type is NetworkType.CLASSIFIER or path is None:
        return
    names, seen = labels.detector, dict[str, int]()
    for number, name in enumerate(names):
        where = f"{path}:{number + 1}"
        if name != name.strip() and not name.endswith("\r"):
            text = f"the blank around the label {quoted(name)!r} is part of it"
            yield Finding("labels-blank", "warning", text, where)
        elif name in seen:
            text = f"{quoted(name)!r} is the label of class {seen[name]}, too"
            yield Finding("labels-twice", "info", text, where)
        seen.setdefault(name, number)


def _library(checked: CheckedConfig) -> Iterator[Finding]:
    cfg, choice, network = checked.cfg, checked.dry.choice, checked.network
    if cfg.custom_lib_path is None or not cfg.custom_lib_path.is_file():
        return
    parses = choice is not None and choice.library is not None
    makes = library_makes_networks(cfg) or checked.dry.maker is not None
    plugins = network is not None and (network.unknown_operators() or len(network.inputs) > 1)
    if not parses and not makes and not plugins and network is not None:
        text = "nothing of this library is used: no key names a function of it, and the model has "
        text += "no plugins"
        yield _at(cfg, "custom_lib_path", "library-unused", text, "info")
