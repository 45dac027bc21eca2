"""The picture input of a network: which axes it has, and how the config must fit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.errors import ConfigError, EngineError
from noria.config.enums import ColorFormat, TensorOrder
from noria.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

Dims = tuple[int, int, int]
"""Channels, height, width; also for NHWC models."""

_AXES = {
    TensorOrder.NCHW: ("channels", "height", "width"),
    TensorOrder.NHWC: ("height", "width", "channels"),
}


def complete_infer_dims(infer_dims: Dims | None) -> Dims | None:
    """`infer-dims`, or None if it is absent or has a zero. Source: config facts 2.3."""
    return infer_dims if infer_dims is not None and all(d > 0 for d in infer_dims) else None


def _in_order(dims: Dims, order: TensorOrder) -> Dims:
    c, h, w = dims
    return (c, h, w) if order is TensorOrder.NCHW else (h, w, c)


def resolve_shape(
    spec: TensorSpec, infer_dims: Dims | None, order: TensorOrder, *, where: str
) -> tuple[int | None, ...]:
    """The shape of an input with everything but the batch axis fixed.

    Args:
        spec: the input as the model declares it, batch first.
        infer_dims: channels, height, width for free axes; must equal the fixed ones.
        order: order of the model's axes.
        where: what errors name.

    Returns:
        The batch (None if free), then the other axes.

    Raises:
        EngineError: naming the axes that stay free, or differ from `infer_dims`.
    Source: config facts 5.4.
    """
    if len(spec.shape) < 2 or spec.shape[0] == 0:
        raise EngineError(f"input {spec} has no batch axis", where=where,
                          expected="a batch first, then at least one axis")  # fmt: skip
    given = complete_infer_dims(infer_dims)
    names: tuple[str, ...] = tuple(f"axis {i}" for i in range(1, len(spec.shape)))
    wanted: tuple[int, ...] | None = None
    if len(spec.shape) == 4:
        names = _AXES[order]
        wanted = None if given is None else _in_order(given, order)
    elif given is not None:
        raise EngineError(
            f"infer-dims={_text(given)} is for four axes, input {spec} has {len(spec.shape)}",
            where=where,
        )
    shape: list[int | None] = [spec.shape[0] if isinstance(spec.shape[0], int) else None]
    free, different = [], []
    for i, (name, have) in enumerate(zip(names, spec.shape[1:], strict=True)):
        value = have if isinstance(have, int) and have > 0 else None
        want = None if wanted is None else wanted[i]
        if value is None and want is None:
            free.append(f"{name} ({have})" if isinstance(have, str) else name)
        elif value is not None and want not in (None, value):
            different.append(f"{name} {value} (infer-dims says {want})")
        shape.append(value if value is not None else want)
    if free:
        raise EngineError(
            f"input {spec} leaves free: {', '.join(free)}",
            where=where,
            fix="set infer-dims=<channels>;<height>;<width>"
            if len(spec.shape) == 4
            else "export the model with fixed axes; only the batch may be free",
        )
    if different:
        raise EngineError(
            f"infer-dims={_text(given)} does not fit input {spec}: "
            f"the model fixes {', '.join(different)}",
            where=where,
            fix="leave infer-dims out, or export the model with free height and width",
        )
    return tuple(shape)


def network_dims(spec: TensorSpec, cfg: ModelConfig) -> Dims:
    """Channels, height and width that scaling and parsers see; refuses what cannot be fed.

    Args:
        spec: the first input of a plan or network.
        cfg: for `infer_dims`, `network_input_order`, `model_color_format`, `offsets`.

    Raises:
        EngineError: the input is not a picture, or leaves axes free that `infer-dims` must give.
        ConfigError: the channels do not fit the colour format, the axis order or the offsets.
    Source: spec A.3, A.4, A.5; config facts 5.4.
    """
    where = str(cfg.path)
    if len(spec.shape) != 4:
        raise EngineError(
            f"the first input {spec} has {len(spec.shape)} axes",
            where=where,
            expected="four: a batch of pictures",
            fix="models without a picture input need input-tensor-from-meta=1",
        )
    order = cfg.network_input_order
    given = complete_infer_dims(cfg.infer_dims)
    if given is None:
        # the original reads the axes as C, H, W whatever network-input-order says
        resolved = resolve_shape(spec, None, TensorOrder.NCHW, where=where)
        channels, height, width = (d for d in resolved[1:] if d is not None)
    else:
        resolve_shape(spec, given, order, where=where)
        channels, height, width = given
    _check_channels(channels, spec, cfg, misread=given is None and order is TensorOrder.NHWC)
    if cfg.offsets and len(cfg.offsets) != channels:
        raise ConfigError(
            f"offsets has {len(cfg.offsets)} values, the network {channels} channels",
            where=_origin(cfg, "offsets"),
            expected=f"{channels} values, one per channel",
        )
    return channels, height, width


def _check_channels(channels: int, spec: TensorSpec, cfg: ModelConfig, *, misread: bool) -> None:
    color = cfg.model_color_format
    needed = 1 if color is ColorFormat.GRAY else 3
    if channels == needed and (cfg.network_input_order is TensorOrder.NCHW or channels == 3):
        return
    if channels == needed:
        raise ConfigError(
            "network-input-order=1 (NHWC) with one channel",
            where=_origin(cfg, "network_input_order"),
            expected="three channels: the original knows NHWC for those only",
        )
    fix = []
    if misread:
        h, w, c = spec.shape[1:]
        fix.append(f"an NHWC model needs infer-dims=channels;height;width: set {c};{h};{w}")
    elif spec.shape[3] == needed:
        fix.append("the last axis fits: is this an NHWC model? Then set network-input-order=1 "
                   "and infer-dims")  # fmt: skip
    elif channels in (1, 3):
        fix.append(f"set model-color-format={2 if channels == 1 else 0}")
    raise ConfigError(
        f"model-color-format={color} needs {needed} channel(s), but {channels} are seen "
        f"in input {spec}",
        where=_origin(cfg, "model_color_format"),
        fix=fix,
    )


def _origin(cfg: ModelConfig, field: str) -> str:
    origin = cfg.origin(field)
    return str(origin) if origin.kind == "file" else str(cfg.path)


def _text(dims: Dims | None) -> str:
    return ";".join(map(str, dims or ()))
