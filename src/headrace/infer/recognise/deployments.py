"""Files that deployment tools put beside a model, as texts like those in the model.

Sources: OpenMMLab mmdeploy writes `pipeline.json` and `detail.json`; NVIDIA TAO writes
`nvinfer_config.txt` and `labels.txt`; GStreamer reads `MODEL.modelinfo` (docs of
GstAnalyticsModelInfo); Luxonis packs a model with `config.json` as an NN Archive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.config.enums import NetworkType
from headrace.config.ini_groups import read_keyfile

LARGEST = 1 << 22  # bytes; label lists of thousands of classes have 200 kB
SOURCE = "described beside the model"
"""The text that names the file which describes the images."""
ORDER, FIT = "order of the colours", "fit into the input"
"""Texts of `Images.order` and `Images.fit`."""
CROP = "crop_pct"
"""The share of the shorter side that is cut out of the centre, as LibreYOLO and timm name it."""
HEAD = "parser of an NN Archive"
"""The text that names the head."""
THRESHOLD, IOU = "least score", "overlap in suppression"


def numbers(values: object) -> bool:
    """Whether this is a list of numbers, and not empty."""
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    )


def _number(value: object) -> float:
    """A number of a JSON file, or the first of a list; 0 where it is none."""
    first = value[0] if isinstance(value, list) and value else value
    return float(first) if numbers([first]) and isinstance(first, int | float) else 0.0


def json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is none that can be read."""
    try:
        content = json.loads(_text(path))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def mmdeploy_texts(model: Path) -> dict[str, str]:
    """Read how mmdeploy's `pipeline.json` prepares images, and the classes of `detail.json`."""
    folder = model.parent
    parts = _at(json_object(folder / "deploy.json"), "models")
    nets = [_at(part, "net") for part in (parts if isinstance(parts, list) else ())]
    if nets and model.name not in nets:
        return {}
    tasks = _at(json_object(folder / "pipeline.json"), "pipeline", "tasks")
    if not isinstance(tasks, list):
        return {}
    steps = list(_transforms(tasks))
    edge = 0.0
    if not steps:
        return {}
    texts = {SOURCE: "pipeline.json of mmdeploy"}
    for step in steps:
        kind = step.get("type")
        if kind == "Normalize":
            texts |= _normal(step.get("mean"), step.get("std"))
            texts[ORDER] = "RGB" if step.get("to_rgb") else "BGR"
        elif kind == "Resize":
            texts[FIT] = "corner" if step.get("keep_ratio") else "stretch"
        elif kind == "ResizeEdge" and step.get("edge", "short") == "short":
            edge = _number(step.get("scale"))
        elif kind == "CenterCrop" and edge:
            texts[CROP] = str(_number(step.get("crop_size")) / edge)
        elif kind == "Pad" and step.get("pad_to_square"):
            texts[FIT] = "corner"
    for task in tasks:
        texts |= _limits(task.get("params") if isinstance(task, dict) else None)
    classes = _at(json_object(folder / "detail.json"), "classes")
    return texts | _named(classes)


def tao_texts(folder: Path) -> dict[str, str]:
    """Read the keys of images in TAO's `nvinfer_config.txt`, and the names of `labels.txt`."""
    group = _groups(folder / "nvinfer_config.txt").get("property", {})
    if not group:
        return {}
    texts = {SOURCE: "nvinfer_config.txt"}
    factor, offsets = _floats(group.get("net-scale-factor")), _floats(group.get("offsets"))
    if len(factor) == 1 and factor[0] > 0:
        count = len(offsets) or 1
        texts |= _normal(offsets or [0.0], [1 / factor[0]] * count)
    order = {"0": "RGB", "1": "BGR"}.get(group.get("model-color-format", "0").strip())
    texts |= {ORDER: order} if order else {}
    if group.get("maintain-aspect-ratio", "0").strip() == "1":
        texts[FIT] = "centre" if group.get("symmetric-padding", "0").strip() == "1" else "corner"
    else:
        texts[FIT] = "stretch"
    lines = _text(folder / "labels.txt").splitlines()
    lines = [x for line in lines for x in line.split(";")] if len(lines) == 1 else lines
    return texts | _named([line.strip() for line in lines if line.strip()])


