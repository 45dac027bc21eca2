"""The usual mistakes: for each dimension of a set-up the values that people mean."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, ModelError
from headrace.config.enums import PARSER_FIELDS, NetworkType, ProcessMode
from headrace.config.model_config import ModelConfig
from headrace.custom.library import parsers_in
from headrace.diagnose.repair.evidence import PARSER_KEYS, ModelEvidence
from headrace.infer.parsers import WELL_KNOWN, WELL_KNOWN_INSTANCES, BuiltinParser
from headrace.infer.recognise.exporters import IMAGENET_BGR, ULTRA, USUAL
from headrace.infer.trial import Change, range_change

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.config import ClassAttrs
    from headrace.diagnose.repair.setup_runs import SetupRun

RANGES = (*USUAL, ULTRA)
"""Scalings in use."""

THRESHOLD, IOU = "0.25", "0.45"
"""Usual thresholds of scores, and of the overlap of two objects' boxes."""

_ABOUT = {
    "range": "input-range scale-not-positive scale-absent offsets-count offsets-in-unit mean-file "
    "outputs-constant outputs-not-finite",
    "colours": "input-colors input-channels",
    "fit": "aspect-ratio padding-without-ratio",
    "input": "input-transposed input-dims order-without-dims",
    "parser": "boxes-corners boxes-cut boxes-empty boxes-full boxes-in-0..1 boxes-inverted "
    "boxes-odd boxes-on-one-point boxes-outside boxes-within-1 parser-silent "
    "parser-misfit parser-missing parser-failed scores-above-1 scores-alike scores-below-0 "
    "function-without-library function-of-other-type outputs-unread",
    "classes": "class-count classes-dropped no-classes",
    "thresholds": "threshold-0 threshold-above-all too-many-boxes",
    "clustering": "overlaps nms-iou-0 cluster-mode-0 dbscan-eps-0 dbscan-skipped masks-clustered",
    "process-mode": "objects-from-nowhere tensors-from-nowhere",
    "labels": "labels-count labels-moved labels-background labels-blank labels-byte-order-mark "
    "labels-carriage-return labels-encoding labels-numbered labels-needed classifier-labels "
    "class-without-label background-class",
}
DIMENSIONS = {code: name for name, codes in _ABOUT.items() for code in codes.split()}
"""Rule -> the dimension of a set-up that it speaks of; others say nothing of the results."""

_ALL = "class-attrs-all."
_LOW, _HIGH = 0.02, 0.8  # thresholds of scores outside of it are seldom meant
_MOST_READERS, _MOST_MODELS = 8, 3  # parsers and models that are tried at most
_LABELS = re.compile("label|class|name", re.IGNORECASE)
_MOST_BYTES = 1 << 20  # of a file of labels


@dataclass(frozen=True, slots=True)
class Cure:
    """One value of a dimension.

    Attributes:
        dimension: of the search; a set-up changes each at most once.
        change: the keys.
        why: what speaks for it, in words.
        firm: the model's file or a finding says so; else it is tried as a usual value.
    """

    dimension: str
    change: Change
    why: str
    firm: bool = False


def stated_cures(evidence: ModelEvidence) -> list[Cure]:
    """Cures that the model's file speaks for."""
    return [
        Cure(one.dimension, one.change, one.why if one.firm else f"usual: {one.why}", one.firm)
        for one in evidence.statements
    ]  # fmt: skip


_OF_KEYS = {
    "net-scale-factor": "range", "offsets": "range", "model-color-format": "colours",
    "maintain-aspect-ratio": "fit", "symmetric-padding": "fit", "num-detected-classes": "classes",
    "cluster-mode": "clustering", "infer-dims": "input", "network-input-order": "input",
}  # fmt: skip


def finding_cures(findings: Sequence[Finding]) -> list[Cure]:
    """The changes that findings of a run carry; firm where it is one, not one of several."""
    cures = []
    for finding in findings:
        rows = [row["set"] for row in finding.data.get("advice", ())]
        if not rows and "set" in finding.data:
            rows = [finding.data["set"]]
        for row in rows:
            change = {key: None if value is None else str(value) for key, value in row.items()}
            if (without := finding.data.get("without")) and len(rows) == 1:
                change.setdefault(without, None)
            name = next(iter(change), "")
            why, firm = f"finding {finding.code}", len(rows) == 1
            cures.append(Cure(_OF_KEYS.get(name, name), change, why, firm))
    return cures


