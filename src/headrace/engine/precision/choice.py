"""The layers and ranges that `headrace calibrate` chose, and the agreement it measured.

TensorRT reads the table alone; this file, `<table>.json`, holds what the table's format cannot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, field
from msgspec.json import encode, format

from headrace._core.errors import EngineError
from headrace._core.files import os_errors, os_reason, sha256_of, write_atomically
from headrace._core.findings import Finding
from headrace._core.json_record import JsonRecord, RecordError
from headrace.engine.plan_header import Sha256
from headrace.engine.plugin_graph.plugin_record import Name, Text
from headrace.engine.precision.cache import MAX_TABLE_BYTES, CalibrationTable

ENOUGH = 0.95
"""Agreement with FP32 below which INT8 is warned of."""

Whole = Annotated[int, Meta(ge=0, le=2**53)]
Finite = Annotated[float, Meta(ge=-3.4e38, le=3.4e38)]
Factor = Annotated[float, Meta(ge=1e-9, le=1e9)]


class Agreement(JsonRecord, frozen=True, kw_only=True):
    """Boxes of FP32 and INT8 on the same images; equal: same class, IoU of at least 0.5.

    Attributes:
        thresholds: at how many around the config's the boxes are counted, all of them together.
    """

    runtime: Text
    weight_bits: Annotated[int, Meta(ge=7, le=8)]
    frames: Whole
    fp32: Whole
    int8: Whole
    equal: Whole
    thresholds: Annotated[int, Meta(ge=1, le=99)] = 1

    @property
    def share(self) -> float:
        """Equal boxes by the mean of FP32's and INT8's numbers (the F1 score); 1 without boxes."""
        both = self.fp32 + self.int8
        return 2 * self.equal / both if both else 1.0

    @property
    def text(self) -> str:
        """The figure in words."""
        text = f"INT8 agrees with FP32 on {100 * self.share:.0f} % of the boxes ({self.equal} of "
        text += f"FP32's {self.fp32} found, {self.int8 - self.equal} more; {self.frames} frames on "
        text += f"{self.runtime}"
        return text + (f", at {self.thresholds} thresholds)" if self.thresholds > 1 else ")")


class OutputSignal(JsonRecord, frozen=True, kw_only=True):
    """Outputs of INT8 beside FP32's on the same images, of models without boxes.

    Attributes:
        decibels: signal to noise of the worst output.
    """

    runtime: Text
    images: Whole
    decibels: Finite

    @property
    def text(self) -> str:
        """The figure in words."""
        text = f"INT8's outputs have {self.decibels:.0f} dB of signal to noise beside FP32's (the "
        text += f"worst one; {self.images} images on {self.runtime}); boxes are counted for "
        return f"{text}detectors on whole frames only"


class TensorChoice(JsonRecord, frozen=True, kw_only=True):
    """How an activation is quantised.

    Attributes:
        low, high: the range of its bytes, 0 included, behind the factors.
        factors: per channel (axis 1), multiplied into it before it is rounded and taken out of
            the weights behind it; empty for none.
        directions, deviations: what the channels hold, without the factors: the second moment is
            that of the directions, each a value per channel, and of the deviations from them.
            Weights are rounded so that their errors cancel on such values; empty: to the nearest.
    """

    low: Annotated[float, Meta(ge=-3.4e38, le=0)]
    high: Annotated[float, Meta(ge=0, le=3.4e38)]
    factors: tuple[Factor, ...] = ()
    directions: tuple[tuple[Finite, ...], ...] = ()
    deviations: tuple[Finite, ...] = ()

    @property
    def scale(self) -> float:
        """The scale of symmetric bytes that hold the range."""
        return max(-self.low, self.high) / 127


class Int8Choice(JsonRecord, frozen=True, kw_only=True):
    """Layers in FP32, ranges of activations, and the agreement measured with both.

    Attributes:
        table: SHA-256 of the calibration table that it belongs to.
        keep: layers to keep in FP32.
        tensors: activation -> how it is quantised.
        agreement: None if it was not measured.
        outputs: instead of it for models without boxes.
    """

    table: Sha256
    keep: tuple[Name, ...] = ()
    tensors: dict[Name, TensorChoice] = field(default_factory=dict)
    agreement: Agreement | None = None
    outputs: OutputSignal | None = None

    def to_bytes(self) -> bytes:
        """The file."""
        return format(encode(self), indent=1) + b"\n"

    def save(self, table: Path) -> Path:
        """Write it beside a table, whole or not at all.

        Raises:
            EngineError: it cannot be written.
        """
        path = choice_path(table)
        with os_errors(EngineError, "cannot be written", path):
            write_atomically(path, [self.to_bytes()])
        return path

    def notice(self, where: str) -> Finding:
        """Return the line that a build or a run prints."""
        if self.outputs is not None:
            data = {"decibels": self.outputs.decibels}
            return Finding("int8-agreement", "info", self.outputs.text, where, data=data)
        if self.agreement is None:
            return Finding(
                "int8-agreement", "info", "how far INT8 agrees with FP32 was not measured", where
            )
        text = self.agreement.text
        if self.keep:
            text += f", {len(self.keep)} layers in FP32"
        if self.agreement.share >= ENOUGH:
            return Finding("int8-agreement", "info", text, where)
        text += f": less than {100 * ENOUGH:.0f} %; more or other images for headrace calibrate, "
        text += "or network-mode=0"
        return Finding("int8-far-from-fp32", "warning", text, where)


def choice_path(table: Path) -> Path:
    """The file beside a table."""
    return table.with_name(f"{table.name}.json")


def choice_of(table: CalibrationTable, path: Path) -> tuple[Int8Choice | None, Finding]:
    """Read the choice beside a calibration table, with the notice for it.

    Raises:
        EngineError: the file is there and is none, or cannot be read.
    """
    beside = choice_path(path)
    if not beside.is_file():
        text = "how far INT8 agrees with FP32 is not known: headrace calibrate measures it"
        return None, Finding("int8-agreement", "info", text, str(path))
    try:
        data = beside.read_bytes()
        if len(data) > MAX_TABLE_BYTES:
            raise EngineError(f"{len(data):,} bytes", where=str(beside),
                              expected=f"at most {MAX_TABLE_BYTES:,}")  # fmt: skip
        choice = Int8Choice.from_json(data)
    except (OSError, RecordError) as error:
        reason = error.found if isinstance(error, RecordError) else os_reason(error)
        raise EngineError(
            f"is not what headrace calibrate writes beside a table: {reason}",
            where=str(beside),
            fix=f"headrace calibrate writes it; without the file {path.name} is used alone",
        ) from error
    if choice.table != sha256_of(table.to_bytes()):
        text = f"belongs to another {path.name}: not used; headrace calibrate measures this table"
        return None, Finding("table-of-other-model", "warning", text, str(beside))
    return choice, choice.notice(str(path))
