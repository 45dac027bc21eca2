"""Files that a config names: which of them make the model, and which are missing."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headrace._core import formats
from headrace._core.errors import ConfigError
from headrace._core.text import quoted
from headrace.config.enums import NetworkType
from headrace.config.keys import PROPERTY_KEYS
from headrace.config.paths import missing_hints

if TYPE_CHECKING:
    from headrace.config.model_fields import ModelFields


ModelKind = Literal["onnx", "darknet", "caffe", "uff"]

_FILES: dict[ModelKind, tuple[str, ...]] = {
    "onnx": ("onnx_file",),
    "darknet": ("model_file", "custom_network_config"),
    "caffe": ("model_file", "proto_file"),
    "uff": ("uff_file",),
}


def model_kind(cfg: ModelFields) -> ModelKind | None:
    """The format that the model is read from; None if no keys name a whole model.

    ONNX goes before the others, as in the newest original. Darknet is what the original's YOLO
    libraries read from their own pair of keys. Source: config facts 5.1, custom-library facts 3.1.
    """
    return next((kind for kind, f in _FILES.items() if all(getattr(cfg, n) for n in f)), None)


def model_paths(cfg: ModelFields) -> dict[str, Path]:
    """Key -> file of the chosen format, the file that names the engine first."""
    kind = model_kind(cfg)
    if kind is None:
        return {}
    if kind == "darknet":
        assert cfg.model_file is not None
        return {"model-file": cfg.model_file, "custom-network-config": darknet_cfg(cfg)}
    return {field.replace("_", "-"): getattr(cfg, field) for field in _FILES[kind]}


def onnx_of_engine(cfg: ModelFields) -> Path | None:
    """Find the ONNX model beside an engine of another program, for a config that names no model.

    It has the engine's name: `x.onnx` belongs to `x.engine` and `x.onnx_b1_gpu0_fp16.engine`.
    """
    engine = cfg.model_engine_file
    if engine is None or model_kind(cfg) is not None or library_makes_networks(cfg):
        return None
    sighting = formats.identify(engine)
    if sighting is None or sighting.key == "headrace-plan":
        return None
    return formats.onnx_beside(engine)


def darknet_cfg(cfg: ModelFields) -> Path:
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


def unused_model_keys(cfg: ModelFields) -> list[str]:
    """Keys that name models of formats that are not chosen."""
    used = _FILES[kind] if (kind := model_kind(cfg)) else ()
    named = dict.fromkeys(f for fields in _FILES.values() for f in fields)
    keys = [f for f in (*named, "tlt_encoded_model") if f not in used and getattr(cfg, f)]
    return [f.replace("_", "-") for f in keys]


_MOST_OF_A_LIBRARY = 2**28
_PARTS = {
    "tlt-encoded-model": "is encrypted, only NVIDIA's library reads it: export the model to ONNX",
    "model-file": "needs proto-file (Caffe) or custom-network-config (Darknet)",
    "proto-file": "needs model-file, the Caffe weights",
    "custom-network-config": "needs model-file, the Darknet weights",
    "engine-create-func-name": "names a function of custom-lib-path, which is not given",
}


def missing_files(cfg: ModelFields, skip: Collection[str] = ()) -> list[ConfigError]:
    """One error for each file that a run needs and that is not there.

    Needed are the label file (not for network-type 100), the custom library, the mean file, and a
    model (see `model_paths`), unless the engine of `model-engine-file` exists. `skip` names keys
    whose files are not looked for.
    """
    problems = []
    library = cfg.custom_lib_path
    if "custom-lib-path" not in skip:
        problems += _missing(cfg, "custom-lib-path", library)
    # a missing library might make the model: that is not reported as missing, too
    makes = problems and cfg.engine_create_func_name
    engine = cfg.model_engine_file
    if engine is None or not os.path.isfile(engine):
        files = model_paths(cfg)
        if not files and not makes and not library_makes_networks(cfg):
            problems.append(_no_model(cfg))
        for key, path in files.items():
            problems += [] if key in skip else _missing(cfg, key, path)
    problems += _missing(cfg, "mean-file", cfg.mean_file)
    if cfg.network_type is not NetworkType.OTHER:
        problems += _missing(cfg, "labelfile-path", cfg.labelfile_path)
    return problems


def library_makes_networks(cfg: ModelFields) -> bool:
    """Whether the custom library may make the network; who loads it knows for sure."""
    path = cfg.custom_lib_path
    if path is None or not os.path.isfile(path):
        return False
    if cfg.engine_create_func_name:
        return True
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_OF_A_LIBRARY)
    except OSError:
        return False
    return any(name in text for name in (b"NvDsInferCreateModelParser", b"NvDsInferCudaEngineGet"))


def _missing(cfg: ModelFields, key: str, path: Path | None) -> list[ConfigError]:
    return [] if path is None or os.path.isfile(path) else [missing_file(cfg, key, path)]


def missing_file(cfg: ModelFields, key: str, path: Path) -> ConfigError:
    """Return the error for the value of `key` when that is not a file."""
    origin = cfg.origin(key)
    where = origin.where or key
    written = origin.text if origin.text is not None else str(path)
    odd = os.path.exists(path) and not os.path.isdir(path)
    folder = formats.identify(path) if os.path.isdir(path) else None
    if folder is not None and folder.key != "onnx":
        return ConfigError(
            f"{key}={quoted(written)}: {folder.summary}.",
            where=where,
            expected="a file; relative paths start at the folder of the config file",
            fix=folder.ways(),
            code="model-of-other-kind",
            data={"format": folder.key},
        )
    from headrace.config.library_sources import build_command

    hints = [] if odd else missing_hints(path)
    command = build_command(path) if key == "custom-lib-path" and not odd else None
    if command is not None:
        hints.insert(0, f"compile it from the sources beside it: {command}")
    return ConfigError(
        f"{key}={quoted(written)}: "
        + ("this is a device or pipe." if odd else "there is no such file."),
        where=where,
        expected=f"a file at {quoted(str(path), limit=None)}",
        fix=[quoted(hint, limit=None) for hint in hints],
        code="missing-file",
    )


_FITTING = {
    "tlt-encoded-model": ("etlt",),
    "model-file": ("caffemodel", "elf"),
    "proto-file": ("prototxt",),
    "custom-network-config": ("darknet",),
}


def foreign_value(cfg: ModelFields, key: str) -> formats.Sighting | None:
    """Return the format of the file of a model key, where it is that of another framework."""
    path = darknet_cfg(cfg) if key == "custom-network-config" else _value(cfg, key)
    sighting = formats.identify(Path(path)) if path else None
    if sighting is None or not sighting.format.model or sighting.key in _FITTING[key]:
        return None
    return None if sighting.by_name and key != "tlt-encoded-model" else sighting


def _value(cfg: ModelFields, key: str) -> Any:
    field = PROPERTY_KEYS[key].field
    return getattr(cfg, field) if field else None


def _foreign_values(cfg: ModelFields) -> list[str]:
    """Name the files of other frameworks in keys of Caffe, Darknet and TLT models."""
    words = []
    for key in _FITTING:
        if _value(cfg, key) and (sighting := foreign_value(cfg, key)):
            words += [f"{key}={quoted(str(_value(cfg, key)), limit=None)}: {sighting.summary}"]
            words += sighting.ways()
    return words


def _no_model(cfg: ModelFields) -> ConfigError:
    engine = cfg.model_engine_file
    fix = _foreign_values(cfg)
    fix = fix or [f"{name} {words}" for name, words in _PARTS.items() if _value(cfg, name)]
    encoded = cfg.tlt_encoded_model and not foreign_value(cfg, "tlt-encoded-model")
    if cfg.tlt_encoded_model and encoded and (model := formats.onnx_beside(cfg.tlt_encoded_model)):
        fix.insert(0, f"onnx-file={quoted(str(model), limit=None)} lies beside it")
    fix = fix or [
        "relative paths start at the folder of the config file",
        "a config of nvdspostprocess names none: the GStreamer element of that name reads it",
    ]
    if engine is not None and os.path.isdir(engine):
        return missing_file(cfg, "model-engine-file", engine)
    if engine is not None:
        fix.append(f"the engine {quoted(str(engine), limit=None)} is not there either")
    key = "model-engine-file"
    where = quoted(str(cfg.path), limit=None)
    if engine:
        where = cfg.origin(key).where or key
    expected = "onnx-file=..., or the keys of a Caffe, UFF or Darknet model"
    problem, code = "the config names no model.", "no-model"
    if encoded:
        problem, code = "the only model that the config names is encrypted.", "encoded-model"
    return ConfigError(problem, where=where, expected=expected, fix=fix, code=code)
