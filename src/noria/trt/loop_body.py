"""Loops as ONNX `Loop` nodes: which layers are inside, and the body that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from noria.errors import ModelError
from noria.trt.layer import ILayer
from noria.trt.shapes.info import type_proto
from noria.trt.tensor import ITensor

if TYPE_CHECKING:
    from noria.trt.loops import ILoop

__all__ = ["LoopPlan", "loop_nodes", "plan_loops"]


@dataclass(slots=True)
class LoopPlan:
    """A loop and the layers inside it, in order."""

    loop: ILoop
    inside: list[ILayer] = field(default_factory=list)
    outputs: list[ILayer] = field(default_factory=list)


def plan_loops(layers: Sequence[ILayer]) -> list[ILayer | LoopPlan]:
    """The layers, those inside loops gathered where the loop's first output stands.

    Raises:
        ModelError: a loop inside a loop.
    """
    depends: dict[str, set[int]] = {}
    plans: dict[int, LoopPlan] = {}
    order: list[ILayer | LoopPlan] = []
    borders = {"RECURRENCE", "ITERATOR", "TRIP_LIMIT"}
    inside: dict[int, list[ILayer]] = {}
    for layer in layers:
        inputs = layer._inputs[:1] if layer._kind == "RECURRENCE" else layer._inputs
        producers = [t._producer for t in inputs if t is not None and t._producer is not None]
        loops = set().union(*(depends.get(p._uid, set()) for p in producers))
        own = layer._params.get("_loop")
        if layer._kind in ("RECURRENCE", "ITERATOR"):
            if loops:
                raise ModelError(f"layer {layer._name!r}: a loop inside a loop is not built")
            loops = {id(own)}
        elif layer._kind == "LOOP_OUTPUT":
            loops = loops - {id(own)}
        depends[layer._uid] = loops
        if len(loops) > 1:
            raise ModelError(f"layer {layer._name!r} is inside two loops")
        if layer._kind == "LOOP_OUTPUT":
            if id(own) not in plans:
                plans[id(own)] = LoopPlan(cast(Any, own))
                order.append(plans[id(own)])
            plans[id(own)].outputs.append(layer)
        elif loops or layer._kind in borders:
            at = next(iter(loops)) if loops else id(own)
            inside.setdefault(at, []).append(layer)
        else:
            order.append(layer)
    for key, plan in plans.items():
        plan.inside = inside.get(key, [])
    return _sorted(order, depends)


def _sorted(
    order: list[ILayer | LoopPlan], depends: dict[str, set[int]]
) -> list[ILayer | LoopPlan]:
    """A loop behind everything outside that it takes."""
    made: list[ILayer | LoopPlan] = []
    done: set[str] = set()
    waiting = list(order)
    while waiting:
        for item in waiting:
            layers = [item] if isinstance(item, ILayer) else [*item.inside, *item.outputs]
            own = {layer._uid for layer in layers}
            needs = {
                t._producer._uid
                for layer in layers
                for t in layer._inputs
                if t is not None and t._producer is not None
            } - own
            if needs <= done:
                made.append(item)
                done |= own
                waiting.remove(item)
                break
        else:
            raise ModelError("layers depend on each other in a circle")
    return made


def loop_nodes(plan: LoopPlan, nodes: list[Any], fresh: Any) -> list[Any]:
    """The node `Loop` and what stands around it.

    Args:
        nodes: of the layers inside.
        fresh: gives new names.

    Raises:
        ModelError: no limit, or a recurrence without a next value.
    """
    from onnx import TensorProto, helper

    loop = plan.loop
    where = f"loop {loop._name!r}"
    limits = {layer._params["kind"].name: cast(ITensor, layer._inputs[0]) for layer in loop._limits}
    if not limits:
        raise ModelError("it has no trip limit", where=where, fix="loop.add_trip_limit(…)")
    before, after, body = [], [], list(nodes)
    iteration, going = fresh("iteration"), fresh("going")
    for layer in plan.inside:
        counter = layer._params.get("_counter")
        if counter is not None:
            body.insert(0, helper.make_node("Identity", [iteration], [counter]))
    count = ""
    if "COUNT" in limits:
        shape, flat, count = fresh("scalar"), fresh("flat"), fresh("count")
        before.append(_ints(shape, [], (0,)))
        before.append(helper.make_node("Reshape", [limits["COUNT"]._uid, shape], [flat]))
        before.append(helper.make_node("Cast", [flat], [count], to=TensorProto.INT64))
    condition = limits.get("WHILE")
    on = fresh("on")
    before.append(
        helper.make_node(
            "Constant", [], [on], value=helper.make_tensor(on, TensorProto.BOOL, (), [True])
        )
    )
    turn = fresh("turn")
    if condition is None:
        body.append(helper.make_node("Identity", [going], [turn]))
    else:
        scalar = fresh("scalar")
        body.append(_ints(scalar, [], (0,)))
        body.append(helper.make_node("Reshape", [condition._uid, scalar], [turn]))
    inputs = [
        helper.make_tensor_value_info(iteration, TensorProto.INT64, ()),
        helper.make_tensor_value_info(going, TensorProto.BOOL, ()),
    ]
    outputs = [helper.make_tensor_value_info(turn, TensorProto.BOOL, ())]
    initial, final = [], {}
    for recurrence in loop._recurrences:
        following = recurrence.get_input(1)
        if following is None:
            raise ModelError(
                f"{recurrence._name} has no next value", where=where,
                fix="recurrence.set_input(1, tensor)",
            )  # fmt: skip
        tensor, first = recurrence._outputs[0], recurrence._inputs[0]
        assert tensor._info is not None
        assert first is not None
        handed = fresh("next")
        if condition is None:
            body.append(helper.make_node("Identity", [following._uid], [handed]))
        else:  # the turn in which the condition fails must not count
            body.append(helper.make_node("Where", [turn, following._uid, tensor._uid], [handed]))
        inputs.append(helper.make_value_info(tensor._uid, type_proto(tensor._info)))
        outputs.append(helper.make_value_info(handed, type_proto(tensor._info)))
        initial.append(first._uid)
        final[tensor._uid] = fresh("final")
    scans = []
    for layer in plan.outputs:
        source = layer._inputs[0]
        assert source is not None
        if layer._params["kind"].name == "LAST_VALUE":
            if source._uid not in final:
                raise ModelError(
                    f"{layer._name}: a last value is that of a recurrence", where=where
                )
            made = final[source._uid]
            after.append(helper.make_node("Identity", [made], [layer._outputs[0]._uid]))
            continue
        scanned, stacked = fresh("scan"), layer._params["_stacked"]
        body.append(helper.make_node("Identity", [source._uid], [scanned]))
        assert source._info is not None
        outputs.append(helper.make_value_info(scanned, type_proto(source._info)))
        whole = stacked if condition is None else fresh("all")
        scans.append(whole)
        if condition is not None:
            zero, end = fresh("zero"), fresh("end")
            after += [_ints(zero, [0]), _ints(end, [-1])]
            after.append(helper.make_node("Slice", [whole, zero, end], [stacked]))
    graph = helper.make_graph(body, loop._name, inputs, outputs)
    node = helper.make_node(
        "Loop", [count, on, *initial], [*final.values(), *scans], body=graph, name=loop._name
    )
    return [*before, node, *after]


def _ints(name: str, numbers: list[int], shape: tuple[int, ...] | None = None) -> Any:
    from onnx import TensorProto, helper

    dims = (len(numbers),) if shape is None else shape
    value = helper.make_tensor(name, TensorProto.INT64, dims, numbers)
    return helper.make_node("Constant", [], [name], value=value)
