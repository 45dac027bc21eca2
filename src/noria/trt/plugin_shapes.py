"""Shapes of the outputs of plugins, before the network runs. Source: tensorrt-plugins spec 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noria._core.errors import NoriaError
from noria.engine.plugin_graph.plugin_saving import spec_of
from noria.network.tensor_spec import TensorType
from noria.plugins.expressions import evaluate
from noria.plugins.types import DataType
from noria.trt.api.types import elem_of

if TYPE_CHECKING:
    from noria.engine.plan import Plan


def symbolic(
    exprs: Any, dims: Sequence[tuple[int, ...]], values: Sequence[tuple[int, ...]], where: str
) -> list[tuple[int, ...]]:
    """Evaluate shapes; -1 for axes that differ between two trial extents of the free axes."""
    made = []
    for stand_in in (7, 11):
        given = [tuple(stand_in if d < 0 else d for d in s) for s in dims]
        numbers = [tuple(stand_in if v < 0 else v for v in s) for s in values]
        made.append(evaluate(exprs, given, numbers, size="upper", where=where))
    shapes = []
    for i, (one, two) in enumerate(zip(made[0].shapes, made[1].shapes, strict=True)):
        decided = {axis for axis, _ in made[0].sized[i]}
        pairs = enumerate(zip(one, two, strict=True))
        shapes.append(tuple(-1 if a != b or k in decided else a for k, (a, b) in pairs))
    return shapes


def node_infos(plan: Plan, node: Any, infos: Any) -> list[TensorType | None] | None:
    """Types of the outputs of a plugin's node in a plan; None if its inputs are unknown."""
    record = next((r for r in plan.header.plugins if r.node == node.name), None)
    if record is None or any(infos.get(n) is None for n in record.inputs if n):
        return None
    dims = [infos[n].shape if n else () for n in record.inputs]
    if any(d is None for d in dims):
        return None
    values = []
    for name in record.shape_inputs:
        known = infos[name].value if name in infos else None
        if known is None:
            return None
        values.append(tuple(-1 if np.isnan(float(v)) else int(v) for v in known.reshape(-1)))
    spec = spec_of(record)
    try:
        shapes = symbolic(spec.shapes, dims, values, spec.layer)
    except NoriaError:
        return None
    kinds = [elem_of(DataType.of(d)) for d in spec.dtypes]
    made = dict(zip(record.outputs, zip(kinds, shapes, strict=True), strict=True))
    return [TensorType(*made[n]) if n in made else None for n in node.output]
