"""Engines that TensorRT built: recognised, and run by TensorRT where it is installed."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import noria
from noria._core.errors import EngineError
from noria.engine.backends import CompilingBackend, RunOptions, get_backend
from noria.engine.plan import COMPILED_BLOB, MODEL_BLOB, Plan, blob_record
from noria.engine.plan_header import (
    FileRecord,
    ModelRecord,
    PlanHeader,
    Precision,
    RuntimeRecord,
    TacticRecord,
    TensorRecord,
)
from noria.network.sniff import HEAD_BYTES, is_tensorrt_engine

_TAGS = (b"ftrt", b"ptrt", b"vtrt")
_MAX_BATCH = 1024


def is_tensorrt_file(path: Path) -> bool:
    """Whether `path` is an engine of TensorRT's, bare or behind the metadata some exporters add."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            if head[:4] in _TAGS or is_tensorrt_engine(head, path.stat().st_size):
                return True
            start = _wrapped_at(head, path.stat().st_size)
            file.seek(start)
            return bool(start) and file.read(4) in _TAGS
    except OSError:
        return False


def _wrapped_at(head: bytes, size: int) -> int:
    """Where the engine begins behind a length and JSON; 0 if there is no such thing."""
    if len(head) < 5 or head[4:5] != b"{":
        return 0
    start = 4 + int(struct.unpack_from("<I", head)[0])
    return start if start < min(size, 1 << 20) else 0


def without_wrapper(data: bytes) -> bytes:
    """The engine alone."""
    start = _wrapped_at(data[:HEAD_BYTES], len(data))
    return data[start:] if start and data[start : start + 4] in _TAGS else data


def built_by(data: bytes) -> str:
    """Which TensorRT built an engine, as far as its first bytes tell. Source: TensorRT facts 5."""
    if data[:4] == b"vtrt":
        return "TensorRT-RTX"
    if data[:4] == b"ftrt" and len(data) >= 28:
        return "TensorRT " + ".".join(map(str, data[24:28]))
    return "TensorRT 8.5 or older"


def plan_from_tensorrt(path: Path) -> Plan:
    """The engine at `path` as a plan in memory, run by TensorRT.

    Raises:
        EngineError: TensorRT is not installed, or cannot run it here.
    """
    try:
        data = without_wrapper(path.read_bytes())
    except OSError as error:
        raise EngineError(f"cannot be read: {error.strerror}", where=str(path)) from error
    who = built_by(data)
    what = f"is a TensorRT engine: code for one GPU model, built by {who}"
    try:
        backend = get_backend("tensorrt")
        if reason := backend.why_not():
            raise EngineError(reason)
        assert isinstance(backend, CompilingBackend)
        runner = backend.open(b"", RunOptions(), data)
    except EngineError as error:
        raise EngineError(
            f"{what}; it cannot be run here: {error.found}", where=str(path)
        ) from error
    shape = runner.inputs[0].shape
    fixed = shape[0] if shape and isinstance(shape[0], int) else None
    most = fixed or getattr(runner, "max_batch", None) or _MAX_BATCH
    precision = _named_precision(path)
    record = FileRecord(
        name=path.name, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
    )
    blobs = {MODEL_BLOB: b"", COMPILED_BLOB: data}
    header = PlanHeader(
        noria=noria.__version__,
        runtime=RuntimeRecord(name=backend.name, version=backend.version()),
        precision=precision,
        max_batch=min(most, _MAX_BATCH),
        fixed_batch=fixed,
        infer_dims=None,
        model=ModelRecord(**record.model_dump()),
        inputs=tuple(TensorRecord.of(s) for s in runner.inputs),
        outputs=tuple(TensorRecord.of(s) for s in runner.outputs),
        tactics=(
            TacticRecord(
                runtime=backend.name, version=backend.version(), precision=precision,
                load_s=None, chosen=True,
            ),
        ),
        blobs=tuple(blob_record(name, blob) for name, blob in blobs.items()),
    )  # fmt: skip
    runner.close()
    return Plan(header, blobs, path=path)


def _named_precision(path: Path) -> Precision:
    """What the file's name says, as nvinfer names engines; nothing in the file says it."""
    words: tuple[Precision, ...] = ("fp16", "int8", "best")
    return next((word for word in words if path.stem.endswith(f"_{word}")), "fp32")
