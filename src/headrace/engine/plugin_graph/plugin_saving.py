"""Plugin layers into a plan and back: records for its header, blobs with the data for creators."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import cast

import numpy as np

from headrace._core.errors import EngineError
from headrace.engine.plugin_graph.plugin_record import Format, PluginProfileRecord, PluginRecord
from headrace.plugins.expressions import from_text, to_text
from headrace.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType
from headrace.plugins.forms import TensorForm
from headrace.plugins.layer import EngineSpec, Ranges, SavedPlugin
from headrace.plugins.types import DataType, TensorFormat

_ALIKE = (
    "generation",
    "type",
    "version",
    "namespace",
    "workspaces",
    "tactics",
    "aliases",
    "metadata",
    "code",
)
"""Facts that a record has as the spec has them."""


def spec_of(record: PluginRecord) -> EngineSpec:
    """A record as plugins take it."""
    types = (*record.input_types, *record.output_types)
    count = len(record.input_types)
    forms = tuple(
        TensorForm(DataType[kind], TensorFormat[format], scale)
        for kind, format, scale in zip(
            types,
            record.formats or ("LINEAR",) * len(types),
            record.scales or (0.0,) * len(types),
            strict=True,
        )
    )
    return EngineSpec(
        layer=record.node,
        input_forms=forms[:count],
        output_forms=forms[count:],
        dtypes=tuple(np.dtype(d) for d in record.dtypes),
        shapes=tuple(from_text(s) for s in record.shapes),
        profiles=tuple(Ranges(p.min, p.opt, p.max, p.values) for p in record.profiles),
        **{name: getattr(record, name) for name in _ALIKE},
    )


def record_of(
    saved: SavedPlugin,
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    number: int,
) -> tuple[PluginRecord, dict[str, bytes]]:
    """The record of a saved plugin layer, and its blobs by name.

    `names` are those of its inputs, shape inputs and outputs.

    Raises:
        EngineError: it cannot be described in a plan.
    """
    spec = saved.spec
    blobs = {
        f"plugin {number}.{profile}": data if isinstance(data, bytes) else _packed(data)
        for profile, data in enumerate(saved.data)
    }
    inputs, shape_inputs, outputs = names
    forms = (*spec.input_forms, *spec.output_forms)
    formats = () if all(f.is_linear for f in forms) else tuple(f.format.name for f in forms)
    scales = tuple(f.scale for f in forms) if any(f.scale for f in forms) else ()
    try:
        record = PluginRecord(
            node=spec.layer,
            inputs=inputs,
            shape_inputs=shape_inputs,
            outputs=outputs,
            input_types=tuple(t.name for t in spec.input_types),  # type: ignore[misc]
            output_types=tuple(t.name for t in spec.output_types),  # type: ignore[misc]
            formats=cast("tuple[Format, ...]", formats),
            scales=scales,
            dtypes=tuple(d.name for d in spec.dtypes),  # type: ignore[misc]
            shapes=tuple(to_text(s) for s in spec.shapes),
            profiles=tuple(PluginProfileRecord(**asdict(p)) for p in spec.profiles),
            blobs=tuple(blobs),
            **{name: getattr(spec, name) for name in _ALIKE},
        ).checked()
    except (TypeError, ValueError) as error:
        raise EngineError(
            f"plugin {spec.name} cannot be kept in a plan: {error}",
            where=f"layer {spec.layer!r}",
        ) from error
    return record, blobs


def saved_of(record: PluginRecord, blobs: Mapping[str, bytes], where: str) -> SavedPlugin:
    """The plugin layer of a plan.

    Raises:
        EngineError: a blob is missing or damaged.
    """
    data: list[bytes | PluginFieldCollection] = []
    for name in record.blobs:
        if name not in blobs:
            raise EngineError(f"damaged: there is no blob {name!r}", where=where)
        blob = blobs[name]
        data.append(_unpacked(blob, record, where) if record.generation == "V3" else blob)
    return SavedPlugin(spec_of(record), tuple(data))


def _packed(fields: PluginFieldCollection) -> bytes:
    return json.dumps(
        [
            {
                "name": field.name,
                "type": field.type.name,
                "data": None if field.data is None else base64.b64encode(field.raw).decode(),
            }
            for field in fields
        ]
    ).encode()


def _unpacked(blob: bytes, record: PluginRecord, where: str) -> PluginFieldCollection:
    try:
        fields = []
        for entry in json.loads(blob):
            data = entry["data"]
            raw = None if data is None else base64.b64decode(data, validate=True)
            fields.append(PluginField(str(entry["name"]), raw, PluginFieldType[entry["type"]]))
        return PluginFieldCollection(fields)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EngineError(f"damaged: the fields of plugin {record.type}", where=where) from error
