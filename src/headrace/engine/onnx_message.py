"""Networks as ONNX messages, as runtimes take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.errors import ModelError
from headrace._core.findings import Finding
from headrace.network.network import Network
from headrace.network.tensor_spec import axis_name
from headrace.network.versions import stamp_older

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


def model_bytes(
    network: Network, *, shape: tuple[int | None, ...], where: str, decisions: list[Finding]
) -> bytes:
    """Write the ONNX message of a network, weights inside, with the axes of its first input fixed.

    `shape` has None for a free axis, and is empty to leave all as they are. `decisions` gets a
    notice if the model is marked with a newer version than it needs.

    Raises:
        ModelError: it is over 2 GiB.
    """
    proto = network.to_proto()
    finish_proto(proto, shape, decisions)
    return serialized(proto, where)


def finish_proto(
    proto: ModelProto, shape: tuple[int | None, ...], decisions: list[Finding]
) -> None:
    """Mark and fix a new ModelProto of a network for a runtime, see `model_bytes`."""
    if versions := stamp_older(proto):
        text = f"the model is marked {versions[0]}; nothing in it is newer than {versions[1]}"
        notice = Finding("version-marked", "info", f"{text}, and so it is run")
        if notice not in decisions:
            decisions.append(notice)
    if shape:
        fix_axes(proto.graph, shape)


def fix_axes(graph: GraphProto, shape: tuple[int | None, ...]) -> None:
    """Fix the axes of the first input of a GraphProto to `shape`; its batch stays."""
    replaced: dict[str, int] = {}
    ambiguous: set[str] = set()
    axes = graph.input[0].type.tensor_type.shape.dim
    batch_name = axes[0].dim_param
    for axis, value in zip(list(axes)[1:], shape[1:], strict=True):
        name = axis_name(axis.dim_param)
        if name and name != batch_name and value and replaced.setdefault(name, value) != value:
            ambiguous.add(name)
        axis.dim_value = value or 0
    # the same name means the same number, wherever it stands
    for info in [*graph.output, *graph.value_info]:
        for axis in info.type.tensor_type.shape.dim:
            if axis.dim_param in replaced and axis.dim_param not in ambiguous:
                axis.dim_value = replaced[axis.dim_param]


def serialized(proto: ModelProto, where: str) -> bytes:
    """Serialise a ModelProto.

    Raises:
        ModelError: it is too large for one message.
    """
    from google.protobuf.message import Error as ProtobufError  # type: ignore[import-untyped]

    try:
        return bytes(proto.SerializeToString(deterministic=True))
    except (ProtobufError, ValueError) as error:
        raise ModelError(f"the model cannot be written as one message: {error}",
                         where=where) from error  # fmt: skip
