"""The layer list behind a network: dependencies of layers, and the type of every tensor."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace._core.text import error_text
from headrace.network.shapes.node_shapes import InferenceError, infer_node
from headrace.network.tensor_spec import TensorType
from headrace.trt.layers.base import ILayer
from headrace.trt.layers.shaping import IConstantLayer
from headrace.trt.lowering.fragment import Fragment, LoweringError, bodies
from headrace.trt.types.reporting import Severity, report
from headrace.trt.types.strict import Closable
from headrace.trt.types.tensor import ITensor
from headrace.trt.types.values import elem_of

if TYPE_CHECKING:
    from onnx import FunctionProto, NodeProto

    from headrace._core.types import Array
    from headrace.network.shapes.node_shapes import Shape
    from headrace.plugins.types import DataType, NumberedEnum
    from headrace.trt.types.reporting import IErrorRecorder, ILogger


DEFAULT_OPSET = 17


class LayerGraph(Closable):
    """Layers, inputs and outputs; base of `INetworkDefinition`.

    A change makes everything behind it out of date; the next question about a shape infers it
    again.
    """

    def __init__(self, logger: ILogger | None, *, implicit: bool) -> None:
        self._logger = logger
        self._recorder: IErrorRecorder | None = None
        self._implicit = implicit
        self._formulas: dict[str, Any] = {}
        self._opset = DEFAULT_OPSET
        self._domains: dict[str, int] = {}
        self._functions: dict[tuple[str, str], FunctionProto] = {}
        self._inputs: list[ITensor] = []
        self._outputs: list[ITensor] = []
        self._layers: list[ILayer] = []
        self._fragments: dict[str, Fragment] = {}
        self._signatures: dict[str, object] = {}
        self._initializers: dict[str, Array] = {}
        self._counter = 0
        self._dirty = 0
        self._sorted = True
        self._typed_by_inputs = True
        self._strong = False

    @property
    def _offset(self) -> int:
        return int(self._implicit)

    def _fresh_uid(self, kind: str) -> str:
        self._counter += 1
        return f"%{kind}{self._counter}"

    def _report(self, text: str, severity: NumberedEnum = Severity.ERROR) -> None:
        report(self._logger, severity, text, recorder=self._recorder)

    def _changed(self, layer: ILayer | None = None) -> None:
        """Mark a layer, or all, as changed; later layers depend on it."""
        if layer is None or layer not in self._layers:
            self._dirty = 0
        else:
            self._dirty = min(self._dirty, self._layers.index(layer))

    def _reordered(self) -> None:
        """Note that a layer may take an output of a later one."""
        self._sorted = False
        self._dirty = 0

    def _append(self, layer: ILayer) -> None:
        self._layers.append(layer)

    def _ordered(self) -> list[ILayer]:
        """Layers behind those that they depend on; otherwise as they were added.

        Raises:
            LoweringError: a layer depends on itself.
        """
        if self._sorted:
            return self._layers
        done: dict[str, ILayer] = {}
        for first in self._layers:
            stack, path = [first], set()
            while stack:
                layer = stack[-1]
                path.add(layer._uid)
                waits = [p for p in _producers(layer) if p._uid not in done]
                if not waits:
                    done[layer._uid] = layer
                    path.discard(layer._uid)
                    stack.pop()
                    continue
                if any(p._uid in path for p in waits):
                    raise LoweringError(f"layer {layer._name!r} depends on its own output")
                stack.extend(waits)
        return list(done.values())

    def _refresh(self) -> None:
        """Bring the types of all tensors up to date."""
        if self._dirty >= len(self._layers):
            return
        try:
            layers = self._ordered()
        except LoweringError as error:
            self._report(str(error))
            self._dirty = len(self._layers)
            return
        start = self._dirty if layers is self._layers else 0
        self._dirty = len(self._layers)
        for layer in layers[start:]:
            infos = {t._uid: t._info for t in layer._inputs if t is not None}
            signature = (
                layer._version,
                layer._kind,
                self._opset,
                tuple(t._uid if t is not None else None for t in layer._inputs),
                tuple(_signature(i) for i in infos.values()),
            )
            if self._signatures.get(layer._uid) != signature:
                self._signatures[layer._uid] = signature
                self._work_out(layer, {k: v for k, v in infos.items() if v is not None})

    def _work_out(self, layer: ILayer, infos: dict[str, TensorType]) -> None:
        """Make the nodes of a layer and infer the types of its outputs."""
        fragment = Fragment(
            layer._uid,
            self._opset,
            infos,
            implicit=self._implicit,
            strong=self._strong,
            domains=self._domains,
        )
        layer._error = None
        for tensor in layer._outputs:
            tensor._info = None
        try:
            if layer._node is not None:
                _keep_node(fragment, layer, self._initializers)
            else:
                names = [t._uid if t is not None else None for t in layer._inputs]
                while names and names[-1] is None:
                    names.pop()
                _bind_outputs(fragment, layer, layer._made_as._lower(layer, fragment, names))
        except (LoweringError, InferenceError, HeadraceError) as error:  # the last: of a plugin
            layer._error = str(error)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            # numbers of a user that fit nowhere; the layer is named, the build refuses it
            layer._error = error_text(error)
        self._fragments[layer._uid] = fragment
        for tensor in layer._outputs:
            tensor._info = fragment.infos.get(tensor._uid)

    def _tell(self, layer: ILayer) -> None:
        """Report, once, why the layer of a plugin has no shapes.

        It is asked for them as soon as it is there; faults of other layers are reported when the
        engine is built.
        """
        error = layer._error
        if error and layer._kind.startswith("PLUGIN") and error != layer._params.get("_reported"):
            self._report(_fault(layer))

    def _constant_tensor(self, name: str) -> ITensor:
        """An initialiser of a parsed model as the output of a constant layer."""
        array = self._initializers[name]
        layer = IConstantLayer(
            self,
            [],
            params={"shape": array.shape},
            weights={"CONSTANT": array},
            name=name,
        )
        layer._outputs[0]._name = name
        self._append(layer)
        return layer._outputs[0]

    def _errors(self) -> list[str]:
        """Faults of layers that outputs need, without those that only follow from them."""
        self._refresh()
        needed = {layer._uid for layer in self._needed()}
        behind: set[str] = set()
        faults = []
        for layer in self._ordered():
            follows = any(p._uid in behind for p in _producers(layer))
            if layer._error is not None or follows:
                behind.add(layer._uid)
            if layer._error is None or follows:
                continue
            if layer._uid in needed or layer._kind == "ASSERTION":
                faults.append(_fault(layer))
        return faults

    def _needed(self) -> list[ILayer]:
        """Layers that outputs depend on, in order."""
        needed: set[str] = set()
        stack = [t._producer for t in self._outputs if t._producer is not None]
        while stack:
            layer = stack.pop()
            if layer._uid in needed:
                continue
            needed.add(layer._uid)
            stack.extend(_producers(layer, around=True))
        return [layer for layer in self._ordered() if layer._uid in needed]


def _fault(layer: ILayer) -> str:
    """The fault of a layer: in full the first time, then its first line."""
    error = str(layer._error)
    reported = layer._params.get("_reported") == error
    layer._params["_reported"] = error
    text = error.partition("\n")[0] if reported else error
    return text if f"layer {layer._name!r}: " in text else f"{layer._name}: {text}"


def _producers(layer: ILayer, *, around: bool = False) -> list[ILayer]:
    """Layers that make the inputs of a layer; the next value of a recurrence is made after it.

    Args:
        layer: the one that takes them.
        around: True adds the inputs of the loop's other borders to those of its output.
    """
    inputs = layer._inputs[:1] if layer._kind == "RECURRENCE" else layer._inputs
    producers = [t._producer for t in inputs if t is not None and t._producer is not None]
    if around and layer._kind == "LOOP_OUTPUT":
        loop = layer._params["_loop"]
        borders = [*loop._recurrences, *loop._iterators, *loop._limits]
        producers += borders
        for border in borders:
            producers += [t._producer for t in border._inputs if t is not None and t._producer]
    return producers


def _signature(
    info: TensorType | None,
) -> tuple[int, Shape | None, tuple[str, bytes] | None] | None:
    if info is None:
        return None
    value = None if info.value is None else (info.value.dtype.str, info.value.tobytes())
    return info.elem, info.shape, value


def _keep_node(fragment: Fragment, layer: ILayer, initializers: Mapping[str, Array]) -> None:
    """A node of a parsed model, as it is, under the names of this network."""
    import onnx

    assert layer._node is not None
    node = onnx.NodeProto()
    node.CopyFrom(layer._node)
    names = []
    for kind, what in layer._slots:
        if kind == "weights":
            names.append(fragment.initializer(what, initializers[what]))
        elif kind == "captured":
            tensor = layer._inputs[what[1]]
            if tensor is not None:
                _rename_inside(node, what[0], tensor._uid)
        else:
            tensor = layer._inputs[what] if kind == "tensor" else None
            names.append(tensor._uid if tensor is not None else "")
    node.input[:] = names
    for name in captured_weights(node, initializers):
        _rename_inside(node, name, fragment.initializer(name, initializers[name]))
    outputs = iter(layer._outputs)
    node.output[:] = [next(outputs)._uid if name else "" for name in layer._node.output]
    if layer._kind == "CONVOLUTION" or layer._kind == "DECONVOLUTION":
        roles = zip(("KERNEL", "BIAS"), node.input[1:], strict=False)
        fragment.roles = {role: name for role, name in roles if name in fragment.constants}
    try:
        types = infer_node(node, fragment.infos, fragment.opset, fragment.domains)
    finally:
        fragment.nodes.append(node)
    for name, info in zip(node.output, types, strict=True):
        if name and info is not None:
            fragment.infos[name] = info


def captured_weights(node: NodeProto, initializers: Collection[str]) -> list[str]:
    """Initialisers that graphs inside a node use."""
    names = []
    for graph in bodies(node):
        for inner in graph.node:
            names += [n for n in inner.input if n in initializers]
            names += captured_weights(inner, initializers)
    return list(dict.fromkeys(names))


def _rename_inside(node: NodeProto, old: str, new: str) -> None:
    """A tensor that graphs inside a node take from around them, under another name."""
    for graph in bodies(node):
        for inner in graph.node:
            inner.input[:] = [new if name == old else name for name in inner.input]
            _rename_inside(inner, old, new)


def _bind_outputs(fragment: Fragment, layer: ILayer, outputs: list[str]) -> None:
    """Rename the outputs of a lowering to those of the layer."""
    if len(outputs) != len(layer._outputs):
        raise LoweringError(f"{len(outputs)} outputs instead of {len(layer._outputs)}")
    own = {name for node in fragment.nodes for name in node.output}
    own |= {*fragment.constants, *fragment.placeholders}
    renamed: dict[str, str] = {}
    for name, tensor in zip(outputs, layer._outputs, strict=True):
        dtype = layer._output_types.get(tensor._index)
        asked = None if dtype is None else _converting(fragment, name, dtype)
        if asked is not None:
            name = fragment.cast_to_elem(name, asked)
            own.add(name)
        if name not in own or name in renamed:
            name = fragment.op("Identity", name)
            own.add(name)
        renamed[name] = tensor._uid
    for node in fragment.nodes:
        node.input[:] = [renamed.get(n, n) for n in node.input]
        node.output[:] = [renamed.get(n, n) for n in node.output]
    for old, new in renamed.items():
        if old in fragment.constants:
            fragment.constants[new] = fragment.constants.pop(old)
        if old in fragment.infos:
            fragment.infos[new] = fragment.infos[old]
    fragment.roles = {r: renamed.get(n, n) for r, n in fragment.roles.items()}
    fragment.placeholders = [renamed.get(n, n) for n in fragment.placeholders]


def _converting(fragment: Fragment, name: str, dtype: DataType) -> int | None:
    """The ONNX type to convert to: float kinds are hints, other kinds change values."""
    info = fragment.infos.get(name)
    elem = elem_of(dtype)
    floats = (1, 10, 16)
    if info is None or elem == info.elem or (elem in floats and info.elem in floats):
        return None
    return elem
