"""The precision that a config asks for, and the rules that its keys add.

Keys: `network-mode`, `int8-calib-file`, `layer-device-precision`, `output-io-formats`.
Source: config facts 2.3, 5.3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace.config.enums import NetworkMode
from headrace.config.model_files import model_paths
from headrace.engine.plan_header import Precision
from headrace.engine.precision.capability import choose, fast_fp16
from headrace.engine.precision.rules import OWN_SCALES, PrecisionRules, file_has_own_scales

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig

MODES: Mapping[NetworkMode, Precision] = {
    NetworkMode.FP32: "fp32",
    NetworkMode.INT8: "int8",
    NetworkMode.FP16: "fp16",
    NetworkMode.BEST: "best",
}
_PRECISIONS = ("fp32", "fp16", "int8")
_DEVICES = ("gpu", "dla")
_OUTPUT_TYPES = ("fp32", "fp16", "int32", "int8")
_OUTPUT_FORMATS = ("chw", "chw2", "chw4", "hwc8", "chw16", "chw32")


class PrecisionDecision(PlainRecord, frozen=True):
    """The precision to build, its rules, and notices about both.

    `kind` is the precision that the engine's file is named by: that of a model with scales of its
    own is INT8, though nothing is written into its graph.
    """

    precision: Precision
    rules: PrecisionRules
    notices: list[Finding]
    kind: Precision


class ConfigPrecision:
    """Precision decisions of a config; each is made once per runtime.

    Args:
        cfg: the config.
        required: goes before `network-mode`, and is built whether it is faster or not.
        tuned_among: the runtimes that a tuner chooses among, for every decision; None: each
            decision is for its own runtime.
        tuned: True if a tuner chooses among the precisions that `best` stands for.
    """

    def __init__(
        self,
        cfg: ModelConfig,
        *,
        required: Precision | None = None,
        tuned_among: Sequence[str] | None = None,
        tuned: bool = False,
    ) -> None:
        self._cfg = cfg
        self._required = required
        self._tuned_among = tuned_among
        self._tuned = tuned
        self._decisions: dict[str, PrecisionDecision] = {}

    def decide(self, runtime: str) -> PrecisionDecision:
        """Decide which precision to build for a runtime.

        Raises:
            ConfigError, EngineError: see `precision_rules`.
        """
        decision = self._decisions.get(runtime)
        if decision is None:
            decision = self._decisions[runtime] = self._decide(self._tuned_among or [runtime])
        return decision

    def _decide(self, runtimes: Sequence[str]) -> PrecisionDecision:
        cfg, required = self._cfg, self._required
        asked: Precision = required or MODES[cfg.network_mode]
        missing = _why_no_table(cfg)
        full = cfg.fp16_simulation == "full"
        own_scales = asked in ("int8", "best") and file_has_own_scales(cfg.onnx_file)
        if own_scales:
            precision: Precision = "fp32"
            notice: Finding | None = OWN_SCALES
        else:
            precision, notice = choose(
                asked,
                runtimes,
                no_table=missing,
                required=required is not None,
                tuned=self._tuned,
                rounded=full,
            )
        rules, notices = precision_rules(cfg, precision)
        if notice is not None:
            at = str(cfg.path) if required else cfg.where("network_mode")
            notices.insert(0, notice.changed(prefix=f"{_key(cfg, required)}: ", where=at))
        if rules.table is None and (rest := [n for n, p in rules.pins.items() if p == "int8"]):
            text = f"layer-device-precision: int8 needs a calibration table: {missing}"
            notices.append(Finding("layer-precision", "warning", text, str(cfg.path)))
            rules = rules.without_pins(rest)
        if required is None and not full and not any(fast_fp16(r) for r in runtimes):
            halves = [n for n, p in rules.pins.items() if p == "fp16"]
            if halves:
                text = f"layer-device-precision: FP32 for {', '.join(halves[:5])}"
                text += "; FP16 is not computed faster here"
                notices.append(Finding("layer-precision", "info", text, str(cfg.path)))
                rules = replace(
                    rules, pins={n: "fp32" if p == "fp16" else p for n, p in rules.pins.items()}
                )
        return PrecisionDecision(precision, rules, notices, "int8" if own_scales else precision)


def export_precision(
    cfg: ModelConfig, required: Precision | None = None
) -> tuple[Precision, list[Finding]]:
    """Choose the precision to export a config's model in; this machine's speed does not count.

    It is `required`, else that of `network-mode`; without scales FP16 in the place of INT8, with a
    warning.
    """
    asked: Precision = required or MODES[cfg.network_mode]
    if asked not in ("int8", "best"):
        return asked, []
    if file_has_own_scales(cfg.onnx_file):
        text = "the scales are in the model (QuantizeLinear): its graph is written as it is"
        return "fp32", [Finding("int8-own-scales", "info", text, str(cfg.path))]
    missing = _why_no_table(cfg)
    if missing is None:
        return asked, []
    text = f"{_key(cfg, required)}: INT8 takes the scales of activations, and {missing}"
    text += ": FP16 is written"
    return "fp16", [Finding("int8-without-table", "warning", text, str(cfg.path))]


def precision_rules(cfg: ModelConfig, precision: Precision) -> tuple[PrecisionRules, list[Finding]]:
    """Read the rules of a config, with notices; the calibration table only where it is of use.

    Raises:
        ConfigError: a bad item in `layer-device-precision` or `output-io-formats`.
        EngineError: `int8-calib-file` is needed, and is no calibration table.
    """
    outputs, notices = _output_types(cfg)
    pins, on_dla = _layer_precisions(cfg)
    rules = PrecisionRules(pins=pins, outputs=outputs)
    if on_dla:
        text = f"layer-device-precision: there is no DLA here for {', '.join(on_dla[:5])}"
        notices.append(Finding("dla", "info", text, str(cfg.path)))
    path = cfg.int8_calib_file
    # FP16 asks it which activations are beyond FP16
    useful = precision == "fp16" or rules.needs_table(precision)
    if path is not None and (precision in ("int8", "best") or (useful and path.is_file())):
        # from there, so that the model may move with what belongs to it
        model = next(iter(model_paths(cfg).values()), cfg.path)
        name = os.path.relpath(path, model.parent)
        from headrace.engine.precision.cache import CalibrationTable
        from headrace.engine.precision.choice import choice_of

        table = CalibrationTable.load(path)
        rules = replace(rules, table=table, table_name=name)
        if precision in ("int8", "best"):
            choice, notice = choice_of(table, path)
            rules = replace(rules, choice=choice)
            notices.append(notice)
    return rules, notices


def _key(cfg: ModelConfig, required: Precision | None) -> str:
    return f"--precision {required}" if required else f"network-mode={int(cfg.network_mode)}"


def _why_no_table(cfg: ModelConfig) -> str | None:
    """Why the config's calibration table cannot be read; None if it can."""
    path = cfg.int8_calib_file
    if path is None:
        return "int8-calib-file is not given"
    if not path.is_file():
        return f"there is no file {path.name} (int8-calib-file)"
    return None if os.access(path, os.R_OK) else f"{path.name} cannot be read (int8-calib-file)"


