"""The source of a config's network: a function of the custom library, else the model's files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from headrace._core.errors import EngineError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.formats.table import FORMATS
from headrace.config.model_files import ModelKind, missing_file, model_kind, unused_model_keys
from headrace.infer.model.source import ModelSource, model_source
from headrace.plugins.custom_files import load_custom_plugins
from headrace.plugins.loading import PYTHON_SUFFIXES

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.infer.model.plugin_factories import CppFactories

_NAMES: dict[ModelKind, str] = {
    "onnx": "onnx-file",
    "caffe": "model-file with proto-file (Caffe)",
    "darknet": "model-file with custom-network-config (Darknet)",
    "uff": "uff-file",
}


def network_source(
    cfg: ModelConfig, notices: list[Finding]
) -> tuple[ModelSource | None, CppFactories | None]:
    """Find the source of a config's network, and the plugin factories of its custom library.

    A function of the library goes before all files. The library is open afterwards: its plugins
    are registered before an engine is read. Notices are appended.

    Raises:
        CustomLibraryError: see `library_source` and `plugin_factories`.
    Source: custom-library spec 2.1, 3.1.
    """
    factories = None
    if cfg.custom_lib_path is not None:
        # a config without a library does not pay for importing what opens one
        from headrace.infer.model.library_source import library_source

        custom_source = library_source(cfg, notices)
        if cfg.custom_lib_path.suffix.lower() not in PYTHON_SUFFIXES:
            from headrace.infer.model.plugin_factories import plugin_factories

            factories = plugin_factories(cfg, notices)
        if custom_source:
            return custom_source, factories
    kind = model_kind(cfg)
    for key in unused_model_keys(cfg) if kind else ():
        level: Literal["warning", "info"] = "warning" if key == "tlt-encoded-model" else "info"
        text = f"{key} is not used: the model is {_NAMES[kind]}" if kind else ""
        notices.append(Finding("model-unused", level, text, cfg.where(key.replace("-", "_"))))
    return model_source(cfg, factories), factories


def source_with_plugins(cfg: ModelConfig, notices: list[Finding]) -> ModelSource | None:
    """Find the source of a config's network, its plugins loaded, as a build begins.

    None if the config names no model. Notices are appended.

    Raises:
        CustomLibraryError: plugins of `custom-lib-path` cannot be loaded; as `network_source`.
    """
    notices += load_custom_plugins(cfg.custom_lib_path)
    source, _ = network_source(cfg, notices)
    return source


def no_model(cfg: ModelConfig) -> HeadraceError:
    """Make the error for a config that needs a model and has no source."""
    library = cfg.custom_lib_path
    if library is not None and not library.is_file():  # it may have made the model
        return missing_file(cfg, "custom-lib-path", library)
    others = {
        "tlt-encoded-model": cfg.tlt_encoded_model,
        "model-file": cfg.model_file,
        "proto-file": cfg.proto_file,
        "custom-network-config": cfg.custom_network_config,
        "engine-create-func-name": cfg.engine_create_func_name,
    }
    settings = [f"{key}={value}" for key, value in others.items() if value]
    problem = "neither a model nor a usable model-engine-file is given"
    fix = []
    if settings:
        problem += f"; {', '.join(settings)} cannot be built from"
        fix = [
            "Caffe needs model-file and proto-file, Darknet model-file and custom-network-config"
        ]
    if cfg.tlt_encoded_model:
        fix = list(FORMATS["etlt"].ways)
    return EngineError(
        problem,
        where=str(cfg.path),
        expected="onnx-file=<model.onnx>, or the keys of a Caffe, UFF or Darknet model",
        fix=fix,
        code="encoded-model" if cfg.tlt_encoded_model else "no-model",
    )
