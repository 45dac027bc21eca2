"""The life of an `IPluginV2DynamicExt`: symbolic shapes, one engine-level object per profile.

Source: tensorrt-plugins spec 2.4, 4.1, 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from headrace._core.types import DType
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins import checks
from headrace.plugins.base import IPluginV2DynamicExt
from headrace.plugins.calls import Instance, Rollback
from headrace.plugins.context import ContextPlugin
from headrace.plugins.driver_v2 import attached_clones, serialized, told_types
from headrace.plugins.expressions import (
    DimsExprs,
    IExprBuilder,
    checked_leaves,
    evaluate,
    symbols,
)
from headrace.plugins.forms import TensorForm
from headrace.plugins.layer import (
    EnginePlugin,
    LayerPlugin,
    Life,
    Ranges,
    Shape,
    ShapeInput,
    refuse,
)
from headrace.plugins.negotiate import all_offers, closest, form_desc, negotiate
from headrace.plugins.prepared import Prepared
from headrace.plugins.trace import Phase
from headrace.plugins.types import (
    DataType,
    DynamicPluginTensorDesc,
    PluginTensorDesc,
    TensorFormat,
)

Tensors: TypeAlias = tuple[list[DynamicPluginTensorDesc], list[DynamicPluginTensorDesc]]
"""Inputs and outputs of a plugin."""


class DynamicLayer(LayerPlugin):
    """See `LayerPlugin`. Made by `add`."""

    generation = "V2DynamicExt"

    @classmethod
    def add(cls, user: Instance, num_inputs: int, input_types: Sequence[DataType]) -> DynamicLayer:
        """Copy the user's plugin into a network."""
        count = checks.as_count(user, "num_outputs", user.get("parse", "num_outputs"))
        told_types(user, "parse", "get_output_datatype", count, input_types)
        user.get("parse", "num_outputs")
        layer = cls(user.clone("parse"), count, num_inputs)
        with Rollback() as rollback:
            rollback.add(layer.instance)
            kind = user.get("parse", "plugin_type")
            layer.take_names(user, "plugin_type", kind, layer.instance.plugin)
            rollback.keep()
        return layer

    def output_types(self, input_types: Sequence[DataType]) -> tuple[DataType, ...]:
        return told_types(
            self.instance, "parse", "get_output_datatype", self.num_outputs, input_types
        )

    def output_shapes(
        self, inputs: Sequence[Shape], shape_inputs: Sequence[ShapeInput] = ()
    ) -> list[DimsExprs]:
        return _shapes(self.instance, self.num_outputs, inputs, "parse")

    def build(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[DType],
        profiles: Sequence[Ranges],
        shape_inputs: Sequence[ShapeInput] = (),
        scales: Sequence[float] = (),
    ) -> EnginePlugin:
        with Rollback() as rollback:
            base = rollback.add(self.instance.clone("build"))
            shapes = _shapes(base, self.num_outputs, [t.dims for t in inputs], "build")
            base.get("build", "plugin_type")
            engines: list[Instance] = []
            sizes: list[int] = []
            forms: list[TensorForm] = []
            for ranges in profiles:
                probe = rollback.add(base.clone("build"))
                free = described(inputs, ranges, shapes, ())
                choice = negotiated(probe, inputs, outputs, free, scales, dynamic=False)
                forms = forms or choice  # all profiles have the forms of the first
                engine = rollback.add(probe.clone("build"))
                tensors = described(inputs, ranges, shapes, forms)
                checks.status_of(engine, "build", "configure_plugin", *tensors)
                sizes.append(
                    max(_workspace(engine, tensors, which, "build") for which in ("max", "opt"))
                )
                engines.append(engine)
                probe.destroy("build")
            spec = self.spec(forms, outputs, shapes, profiles, sizes)
            plugin = EnginePlugin(spec, engines, DYNAMIC, base=base)
            rollback.keep()
        return plugin


