"""The order of a pipeline's stages: their ids, where a tracker belongs, models without work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.config.enums import NetworkType, ProcessMode
from headrace.config.origin import OVERRIDE
from headrace.infer.decoding import require_unique_id
from headrace.pipeline.stage import is_stage, is_tracker

if TYPE_CHECKING:
    from headrace.config.enums import Generation

_FINDS_OBJECTS = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)


def config_of(item: object) -> ModelConfig | None:
    """Return the config that an item is, or that an opened model has; None of anything else."""
    cfg = item if isinstance(item, ModelConfig) else getattr(item, "config", None)
    return cfg if isinstance(cfg, ModelConfig) else None


def after_primaries(items: Sequence[object]) -> int:
    """Where a tracker belongs: behind the last primary model, a config or an opened one."""
    positions = [
        i
        for i, item in enumerate(items, 1)
        if (isinstance(item, ModelConfig) and item.process_mode is ProcessMode.PRIMARY)
        or (is_stage(item) and not item.secondary)
    ]
    return positions[-1] if positions else 0


def behind_tracker(items: Sequence[object]) -> int:
    """Where analytics belong: behind the last tracker, or else where one would stand."""
    trackers = [i for i, item in enumerate(items, 1) if is_tracker(item) and not is_stage(item)]
    return max([after_primaries(items), *trackers])


def numbered(
    stages: Sequence[object], where: str | None, generation: Generation | None = None
) -> tuple[list[Any], list[Finding]]:
    """The stages, each config with an id of its own as far as the files leave that open.

    Args:
        stages: configs, opened models, trackers and probes, in order.
        where: the pipeline file, for the notices; None without one.
        generation: of the run's options.

    Raises:
        ConfigError: a config has no id, and the run asks for the rules of a release.
    """
    items, notices = _bare_in_order(stages), []
    named: dict[int, list[str]] = {}
    for item in items:
        cfg = config_of(item)
        if cfg is not None:
            fixed = cfg.gie_unique_id if cfg is item else cfg.component_id
            if fixed is not None and not _is_bare(item, "gie_unique_id"):
                named.setdefault(fixed, []).append(cfg.path.name)
    free = (i for i in range(1, 1000) if i not in named)
    for index, cfg in enumerate(items):
        if _is_bare(cfg, "gie_unique_id"):
            items[index] = cfg.with_overrides(gie_unique_id=next(free))
        elif isinstance(cfg, ModelConfig) and cfg.gie_unique_id is None:
            require_unique_id(cfg, generation)
            number = next(free)
            items[index] = cfg.with_overrides(gie_unique_id=number)
            text = f"gie-unique-id is absent: {number} is used"
            notices.append(Finding("unique-id-absent", "info", text, str(cfg.path)))
    for number, names in named.items():
        if len(names) > 1:
            text = f"gie-unique-id={number} in {' and '.join(names)}: their results cannot be told"
            notices.append(Finding("unique-id-twice", "warning", f"{text} apart", where))
    notices += idle_models(items)
    return items, notices


def _is_bare(item: Any, field: str) -> bool:
    """Whether an item is a bare model's config that leaves a field to the pipeline."""
    return isinstance(item, ModelConfig) and item.origin(field).kind == "model"


def _bare_in_order(stages: Sequence[object]) -> list[Any]:
    """The stages; bare classifiers behind a model that finds objects work on these."""
    items, finds = list(stages), False
    for index, item in enumerate(items):
        cfg = config_of(item)
        if cfg is None:
            continue
        if finds and cfg.network_type is NetworkType.CLASSIFIER and _is_bare(item, "process_mode"):
            text = "a classifier behind a detector: it works on the objects found (process-mode=2)"
            notice = Finding("classifier-of-objects", "info", text, str(cfg.path))
            mode = {"process_mode": ProcessMode.SECONDARY}
            items[index] = cfg.changed(mode, {"process_mode": OVERRIDE}, [notice])
        finds = finds or cfg.network_type in _FINDS_OBJECTS
    return items


def idle_models(stages: Sequence[object]) -> list[Finding]:
    """A warning for each model that works on objects, or on tensors, that nothing before it makes.

    Args:
        stages: configs, opened models, trackers and probes, in order. What follows a probe, or a
            model without a config, is not judged: that may make objects of any component.
    """
    notices: list[Finding] = []
    makers: dict[int, int] = {}  # component -> its number of classes
    for item in stages:
        cfg = config_of(item)
        if cfg is None:
            if is_tracker(item) and not is_stage(item):
                continue
            return notices
        if cfg.input_tensor_from_meta:
            text = (
                "input-tensor-from-meta=1 without tensors: no function before the model adds them,"
            )
            where = str(cfg.origin("input_tensor_from_meta"))
            text += " so nothing is inferred"
            notices.append(Finding("tensors-from-nowhere", "warning", text, where))
        secondary = cfg.process_mode is ProcessMode.SECONDARY
        makes = cfg.network_type in _FINDS_OBJECTS
        if secondary and not cfg.input_tensor_from_meta:
            gie_id = cfg.operate_on_gie_id
            # a detector does not work on what it has found itself
            before = {c: n for c, n in makers.items() if not makes or c != cfg.component_id}
            if not before or (gie_id > -1 and gie_id not in before):
                key = "process_mode"
                text = "process-mode=2, and no model before it finds objects: nothing is inferred"
                if before:
                    key = "operate_on_gie_id"
                    ids = ", ".join(map(str, sorted(before)))
                    text = f"operate-on-gie-id={gie_id}, and no model before it has that"
                    text += f" gie-unique-id and finds objects (those that do: {ids}): nothing"
                    text += " is inferred"
                where = str(cfg.origin(key))
                notices.append(Finding("objects-from-nowhere", "warning", text, where))
            else:
                notices += _unknown_classes(cfg, before)
        if (
            cfg.network_type is NetworkType.CLASSIFIER
            and not secondary
            and makers
            and cfg.origin("process_mode").kind == "default"
        ):
            text = "process-mode is absent: this classifier sees whole frames, not the objects of "
            text += "the model before it, which takes process-mode=2"
            notices.append(Finding("classifier-of-frames", "warning", text, str(cfg.path)))
        # a primary classifier adds an object as large as the frame
        if makes or (cfg.network_type is NetworkType.CLASSIFIER and not secondary):
            known = cfg.num_detected_classes if makes else 0
            makers[cfg.component_id] = max(known, makers.get(cfg.component_id, 0))
    return notices


def _unknown_classes(cfg: ModelConfig, makers: Mapping[int, int]) -> list[Finding]:
    """Warn of `operate-on-class-ids` that no model before the secondary one has.

    Args:
        cfg: of the secondary model.
        makers: component -> number of classes, 0 where that is not known.
    """
    class_ids = [c for c in cfg.operate_on_class_ids if c >= 0]
    only = cfg.operate_on_gie_id
    counts = [n for c, n in makers.items() if only < 0 or c == only]
    if not class_ids or 0 in counts or min(class_ids) < max(counts):
        return []
    ids = ";".join(map(str, class_ids))
    text = f"operate-on-class-ids={ids}: the models before it have classes 0 to {max(counts) - 1}:"
    text += " nothing is inferred"
    return [Finding("class-ids-beyond", "warning", text, str(cfg.origin("operate_on_class_ids")))]
