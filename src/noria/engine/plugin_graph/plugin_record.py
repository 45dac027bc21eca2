"""What a plan keeps of its plugin layers: data for the creators, and what the plan itself knows.

Source: tensorrt-plugins spec 12.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from noria._core.errors import EngineError
from noria.plugins.evaluate import checked_leaves, from_text, to_text
from noria.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType
from noria.plugins.layer import EngineSpec, Ranges, SavedPlugin
from noria.plugins.types import DataType

Text = Annotated[str, Field(max_length=4096)]
Name = Annotated[str, Field(min_length=1, max_length=4096)]
Axes = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**40)], ...], Field(max_length=64)]
Values = Annotated[tuple[Annotated[int, Field(ge=-(2**63), lt=2**63)], ...], Field(max_length=4096)]
Kind = Literal["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "INT64"]
Numpy = Literal[
    "float16", "float32", "float64", "bool", "bfloat16",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
Size = Annotated[int, Field(ge=0, le=2**40)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PluginProfileRecord(_Record):
    """Shapes of a plugin's inputs in one optimisation profile, and values of its shape inputs."""

    min: tuple[Axes, ...]
    opt: tuple[Axes, ...]
    max: tuple[Axes, ...]
    values: tuple[Values, ...] = ()

    @property
    def ranges(self) -> Ranges:
        """The same, for plugins."""
        return Ranges(self.min, self.opt, self.max, self.values)


class PluginRecord(_Record):
    """A layer that a plugin computes.

    Attributes:
        node: name of its node in the model.
        generation: class of the plugin.
        type, version, namespace: what its creator is found by.
        inputs, shape_inputs, outputs: names of the values; "" where one is left out.
        input_types, output_types: what the plugin works in.
        dtypes: of the outputs in the model.
        shapes: of the outputs, as text (`noria.plugins.evaluate`).
        profiles: shapes it was built for; per profile also:
        workspaces: bytes of scratch memory.
        tactics: the way to compute.
        blobs: names of the blobs with the plugin's own data.
        aliases: per output, the input whose memory it shares, -1 for none.
        metadata: what the plugin says about itself.
        code: sha256 of the file its creator is written in; empty if that is noria's or unknown.
    """

    node: Name
    generation: Literal["V2", "V2Ext", "V2IOExt", "V2DynamicExt", "V3"]
    type: Name
    version: Text
    namespace: Text
    inputs: tuple[Text, ...]
    shape_inputs: tuple[Text, ...] = ()
    outputs: Annotated[tuple[Text, ...], Field(min_length=1)]
    input_types: tuple[Kind, ...]
    output_types: tuple[Kind, ...]
    dtypes: tuple[Numpy, ...]
    shapes: tuple[Annotated[str, Field(max_length=16_384)], ...]
    profiles: Annotated[tuple[PluginProfileRecord, ...], Field(min_length=1, max_length=64)]
    workspaces: tuple[Size, ...]
    tactics: tuple[Annotated[int, Field(ge=0, lt=2**31)], ...]
    blobs: tuple[Name, ...]
    aliases: tuple[Annotated[int, Field(ge=-1, lt=4096)], ...] = ()
    metadata: Text = ""
    code: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""

    @model_validator(mode="after")
    def _agrees(self) -> PluginRecord:
        ins, outs, profiles = len(self.inputs), len(self.outputs), len(self.profiles)
        counts = [
            len(self.input_types) == ins,
            all(len(x) == outs for x in (self.output_types, self.dtypes, self.shapes)),
            all(len(x) == profiles for x in (self.workspaces, self.tactics, self.blobs)),
            len(self.aliases) in (0, outs) and all(a < ins for a in self.aliases),
        ]
        for p in self.profiles:
            counts.append(len(p.min) == len(p.opt) == len(p.max) == ins)
            counts.append(len(p.values) == len(self.shape_inputs))
        if not all(counts):
            raise ValueError("a plugin's inputs, outputs and profiles do not go together")
        first = self.profiles[0]
        checked_leaves(
            [from_text(text) for text in self.shapes],
            [len(s) for s in first.opt],
            [len(v) for v in first.values],
            outs,
            ValueError,
        )
        return self

    def __str__(self) -> str:
        space = f", namespace {self.namespace!r}" if self.namespace else ""
        return f"{self.type} version {self.version}{space} (node {self.node!r}, {self.generation})"

    @property
    def spec(self) -> EngineSpec:
        """The same, for plugins."""
        return EngineSpec(
            layer=self.node,
            generation=self.generation,
            type=self.type,
            version=self.version,
            namespace=self.namespace,
            input_types=tuple(DataType[t] for t in self.input_types),
            output_types=tuple(DataType[t] for t in self.output_types),
            dtypes=tuple(np.dtype(d) for d in self.dtypes),
            shapes=tuple(from_text(s) for s in self.shapes),
            profiles=tuple(p.ranges for p in self.profiles),
            workspaces=self.workspaces,
            tactics=self.tactics,
            aliases=self.aliases,
            metadata=self.metadata,
        )


def record_of(
    saved: SavedPlugin,
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    number: int,
) -> tuple[PluginRecord, dict[str, bytes]]:
    """The record of a saved plugin layer, and its blobs by name.

    Args:
        saved: what the plugin gave.
        names: of its inputs, shape inputs and outputs.
        number: of the layer in the plan.

    Raises:
        EngineError: it cannot be described in a plan.
    """
    from pydantic import ValidationError

    spec = saved.spec
    blobs = {
        f"plugin {number}.{profile}": data if isinstance(data, bytes) else _packed(data)
        for profile, data in enumerate(saved.data)
    }
    inputs, shape_inputs, outputs = names
    try:
        record = PluginRecord(
            node=spec.layer,
            generation=spec.generation,
            type=spec.type,
            version=spec.version,
            namespace=spec.namespace,
            inputs=inputs,
            shape_inputs=shape_inputs,
            outputs=outputs,
            input_types=tuple(t.name for t in spec.input_types),  # type: ignore[misc]
            output_types=tuple(t.name for t in spec.output_types),  # type: ignore[misc]
            dtypes=tuple(d.name for d in spec.dtypes),  # type: ignore[misc]
            shapes=tuple(to_text(s) for s in spec.shapes),
            profiles=tuple(
                PluginProfileRecord(min=p.min, opt=p.opt, max=p.max, values=p.values)
                for p in spec.profiles
            ),
            workspaces=spec.workspaces,
            tactics=spec.tactics,
            blobs=tuple(blobs),
            aliases=spec.aliases,
            metadata=spec.metadata,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise EngineError(
            f"plugin {spec.name} cannot be kept in a plan: {at}: {first['msg']}",
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
    return SavedPlugin(record.spec, tuple(data))


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
        found = []
        for entry in json.loads(blob):
            data = entry["data"]
            raw = None if data is None else base64.b64decode(data, validate=True)
            found.append(PluginField(str(entry["name"]), raw, PluginFieldType[entry["type"]]))
        return PluginFieldCollection(found)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EngineError(f"damaged: the fields of plugin {record.type}", where=where) from error
