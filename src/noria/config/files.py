"""Are the files there that a config names?"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from noria.config.document import show
from noria.config.enums import NetworkType
from noria.config.keys import PROPERTY_KEYS
from noria.config.paths import missing_hints
from noria.errors import ConfigError

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

__all__ = ["missing_file", "missing_files"]

_OTHER_MODELS = ("tlt-encoded-model", "model-file", "uff-file", "engine-create-func-name")


def missing_files(cfg: ModelConfig, skip: Collection[str] = ()) -> list[ConfigError]:
    """One error for each file that a run needs and that is not there.

    Needed are the label file (not for network-type 100), the custom library, the mean file, and a
    model: `onnx-file`, unless the engine of `model-engine-file` exists. `skip` names keys whose
    files are not looked for.
    """
    problems = []
    engine = cfg.model_engine_file
    if engine is None or not os.path.isfile(engine):
        if cfg.onnx_file is None:
            problems.append(_no_model(cfg))
        else:
            problems += _missing(cfg, "onnx-file", cfg.onnx_file)
    problems += _missing(cfg, "mean-file", cfg.mean_file)
    if "custom-lib-path" not in skip:
        problems += _missing(cfg, "custom-lib-path", cfg.custom_lib_path)
    if cfg.network_type is not NetworkType.OTHER:
        problems += _missing(cfg, "labelfile-path", cfg.labelfile_path)
    return problems


def _missing(cfg: ModelConfig, key: str, path: Path | None) -> list[ConfigError]:
    return [] if path is None or os.path.isfile(path) else [missing_file(cfg, key, path)]


def missing_file(cfg: ModelConfig, key: str, path: Path) -> ConfigError:
    """The error for what `key` names when that is not a file."""
    origin = cfg.origin(key)
    written = origin.text if origin.text is not None else str(path)
    odd = os.path.exists(path) and not os.path.isdir(path)
    hints = [] if odd else missing_hints(path)
    return ConfigError(
        f"{key}={show(written)}: "
        + ("this is a device or pipe." if odd else "there is no such file."),
        where=_place(cfg, key),
        expected=f"a file at {show(str(path), limit=None)}",
        fix=[show(hint, limit=None) for hint in hints],
    )


def _no_model(cfg: ModelConfig) -> ConfigError:
    engine = cfg.model_engine_file
    others = [
        name
        for name in _OTHER_MODELS
        if (field := PROPERTY_KEYS[name].field) and getattr(cfg, field)
    ]
    fix = ["relative paths start at the folder of the config file"]
    if others:
        fix = [f"{' and '.join(others)} cannot be built yet: export the model to ONNX"]
    if engine is not None:
        fix.append(f"the engine {show(str(engine), limit=None)} is not there either")
    where = _place(cfg, "model-engine-file") if engine else show(str(cfg.path), limit=None)
    return ConfigError("the config names no model.", where=where, expected="onnx-file=...", fix=fix)


def _place(cfg: ModelConfig, key: str) -> str:
    origin = cfg.origin(key)
    return str(origin) if origin.kind == "file" else key
