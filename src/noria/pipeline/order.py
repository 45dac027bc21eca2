"""Secondary models that nothing before them finds objects for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noria._core.notices import Notice
from noria.config import ModelConfig
from noria.config.enums import NetworkType, ProcessMode
from noria.pipeline.stage import is_stage, is_tracker

_FINDS_OBJECTS = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)


def idle_models(stages: Sequence[Any]) -> list[Notice]:
    """A warning for each secondary model that works on objects of no model before it.

    Args:
        stages: configs, opened models, trackers and probes, in order. What follows a probe, or a
            model without a config, is not judged: that may make objects of any component.
    """
    notices: list[Notice] = []
    makers: set[int] = set()
    for item in stages:
        cfg = item if isinstance(item, ModelConfig) else getattr(item, "config", None)
        if not isinstance(cfg, ModelConfig):
            if is_tracker(item) and not is_stage(item):
                continue
            return notices
        secondary = cfg.process_mode is ProcessMode.SECONDARY
        makes = cfg.network_type in _FINDS_OBJECTS
        if secondary and not cfg.input_tensor_from_meta:
            wanted = cfg.operate_on_gie_id
            # a detector does not work on what it has found itself
            before = makers - {cfg.component_id} if makes else makers
            if not before or (wanted > -1 and wanted not in before):
                key = "process_mode"
                text = "process-mode=2, and no model before it finds objects: nothing is inferred"
                if before:
                    key = "operate_on_gie_id"
                    ids = ", ".join(map(str, sorted(before)))
                    text = f"operate-on-gie-id={wanted}, and no model before it has that"
                    text += f" gie-unique-id and finds objects (those that do: {ids}): nothing"
                    text += " is inferred"
                notices.append(Notice("warning", text, str(cfg.origin(key))))
        # a primary classifier adds an object as large as the frame
        if makes or (cfg.network_type is NetworkType.CLASSIFIER and not secondary):
            makers.add(cfg.component_id)
    return notices
