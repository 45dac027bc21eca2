"""Tensors of an ONNX file and the files some of them live in, checked before a byte is read.

A model is untrusted input: a location may try to leave the model's folder, an offset or a shape
may promise more than there is. Nothing here allocates by a number that the file system does not
back.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ModelError
from headrace._core.files import os_errors, os_reason
from headrace._core.plain_record import PlainRecord

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

    from headrace.network.network import Network

INITIALIZER = "initializer"
MAX_MODEL_BYTES = 2**31 - 2**20  # a protobuf message ends at 2 GiB; room for the graph itself


class ExternalRange(PlainRecord, frozen=True):
    """The bytes of one tensor in another file.

    `location` is as the model writes it, `path` where that is; `size_bytes` may be 0.
    """

    location: str
    path: Path
    offset: int
    size_bytes: int


def tensors_of(model: ModelProto) -> Iterator[tuple[str, TensorProto]]:
    """Yield description and TensorProto of every tensor: initialisers, attributes, at any depth."""
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)


def _of_graph(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    for tensor in graph.initializer:
        yield f"{INITIALIZER} {tensor.name!r}", tensor
    for sparse in graph.sparse_initializer:
        yield f"sparse {INITIALIZER} {sparse.values.name!r}", sparse.values
        yield f"indices of sparse {INITIALIZER} {sparse.values.name!r}", sparse.indices
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[tuple[str, TensorProto]]:
    for node in nodes:
        label = f"node {node.name!r} ({node.op_type})"
        for attribute in node.attribute:
            where = f"{label}, attribute {attribute.name!r}"
            if attribute.HasField("t"):
                yield where, attribute.t
            for tensor in attribute.tensors:
                yield where, tensor
            for sparse in [attribute.sparse_tensor, *attribute.sparse_tensors]:
                if sparse.HasField("values"):
                    yield where, sparse.values
                    yield where, sparse.indices
            if attribute.HasField("g"):
                yield from _of_graph(attribute.g)
            for graph in attribute.graphs:
                yield from _of_graph(graph)


def check_tensors(model: ModelProto, path: Path) -> list[ExternalRange]:
    """Check that every tensor of `model` (a ModelProto read from `path`) has the data it promises.

    Returns:
        One range per external tensor, in the order of `tensors_of`. No external byte is read.

    Raises:
        ModelError: naming the tensor: unknown type, negative or overlong shape, data of the wrong
            length; external data missing, outside the model's folder, or shorter than promised.
    """
    from onnx import TensorProto

    ranges = []
    for label, tensor in tensors_of(model):
        where = f"{path}, {label}"
        bits = _bits(tensor.data_type, where)
        if any(d < 0 for d in tensor.dims):
            raise ModelError(f"negative dimension in {list(tensor.dims)}", where=where)
        count = prod(tensor.dims)
        if tensor.data_location == TensorProto.EXTERNAL:
            if bits is None:
                raise ModelError("strings cannot be external data", where=where)
            ranges.append(_external_range(tensor, (count * bits + 7) // 8, path, where))
        else:
            _check_inline(tensor, count, bits, where)
    return ranges


def _bits(data_type: int, where: str) -> int | None:
    """Bits per element; None for strings."""
    from headrace.network.ir import ir

    try:
        dtype = ir.DataType(data_type)
        return None if dtype == ir.DataType.STRING else int(dtype.bitwidth)
    except (ValueError, TypeError) as error:
        raise ModelError(f"unknown tensor element type {data_type}", where=where) from error


def _check_inline(tensor: TensorProto, count: int, bits: int | None, where: str) -> None:
    shape = "x".join(map(str, tensor.dims)) or "scalar"
    if tensor.HasField("raw_data"):
        expected = (count * (bits or 0) + 7) // 8
        if len(tensor.raw_data) != expected:
            raise ModelError(
                f"holds {len(tensor.raw_data)} bytes, its shape {shape} needs {expected}",
                where=where,
            )
        return
    from onnx import TensorProto, helper

    field = helper.tensor_dtype_to_field(tensor.data_type)
    value_count = len(getattr(tensor, field))
    expected = count
    if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        expected *= 2
    elif bits is not None and bits < 8:
        expected = (count * bits + 7) // 8
    if value_count != expected:
        raise ModelError(
            f"holds {value_count} values in {field}, its shape {shape} needs {expected}",
            where=where,
        )


def _external_range(tensor: TensorProto, size_bytes: int, model: Path, where: str) -> ExternalRange:
    info = {entry.key: entry.value for entry in tensor.external_data}
    location = info.get("location", "")
    path = locate(location, model, where=where)
    numbers = {}
    for key, default in (("offset", 0), ("length", size_bytes)):
        text = info.get(key) or str(default)
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise ModelError(f"external data {key} {text!r} is not a byte count", where=where)
        numbers[key] = int(text)
    if numbers["length"] != size_bytes:
        shape = "x".join(map(str, tensor.dims)) or "scalar"
        raise ModelError(
            f"external data length {numbers['length']}, its shape {shape} needs {size_bytes}",
            where=where,
        )
    try:
        status = path.stat()
    except OSError as error:
        raise ModelError(
            f"external data file {location!r} cannot be found: {os_reason(error)}",
            where=where,
            expected=f"the file {model.parent / location}",
            fix="copy the data file to the model; its name may not change",
            code="external-data",
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(f"external data {location!r} is not a regular file", where=where)
    end = numbers["offset"] + size_bytes
    if end > status.st_size:
        raise ModelError(
            f"external data file {location!r} is too short: bytes {numbers['offset']} to {end} "
            f"are needed, it has {status.st_size}",
            where=where,
            fix="the file is truncated or belongs to another model: copy it again",
            code="external-data",
        )
    return ExternalRange(location, path, numbers["offset"], size_bytes)


def locate(location: str, model: Path, *, where: str) -> Path:
    """Where external data `location` of the file `model` really is: beside it or below.

    A model that is itself a symlink (as in download caches) may have its data where it really is.
    The data need not exist.
    """
    parts = location.replace("\\", "/").split("/")
    outside = None
    if not location or "\0" in location:
        outside = "is not a file name"
    elif location.startswith(("/", "\\")) or location[1:2] == ":":
        outside = "is an absolute path"
    elif ".." in parts:
        outside = "leaves the model's folder through '..'"
    else:
        real = os.path.realpath(model.parent / location)
        homes = {os.path.realpath(model.parent), os.path.dirname(os.path.realpath(model))}
        if any(real.startswith(home.rstrip("/") + "/") for home in homes):
            return Path(real)
        outside = f"leaves the model's folder through a symlink, to {real}"
    raise ModelError(
        f"external data location {location!r} {outside}",
        where=where,
        expected=f"a file in {model.parent} or below",
        fix="nothing was read; if you trust the model, put its data beside it and export again",
        code="external-data",
    )


def fold(model: ModelProto, ranges: list[ExternalRange], path: Path) -> None:
    """Read external data into `model` (a ModelProto), in place. `ranges` are `check_tensors`'s."""
    external = ((label, t) for label, t in tensors_of(model) if t.data_location)
    for (label, tensor), part in zip(external, ranges, strict=True):
        data = bytearray(part.size_bytes)
        _read_into(memoryview(data), part, f"{path}, {label}")
        tensor.raw_data = bytes(data)
        tensor.ClearField("data_location")
        del tensor.external_data[:]


