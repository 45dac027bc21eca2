"""Writing of recordings: outputs of engines, and the results made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headrace._core.errors import ConfigError
from headrace._core.types import Array
from headrace.config.enums import NetworkType
from headrace.custom.guard.call_args import Params, network_json, params_json
from headrace.custom.user_calls import ParserKind
from headrace.infer.engine_runs import RunSteps
from headrace.infer.geometry import Rect, ScaleTransform
from headrace.infer.items import ItemSteps
from headrace.infer.recordings.recording import tensor_name
from headrace.infer.recordings.records import (
    FORMAT,
    KEY,
    FrameRecord,
    ItemRecord,
    RecordedLabels,
    RecordedModel,
    RecordedTransform,
    RecordingRecord,
)
from headrace.infer.recordings.safetensors import SafetensorsWriter, safetensors_bytes
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink
from headrace.meta import DetectionParams, Detections, FrameMeta, NetworkInfo
from headrace.meta.layers import layers_of

if TYPE_CHECKING:
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.loaded_model import Model

KINDS: dict[NetworkType, ParserKind] = {
    NetworkType.DETECTOR: "bbox",
    NetworkType.CLASSIFIER: "classifier",
    NetworkType.SEGMENTATION: "segmentation",
    NetworkType.INSTANCE_SEGMENTATION: "instance",
}
_Tensors = dict[str, Array]


class RecordingSink(Sink):
    """Keeps the outputs of opened models, frame by frame, until they are written.

    A frame is run through all models, then written: `write` takes what they gave meanwhile.

    Args:
        path: the file.
        models: they call this sink until it is closed.

    Raises:
        MediaError: the file cannot be created.
    """

    kind = "recording"

    def __init__(self, path: Path, models: Sequence[Inferencer]) -> None:
        super().__init__(str(path), path)
        self._file = SafetensorsWriter(path, str(path))
        self._runs: list[tuple[int, RunSteps]] = []
        self._models: list[RecordedModel | None] = [None] * len(models)
        self._frames: list[FrameRecord] = []
        self._items: list[ItemRecord] = []
        self._watched = list(models)
        for number, model in enumerate(models):
            model.runs.on_steps = partial(self._take, number)

    @property
    def items(self) -> int:
        """Number of items so far."""
        return len(self._items)

    def abort(self, reason: str) -> None:
        """Leave no file: a recording is whole or absent."""
        self._broken = True
        super().abort(reason)

    def _take(self, number: int, run: RunSteps) -> None:
        self._runs.append((number, run))

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        runs, self._runs = self._runs, []
        first = len(self._items)
        for number, run in runs:
            if self._models[number] is None:
                self._models[number] = _model_record(run.model, list(run.outputs))
            for index, valid in enumerate(run.items.valid()):
                if valid:
                    self._add(number, run, index)
        frame_record = FrameRecord(
            _text(meta.source), meta.source_id, meta.frame, meta.pts_ns, meta.width, meta.height,
            len(self._items) - first,
        )  # fmt: skip
        self._frames.append(frame_record)

    def _add(self, number: int, run: RunSteps, index: int) -> None:
        step, parent = run.steps[index], run.items.parent_rect(index)
        record, tensors = item_record(
            number, len(self._items), layers_of(dict(run.outputs), index), step,
            run.items.transform(index), run.items.object_of(index), parent,
        )  # fmt: skip
        also = len(record.to_json())
        for name, array in tensors.items():
            self._file.add(name, array, also=also)
            also = 0
        self._items.append(record)

    def _finish(self) -> None:
        for model in self._watched:
            model.runs.on_steps = None
        if self._broken:  # of a recording without its header nothing can be read
            self.kept = 0
            self._file.give_up()
            return
        models = [
            record or _model_record(model.model, _outputs(model.model))
            for record, model in zip(self._models, self._watched, strict=True)
        ]
        try:
            self._file.finish(_metadata(models, self._frames, self._items))
        except OSError:
            self.kept = 0
            self._file.give_up()
            raise


def item_record(
    model: int,
    number: int,
    layers: Mapping[str, Any],
    step: ItemSteps,
    transform: ScaleTransform,
    shown: int = -1,
    parent: Rect | None = None,
) -> tuple[ItemRecord, _Tensors]:
    """The record of one item, and its tensors by name."""
    tensors = {tensor_name(number, "layers", n): layer.data for n, layer in layers.items()}
    classified, masks = None, None
    if step.classified is not None:
        labels = [
            (int(info.attribute), int(info.value), float(info.confidence), _text(info.label))
            for info in step.classified.labels
        ]
        classified = RecordedLabels(labels, _text(step.classified.text))
    if step.segmentation is not None:
        tensors[tensor_name(number, "map")] = step.segmentation.class_map.astype(np.int32)
    if step.parsed is not None and step.clustered is not None:
        kept = step.clustered.detections
        tensors |= _box_tensors(number, "parsed", step.parsed)
        tensors |= _box_tensors(number, "objects", kept)
        if step.parsed.masks is not None and kept.masks is not None:
            masks = (len(step.parsed), len(kept))
    record = ItemRecord(
        model,
        RecordedTransform.of(transform),
        shown,
        None if parent is None else tuple(map(float, parent)),  # type: ignore[arg-type] # four
        step.parsed is not None and step.clustered is not None,
        step.segmentation is not None,
        masks,
        classified,
        None if step.error is None else _text(str(step.error)),
    )
    return record, tensors


def one_item(
    name: str, layers: Mapping[str, object], network: NetworkInfo, params: DetectionParams
) -> bytes:
    """A recording of the outputs of one run that nothing has parsed.

    Args:
        name: of the model; a detector.
        layers: name -> `Layer`.
        network: size of its input, which the image fills.
        params: of the parser to come.
    """
    full = Rect(0, 0, network.width, network.height)
    record, tensors = item_record(0, 0, layers, ItemSteps(), ScaleTransform(full, full, 1, 1, 0, 0))
    model = RecordedModel(
        name, 1, "bbox", "to be written", False, "",
        (network.width, network.height, network.channels), list(layers), params_json(params),
    )  # fmt: skip
    frame = FrameRecord("noise", 0, 0, 0, network.width, network.height, 1)
    return safetensors_bytes(tensors, _metadata([model], [frame], [record]))


def _metadata(
    models: list[RecordedModel], frames: list[FrameRecord], items: list[ItemRecord]
) -> dict[str, str]:
    assert FORMAT == 1
    return {KEY: RecordingRecord(1, models, frames, items).to_json().decode()}


def _box_tensors(number: int, step: str, detections: Detections) -> _Tensors:
    arrays: _Tensors = {
        "boxes": detections.boxes, "scores": detections.scores, "class_ids": detections.class_ids,
    }  # fmt: skip
    if detections.angles is not None:
        arrays["angles"] = detections.angles
    if detections.keypoints is not None:
        arrays["keypoints"] = detections.keypoints
    for i, mask in enumerate(detections.masks or ()):
        arrays[f"masks/{i}"] = mask
    return {tensor_name(number, step, name): array for name, array in arrays.items()}


def _model_record(model: Model, layers: list[str]) -> RecordedModel:
    cfg, choice = model.config, model.parser
    params: Params | None = getattr(model.postprocessor, "params", None)
    entries = {} if params is None else params_json(params)
    try:
        config = cfg.dump()
    except ConfigError:  # INI cannot write every value
        config = ""
    width, height, channels = network_json(model.network)
    return msgspec.convert(
        {
            "name": _text(cfg.path.name),
            "component_id": cfg.component_id,
            "kind": None if params is None else KINDS[cfg.network_type],
            "parser": "" if choice is None else _text(choice.source),
            "builtin": choice is not None and choice.library is None,
            "config": _text(config),
            "network": (width, height, channels),
            "layers": layers,
            "params": _plain(entries),
        },
        RecordedModel,
    )


def _outputs(model: Model) -> list[str]:
    return [spec.name for spec in model.session.outputs]


def _plain(value: object) -> Any:
    """The same with texts that are UTF-8."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _text(text: str) -> str:
    """The text without bytes that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
