"""Models larger than one ONNX message: the graph, and its weights beside it as external data."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noria._core.errors import ModelError
from noria.network.external_data import ExternalRange, check_tensors, tensors_of

if TYPE_CHECKING:
    from noria.network.network import Network

WEIGHTS_FILE = "weights"
"""The location that the graph names."""

_INLINE_BYTES = 1 << 16  # smaller ones stay in the graph: shapes and axes that runtimes read early
_ALIGNMENT = 64


def split_proto(network: Network) -> tuple[Any, memoryview]:
    """Split the large tensors from a graph.

    Returns a ModelProto with these tensors as external data in `WEIGHTS_FILE`, and the bytes of
    that file. Takes the memory of the weights once.

    Raises:
        ModelError: external data changed since the model was read; not writable as ONNX.
    """
    from onnx import TensorProto

    path = network.path or Path("network")
    proto = network.graph_proto()
    ranges = iter(check_tensors(proto, path))
    parts: list[tuple[int, str, ExternalRange | bytes]] = []
    end = 0
    for label, tensor in tensors_of(proto):
        part: ExternalRange | bytes
        if tensor.data_location == TensorProto.EXTERNAL:
            part = next(ranges)
            size = part.size_bytes
        elif len(tensor.raw_data) > _INLINE_BYTES:
            part = tensor.raw_data
            size = len(tensor.raw_data)
        else:
            continue
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = start + size
        parts.append((start, f"{path}, {label}", part))
        tensor.ClearField("raw_data")
        del tensor.external_data[:]
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS_FILE), ("offset", start), ("length", size)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
    weights = memoryview(mmap.mmap(-1, max(end, 1)))
    for start, where, part in parts:
        if isinstance(part, bytes):
            weights[start : start + len(part)] = part
        else:
            _read_into(weights[start : start + part.size_bytes], part, where)
    return proto, weights


def _read_into(target: memoryview, part: ExternalRange, where: str) -> None:
    try:
        with open(part.path, "rb", buffering=0) as file:
            file.seek(part.offset)
            done = 0
            while done < len(target):
                count = file.readinto(target[done:])
                if not count:
                    raise ModelError(
                        f"external data file {part.location!r} shrank while it was read",
                        where=where,
                    )
                done += count
    except OSError as error:
        raise ModelError(
            f"external data file {part.location!r} cannot be read: {error.strerror}", where=where
        ) from error
