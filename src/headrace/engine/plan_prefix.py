"""The beginning of a plan file, checked before it is believed; see `headrace.engine.plan`."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import headrace
from headrace._core import formats
from headrace._core.errors import EngineError
from headrace._core.files import sha256_of
from headrace._core.formats.sniff import PLAN_MAGIC
from headrace._core.json_record import RecordError
from headrace.engine.plan_header import PlanHeader

FORMAT_VERSION = 1
MAX_HEADER_BYTES = 16 * 2**20
MAX_PLAN_BYTES = 2**40
PREFIX = struct.Struct("<8sIIQ32s")
_REBUILD = "delete it: it is built anew from the model at the next start"


class NewerPlanError(EngineError):
    """A plan that a newer headrace wrote: fit for that one, unreadable here."""


def check_prefix(head: bytes, size_bytes: int, where: str) -> tuple[int, bytes]:
    """Size of the header and its hash, once they make sense for a file of `size_bytes`."""
    if head[: len(PLAN_MAGIC)] != PLAN_MAGIC:
        raise _foreign(head, size_bytes, where)
    if len(head) < PREFIX.size:
        raise damaged(f"{size_bytes} bytes are too few", where)
    _, version, header_size, file_size, digest = PREFIX.unpack_from(head)
    if version > FORMAT_VERSION:
        raise NewerPlanError(
            f"headrace plan format {version} ≠ {FORMAT_VERSION}: a newer headrace wrote it, whose "
            "layout this one does not know",
            where=where,
            fix="update headrace, or let it build an engine of its own beside this one",
        )
    if version < FORMAT_VERSION:
        raise EngineError(
            f"headrace plan format {version} ≠ {FORMAT_VERSION}: an older headrace wrote it, whose "
            "layout is not read any more",
            where=where,
            fix=_REBUILD,
        )
    if file_size != size_bytes:
        what = "truncated" if size_bytes < file_size else "too long"
        raise damaged(f"{what}, {size_bytes} of {file_size} bytes", where)
    if file_size > MAX_PLAN_BYTES or header_size > min(MAX_HEADER_BYTES, size_bytes - PREFIX.size):
        raise damaged(f"a header of {header_size} bytes in a file of {size_bytes}", where)
    return header_size, digest


def checked_header(data: bytes, digest: bytes, where: str) -> PlanHeader:
    """The header of a plan, once its hash and every value in it are right.

    Raises:
        EngineError: it is damaged, or a newer headrace wrote it.
    """
    if bytes.fromhex(sha256_of(data)) != digest:
        raise damaged("the header does not match its sha256", where)
    try:
        return PlanHeader.from_json(data)
    except RecordError as error:
        if error.unknown and (writer := _writer(data)) != headrace.__version__:
            raise NewerPlanError(
                f"headrace {writer} wrote it, with {error.place}, unknown to headrace "
                f"{headrace.__version__}",
                where=where,
                fix="update headrace, or let it build an engine of its own beside this one",
            ) from error
        raise damaged(f"{error.place or 'header'}: {error.found}", where) from error


def _writer(header: bytes) -> str:
    """Version of the headrace that wrote a header; this one's if it names none."""
    try:
        version = json.loads(header)["headrace"]
    except (ValueError, KeyError, RecursionError):  # damaged behind the unknown field
        version = None
    return version[:40] if isinstance(version, str) else headrace.__version__


def _foreign(head: bytes, size_bytes: int, where: str) -> EngineError:
    from headrace._core.formats.tensorrt import built_by, is_tensorrt_engine

    if is_tensorrt_engine(head, size_bytes):
        return EngineError(
            f"is a TensorRT engine: code for one GPU model, built by {built_by(head)}",
            where=where,
            expected="a plan built by headrace",
            fix="give onnx-file=<the ONNX model it was built from>: "
            "headrace builds its own engine and leaves this one alone",
        )
    error = formats.foreign_model(Path(where), "a plan built by headrace")
    if error is not None and error.data["format"] not in ("onnx", "tensorrt"):
        return EngineError(error.finding)
    words = formats.looks_like(head, size_bytes)
    return EngineError(
        f"is not a headrace plan: it looks like {words}" if words else "is not a headrace plan",
        where=where,
        expected="a plan built by headrace",
        fix="name the model as onnx-file and let headrace build the engine",
    )


def damaged(what: str, where: str) -> EngineError:
    """Make the error about a plan with wrong bytes."""
    return EngineError(f"damaged: {what}", where=where, fix=_REBUILD)
