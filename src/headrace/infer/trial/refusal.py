"""Advice of an error that ends a run before its first frame, tried on frames of its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from headrace._core.errors import HeadraceError
from headrace.config.document import ConfigProblemsError
from headrace.config.enums import PARSER_FIELDS, NetworkType
from headrace.infer.batch import frame_meta
from headrace.infer.geometry import Rect
from headrace.infer.model.image_input import network_dims
from headrace.infer.model.settled_outputs import settled_outputs
from headrace.infer.model.source import FunctionSource, model_source
from headrace.infer.parsers import suggest
from headrace.infer.parsers.labels import Labels, load_labels
from headrace.infer.trial.advice import advised, plain, tried, tried_changes
from headrace.infer.trial.candidates import parser_change, readers
from headrace.infer.trial.samples import Piece
from headrace.infer.trial.trials import Change, ConfigTrials
from headrace.meta import NetworkInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headrace._core.findings import Finding
    from headrace.config import ModelConfig
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.loaded_model import Model
    from headrace.infer.run_options import RunOptions

    Load = Callable[[ModelConfig], Model]
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
    error: E,
    cfg: ModelConfig,
    frames: Iterable[Frame],
    options: RunOptions,
    load: Load,
    before: Sequence[Inferencer] = (),
) -> E:
    """Add the results of its advice, or of built-in parsers that fit the outputs, to an error.

    Args:
        error: of `Inferencer.open`.
        cfg: the config that is refused.
        frames: whole images, at most `FRAMES`; read only if there is something to try.
        options: of the run.
        load: opens the model of a config in that way.
        before: the models in front of it, whose objects a secondary model works on.
    """
    finding = error.finding
    if not _is_about_parsers(error, cfg):
        return error
    if meant := _meant(error, cfg):
        finding = advised(finding, meant)
    try:
        with _without_parser(cfg, load) as model:
            trials = ConfigTrials.of_model(
                model,
                pieces=list(islice(_pieces(model, frames, before), FRAMES)),
                cfg=cfg,
                labels=_labels(cfg),
                options=options,
            )
            finding = _tried(finding, trials)
    except HeadraceError:
        finding = error.finding  # the model itself, or the frames, cannot be had
    return guessed_refusal(error, cfg) if finding is error.finding else _told(error, finding)


def guessed_refusal(error: E, cfg: ModelConfig) -> E:
    """Add the built-in parsers that fit the outputs by their shapes, as guesses, to an error.

    For roads that have no frames when they are refused; an error with advice of its own stays.

    Args:
        error: of `Inferencer.open`.
        cfg: the config that is refused.
    """
    finding = error.finding
    if not _is_about_parsers(error, cfg) or tried_changes(finding) or "set" in finding.data:
        return error
    changes = _meant(error, cfg) or _fitting(cfg)
    return _told(error, advised(finding, changes)) if changes else error


def _is_about_parsers(error: HeadraceError, cfg: ModelConfig) -> bool:
    """Whether advice, or another parser, may end a refusal."""
    # "end": the library ended its worker; here it would end this process
    if "end" in error.data or isinstance(error, ConfigProblemsError):
        return False
    library = cfg.custom_lib_path is not None and error.where == cfg.where("custom_lib_path")
    of_parsers = error.code in _OF_PARSERS and (library or error.code != "missing-file")
    return of_parsers or bool(tried_changes(error.finding))


def _told(error: E, finding: Finding) -> E:
    told = type(error)(finding)
    told.notices = error.notices
    return told


def _tried(finding: Finding, trials: ConfigTrials) -> Finding:
    """Try the advice of a finding, else the keys that are certain, else other parsers."""
    certain = None if tried_changes(finding) else finding.data.get("set")
    if certain is not None:
        outcome = trials({key: None if v is None else str(v) for key, v in certain.items()})
        if plain(outcome, trials.present):
            return tried(advised(finding, [outcome.change], basis="read"), trials, plain)
    if not tried_changes(finding):
        others = readers(trials)
        if not others:
            return finding
        finding = advised(finding, [outcome.change for outcome in others])
    return tried(finding, trials, plain)


def _pieces(model: Model, frames: Iterable[Frame], before: Sequence[Inferencer]) -> Iterator[Piece]:
    """Yield the pieces that a model sees: whole frames, or objects of the models before."""
    if model.selector is None:
        yield from ((frame, None) for frame in frames)
        return
    for frame in frames:
        meta = frame_meta(frame)
        for other in before:
            other(frame, meta)
        refused = model.selector.refusals(meta)
        for rect, reason in zip(meta.objects.rects.tolist(), refused, strict=True):
            if reason is None:
                yield frame, Rect(*rect)


def _fitting(cfg: ModelConfig) -> list[Change]:
    """The built-in parsers that fit the outputs of the config's model, by their shapes."""
    field = PARSER_FIELDS.get(cfg.network_type)
    source = model_source(cfg)
    if field is None or source is None or isinstance(source, FunctionSource):
        return []
    try:
        network = source.network()
        channels, height, width = network_dims(network.inputs[0], cfg)
        outputs = settled_outputs(network, cfg)
    except (HeadraceError, OSError, IndexError):
        return []  # the model is refused for a reason of its own
    image = NetworkInfo(width, height, channels)
    names = suggest(outputs, image, cfg.num_detected_classes, key=field.replace("_", "-"))
    return [parser_change(name, cfg.network_type, cfg) for name in names]


def _meant(error: HeadraceError, cfg: ModelConfig) -> list[Change]:
    """The functions of the own library that may be meant."""
    names = error.data.get("meant") if error.code == "function-missing" else None
    field = PARSER_FIELDS.get(cfg.network_type)
    if not names or field is None:
        return []
    return [{field.replace("_", "-"): name} for name in names]


@contextmanager
def _without_parser(cfg: ModelConfig, load: Load) -> Iterator[Model]:
    """Open the model of a config without its parser."""
    path = cfg.custom_lib_path
    libraries = [None] if path is None or not path.is_file() else [path, None]
    for library in libraries:
        fields = {"network_type": NetworkType.OTHER, "custom_lib_path": library}
        origins = {name: cfg.origin(name) for name in fields}
        try:
            model = load(cfg.changed(fields, origins))
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
