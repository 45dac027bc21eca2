"""The models and trackers of a deepstream-app config, and the tensors that are made for them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace._core.text import quoted
from headrace.config.app.reader import FoundGroup
from headrace.config.document import Document, Group
from headrace.config.enums import ProcessMode
from headrace.config.origin import Origin
from headrace.config.pipeline_keys import OVERRIDES
from headrace.config.pipeline_yaml import Item

_ENCODER = 3  # plugin-type
_BORDER = (1.0, 0.0, 0.0, 1.0)  # of boxes without bbox-border-color
_COLOR = re.compile(r"bbox-(border|bg)-color([0-9]*)")


def read_model(
    document: Document, section: FoundGroup, group: Group, *, primary: bool
) -> Item | None:
    """A `ModelSpec`'s values and origins; None when it is refused."""
    name = quoted(group.name)
    if "config-file" not in section.values:
        document.refuse(group.line, f"[{name}] has no config-file.", "the model's nvinfer config")
        return None
    plugin = section.get("plugin-type", 0)
    if plugin == _ENCODER:
        text = f"[{name}] is left out: encoders of images and texts are not run"
        document.remark(
            section.line("plugin-type"), text, code="element-left-out", data={"element": name}
        )
        return None
    if plugin not in (0, 1):
        document.refuse(
            section.line("plugin-type"),
            f"plugin-type={plugin} is neither nvinfer nor nvinferserver.",
            "plugin-type=0 with a config of nvinfer, or 1 with one of nvinferserver",
            f"switch [{name}] off with enable=0 to run the rest",
        )
        return None
    keys = [key for key in OVERRIDES.values() if key.name in section.values]
    values, origins = section.fields(keys)
    values["config"] = section.values["config-file"]
    origins["config"] = section.origin("config-file")
    values["process_mode"] = ProcessMode.PRIMARY if primary else ProcessMode.SECONDARY
    origins["process_mode"] = Origin("file", document.path, group.line, group.name, "")
    if section.get("input-tensor-meta"):
        values["input_tensor_from_meta"] = True
        origins["input_tensor_from_meta"] = section.origin("input-tensor-meta")
    if "infer-raw-output-dir" in section.values:
        values["raw_output_dir"] = section.values["infer-raw-output-dir"]
        origins["raw_output_dir"] = section.origin("infer-raw-output-dir")
    # setting one of the two properties makes the element ignore the other one's key in its file
    for here, there, nothing in (
        ("operate_on_gie_id", "operate_on_class_ids", ()),
        ("operate_on_class_ids", "operate_on_gie_id", -1),
    ):
        if here in values and there not in values:
            values[there], origins[there] = nothing, origins[here]
            break
    for key, value in section.values.items():
        if color := _COLOR.fullmatch(key):
            field = f"{color[1]}_colors"
            values.setdefault(field, {})[int(color[2] or -1)] = value
            origins.setdefault(field, section.origin(key))
    # the groups' colours count, never those of the model's file
    values.setdefault("border_colors", {}).setdefault(-1, _BORDER)
    origins.setdefault("border_colors", replace(origins["process_mode"], kind="default"))
    return values, origins


def order_models(models: list[Item], document: Document) -> list[Item]:
    """Place each model behind the one that finds its objects, otherwise as in the file.

    The original runs secondaries as a tree; one behind the other gives the same objects.
    """
    left, placed, ids = list(models), [], set[Any]()
    left.sort(key=lambda item: item[0]["process_mode"])
    own = [values.get("gie_unique_id") for values, _ in models]
    for number in sorted({n for n in own if n is not None and own.count(n) > 1}):
        again = [
            origins["gie_unique_id"] for v, origins in models if v.get("gie_unique_id") == number
        ]
        document.refuse(
            again[1].line or 1,
            f"gie-unique-id {number} is given twice, first in line {again[0].line}.",
            "a number for each model",
            code="unique-id-twice",
        )
    while left:
        for item in left:
            parent_id = item[0].get("operate_on_gie_id", -1)
            if parent_id < 0 or parent_id in ids or parent_id not in own:
                break
        else:
            item = left[0]  # they wait for each other: as in the file
            line = item[1]["operate_on_gie_id"].line or 1
            text = "models work on each other's objects in a circle"
            document.remark(line, text, code="models-in-circle")
        if None not in own and item[0].get("operate_on_gie_id", -1) >= 0:
            parent_id = item[0]["operate_on_gie_id"]
            if parent_id not in own:
                line = item[1]["operate_on_gie_id"].line or 1
                text = f"operate-on-gie-id={parent_id}: no model has this gie-unique-id"
                document.remark(line, text, code="objects-from-nowhere")
        left.remove(item)
        placed.append(item)
        ids.add(item[0].get("gie_unique_id"))
    return placed


def add_preparations(
    models: list[Item], preparations: list[tuple[FoundGroup, Group]], document: Document
) -> None:
    """Give each preparation of tensors to the model before which it is made.

    That of frames goes to the first primary model, those of objects to the secondary ones that
    take tensors, in their order: tensors stay with the batch for all models behind.
    """
    for section, group in preparations:
        primary = section.kind.name == "pre-process"
        takers = [
            (values, origins)
            for values, origins in models
            if (values["process_mode"] is ProcessMode.PRIMARY) is primary
            and "preprocess" not in values
            and (primary or values.get("input_tensor_from_meta"))
        ]
        name = quoted(group.name)
        if not takers:
            missing = "[primary-gie]" if primary else "[secondary-gieN] with input-tensor-meta=1"
            text = f"[{name}] is left out: there is no {missing} that takes its tensors"
            document.remark(group.line, text, code="element-left-out", data={"element": name})
            continue
        values, origins = takers[0]
        values["preprocess"] = section.values["config-file"]
        origins["preprocess"] = section.origin("config-file")
        if "operate-on-gie-id" in section.values:
            values["preprocess_gie_id"] = section.values["operate-on-gie-id"]
            origins["preprocess_gie_id"] = section.origin("operate-on-gie-id")
        text = f"[{name}] makes the tensors: scaling, colours and offsets of "
        text += f"{Path(values['config']).name} are not applied to them"
        document.remark(group.line, text, "info", code="tensors-prepared", data={"group": name})
