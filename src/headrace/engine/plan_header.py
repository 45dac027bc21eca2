"""The header of a plan: JSON, strictly typed, no code."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from headrace._core.findings import Finding
from headrace._core.json_record import JsonRecord, Seconds
from headrace.engine.plugin_graph.plugin_record import Name, PluginRecord, Text
from headrace.engine.tactic import Tactic
from headrace.network.tensor_spec import TensorSpec

_BY_CODE = "built by code"
"""Beginning of the decision on a batch that could not be freed."""
MAX_BATCH = 1024  # Source: config facts 2.1, batch-size

Precision = Literal["fp32", "fp16", "bf16", "int8", "best"]
"""`best` is INT8 with FP16 around it."""

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}\\Z")]
Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1, le=65536)]
Outcome = Literal["built", "measured", "ok", "wrong", "failed", "crashed", "hung", "untried"]
Dim = Annotated[int, Meta(ge=0, lt=2**31)]


class FileRecord(JsonRecord, frozen=True, kw_only=True):
    """A file that went in: `name` relative to the model's folder."""

    name: Name
    size_bytes: Bytes
    sha256: Sha256


class ModelRecord(FileRecord, frozen=True, kw_only=True):
    """The model file, and all else that went into the network.

    Attributes:
        external: the external data that the model file names.
        companions: further files, by the config key that names them.
        recipe: what else the network depends on, such as the outputs that were asked for.
    """

    external: tuple[FileRecord, ...] = ()
    companions: tuple[FileRecord, ...] = ()
    recipe: Text = ""

    @classmethod
    def of_code(cls, size_bytes: int, sha256: str) -> ModelRecord:
        """Of a network that was built by code: no file to compare it with."""
        return cls(name="network", size_bytes=size_bytes, sha256=sha256, recipe=_BY_CODE)

    @property
    def by_code(self) -> bool:
        """There is no file that it could be compared with."""
        return self.recipe == _BY_CODE


class RuntimeRecord(JsonRecord, frozen=True, kw_only=True):
    """The backend that built the plan."""

    name: Name
    version: Text


class TensorRecord(JsonRecord, frozen=True, kw_only=True):
    """An input or output; free axes are null or a name."""

    name: Name
    dtype: Literal[
        "float16", "float32", "float64", "bool",
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "object",  # text
    ]  # fmt: skip
    shape: Annotated[tuple[Dim | Text | None, ...], Meta(max_length=64)]

    @classmethod
    def of(cls, spec: TensorSpec) -> TensorRecord:
        """Record a tensor."""
        return cls(name=spec.name, dtype=spec.dtype.name, shape=spec.shape)  # type: ignore[arg-type]

    @property
    def spec(self) -> TensorSpec:
        """The tensor."""
        return TensorSpec(self.name, np.dtype(self.dtype), self.shape)


class TacticRecord(JsonRecord, frozen=True, kw_only=True):
    """One way of running, and the outcome of trying it.

    Attributes:
        runtime, version: the backend.
        threads, streams: of one run, and runs at once; null leaves them to whoever runs the plan.
        optimization: how far the runtime may rewrite the graph.
        spinning: idle threads wait busily.
        graph: all kernels of a run are launched at once, as a CUDA graph.
        amx: OpenVINO may use the processor's tiles.
        load_s: seconds to get ready; null if it never was.
        latency_ms: median time of one run, with `streams` of them at once.
        cpu_ms: processor time of one run, of all its threads: other work on the machine adds little
            to it.
        items_per_s: throughput, likewise.
        error: greatest difference from the reference, relative to each output's greatest value.
        outcome: `measured` in turns with the other best ones; `ok`: measured once, and left behind;
            `wrong` results; `failed` with an error; `crashed` or `hung` in its process; `untried`
            for lack of time; `built`: loaded, not timed.
        note: what was wrong.
        chosen: the plan is run this way.
    """

    runtime: Name
    version: Text = ""
    precision: Precision
    threads: Count | None = None
    streams: Count | None = None
    optimization: Literal["none", "basic", "extended", "all"] = "all"
    spinning: bool = False
    graph: bool = False
    amx: bool = True
    load_s: Seconds | None
    latency_ms: Seconds | None = None
    cpu_ms: Seconds | None = None
    items_per_s: Seconds | None = None
    error: Seconds | None = None
    outcome: Outcome = "built"
    note: Text = ""
    chosen: bool

    @classmethod
    def of(cls, tactic: Tactic, **outcome: Any) -> TacticRecord:
        """Record a way of running, and its outcome."""
        return cls(**asdict(tactic), **outcome)

    @property
    def tactic(self) -> Tactic:
        """The way of running that this is about."""
        return Tactic(
            self.runtime,
            self.threads,
            self.streams,
            self.optimization,
            self.spinning,
            self.graph,
            self.amx,
        )


