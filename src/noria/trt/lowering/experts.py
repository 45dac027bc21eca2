"""Mixtures of experts, rounding in blocks, and what needs several devices."""

from __future__ import annotations

import math

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.convolution import _given
from noria.trt.lowering.fragment import Fragment, LoweringError, lowers

Inputs = list["str | None"]


@lowers("MOE")
def mixture(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """sum of score * down((up(x) + beta) * activation(gate(x))) over a token's experts.

    Every expert sees every token and the scores of those not chosen are left out: exact, and as
    dear as all experts together.
    """
    states, chosen, scores = (_given(inputs, i) for i in range(3))
    if len(inputs) < 6 or None in inputs[3:6]:
        raise LoweringError("a mixture of experts without weights: set_gated_weights(…)")
    params = layer._params
    if params["to_type"].name != "FLOAT":
        raise LoweringError(f"experts in {params['to_type'].name}, which the CPU does not have")
    gate_w, up_w, down_w = (_given(inputs, i) for i in range(3, 6))
    f.must_have_axes(states, "hidden_states", "[batch, tokens, size]")
    f.must_have_axes(chosen, "selected_experts_for_tokens", "[batch, tokens, top-k]")
    f.must_have_axes(scores, "scores_for_selected_experts", "[batch, tokens, top-k]")
    for name, what in ((gate_w, "gate"), (up_w, "up"), (down_w, "down")):
        sides = "inner, size" if what == "down" else "size, inner"
        f.must_have_axes(name, f"the weights {what}", f"[experts, {sides}]")
        if 0 in f.shape(name):
            raise LoweringError(f"the weights {what} are empty: {f.shape(name)}")
    biases = [*inputs[6:9], None, None, None][:3]
    if len({bias is None for bias in biases}) != 1:
        raise LoweringError("all three biases or none")
    size = f.extent(states, 2)
    tokens = f.unsqueeze(f.op("Reshape", states, f.op("Concat", f.ints(-1), size, axis=0)), [0])

    def linear(x: str, weights: str, bias: str | None) -> str:
        made = f.op("MatMul", x, weights)
        return made if bias is None else f.op("Add", made, f.unsqueeze(bias, [1]))

    gate = linear(tokens, gate_w, biases[0])
    up = linear(tokens, up_w, biases[1])
    if math.isfinite(params["limit"]):
        most = f.like(params["limit"], gate)
        gate = f.op("Min", gate, most)
        up = f.op("Max", f.op("Min", up, most), f.like(-params["limit"], up))
    if params["activation_type"].name == "SILU":
        inner = gate if params["alpha"] == 1 else f.op("Mul", gate, f.like(params["alpha"], gate))
        gate = f.op("Mul", gate, f.op("Sigmoid", inner))
    if params["beta"]:
        up = f.op("Add", up, f.like(params["beta"], up))
    made = linear(f.op("Mul", up, gate), down_w, biases[2])  # [experts, tokens, size]

    most_chosen = f.extent(chosen, 2)
    rows = f.op("Concat", f.ints(-1), most_chosen, axis=0)
    numbers = f.op("Reshape", f.cast(chosen, np.int64), rows)
    weights = f.cast(f.op("Reshape", scores, rows), f.dtype(made))
    count = f.op("Reshape", f.extent(gate_w, 0), f.ints())
    experts = f.op("Range", f.const(np.int64(0)), count, f.const(np.int64(1)))
    taken = f.op("Equal", f.unsqueeze(numbers, [0]), f.unsqueeze(experts, [1, 2]))
    share = f.op("Where", taken, f.unsqueeze(weights, [0]), f.like(0, weights))
    share = f.reduce("ReduceSum", share, [2])  # [experts, tokens, 1]
    used = f.op(
        "Greater", f.reduce("ReduceSum", f.cast(taken, np.int32), [2]), f.const(np.int32(0))
    )
    part = f.op("Where", used, f.op("Mul", made, share), f.like(0, made))
    total = f.reduce("ReduceSum", part, [0], keep=False)
    return [f.op("Reshape", total, f.extents(states))]


@lowers("DIST_COLLECTIVE")
def collective(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    name = layer._params["operation"].name
    raise LoweringError(
        f"{name} joins processes that each drive one device; noria.trt is one process on one "
        "device, and there is nothing to join. Build the network for one rank, without the layer"
    )


@lowers("DYNAMIC_QUANTIZE")
def dynamic_quantize(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """q = clamp(round to even(x / scale), -127, 127), scale = max|x| / 127 of each block."""
    x = _given(inputs, 0)
    kinds = layer._params["to_type"].name, layer._params["scale_type"].name
    if kinds != ("INT8", "FLOAT"):
        raise LoweringError(
            f"rounding in blocks to {kinds[0]} with scales of {kinds[1]}; the CPU has INT8 with "
            "scales of FLOAT"
        )
    block, shape = [int(d) for d in layer._params["block_shape"]], f.shape(x)
    if len(block) != len(shape):
        raise LoweringError(f"blocks {tuple(block)} of a tensor {shape}")
    cut: list[str] = []
    scales: list[str] = []
    for axis, (size, length) in enumerate(zip(block, shape, strict=True)):
        whole = f.extent(x, axis)
        if size == -1:
            pair = [f.ints(1), whole]
        elif size == 1:
            pair = [whole, f.ints(1)]
        elif size > 1 and length >= 0 and length % size == 0:
            pair = [f.ints(length // size), f.ints(size)]
        else:
            raise LoweringError(f"axis {axis} of {length} elements in blocks of {size}")
        cut += pair
        scales.append(pair[0])
    blocks = f.op("Reshape", f.cast(x, np.float32), f.op("Concat", *cut, axis=0))
    inner = list(range(1, 2 * len(shape), 2))
    scale = f.op("Div", f.reduce("ReduceMax", f.op("Abs", blocks), inner), f.const(np.float32(127)))
    nothing = f.const(np.float32(0))
    divisor = f.op("Where", f.op("Equal", scale, nothing), f.const(np.float32(1)), scale)
    rounded = f.cast(f.op("Round", f.op("Div", blocks, divisor)), np.int8)
    return [
        f.op("Reshape", rounded, f.extents(x)),
        f.op("Reshape", scale, f.op("Concat", *scales, axis=0)),
    ]
