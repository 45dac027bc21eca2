"""The record of `headrace.trt` in a plan: a blob of JSON beside the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from headrace._core.errors import EngineError
from headrace._core.json_record import JsonRecord, RecordError
from headrace.engine.plan import Plan, blob_record

BLOB = "trt"
_Name = Annotated[str, Meta(max_length=4096)]
_Axes = Annotated[tuple[int, ...], Meta(max_length=64)]


class ShapeRanges(JsonRecord, frozen=True, kw_only=True):
    """Shapes and values of inputs: name -> (min, opt, max)."""

    shapes: Mapping[_Name, tuple[_Axes, _Axes, _Axes]] = {}
    values: Mapping[_Name, tuple[_Axes, _Axes, _Axes]] = {}


class LayerRecord(JsonRecord, frozen=True, kw_only=True):
    """A layer, for the inspector and for refitting.

    Attributes:
        nodes: its nodes in the graph.
        weights: role -> initialiser.
    """

    name: _Name
    kind: _Name
    precision: _Name = "FLOAT"
    inputs: tuple[_Name, ...] = ()
    outputs: tuple[_Name, ...] = ()
    nodes: tuple[_Name, ...] = ()
    weights: Mapping[_Name, _Name] = {}
    metadata: str = ""


class TrtRecord(JsonRecord, frozen=True, kw_only=True):
    """Facts about an engine that the graph does not hold.

    Attributes:
        flags: names of `BuilderFlag`s it was built with.
        types: name of a binding -> `DataType` it has for the user, where that is not the graph's.
        shapes: extents of outputs as the network knows them.
        names: named weights -> initialiser.
        debugged: tensors whose values listeners may ask for.
        hidden: those of them that the graph puts out for listeners only.
        options: settings of the config that are recorded only.
    """

    name: _Name = ""
    flags: tuple[_Name, ...] = ()
    profiles: tuple[ShapeRanges, ...] = ()
    layers: tuple[LayerRecord, ...] = ()
    types: Mapping[_Name, _Name] = {}
    shapes: Mapping[_Name, _Axes] = {}
    names: Mapping[_Name, _Name] = {}
    debugged: tuple[_Name, ...] = ()
    hidden: tuple[_Name, ...] = ()
    implicit: bool = False
    max_batch: Annotated[int, Meta(ge=1, le=65536)] = 1
    verbosity: _Name = "LAYER_NAMES_ONLY"
    options: Mapping[_Name, Any] = {}


def attach(plan: Plan, record: TrtRecord) -> Plan:
    """The plan with the record in it."""
    data = record.to_json()
    plan.blobs[BLOB] = data
    blobs = tuple(b for b in plan.header.blobs if b.name != BLOB)
    plan.header = plan.header.changed(blobs=(*blobs, blob_record(BLOB, data)))
    return plan


def record_of(plan: Plan) -> TrtRecord | None:
    """The record in a plan; None if it was not built by `headrace.trt`.

    Raises:
        EngineError: it is there, but is not one.
    """
    data = plan.blobs.get(BLOB)
    if data is None:
        return None
    try:
        return TrtRecord.from_json(data)
    except RecordError as error:
        raise EngineError(f"the plan's record of bindings is damaged: {error}") from error


def record_of_foreign(plan: Plan) -> TrtRecord:
    """The record of a plan that `headrace build` made: one profile, batches up to its largest."""
    header = plan.header
    shapes = {}
    for spec in header.inputs:
        axes = [d if isinstance(d, int) else -1 for d in spec.shape]
        low = [1 if d < 0 else d for d in axes]
        high = [header.max_batch if d < 0 else d for d in axes]
        shapes[spec.name] = (tuple(low), tuple(high), tuple(high))
    return TrtRecord(
        name=header.model.name,
        profiles=(ShapeRanges(shapes=shapes),),
        max_batch=max(1, header.max_batch),
    )
