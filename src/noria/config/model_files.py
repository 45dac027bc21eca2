"""Which of the keys that may name a model is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

ModelKind = Literal["onnx", "darknet", "caffe", "uff"]

_FILES: dict[ModelKind, tuple[str, ...]] = {
    "onnx": ("onnx_file",),
    "darknet": ("model_file", "custom_network_config"),
    "caffe": ("model_file", "proto_file"),
    "uff": ("uff_file",),
}


def model_kind(cfg: ModelConfig) -> ModelKind | None:
    """The format that the model is read from; None if no keys name a whole model.

    ONNX goes before the others, as in the newest original. Darknet is what the original's YOLO
    libraries read from their own pair of keys. Source: config facts 5.1, custom-library facts 3.1.
    """
    return next((kind for kind, f in _FILES.items() if all(getattr(cfg, n) for n in f)), None)


def model_paths(cfg: ModelConfig) -> dict[str, Path]:
    """Key -> file of the chosen format, the file that names the engine first."""
    kind = model_kind(cfg)
    if kind is None:
        return {}
    if kind == "darknet":
        assert cfg.model_file is not None
        return {"model-file": cfg.model_file, "custom-network-config": darknet_cfg(cfg)}
    return {field.replace("_", "-"): getattr(cfg, field) for field in _FILES[kind]}


def darknet_cfg(cfg: ModelConfig) -> Path:
    """The file that `custom-network-config` names.

    The key is text for a library, which looks in its working directory. Here the folder of the
    config is tried first, as for every other file.
    """
    text = cfg.custom_network_config or ""
    beside = Path(os.path.dirname(os.path.realpath(cfg.path)), text)
    return (
        beside
        if os.path.isfile(beside) or not os.path.isfile(text)
        else Path(os.path.abspath(text))
    )


def unused_model_keys(cfg: ModelConfig) -> list[str]:
    """Keys that name models of formats that are not chosen."""
    used = _FILES[kind] if (kind := model_kind(cfg)) else ()
    named = dict.fromkeys(f for fields in _FILES.values() for f in fields)
    keys = [f for f in (*named, "tlt_encoded_model") if f not in used and getattr(cfg, f)]
    return [f.replace("_", "-") for f in keys]
