"""ONNX files: read with suspicion, refused with words."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ModelError
from headrace._core.files import os_reason, sha256_of
from headrace._core.formats.foreign import foreign_model, looks_like
from headrace._core.formats.sniff import HEAD_BYTES, is_openvino
from headrace.network.class_maps import without_maps
from headrace.network.external_data import check_tensors
from headrace.network.model_limits import check_limits
from headrace.network.network import Network
from headrace.network.one_image import with_batch

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


_FIELDS = {  # of ModelProto: number -> wire type, name
    1: (0, "ir_version"),
    2: (2, "producer_name"),
    3: (2, "producer_version"),
    4: (2, "domain"),
    5: (0, "model_version"),
    6: (2, "doc_string"),
    7: (2, "graph"),
    8: (2, "opset_import"),
    14: (2, "metadata_props"),
    20: (2, "training_info"),
    25: (2, "functions"),
    26: (2, "configuration"),
}


def network_from_onnx(
    path: str | Path, *, needs_inputs: bool = True, of_images: bool = False
) -> Network:
    """Read an ONNX file, or an OpenVINO model. External data is read when the network is built.

    Args:
        path: the file.
        needs_inputs: True refuses a graph without inputs.
        of_images: the image becomes the first input, and a graph of one image gets a batch of 1
            in front of its outputs, as nvinfer's models have it.

    Raises:
        ModelError: missing, empty, truncated or damaged file; another format; external data that
            is missing, short, or outside the model's folder; no inputs or outputs; an opset that
            is unknown here. Operators nobody knows are no error here, see
            `Network.unknown_operators`.
    """
    path = Path(path)
    data = model_bytes(path)
    if is_openvino(path):
        from headrace.network.openvino.wrapper import network_from_openvino

        return network_from_openvino(path)
    return network_from_onnx_bytes(data, path, needs_inputs=needs_inputs, of_images=of_images)


def model_bytes(path: Path) -> bytes:
    """Read the file of a model, for `network_from_onnx_bytes`.

    Raises:
        ModelError: it is missing, a folder, too large for one message, or cannot be read.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            if (error := foreign_model(path)) is not None and error.data["format"] != "onnx":
                raise error
            inside = sorted(p.name for p in path.glob("*.onnx"))[:3]
            raise ModelError(
                "is a folder",
                where=str(path),
                expected="an ONNX file",
                fix=f"it contains {', '.join(inside)}" if inside else (),
            )
        if not stat.S_ISREG(status.st_mode):
            raise ModelError("is not a regular file", where=str(path), expected="an ONNX file")
        # A message ends at 2 GiB: anything longer is not ONNX, and is not read.
        if status.st_size >= 2**31:
            raise ModelError(
                f"{status.st_size / 2**30:.1f} GiB: a single ONNX file ends at 2 GiB",
                where=str(path),
                fix="export the weights as external data",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise ModelError(
            f"the model cannot be read: {os_reason(error)}",
            where=str(path),
            fix=_neighbours(path) if missing else (),
        ) from error


def _neighbours(path: Path) -> list[str]:
    near = sorted(p.name for p in path.parent.glob("*.onnx")) if path.parent.is_dir() else []
    if near:
        return [f"the folder has {', '.join(near[:5])}"]
    return [] if path.parent.is_dir() else [f"the folder {path.parent} does not exist"]


def network_from_onnx_bytes(
    data: bytes, path: Path, *, needs_inputs: bool = True, of_images: bool = False
) -> Network:
    """`network_from_onnx` for the bytes of a file that stood at `path`."""
    where = str(path)
    if not data:
        raise ModelError("the file is empty", where=where, expected="an ONNX model")
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    from headrace.network.ir import ir

    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise _not_onnx(data, where) from error
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise _not_onnx(data, where)
    check_limits(proto, where)
    _check_opsets(proto, where)
    _check_text(proto, where)
    maps = without_maps(proto, of_images=of_images)
    _check_types(proto.graph, where)
    ranges = check_tensors(proto, path)
    _check_sparse(proto.graph, where)
    try:
        batched = with_batch(proto) if of_images else ()
        model = ir.from_proto(proto)
        ir.external_data.set_base_dir(model.graph, path.parent)
    except Exception as error:  # the deserialiser meets untrusted structure: any kind comes out
        raise ModelError(
            f"the graph is not consistent: {_innermost(error)}",
            where=where,
            fix="the file is damaged, or its exporter is; try onnx.checker on it",
        ) from error
    external = {part.location: part.path for part in ranges}
    size = len(data) + sum(file.stat().st_size for file in set(external.values()))
    digest = sha256_of(data)
    if needs_inputs and not model.graph.inputs:
        raise ModelError("the graph has no inputs", where=where)
    network = Network(model, path=path, size_bytes=size, sha256=digest, external_locations=external)
    network.of_one_image = batched
    network.class_maps = maps
    return network


def _check_types(graph: GraphProto, where: str) -> None:
    """Refuse outputs that are maps and not of ZipMap, which `without_maps` undoes."""
    for value in graph.output:
        kind = value.type
        if kind.WhichOneof("value") == "sequence_type":
            kind = kind.sequence_type.elem_type
        if kind.WhichOneof("value") == "map_type":
            raise ModelError(
                f"output {value.name!r} is a map of names to numbers, not a tensor",
                where=where,
                expected="tensors alone",
                fix="make the tensor that the map is made of an output in its place",
            )


def _check_sparse(graph: GraphProto, where: str) -> None:
    """`onnx_ir` leaves sparse initializers out."""
    for sparse in graph.sparse_initializer:
        raise ModelError(
            f"graph {graph.name!r} has the sparse initializer {sparse.values.name!r}",
            where=where,
            expected="dense initializers",
            fix="export the weights dense",
        )
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                _check_sparse(body, where)


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _check_text(message: Any, where: str) -> None:
    """Names must be text: protobuf lets other bytes pass in messages of the old syntax."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        single = isinstance(value, str | bytes) or hasattr(value, "ListFields")
        for item in (value,) if single else value:
            if field.type == field.TYPE_MESSAGE:
                _check_text(item, where)
            elif not isinstance(item, str):
                raise ModelError(
                    f"the file is damaged: {field.full_name} is not text: "
                    f"'{item[:80].decode(errors='backslashreplace')}'",
                    where=where,
                )


def _check_opsets(proto: ModelProto, where: str) -> None:
    import onnx

    newest = onnx.defs.onnx_opset_version()
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    version = opsets.get("", opsets.get("ai.onnx"))
    uses_onnx = any(node.domain in ("", "ai.onnx") for node in proto.graph.node)
    if version is None and uses_onnx:
        raise ModelError(
            "the model does not say which opset it uses",
            where=where,
            expected="an opset_import",
            code="opset",
        )
    if version is not None and not 1 <= version <= newest:
        raise ModelError(
            f"opset {version} is not supported",
            where=where,
            expected=f"an opset from 1 to {newest}",
            fix="export the model for an older opset (17 suits every runtime), or update onnx",
            code="opset",
        )


def _not_onnx(data: bytes, where: str) -> ModelError:
    error = foreign_model(Path(where))
    if error is not None and error.data["format"] != "onnx":
        return error
    words = looks_like(data[:HEAD_BYTES], len(data))
    if words is not None:
        return ModelError(
            f"not an ONNX model: it looks like {words}",
            where=where,
            expected="an ONNX model",
            code="model-of-other-kind",
        )
    damage = _damage(data)
    if damage is None:
        return ModelError(
            "not an ONNX model, and nothing else known", where=where, expected="an ONNX model"
        )
    return ModelError(
        f"the ONNX file is truncated or damaged: {damage}",
        where=where,
        fix="copy or download it again",
    )


def _damage(data: bytes) -> str | None:
    """Where the outermost fields of an ONNX message stop making sense; None if they never do."""
    at, seen = 0, 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        wire_and_name = _FIELDS.get((tag or 0) >> 3)
        if tag is None or wire_and_name is None or wire_and_name[0] != tag & 7:
            return f"byte {start} does not begin a field of a model" if seen else None
        value, at = _varint(data, at)
        if value is None:
            return f"field {wire_and_name[1]} at byte {start} breaks off" if seen else None
        if wire_and_name[0] == 2:
            at += value
            if at > len(data):
                return (
                    f"the {wire_and_name[1]} at byte {start} needs {value} bytes, "
                    f"{at - len(data)} are missing at the end"
                )
        seen += 1
    return "the graph is missing or damaged inside" if seen else None


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value, at + i + 1
    return None, at
