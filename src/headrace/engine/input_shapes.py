"""Shapes of a network's inputs, completed by the dimensions that are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.findings import Data, Finding
from headrace._core.types import Array
from headrace.network.tensor_spec import Axes, TensorSpec

if TYPE_CHECKING:
    from headrace.network.network import Network


Dims = tuple[int, int, int]
"""Channels, height, width; also for NHWC models."""

AxisOrder = Literal["NCHW", "NHWC"]

_AXES: dict[AxisOrder, tuple[str, str, str]] = {
    "NCHW": ("channels", "height", "width"),
    "NHWC": ("height", "width", "channels"),
}


def complete_infer_dims(infer_dims: Dims | None) -> Dims | None:
    """Return `infer-dims`, or None if it is absent or has a zero. Source: config facts 2.3."""
    return infer_dims if infer_dims is not None and all(d > 0 for d in infer_dims) else None


def _in_order(dims: Dims, order: AxisOrder) -> Dims:
    c, h, w = dims
    return (c, h, w) if order == "NCHW" else (h, w, c)


def resolve_shape(
    spec: TensorSpec, infer_dims: Dims | None, order: AxisOrder, *, where: str
) -> tuple[int | None, ...]:
    """Fix all axes of an input but the batch.

    `spec` is as the model declares it, batch first; `infer_dims` fixes its free axes and must equal
    the others.

    Returns:
        The batch (None if free), then the other axes.

    Raises:
        EngineError: naming the axes that stay free, or differ from `infer_dims`.
    Source: config facts 5.4.
    """
    if len(spec.shape) < 2 or spec.shape[0] == 0:
        raise EngineError(f"input {spec} has no batch axis", where=where,
                          expected="a batch first, then at least one axis",
                          code="input-not-a-image")  # fmt: skip
    config_dims = complete_infer_dims(infer_dims)
    names: tuple[str, ...] = tuple(f"axis {i}" for i in range(1, len(spec.shape)))
    required: tuple[int, ...] | None = None
    if len(spec.shape) == 4:
        names = _AXES[order]
        required = None if config_dims is None else _in_order(config_dims, order)
    elif config_dims is not None:
        raise EngineError(
            f"infer-dims={_text(config_dims)} is for four axes, input {spec} has {len(spec.shape)}",
            where=where,
            code="input-dims",
        )
    shape: list[int | None] = [spec.shape[0] if isinstance(spec.shape[0], int) else None]
    free, different = [], []
    fixed: dict[str, int] = {}
    for i, (name, have) in enumerate(zip(names, spec.shape[1:], strict=True)):
        value = have if isinstance(have, int) and have > 0 else None
        want = None if required is None else required[i]
        if value is None and want is None:
            free.append(f"{name} ({have})" if isinstance(have, str) else name)
        elif value is not None and want not in (None, value):
            different.append(f"{name} {value} (infer-dims says {want})")
            fixed[name] = value
        shape.append(value if value is not None else want)
    if free:
        raise EngineError(
            f"input {spec} leaves free: {', '.join(free)}",
            where=where,
            fix="set infer-dims=<channels>;<height>;<width>"
            if len(spec.shape) == 4
            else "export the model with fixed axes; only the batch may be free",
            code="input-free",
        )
    if different:
        fix = "leave infer-dims out, or export the model with free height and width"
        other: AxisOrder = "NHWC" if order == "NCHW" else "NCHW"
        data: Data = {}
        if config_dims is not None and _in_order(config_dims, other) == spec.shape[1:]:
            fix = f"the input is {other}: " + (
                "set network-input-order=1" if other == "NHWC" else "leave network-input-order out"
            )
        elif config_dims is not None:
            axes = zip(_AXES["NCHW"], config_dims, strict=True)
            dims = tuple(fixed.get(name, n) for name, n in axes)
            if sorted(dims) == sorted(config_dims):  # another size altogether has no certain edit
                data = {"set": {"infer-dims": _text(dims)}}
        raise EngineError(
            f"infer-dims={_text(config_dims)} does not fit input {spec}: "
            f"the model fixes {', '.join(different)}",
            where=where,
            fix=fix,
            code="input-dims",
            data=data,
        )
    return tuple(shape)


def extra_inputs(network: Network, image: tuple[int | None, ...], where: str) -> list[TensorSpec]:
    """Complete the inputs beside the image.

    A free first axis is the batch; an axis with the name of one of the image's has its size.

    Raises:
        EngineError: another axis is free.
    """
    named = dict(zip(network.inputs[0].shape, image, strict=True))  # free axes that got a number
    specs = []
    for spec in network.inputs[1:]:
        axes = [d if isinstance(d, int) else named.get(d) for d in spec.shape]
        if any(d is None for d in axes[1:]):
            raise EngineError(
                f"input {spec} leaves an axis free other than the batch",
                where=where,
                fix="export the model with fixed axes for its further inputs",
                code="input-free",
            )
        specs.append(TensorSpec(spec.name, spec.dtype, tuple(axes)))
    return specs


_FREE_SIDE = 640  # of an image whose height or width a model leaves open
_FREE_LENGTH = 512  # of a sequence of tokens or samples
_COLORS = (1, 3)


def is_batch_of_images(network: Network) -> bool:
    """Whether all axes of the inputs but a batch are numbers, and outputs have that batch first."""
    inputs = network.inputs
    if not inputs or len(inputs[0].shape) < 2:
        return False
    if any(not s.shape or _open(s.shape[1:]) for s in inputs):
        return False
    batch = inputs[0].shape[0]
    firsts = [s.shape[0] for s in network.outputs if s.shape]
    return all(not isinstance(d, int) or d == batch for d in firsts)


def free_shapes(
    inputs: Sequence[TensorSpec],
    shapes: Mapping[str, tuple[int, ...]],
    batch: int,
    size: tuple[int, int] = (_FREE_SIDE, _FREE_SIDE),
) -> tuple[dict[str, tuple[int, ...]], list[Finding]]:
    """Choose a number for every free axis of the inputs of a network that takes any shapes.

    First axes become `batch`, height and width of images `size`, other axes of the first input
    512, and of further inputs 1; one name is one number. `shapes` (input -> shape; '' for all
    inputs) goes before all that.

    Returns:
        Input -> shape, and a note that names those that were chosen here.

    Raises:
        EngineError: a shape is for no input, or contradicts the model.
    """
    names = [spec.name for spec in inputs]
    if unknown := [name for name in shapes if name and name not in names]:
        raise EngineError(f"no input is called {unknown[0]!r}", expected=", ".join(names))
    chosen: dict[str, tuple[int, ...]] = {}
    assumed = []
    numbers: dict[str, int] = {}
    for number, spec in enumerate(inputs):
        asked = shapes.get(spec.name, shapes.get(""))
        rest = _FREE_LENGTH if number == 0 else 1
        axes = _sizes(spec, batch, size, rest, numbers) if asked is None else asked
        numbers = {
            d: n for d, n in zip(spec.shape, axes, strict=False) if isinstance(d, str)
        } | numbers
        if len(axes) != len(spec.shape) or any(
            isinstance(d, int) and d != n for d, n in zip(spec.shape, axes, strict=True)
        ):
            raise EngineError(f"input {spec} does not take the shape {'x'.join(map(str, axes))}")
        if asked is None and _open(spec.shape):
            assumed.append(f"{spec.name}:{'x'.join(map(str, axes))}")
        chosen[spec.name] = axes
    if not assumed:
        return chosen, []
    text = "the model leaves axes free; taken: --shapes {shapes}"
    return chosen, [Finding("shapes-assumed", "info", text, data={"shapes": ",".join(assumed)})]


def _sizes(
    spec: TensorSpec, batch: int, size: tuple[int, int], rest: int, numbers: Mapping[str, int]
) -> tuple[int, ...]:
    planes = len(spec.shape) == 4 and spec.shape[1] in _COLORS
    pixels = len(spec.shape) == 4 and spec.shape[3] in _COLORS
    usual = [batch, *([rest] * (len(spec.shape) - 1))]
    if planes or pixels:
        first = 2 if planes else 1
        usual[first : first + 2] = size
    return tuple(
        d if isinstance(d, int) else numbers.get(d or "", usual[i])
        for i, d in enumerate(spec.shape)
    )


def _open(axes: Axes) -> bool:
    return any(not isinstance(d, int) for d in axes)


def _text(dims: tuple[int, ...] | None) -> str:
    return ";".join(map(str, dims or ()))


def sample_inputs(
    inputs: Sequence[TensorSpec],
    items: int,
    *,
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
) -> dict[str, Array]:
    """Make one batch of noise.

    The first input is uniform in low … high, of bytes and images in integers 0 … 255 as far as the
    type goes; further inputs 0 … 1, integers 1, which are indices of any table. All axes are fixed
    but the batch, which becomes `items`. Texts are empty.
    """
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for number, spec in enumerate(inputs):
        shape = [d if isinstance(d, int) else items for d in spec.shape]
        if spec.dtype.kind == "f":
            bounds = (low, high) if number == 0 else (0.0, 1.0)
            array = rng.random(shape, np.float32) * np.float32(bounds[1] - bounds[0])
            feeds[spec.name] = (array + np.float32(bounds[0])).astype(spec.dtype, copy=False)
        elif (
            number == 0
            and spec.dtype.kind in "iu"
            and (spec.dtype.itemsize == 1 or len(shape) == 4)
        ):
            top = min(255, int(np.iinfo(spec.dtype).max))
            feeds[spec.name] = rng.integers(0, top, shape, dtype=spec.dtype, endpoint=True)
        else:
            feeds[spec.name] = np.full(shape, "" if spec.dtype.kind == "O" else 1, spec.dtype)
    return feeds