def range_cures(cfg: ModelConfig | None) -> list[Cure]:
    """Usual scalings; a mean image gives way to them."""
    cures = []
    bgr = cfg is not None and int(cfg.model_color_format) == 1
    for scaling in (*RANGES, IMAGENET_BGR) if bgr else RANGES:
        change: dict[str, str | None] = {"mean-file": None, "offsets": None}
        change |= range_change(scaling, cfg or ModelConfig())
        cures.append(Cure("range", change, f"usual: {scaling.words}"))
    return cures


def colour_cures() -> list[Cure]:
    """The orders of colours."""
    words = ("RGB", "BGR", "grey")
    return [
        Cure("colours", {"model-color-format": str(number)}, f"usual: {word}")
        for number, word in enumerate(words)
    ]


def fit_cures() -> list[Cure]:
    """Ways to bring an image to the network's size."""
    rows: tuple[tuple[str | None, str | None, str], ...] = (
        ("1", "1", "fitted in, bars around"), ("1", None, "fitted in, bars right or below"),
        (None, None, "stretched"),
    )  # fmt: skip
    keys = ("maintain-aspect-ratio", "symmetric-padding")
    return [Cure("fit", dict(zip(keys, row[:2], strict=True)), f"usual: {row[2]}")
            for row in rows]  # fmt: skip


def parser_cures(
    evidence: ModelEvidence, cfg: ModelConfig | None, *, twins: bool = False
) -> list[Cure]:
    """Built-in parsers that read such outputs, and functions of the user's own library.

    `twins` gives the parsers instead that are not suggested: other readings of the same shapes.
    """
    cures = []
    masked = evidence.kind is NetworkType.INSTANCE_SEGMENTATION
    if cfg is not None:
        masked |= cfg.network_type is NetworkType.INSTANCE_SEGMENTATION
    known = {**WELL_KNOWN, **(WELL_KNOWN_INSTANCES if masked else {})}
    layers, ranked = evidence.layers, []
    for place, (name, parser) in enumerate(known.items()):
        if not isinstance(parser, BuiltinParser) or not layers:
            continue
        head = parser.head
        count = cfg.num_detected_classes if cfg is not None else evidence.classes
        rank = head.rank(layers, evidence.network, count or None) if head.suggested else None
        if twins:
            other = rank is None and parser.reads(layers, evidence.network)
            rank = (0, 0) if other else None
        if rank is not None:
            classes = head.classes(layers, evidence.network, count or evidence.classes)
            kind = (NetworkType.INSTANCE_SEGMENTATION if name in WELL_KNOWN_INSTANCES
                    else NetworkType.DETECTOR)  # fmt: skip
            ranked.append((rank, place, name, kind, classes))
    for _, _, name, kind, classes in sorted(ranked)[:_MOST_READERS]:
        change: dict[str, str | None] = dict.fromkeys((*PARSER_KEYS.values(), "custom-lib-path"))
        change |= {PARSER_KEYS[kind]: name, "network-type": str(int(kind))}
        if classes:
            change["num-detected-classes"] = str(classes)
        cures.append(Cure("parser", change, "usual: a built-in parser that fits the outputs"))
    if twins or cfg is None or cfg.custom_lib_path is None:
        return cures
    if cfg.custom_lib_path.is_file():
        own = PARSER_KEYS.get(cfg.network_type)
        names = parsers_in(cfg.custom_lib_path) if own == "parse-bbox-func-name" else []
        cures += [
            Cure("parser", {own: name}, f"a function of {cfg.custom_lib_path.name}")
            for name in names[:_MOST_READERS]
            if own is not None
        ]
    return cures


def type_cures(cfg: ModelConfig | None) -> list[Cure]:
    """The types of the parsers that a config names, where its own is another."""
    if cfg is None:
        return []
    kinds = [kind for kind, field in PARSER_FIELDS.items() if getattr(cfg, field)]
    why = "the function that is named is of this type"
    return [Cure("parser", {"network-type": str(int(kind))}, why, firm=len(kinds) == 1)
            for kind in kinds if kind is not cfg.network_type]  # fmt: skip


