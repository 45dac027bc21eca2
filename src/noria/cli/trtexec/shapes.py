"""The shapes of trtexec's options, applied to a network and to an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noria._core.errors import EngineError
from noria.cli.trtexec.options import Options, Shapes
from noria.network.network import Network
from noria.network.tensor_spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Profile:
    """Batch and shapes that a network is built for.

    Attributes:
        max_batch: most items, where the batch stays free; else what it is fixed at.
        shapes: input -> shape to run with.
        warnings: what does not happen as asked.
    """

    max_batch: int
    shapes: Mapping[str, tuple[int, ...]]
    warnings: Sequence[str]


def fix_shapes(network: Network, options: Options) -> Profile:
    """Fix the free axes of the network's inputs as asked; axes without a request become 1.

    The batch stays free if --minShapes and --maxShapes differ in it.

    Raises:
        EngineError: a shape is for no input, has another rank, or contradicts a fixed axis.
    """
    from noria.network.ir import ir

    warnings: list[str] = []
    least, best, most = _profile_shapes(options)
    _check_names([least, best, most, options.shapes], [s.name for s in network.inputs])
    run, batches = {}, []
    fixed_by_name: dict[str, int] = {}
    for number, (spec, value) in enumerate(
        zip(network.inputs, network.model.graph.inputs, strict=True)
    ):
        dynamic = any(not isinstance(d, int) for d in spec.shape)
        given = _of(best, spec)
        if given is None:
            given = tuple(d if isinstance(d, int) else 1 for d in spec.shape)
            if dynamic:
                warnings.append(
                    f"Dynamic dimensions required for input: {spec.name}, but no shapes were "
                    f"provided. Automatically overriding shape to: {_text(given)}"
                )
        _check_fits(spec, given)
        low, high = _of(least, spec) or given, _of(most, spec) or given
        asked = _of(options.shapes, spec) or given
        for shape in (low, high, asked):
            _check_fits(spec, shape)
        if any(not lo <= x <= hi for lo, x, hi in zip(low, asked, high, strict=True)):
            raise EngineError(
                f"input {spec.name}: {_text(asked)} is outside of {_text(low)} … {_text(high)}"
            )
        if low[1:] != high[1:]:
            warnings.append(
                f"input {spec.name}: an engine of noria is built for one size, {_text(asked)}; "
                "only the batch may vary"
            )
        free = bool(spec.shape) and not isinstance(spec.shape[0], int) and low[0] != high[0]
        if number == 0:
            batches = [high[0]] if high else [1]
        axes: list[int | str | None] = list(asked)
        if free:
            axes[0] = spec.shape[0] or "batch"
        for name, length in zip(spec.shape, axes, strict=True):
            if isinstance(name, str) and isinstance(length, int):
                fixed_by_name.setdefault(name, length)
        value.shape = ir.Shape(axes)
        run[spec.name] = tuple(asked)
    _fix_outputs(network, fixed_by_name)
    return Profile(max(batches), run, warnings)


def run_shapes(inputs: Sequence[TensorSpec], options: Options, max_batch: int) -> Profile:
    """Shapes to run an engine with.

    Raises:
        EngineError: --shapes does not fit the engine.
    """
    _check_names([options.shapes], [s.name for s in inputs])
    run = {}
    batch = options.batch or 1
    for spec in inputs:
        shape = _of(options.shapes, spec)
        if shape is None:
            shape = tuple(d if isinstance(d, int) else batch for d in spec.shape)
        _check_fits(spec, shape)
        if spec.shape and not isinstance(spec.shape[0], int) and shape[0] > max_batch:
            raise EngineError(
                f"input {spec.name}: a batch of {shape[0]}, the engine takes 1 to {max_batch}"
            )
        run[spec.name] = shape
    return Profile(max_batch, run, ())


def _profile_shapes(options: Options) -> tuple[Shapes, Shapes, Shapes]:
    """Least, best and greatest shapes: a missing one is the others'."""
    best = options.opt_shapes or options.shapes or options.max_shapes or options.min_shapes
    return options.min_shapes or best, best, options.max_shapes or best


def _of(shapes: Shapes, spec: TensorSpec) -> tuple[int, ...] | None:
    return shapes.get(spec.name, shapes.get(""))


def _check_names(given: Sequence[Shapes], names: Sequence[str]) -> None:
    for shapes in given:
        for name in shapes:
            if name and name not in names:
                raise EngineError(
                    f"Cannot find input tensor with name {name!r} in the network inputs",
                    expected=", ".join(names),
                )


def _check_fits(spec: TensorSpec, shape: tuple[int, ...]) -> None:
    fits = len(shape) == len(spec.shape) and all(
        not isinstance(want, int) or want == have
        for want, have in zip(spec.shape, shape, strict=True)
    )
    if fits:
        return
    if all(isinstance(d, int) for d in spec.shape):
        raise EngineError(
            f"input {spec} is static: it does not take the shape {_text(shape)}",
            fix="leave the shape out, or export the model with free axes",
        )
    raise EngineError(f"input {spec} does not take the shape {_text(shape)}")


def _fix_outputs(network: Network, fixed: Mapping[str, int]) -> None:
    """The same name means the same number."""
    from noria.network.ir import ir

    graph = network.model.graph
    for value in (*graph.outputs, *(v for node in graph for v in node.outputs)):
        if value.shape is not None and any(not isinstance(d, int) for d in value.shape):
            value.shape = ir.Shape(
                [d if isinstance(d, int) else fixed.get(d.value or "", d) for d in value.shape]
            )


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
