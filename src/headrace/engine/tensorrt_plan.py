"""Plans of engines that TensorRT built: TensorRT runs them where it is installed."""

from __future__ import annotations

from pathlib import Path

import headrace
from headrace._core.errors import EngineError
from headrace._core.files import os_errors, sha256_of
from headrace._core.formats.tensorrt import (
    built_by,
    read_engine_facts,
    tensors_text,
    without_wrapper,
)
from headrace.engine.backends import CompilingBackend, RunnerOptions, get_backend
from headrace.engine.plan import COMPILED_BLOB, MODEL_BLOB, Plan, blob_record
from headrace.engine.plan_header import (
    FileRecord,
    ModelRecord,
    PlanHeader,
    Precision,
    RuntimeRecord,
    TacticRecord,
    TensorRecord,
)

_MAX_BATCH = 1024


def plan_from_tensorrt(path: Path) -> Plan:
    """Read the engine at `path` as a plan in memory, run by TensorRT.

    Raises:
        EngineError: TensorRT is not installed, or cannot run it here.
    """
    with os_errors(EngineError, "cannot be read", path):
        data = without_wrapper(path.read_bytes())
    what = f"is a TensorRT engine: code for one GPU model, built by {built_by(data)}"
    try:
        backend = _usable_tensorrt()
        runner = backend.open(b"", RunnerOptions(), data)
    except EngineError as error:
        facts = read_engine_facts(path)
        if facts.inputs and facts.outputs:
            what += f"; it takes {tensors_text(facts.inputs)} and gives "
            what += tensors_text(facts.outputs)
        raise EngineError(
            f"{what}; it cannot be run here: {error:brief}", where=str(path)
        ) from error
    shape = runner.inputs[0].shape
    fixed = shape[0] if shape and isinstance(shape[0], int) else None
    most = fixed or getattr(runner, "max_batch", None) or _MAX_BATCH
    precision = _named_precision(path)
    record = FileRecord(name=path.name, size_bytes=len(data), sha256=sha256_of(data))
    blobs = {MODEL_BLOB: b"", COMPILED_BLOB: data}
    header = PlanHeader(
        headrace=headrace.__version__,
        runtime=RuntimeRecord(name=backend.name, version=backend.version()),
        precision=precision,
        max_batch=min(most, _MAX_BATCH),
        fixed_batch=fixed,
        infer_dims=None,
        model=ModelRecord(**record.to_dict()),
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


def _usable_tensorrt() -> CompilingBackend:
    backend = get_backend("tensorrt")
    if reason := backend.why_not():
        raise EngineError(reason)
    assert isinstance(backend, CompilingBackend)
    return backend


def _named_precision(path: Path) -> Precision:
    """Read the precision from the file's name, as nvinfer names engines; the file has none."""
    words: tuple[Precision, ...] = ("fp16", "int8", "best")
    return next((word for word in words if path.stem.endswith(f"_{word}")), "fp32")
