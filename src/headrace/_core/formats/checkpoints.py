"""Checkpoints of PyTorch and other pickles, by the names in them.

Nothing is unpickled: that would run code of the file. A checkpoint of PyTorch is a zip, in which
`data.pkl` names every class and tensor. Its
bytes are searched for them.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

_MOST_PICKLE = 1 << 24  # bytes that are looked at; names stand between numbers
_MOST_MEMBERS = 1 << 16

# Where several fit, the first is right: frameworks are built on one another.
_MARKS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("anomalib", (b"anomalib",)),
    ("ultralytics", (b"ultralytics.nn",)),
    ("ultralytics", (b"ultralytics", b"train_args")),
    ("yolov6", (b"yolov6.",)),
    ("yolov5", (b"models.yolo",)),
    ("yolo-nas", (b"super_gradients",)),
    ("yolo-nas", (b"ema_net", b"heads.head1.")),
    ("mmlab", (b"mmengine",)),
    ("mmlab", (b"mmdet",)),
    ("mmlab", (b"mmcv_version",)),
    ("detectron2", (b"backbone.bottom_up.",)),
    ("detectron2", (b"__author__", b"matching_heuristics")),
    ("rfdetr", (b"backbone.0.encoder.encoder.", b"transformer.")),
    ("rtdetr", (b"decoder.dec_score_head.",)),
    ("yolox", (b"backbone.backbone.stem.", b"head.cls_preds.")),
    ("lightning", (b"pytorch-lightning_version",)),
)
_GLOBAL = re.compile(rb"c([A-Za-z_][\w.]{0,200})\n([A-Za-z_][\w.]{0,200})\n")
_NOT_NETWORKS = (
    b"torch._utils", b"torch._tensor", b"torch.storage", b"torch.serialization", b"collections",
    b"builtins", b"__builtin__", b"copyreg", b"numpy", b"argparse", b"_codecs", b"pathlib",
    b"datetime", b"omegaconf",
)  # fmt: skip
_STORAGES = re.compile(rb"\w+Storage|Size|device|dtype|\w*int\d+|\w*float\d+|bool")


def zip_format(path: Path) -> tuple[str, bool]:
    """Find the format of a zip by the names of its members; True for one that breaks off."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()[:_MOST_MEMBERS]
            key = _by_members(names)
            return (_of_pickle(archive, names) if key == "torch" else key), False
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError):
        with open(path, "rb") as file:
            head = file.read(1 << 16)
        return ("torch" if b"data.pkl" in head or b"/data/0" in head else "zip"), True


def _of_pickle(archive: zipfile.ZipFile, names: list[str]) -> str:
    member = next(n for n in names if n.rpartition("/")[2] == "data.pkl")
    try:
        with archive.open(member) as file:
            return torch_format(file.read(_MOST_PICKLE))
    except Exception:
        return "torch"


def _by_members(names: Iterable[str]) -> str:
    names = set(names)
    inner = {name.partition("/")[2] for name in names}
    if "models/model.json" in inner or "models/model.json" in names:
        return "torch-program"
    if inner & {"constants.pkl", "bytecode.pkl"} or any(n.startswith("code/") for n in inner):
        return "torchscript"
    if "data.pkl" in inner | names:
        return "torch"
    if {"config.json", "model.weights.h5"} <= names:
        return "keras"
    if any(name.endswith(".tflite") for name in names):
        return "mediapipe"
    return "zip"


def torch_format(pickled: bytes) -> str:
    """Find the format of a PyTorch checkpoint by its pickle, which is only searched."""
    for key, marks in _MARKS:
        if all(mark in pickled for mark in marks):
            return key
    modules = [module for module, name in _GLOBAL.findall(pickled)
               if not module.startswith(_NOT_NETWORKS)
               and not (module == b"torch" and _STORAGES.fullmatch(name))]  # fmt: skip
    if modules:
        return "torch-module"
    nested = (b"state_dict", b"optimizer", b"epoch", b"model_state")
    return "torch" if any(word in pickled for word in nested) else "torch-state"


def pickle_format(path: Path) -> str:
    """Find the format of a bare pickle, by the names in its beginning."""
    with open(path, "rb") as file:
        data = file.read(_MOST_PICKLE)
    for key, marks in _MARKS:
        if all(mark in data for mark in marks):
            return key
    return "sklearn" if b"sklearn." in data else "pickle"
