"""Everything that says what a config's model computes in, and how it is written into the graph."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from noria._core.notices import Notice
from noria.config.enums import NetworkMode
from noria.config.model_files import model_paths
from noria.engine.plan_header import FileRecord, Precision, PrecisionRecord
from noria.engine.precision.cache import CalibrationTable
from noria.engine.precision.capability import exact_int8, fast_fp16
from noria.engine.precision.chain import choose
from noria.engine.precision.layer_precision import dla_layers, layer_precisions
from noria.engine.precision.outputs import as_text, output_types

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

MODES: Mapping[NetworkMode, Precision] = {
    NetworkMode.FP32: "fp32",
    NetworkMode.INT8: "int8",
    NetworkMode.FP16: "fp16",
    NetworkMode.BEST: "best",
}
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class PrecisionRules:
    """What decides beside the precision itself.

    Attributes:
        table: scales of activations.
        table_name: the file it is from, as seen from the model's folder.
        pins: layer -> `fp32`, `fp16` or `int8`.
        outputs: output -> `fp32`, `fp16`, `int32` or `int8`.
    """

    table: CalibrationTable | None = None
    table_name: str = "table"
    pins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    outputs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def scales(self) -> Mapping[str, float]:
        """Activation -> scale of a value; empty without a table."""
        return {} if self.table is None else self.table.calibrated

    def without_pins(self, names: Collection[str]) -> PrecisionRules:
        """The same without some layers."""
        return replace(self, pins={n: p for n, p in self.pins.items() if n not in names})

    def needs_table(self, precision: Precision) -> bool:
        """Whether something cannot be done without the table."""
        return (
            precision in ("int8", "best")
            or "int8" in self.pins.values()
            or "int8" in self.outputs.values()
        )

    def record(self, asked: Precision, weight_bits: Literal[7, 8] = 8) -> PrecisionRecord | None:
        """For a plan; None if there is nothing but FP32."""
        if asked == "fp32" and not self.pins and not self.outputs:
            return None
        record = None
        if self.table is not None:
            data = self.table.to_bytes()
            text = self.table_name.encode(errors="surrogateescape").decode(errors="replace")
            record = FileRecord(name=text, size_bytes=len(data), sha256=sha256(data).hexdigest())
        return PrecisionRecord(
            asked=asked,
            table=record,
            layers=_short(";".join(f"{n}:{p}" for n, p in sorted(self.pins.items()))),
            outputs=_short(as_text(self.outputs)),
            weight_bits=weight_bits,
        )

    def why_not(
        self, have: PrecisionRecord | None, had: Precision, wanted: Precision, runtime: str
    ) -> str | None:
        """What differs from what a plan was built by; None if nothing does.

        Args:
            have, had: the plan's rules, and the precision it was asked for.
            wanted: the precision that is asked for.
            runtime: of the plan.
        """
        if had != wanted:
            return f"{had} ≠ {wanted}"
        nothing = PrecisionRecord(asked=wanted)
        a, b = have or nothing, self.record(wanted) or nothing
        for key, there, here in (
            ("layer-device-precision", a.layers, b.layers),
            ("output-io-formats", a.outputs, b.outputs),
        ):
            if there != here:
                return f"{key}={there[:80]} ≠ {here[:80]}"
        if (a.table and a.table.sha256) != (b.table and b.table.sha256):
            if a.table and b.table and a.table.name == b.table.name:
                return "int8-calib-file changed"
            files = [record.table.name if record.table else "" for record in (a, b)]
            return f"int8-calib-file={files[0]} ≠ {files[1]}"
        return why_wrong_here(a, runtime)


def why_wrong_here(record: PrecisionRecord | None, runtime: str) -> str | None:
    """Why a plan would compute wrongly on this machine."""
    if record is None or record.table is None or exact_int8():
        return None
    if runtime == "openvino" and record.weight_bits == 8:
        return "its INT8 weights overflow on a CPU without VNNI"
    return None


Decided = tuple[Precision, PrecisionRules, list[Notice]]


def rules_of(cfg: ModelConfig, asked: Precision) -> tuple[PrecisionRules, list[Notice]]:
    """The rules of a config, the table read if it has a say; and what to tell.

    Raises:
        ConfigError: a bad item in `layer-device-precision` or `output-io-formats`.
        EngineError: `int8-calib-file` has a say, and is no calibration table.
    """
    outputs, notices = output_types(cfg)
    rules = PrecisionRules(pins=layer_precisions(cfg), outputs=outputs)
    if on_dla := dla_layers(cfg):
        text = f"layer-device-precision: there is no DLA here for {', '.join(on_dla[:5])}"
        notices.append(Notice("info", text, str(cfg.path)))
    path = cfg.int8_calib_file
    # FP16 asks it which activations are beyond FP16
    useful = asked == "fp16" or rules.needs_table(asked)
    if path is not None and (asked in ("int8", "best") or (useful and path.is_file())):
        # from there, so that the model may move with what belongs to it
        model = next(iter(model_paths(cfg).values()), cfg.path)
        name = os.path.relpath(path, model.parent)
        rules = replace(rules, table=CalibrationTable.load(path), table_name=name)
    return rules, notices


def for_export(
    cfg: ModelConfig, demanded: Precision | None = None
) -> tuple[Precision, list[Notice]]:
    """The precision to export a config's model in: `network-mode`, or what is demanded, whatever
    this machine computes faster; FP16 in the place of INT8 without scales, with a warning."""
    asked: Precision = demanded or MODES[cfg.network_mode]
    missing = why_no_table(cfg)
    if asked not in ("int8", "best") or missing is None:
        return asked, []
    text = f"{_key(cfg, demanded)}: INT8 takes the scales of activations, and {missing}"
    return "fp16", [Notice("warning", f"{text}: FP16 is written", str(cfg.path))]


def _key(cfg: ModelConfig, demanded: Precision | None) -> str:
    return f"--precision {demanded}" if demanded else f"network-mode={int(cfg.network_mode)}"


def why_no_table(cfg: ModelConfig) -> str | None:
    """Why the config's calibration table cannot be read; None if it can."""
    path = cfg.int8_calib_file
    if path is None:
        return "int8-calib-file is not given"
    if not path.is_file():
        return f"there is no file {path.name} (int8-calib-file)"
    return None if os.access(path, os.R_OK) else f"{path.name} cannot be read (int8-calib-file)"


