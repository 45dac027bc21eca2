"""Decodes recorded tensors once more: parser, thresholds and clustering, without the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.config.enums import PARSER_FIELDS
from headrace.config.profile import with_profile
from headrace.infer.decoding import (
    parser_and_labels,
    postprocessor_of,
)
from headrace.infer.items import Items, ItemSteps
from headrace.infer.parsers.labels import Labels
from headrace.infer.record import Record
from headrace.infer.recordings.compare import TOLERANCE, Result, class_names, first_difference
from headrace.infer.recordings.recording import RecordedItem, Recording, recorded_config
from headrace.infer.recordings.records import RecordedModel
from headrace.infer.recordings.writer import KINDS
from headrace.infer.run_options import RunOptions
from headrace.meta import Classification, Segmentation

if TYPE_CHECKING:
    from headrace.custom.guard import GuardMode
    from headrace.infer.postprocess import Postprocessor


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedItem:
    """One item that was decoded again.

    Attributes:
        item: of the recording.
        result: boxes left by clustering, a class map, or attributes; None if the parser refused.
        difference: the first difference from the recording; None if there is none.
    """

    item: RecordedItem
    result: Result
    difference: str | None


def replay_recording(
    recording: Recording,
    configs: Sequence[ModelConfig] = (),
    *,
    custom_lib: Path | None = None,
    function: str | None = None,
    parser: Callable[..., object] | None = None,
    guard: GuardMode | None = None,
    tolerance: float = TOLERANCE,
    notices: list[Finding] | None = None,
) -> Iterator[ReplayedItem]:
    """Decode the recorded tensors, cluster, and compare with the recorded results.

    Model files may be absent. A recording names no code that is run: where a library parsed, give
    its config, the library, or the parser.

    Args:
        recording: as `load_recording` gives it.
        configs: of the models to replay, told apart by `gie-unique-id`; none replays all of them
            with the settings of the recording.
        custom_lib: a library, C++ or Python, instead of the configs'.
        function: its parser; needed with `custom_lib` unless the config names one.
        parser: a parser of this program instead.
        guard: whether a C++ library runs in a worker process; None takes the config's.
        tolerance: see `first_difference`.
        notices: decisions are added to it.

    Raises:
        ConfigError: a config fits no model of the recording, or a library is needed.
        CustomLibraryError: the library cannot be loaded, or lacks the function.
        MediaError: the recording is damaged.
    """
    said: list[Finding] = [] if notices is None else notices
    chosen = _chosen(recording, configs)
    if (custom_lib or parser) and len(chosen) > 1:
        names = ", ".join(recording.models[number].name for number in chosen)
        raise ConfigError(
            f"one parser for {len(chosen)} models ({names})",
            fix="name the config of the model that it is for",
        )
    decoders = {
        number: _Decoder(recording, number, cfg, custom_lib, function, parser, guard, said)
        for number, cfg in chosen.items()
    }
    try:
        for item in recording:
            if item.record.model in decoders:
                yield decoders[item.record.model].decode(item, tolerance)
    finally:
        for decoder in decoders.values():
            decoder.close()


def _chosen(recording: Recording, configs: Sequence[ModelConfig]) -> dict[int, ModelConfig | None]:
    """Model -> config, None for the recorded one."""
    parsed = {i: None for i, model in enumerate(recording.models) if model.kind is not None}
    if not parsed:
        raise ConfigError(
            "no model of this recording parses anything", where=str(recording.path),
            expected="a model with a network-type of 0 to 3",
        )  # fmt: skip
    if not configs:
        return dict(parsed)
    if len(configs) == 1 and len(parsed) == 1:
        return {next(iter(parsed)): configs[0]}
    ids = {recording.models[number].component_id: number for number in parsed}
    chosen: dict[int, ModelConfig | None] = {}
    for cfg in configs:
        if cfg.component_id not in ids:
            raise ConfigError(
                f"gie-unique-id={cfg.component_id} is no model of this recording",
                where=str(cfg.path),
                expected="one of " + ", ".join(map(str, sorted(ids))),
            )
        chosen[ids[cfg.component_id]] = cfg
    return chosen


class _Decoder:
    """One model of a recording, ready to decode its items."""

    def __init__(
        self,
        recording: Recording,
        number: int,
        cfg: ModelConfig | None,
        custom_lib: Path | None,
        function: str | None,
        parser: Callable[..., object] | None,
        guard: GuardMode | None,
        notices: list[Finding],
    ) -> None:
        model = recording.models[number]
        assert model.kind is not None
        labels: Labels | None = None
        if cfg is None:
            cfg = recorded_config(model, recording.path)
            labels = _recorded_labels(model)
            if custom_lib is None and parser is None and not model.builtin:
                raise ConfigError(
                    f"the outputs of {model.name} were parsed by {model.parser}, which a "
                    "recording does not name as code to run",
                    where=str(recording.path),
                    fix="give the config, or --custom-lib LIBRARY --func NAME",
                )
            library = custom_lib.absolute() if custom_lib else None
            cfg = cfg.with_overrides(labelfile_path=None, custom_lib_path=library)
        else:
            cfg = with_profile(cfg)
            if custom_lib is not None:
                cfg = cfg.with_overrides(custom_lib_path=custom_lib.absolute())
        if KINDS.get(cfg.network_type) != model.kind:
            raise ConfigError(
                f"network-type={int(cfg.network_type)} is not that of the recording",
                where=str(cfg.path),
                expected=f"the type of {model.name}, whose parser is of kind {model.kind}",
            )
        if function is not None:
            cfg = cfg.with_overrides(**{PARSER_FIELDS[cfg.network_type]: function})
        options = RunOptions(guard=guard, parser=parser)
        self._choice, of_config = parser_and_labels(cfg, options, notices)
        self._record = Record()
        self._post: Postprocessor | None = None
        self._cfg, self._options = cfg, options
        self._labels = of_config if labels is None else labels
        self._notices = notices

    def decode(self, item: RecordedItem, tolerance: float) -> ReplayedItem:
        """Decode one item as a run does."""
        if self._post is None:
            self._post = postprocessor_of(
                self._cfg,
                item.network,
                self._choice,
                self._labels,
                None,
                self._options,
                self._record,
            )
        assert self._post is not None
        items = Items([item.meta()], transforms=[item.transform])
        if item.parent is not None:
            items.rects = np.array([item.parent], np.float32)
        step = ItemSteps()
        outputs = {name: layer.data[None] for name, layer in item.layers.items()}
        self._post.attach(outputs, items, [step])
        result = _result(step)
        then, now = item.record.error, None if step.error is None else str(step.error)
        if now is not None:
            difference = None if then is not None else f"the parser refused: {now}"
        elif then is not None:
            difference = "the parser refused when it was recorded, and does not now"
        else:
            difference = first_difference(
                result, item.result, labels=class_names(item), tolerance=tolerance
            )
        return ReplayedItem(item, result, difference)

    def close(self) -> None:
        """Keep the notices, and end the library's worker process."""
        if self._choice is not None:
            self._notices += self._choice.all_notices()
            self._choice.close()
        self._notices += self._record.notices


def _result(step: ItemSteps) -> Result:
    if step.classified is not None:
        kept = Classification(text=step.classified.text)
        for one in step.classified.labels:
            kept.add(one.attribute, one.value, one.confidence, one.label)
        return kept
    if step.segmentation is not None:
        return Segmentation(step.segmentation.class_map.astype(np.int32))
    return None if step.clustered is None else step.clustered.detections


def _recorded_labels(model: RecordedModel) -> Labels:
    """The labels of the parameters, as records of a label file."""
    records: Sequence[Any] = model.params.get("labels", ())
    return Labels(tuple((r,) if isinstance(r, str) else tuple(r) for r in records))
