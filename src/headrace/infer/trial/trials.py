"""Trying changed keys on frames at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.plain_record import PlainRecord
from headrace.config.document import AddedLine
from headrace.config.enums import NetworkType
from headrace.config.origin import OVERRIDE
from headrace.config.profile import with_profile
from headrace.infer.decoding import postprocessor_of, require_runnable
from headrace.infer.items import Items, ItemSteps
from headrace.infer.parser_choice import Choice, choose_parser
from headrace.infer.preprocess import Preprocessor
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.infer.trial.outcome import Kind, Outcome, reading_of, steadiness
from headrace.infer.trial.samples import (
    Piece,
    Run,
    Sample,
    blank_frames,
    image_fields,
    neighbours,
    placed,
    prepared,
    sampled,
)
from headrace.meta import FrameMeta

if TYPE_CHECKING:
    from headrace._core.types import Array, Arrays
    from headrace.config import ModelConfig
    from headrace.infer.loaded_model import Model
    from headrace.infer.parsers.labels import Labels
    from headrace.media.frame import Frame
    from headrace.meta import NetworkInfo

Change = Mapping[str, str | None]
"""Keys and their new values as a config has them; `class-attrs-all.topk` is of a group, and None
leaves a key out."""

_BLANKS = 3  # images without content


class Budget(PlainRecord):
    """Time of the network for the trials of one model.

    Attributes:
        left_s: seconds left.
        run_s: how long a run takes; 0: not known yet.
    """

    left_s: float = 2.0
    run_s: float = 0.0

    def runs(self, count: int) -> int:
        """How many of so many runs it pays."""
        if self.left_s <= 0:
            return 0
        return min(count, int(self.left_s / self.run_s)) if self.run_s else count

    def spend(self, seconds: float) -> None:
        """Count one run."""
        self.left_s -= seconds
        self.run_s = min(self.run_s or seconds, seconds)


_PARSING = (
    "network_type", "custom_lib_path", "parse_bbox_func_name", "parse_classifier_func_name",
    "parse_segmentation_func_name", "parse_bbox_instance_mask_func_name", "custom_lib_abi",
    "custom_lib_int64", "rotated_boxes", "mask_content",
)  # fmt: skip
_ENGINE = (
    "infer_dims", "network_mode", "network_input_order", "onnx_file", "model_engine_file",
    "output_blob_names", "process_mode", "int8_calib_file",
)  # fmt: skip
_KINDS: dict[NetworkType, Kind] = {
    NetworkType.CLASSIFIER: "labels", NetworkType.SEGMENTATION: "maps",
}  # fmt: skip


def network_of(model: Model) -> Run:
    """The engine of a model on one input, its constant inputs filled."""

    def run(tensor: Array) -> Arrays:
        return model.session.run(model.feeds(np.ascontiguousarray(tensor[None])))

    return run


def changed_config(cfg: ModelConfig, change: Change) -> ModelConfig:
    """A copy of a config with a change.

    Raises:
        ConfigError: there is no such key, or a value is refused.
    """
    absent = [key.replace("-", "_") for key, value in change.items() if value is None]
    if absent:
        bare = type(cfg)()
        values = {name: getattr(bare, name) for name in absent}
        cfg = cfg.changed(values, dict.fromkeys(absent, OVERRIDE))
    lines = []
    for key, value in change.items():
        group, _, name = key.rpartition(".")
        if value is not None:
            lines.append(AddedLine(group or "property", name, value, "trial"))
    return cfg.with_lines(lines) if lines else cfg


def change_text(change: Change) -> str:
    """A change in words: `net-scale-factor=1 without offsets`."""
    values = [f"{key}={value}" for key, value in change.items() if value is not None]
    absent = [key for key, value in change.items() if value is None]
    text = " with ".join(values[:2]) + "".join(f" and {value}" for value in values[2:])
    return f"{text} without {' and '.join(absent)}".strip() if absent else text


class ConfigTrials:
    """Frames at hand, on which changes of a config are tried. One thread at a time.

    Whatever changes the network itself (`infer-dims`, precision, the model) is not tried here: it
    needs another engine, whose frames are other trials.

    Args:
        cfg: the config as it is.
        network: size of the network input.
        labels: of the config.
        samples: the frames, as they went through the network with `cfg`.
        run: the network; None: changes of the images are not tried.
        choice: the parser of `cfg`, opened already; None opens one where it is needed.
        options: of the run.
        budget: time of the network that all changes may take together; with less left a change is
            tried on fewer frames, or not at all, which its outcome says.
    """

    def __init__(
        self,
        cfg: ModelConfig,
        network: NetworkInfo,
        labels: Labels,
        samples: Sequence[Sample],
        *,
        run: Run | None = None,
        choice: Choice | None = None,
        options: RunOptions | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.cfg, self.network, self.labels = with_profile(cfg), network, labels
        self.samples = list(samples)
        self.run, self.budget = run, budget or Budget()
        self._choice = choice
        self._options = options or RunOptions()
        self._pairs = neighbours(self.samples)
        self._known: dict[tuple[tuple[str, str | None], ...], Outcome] = {}
        self._inputs: dict[object, list[Sample]] = {image_fields(self.cfg): self.samples}

    @classmethod
    def of_model(
        cls,
        model: Model,
        frames: Iterable[Frame] = (),
        samples: Sequence[Sample] = (),
        *,
        pieces: Iterable[Piece] = (),
        cfg: ModelConfig | None = None,
        labels: Labels | None = None,
        **more: Any,
    ) -> ConfigTrials:
        """ConfigTrials on a model that is open.

        Args:
            model: with a preprocessor.
            frames: whole images, which the network runs on now; not on the budget.
            pieces: of frames, in the same way.
            samples: those that it ran on already.
            cfg, labels: in place of the model's own, where its outputs are not parsed.
            more: `options`, `budget`.

        Raises:
            EngineError: the network failed.
        """
        run = network_of(model)
        if model.preprocessor is not None:
            shown = chain(pieces, ((frame, None) for frame in frames))
            samples = [*samples, *sampled(model.preprocessor, run, shown)]
        return cls(
            cfg or model.config, model.network, model.labels if labels is None else labels, samples,
            run=run, choice=model.parser, **more,
        )  # fmt: skip

    def of(self, samples: Sequence[Sample]) -> ConfigTrials:
        """Trials on some of the samples, on the same budget."""
        return type(self)(
            self.cfg, self.network, self.labels, samples, run=self.run, choice=self._choice,
            options=self._options, budget=self.budget,
        )  # fmt: skip

    @property
    def present(self) -> Outcome:
        """The outcome of the config as it is."""
        return self({})

    def __call__(self, change: Change) -> Outcome:
        """Try a change; the same one once.

        What the config or its parser refuses is an outcome, no error.
        """
        key = tuple(sorted(change.items()))
        if key not in self._known:
            with np.errstate(all="ignore"):
                self._known[key] = self._outcome(change)
        return self._known[key]

    def _outcome(self, change: Change) -> Outcome:
        if not self.samples:
            return Outcome(change, untried="there are no frames")
        try:
            cfg = with_profile(changed_config(self.cfg, change))
            require_runnable(cfg)
            samples = self._samples(cfg)
            if isinstance(samples, str):
                return Outcome(change, untried=samples)
            return self._decoded(change, cfg, samples)
        except HeadraceError as refusal:
            return Outcome(change, refused=f"{refusal:brief}")

    def _samples(self, cfg: ModelConfig) -> list[Sample] | str:
        """The samples as this config gives them to the network, or why they are not made."""
        fields = image_fields(cfg)
        if any(getattr(cfg, name) != getattr(self.cfg, name) for name in _ENGINE):
            return "it needs another engine"
        if fields in self._inputs:
            return self._inputs[fields]
        if self.run is None:
            return "the network is not at hand"
        count = self.budget.runs(len(self.samples))
        if count < 1:
            run_s = self.budget.run_s
            return f"a run of the network takes {run_s:.2g} s, and trials had their time"
        size = self.network.width, self.network.height, self.network.channels
        old, new = (Preprocessor.from_config(c, *size) for c in (self.cfg, cfg))
        changed = []
        for sample in self.samples[:count]:
            tensor, transform, frame_size = prepared(sample, old, new, self.network)
            outputs = self.infer(tensor)
            changed.append(
                replace(sample, kept=tensor, outputs=outputs, transform=transform, size=frame_size)
            )
            if self.budget.left_s <= 0:
                break
        self._inputs[fields] = changed
        return changed

    def infer(self, tensor: Array) -> dict[str, Array]:
        """Run the network on one input, at the expense of the budget; no batch axis comes back."""
        assert self.run is not None
        start = perf_counter()
        outputs = {name: data[0] for name, data in self.run(tensor).items()}
        self.budget.spend(perf_counter() - start)
        return outputs

    def nonsense(self, change: Change) -> float:
        """The best score that a change gives in images without content, at the budget's expense.

        A network that gets a wrong range may find things in anything. Infinite where no run of the
        network is left to look.
        """
        if self.run is None or self.budget.runs(_BLANKS) < _BLANKS:
            return np.inf
        try:
            cfg = with_profile(changed_config(self.cfg, change))
            pre = Preprocessor.from_config(
                cfg, self.network.width, self.network.height, self.network.channels
            )
            blanks = []
            for frame in blank_frames(self.network):
                tensor = np.empty(pre.shape, np.float32)
                transform = pre(frame, tensor)
                blanks.append(Sample(tensor, self.infer(tensor), transform=transform))
            with np.errstate(all="ignore"):
                return self._decoded({}, cfg, blanks).best
        except HeadraceError:
            return np.inf

    def _decoded(self, change: Change, cfg: ModelConfig, samples: Sequence[Sample]) -> Outcome:
        kind = _KINDS.get(cfg.network_type, "boxes")
        choice = self._choice
        own = choice is not None and all(
            getattr(cfg, name) == getattr(self.cfg, name) for name in _PARSING
        )
        if not own:
            options = self._options
            choice = choose_parser(
                cfg, abi=options.abi, generation=options.rules, guard=options.guard
            )
        try:
            post = postprocessor_of(
                cfg, self.network, choice, self.labels, None, self._options, Record()
            )
            if post is None:
                return Outcome(change, kind, refused="network-type=100 parses nothing")
            readings, refusals = [], []
            for number, sample in enumerate(samples):
                transform, (width, height) = placed(sample, self.network)
                meta = FrameMeta("trial", 0, number, 0, width, height)
                step = ItemSteps()
                outputs = {name: data[None] for name, data in sample.outputs.items()}
                post.attach(outputs, Items([meta], transforms=[transform]), [step])
                if step.error is not None:
                    refusals.append(f"{step.error:brief}")
                    step.error = None  # its traceback holds this frame, and so the samples
                readings.append(reading_of(step, cfg, self.network))
        finally:
            if not own and choice is not None:
                choice.close()
        if len(refusals) == len(samples):
            return Outcome(change, kind, refused=refusals[0])
        steady = steadiness(readings, self._pairs, kind)
        return Outcome(change, kind, tuple(readings), steady)
