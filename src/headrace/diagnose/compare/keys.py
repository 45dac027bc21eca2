"""Keys in which two configs differ, by the stage that they act on."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from headrace._core.text import shortened
from headrace.diagnose.compare.chain import ChainStage
from headrace.diagnose.compare.sides import Side

_ALL = "class-attrs-all."
_STAGES: dict[ChainStage, tuple[str, ...]] = {
    ChainStage.INPUT: (
        "net-scale-factor", "offsets", "mean-file", "model-color-format", "maintain-aspect-ratio",
        "symmetric-padding", "scaling-filter", "scaling-compute-hw", "infer-dims", "input-dims",
        "uff-input-dims", "network-input-order", "profile",
    ),
    ChainStage.ENGINE: (
        "onnx-file", "model-file", "proto-file", "uff-file", "tlt-encoded-model",
        "custom-network-config", "model-engine-file", "engine-create-func-name",
        "output-blob-names", "network-mode", "fp16-simulation", "int8-calib-file",
        "layer-device-precision", "output-io-formats",
    ),
    ChainStage.PARSER: (
        "parse-bbox-func-name", "parse-bbox-instance-mask-func-name", "custom-lib-path",
        "parse-classifier-func-name", "parse-segmentation-func-name", "custom-lib-abi",
        "custom-lib-int64", "num-detected-classes", "network-type",
        "classifier-threshold", "segmentation-threshold",
    ),
    ChainStage.THRESHOLD: ("pre-cluster-threshold", "threshold", "post-cluster-threshold"),
    ChainStage.CLUSTER: (
        "cluster-mode", "enable-dbscan", "nms-iou-threshold", "topk", "eps", "group-threshold",
        "minBoxes", "dbscan-min-score", "num-detected-classes",
    ),
    ChainStage.ATTACH: (
        "filter-out-class-ids", "detected-min-w", "detected-min-h", "detected-max-w",
        "detected-max-h", "roi-top-offset", "roi-bottom-offset", "crop-objects-to-roi-boundary",
        "profile",
    ),
    ChainStage.LABELS: ("labelfile-path",),
}  # fmt: skip


class KeyChange(NamedTuple):
    """A setting with its value on each side; empty where a side has none."""

    key: str
    a: str
    b: str

    def __str__(self) -> str:
        a, b = _short(self.a), _short(self.b)
        if a == b:  # files of one name
            a, b = self.a, self.b
        return f"{self.key} {a} → {b}"


def key_changes(a: Side, b: Side) -> dict[ChainStage, list[KeyChange]]:
    """Effective values that differ, by stage; the runtime and the precision are of the engine."""
    first, second = _values(a), _values(b)
    differ: dict[str, list[KeyChange]] = {}
    for name in first | second:
        shown = name.removeprefix(_ALL)
        change = KeyChange(shown, _value(first, name), _value(second, name))
        if change.a != change.b:
            differ.setdefault(name.rpartition(".")[2], []).append(change)
    changes = {
        stage: [change for key in keys for change in differ.get(key, ())]
        for stage, keys in _STAGES.items()
    }
    engine = changes[ChainStage.ENGINE]
    if a.runtime != b.runtime:
        engine.insert(0, KeyChange("runtime", a.runtime, b.runtime))
    if a.precision != b.precision:
        engine.insert(0, KeyChange("precision", a.precision, b.precision))
    return changes


def _values(side: Side) -> dict[str, str]:
    values = {}
    for row in side.model.config.effective():
        prefix = f"{row.group}." if row.group.startswith("class-attrs") else ""
        values[prefix + row.key] = row.text
    return values


def _value(values: dict[str, str], name: str) -> str:
    """A value; of a class without a group of its own that of all classes."""
    key = name.rpartition(".")[2]
    return values.get(name, values.get(_ALL + key, "") if "." in name else "")


def _short(text: str) -> str:
    if "/" in text:
        text = text.rpartition("/")[2]
    with suppress(ValueError):
        text = f"{float(text):.6g}"
    return shortened(text, 40) or "(none)"