class TuningRecord(JsonRecord, frozen=True, kw_only=True):
    """How the tactics were compared.

    Attributes:
        objective: what was to be best.
        items: batch of each run.
        machine, cores: where it was done.
        budget_s, spent_s: time given and taken.
        cached: the times are those of an earlier build of the same model on this machine.
    """

    objective: Literal["throughput", "latency"]
    items: Annotated[int, Meta(ge=1, le=MAX_BATCH)]
    machine: Text
    cores: Count
    budget_s: Seconds
    spent_s: Seconds
    cached: bool


class PrecisionRecord(JsonRecord, frozen=True, kw_only=True):
    """The inputs that decided the precision, so that a change of them is seen.

    Attributes:
        asked: what was to be built, as the file's name says.
        table: the calibration table; null if none was used.
        layers: layers pinned to a precision, as `layer-device-precision` has them.
        outputs: types of outputs, as `output-io-formats` has them.
        weight_bits: of INT8 weights: 7 for CPUs whose sums of products overflow with 8.
        choice: SHA-256 of what was chosen with the table; null for the table alone.
    """

    asked: Precision
    table: FileRecord | None = None
    layers: Text = ""
    outputs: Text = ""
    weight_bits: Literal[7, 8] = 8
    choice: Sha256 | None = None


class BlobRecord(JsonRecord, frozen=True, kw_only=True):
    """A run of bytes after the header; blobs follow each other without gaps."""

    name: Name
    size_bytes: Bytes
    sha256: Sha256


class PlanHeader(JsonRecord, frozen=True, kw_only=True):
    """The header of a plan.

    Attributes:
        headrace: version of headrace that wrote it.
        runtime: backend it was built with.
        precision: the lowest that is really in the graph.
        rules: what decided it; null: FP32 and nothing else was asked for.
        batched: axis 0 of every binding is the batch; otherwise axes mean nothing to headrace.
        max_batch: most items of one `Session.run`.
        fixed_batch: items of one run of the runtime, if the model fixes them.
        infer_dims: channels, height, width it was built for; null: the model's own.
        model: the files that went in.
        inputs, outputs: bindings in order.
        tactics: ways of running that were tried; the plan is run as the chosen one says.
        tuning: how they were compared; null if nothing was measured.
        plugins: layers that plugins compute.
        decisions: what the build decided.
        blobs: what follows the header; `model` is the ONNX message, all weights inside.
    """

    headrace: Text
    runtime: RuntimeRecord
    precision: Precision
    batched: bool = True
    rules: PrecisionRecord | None = None
    max_batch: Annotated[int, Meta(ge=1, le=MAX_BATCH)]
    fixed_batch: Annotated[int, Meta(ge=1, le=MAX_BATCH)] | None
    infer_dims: tuple[Dim, Dim, Dim] | None
    model: ModelRecord
    inputs: tuple[TensorRecord, ...]
    outputs: Annotated[tuple[TensorRecord, ...], Meta(min_length=1)]
    tactics: tuple[TacticRecord, ...] = ()
    tuning: TuningRecord | None = None
    plugins: tuple[PluginRecord, ...] = ()
    decisions: tuple[Finding, ...] = ()
    blobs: Annotated[tuple[BlobRecord, ...], Meta(min_length=1)]

    @property
    def asked(self) -> Precision:
        """The precision that was to be built."""
        return "fp32" if self.rules is None else self.rules.asked

    def __post_init__(self) -> None:
        if self.batched and not self.inputs:
            raise ValueError("no inputs, though axis 0 is the batch")
