"""Loops and conditionals. `noria.trt.lowering.loop_body` makes the bodies of loops."""

from __future__ import annotations

import numpy as np

from noria.network.tensor_spec import TensorType
from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required


@lowers("CONDITION", "TRIP_LIMIT")
def nothing(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Make no node: the loop or conditional around reads the layer."""
    return []


@lowers("CONDITIONAL_INPUT")
def conditional_input(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Pass the tensor into both branches."""
    return [f.op("Identity", required(inputs, 0))]


@lowers("CONDITIONAL_OUTPUT")
def conditional_output(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Take the output of one branch; both are computed."""
    condition, yes, no = (required(inputs, i) for i in range(3))
    yes, no = f.same_type(yes, no)
    if f.rank(yes) != f.rank(no):
        raise LoweringError(f"branches of {f.rank(yes)} and {f.rank(no)} axes")
    return [f.op("Where", f.op("Reshape", condition, f.ints(*([1] * f.rank(yes)))), yes, no)]


@lowers("RECURRENCE")
def recurrence(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """No node: the loop's body has it as an input. Its value differs from turn to turn."""
    first = f.infos[required(inputs, 0)]
    return [f.placeholder("recurrence", TensorType(first.elem, first.shape))]


@lowers("ITERATOR")
def iterator(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """The slice at the number of the iteration, which the body gives."""
    x, axis = required(inputs, 0), int(layer._params["axis"])
    at = f.placeholder("iteration", TensorType(7, ()))
    layer._params["_counter"] = at
    if layer._params["reverse"]:
        last = f.op("Sub", f.squeeze(f.extent(x, axis), [0]), f.const(np.int64(1)))
        return [f.op("Gather", x, f.op("Sub", last, at), axis=axis)]
    return [f.op("Gather", x, at, axis=axis)]


@lowers("LOOP_OUTPUT")
def loop_output(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Bring outputs of the loop, stacked along axis 0, into place."""
    first = f.infos[required(inputs, 0)]
    kind, axis = layer._params["kind"].name, int(layer._params["axis"])
    shape = first.shape
    if kind == "LAST_VALUE":
        return [f.placeholder("last", TensorType(first.elem, shape))]
    stacked = None if shape is None else (-1, *shape)
    made = f.placeholder("stacked", TensorType(first.elem, stacked))
    layer._params["_stacked"] = made
    if kind == "REVERSE":
        lowest = np.iinfo(np.int64).min
        made = f.op("Slice", made, f.ints(-1), f.ints(lowest), f.ints(0), f.ints(-1))
    if axis:
        order = [*range(1, axis + 1), 0, *range(axis + 1, f.rank(made))]
        return [f.transpose(made, order)]
    return [f.op("Identity", made)]
