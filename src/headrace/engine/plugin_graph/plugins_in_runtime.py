"""Run a graph in which plugin nodes are operators that call back into Python.

Tensors that pass by a plugin stay in the runtime then, in the memory layout it likes; a split costs
a copy and a change of layout for each of them. The runtime loads the graph with nodes of headrace's
own domain. Each node passes a run id to the next one: it identifies the run in any thread
that computes the node, and keeps the plugins in the order in which a split graph runs them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.types import Array, DType
from headrace.engine.backends import Runner
from headrace.engine.plugin_graph.context_pool import ContextPool
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.plugins.context import ContextPlugin
from headrace.plugins.layer import EnginePlugin, EngineSpec
from headrace.plugins.memory import array_at

if TYPE_CHECKING:
    from onnx import ModelProto

    from headrace.engine.backends.protocol import DLPackTensor, Outputs


Shape = tuple[int, ...]
Lent = tuple[int, Shape]
"""Address and shape of a tensor that is the runtime's."""
DOMAIN = "headrace.plugins"
RUN_ID = "headrace.run"
"""Name of the added input: the run id, int32 of shape (1,)."""
_OMITTED = np.empty(0, np.float32)


@cache
def numpy_type(kind: int) -> DType:
    """Translate an ONNX element type to NumPy's."""
    from onnx import helper

    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))


@dataclass(frozen=True, slots=True)
class CallbackNode:
    """A plugin node as the runtime sees it: the run id first, then all values not left out.

    Attributes:
        op: type of the node, in `DOMAIN`; no other node has it.
        plugin: the layer.
        index: of the layer in the plan.
        inputs, outputs: names of the values, those of the run id included.
        input_types, output_types: of the elements, as ONNX numbers them.
        passes_run_id: True if output 0 forwards the run id; False for the last plugin node.
        given, taken: which of the record's inputs, shape inputs and outputs are not left out.
        shape_inputs: how many inputs at the end are numbers that decide shapes.
        plain: True if no value needs to be converted, see `ContextPlugin.run_at`.
    """

    op: str
    plugin: EnginePlugin
    index: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_types: tuple[int, ...]
    output_types: tuple[int, ...]
    passes_run_id: bool
    given: tuple[bool, ...]
    taken: tuple[bool, ...]
    shape_inputs: int
    plain: bool

    def arguments(self, lent: Sequence[Lent]) -> tuple[list[Array], list[Array]]:
        """Convert the node's inputs behind the run id to inputs and shape inputs of the plugin."""
        types = self.input_types[1:]
        left = iter([array_at(*at, numpy_type(t)) for at, t in zip(lent, types, strict=True)])
        every = [next(left) if there else _OMITTED for there in self.given]
        end = len(every) - self.shape_inputs
        return every[:end], every[end:]

    def place(self, output: int) -> int | None:
        """Position of output `output` of the plugin among the node's outputs; None if left out."""
        return self.passes_run_id + sum(self.taken[:output]) if self.taken[output] else None


@dataclass(frozen=True, slots=True)
class CallbackGraph:
    """A model with its plugin nodes as operators of `DOMAIN`.

    `RUN_ID` is its last input; `nodes` are in the order in which they run.
    """

    model: ModelProto
    nodes: tuple[CallbackNode, ...]
    domain: str = DOMAIN


def element_types(proto: ModelProto) -> dict[str, int]:
    """Collect the ONNX element types of the values of a graph; 0 where it does not declare one."""
    graph = proto.graph
    types = {v.name: v.type.tensor_type.elem_type
             for v in (*graph.value_info, *graph.input, *graph.output)}  # fmt: skip
    types |= {t.name: t.data_type for t in graph.initializer}
    types |= {o: a.t.data_type for n in graph.node if n.op_type == "Constant"
              for a in n.attribute if a.name == "value" for o in n.output}  # fmt: skip
    return types


def callback_graph(
    proto: ModelProto,
    types: Mapping[str, int],
    records: Sequence[PluginRecord],
    plugins: Sequence[EnginePlugin],
    order: Sequence[str],
) -> CallbackGraph:
    """Make the plugin nodes of a graph operators of `DOMAIN`. `must_split` must have allowed it.

    `order` names the nodes in the order they run.
    """
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    numbers = {r.node: i for i, r in enumerate(records)}
    of_name = {n.name: n for n in graph.node}
    nodes = []
    before = RUN_ID
    last = len(order) - 1
    for index, name in enumerate(order):
        record, plugin = records[numbers[name]], plugins[numbers[name]]
        following = f"{RUN_ID}.{index}"
        reads = (*record.inputs, *record.shape_inputs)
        inputs = (before, *(r for r in reads if r))
        passed = (following,) if index < last else ()
        outputs = (*passed, *(o for o in record.outputs if o))
        known = [types[v] for v in (*inputs[1:], *outputs[len(passed) :])]
        node = of_name[name]
        node.CopyFrom(
            onnx.helper.make_node(f"Plugin{index}", inputs, outputs, name=name, domain=DOMAIN)
        )
        integer = onnx.TensorProto.INT32
        nodes.append(
            CallbackNode(
                op=node.op_type,
                plugin=plugin,
                index=numbers[name],
                inputs=inputs,
                outputs=outputs,
                input_types=(integer, *known[: len(inputs) - 1]),
                output_types=(*(integer for _ in passed), *known[len(inputs) - 1 :]),
                passes_run_id=bool(passed),
                given=tuple(bool(r) for r in reads),
                taken=tuple(bool(o) for o in record.outputs),
                shape_inputs=len(record.shape_inputs),
                plain=_is_plain(plugin.spec, reads, known),
            )
        )
        before = following
    graph.input.append(
        onnx.helper.make_tensor_value_info(RUN_ID, onnx.TensorProto.INT32, [1])
    )  # fmt: skip
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return CallbackGraph(model, tuple(nodes))


