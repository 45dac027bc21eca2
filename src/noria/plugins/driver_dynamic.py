"""The life of an `IPluginV2DynamicExt`: calls, order, clones and counts.

Source: tensorrt-plugins spec 4.1. The user's object is cloned at once when it is added; what all of
the version-2 line have in common is in `driver_second`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noria.network.tensor_spec import TensorSpec
from noria.plugins import checks
from noria.plugins.calls import Instance, Rollback
from noria.plugins.context import Prepared
from noria.plugins.driver_second import SecondContext, SecondEngine, read_names, told_types
from noria.plugins.evaluate import checked_leaves, evaluate, symbols
from noria.plugins.expressions import DimsExprs, IExprBuilder
from noria.plugins.layer import (
    LayerPlugin,
    Ranges,
    Shape,
    ShapeInput,
    refuse,
)
from noria.plugins.negotiate import candidates, closest, negotiate
from noria.plugins.types import (
    DataType,
    DynamicPluginTensorDesc,
    PluginTensorDesc,
    TensorFormat,
)

TYPES = "get_output_datatype"


class DynamicLayer(LayerPlugin):
    """See `LayerPlugin`. Made by `add`."""

    generation = "V2DynamicExt"

    @classmethod
    def add(cls, user: Instance, num_inputs: int, input_types: Sequence[DataType]) -> DynamicLayer:
        """Copy the user's plugin into a network."""
        count = checks.as_count(user, "num_outputs", user.get("parse", "num_outputs"))
        told_types(user, "parse", TYPES, count, input_types)
        user.get("parse", "num_outputs")
        layer = cls(user.clone("parse"), count, num_inputs)
        with Rollback() as rollback:
            rollback.add(layer.instance)
            read_names(layer, user)
            rollback.keep()
        return layer

    def output_types(self, input_types: Sequence[DataType]) -> tuple[DataType, ...]:
        return told_types(self.instance, "parse", TYPES, self.num_outputs, input_types)

    def output_shapes(
        self, inputs: Sequence[Shape], shape_inputs: Sequence[ShapeInput] = ()
    ) -> list[DimsExprs]:
        return _shapes(self.instance, self.num_outputs, inputs, "parse")

    def build(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[np.dtype[Any]],
        profiles: Sequence[Ranges],
        shape_inputs: Sequence[ShapeInput] = (),
    ) -> DynamicEngine:
        with Rollback() as rollback:
            base = rollback.add(self.instance.clone("build"))
            shapes = _shapes(base, self.num_outputs, [t.dims for t in inputs], "build")
            base.get("build", "plugin_type")
            choices = [candidates(t.dtype) for t in inputs] + [candidates(d) for d in outputs]
            engines: list[Instance] = []
            sizes: list[int] = []
            types: list[DataType] = []
            for ranges in profiles:
                probe = rollback.add(base.clone("build"))
                free = described(inputs, ranges, shapes, [None] * self.num_outputs)
                types = negotiate(probe, _asker(probe), *free, choices, dynamic=False)
                engine = rollback.add(probe.clone("build"))
                tensors = described(inputs, ranges, shapes, types)
                checks.status_of(engine, "build", "configure_plugin", *tensors)
                sizes.append(
                    max(_workspace(engine, tensors, which, "build") for which in ("max", "opt"))
                )
                engines.append(engine)
                probe.destroy("build")
            spec = self.spec(types, outputs, shapes, profiles, sizes)
            made = DynamicEngine(spec, engines, base=base)
            rollback.keep()
        return made


class DynamicContext(SecondContext):
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


class DynamicEngine(SecondEngine):
    """See `EnginePlugin`."""

    context_class = DynamicContext


def described(
    inputs: Sequence[TensorSpec],
    ranges: Ranges,
    shapes: Sequence[DimsExprs],
    types: Sequence[DataType | None],
) -> tuple[list[DynamicPluginTensorDesc], list[DynamicPluginTensorDesc]]:
    """Descriptors of inputs and outputs for one profile; free axes are -1."""
    kinds = list(types[: len(inputs)]) if len(types) > len(shapes) else [None] * len(inputs)
    ins = []
    for index, tensor in enumerate(inputs):
        kind = kinds[index] or closest(tensor.dtype)
        desc = PluginTensorDesc(tensor.dims, kind, TensorFormat.LINEAR)
        ins.append(
            DynamicPluginTensorDesc(desc, ranges.min[index], ranges.max[index], ranges.opt[index])
        )
    low = evaluate(shapes, ranges.min, ranges.values, size="opt").shapes
    opt = evaluate(shapes, ranges.opt, ranges.values, size="opt").shapes
    high = evaluate(shapes, ranges.max, ranges.values, size="upper").shapes
    outs = []
    for index, exprs in enumerate(shapes):
        dims = [e.get_constant_value() if e.is_constant() else -1 for e in exprs]
        chosen = types[len(types) - len(shapes) + index]
        desc = PluginTensorDesc(dims, chosen, TensorFormat.LINEAR)
        outs.append(DynamicPluginTensorDesc(desc, low[index], high[index], opt[index]))
    return ins, outs


def _shapes(instance: Instance, count: int, inputs: Sequence[Shape], phase: Any) -> list[DimsExprs]:
    method = "get_output_dimensions"
    exprs = [symbols(dims, i) for i, dims in enumerate(inputs)]
    found = [
        checks.as_exprs(instance, method, instance.call(phase, method, i, exprs, IExprBuilder()))
        for i in range(count)
    ]
    checked_leaves(
        found,
        [len(d) for d in inputs],
        [],
        count,
        lambda text: refuse(instance, f"{method} uses {text}"),
    )
    return found


def _asker(probe: Instance) -> Any:
    def ask(pos: int, descs: Sequence[Any], count: int) -> Any:
        return probe.call("build", "supports_format_combination", pos, list(descs), count)

    return ask


def _workspace(
    instance: Instance,
    tensors: tuple[list[DynamicPluginTensorDesc], list[DynamicPluginTensorDesc]],
    which: str,
    phase: Any,
) -> int:
    ins, outs = (
        [PluginTensorDesc(getattr(d, which), d.desc.type, d.desc.format) for d in part]
        for part in tensors
    )
    size = instance.call(phase, "get_workspace_size", ins, outs)
    return checks.as_size(instance, "get_workspace_size", size)
