"""The parts behind the engine of a config: its parser, its labels, the steps to metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace.config.enums import ClusterMode, NetworkType
from headrace.infer.attributes import ClassifierPostprocessor
from headrace.infer.parser_choice import Choice, choose_parser
from headrace.infer.parsers.labels import Labels, load_labels
from headrace.infer.postprocess import DetectorPostprocessor, Postprocessor
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.infer.selection import Selector
from headrace.meta import ClassifierParams, NetworkInfo

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.enums import Generation


def parser_and_labels(
    cfg: ModelConfig, options: RunOptions, notices: list[Finding]
) -> tuple[Choice | None, Labels]:
    """Choose the parser and read the labels; adds to `notices`.

    Raises:
        ConfigError, CustomLibraryError: as `Model.load`.
    """
    require_runnable(cfg)
    require_unique_id(cfg, options.generation)
    labels = Labels(())
    if cfg.labelfile_path and cfg.network_type is not NetworkType.OTHER:
        labels = load_labels(cfg.labelfile_path)
        notices += labels.notices
    elif cfg.labels:
        labels = Labels(cfg.labels)
    choice = choose_parser(
        cfg,
        abi=options.abi,
        generation=options.rules,
        guard=options.guard,
        function=options.parser,
    )
    return choice, labels


def require_runnable(cfg: ModelConfig) -> None:
    """Refuse combinations that the original refuses at start.

    Raises:
        ConfigError: clustering that a mask does not survive; no instance parser.
    Source: spec 0.3, C.1, D.6; config facts 5.9 (X12).
    """
    fix = "set cluster-mode=4"
    if cfg.cluster_mode is ClusterMode.NONE:
        return
    if cfg.network_type is NetworkType.INSTANCE_SEGMENTATION:
        key, reason = "network-type=3 (instance segmentation)", "the parser suppresses boxes itself"
    elif cfg.output_instance_mask:
        key, reason = "output-instance-mask=1", "merged boxes have no mask"
        fix = f"{fix}, or leave output-instance-mask out"
    else:
        return
    raise ConfigError(
        f"cluster-mode={int(cfg.cluster_mode)} with {key}",
        where=cfg.origin("cluster_mode").where or str(cfg.path),
        expected=f"cluster-mode=4: {reason}",
        fix=fix,
        code="masks-clustered",
        data={"set": {"cluster-mode": 4}},
    )


def require_unique_id(cfg: ModelConfig, generation: Generation | None) -> None:
    """Refuse a config without `gie-unique-id` where a run asks for the rules of a release.

    Without that, `headrace.pipeline.stage_order.numbered` takes the first free number.

    Raises:
        ConfigError: it has none.
    Source: spec 0.3; ERR-005 of the conformance cases.
    """
    if generation is None or cfg.gie_unique_id is not None:
        return
    raise ConfigError(
        "gie-unique-id is absent",
        where=str(cfg.path),
        expected=f"a number: generation {generation} refuses to start without it",
        fix=("write gie-unique-id=1", "or leave --generation out: the first free number is taken"),
        code="unique-id-absent",
        data={"set": {"gie-unique-id": 1}},
    )


def postprocessor_of(
    cfg: ModelConfig,
    network: NetworkInfo,
    choice: Choice | None,
    labels: Labels,
    selector: Selector | None,
    options: RunOptions,
    record: Record,
) -> Postprocessor | None:
    """The steps from the outputs of a model to metadata; None if nothing is parsed."""
    if choice is None:
        return None
    rules: Any = {"generation": options.rules, "record": record}
    if cfg.network_type is NetworkType.CLASSIFIER:
        params = ClassifierParams(cfg.classifier_threshold, labels.records)
        return ClassifierPostprocessor(
            cfg, network, choice.parser, params, selector=selector, **rules
        )
    names = labels.detector
    if cfg.network_type is NetworkType.SEGMENTATION:
        from headrace.infer.class_maps import SegmentationPostprocessor

        return SegmentationPostprocessor(cfg, network, choice.parser, labels=names, **rules)
    rules["clip_to_roi"] = options.clip_to_roi
    return DetectorPostprocessor(cfg, network, choice.parser, choice.source, labels=names, **rules)