def _is_plain(spec: EngineSpec, reads: Sequence[str], types: Sequence[int]) -> bool:
    if not all(reads) or len(reads) != len(spec.input_types) or not spec.is_plain:
        return False
    return all(f.storage == numpy_type(k) for f, k in zip(spec.input_forms, types, strict=False))


@dataclass(slots=True)
class _Run:
    contexts: list[ContextPlugin]
    error: BaseException | None = None


class PluginCallbacks:
    """Compute plugin nodes for the runtime. Knows the runs under way by their ids.

    Contexts in the pool are in the order of the plan.
    """

    def __init__(self, nodes: Sequence[CallbackNode], pool: ContextPool) -> None:
        self._nodes, self._pool = list(nodes), pool
        self._runs: dict[int, _Run] = {}
        self._ids = itertools.count()

    def begin(self) -> tuple[int, _Run]:
        """Begin a run; its id and state.

        Raises:
            EngineError: the session is closed; a context cannot be made.
        """
        run = _Run(self._pool.take())
        run_id = next(self._ids) % 2**31
        self._runs[run_id] = run
        return run_id, run

    def end(self, run_id: int) -> None:
        """End a run."""
        self._pool.give_back(self._runs.pop(run_id).contexts)

    def call(
        self,
        index: int,
        run_id: int,
        inputs: Sequence[Lent],
        output: Callable[[int, Shape], int],
    ) -> bool:
        """Compute a node.

        The inputs are those of the node without the run id, and are not changed; `output` gives the
        address of an output of the node, once its shape is known.

        Returns:
            True if it went well. Otherwise the error is kept for the end of the run, and later
            nodes of the run are not computed.

        Raises:
            EngineError: there is no such run.
        """
        run = self._runs.get(run_id)
        if run is None:
            raise EngineError(f"no run has the id {run_id}")
        if run.error is not None:
            return False
        node = self._nodes[index]
        context = run.contexts[node.index]
        try:
            if node.plain:
                first = node.passes_run_id
                if all(node.taken):
                    context.run_at(inputs, lambda n, shape: output(n + first, shape))
                else:
                    context.run_at(inputs, _Places(node, output).address)
            else:
                arrays, shape_inputs = node.arguments(inputs)
                context.run(arrays, shape_inputs=shape_inputs, into=_Places(node, output).array)
        except BaseException as error:  # it must not unwind through the runtime
            run.error = error
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Places:
    """Find memory for the outputs of a plugin."""

    node: CallbackNode
    output: Callable[[int, Shape], int]

    def address(self, number: int, shape: Shape) -> int | None:
        index = self.node.place(number)
        return None if index is None else self.output(index, shape)

    def array(self, number: int, shape: Shape) -> Array | None:
        index = self.node.place(number)
        if index is None:
            return None
        kind = numpy_type(self.node.output_types[index])
        return array_at(self.output(index, shape), shape, kind, writable=True)


class CallbackRunner:
    """Run a `CallbackGraph` as the graph itself: the run id is not among its inputs."""

    device = "cpu"  # plugins compute on the host

    def __init__(self, runner: Runner, calls: PluginCallbacks, pool: ContextPool) -> None:
        self._runner, self._calls = runner, calls
        self.contexts = self._pool = pool
        self.inputs = tuple(s for s in runner.inputs if s.name != RUN_ID)
        self.outputs = runner.outputs
        # plugins end with the runner even if it is not closed
        self._finalizer = weakref.finalize(self, pool.close)

    def run(self, feeds: Mapping[str, DLPackTensor], *, to_host: bool = True) -> Outputs:
        """See `Runner.run`."""
        run_id, run = self._calls.begin()
        failure = None
        outputs: Outputs = ()
        try:
            outputs = self._runner.run({**feeds, RUN_ID: np.array([run_id], np.int32)})
        except EngineError as error:
            failure = error
        finally:
            self._calls.end(run_id)
        if run.error is not None:  # the plugin's own error says more than the runtime's
            raise run.error
        if failure is not None:
            raise failure
        return outputs

    def close(self) -> None:
        """Release the graph; plugins end when the runs under way have finished."""
        self._finalizer.detach()
        self._pool.close()
        self._runner.close()