class DynamicContext(ContextPlugin):
    """See `ContextPlugin`."""

    def _change(self, now: Prepared, *, within: bool) -> None:
        instance = self.instances[now.profile]
        ranges = self.spec.profiles[now.profile]
        ins = [
            DynamicPluginTensorDesc(d, low, high, opt)
            for d, low, high, opt in zip(
                now.inputs, ranges.min, ranges.max, ranges.opt, strict=True
            )
        ]
        outs = [DynamicPluginTensorDesc(d, d.dims, d.dims, d.dims) for d in now.outputs]
        checks.status_of(instance, "run", "configure_plugin", ins, outs)
        if not within:
            size = instance.call("run", "get_workspace_size", now.inputs, now.outputs)
            self._grow_workspace(checks.as_size(instance, "get_workspace_size", size))

    def _enqueue(
        self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int
    ) -> None:
        self.instances[now.profile].call(
            "run", "enqueue", now.inputs, now.outputs, inputs, outputs, workspace, self.stream
        )


def negotiated(
    probe: Instance,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[DType],
    free: Tensors,
    scales: Sequence[float],
    *,
    dynamic: bool,
) -> list[TensorForm]:
    """Negotiate with a plugin that sees shapes with the batch; forms of inputs, then outputs."""
    dims = [d.opt for part in free for d in part]
    choices = all_offers([t.dtype for t in inputs], outputs, dims, scales)
    return negotiate(probe, *free, choices, dynamic=dynamic)


def described(
    inputs: Sequence[TensorSpec],
    ranges: Ranges,
    shapes: Sequence[DimsExprs],
    forms: Sequence[TensorForm],
) -> Tensors:
    """Descriptors of inputs and outputs for one profile; free axes are -1.

    Without `forms` inputs have the network's types and outputs none.
    """
    ins = []
    for index, tensor in enumerate(inputs):
        form = forms[index] if forms else TensorForm(closest(tensor.dtype))
        desc = form_desc(tensor.dims, form)
        ins.append(
            DynamicPluginTensorDesc(desc, ranges.min[index], ranges.max[index], ranges.opt[index])
        )
    low = evaluate(shapes, ranges.min, ranges.values, size="opt").shapes
    opt = evaluate(shapes, ranges.opt, ranges.values, size="opt").shapes
    high = evaluate(shapes, ranges.max, ranges.values, size="upper").shapes
    outs = []
    for index, exprs in enumerate(shapes):
        dims = [e.get_constant_value() if e.is_constant() else -1 for e in exprs]
        if forms:
            desc = form_desc(dims, forms[len(inputs) + index])
        else:
            desc = PluginTensorDesc(dims, None, TensorFormat.LINEAR)
        outs.append(DynamicPluginTensorDesc(desc, low[index], high[index], opt[index]))
    return ins, outs


def _shapes(
    instance: Instance, count: int, inputs: Sequence[Shape], phase: Phase
) -> list[DimsExprs]:
    method = "get_output_dimensions"
    exprs = [symbols(dims, i) for i, dims in enumerate(inputs)]
    shapes = [
        checks.as_exprs(instance, method, instance.call(phase, method, i, exprs, IExprBuilder()))
        for i in range(count)
    ]
    checked_leaves(
        shapes,
        [len(d) for d in inputs],
        [],
        count,
        lambda text: refuse(instance, f"{method} uses {text}"),
    )
    return shapes


def _workspace(instance: Instance, tensors: Tensors, which: str, phase: Phase) -> int:
    ins, outs = (
        [
            PluginTensorDesc(getattr(d, which), d.desc.type, d.desc.format, d.desc.scale)
            for d in part
        ]
        for part in tensors
    )
    size = instance.call(phase, "get_workspace_size", ins, outs)
    return checks.as_size(instance, "get_workspace_size", size)


DYNAMIC = Life(IPluginV2DynamicExt, DynamicContext, attached_clones, serialized)
