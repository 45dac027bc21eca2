"""Trying changed keys on frames at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError
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
from headrace.infer.trial.outcome import FrameReading, Kind, Outcome, reading_of, steadiness
from headrace.infer.trial.samples import (
    Run,
    Sample,
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

BUDGET_S = 2.0
"""Seconds of the network that the trials of one model may take."""

_PARSING = (
    "network_type", "custom_lib_path", "parse_bbox_func_name", "parse_classifier_func_name",
    "parse_segmentation_func_name", "parse_bbox_instance_mask_func_name", "custom_lib_abi",
    "custom_lib_int64", "rotated_boxes", "mask_content",
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
        budget_s: seconds of the network that all changes may take together; with fewer left a
            change is tried on fewer frames, or not at all, which its outcome says.
        run_s: how long the network takes for one image, if that is known.
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
        budget_s: float = BUDGET_S,
        run_s: float = 0.0,
    ) -> None:
        self.cfg, self.network, self.labels = with_profile(cfg), network, labels
        self.samples = list(samples)
        self.run, self.run_s, self.left_s = run, run_s, budget_s
        self._choice = choice
        self._options = options or RunOptions()
        self._pairs = neighbours(self.samples)
        self._known: dict[tuple[tuple[str, str | None], ...], Outcome] = {}
        self._inputs: dict[object, list[Sample]] = {image_fields(self.cfg): self.samples}

    @classmethod
    def of_model(
        cls, model: Model, frames: Iterable[Frame] = (), samples: Sequence[Sample] = (), **more: Any
    ) -> ConfigTrials:
        """ConfigTrials on a model that is open.

        Args:
            model: with a preprocessor.
            frames: whole images, which the network runs on now; not on the budget.
            samples: those that it ran on already.
            more: `options`, `budget_s`, `run_s`.

        Raises:
            EngineError: the network failed.
        """
        run = network_of(model)
        if frames and model.preprocessor is not None:
            samples = [*samples, *sampled(model.preprocessor, run, frames)]
        return cls(
            model.config, model.network, model.labels, samples,
            run=run, choice=model.parser, **more,
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
        if fields in self._inputs:
            return self._inputs[fields]
        if cfg.network_input_order != self.cfg.network_input_order:
            return "it needs another engine"
        if self.run is None:
            return "the network is not at hand"
        count = len(self.samples)
        if self.run_s:
            count = min(count, int(self.left_s / self.run_s))
        if count < 1 or self.left_s <= 0:
            return f"a run of the network takes {self.run_s:.2g} s, and trials had their time"
        size = self.network.width, self.network.height, self.network.channels
        old, new = (Preprocessor.from_config(c, *size) for c in (self.cfg, cfg))
        changed = []
        for sample in self.samples[:count]:
            tensor, transform, frame_size = prepared(sample, old, new, self.network)
            outputs = self.infer(tensor)
            changed.append(
                replace(
                    sample, tensor=tensor, outputs=outputs, transform=transform, size=frame_size
                )
            )
            if self.left_s <= 0:
                break
        self._inputs[fields] = changed
        return changed

    def infer(self, tensor: Array) -> dict[str, Array]:
        """Run the network on one input, at the expense of the budget; no batch axis comes back."""
        assert self.run is not None
        start = perf_counter()
        outputs = {name: data[0] for name, data in self.run(tensor).items()}
        seconds = perf_counter() - start
        self.left_s -= seconds
        self.run_s = min(self.run_s or seconds, seconds)
        return outputs

    def read(self, change: Change, sample: Sample) -> FrameReading:
        """The reading of one more sample, by the config with a change; it counts nowhere.

        Raises:
            HeadraceError: the config or its parser refuses.
        """
        cfg = with_profile(changed_config(self.cfg, change))
        with np.errstate(all="ignore"):
            readings = self._decoded({}, cfg, [sample]).readings
        return readings[0] if readings else FrameReading()

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
                readings.append(reading_of(step, cfg, self.network))
        finally:
            if not own and choice is not None:
                choice.close()
        if len(refusals) == len(samples):
            return Outcome(change, kind, refused=refusals[0])
        steady = steadiness(readings, self._pairs, kind)
        return Outcome(change, kind, tuple(readings), steady)
