"""Matrix products. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

from noria.trt.layers.base import ILayer
from noria.trt.lowering.convolution import _given
from noria.trt.lowering.fragment import Fragment, LoweringError, lowers

Inputs = list["str | None"]


@lowers("MATRIX_MULTIPLY")
def matrix_multiply(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Batched, leading axes broadcast; a VECTOR has one axis less than a matrix."""
    a, b = f.same_type(_given(inputs, 0), _given(inputs, 1))
    ops = [layer._params["op0"].name, layer._params["op1"].name]
    ranks = [f.rank(n) + (op == "VECTOR") for n, op in ((a, ops[0]), (b, ops[1]))]
    if ranks[0] != ranks[1] and not f.implicit:
        raise LoweringError(f"a matrix product of {f.rank(a)} and {f.rank(b)} axes ({ops})")
    if min(ranks) < 2:
        raise LoweringError("a matrix needs two axes")
    drop = []
    sides = []
    for side, (name, op) in enumerate(zip((a, b), ops, strict=True)):
        rank = f.rank(name)
        if op == "TRANSPOSE":
            name = f.transpose(name, [*range(rank - 2), rank - 1, rank - 2])
        elif op == "VECTOR":
            name = f.unsqueeze(name, [rank - 1 if side == 0 else rank])
            drop.append(-2 if side == 0 else -1)
        sides.append(name)
    made = f.op("MatMul", *sides)
    rank = f.rank(made)
    return [f.squeeze(made, sorted(rank + d for d in drop)) if drop else made]


@lowers("EINSUM")
def einsum(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    names = [_given(inputs, i) for i in range(len(inputs))]
    return [f.op("Einsum", *names, equation=str(layer._params["equation"]))]