def modelinfo_texts(path: Path) -> dict[str, str]:
    """Read the range of an image's values in GStreamer's file of a model."""
    for file in (path.with_name(f"{path.name}.modelinfo"), path.with_suffix(".modelinfo")):
        for title, group in _groups(file).items():
            ranges = [_floats(part) for part in group.get("ranges", "").split(";") if part]
            if title == "modelinfo" or group.get("dir") != "input" or not ranges:
                continue
            if any(len(pair) != 2 or pair[1] <= pair[0] for pair in ranges):
                continue
            spans = [255 / (high - low) for low, high in ranges]
            lows = [-low * span for (low, _), span in zip(ranges, spans, strict=True)]
            return {SOURCE: file.name} | _normal(lows, spans)
    return {}


def luxonis_texts(path: Path) -> dict[str, str]:
    """Read images, classes and thresholds in the `config.json` of an unpacked NN Archive."""
    model = _at(json_object(path.with_name("config.json")), "model")
    inputs = _at(model, "inputs")
    if not isinstance(inputs, list) or not inputs or _at(model, "metadata", "path") != path.name:
        return {}
    images = _at(inputs[0], "preprocessing") or {}
    if not isinstance(images, dict):
        return {}
    texts = {SOURCE: "config.json of an NN Archive"}
    texts |= _normal(images.get("mean"), images.get("scale"))
    said = {{"R": "RGB", "B": "BGR"}.get(str(images.get("dai_type") or "")[:1])}
    said.add({"True": "RGB", "False": "BGR"}.get(str(images.get("reverse_channels"))))
    orders = said - {None}
    if len(orders) == 1:
        texts[ORDER] = str(orders.pop())
    heads = _at(model, "heads")
    first = heads[0] if isinstance(heads, list) and heads else None
    if isinstance(_at(first, "parser"), str):
        texts[HEAD] = str(_at(first, "parser"))
    head = _at(first, "metadata")
    if not isinstance(head, dict):
        return texts
    limits = {"score_thr": head.get("conf_threshold"), "iou_threshold": head.get("iou_threshold")}
    return texts | _limits(limits) | _named(head.get("classes"))


def kind_of_head(texts: Mapping[str, str]) -> NetworkType | None:
    """The kind of network that the head of an NN Archive names; None: it names none."""
    name = texts.get(HEAD, "")
    return next((kind for word, kind in _KINDS.items() if name.startswith(word)), None)


_KINDS = {
    "Classification": NetworkType.CLASSIFIER,
    "Segmentation": NetworkType.SEGMENTATION,
    "Embeddings": NetworkType.OTHER,
    "MapOutput": NetworkType.OTHER,
    "ImageOutput": NetworkType.OTHER,
    "SSD": NetworkType.DETECTOR,
}
"""Starts of the names of parsers in depthai-nodes; of YOLO's the outputs tell the kind."""


def _transforms(tasks: Sequence[object]) -> Iterator[Mapping[str, Any]]:
    for task in tasks:
        steps = task.get("transforms") if isinstance(task, dict) else None
        yield from (x for x in (steps if isinstance(steps, list) else ()) if isinstance(x, dict))


def _normal(mean: object, deviation: object) -> dict[str, str]:
    """Texts of mean and deviation in 0..255."""
    if not numbers(mean) or not numbers(deviation):
        return {}
    assert isinstance(mean, list)
    assert isinstance(deviation, list)
    if len(mean) != len(deviation):
        mean = mean * len(deviation) if len(mean) == 1 else mean
        deviation = deviation * len(mean) if len(deviation) == 1 else deviation
    return {"mean": json.dumps([m / 255 for m in mean]),
            "std": json.dumps([d / 255 for d in deviation])}  # fmt: skip


def _limits(params: object) -> dict[str, str]:
    if not isinstance(params, dict):
        return {}
    texts = {}
    for key, name in (("score_thr", THRESHOLD), ("iou_threshold", IOU)):
        value = params.get(key)
        if isinstance(value, int | float) and 0 < value < 1:  # neither True nor False is
            texts[name] = str(value)
    return texts


def _named(classes: object) -> dict[str, str]:
    if isinstance(classes, list) and classes and all(isinstance(name, str) for name in classes):
        return {"names": json.dumps(classes)}
    return {}


def _at(content: object, *keys: str) -> object:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _floats(text: str | None) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", text or "")]


def _groups(path: Path) -> dict[str, dict[str, str]]:
    """Groups of an INI file; none if there is none."""
    groups = read_keyfile(_text(path).encode(), path).groups
    return {name: {x.key: x.text for x in group.entries} for name, group in groups.items()}


def _text(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return ""
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
