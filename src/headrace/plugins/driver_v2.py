"""The lives of the version-2 line that sees no batch: calls, order, clones and counts.

One engine-level object per profile, each serialised apart; `initialize` and `terminate` once for
each of them, never for clones of networks and contexts. `IPluginV2`, `IPluginV2Ext` and
`IPluginV2IOExt` see shapes without the batch, which is the leading axis of every tensor here.
Source: tensorrt-plugins spec 1 (explicit batch), 2.1 to 2.4, 3, 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headrace._core.errors import PluginError
from headrace._core.types import Array, DType
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins import checks
from headrace.plugins.base import (
    IPluginV2,
    IPluginV2DynamicExt,
    IPluginV2Ext,
    IPluginV2IOExt,
)
from headrace.plugins.calls import Instance, Rollback, wrong
from headrace.plugins.context import ContextPlugin
from headrace.plugins.expressions import (
    Axis,
    DimsExprs,
    IExprBuilder,
)
from headrace.plugins.forms import TensorForm
from headrace.plugins.layer import (
    EnginePlugin,
    Generation,
    LayerPlugin,
    Life,
    Ranges,
    Shape,
    ShapeInput,
    refuse,
)
from headrace.plugins.negotiate import all_offers, canonical, closest, form_desc, negotiate
from headrace.plugins.prepared import Prepared
from headrace.plugins.spoken import spoken
from headrace.plugins.trace import Phase
from headrace.plugins.types import (
    DataType,
    Dims,
    DynamicPluginTensorDesc,
    PluginTensorDesc,
    TensorFormat,
)


def told_types(
    instance: Instance, phase: Phase, method: str, count: int, input_types: Sequence[DataType]
) -> tuple[DataType, ...]:
    """Types of the outputs, asked one by one."""
    asked = [canonical(t) for t in input_types]
    return tuple(
        checks.as_type(instance, method, instance.call(phase, method, i, asked))
        for i in range(count)
    )


def attached_clones(instances: Sequence[Instance], rollback: Rollback) -> list[Instance]:
    """Clone the objects of an engine for an execution context, and attach the clones to it."""
    clones = [rollback.add(one.clone("run")) for one in instances]
    for clone in clones:
        if isinstance(clone.plugin, IPluginV2Ext | IPluginV2DynamicExt):
            clone.call("run", "attach_to_context", None, None, None)
            rollback.detach(clone)
    return clones


def serialized(instance: Instance) -> bytes:
    """The blob of a plugin."""
    for attribute in ("plugin_type", "plugin_version", "plugin_namespace"):
        instance.get("save", attribute)
    if hasattr(instance.plugin, "get_serialization_size"):
        size = instance.call("save", "get_serialization_size")
    else:
        size = instance.get("save", "serialization_size")
    size = checks.as_size(instance, "get_serialization_size", size)
    return checks.as_blob(instance, "serialize", instance.call("save", "serialize"), size)


class BatchedLayer(LayerPlugin):
    """See `LayerPlugin`. Made by `add`."""

    def __init__(self, instance: Instance, num_outputs: int, num_inputs: int) -> None:
        super().__init__(instance, num_outputs, num_inputs)
        self.generation = _generation(instance.plugin)
        self._implicit = False

    @classmethod
    def add(
        cls,
        user: Instance,
        num_inputs: int,
        input_types: Sequence[DataType],
        *,
        implicit_batch: bool,
    ) -> BatchedLayer:
        """Copy the user's plugin into a network.

        Raises:
            PluginError: also for an `IPluginV2` in a network with an explicit batch.
        """
        if not implicit_batch and not isinstance(user.plugin, IPluginV2Ext):
            raise PluginError(
                "an IPluginV2 in a network whose shapes include the batch",
                where=user.where,
                expected="an IPluginV2Ext, IPluginV2IOExt, IPluginV2DynamicExt or IPluginV3",
            )
        count = checks.as_count(user, "num_outputs", user.get("parse", "num_outputs"))
        layer = cls(user.clone("parse"), count, num_inputs)
        layer._implicit = implicit_batch
        with Rollback() as rollback:
            rollback.add(layer.instance)
            kind = user.get("parse", "plugin_type")
            layer.take_names(user, "plugin_type", kind, layer.instance.plugin)
            layer.output_types(input_types)
            rollback.keep()
        return layer

    def output_types(self, input_types: Sequence[DataType]) -> tuple[DataType, ...]:
        if self.generation == "V2":
            return (DataType.FLOAT,) * self.num_outputs
        return told_types(
            self.instance, "parse", "get_output_data_type", self.num_outputs, input_types
        )

    def output_shapes(
        self, inputs: Sequence[Shape], shape_inputs: Sequence[ShapeInput] = ()
    ) -> list[DimsExprs]:
        return self._shapes(self.instance, inputs, "parse")

    def _shapes(self, instance: Instance, inputs: Sequence[Shape], phase: Phase) -> list[DimsExprs]:
        items = [self._item(instance, i, dims) for i, dims in enumerate(inputs)]
        make = IExprBuilder()
        batch = 1  # what depends on nothing is the same for every image
        if inputs:
            batch = inputs[0][0] if inputs[0] else -1
        leading = make.constant(batch) if batch >= 0 else Axis(0, 0)
        shapes = []
        for index in range(self.num_outputs):
            method = "get_output_shape"
            answer = instance.call(phase, method, index, [Dims(i) for i in items])
            dims = checks.as_dims(instance, method, answer)
            shapes.append(DimsExprs([leading, *(make.constant(d) for d in dims)]))
        return shapes

    def _item(self, instance: Instance, index: int, dims: Shape) -> Shape:
        if not dims:
            raise refuse(instance, f"input {index} is a scalar", expected="a leading batch axis")
        if any(d < 0 for d in dims[1:]):
            raise refuse(
                instance,
                f"input {index} is {dims}: a {self.generation} plugin needs every axis but the "
                "batch while building",
                expected="fixed axes",
                fix="export the model with fixed axes, or write the plugin as "
                "IPluginV2DynamicExt or IPluginV3",
            )
        return dims[1:]

    def build(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[DType],
        profiles: Sequence[Ranges],
        shape_inputs: Sequence[ShapeInput] = (),
        scales: Sequence[float] = (),
    ) -> EnginePlugin:
        with Rollback() as rollback:
            engines, sizes = [], []
            forms: list[TensorForm] = []
            shapes: list[DimsExprs] = []
            for ranges in profiles:
                engine = rollback.add(self.instance.clone("build"))
                shapes = self._shapes(engine, [t.dims for t in inputs], "build")
                items = [Dims(t.dims[1:]) for t in inputs]
                results = [Dims(e.get_constant_value() for e in s[1:]) for s in shapes]
                most = max((s[0] for s in ranges.max), default=1)
                forms = self._configure(engine, inputs, outputs, items, results, most, scales)
                size = engine.call("build", "get_workspace_size", most)
                sizes.append(checks.as_size(engine, "get_workspace_size", size))
                engines.append(engine)
            spec = self.spec(forms, outputs, shapes, profiles, sizes)
            plugin = EnginePlugin(spec, engines, BATCHED)
            rollback.keep()
        return plugin

    def _configure(
        self,
        engine: Instance,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[DType],
        items: Sequence[Dims],
        results: Sequence[Dims],
        most: int,
        scales: Sequence[float],
    ) -> list[TensorForm]:
        """Negotiate forms and configure the plugin; forms of inputs, then outputs."""
        if isinstance(engine.plugin, IPluginV2IOExt):
            return _configure_general(engine, inputs, outputs, items, results, scales)
        common = _common_form(engine, inputs, items, scales)
        if self.generation == "V2":
            engine.call(
                "build", "configure_with_format", items, results, common.type, common.format, most
            )
            return [
                replace(common, scale=scale) for scale in _scales(common, inputs, outputs, scales)
            ]
        count = self.num_outputs
        kinds = [closest(t.dtype) for t in inputs]
        declared = told_types(engine, "build", "get_output_data_type", count, kinds)
        shared = [False] * count
        if self._implicit:
            broadcast = [False] * len(inputs)
            method = "is_output_broadcast_across_batch"
            shared = [
                checks.as_bool(engine, method, engine.call("build", method, i, broadcast))
                for i in range(count)
            ]
            if any(shared):
                raise wrong(engine, method, "True", "False: every input has a batch of its own")
        ins = [common if kind.is_float else TensorForm(kind) for kind in kinds]
        ins = [TensorForm(DataType.INT32) if f.type == DataType.INT64 else f for f in ins]
        outs = [common if t.is_float else TensorForm(t) for t in declared]
        engine.call(
            "build", "configure_plugin", items, results, [f.type for f in ins],
            [f.type for f in outs], [False] * len(inputs), shared, common.format, most,
        )  # fmt: skip
        own = _scales(common, inputs, outputs, scales)
        return [
            replace(form, scale=scale if form is common else 0.0)
            for form, scale in zip([*ins, *outs], own, strict=True)
        ]


class BatchedContext(ContextPlugin):
    """See `ContextPlugin`."""

    def _change(self, now: Prepared, *, within: bool) -> None:
        shapes, profile = now.key[0], self.spec.profiles[now.profile]
        for shape, least, most in zip(shapes, profile.min, profile.max, strict=True):
            # as TensorRT: the batch is the first input's; weights have a fixed axis there
            if least[0] != most[0] and shape[0] not in (1, _batch(now)):
                expected = "the same batch in all of them"
                raise refuse(self.spec, f"inputs {shapes}", expected=expected)
        if not within:
            instance = self.instances[now.profile]
            size = instance.call("run", "get_workspace_size", _batch(now))
            self._grow_workspace(checks.as_size(instance, "get_workspace_size", size))

    def _alike(self, now: Prepared, inputs: list[Array]) -> list[Array]:
        # what is the same for every image, such as priors, may come once
        batch = _batch(now)
        return [np.repeat(a, batch, axis=0) if len(a) == 1 < batch else a for a in inputs]

    def _enqueue(
        self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int
    ) -> None:
        arguments = _batch(now), inputs, outputs, workspace, self.stream
        checks.status_of(self.instances[now.profile], "run", "execute_async", *arguments)


def _generation(plugin: object) -> Generation:
    if isinstance(plugin, IPluginV2IOExt):
        return "V2IOExt"
    return "V2Ext" if isinstance(plugin, IPluginV2Ext) else "V2"


def _batch(now: Prepared) -> int:
    shapes = now.key[0]
    return int(shapes[0][0]) if shapes else 1


_COMMON_FORMATS = (TensorFormat.CHW2, TensorFormat.HWC8)
"""What plugins without formats of their own are asked for beside LINEAR (spec 2.1)."""


def _common_form(
    engine: Instance,
    inputs: Sequence[TensorSpec],
    items: Sequence[Dims],
    scales: Sequence[float],
) -> TensorForm:
    """The one form of all float tensors of a plugin without forms of its own."""
    floats = [closest(t.dtype) for t in inputs if closest(t.dtype).is_float]
    kinds = list(dict.fromkeys([*floats[:1], DataType.FLOAT, DataType.HALF]))
    if scales and all(scales):
        kinds.append(DataType.INT8)
    offers = [TensorForm(kind) for kind in kinds]
    if all(len(i) >= 3 for i in items):
        offers += [TensorForm(DataType.HALF, format) for format in _COMMON_FORMATS]
    for form in offers:
        answer = engine.call("build", "supports_format", form.type, form.format)
        if checks.as_bool(engine, "supports_format", answer):
            return form
    refused = " and ".join(kind.name for kind in kinds)
    more = ", HALF in CHW2 and HWC8 too" if len(offers) > len(kinds) else ""
    raise PluginError(
        f"{spoken(engine.plugin, 'supports_format')} refuses {refused}{more}",
        where=engine.where,
        expected="True for FLOAT, LINEAR at least",
        data={"method": "supports_format"},
    )


def _scales(
    common: TensorForm,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[DType],
    scales: Sequence[float],
) -> list[float]:
    """The scales of all tensors if the common form is INT8, else 0."""
    count = len(inputs) + len(outputs)
    return list(scales) if common.type == DataType.INT8 else [0.0] * count


def _configure_general(
    engine: Instance,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[DType],
    items: Sequence[Dims],
    results: Sequence[Dims],
    scales: Sequence[float],
) -> list[TensorForm]:
    def tensors(dims: Sequence[Dims], forms: Sequence[TensorForm]) -> list[PluginTensorDesc]:
        return [form_desc(d, form) for d, form in zip(dims, forms, strict=True)]

    def asked(dims: Sequence[Dims]) -> list[DynamicPluginTensorDesc]:
        return [DynamicPluginTensorDesc(PluginTensorDesc(d), d, d, d) for d in dims]

    choices = all_offers([t.dtype for t in inputs], outputs, [*items, *results], scales)
    forms = negotiate(engine, asked(items), asked(results), choices, dynamic=False)
    count = len(inputs)
    parts = tensors(items, forms[:count]), tensors(results, forms[count:])
    checks.status_of(engine, "build", "configure_plugin", *parts)
    return forms


BATCHED = Life(IPluginV2, BatchedContext, attached_clones, serialized)
