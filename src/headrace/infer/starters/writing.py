"""Files of a recognised model: a commented config, labels, and a parser where one lacks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from headrace._core.errors import ModelError
from headrace._core.text import quoted
from headrace.config import ModelConfig
from headrace.config.class_attrs import ClassAttrs
from headrace.config.dump import value_text
from headrace.config.enums import ClusterMode, NetworkType
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.infer.parsers.head import CTC
from headrace.infer.recognise.fields import CLASS_FIELDS
from headrace.infer.recognise.recognise import Recognition
from headrace.infer.starters.parser_template import ParserFiles

_DETECTOR = NetworkType.DETECTOR
CONFIG, LABELS = "config_infer.txt", "labels.txt"


def files_for(
    recognition: Recognition, folder: Path, *, cpp: bool = False
) -> dict[str, str | bytes]:
    """The files of a model that is run with a config: name -> content.

    Args:
        recognition: the model.
        folder: where they will be; paths in the config are relative to it.
        cpp: write the parser in C++.

    Returns:
        The config and the labels; where no built-in parser reads the outputs, a parser and a test
        of it that replays recorded outputs, too.

    Raises:
        ModelError: `cpp`, and a built-in parser reads the outputs.
    """
    files: dict[str, str | bytes] = {}
    cfg = recognition.config
    kinds = {name: cfg.origin(name).kind for name in cfg.FIELDS}
    values = {name: getattr(cfg, name) for name, kind in kinds.items() if kind != "default"}
    user_fields = {name: value for name, value in values.items() if kinds[name] == "override"}
    reasons = dict(recognition.reasons) | dict.fromkeys(user_fields, "set by you")
    labels = cfg.labels
    if recognition.reading is None and user_fields.get("network_type", _DETECTOR) is _DETECTOR:
        parser = ParserFiles.of(recognition, cpp=cpp)
        files |= parser.files()
        count = user_fields.get("num_detected_classes", parser.classes)
        labels = labels or tuple((f"class {i}",) for i in range(count))
        values |= {
            "network_type": _DETECTOR,
            "num_detected_classes": len(labels),
            "custom_lib_path": folder / parser.library,
            "parse_bbox_func_name": parser.function,
            "cluster_mode": ClusterMode.NMS,
            "all_classes": _usual(cfg),
            **user_fields,
        }
        reasons = {
            "custom_lib_path": "no built-in parser reads the outputs: this one has to be right",
            "num_detected_classes": parser.why_classes,
        } | reasons
    elif cpp:
        name = recognition.reading.parser if recognition.reading is not None else ""
        raise ModelError(
            f"the built-in parser {name or ''} reads this model".replace("  ", " "),
            where=str(recognition.evidence.path),
            fix="leave --cpp out: there is no parser to write",
        )
    if labels:
        reader = recognition.reading is not None and recognition.reading.parser == CTC
        lines = (record[0] if reader else _label_line(record) for record in labels)
        files[LABELS] = "".join(f"{line}\n" for line in lines)
        values["labelfile_path"] = folder / LABELS
    files[CONFIG] = "\n".join(_config(recognition, values, reasons, folder)) + "\n"
    return files


def _label_line(record: Sequence[str]) -> str:
    """One record of a label file; separators in it are replaced, and so is an empty line."""
    return ";".join(quoted(name.replace(";", ","), limit=None) for name in record) or "-"


def _config(
    recognition: Recognition, values: dict[str, object], reasons: dict[str, str], folder: Path
) -> Iterator[str]:
    """The lines of the config: each value below the reason for it."""
    yield f"# {quoted(recognition.evidence.path.name, limit=None)}, written down by headrace init."
    yield "# Paths are relative to this file."
    for line in recognition.lines:
        yield f"# {quoted(line, limit=None)}"
    yield "[property]"
    yield "gpu-id=0"
    before = ""
    for key in PROPERTY_KEYS.values():
        if key.field not in values or values[key.field] is None:
            continue
        why = reasons.get(key.field or "", "")
        if why and why != before:
            yield f"# {quoted(why, limit=None)}"
        before = why
        value = values[key.field]
        if isinstance(value, Path):
            value = os.path.relpath(value.absolute(), folder.absolute())
        yield f"{key.name}={value_text(key, value, 'ini')}"
    if "all_classes" not in values:
        return
    for number in (None, *sorted(recognition.config.classes)):
        attrs = values["all_classes"] if number is None else recognition.config.classes[number]
        yield ""
        if number is None and reasons.get("all_classes"):
            yield f"# {quoted(reasons['all_classes'], limit=None)}"
        yield f"[class-attrs-{'all' if number is None else number}]"
        for key in CLASS_KEYS.values():
            common = number is None and key.field in CLASS_FIELDS
            if key.field and (common or _given(recognition.config, number, key.field)):
                yield f"{key.name}={value_text(key, getattr(attrs, key.field), 'ini')}"


def _given(cfg: ModelConfig, number: int | None, field: str) -> bool:
    """Whether the user set a value of one class, or of all."""
    common = cfg.origin(field, class_id=-1)  # the settings that all classes share
    own = common if number is None else cfg.origin(field, class_id=number)
    return own.kind == "override" and (number is None or own != common)


def _usual(cfg: ModelConfig) -> ClassAttrs:
    """Fill the settings of all classes with usual values; those that the user set win."""
    usual = ClassAttrs(pre_cluster_threshold=0.3, nms_iou_threshold=0.5, topk=300)
    fields = [key.field for key in CLASS_KEYS.values() if key.field]
    own = {name: getattr(cfg.all_classes, name) for name in fields if _given(cfg, None, name)}
    return replace(usual, **own)
