"""Advice of an error that ends a run before its first frame, tried on frames of its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from headrace._core.errors import HeadraceError
from headrace.config.document import ConfigProblemsError
from headrace.config.enums import PARSER_FIELDS, NetworkType, ProcessMode
from headrace.infer.loaded_model import Model
from headrace.infer.parsers.labels import Labels, load_labels
from headrace.infer.record import Record
from headrace.infer.trial.advice import advised, plain, tried, tried_changes
from headrace.infer.trial.candidates import readers
from headrace.infer.trial.trials import Change, ConfigTrials

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.config import ModelConfig
    from headrace.engine.device import Device
    from headrace.infer.run_options import RunOptions
    from headrace.media.frame import Frame

FRAMES = 8
"""Frames that are enough to try on."""

_OF_PARSERS = frozenset((
    "class-count", "function-missing", "library-unusable", "missing-file", "parser-failed",
    "parser-missing",
))  # fmt: skip
"""Refusals that another parser may end, where the error recommends none."""

E = TypeVar("E", bound=HeadraceError)


def tried_refusal(
    error: E, cfg: ModelConfig, frames: Iterable[Frame], options: RunOptions, device: Device
) -> E:
    """Add the results of its advice, or of built-in parsers that fit the outputs, to an error.

    Args:
        error: of `Inferencer.open`.
        cfg: the config that is refused.
        frames: whole images, at most `FRAMES`; read only if there is something to try.
        options: of the run.
        device: where it computes.
    """
    finding = error.finding
    if "end" in finding.data:  # the library ended its worker: here it would end this process
        return error
    if meant := _meant(error, cfg):
        finding = advised(finding, meant)
    advice = tried_changes(finding)
    named = cfg.custom_lib_path is not None or error.code != "missing-file"
    if not advice and not (error.code in _OF_PARSERS and named):
        return error
    if isinstance(error, ConfigProblemsError) or cfg.process_mode is not ProcessMode.PRIMARY:
        return error
    try:
        with _without_parser(cfg, options, device) as model:
            trials = ConfigTrials.of_model(
                model, frames, cfg=cfg, labels=_labels(cfg), options=options
            )
            if not advice and (others := readers(trials)):
                finding = advised(finding, [outcome.change for outcome in others])
            finding = tried(finding, trials, plain)
    except HeadraceError:
        return error  # the model itself, or the frames, cannot be had
    if finding is error.finding:
        return error
    told = type(error)(finding)
    told.notices = error.notices
    return told


def _meant(error: HeadraceError, cfg: ModelConfig) -> list[Change]:
    """The functions of the own library that may be meant."""
    names = error.data.get("meant") if error.code == "function-missing" else None
    field = PARSER_FIELDS.get(cfg.network_type)
    if not names or field is None:
        return []
    return [{field.replace("_", "-"): name} for name in names]


@contextmanager
def _without_parser(cfg: ModelConfig, options: RunOptions, device: Device) -> Iterator[Model]:
    """Open the model of a config without its parser."""
    path = cfg.custom_lib_path
    libraries = [None] if path is None or not path.is_file() else [path, None]
    for library in libraries:
        fields = {"network_type": NetworkType.OTHER, "custom_lib_path": library}
        origins = {name: cfg.origin(name) for name in fields}
        try:
            model = Model.load(cfg.changed(fields, origins), options, Record(), device)
        except HeadraceError:
            if library is libraries[-1]:
                raise
            continue
        try:
            yield model
        finally:
            model.close()
        return


def _labels(cfg: ModelConfig) -> Labels:
    try:
        return Labels(cfg.labels) if cfg.labelfile_path is None else load_labels(cfg.labelfile_path)
    except HeadraceError:
        return Labels(())
