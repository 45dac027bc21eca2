"""A graph that stays whole: its plugin nodes are operators that the runtime calls back.

Tensors that pass by a plugin stay in the runtime then, in the memory layout it likes; a cut costs a
copy and a change of layout for each of them. The runtime is given the graph with nodes of a domain
of our own. They hand a number from one to the next: it says which run they belong to, whatever
thread computes them, and keeps them in the order in which a cut graph would run them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import EngineError
from noria.engine.backends import Runner
from noria.engine.plugin_graph.context_pool import PluginLives
from noria.engine.plugin_graph.plugin_record import PluginRecord
from noria.plugins.context import ContextPlugin
from noria.plugins.layer import EnginePlugin, EngineSpec
from noria.plugins.memory import array_at

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Lent = tuple[int, Shape]
"""Address and shape of a tensor that is the runtime's."""
DOMAIN = "noria.plugins"
RUN = "noria.run"
"""Name of the further input: the number of the run, int32 of shape (1,)."""
_OMITTED = np.empty(0, np.float32)


@cache
def numpy_type(kind: int) -> np.dtype[Any]:
    """NumPy's twin of an ONNX element type."""
    from onnx import helper

    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))


@dataclass(frozen=True, slots=True)
class PluginNode:
    """A plugin node as the runtime sees it: the run's number first, then all that is not left out.

    Attributes:
        op: type of the node, in `DOMAIN`; no other node has it.
        plugin: the layer.
        number: of the layer among those of the plan.
        inputs, outputs: names of the values, the number's included.
        input_types, output_types: of the elements, as ONNX numbers them.
        hands_on: the number is its first output; it is not for the last node.
        given, taken: which of the record's inputs, shape inputs and outputs are not left out.
        shape_inputs: how many inputs at the end are numbers that decide shapes.
        plain: nothing needs to be converted, see `ContextPlugin.run_at`.
    """

    op: str
    plugin: EnginePlugin
    number: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_types: tuple[int, ...]
    output_types: tuple[int, ...]
    hands_on: bool
    given: tuple[bool, ...]
    taken: tuple[bool, ...]
    shape_inputs: int
    plain: bool

    def arguments(self, lent: Sequence[Lent]) -> tuple[list[Array], list[Array]]:
        """Inputs and shape inputs of the plugin, from those of the node behind the number."""
        types = self.input_types[1:]
        left = iter([array_at(*at, numpy_type(t)) for at, t in zip(lent, types, strict=True)])
        every = [next(left) if there else _OMITTED for there in self.given]
        end = len(every) - self.shape_inputs
        return every[:end], every[end:]

    def place(self, output: int) -> int | None:
        """Position of output number n of the plugin among the node's outputs."""
        return self.hands_on + sum(self.taken[:output]) if self.taken[output] else None


@dataclass(frozen=True, slots=True)
class WholeGraph:
    """What a runtime is given.

    Attributes:
        model: the `ModelProto`; `RUN` is its last input.
        nodes: its plugin nodes, in the order in which they run.
    """

    model: Any
    nodes: tuple[PluginNode, ...]


def whole_graph(
    proto: Any,
    records: Sequence[PluginRecord],
    plugins: Sequence[EnginePlugin],
    order: Sequence[str],
) -> WholeGraph:
    """Make plugin nodes operators of `DOMAIN`.

    Args:
        proto: the `ModelProto`; its `value_info` tells the types of what plugins take and give.
        records: of the plugin nodes.
        plugins: their layers.
        order: names of their nodes, as they are to run.

    Raises:
        EngineError: the type of a value is not known; one has a name that is needed here.
    """
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    types = {v.name: v.type.tensor_type.elem_type
             for v in (*graph.value_info, *graph.input, *graph.output)}  # fmt: skip
    types |= {t.name: t.data_type for t in graph.initializer}
    types |= {o: a.t.data_type for n in graph.node if n.op_type == "Constant"
              for a in n.attribute if a.name == "value" for o in n.output}  # fmt: skip
    names = {*types, *(name for n in graph.node for name in n.output)}
    if taken := [name for name in names if name == RUN or name.startswith(f"{RUN}.")]:
        raise EngineError(f"a value of the graph is called {min(taken)!r}")
    numbers = {r.node: i for i, r in enumerate(records)}
    of_name = {n.name: n for n in graph.node}
    nodes = []
    before = RUN
    last = len(order) - 1
    for index, name in enumerate(order):
        record, plugin = records[numbers[name]], plugins[numbers[name]]
        following = f"{RUN}.{index}"
        reads = (*record.inputs, *record.shape_inputs)
        inputs = (before, *(r for r in reads if r))
        handed_on = (following,) if index < last else ()
        outputs = (*handed_on, *(o for o in record.outputs if o))
        known = [types.get(v, 0) for v in (*inputs[1:], *outputs[len(handed_on) :])]
        if not all(known):
            raise EngineError(f"a value at plugin {name!r} is of unknown type")
        node = of_name[name]
        node.CopyFrom(
            onnx.helper.make_node(f"Plugin{index}", inputs, outputs, name=name, domain=DOMAIN)
        )
        integer = onnx.TensorProto.INT32
        nodes.append(
            PluginNode(
                op=node.op_type,
                plugin=plugin,
                number=numbers[name],
                inputs=inputs,
                outputs=outputs,
                input_types=(integer, *known[: len(inputs) - 1]),
                output_types=(*(integer for _ in handed_on), *known[len(inputs) - 1 :]),
                hands_on=bool(handed_on),
                given=tuple(bool(r) for r in reads),
                taken=tuple(bool(o) for o in record.outputs),
                shape_inputs=len(record.shape_inputs),
                plain=_is_plain(plugin.spec, reads, known),
            )
        )
        before = following
    graph.input.append(
        onnx.helper.make_tensor_value_info(RUN, onnx.TensorProto.INT32, [1])
    )  # fmt: skip
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return WholeGraph(model, tuple(nodes))


