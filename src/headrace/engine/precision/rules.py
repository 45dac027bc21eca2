"""Rules of a build beside its precision: INT8 scales, layers' precisions, types of outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import field

from headrace._core.files import sha256_of
from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace.engine.machine import exact_int8
from headrace.engine.plan_header import FileRecord, Precision, PrecisionRecord

if TYPE_CHECKING:
    from headrace.engine.precision.cache import CalibrationTable
    from headrace.engine.precision.choice import Int8Choice, TensorChoice
    from headrace.network.network import Network

_LONGEST = 4096
_QUANTISING = ("DequantizeLinear", "QLinearConv", "QLinearMatMul")

OWN_SCALES = Finding(
    "int8-own-scales",
    "info",
    "the scales are in the model (QuantizeLinear): it runs as it is, without a calibration table",
)
"""The graph stays as it is: TensorRT, too, reads no table beside such nodes."""


class Difference(NamedTuple):
    """Why a plan is not the one that is asked for; `of_content`: it may serve another config."""

    text: str
    of_content: bool = False


class PrecisionRules(PlainRecord, frozen=True):
    """Scales, pinned layers and output types that a graph in another precision is made with.

    Attributes:
        table: scales of activations.
        table_name: the table's file, relative to the model's folder.
        pins: layer -> `fp32`, `fp16` or `int8`.
        outputs: output -> `fp32`, `fp16`, `int32` or `int8`.
        choice: what was chosen with the table; None for the table alone.
    """

    table: CalibrationTable | None = None
    table_name: str = "table"
    pins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    outputs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    choice: Int8Choice | None = None

    @property
    def keep(self) -> tuple[str, ...]:
        """Layers that the choice keeps in FP32 and no pin puts elsewhere."""
        return tuple(n for n in self.choice.keep if n not in self.pins) if self.choice else ()

    @property
    def tensors(self) -> Mapping[str, TensorChoice]:
        """Activations that the choice quantises in its own way."""
        return self.choice.tensors if self.choice else {}

    @property
    def scales(self) -> Mapping[str, float]:
        """Map each activation to its scale; empty without a table."""
        return {} if self.table is None else self.table.calibrated

    def without_pins(self, names: Collection[str]) -> PrecisionRules:
        """Copy the rules without the pins of some layers."""
        return replace(self, pins={n: p for n, p in self.pins.items() if n not in names})

    def needs_table(self, precision: Precision) -> bool:
        """True if the precision, a pin or an output cannot be made without the table."""
        return (
            precision in ("int8", "best")
            or "int8" in self.pins.values()
            or "int8" in self.outputs.values()
        )

    def record(self, asked: Precision, weight_bits: Literal[7, 8] = 8) -> PrecisionRecord | None:
        """The rules as a plan keeps them; None if there is nothing but FP32."""
        if asked == "fp32" and not self.pins and not self.outputs:
            return None
        record = None
        if self.table is not None:
            data = self.table.to_bytes()
            text = self.table_name.encode(errors="surrogateescape").decode(errors="replace")
            record = FileRecord(name=text, size_bytes=len(data), sha256=sha256_of(data))
        return PrecisionRecord(
            asked=asked,
            table=record,
            layers=_or_digest(";".join(f"{n}:{p}" for n, p in sorted(self.pins.items()))),
            outputs=_or_digest(
                ";".join(f"{name}:{kind}" for name, kind in sorted(self.outputs.items()))
            ),
            weight_bits=weight_bits,
            choice=sha256_of(self.choice.to_bytes()) if self.choice else None,
        )

    def difference(
        self, built: PrecisionRecord | None, built_for: Precision, required: Precision, runtime: str
    ) -> Difference | None:
        """The first difference from the rules that a plan was built by; None if there is none.

        The plan was asked for `built_for` and is run by `runtime`; `required` is asked for now.
        """
        if built_for != required:
            return Difference(f"{built_for} ≠ {required}")
        nothing = PrecisionRecord(asked=required)
        a, b = built or nothing, self.record(required) or nothing
        for key, there, here in (
            ("layer-device-precision", a.layers, b.layers),
            ("output-io-formats", a.outputs, b.outputs),
        ):
            if there != here:
                return Difference(f"{key}={there[:80]} ≠ {here[:80]}", of_content=True)
        if (a.table and a.table.sha256) != (b.table and b.table.sha256):
            if a.table and b.table and a.table.name == b.table.name:
                return Difference("int8-calib-file changed")
            files = [record.table.name if record.table else "" for record in (a, b)]
            return Difference(f"int8-calib-file={files[0]} ≠ {files[1]}", of_content=True)
        if a.table and a.choice != b.choice:
            return Difference("what headrace calibrate chose beside int8-calib-file changed")
        return wrong_here(a, runtime)


def wrong_here(record: PrecisionRecord | None, runtime: str) -> Difference | None:
    """Why a plan would compute wrong results on this machine; None if it would not."""
    if record is None or record.table is None or exact_int8():
        return None
    if runtime == "openvino" and record.weight_bits == 8:
        return Difference("its INT8 weights overflow on a CPU without VNNI")
    return None


def has_own_scales(network: Network) -> bool:
    """True for a network with nodes that quantise."""
    return any(node.op_type in _QUANTISING for node in network.model.graph.all_nodes())


def file_has_own_scales(path: Path | None) -> bool:
    """True for an ONNX file that names an operator that quantises; it is not parsed."""
    if path is None or not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return any(data.find(name.encode()) >= 0 for name in _QUANTISING)


def _or_digest(text: str) -> str:
    data = text.encode(errors="surrogateescape").decode(errors="replace")
    return data if len(data) <= _LONGEST else f"{data[:64]}… {sha256_of(data.encode())}"
