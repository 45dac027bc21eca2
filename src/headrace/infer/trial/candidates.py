"""Changes that are worth a trial: parsers that fit the outputs, usual ranges of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.config.enums import PARSER_FIELDS, NetworkType
from headrace.infer.parsers import (
    WELL_KNOWN,
    WELL_KNOWN_INSTANCES,
    WELL_KNOWN_SEGMENTATIONS,
    BuiltinParser,
)
from headrace.infer.recognise.exporters import USUAL, Scaling
from headrace.infer.trial.advice import Fits, plain
from headrace.infer.trial.outcome import Outcome
from headrace.infer.trial.trials import Change, ConfigTrials
from headrace.meta import Layer

if TYPE_CHECKING:
    from headrace.config import ModelConfig

_KNOWN = {
    NetworkType.DETECTOR: ((NetworkType.DETECTOR, WELL_KNOWN),),
    NetworkType.INSTANCE_SEGMENTATION: (
        (NetworkType.DETECTOR, WELL_KNOWN),
        (NetworkType.INSTANCE_SEGMENTATION, WELL_KNOWN_INSTANCES),
    ),
    NetworkType.SEGMENTATION: ((NetworkType.SEGMENTATION, WELL_KNOWN_SEGMENTATIONS),),
}
_BESIDE = 0.25  # of the best total: a reading that finds less is beside the point


def parser_change(name: str, kind: NetworkType, cfg: ModelConfig) -> Change:
    """The keys that have a built-in parser read the outputs in place of the config's own."""
    field = PARSER_FIELDS[kind]
    change: dict[str, str | None] = {}
    if kind is not cfg.network_type:
        change["network-type"] = str(int(kind))
    change[field.replace("_", "-")] = name
    if cfg.custom_lib_path is not None:
        change["custom-lib-path"] = None
    return change


def parser_changes(trials: ConfigTrials) -> list[Change]:
    """The other built-in parsers that fit the shapes of the outputs."""
    if not trials.samples:
        return []
    cfg, classes = trials.cfg, trials.cfg.num_detected_classes
    layers = list(trials.samples[0].layers.values())
    own = getattr(cfg, PARSER_FIELDS.get(cfg.network_type, ""), None)
    changes = []
    for kind, parsers in _KNOWN.get(cfg.network_type, ()):
        for name, parser in parsers.items():
            if name == own and kind is cfg.network_type and cfg.custom_lib_path is None:
                continue
            if _suggested(parser, layers, trials, classes):
                changes.append(parser_change(name, kind, cfg))
    return changes


def _suggested(parser: object, layers: Sequence[Layer], trials: ConfigTrials, classes: int) -> bool:
    head = parser.head if isinstance(parser, BuiltinParser) else None
    if head is None or not head.suggested:
        return False
    return head.rank(layers, trials.network, classes) is not None


def readers(trials: ConfigTrials) -> list[Outcome]:
    """The other built-in parsers that read sound boxes in the outputs, best first.

    Of several that read the same boxes it has the first, and none that reads those of the config's
    own parser, or a fraction of the best one's.
    """
    outcomes = [trials(change) for change in parser_changes(trials)]
    known = [trials.present.figures]
    kept: list[Outcome] = []
    for outcome in sorted((o for o in outcomes if o.sound), key=lambda o: -o.total):
        if outcome.figures not in known:
            known.append(outcome.figures)
            kept.append(outcome)
    return [o for o in kept if o.total >= _BESIDE * kept[0].total]


def range_change(scaling: Scaling, cfg: ModelConfig) -> Change:
    """The keys of a range; offsets of the config go where it has none."""
    change: dict[str, str | None] = {"net-scale-factor": f"{scaling.factor:.10g}"}
    if scaling.offsets:
        change["offsets"] = ";".join(f"{mean:g}" for mean in scaling.offsets)
    elif cfg.offsets:
        change["offsets"] = None
    return change


def in_range(trials: ConfigTrials) -> Fits:
    """Whether another range gives sound boxes, and none like them in images without content."""

    def fits(outcome: Outcome, present: Outcome) -> bool:
        return plain(outcome, present) and trials.nonsense(outcome.change) <= outcome.best / 2

    return fits


def other_ranges(cfg: ModelConfig) -> list[Scaling]:
    """The usual ranges but for the config's own."""
    span, means = 255 * cfg.net_scale_factor, tuple(cfg.offsets)
    return [
        usual
        for usual in USUAL
        if not 0.8 < 255 * usual.factor / span < 1.25 or bool(usual.offsets) != any(means)
    ]
