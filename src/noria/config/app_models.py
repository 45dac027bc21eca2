"""The models of a deepstream-app config: `[primary-gie]` and `[secondary-gieN]`."""

from __future__ import annotations

import re
from typing import Any

from noria._core.text import quoted
from noria.config.app_reader import FoundGroup
from noria.config.document import Document, Group
from noria.config.enums import ProcessMode
from noria.config.origin import Origin
from noria.config.pipeline_keys import OVERRIDES
from noria.config.pipeline_yaml import Item

_COLOR = re.compile(r"bbox-(border|bg)-color([0-9]*)")


def read_model(
    document: Document, found: FoundGroup, group: Group, *, primary: bool
) -> Item | None:
    """A `ModelSpec`'s values and origins; None when it is refused."""
    name = quoted(group.name)
    if "config-file" not in found.values:
        document.refuse(group.line, f"[{name}] has no config-file.", "the model's nvinfer config")
        return None
    plugin = found.get("plugin-type", 0)
    if plugin != 0:
        document.refuse(
            found.line("plugin-type"),
            f"plugin-type={plugin} is not nvinfer.",
            "plugin-type=0, with the config file of an nvinfer",
            f"switch [{name}] off with enable=0 to run the rest",
        )
        return None
    keys = [key for key in OVERRIDES.values() if key.name in found.values]
    values, origins = found.fields(keys)
    values["config"] = found.values["config-file"]
    origins["config"] = found.origin("config-file")
    values["process_mode"] = ProcessMode.PRIMARY if primary else ProcessMode.SECONDARY
    origins["process_mode"] = Origin("file", document.path, group.line, group.name, "")
    if found.get("input-tensor-meta"):
        document.remark(
            found.line("input-tensor-meta"),
            f"[{name}] input-tensor-meta: nothing prepares tensors, the model scales frames itself",
        )
    # setting one of the two properties makes the element ignore the other one's key in its file
    for here, there, nothing in (
        ("operate_on_gie_id", "operate_on_class_ids", ()),
        ("operate_on_class_ids", "operate_on_gie_id", -1),
    ):
        if here in values and there not in values:
            values[there], origins[there] = nothing, origins[here]
            break
    for key, value in found.values.items():
        if color := _COLOR.fullmatch(key):
            field = f"{color[1]}_colors"
            values.setdefault(field, {})[int(color[2] or -1)] = value
            origins.setdefault(field, found.origin(key))
    return values, origins


def order_models(models: list[Item], document: Document) -> list[Item]:
    """Place each model behind the one that finds its objects, otherwise as in the file.

    The original runs secondaries as a tree; one behind the other gives the same objects.
    """
    left, placed, ids = list(models), [], set[Any]()
    left.sort(key=lambda item: item[0]["process_mode"])
    own = [values.get("gie_unique_id") for values, _ in models]
    for number in {n for n in own if n is not None and own.count(n) > 1}:
        again = [
            origins["gie_unique_id"] for v, origins in models if v.get("gie_unique_id") == number
        ]
        document.refuse(
            again[1].line or 1,
            f"gie-unique-id {number} is given twice, first in line {again[0].line}.",
            "a number for each model",
        )
    while left:
        for item in left:
            wanted = item[0].get("operate_on_gie_id", -1)
            if wanted < 0 or wanted in ids or wanted not in own:
                break
        else:
            item = left[0]  # they wait for each other: as in the file
            line = item[1]["operate_on_gie_id"].line or 1
            document.remark(line, "models work on each other's objects in a circle")
        if None not in own and item[0].get("operate_on_gie_id", -1) >= 0:
            wanted = item[0]["operate_on_gie_id"]
            if wanted not in own:
                line = item[1]["operate_on_gie_id"].line or 1
                document.remark(
                    line, f"operate-on-gie-id={wanted}: no model has this gie-unique-id"
                )
        left.remove(item)
        placed.append(item)
        ids.add(item[0].get("gie_unique_id"))
    return placed
