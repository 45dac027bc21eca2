"""The one file that knows every room: calls from a lower room into a higher one go through it.

A room imports only from rooms below it. Where a lower one has to call a higher one, the function
is named here, and called as an attribute of `headrace`, whose lazy face imports this file (and with
it the higher room) at the first call:

    import headrace
    headrace._wiring.open_plugins(path, registry)     # plugins calls custom

Import contracts see `import headrace` alone. So every upward call of the house is a line below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.config import ModelConfig
    from headrace.config.overrides import Overrides
    from headrace.custom.plugin_library import (
        foreign_error as foreign_error,
    )  # called by trt.scripts
    from headrace.custom.plugin_library import (
        library_hints as library_hints,
    )  # called by plugins.lookup
    from headrace.custom.plugin_library import (
        open_plugins as open_plugins,
    )  # called by plugins.registry
    from headrace.media.messages.library import PayloadLibrary
    from headrace.plugins.registry import PluginRegistry
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {"headrace.custom.plugin_library": "foreign_error library_hints open_plugins"},
    )


def register_standard(registry: PluginRegistry) -> None:
    """Register the standard plugins; called by plugins.registry."""
    from headrace.plugins.standard import register_standard as register

    register(registry)


def record_error(recorder: object, text: str) -> None:
    """Give an error to an `IErrorRecorder`; called by plugins.registry."""
    from headrace.trt.types.enums import ErrorCodeTRT
    from headrace.trt.types.reporting import Severity, report

    code = ErrorCodeTRT["INVALID_CONFIG"]
    report(None, Severity.ERROR, text, recorder=recorder, code=code)  # type: ignore[arg-type]


def load_bare_model(path: Path, overrides: Overrides) -> ModelConfig:
    """Recognise a bare model; called by config.model_config.

    Imported when it is called: plugins need none of it.
    """
    from headrace.infer.recognise.kept import load_bare_model as load

    return load(path, overrides)


def register_elements() -> None:
    """Register GStreamer's elements; called by gstreamer.hook."""
    from headrace.gstreamer.elements.register import register

    register()


def open_converter(path: Path, config: str, payload_type: int, of_metadata: bool) -> PayloadLibrary:
    """Open a library of message payloads; called by media.messages.library."""
    from headrace.custom.converter.library import ConverterLibrary

    return ConverterLibrary(path, config, payload_type, of_metadata=of_metadata)
