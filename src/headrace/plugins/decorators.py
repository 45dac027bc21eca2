"""Plugins by decorators: a function that describes the outputs, and one that computes.

    @register("mine::scale")
    def scale_desc(x: TensorDesc, factor: float) -> TensorDesc:
        return x.like()

    @impl("mine::scale")
    def scale(x: Tensor, factor: float, outputs: tuple[Tensor], stream: int):
        outputs[0].numpy()[...] = x.numpy() * np.float32(factor)

ONNX nodes of type `scale` with `plugin_namespace="mine"` are computed by it, as version "1".
Bodies run on the host: `aot_impl`, which holds code for a GPU, is refused when it is all there is.
Source: tensorrt-plugins spec 13.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace._core.errors import PluginError
from headrace.plugins.decorator_tensors import (
    ShapeExpr,
    ShapeExprs,
    SizeTensorDesc,
    Tensor,
    TensorDesc,
    cdiv,
    from_shape_expr,
    max,
    min,
    size_tensor,
)
from headrace.plugins.registry import get_plugin_registry

__all__ = [
    "AppliedPlugin",
    "AutoTuneCombination",
    "PluginDefinition",
    "ShapeExpr",
    "ShapeExprs",
    "SizeTensorDesc",
    "Tensor",
    "TensorDesc",
    "aot_impl",
    "autotune",
    "cdiv",
    "from_shape_expr",
    "impl",
    "max",
    "min",
    "op",
    "register",
    "size_tensor",
]

FORBIDDEN = ("outputs", "stream", "tactic")
_PLAIN = (int, float, str, bool, bytes)


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs, outputs and attributes of a plugin, from its annotations.

    Attributes:
        inputs: names of its tensors.
        attributes: name -> type (int, float, str, bool, bytes), or a NumPy type for arrays.
        outputs: how many tensors it gives.
    """

    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    outputs: int

    def bind(self, inputs: Sequence[Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes, all there and of their types.

        Raises:
            TypeError: too many or too few.
        """
        if len(inputs) != len(self.inputs):
            raise TypeError(f"{len(inputs)} tensors; {len(self.inputs)} are needed: {self.inputs}")
        if values.keys() != self.attributes.keys():
            raise TypeError(f"attributes {list(values)}; needed are {list(self.attributes)}")
        return {
            name: values[name] if kind in _PLAIN else np.ascontiguousarray(values[name], kind)
            for name, kind in self.attributes.items()
        }


def signature_of(function: Callable[..., Any], plugin_id: str) -> Signature:
    """Read the annotations of a function for `register`.

    Raises:
        ValueError: what is missing or cannot be.
    """
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(f"{plugin_id}: an annotation cannot be read: {error}") from error
    inputs: list[str] = []
    attributes: dict[str, object] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:
            raise ValueError(f"{plugin_id}: argument {name} has no annotation")
        if parameter.default is not inspect.Parameter.empty:
            raise ValueError(f"{plugin_id}: argument {name} has a default value")
        if name in FORBIDDEN:
            raise ValueError(f"{plugin_id}: no argument may be called {name}")
        if hints[name] is TensorDesc:
            if attributes:
                raise ValueError(f"{plugin_id}: tensor {name} comes after attributes")
            inputs.append(name)
        else:
            attributes[name] = _attribute(hints[name], name, plugin_id)
    if not inputs:
        raise ValueError(f"{plugin_id}: there is no TensorDesc among the arguments")
    return Signature(tuple(inputs), attributes, _outputs(hints.get("return"), plugin_id))


def _attribute(hint: Any, name: str, plugin_id: str) -> Any:
    if hint in _PLAIN:
        return hint
    if (alias := getattr(typing.get_origin(hint), "__value__", None)) is not None:
        hint = alias[typing.get_args(hint)]  # NDArray, since NumPy says `type NDArray[…] = …`
    if typing.get_origin(hint) is np.ndarray:
        for part in typing.get_args(hint):
            for inner in typing.get_args(part):
                if isinstance(inner, type) and issubclass(inner, np.generic):
                    return np.dtype(inner)
    raise ValueError(
        f"{plugin_id}: attribute {name} is a {hint}; it may be int, float, str, bool, bytes or "
        "numpy.typing.NDArray[type]"
    )


def _outputs(hint: object, plugin_id: str) -> int:
    if isinstance(hint, type) and issubclass(hint, TensorDesc):
        return 1
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and parts and Ellipsis not in parts:
        return len(parts)
    raise ValueError(
        f"{plugin_id}: the result must be annotated TensorDesc or Tuple[TensorDesc, …]"
    )


RESERVED = ("", "trt", "tensorrt", "std")


@dataclass(slots=True)
class PluginDefinition:
    """A plugin by decorators.

    Attributes:
        describe, compute, tune: the functions of `register`, `impl`, `autotune`.
        ahead: that of `aot_impl`, which is not run.
        signature: inputs, attributes and number of outputs.
        compute_arguments: names of the attributes that `compute` takes; only they are saved.
    """

    namespace: str
    name: str
    describe: Callable[..., Any]
    signature: Signature
    compute: Callable[..., Any] | None = None
    tune: Callable[..., Any] | None = None
    ahead: Callable[..., Any] | None = None
    compute_arguments: tuple[str, ...] = ()
    takes_tactic: bool = False

    @property
    def where(self) -> str:
        """For messages."""
        return f"plugin {self.namespace}::{self.name}"

    def ready(self) -> Callable[..., Any]:
        """The function that computes.

        Raises:
            PluginError: there is none for the host.
        """
        if self.compute is not None:
            return self.compute
        if self.ahead is not None:
            raise PluginError(
                "it has only an aot_impl, which is code for a GPU",
                where=self.where,
                expected="a function decorated with impl",
                fix=f'add @impl("{self.namespace}::{self.name}") with NumPy',
            )
        raise PluginError("nothing computes it", where=self.where, expected="an impl")


@dataclass(slots=True)
class AutoTuneCombination:
    """Types and formats that go together, and tactics for them.

    Args:
        io_types: per tensor, inputs first, separated by commas: `"FP32|FP16, FP32|FP16"`; choices
            with `|` are tied by their place, those with `*` are independent.
        layouts: LINEAR; others are not offered here.
        tactics: ways to compute; positive numbers.
    """

    io_types: str | None = None
    layouts: str | None = "LINEAR"
    tactics: Sequence[int] = field(default_factory=list)


_definitions: dict[tuple[str, str], PluginDefinition] = {}


def register(plugin_id: str, *, lazy_register: bool = False) -> Callable[[Any], Any]:
    """Declare a plugin: `function(t0: TensorDesc, …, attribute: type, …) -> TensorDesc | tuple`.

    Args:
        plugin_id: `namespace::name`.
        lazy_register: register the creator when the plugin is first used, not now.

    Raises:
        ValueError: a name that is reserved or none; a signature without annotations, with defaults
            or with types that attributes cannot have.
    """
    namespace, name = _split(plugin_id)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        definition = PluginDefinition(namespace, name, function, signature_of(function, plugin_id))
        before = _definitions.get((namespace, name))
        if before is not None and not lazy_register and _same_file(before.describe, function):
            get_plugin_registry().deregister_creator(
                get_plugin_registry().find(name, "1", namespace)
            )
        _definitions[namespace, name] = definition
        if not lazy_register:
            _register(definition)
        return function

    return decorate


def impl(plugin_id: str) -> Callable[[Any], object]:
    """Register the function that computes a plugin.

    It is called as `function(t0: Tensor, …, attributes…, outputs, stream)`, with `tactic` last if
    it has that argument. It may leave out attributes that it does not need.

    Raises:
        ValueError: no plugin of that name was declared; arguments that it does not have.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        definition = _known(plugin_id)
        names = list(inspect.signature(function).parameters)
        attributes = definition.signature.attributes
        inputs = names[: len(definition.signature.inputs)]
        if inputs != list(definition.signature.inputs):
            raise ValueError(f"{plugin_id}: impl takes {inputs}, not {definition.signature.inputs}")
        rest = names[len(inputs) :]
        extra = [n for n in rest if n not in (*attributes, "outputs", "stream", "tactic")]
        if extra or "outputs" not in rest or "stream" not in rest:
            what = f"unknown arguments {extra}" if extra else "no argument outputs or stream"
            raise ValueError(f"{plugin_id}: impl has {what}")
        definition.compute = function
        definition.compute_arguments = tuple(n for n in rest if n in attributes)
        definition.takes_tactic = "tactic" in rest
        return function

    return decorate


def autotune(plugin_id: str) -> Callable[[Any], object]:
    """Register the function that lists the types to choose from.

    It takes the inputs, attributes and `outputs` as `TensorDesc`, and returns a list of
    `AutoTuneCombination`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _known(plugin_id).tune = function
        return function

    return decorate


def aot_impl(plugin_id: str) -> Callable[[Any], object]:
    """Kept, but not run: its result is code for a GPU. A plugin needs an `impl` here."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _known(plugin_id).ahead = function
        return function

    return decorate


@dataclass(frozen=True, slots=True)
class AppliedPlugin:
    """`op.namespace.name(…)`: a plugin applied to tensors, for `network.add_plugin`."""

    definition: PluginDefinition
    inputs: tuple[object, ...]
    attributes: dict[str, object]

    def plugin(self, aot: bool | None = None) -> object:
        """The plugin object, of version 3.

        Raises:
            PluginError: `aot` is asked for, or nothing computes it here.
        """
        from headrace.plugins.decorated_plugin import DecoratedPlugin

        if aot:
            raise PluginError(
                "ahead-of-time plugins are code for a GPU",
                where=self.definition.where,
                expected="aot=False, and an impl",
            )
        self.definition.ready()
        return DecoratedPlugin(self.definition, self.attributes)


class _Namespace:
    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def __getattr__(self, name: str) -> Callable[..., AppliedPlugin]:
        definition = _definitions.get((self._namespace, name))
        if definition is None:
            raise AttributeError(f"no plugin {self._namespace}::{name} was registered")
        if get_plugin_registry().find(name, "1", self._namespace) is None:
            _register(definition)

        def call(*inputs: object, **attributes: object) -> AppliedPlugin:
            values = definition.signature.bind(inputs, attributes)
            return AppliedPlugin(definition, inputs, values)

        return call


class _Op:
    def __getattr__(self, namespace: str) -> _Namespace:
        if namespace.startswith("__") or not any(n == namespace for n, _ in _definitions):
            raise AttributeError(f"no plugin of namespace {namespace} was registered")
        return _Namespace(namespace)


op = _Op()
"""The registered plugins: `op.namespace.name(tensor, …, attribute=value)`."""


def _split(plugin_id: str) -> tuple[str, str]:
    namespace, sep, name = plugin_id.partition("::")
    if not sep or not name or "." in plugin_id or not namespace.isidentifier():
        raise ValueError(f"{plugin_id!r} is not namespace::name, without dots")
    if namespace in RESERVED:
        raise ValueError(f"namespace {namespace!r} is reserved")
    return namespace, name


def _known(plugin_id: str) -> PluginDefinition:
    definition = _definitions.get(_split(plugin_id))
    if definition is None:
        raise ValueError(f"{plugin_id} was not declared with register")
    return definition


def _register(definition: PluginDefinition) -> None:
    from headrace.plugins.decorated_plugin import DecoratedCreator

    get_plugin_registry().register_creator(DecoratedCreator(definition), definition.namespace)


def _same_file(one: Callable[..., Any], other: Callable[..., object]) -> bool:
    return one.__code__.co_filename == other.__code__.co_filename