def class_cures(evidence: ModelEvidence, labels: int) -> list[Cure]:
    """Counts of classes: of the outputs, and of the labels."""
    counts = {evidence.classes: "the model", labels: "the labels"}
    return [
        Cure("classes", {"num-detected-classes": str(count)}, f"{who} have {count}")
        for count, who in counts.items()
        if count > 0
    ]


def threshold_cures(cfg: ModelConfig | None) -> list[Cure]:
    """Usual thresholds in place of values that are seldom meant."""
    if cfg is None:
        return []
    if cfg.network_type is NetworkType.CLASSIFIER and cfg.classifier_threshold > _HIGH:
        why = f"hardly any label reaches {cfg.classifier_threshold:g}"
        key = "classifier-threshold"
        return [Cure("thresholds", {key: x}, why, firm=True) for x in ("0.5", "0.2")]
    if cfg.network_type is NetworkType.SEGMENTATION and cfg.segmentation_threshold > 1:
        why = "no probability is above 1"
        return [Cure("thresholds", {"segmentation-threshold": None}, why, firm=True)]
    change: dict[str, str | None] = {}
    for group, attrs in _groups(cfg):
        if not _LOW <= attrs.pre_cluster_threshold <= _HIGH:
            change[f"{group}pre-cluster-threshold"] = THRESHOLD if group == _ALL else None
        if attrs.post_cluster_threshold > _HIGH:
            change[f"{group}post-cluster-threshold"] = None
    if not _LOW <= cfg.all_classes.pre_cluster_threshold <= _HIGH:
        change[f"{_ALL}pre-cluster-threshold"] = THRESHOLD
    return [Cure("thresholds", change, "usual threshold")] if change else []


def cluster_cures(cfg: ModelConfig | None) -> list[Cure]:
    """Suppression of overlapping boxes, or none."""
    nms: dict[str, str | None] = {"cluster-mode": "2"}
    if cfg is not None:
        nms |= {
            f"{group}nms-iou-threshold": IOU if group == _ALL else None
            for group, attrs in _groups(cfg)
            if not 0.1 <= attrs.nms_iou_threshold <= 0.9
        }
    cures = [Cure("clustering", nms, "usual: suppression by overlap")]
    return [
        *cures,
        Cure("clustering", {"cluster-mode": "4"}, "usual: boxes that are final"),
    ]


_FILTERS = (
    "topk", "pre-cluster-threshold", "post-cluster-threshold", "detected-min-w", "detected-min-h",
    "detected-max-w", "detected-max-h", "roi-top-offset", "roi-bottom-offset",
)  # fmt: skip


def filter_cures(present: Collection[str], dropped: Sequence[str]) -> list[Cure]:
    """Without the filters that dropped most boxes, each, and without all of them.

    Args:
        present: keys of the file.
        dropped: keys by which boxes were dropped, most first.
    """
    each: list[Change] = []
    for key in dropped:
        if key == "filter-out-class-ids":
            each.append({key: None})
        elif key in _FILTERS:
            names = [name for name in present if name.endswith(f".{key}")]
            if names:
                each.append(dict.fromkeys(names))
    cures = [Cure("filters", change, "without a filter that drops boxes") for change in each]
    if len(each) > 1:
        every = {key: None for change in each for key in change}
        cures.append(Cure("filters", every, "without the filters that drop boxes"))
    return cures


def run_cures(cfg: ModelConfig | None, *, alone: bool = True) -> list[Cure]:
    """Keys that keep a model from the frames, or spoil its engine."""
    if cfg is None:
        return []
    cures = []
    if cfg.process_mode is ProcessMode.SECONDARY and alone:
        change: dict[str, str | None] = {"process-mode": "1"}
        change |= dict.fromkeys(("operate-on-gie-id", "operate-on-class-ids"))
        cures.append(Cure("process-mode", change, "no model before it gives objects"))
    if cfg.input_tensor_from_meta:
        text = "no program gives tensors here"
        cures.append(Cure("process-mode", {"input-tensor-from-meta": None}, text))
    if cfg.interval:
        cures.append(Cure("interval", {"interval": None}, "every frame"))
    if cfg.stabilize_buffer_count:
        cures.append(Cure("interval", {"stabilize-buffer-count": None}, "every frame"))
    if cfg.network_mode:
        change = {"network-mode": "0", "int8-calib-file": None}
        cures.append(Cure("precision", change, "FP32, as the model was trained"))
    if cfg.custom_lib_path is not None and cfg.custom_lib_path.suffix == ".so":
        cures += [
            Cure("generation", {"custom-lib-abi": abi}, f"boxes of {abi} bytes")
            for abi in ("24", "28")
        ]
        cures += [
            Cure("generation", {"custom-lib-int64": width}, f"integers as {width}")
            for width in ("int32", "int64")
        ]
    return cures


