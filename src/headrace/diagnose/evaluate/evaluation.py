"""Evaluation of configs on images with truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, HeadraceError
from headrace.config import ModelConfig
from headrace.config.enums import NetworkType
from headrace.config.profile import with_profile
from headrace.diagnose.evaluate.class_map import match_classes
from headrace.diagnose.evaluate.classification import best_attribute, evaluate_classifier
from headrace.diagnose.evaluate.datasets import Dataset, load_dataset
from headrace.diagnose.evaluate.detection import evaluate_detector
from headrace.diagnose.evaluate.report import ConfigScores, EvaluationReport, Scores
from headrace.diagnose.evaluate.running import (
    EvaluationOptions,
    EvaluationRun,
    config_name,
    whole_images,
)
from headrace.diagnose.evaluate.segmentation import evaluate_segmentation
from headrace.infer.parsers.labels import load_labels
from headrace.infer.run_options import RunOptions

if TYPE_CHECKING:
    from headrace.config.enums import Generation
    from headrace.config.profile import Profile
    from headrace.custom.guard import GuardMode
    from headrace.infer.run_options import Abi

_TYPES = {
    "boxes": (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION),
    "classes": (NetworkType.CLASSIFIER,),
    "masks": (NetworkType.SEGMENTATION,),
}
_NEEDS = {
    NetworkType.DETECTOR: "boxes: COCO, YOLO or Pascal VOC",
    NetworkType.INSTANCE_SEGMENTATION: "boxes and masks: COCO or YOLO",
    NetworkType.CLASSIFIER: "a folder of images for each class",
    NetworkType.SEGMENTATION: "a folder of masks",
}
Config = str | PathLike[str] | ModelConfig


def evaluate(
    configs: Config | Sequence[Config],
    dataset: Dataset | str | PathLike[str],
    *,
    class_map: Mapping[str, str] | None = None,
    as_configured: bool = False,
    limit: int | None = None,
    on_stage: Callable[[str, int | None], None] | None = None,
    on_frame: Callable[[], None] | None = None,
    threads: int | None = None,
    streams: int | None = None,
    device: str = "auto",
    abi: Abi | None = None,
    guard: GuardMode | None = None,
    guard_env: str | None = None,
    profile: Profile | None = None,
    generation: Generation | None = None,
) -> EvaluationReport:
    """Measure how good models are on images with truth, side by side.

        report = headrace.evaluate(["fp32.txt", "int8.txt"], "val/data.yaml")
        print(report[0].scores.headline["mAP50-95"])
        report.write_html("report.html")

    Detectors get the figures of the COCO evaluation, of boxes down to a confidence of 0.001, and
    precision, recall and F1 at the config's own thresholds; classifiers top-1 and top-5,
    segmentations the mean intersection over union. Images go through the ordinary pipeline.

    Args:
        configs: nvinfer configs or bare models, of one kind.
        dataset: as `load_dataset` gives it, or a path as it takes it.
        class_map: label of the model -> class of the data set, where their names differ.
        as_configured: average precision of what the config's own thresholds leave.
        limit: the most images, spread evenly.
        on_stage: called with the work that begins, and its number of images.
        on_frame: called after each image.
        threads: CPU threads of each engine; None is one per core.
        streams: batches that each engine runs at once, sharing its threads; None is what it was
            tuned for, else one per thread, at most 4, and 1 for live sources.
        device: where engines run and videos are decoded: `auto` takes an NVIDIA GPU that is there
            and that the runtime can use; `cpu`, `cuda`, `cuda:N`.
        abi: bytes per box of a C++ parser, `24` (DeepStream 5 to 8), `28` (9) or `auto`, which
            detects it; None takes each config's `custom-lib-abi`.
        guard: whether custom libraries run in worker processes, so that their crashes are survived:
            `auto` guards C++ libraries that are not trusted yet, `always` guards Python files, too,
            `never` guards none; None takes each config's `custom-lib-guard`.
        guard_env: variables of the environment, separated by commas, for libraries in worker
            processes: `NAME` passes what looks like a credential, `-NAME` holds another one back,
            `*` and `?` stand for letters; None takes each config's `custom-lib-guard-env`.
        profile: whose rules apply where the configs' keys leave them open: `nvinfer` for those of
            the original, `modern` for those that models are trained with; None takes each config's
            `profile`.
        generation: whose rules apply where releases of the original differ, `9.1` or `6.2`; a
            config without `gie-unique-id` is refused, as there. None: those of `9.1`, and the first
            free number.

    Raises:
        ConfigError: a config is refused; model and data set do not fit.
        MediaError: the data set or its images cannot be read.
        MissingExtraError: detectors need the extra `eval`.
        HeadraceError: a model cannot be run.
    """
    run, _ = RunOptions.of(evaluate, locals())
    several = [configs] if isinstance(configs, str | PathLike | ModelConfig) else list(configs)
    if not several:
        raise HeadraceError("there is no config", where="evaluate")
    say = on_stage or (lambda text, total: None)
    loaded = [c if isinstance(c, ModelConfig) else ModelConfig.load(fspath(c)) for c in several]
    loaded = [with_profile(run.over(cfg)) for cfg in loaded]  # their thresholds are compared
    data = dataset if isinstance(dataset, Dataset) else load_dataset(dataset)
    for cfg in loaded:
        _refuse_other_kinds(cfg, data)
    chosen = data.limited(limit)
    running = EvaluationOptions(run, on_frame or (lambda: None))
    taken: dict[str, Path] = {}
    results = []
    for cfg in loaded:
        name = config_name(cfg.path, taken)
        say(name, len(chosen.images))
        results.append(_evaluated(cfg, chosen, name, class_map, as_configured, running))
    return EvaluationReport(chosen, tuple(results))


def _refuse_other_kinds(cfg: ModelConfig, dataset: Dataset) -> None:
    if cfg.network_type in _TYPES[dataset.kind]:
        return
    where = cfg.origin("network_type").where or str(cfg.path)
    if cfg.network_type not in _NEEDS:
        raise ConfigError(
            f"network-type {cfg.network_type} gives nothing that could be scored",
            where=where,
            expected="a detector, classifier or segmentation model",
        )
    raise ConfigError(
        f"network-type {cfg.network_type} and a data set of {dataset.kind} do not fit",
        where=where,
        expected=_NEEDS[cfg.network_type],
    )


def _evaluated(
    cfg: ModelConfig,
    dataset: Dataset,
    name: str,
    class_map: Mapping[str, str] | None,
    as_configured: bool,
    options: EvaluationOptions,
) -> ConfigScores:
    cfg, notices = whole_images(cfg)
    records = load_labels(cfg.labelfile_path).records if cfg.labelfile_path else cfg.labels
    scores: Scores
    run: EvaluationRun
    if dataset.kind == "classes":
        attribute, more = best_attribute(records, dataset, str(cfg.path))
        notices += more
        labels = list(records[attribute]) if records else []
        count = len(labels)
    else:
        labels = [fields[0] for fields in records]
        count = cfg.num_detected_classes
    where = str(cfg.labelfile_path or cfg.path)
    classes = match_classes(labels, dataset.classes, count=count, chosen=class_map, where=where)
    if dataset.kind == "classes":
        scores, run = evaluate_classifier(cfg, dataset, attribute, labels, classes, options)
    else:
        names = dataset.classes or tuple(
            labels[i] if i < len(labels) else f"class {i}" for i in range(count)
        )
        if dataset.kind == "boxes":
            scores, run = evaluate_detector(
                cfg, dataset, classes, names, options, as_configured=as_configured
            )
        else:
            scores, run = evaluate_segmentation(cfg, dataset, classes, names, options)
    all_notices = (*cfg.notices, *notices, *classes.notices, *run.notices)
    return ConfigScores(
        name,
        cfg.path,
        run.profile,
        scores,
        run.frames,
        run.fps,
        replace(classes, notices=()),
        tuple(dict.fromkeys(all_notices)),
    )
