"""`layer-device-precision`: which layers a config pins to a precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.errors import ConfigError

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

_PRECISIONS = ("fp32", "fp16", "int8")
_DEVICES = ("gpu", "dla")


def layer_precisions(cfg: ModelConfig) -> dict[str, str]:
    """Layer -> `fp32`, `fp16` or `int8`.

    Raises:
        ConfigError: an item is not `layer:precision:device`.
    Source: config facts 2.3; names may hold colons.
    """
    found = {}
    for item in cfg.layer_device_precision:
        name, _, rest = item.strip().rpartition(":")
        name, _, precision = name.rpartition(":")
        if not name or precision not in _PRECISIONS or rest not in _DEVICES:
            origin = cfg.origin("layer_device_precision")
            raise ConfigError(
                f"layer-device-precision has the item {item!r}",
                where=str(origin) if origin.kind == "file" else str(cfg.path),
                expected="layer:precision:device, precision one of "
                f"{', '.join(_PRECISIONS)}, device one of {', '.join(_DEVICES)}",
            )
        found[name] = precision
    return found


def dla_layers(cfg: ModelConfig) -> list[str]:
    """Layers that are to run on a DLA; of a config that `layer_precisions` takes."""
    items = [item.strip() for item in cfg.layer_device_precision]
    return [item.rsplit(":", 2)[0] for item in items if item.endswith(":dla")]


def fp32_line(names: tuple[str, ...]) -> str:
    """The line of a config that keeps layers in FP32."""
    return "layer-device-precision=" + ";".join(f"{name}:fp32:gpu" for name in names)
