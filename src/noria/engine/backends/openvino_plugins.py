"""Plugin nodes as operators of an OpenVINO model.

OpenVINO reads the graph without them: what plugins take comes out, what they give goes in. Then the
operators are put between.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import openvino as ov

from noria._core.errors import EngineError
from noria._native import address_of
from noria.engine.plugin_graph.plugins_in_runtime import (
    DOMAIN,
    RUN,
    PluginCalls,
    PluginNode,
    WholeGraph,
)
from noria.plugins.evaluate import evaluate

_FLOAT, _INT32 = 1, 6  # others are converted by OpenVINO as it likes
_END = "noria.end"


def without_nodes(graph: WholeGraph) -> bytes:
    """The ONNX message that OpenVINO reads. After the model's own inputs and outputs come, node
    by node, what plugins give (as inputs) and what they take (as outputs).

    Args:
        graph: its model is changed to that.

    Raises:
        EngineError: a plugin cannot be an operator of OpenVINO.
    """
    import onnx

    if not hasattr(ov, "Op"):
        raise EngineError(f"OpenVINO {ov.get_version()} takes no operators from outside")
    model = graph.model
    values = {v.name: v for v in (*model.graph.value_info, *model.graph.output)}
    ops = {node.op for node in graph.nodes}
    kept = [n for n in model.graph.node if n.domain != DOMAIN or n.op_type not in ops]
    del model.graph.input[-1]  # the run's number, which nothing reads now
    for node in graph.nodes:
        _check(node)
        for name in node.outputs[node.hands_on :]:
            if not values[name].type.tensor_type.HasField("shape"):
                raise EngineError(f"the shape of {name!r} is not known")
            if any(
                d.HasField("dim_value") and not d.dim_value
                for d in values[name].type.tensor_type.shape.dim
            ):  # OpenVINO drops their readers, and fails for want of them
                raise EngineError(f"{name!r} is empty")
            model.graph.input.append(values[name])
        for index, name in enumerate(node.inputs[1:]):
            end = f"{_END}.{node.op}.{index}"
            kept.append(onnx.helper.make_node("Identity", [name], [end], name=end))
            kind = node.input_types[1 + index]
            model.graph.output.append(onnx.helper.make_tensor_value_info(end, kind, None))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return bytes(model.SerializeToString())


def _check(node: PluginNode) -> None:
    spec = node.plugin.spec
    if node.shape_inputs:
        raise EngineError(f"numbers decide shapes of plugin {spec.layer!r}")
    if spec.decides_shapes:
        raise EngineError(f"plugin {spec.layer!r} decides shapes while it runs")
    if not {*node.input_types, *node.output_types} <= {_FLOAT, _INT32}:
        raise EngineError(f"plugin {spec.layer!r} takes or gives other than float32 and int32")


class Operators:
    """The Python side of the operators of a model, copies included: to be kept as long as anything
    that is made of the model may run.

    OpenVINO 2026.4 would keep them itself, but for ever: they would hold each other.
    """

    def __init__(self) -> None:
        self.all: list[Any] = []


def grafted(read: Any, graph: WholeGraph, calls: PluginCalls) -> Operators:
    """Put the operators into the model that `without_nodes` gave.

    Args:
        read: the `openvino.Model`; it is changed. The run's number becomes its last input.
        graph: what it was made of.
        calls: computes the operators.

    Raises:
        EngineError: OpenVINO has read it in a way that is not known.
    """
    given = sum(sum(node.taken) for node in graph.nodes)
    taken = sum(len(node.inputs) - 1 for node in graph.nodes)
    parameters, results = read.get_parameters(), read.get_results()
    weights = {t.name for t in graph.model.graph.initializer}
    count = sum(v.name not in weights for v in graph.model.graph.input)
    if len(parameters) != count or len(results) != len(graph.model.graph.output):
        raise EngineError("OpenVINO has changed inputs or outputs of the graph")
    run = ov.opset1.parameter([1], ov.Type.i32, name=RUN)
    number = run.output(0)
    number.set_names({RUN})
    own = count - given
    operators = Operators()
    sources, ends = iter(results[len(results) - taken :]), iter(parameters[own:])
    for index, node in enumerate(graph.nodes):
        inputs = [number, *(next(sources).input(0).get_source_output() for _ in node.inputs[1:])]
        places = [next(ends) for _ in node.outputs[node.hands_on :]]
        shapes = [place.get_partial_shape() for place in places]
        made = _PluginOp(inputs, index, node, shapes, calls, weakref.ref(operators))
        made.set_friendly_name(node.plugin.spec.layer)
        number = made.output(0)  # of the last one it is not, and nobody asks
        for position, place in enumerate(places, start=int(node.hands_on)):
            place.output(0).replace(made.output(position))
    for result in results[len(results) - taken :]:
        read.remove_result(result)
    for place in parameters[own:]:
        read.remove_parameter(place)
    read.add_parameters([run])
    read.validate_nodes_and_infer_types()
    return operators


class _PluginOp(ov.Op if hasattr(ov, "Op") else object):  # type: ignore[misc]
    """A plugin node. OpenVINO makes copies of it, for other shapes."""

    def __init__(
        self,
        inputs: Sequence[Any],
        index: int,
        node: PluginNode,
        shapes: Sequence[Any],
        calls: PluginCalls,
        operators: weakref.ref[Operators],
    ) -> None:
        self._index, self._node, self._calls = index, node, calls
        self._operators = operators
        self._declared = list(shapes)
        self._info = ov.DiscreteTypeInfo(node.op, DOMAIN)  # no two are the same to OpenVINO
        # asks for all of the above; the first argument is what OpenVINO shall keep: not this
        super().__init__(object(), list(inputs))
        known = operators()
        assert known is not None
        known.all.append(self)

    def get_type_info(self) -> Any:
        return self._info

    def has_evaluate(self) -> bool:
        return True

    def visit_attributes(self, visitor: Any) -> bool:
        return True

    def clone_with_new_inputs(self, new_inputs: Sequence[Any]) -> Any:
        return _PluginOp(
            new_inputs, self._index, self._node, self._declared, self._calls, self._operators
        )

    def validate_and_infer_types(self) -> None:
        count = self.get_input_size()
        shapes = [self.get_input_partial_shape(i) for i in range(1, count)]
        found = self._declared
        if all(shape.is_static for shape in shapes):
            known = self._shapes([tuple(shape.to_shape()) for shape in shapes])
            found = [ov.PartialShape(list(shape)) for shape in known]
        if self._node.hands_on:
            self.set_output_type(0, ov.Type.i32, ov.PartialShape([1]))
        for position, shape in enumerate(found, start=int(self._node.hands_on)):
            kind = ov.Type.f32 if self._node.output_types[position] == _FLOAT else ov.Type.i32
            self.set_output_type(position, kind, shape)

    def _shapes(self, inputs: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Of the outputs that are not left out."""
        spec = self._node.plugin.spec
        left = iter(inputs)
        every = [next(left) if there else (0,) for there in self._node.given]
        shapes = evaluate(spec.shapes, every, where=spec.layer).shapes
        return [shape for shape, there in zip(shapes, self._node.taken, strict=True) if there]

    def evaluate(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> bool:
        def output(position: int, shape: tuple[int, ...]) -> int:
            array = outputs[position].data
            if array.shape != shape:  # its extent was not known before
                outputs[position].shape = shape
                array = outputs[position].data
            return address_of(array)

        number = self._calls.only()
        if number is None:
            number = int(inputs[0].data[0])
        if self._node.hands_on:
            outputs[0].data[0] = number
        arrays = [i.data for i in inputs[1:]]
        lent = [(address_of(array), array.shape) for array in arrays]
        if not self._calls.call(self._index, number, lent, output):
            # An exception inside OpenVINO 2026.4 spoils later models of the process. The run goes
            # on with zeros, which nobody sees: `WholeRunner` raises what was kept.
            for given in outputs[int(self._node.hands_on) :]:
                given.data[...] = 0
        return True