def _layer_precisions(cfg: ModelConfig) -> tuple[dict[str, str], list[str]]:
    """Map layers of `layer-device-precision` to precisions; list those that are for the DLA."""
    items = list(_items(cfg, "layer-device-precision", precision=_PRECISIONS, device=_DEVICES))
    by_layer = {name: precision for name, precision, _ in items}
    return by_layer, [name for name, _, device in items if device == "dla"]


def _output_types(cfg: ModelConfig) -> tuple[dict[str, str], list[Finding]]:
    """Map outputs of `output-io-formats` to types; a notice for formats that are not linear."""
    items = list(_items(cfg, "output-io-formats", type=_OUTPUT_TYPES, format=_OUTPUT_FORMATS))
    by_output = {name: kind for name, kind, _ in items}
    packed = [f"{name} ({layout})" for name, _, layout in items if layout != "chw"]
    if not packed:
        return by_output, []
    text = f"output-io-formats: outputs are linear (chw) here, not packed: {', '.join(packed)}"
    return by_output, [Finding("output-formats", "info", text, cfg.where("output_io_formats"))]


def _items(cfg: ModelConfig, key: str, **choices: Sequence[str]) -> Iterator[list[str]]:
    """Split the items of a key at their last two colons: names may hold colons.

    Raises:
        ConfigError: an item is not a name with one of each of the `choices`.
    """
    field = key.replace("-", "_")
    for item in getattr(cfg, field):
        parts = item.strip().rsplit(":", 2)
        fits = len(parts) == 3 and parts[0]
        if not fits or any(p not in c for p, c in zip(parts[1:], choices.values(), strict=True)):
            known = (f"{word} one of {', '.join(values)}" for word, values in choices.items())
            raise ConfigError(
                f"{key} has the item {item!r}",
                where=cfg.where(field),
                expected=f"{':'.join(['layer', *choices])}, {', '.join(known)}",
                code="layer-precision" if key == "layer-device-precision" else "output-formats",
            )
        yield parts
