"""Records of plugin layers in the header of a plan: names, types, shapes, and where the data is.

Source: tensorrt-plugins spec 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from headrace._core.json_record import JsonRecord
from headrace.plugins.loading import code_of

Text = Annotated[str, Meta(max_length=4096)]
Name = Annotated[str, Meta(min_length=1, max_length=4096)]
Axes = Annotated[tuple[Annotated[int, Meta(ge=0, lt=2**40)], ...], Meta(max_length=64)]
Values = Annotated[
    tuple[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)], ...], Meta(max_length=4096)
]
Kind = Literal["FLOAT", "HALF", "BF16", "INT8", "INT32", "BOOL", "UINT8", "INT64"]
Format = Literal[
    "LINEAR", "CHW2", "HWC8", "CHW4", "CHW16", "CHW32", "DHWC8", "CDHW32", "HWC", "HWC16", "DHWC",
]  # fmt: skip
Scale = Annotated[float, Meta(ge=0)]
Numpy = Literal[
    "float16", "float32", "float64", "bool", "bfloat16",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
Size = Annotated[int, Meta(ge=0, le=2**40)]


class PluginProfileRecord(JsonRecord, frozen=True, kw_only=True):
    """Shapes of a plugin's inputs in one optimisation profile, and values of its shape inputs."""

    min: tuple[Axes, ...]
    opt: tuple[Axes, ...]
    max: tuple[Axes, ...]
    values: tuple[Values, ...] = ()


class PluginRecord(JsonRecord, frozen=True, kw_only=True):
    """A layer that a plugin computes: the facts of its `EngineSpec`, names of values, and blobs.

    Attributes:
        node: name of its node in the model.
        inputs, shape_inputs, outputs: names of the values; "" where one is left out.
        formats, scales: of the inputs, then the outputs; none if all are LINEAR, or have no scale.
        shapes: of the outputs, as text (`headrace.plugins.expressions`).
        blobs: names of the blobs with the plugin's own data, per profile.
        code: sha256 of the file its creator is written in; empty if that is headrace's or unknown.
    """

    node: Name
    generation: Literal["V2", "V2Ext", "V2IOExt", "V2DynamicExt", "V3"]
    type: Name
    version: Text
    namespace: Text
    inputs: tuple[Text, ...]
    shape_inputs: tuple[Text, ...] = ()
    outputs: Annotated[tuple[Text, ...], Meta(min_length=1)]
    input_types: tuple[Kind, ...]
    output_types: tuple[Kind, ...]
    formats: tuple[Format, ...] = ()
    scales: tuple[Scale, ...] = ()
    dtypes: tuple[Numpy, ...]
    shapes: tuple[Annotated[str, Meta(max_length=16_384)], ...]
    profiles: Annotated[tuple[PluginProfileRecord, ...], Meta(min_length=1, max_length=64)]
    workspaces: tuple[Size, ...]
    tactics: tuple[Annotated[int, Meta(ge=-(2**31), lt=2**31)], ...]
    blobs: tuple[Name, ...]
    aliases: tuple[Annotated[int, Meta(ge=-1, lt=4096)], ...] = ()
    metadata: Text = ""
    code: Annotated[str, Meta(pattern="^([0-9a-f]{64})?\\Z")] = ""

    def __post_init__(self) -> None:
        ins, outs, profiles = len(self.inputs), len(self.outputs), len(self.profiles)
        counts = [
            len(self.input_types) == ins,
            all(len(x) == outs for x in (self.output_types, self.dtypes, self.shapes)),
            all(len(x) == profiles for x in (self.workspaces, self.tactics, self.blobs)),
            all(len(x) in (0, ins + outs) for x in (self.formats, self.scales)),
            len(self.aliases) in (0, outs) and all(a < ins for a in self.aliases),
        ]
        for p in self.profiles:
            counts.append(len(p.min) == len(p.opt) == len(p.max) == ins)
            counts.append(len(p.values) == len(self.shape_inputs))
        if not all(counts):
            raise ValueError("a plugin's inputs, outputs and profiles do not go together")
        from headrace.plugins.expressions import (  # only plans with plugins pay
            checked_leaves,
            from_text,
        )

        first = self.profiles[0]
        checked_leaves(
            [from_text(text) for text in self.shapes],
            [len(s) for s in first.opt],
            [len(v) for v in first.values],
            outs,
            ValueError,
        )

    def __str__(self) -> str:
        space = f", namespace {self.namespace!r}" if self.namespace else ""
        return f"{self.type} version {self.version}{space} (node {self.node!r}, {self.generation})"


def changed_plugins(records: Sequence[PluginRecord]) -> str | None:
    """Name the first plugin of a plan that is missing or changed; None if there is none.

    A plan keeps the types and shapes that its plugins declared; other code may declare others.
    """
    if not records:
        return None
    from headrace.plugins.registry import known_plugins

    for record in records:
        creator = known_plugins().find(record.type, record.version, record.namespace, record.code)
        if creator is None:
            return f"plugin {record} is not registered"
        if record.code and code_of(creator) != record.code:
            return f"the code of plugin {record.type} changed"
    return None
