"""The base classes of the drivers: a plugin in a network, in an engine, in a context.

    LayerPlugin --build--> EnginePlugin --save--> SavedPlugin --load--> EnginePlugin
                                        --context--> ContextPlugin --run--> arrays

Source: tensorrt-plugins spec 3 to 5, 14.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from headrace._core.errors import PluginError
from headrace._core.text import quoted
from headrace._core.types import DType
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.calls import Instance, Rollback
from headrace.plugins.checks import as_text, status_of
from headrace.plugins.expressions import DimsExprs, SizeTensor
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.forms import TensorForm
from headrace.plugins.trace import Phase
from headrace.plugins.types import DataType

if TYPE_CHECKING:
    from headrace.plugins.context import ContextPlugin

Shape = tuple[int, ...]
Generation = Literal["V2", "V2Ext", "V2IOExt", "V2DynamicExt", "V3"]


@dataclass(frozen=True, slots=True)
class ShapeInput:
    """An integer tensor with values that decide shapes (version 3 only).

    Attributes:
        values: those that are known while building; None for the others.
    """

    values: tuple[int | None, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Ranges:
    """One optimisation profile: shapes of all inputs, and values of all shape inputs.

    Attributes:
        min, opt, max: a shape per input.
        values: a tuple of numbers per shape input.
    """

    min: tuple[Shape, ...]
    opt: tuple[Shape, ...]
    max: tuple[Shape, ...]
    values: tuple[Shape, ...] = ()

    def hold(self, shapes: Sequence[Shape]) -> bool:
        """Whether `shapes` lie within."""
        return all(
            len(s) == len(low) and all(a <= d <= b for a, d, b in zip(low, s, high, strict=True))
            for low, s, high in zip(self.min, shapes, self.max, strict=True)
        )


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """The facts that an engine keeps of a plugin layer beside the plugin's own data.

    Attributes:
        layer: name of the node.
        generation: class of the plugin.
        type, version, namespace: what its creator is found by.
        input_forms, output_forms: what the plugin has its tensors in, as negotiated.
        dtypes: of the outputs in the network; values are cast where they differ.
        shapes: of the outputs, in terms of the inputs.
        profiles: shapes it was built for.
        workspaces: bytes of scratch memory, per profile.
        tactics: the way to compute, per profile; 0 is the only one.
        aliases: per output, the input whose memory it shares, -1 for none.
        metadata: what the plugin says about itself.
        code: hash of the file that its creator is written in, once a plan has it.
    """

    layer: str
    generation: Generation
    type: str
    version: str
    namespace: str
    input_forms: tuple[TensorForm, ...]
    output_forms: tuple[TensorForm, ...]
    dtypes: tuple[DType, ...]
    shapes: tuple[DimsExprs, ...]
    profiles: tuple[Ranges, ...]
    workspaces: tuple[int, ...]
    tactics: tuple[int, ...]
    aliases: tuple[int, ...]
    metadata: str = ""
    code: str = ""

    @property
    def name(self) -> str:
        """For messages."""
        return quoted(f"{self.type} version {self.version}", limit=None)

    @property
    def where(self) -> str:
        """For errors: plugin and layer."""
        return f"plugin {self.name}, layer {self.layer!r}"

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """Element types of the inputs, as the plugin reads them."""
        return tuple(form.type for form in self.input_forms)

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """Element types of the outputs, as the plugin writes them."""
        return tuple(form.type for form in self.output_forms)

    @property
    def converted(self) -> str:
        """The tensors that are converted around the plugin, with their forms; empty without."""
        named = [
            f"{what} {number} {form}"
            for what, forms in (("input", self.input_forms), ("output", self.output_forms))
            for number, form in enumerate(forms)
            if not form.is_linear or form.type in (DataType.INT8, DataType.BF16)
        ]
        return ", ".join(named)

    @property
    def decides_shapes(self) -> bool:
        """True if the plugin decides the length of an output while it runs."""
        return any(isinstance(axis, SizeTensor) for shape in self.shapes for axis in shape)

    @property
    def is_plain(self) -> bool:
        """True if no input or output needs to be converted, cut or aliased.

        Outputs have memory of their own, shapes known before a run, and the network's types; inputs
        come as they are.
        """
        alike = self.generation in ("V2DynamicExt", "V3") or len(self.input_types) == 1
        same = all(
            form.is_linear and form.storage == dtype
            for form, dtype in zip(self.output_forms, self.dtypes, strict=True)
        ) and all(form.is_linear for form in self.input_forms)
        return alike and same and not self.decides_shapes and all(a < 0 for a in self.aliases)


@dataclass(frozen=True, slots=True)
class SavedPlugin:
    """Facts and data of a plugin layer: per profile a blob (version 2) or fields (version 3)."""

    spec: EngineSpec
    data: tuple[bytes | PluginFieldCollection, ...]


class LayerPlugin(ABC):
    """A plugin in a network: the network's own copy of the user's object."""

    generation: Generation

    def __init__(self, instance: Instance, num_outputs: int, num_inputs: int) -> None:
        self.instance = instance
        self.num_outputs = num_outputs
        self.num_inputs = num_inputs
        self.num_shape_inputs = 0
        self.type = ""
        self.version = ""
        self.namespace = ""

    def take_names(self, user: Instance, attribute: str, name: object, rest: object) -> None:
        """Keep type, version and namespace, checked.

        Args:
            user: the plugin that was handed in.
            attribute: of the plugin, with its type.
            name: the value of that attribute.
            rest: the part of the copy that has the version and the namespace.
        """
        copy = self.instance
        version, namespace = (copy.peek(f"plugin_{n}", rest) for n in ("version", "namespace"))
        self.type = as_text(user, attribute, name)
        self.version = as_text(copy, "plugin_version", version)
        self.namespace = as_text(copy, "plugin_namespace", namespace, empty=True)
        copy.name = quoted(f"{self.type} version {self.version}", limit=None)

    @property
    def layer(self) -> str:
        """Name of its node."""
        return self.instance.layer

    @layer.setter
    def layer(self, name: str) -> None:
        self.instance.layer = name

    @abstractmethod
    def output_types(self, input_types: Sequence[DataType]) -> tuple[DataType, ...]:
        """Types of the outputs as the plugin declares them.

        Raises:
            PluginError: the plugin failed.
        """

    @abstractmethod
    def output_shapes(
        self, inputs: Sequence[Shape], shape_inputs: Sequence[ShapeInput] = ()
    ) -> list[DimsExprs]:
        """Shapes of the outputs in terms of the inputs' axes; -1 in `inputs` is an unknown one.

        Raises:
            PluginError: the plugin failed, or cannot take unknown axes.
        """

    @abstractmethod
    def build(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[DType],
        profiles: Sequence[Ranges],
        shape_inputs: Sequence[ShapeInput] = (),
        scales: Sequence[float] = (),
    ) -> EnginePlugin:
        """Negotiate forms, configure, size the workspace: the layer in an engine to be.

        `inputs` and the element types of `outputs` are as the network has them. `scales` are those
        of INT8 of inputs, then outputs, 0 for those without one; none at all where the network is
        not built in INT8.

        Raises:
            PluginError: the plugin failed or accepts no types; nothing it made is left.
        """

    def spec(
        self,
        forms: Sequence[TensorForm],
        outputs: Sequence[DType],
        shapes: Sequence[DimsExprs],
        profiles: Sequence[Ranges],
        workspaces: Sequence[int],
        *,
        tactics: Sequence[int] = (),
        aliases: tuple[int, ...] = (),
        metadata: str = "",
    ) -> EngineSpec:
        """Collect the facts for an engine; `forms` are of inputs, then outputs, as negotiated."""
        count = len(forms) - len(outputs)
        return EngineSpec(
            layer=self.layer,
            generation=self.generation,
            type=self.type,
            version=self.version,
            namespace=self.namespace,
            input_forms=tuple(forms[:count]),
            output_forms=tuple(forms[count:]),
            dtypes=tuple(outputs),
            shapes=tuple(shapes),
            profiles=tuple(profiles),
            workspaces=tuple(workspaces),
            tactics=tuple(tactics) or (0,) * len(profiles),
            aliases=aliases,
            metadata=metadata,
        )

    def close(self) -> None:
        """End the plugin with its network."""
        self.instance.destroy()

    def __repr__(self) -> str:
        return f"LayerPlugin({self.instance.where})"


@dataclass(frozen=True, slots=True)
class Life:
    """Life cycle of a generation's objects in an engine: a row of `headrace.plugins.drivers.LIVES`.

    Attributes:
        plugin: their class.
        context: class of the layers in execution contexts.
        attach: makes the objects of a context from the engine's.
        pack: what a plan keeps of an object.
        restore: the creator's method that takes that.
        initialises: True if `initialize` and `terminate` frame the object's life.
    """

    plugin: type
    context: type[ContextPlugin]
    attach: Callable[[Sequence[Instance], Rollback], list[Instance]]
    pack: Callable[[Instance], bytes | PluginFieldCollection]
    restore: str = "deserialize_plugin"
    initialises: bool = True


class EnginePlugin:
    """A plugin layer in an engine: one object per profile.

    Args:
        spec: its facts.
        instances: the objects.
        life: the row of their generation; None for a layer of another process.
        base: what the objects were cloned from; it ends when they are ready.
        phase: "load" if the objects come out of a plan.

    Attributes:
        remote: it is computed in another process, which takes arrays of the host only.
    """

    remote = False

    def __init__(
        self,
        spec: EngineSpec,
        instances: Sequence[Instance],
        life: Life | None = None,
        *,
        base: Instance | None = None,
        phase: Phase = "build",
    ) -> None:
        self.spec = spec
        self.instances = list(instances)
        self._life = life
        self._base = base
        self._phase: Phase = phase
        self._ready: list[Instance] = []
        self._closed = False

    @property
    def life(self) -> Life:
        """The row of its generation."""
        assert self._life is not None, "a layer of another process has a class of its own"
        return self._life

    def finish(self) -> None:
        """All layers are configured: get ready to run.

        Raises:
            PluginError: the plugin failed; close it then.
        """
        for instance in self.instances if self.life.initialises else ():
            status_of(instance, self._phase, "initialize")
            self._ready.append(instance)
        if self._base is not None:
            self._base.destroy("build")

    def save(self) -> SavedPlugin:
        """Save the layer for a plan.

        Raises:
            PluginError: the plugin failed.
        """
        return SavedPlugin(self.spec, tuple(self.life.pack(one) for one in self.instances))

    def context(self) -> ContextPlugin:
        """The layer in a new execution context.

        Raises:
            PluginError: the plugin failed; nothing it made is left.
        """
        with Rollback() as rollback:
            context = self.life.context(self.spec, self.life.attach(self.instances, rollback))
            rollback.keep()
        return context

    def close(self) -> None:
        """End the plugins with their engine. Contexts must be closed before."""
        if not self._closed:
            self._closed = True
            self._free()

    def _free(self) -> None:
        for instance in self.instances:
            if instance in self._ready:
                instance.quietly("destroy", "terminate")
            instance.destroy()
        if self._base is not None:
            self._base.destroy()

    def __repr__(self) -> str:
        return f"EnginePlugin({self.spec.name}, layer {self.spec.layer!r})"


def refuse(
    about: EngineSpec | Instance,
    problem: str,
    *,
    expected: str | None = None,
    fix: str | None = None,
    method: str | None = None,
    clause: str | None = None,
) -> PluginError:
    """An error about a layer; `clause` names the part of the contract that `method` breaks."""
    data = {k: v for k, v in (("method", method), ("clause", clause)) if v is not None}
    return PluginError(problem, where=about.where, expected=expected, fix=fix, data=data)