def file_cures(cfg: ModelConfig | None, run: SetupRun | None) -> list[Cure]:
    """Other files of the folder in place of a model or labels that are lost."""
    if cfg is None or run is None or not isinstance(run.error, ModelError | ConfigError):
        return []
    labels = cfg.labelfile_path
    if labels is not None and not labels.is_file():
        others = [p for p in _instead(labels, "*.txt", cfg)
                  if p.name == _name(labels) or _LABELS.search(p.stem)]  # fmt: skip
        others = [p for p in others if _lines_of(p) == cfg.num_detected_classes]
        why = "the labels that are named are not there, and these fit the classes"
        cures = [_file_cure("labels", "labelfile-path", p, cfg, why) for p in others]
        why = "the labels that are named are not there: objects have the numbers of their classes"
        return [*cures, Cure("labels", {"labelfile-path": None}, why)]
    if cfg.onnx_file is None:
        return []
    why = "the model that is named cannot be read, and this one is at hand"
    return [_file_cure("model", "onnx-file", p, cfg, why)
            for p in _instead(cfg.onnx_file, "*.onnx", cfg)[:_MOST_MODELS]]  # fmt: skip


def _file_cure(dimension: str, key: str, path: Path, cfg: ModelConfig, why: str) -> Cure:
    own = path.parent == cfg.path.absolute().parent
    change: dict[str, str | None] = {key: path.name if own else str(path)}
    if key == "onnx-file":
        change["model-engine-file"] = None
    return Cure(dimension, change, why)


def _instead(path: Path, pattern: str, cfg: ModelConfig) -> list[Path]:
    """Files beside a lost one and beside the config, those of the same name first."""
    folders = dict.fromkeys((path.parent, cfg.path.absolute().parent))
    files = [p for folder in folders for p in sorted(folder.glob(pattern)) if p.is_file()]
    own = cfg.path.absolute()
    others = [p for p in files if p not in (path, own)]
    return sorted(others, key=lambda p: p.name != _name(path))


def _name(path: Path) -> str:
    """The last part of a path, of Windows too."""
    return PureWindowsPath(path.name).name


def _lines_of(path: Path) -> int:
    """How many lines of a file hold something; 0 if it cannot be read."""
    try:
        with path.open("rb") as file:
            return sum(bool(line.strip()) for line in file.read(_MOST_BYTES).splitlines())
    except OSError:
        return 0


def input_cures() -> list[Cure]:
    """Axes of the input as the model has them."""
    rows: tuple[tuple[Change, str], ...] = (
        ({"infer-dims": None}, "the model's own size"),
        ({"infer-dims": None, "network-input-order": None}, "the model's own axes"),
        ({"infer-dims": None, "network-input-order": "1"}, "channels last"),
    )
    return [Cure("input", change, why) for change, why in rows]


def sane_cures(present: Collection[str]) -> list[Cure]:
    """All thresholds, filters and clustering at usual values at once."""
    filters = [name for name in present if name.rpartition(".")[2] in _FILTERS and "." in name]
    change: dict[str, str | None] = dict.fromkeys(["filter-out-class-ids", *filters])
    change |= {f"{_ALL}pre-cluster-threshold": THRESHOLD, f"{_ALL}nms-iou-threshold": IOU}
    change["cluster-mode"] = "2"
    return [Cure("sane", change, "usual thresholds and clustering")]


def _groups(cfg: ModelConfig) -> Iterator[tuple[str, ClassAttrs]]:
    """Each group of class keys with its values."""
    yield _ALL, cfg.all_classes
    for number, attrs in cfg.classes.items():
        yield f"class-attrs-{number}.", attrs
