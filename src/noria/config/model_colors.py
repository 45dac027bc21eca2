"""Colours of classes that a pipeline sets over those of a model's own file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from noria._core.notices import Notice
from noria.config.class_attrs import ClassAttrs, Rgba
from noria.config.model_config import ModelConfig
from noria.config.origin import Origin


def colored(
    cfg: ModelConfig, field: str, colors: Mapping[int, Rgba], origin: Origin
) -> tuple[ModelConfig, list[Notice]]:
    """A config whose classes have these colours.

    Args:
        cfg: the model's config.
        field: `border_colors` or `bg_colors`.
        colors: by class number; -1 is every other class, whatever the model's own file says.
        origin: who says so.

    Returns:
        The config, and what of it has no effect.
    """
    if not colors:
        return cfg, []
    key = field.replace("_", "-")
    if not cfg.network_type.has_class_attrs:
        kind = f"network-type {cfg.network_type}"
        return cfg, [Notice("info", f"{key} has no effect: {kind} draws no boxes", origin.where)]
    name = field.removesuffix("s")
    common, classes, origins = cfg.all_classes, dict(cfg.classes), {}
    if -1 in colors:
        for number, attrs in classes.items():
            classes[number] = _with(attrs, field, colors[-1])
            origins[f"classes.{number}.{name}"] = origin
        common = _with(common, field, colors[-1])
        origins[f"all_classes.{name}"] = origin
    beyond = []
    for number, color in sorted(colors.items()):
        if number >= cfg.num_detected_classes:
            beyond.append(str(number))
        elif number >= 0:
            classes[number] = _with(classes.get(number, common), field, color)
            origins[f"classes.{number}.{name}"] = origin
    notices = []
    if beyond:
        message = (
            f"{key} of class {', '.join(beyond)} has no effect: "
            f"the model has {cfg.num_detected_classes} classes"
        )
        notices.append(Notice("info", message, origin.where))
    return cfg.changed({"all_classes": common, "classes": classes}, origins), notices


def _with(attrs: ClassAttrs, field: str, color: Rgba) -> ClassAttrs:
    if field == "border_colors":
        return replace(attrs, border_color=color)
    return replace(attrs, bg_color=color)
