"""The image input of a config's model: size, order of axes, range of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, EngineError
from headrace.config.enums import ColorFormat, TensorOrder
from headrace.engine.input_shapes import AxisOrder, Dims, complete_infer_dims, resolve_shape
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig


def axis_order(cfg: ModelConfig) -> AxisOrder:
    """`network-input-order` as the engine names it."""
    return "NHWC" if cfg.network_input_order is TensorOrder.NHWC else "NCHW"


def network_dims(spec: TensorSpec, cfg: ModelConfig) -> Dims:
    """Work out the channels, height and width that scaling and parsers see.

    Args:
        spec: the first input of a plan or network.
        cfg: for `infer_dims`, `network_input_order`, `model_color_format`, `offsets`.

    Raises:
        EngineError: the input is not an image, or leaves axes free that `infer-dims` must give.
        ConfigError: the channels do not fit the colour format, the axis order or the offsets.
    Source: spec A.3, A.4, A.5; config facts 5.4.
    """
    where = str(cfg.path)
    if len(spec.shape) != 4:
        raise EngineError(
            f"the first input {spec} has {len(spec.shape)} axes",
            where=where,
            expected="four: a batch of images",
            fix="models without an image input need input-tensor-from-meta=1",
            code="input-not-a-image",
        )
    order = axis_order(cfg)
    configured = complete_infer_dims(cfg.infer_dims)
    if configured is None:
        # the original reads the axes as C, H, W whatever network-input-order says
        resolved = resolve_shape(spec, None, "NCHW", where=where)
        channels, height, width = (d for d in resolved[1:] if d is not None)
    else:
        resolve_shape(spec, configured, order, where=where)
        channels, height, width = configured
    _check_channels(channels, spec, cfg, misread=configured is None and order == "NHWC")
    if cfg.offsets and len(cfg.offsets) != channels:
        raise ConfigError(
            f"offsets has {len(cfg.offsets)} values, the network {channels} channels",
            where=cfg.where("offsets"),
            expected=f"{channels} values, one per channel",
            code="offsets-count",
        )
    return channels, height, width


def _check_channels(channels: int, spec: TensorSpec, cfg: ModelConfig, *, misread: bool) -> None:
    color = cfg.model_color_format
    needed = 1 if color is ColorFormat.GRAY else 3
    if channels == needed and (axis_order(cfg) == "NCHW" or channels == 3):
        return
    if channels == needed:
        raise ConfigError(
            "network-input-order=1 (NHWC) with one channel",
            where=cfg.where("network_input_order"),
            expected="three channels: the original knows NHWC for those only",
            code="input-channels",
        )
    fix, keys = [], dict[str, int]()
    if misread:
        h, w, c = spec.shape[1:]
        fix.append(f"an NHWC model needs infer-dims=channels;height;width: set {c};{h};{w}")
    elif spec.shape[3] == needed:
        fix.append("the last axis fits: is this an NHWC model? Then set network-input-order=1 "
                   "and infer-dims")  # fmt: skip
        keys["network-input-order"] = 1
    elif channels in (1, 3):
        keys["model-color-format"] = 2 if channels == 1 else 0
        fix.append(f"set model-color-format={keys['model-color-format']}")
    raise ConfigError(
        f"model-color-format={color} needs {needed} channel(s), but {channels} are seen "
        f"in input {spec}",
        where=cfg.where("model_color_format"),
        fix=fix,
        code="input-channels",
        data={"set": keys},
    )


def image_range(cfg: ModelConfig) -> tuple[float, float]:
    """Work out the least and greatest value of pre-processing. Source: spec A.4."""
    if cfg.net_scale_factor <= 0:
        return 0.0, 255.0
    offsets = cfg.offsets or ((128.0,) if cfg.mean_file else (0.0,))
    scale = cfg.net_scale_factor
    return scale * (0 - max(offsets)), scale * (255 - min(offsets))