def decide(
    cfg: ModelConfig,
    runtimes: Sequence[str],
    *,
    demanded: Precision | None = None,
    tuned: bool = False,
) -> Decided:
    """What to build for a config.

    Args:
        runtimes: the backend; with `tuned` all that may be chosen.
        demanded: goes before `network-mode`, and is built whether it is faster or not.
        tuned: a tuner chooses among the precisions that `best` stands for.

    Returns:
        The precision, its rules, and what to tell.

    Raises:
        ConfigError, EngineError: see `rules_of`.
    """
    asked: Precision = demanded or MODES[cfg.network_mode]
    missing = why_no_table(cfg)
    precision, notice = choose(
        asked, runtimes, no_table=missing, demanded=demanded is not None, tuned=tuned
    )
    rules, notices = rules_of(cfg, precision)
    if notice is not None:
        origin = cfg.origin("network_mode")
        at = str(origin) if origin.kind == "file" and not demanded else str(cfg.path)
        notices.insert(0, Notice(notice.level, f"{_key(cfg, demanded)}: {notice.message}", at))
    if rules.table is None and (rest := [n for n, p in rules.pins.items() if p == "int8"]):
        text = f"layer-device-precision: int8 needs a calibration table: {missing}"
        notices.append(Notice("warning", text, str(cfg.path)))
        rules = rules.without_pins(rest)
    if demanded is None and not any(fast_fp16(r) for r in runtimes):
        halves = [n for n, p in rules.pins.items() if p == "fp16"]
        if halves:
            text = f"layer-device-precision: FP32 for {', '.join(halves[:5])}"
            text += "; FP16 is not computed faster here"
            notices.append(Notice("info", text, str(cfg.path)))
            rules = replace(
                rules, pins={n: "fp32" if p == "fp16" else p for n, p in rules.pins.items()}
            )
    return precision, rules, notices


def _short(text: str) -> str:
    data = text.encode(errors="surrogateescape").decode(errors="replace")
    if len(data) <= _LONGEST:
        return data
    return f"{data[:64]}… {sha256(data.encode()).hexdigest()}"
