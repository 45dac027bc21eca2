"""Loops as ONNX `Loop` nodes: which layers are inside, and the body that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from onnx import TensorProto, helper

from headrace._core.errors import ModelError
from headrace.network.shapes.protos import type_proto
from headrace.trt.types.tensor import ITensor

if TYPE_CHECKING:
    from onnx import NodeProto

    from headrace.trt.layers.base import ILayer
    from headrace.trt.layers.control import ILoop


@dataclass(slots=True)
class LoopPlan:
    """A loop and its content in order: layers, and loops that it encloses."""

    loop: ILoop
    inside: list[ILayer | LoopPlan] = field(default_factory=list)
    outputs: list[ILayer] = field(default_factory=list)

    def layers(self) -> list[ILayer]:
        """All layers of it, those of loops inside too."""
        layers = list(self.outputs)
        for item in self.inside:
            layers += item.layers() if isinstance(item, LoopPlan) else [item]
        return layers


_BORDERS = ("RECURRENCE", "ITERATOR", "TRIP_LIMIT")


def plan_loops(layers: Sequence[ILayer]) -> list[ILayer | LoopPlan]:
    """The layers, those inside loops gathered: a loop stands behind all that it takes.

    A layer is inside a loop if it depends on one of its recurrences or iterators; a loop is
    inside another if anything at its borders is.

    Raises:
        ModelError: loops that overlap, or layers that depend on each other in a circle.
    """
    within = _enclosing(layers)
    top: list[ILayer | LoopPlan] = []
    plans = {
        id(layer._params["_loop"]): LoopPlan(layer._params["_loop"])
        for layer in layers
        if layer._kind == "LOOP_OUTPUT"
    }

    def body(loops: set[int], name: str) -> list[ILayer | LoopPlan]:
        if not loops:
            return top
        depths = {key: len(within[key]) for key in loops}
        inner = max(depths, key=lambda key: depths[key])
        if loops != within[inner] | {inner}:
            raise ModelError(f"{name} is inside two loops, and neither is inside the other")
        if inner not in plans:
            raise ModelError(f"{name} is inside a loop without an output")
        return plans[inner].inside

    for layer in layers:
        if layer._kind == "LOOP_OUTPUT":
            plans[id(layer._params["_loop"])].outputs.append(layer)
        else:
            body(within[layer._uid], f"layer {layer._name!r}").append(layer)
    for key, plan in plans.items():
        body(within[key], f"loop {plan.loop._name!r}").append(plan)
    for plan in plans.values():
        plan.inside = _sorted(plan.inside)
    return _sorted(top)


def _enclosing(layers: Sequence[ILayer]) -> dict[str | int, set[int]]:
    """The loops around each layer (by its uid) and around each loop (by its id)."""
    within: dict[str | int, set[int]] = {layer._uid: set() for layer in layers}
    loops = {id(o): o for o in (layer._params.get("_loop") for layer in layers) if o is not None}
    within |= {key: set() for key in loops}
    changed = True
    while changed:
        changed = False
        for layer in layers:
            enclosing = set(within[layer._uid])
            for tensor in layer._inputs:
                if tensor is not None and tensor._producer is not None:
                    enclosing |= within.get(tensor._producer._uid, set())
            own = layer._params.get("_loop")
            if own is not None:
                around = within[id(own)] | (enclosing - {id(own)})
                if around != within[id(own)]:
                    within[id(own)], changed = around, True
                enclosing |= around
                enclosing = (
                    enclosing | {id(own)} if layer._kind in _BORDERS else enclosing - {id(own)}
                )
            if enclosing != within[layer._uid]:
                within[layer._uid], changed = enclosing, True
    for key, loop in loops.items():
        if any(key in within[other] for other in within[key]):
            raise ModelError(f"loop {loop._name!r} is inside a loop that is inside it")
    return within


def _sorted(order: list[ILayer | LoopPlan]) -> list[ILayer | LoopPlan]:
    """Each item behind those of the same body that it takes from."""
    ordered: list[ILayer | LoopPlan] = []
    done: set[str] = set()
    owners = [{layer._uid for layer in _layers(item)} for item in order]
    here = set().union(*owners)
    waiting = list(zip(order, owners, strict=True))
    while waiting:
        for entry in waiting:
            item, own = entry
            needs = {
                tensor._producer._uid
                for layer in _layers(item)
                for tensor in _before(layer, alone=not isinstance(item, LoopPlan))
                if tensor is not None and tensor._producer is not None
            } - own
            if needs & here <= done:
                ordered.append(item)
                done |= own
                waiting.remove(entry)
                break
        else:
            raise ModelError("layers depend on each other in a circle")
    return ordered


def _layers(item: ILayer | LoopPlan) -> list[ILayer]:
    return item.layers() if isinstance(item, LoopPlan) else [item]


def _before(layer: ILayer, *, alone: bool) -> Sequence[ITensor | None]:
    """The inputs of a layer; the next value of a recurrence is made later in the same body."""
    if alone and layer._kind == "RECURRENCE":
        return layer._inputs[:1]
    return [] if alone and layer._kind == "TRIP_LIMIT" else layer._inputs


def loop_nodes(
    plan: LoopPlan, nodes: list[NodeProto], fresh: Callable[[str], str]
) -> list[NodeProto]:
    """Make the node `Loop` and the nodes around it.

    Args:
        plan: the loop and its content.
        nodes: of the layers inside.
        fresh: gives new names.

    Raises:
        ModelError: no limit, or a recurrence without a next value.
    """
    loop = plan.loop
    where = f"loop {loop._name!r}"
    limits = {layer._params["kind"].name: cast(ITensor, layer._inputs[0]) for layer in loop._limits}
    if not limits:
        raise ModelError("it has no trip limit", where=where, fix="loop.add_trip_limit(…)")
    before, after, body = [], [], list(nodes)
    iteration, going = fresh("iteration"), fresh("going")
    for layer in plan.inside:
        counter = layer._params.get("_counter") if not isinstance(layer, LoopPlan) else None
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
    scans: list[str] = []
    stacks = any(layer._params["kind"].name != "LAST_VALUE" for layer in plan.outputs)
    counted = fresh("counted") if stacks and condition is not None else ""
    for layer in plan.outputs:
        source = layer._inputs[0]
        assert source is not None
        if layer._params["kind"].name == "LAST_VALUE":
            if source._uid not in final:
                raise ModelError(
                    f"{layer._name}: a last value is that of a recurrence", where=where
                )
            last_value = final[source._uid]
            after.append(helper.make_node("Identity", [last_value], [layer._outputs[0]._uid]))
            continue
        scanned, stacked = fresh("scan"), layer._params["_stacked"]
        body.append(helper.make_node("Identity", [source._uid], [scanned]))
        assert source._info is not None
        outputs.append(helper.make_value_info(scanned, type_proto(source._info)))
        whole = stacked if condition is None else fresh("all")
        scans.append(whole)
        if condition is not None:
            zero = fresh("zero")
            after.append(_ints(zero, [0]))
            after.append(helper.make_node("Slice", [whole, zero, counted], [stacked]))
    if counted:  # turns that count: all if the trip count ended it, else all but the last
        one, ones = fresh("one"), fresh("ones")
        body.append(helper.make_node("Cast", [turn], [one], to=TensorProto.INT64))
        outputs.append(helper.make_tensor_value_info(one, TensorProto.INT64, ()))
        scans.append(ones)
        after.insert(0, helper.make_node("ReduceSum", [ones], [counted]))
    graph = helper.make_graph(body, loop._name, inputs, outputs)
    node = helper.make_node(
        "Loop", [count, on, *initial], [*final.values(), *scans], body=graph, name=loop._name
    )
    return [*before, node, *after]


def _ints(name: str, numbers: list[int], shape: tuple[int, ...] | None = None) -> TensorProto:
    dims = (len(numbers),) if shape is None else shape
    value = helper.make_tensor(name, TensorProto.INT64, dims, numbers)
    return helper.make_node("Constant", [], [name], value=value)
