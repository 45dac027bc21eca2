"""`--dynamic-batch`: a model exported for one item takes several, if that is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from headrace._core.errors import EngineError, ModelError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.engine.backends import DEFAULT_BACKEND, RunnerOptions, get_backend
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.onnx_message import model_bytes
from headrace.engine.tuning.output_difference import difference
from headrace.network.free_batch import free_batch
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec

Arrays: TypeAlias = "dict[str, Array]"


def with_free_batch(
    network: Network,
    inputs: Sequence[TensorSpec],
    shape: tuple[int | None, ...],
    image_range: tuple[float, float],
    where: str,
) -> tuple[Network, Finding]:
    """Free the batch of `network` if a batch of 2 gives the results of two runs of 1.

    The batch of `network`, `inputs` and `shape` is 1. `image_range` is that of the noise to
    compare with.

    Returns:
        The freed network or the given one, and a notice with the reason.
    """
    name = network.path.name if network.path else None
    try:
        free = free_batch(network)
        error = _verify(network, free, inputs, shape, image_range, where)
    except (EngineError, ModelError) as failed:
        at = f"{failed.where}: " if failed.where and failed.where != where else ""
        text = f"the batch stays fixed at 1: {at}{failed:brief}"
        return network, Finding("batch-fixed", "warning", text, name)
    text = (
        "the model fixes its batch at 1: made free; a batch of 2 gives what two runs of 1 give "
        f"(difference {error:.1g})"
    )
    return free, Finding("batch-freed", "info", text, name)


def _verify(
    network: Network,
    free: Network,
    inputs: Sequence[TensorSpec],
    shape: tuple[int | None, ...],
    image_range: tuple[float, float],
    where: str,
) -> float:
    """The greatest difference between a batch and single runs.

    Raises:
        EngineError: they differ; or the outputs do not depend on the image.
    """
    low, high = image_range
    items = [sample_inputs(inputs, 1, low=low, high=high, seed=seed) for seed in (1, 2)]
    both = {name: np.concatenate([item[name] for item in items]) for name in items[0]}
    singles = _run(network, shape, items, where)
    together, alone = _run(free, (None, *shape[1:]), [both, items[0]], where)
    expected = {name: np.concatenate([one[name] for one in singles]) for name in singles[0]}
    for name, array in together.items():
        if array.shape != expected[name].shape:
            raise EngineError(
                f"output {name!r} of a batch of 2 is {_text(array)}, not {_text(expected[name])}"
            )
    worst = 0.0
    for what, got, want in (
        ("a batch of 2", together, expected),
        ("a batch of 1", alone, singles[0]),
    ):
        error, wrong = difference(got, want)
        if wrong is not None:
            raise EngineError(f"{what} gives other results than single runs: {wrong}")
        worst = max(worst, error or 0.0)
    if all(np.array_equal(a, singles[1][n], equal_nan=a.dtype.kind == "f")
           for n, a in singles[0].items()):  # fmt: skip
        raise EngineError("two images of noise give the same: it cannot be told apart")
    return worst


def _run(
    network: Network, shape: tuple[int | None, ...], feeds: Sequence[Arrays], where: str
) -> list[Arrays]:
    model = model_bytes(network, shape=shape, where=where, decisions=[])
    runner = get_backend(DEFAULT_BACKEND).open(model, RunnerOptions(optimization="basic"))
    try:
        names = [spec.name for spec in runner.outputs]
        return [dict(zip(names, runner.run(feed), strict=True)) for feed in feeds]
    finally:
        runner.close()


def _text(array: Array) -> str:
    return "x".join(map(str, array.shape)) or "scalar"