def _is_plain(spec: EngineSpec, reads: Sequence[str], types: Sequence[int]) -> bool:
    if not all(reads) or len(reads) != len(spec.input_types) or not spec.is_plain:
        return False
    return all(t.numpy == numpy_type(k) for t, k in zip(spec.input_types, types, strict=False))


@dataclass(slots=True)
class _Run:
    contexts: list[ContextPlugin]
    error: BaseException | None = None


class PluginCalls:
    """What the runtime calls. Knows the runs under way by their numbers.

    Args:
        nodes: of the graph.
        lives: its plugins, in the order of the plan.
    """

    def __init__(self, nodes: Sequence[PluginNode], lives: PluginLives) -> None:
        self._nodes, self._lives = list(nodes), lives
        self._runs: dict[int, _Run] = {}
        self._astray = False
        self._numbers = itertools.count()

    def begin(self) -> tuple[int, _Run]:
        """A run begins.

        Raises:
            EngineError: the session is closed; a context cannot be made.
        """
        run = _Run(self._lives.take())
        number = next(self._numbers) % 2**31
        self._runs[number] = run
        return number, run

    def only(self) -> int | None:
        """The number of the run that a call is of, if there is but one under way."""
        runs = list(self._runs)
        return None if self._astray or len(runs) != 1 else runs[0]

    def end(self, number: int, *, astray: bool = False) -> None:
        """It is over; `astray`: nobody waited for the runtime, which may still call."""
        self._astray |= astray
        self._lives.give_back(self._runs.pop(number).contexts)

    def call(
        self,
        index: int,
        number: int,
        inputs: Sequence[Lent],
        output: Callable[[int, Shape], int],
    ) -> bool:
        """Compute a node.

        Args:
            index: of the node.
            number: of the run.
            inputs: of the node, without the number. They are not changed.
            output: gives the address of an output of the node, once its shape is known.

        Returns:
            Whether it went well; what was raised is kept for the end of the run, which computes
            no further node.

        Raises:
            EngineError: there is no such run.
        """
        run = self._runs.get(number)
        if run is None:
            raise EngineError(f"no run has the number {number}")
        if run.error is not None:
            return False
        node = self._nodes[index]
        context = run.contexts[node.number]
        try:
            if node.plain:
                first = node.hands_on
                if all(node.taken):
                    context.run_at(inputs, lambda n, shape: output(n + first, shape))
                else:
                    context.run_at(inputs, _Places(node, output).address)
            else:
                arrays, shape_inputs = node.arguments(inputs)
                places = _Places(node, output)
                context.run(arrays, shape_inputs=shape_inputs, into=places.array)
        except BaseException as error:  # it must not unwind through the runtime
            run.error = error
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Places:
    """Memory of the outputs of a plugin."""

    node: PluginNode
    output: Callable[[int, Shape], int]

    def address(self, number: int, shape: Shape) -> int | None:
        place = self.node.place(number)
        return None if place is None else self.output(place, shape)

    def array(self, number: int, shape: Shape) -> Array | None:
        place = self.node.place(number)
        if place is None:
            return None
        kind = numpy_type(self.node.output_types[place])
        return array_at(self.output(place, shape), shape, kind, writable=True)


class WholeRunner:
    """A runner of a `WholeGraph` as one of the graph itself.

    Attributes:
        inputs, outputs: bindings in the model's order.
        device: plugins compute on the host.
    """

    device = "cpu"

    def __init__(self, runner: Runner, calls: PluginCalls, lives: PluginLives) -> None:
        self._runner, self._calls, self._lives = runner, calls, lives
        self.inputs = tuple(s for s in runner.inputs if s.name != RUN)
        self.outputs = runner.outputs
        # plugins end with the runner even if nobody closes it
        self._finalizer = weakref.finalize(self, lives.close)

    def run(self, feeds: Mapping[str, Any], *, to_host: bool = True) -> Sequence[Any]:
        """See `Runner.run`."""
        number, run = self._calls.begin()
        failure, astray = None, True
        outputs: Sequence[Any] = ()
        try:
            outputs = self._runner.run({**feeds, RUN: np.array([number], np.int32)})
            astray = False
        except EngineError as error:
            failure, astray = error, False
        finally:
            self._calls.end(number, astray=astray)
        if run.error is not None:  # what the runtime says of it is less
            raise run.error
        if failure is not None:
            raise failure
        return outputs

    def close(self) -> None:
        """Release the graph; plugins end when the runs under way have finished."""
        self._finalizer.detach()
        self._lives.close()
        self._runner.close()