WEIGHTS_FILE = "weights"
"""The location that the graph names."""

_INLINE_BYTES = 1 << 16  # smaller ones stay in the graph: shapes and axes that runtimes read early
_ALIGNMENT = 64


def split_proto(network: Network) -> tuple[ModelProto, memoryview]:
    """Split the large tensors from a graph.

    Returns a ModelProto with these tensors as external data in `WEIGHTS_FILE`, and the bytes of
    that file. External data of the network is copied once.
    """
    from onnx import TensorProto

    path = network.path or Path("network")
    proto = network.graph_proto()
    ranges = iter(check_tensors(proto, path))
    parts: list[tuple[int, str, ExternalRange | TensorProto]] = []
    end = 0
    for label, tensor in tensors_of(proto):
        part: ExternalRange | TensorProto
        if tensor.data_location == TensorProto.EXTERNAL:
            part = next(ranges)
            size = part.size_bytes
        elif (size := len(tensor.raw_data)) > _INLINE_BYTES:
            part = tensor
        else:
            continue
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = start + size
        parts.append((start, f"{path}, {label}", part))
        del tensor.external_data[:]
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS_FILE), ("offset", start), ("length", size)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
    weights = memoryview(mmap.mmap(-1, max(end, 1)))
    for start, where, part in parts:
        if isinstance(part, ExternalRange):
            _read_into(weights[start : start + part.size_bytes], part, where)
        else:  # one at a time: each reading of the field is a copy
            content = part.raw_data
            weights[start : start + len(content)] = content
            part.ClearField("raw_data")
    return proto, weights


def joined(model: bytes, weights: memoryview) -> ModelProto:
    """Put the tensors that `split_proto` took out of a graph back into it."""
    from onnx import ModelProto, TensorProto

    proto = ModelProto()
    proto.ParseFromString(model)
    for _, tensor in tensors_of(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            place = {
                entry.key: int(entry.value)
                for entry in tensor.external_data
                if entry.key != "location"
            }
            tensor.raw_data = bytes(weights[place["offset"] : place["offset"] + place["length"]])
            tensor.ClearField("data_location")
            del tensor.external_data[:]
    return proto


def _read_into(target: memoryview, part: ExternalRange, where: str) -> None:
    refused = os_errors(ModelError, f"external data file {part.location!r} cannot be read", where)
    with refused, open(part.path, "rb", buffering=0) as file:
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
