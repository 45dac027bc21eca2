"""A recording that was read: its items with the arguments that a parser gets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace._core.json_record import RecordError
from headrace.config import ModelConfig
from headrace.infer.cluster import Clusterer
from headrace.infer.geometry import Rect, ScaleTransform
from headrace.infer.recordings.records import (
    KEY,
    FrameRecord,
    ItemRecord,
    RecordedModel,
    RecordingRecord,
)
from headrace.infer.recordings.safetensors import SafetensorsFile, no_recording
from headrace.meta import (
    Classification,
    Detections,
    FrameMeta,
    Layer,
    NetworkInfo,
    Segmentation,
)


def tensor_name(item: int, *parts: str) -> str:
    """Name of a tensor of an item: `7/layers/boxes`, `7/parsed/scores`, `7/map`."""
    return "/".join((str(item), *parts))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordedItem:
    """One frame, or one object of it for a secondary model, through one model.

    `layers`, `network` and `params` are the arguments of the parser.

    Attributes:
        model: the model, with its config and the origin of its parser.
        params: thresholds and labels; None where the model parses nothing.
        number: index among all items.
        record: place in the frame and in the network input.
        image: the frame.
    """

    model: RecordedModel
    params: Any
    number: int
    record: ItemRecord
    image: FrameRecord
    _file: SafetensorsFile

    @property
    def source(self) -> str:
        """Name of the source."""
        return self.image.source

    @property
    def frame(self) -> int:
        """Number of the frame in its source, from 0."""
        return self.image.frame

    @property
    def object(self) -> int:
        """Number of the object in its frame; -1 for the whole frame."""
        return self.record.object

    @property
    def layers(self) -> dict[str, Layer]:
        """The output tensors in binding order, without the batch axis; read at each call.

        Raises:
            MediaError: the file was changed meanwhile.
        """
        return {
            name: Layer(name, self._file.read(tensor_name(self.number, "layers", name)))
            for name in self.model.layers
        }

    @property
    def network(self) -> NetworkInfo:
        """Size of the network input."""
        return NetworkInfo(*self.model.network)

    @property
    def transform(self) -> ScaleTransform:
        """Place of the image in the network input."""
        return self.record.transform.transform()

    @property
    def parent(self) -> Rect | None:
        """Rectangle of the object in frame pixels; None for the whole frame."""
        return None if self.record.parent is None else Rect(*self.record.parent)

    @property
    def parsed(self) -> Detections | None:
        """The boxes of the parser, in network space; None if it gave none to keep."""
        return self._detections("parsed")

    @property
    def objects(self) -> Detections | None:
        """The boxes left by thresholds and clustering, in network space."""
        return self._detections("objects")

    @property
    def result(self) -> Detections | Classification | Segmentation | None:
        """The result to compare with: `objects`, the class map, or the attributes."""
        if self.record.classified is not None:
            kept = self.record.classified
            return Classification([tuple(label) for label in kept.labels], kept.text)  # type: ignore[misc] # four entries each
        if self.record.mapped:
            return Segmentation(self._file.read(tensor_name(self.number, "map")))
        return self.objects

    def meta(self) -> FrameMeta:
        """Metadata of the frame, without objects."""
        f = self.image
        return FrameMeta(f.source, f.source_id, f.frame, f.pts_ns, f.width, f.height)

    def cluster(self, detections: Detections) -> Detections:
        """Apply the thresholds and the clustering of the recorded config.

        Raises:
            ConfigError: that config is refused.
        """
        return Clusterer(recorded_config(self.model, self._file.path))(detections).detections

    def to_frame(self, detections: Detections) -> npt.NDArray[np.float32]:
        """Boxes of the network as boxes of the frame: (N, 4) left, top, width, height in pixels."""
        boxes = self.transform.to_frame(detections.boxes)
        if self.parent is not None:
            boxes[:, :2] += np.array(self.parent[:2], np.float32)
        return boxes

    @property
    def place(self) -> str:
        """The frame, and the object in it, in words."""
        text = f"frame {self.frame} of {self.source}"
        return text if self.object < 0 else f"{text}, object {self.object}"

    def __repr__(self) -> str:
        return f"RecordedItem({self.place}, {self.model.name})"

    def _detections(self, step: str) -> Detections | None:
        if not self.record.parsed:
            return None

        def read(name: str) -> Any:
            return self._file.read(tensor_name(self.number, step, name))

        counts = self.record.masks
        masks = counts and [read(f"masks/{i}") for i in range(counts[step == "objects"])]
        more = {
            name: read(name)
            for name in ("angles", "keypoints")
            if tensor_name(self.number, step, name) in self._file.entries
        }
        return Detections(read("boxes"), read("scores"), read("class_ids"), masks, **more)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Items in the order in which they ran.

        for item in headrace.load_recording("street.safetensors"):
            boxes = parse(item.layers, item.network, item.params)

    Attributes:
        path: the file.
        models: primary ones first.
        frames: number of frames, also of those without items.
        items: all of them; tensors are read when they are asked for.
    """

    path: Path
    models: tuple[RecordedModel, ...]
    frames: int
    items: tuple[RecordedItem, ...]

    def of(self, component_id: int) -> list[RecordedItem]:
        """The items of the model with this `gie-unique-id`."""
        return [item for item in self.items if item.model.component_id == component_id]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[RecordedItem]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> RecordedItem: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[RecordedItem, ...]: ...

    def __getitem__(self, index: int | slice) -> RecordedItem | tuple[RecordedItem, ...]:
        return self.items[index]

    def __repr__(self) -> str:
        return f"Recording({self.path.name!r}, {self.frames} frames, {len(self.items)} items)"


def load_recording(path: str | PathLike[str]) -> Recording:
    """Read the header of a recording; tensors are read when they are asked for.

    Raises:
        MediaError: the file cannot be read, is damaged, or is no recording.
    """
    file = SafetensorsFile(Path(path))
    if KEY not in file.metadata:
        raise no_recording(file.path, "its tensors have no headrace-recording with them")
    try:
        record = RecordingRecord.from_json(file.metadata[KEY])
        _require_items(record)
        params = [None if m.kind is None else m.parser_params() for m in record.models]
        frames = [f for f in record.frames for _ in range(f.items)]
        for number, item in enumerate(record.items):
            _require_tensors(file, number, item, record.models[item.model])
    except ValueError as error:  # RecordError is one
        kind = "its metadata is damaged: " if isinstance(error, RecordError) else ""
        raise no_recording(file.path, f"{kind}{error}") from error
    items = tuple(
        RecordedItem(record.models[item.model], params[item.model], number, item, frame, file)
        for number, (item, frame) in enumerate(zip(record.items, frames, strict=True))
    )
    return Recording(file.path, tuple(record.models), len(record.frames), items)


def recorded_config(model: RecordedModel, where: Path) -> ModelConfig:
    """The config of a recording, with the recording in the place of its file.

    Raises:
        ConfigError: the recording has none, or it is refused.
    """
    if not model.config:
        raise ConfigError(
            f"the recording has no settings of {model.name}", where=str(where),
            fix="give the config of the model",
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        file = Path(folder) / "config.txt"
        file.write_text(model.config, encoding="utf-8")
        cfg = ModelConfig.load(file)
    return cfg.of_model(where, ())


def _require_items(record: RecordingRecord) -> None:
    """Refuse items of no frame, or of no model."""
    if sum(f.items for f in record.frames) != len(record.items):
        raise ValueError("its frames have other items than it lists")
    for number, item in enumerate(record.items):
        if item.model >= len(record.models):
            raise ValueError(f"item {number} names model {item.model}, which is absent")


def _require_tensors(
    file: SafetensorsFile, number: int, item: ItemRecord, model: RecordedModel
) -> None:
    """Refuse an item without its tensors, or with some of another shape or type."""

    def check(parts: tuple[str, ...], dtype: str, shape: tuple[int | None, ...]) -> list[int]:
        name = tensor_name(number, *parts)
        entry = file.entries.get(name)
        if entry is None:
            raise ValueError(f"tensor {name} is absent")
        fits = len(entry.shape) == len(shape) and all(
            expected is None or size == expected
            for size, expected in zip(entry.shape, shape, strict=True)
        )
        if entry.dtype != dtype or not fits:
            raise ValueError(f"tensor {name} is {entry.dtype} {entry.shape}, and no {parts[-1]}")
        return entry.shape

    for layer in model.layers:
        if tensor_name(number, "layers", layer) not in file.entries:
            raise ValueError(f"tensor {tensor_name(number, 'layers', layer)} is absent")
    if item.mapped:
        check(("map",), "I32", (None, None))
    if not item.parsed:
        return
    for index, step in enumerate(("parsed", "objects")):
        rows = check((step, "boxes"), "F32", (None, 4))[0]
        check((step, "scores"), "F32", (rows,))
        check((step, "class_ids"), "I32", (rows,))
        if tensor_name(number, step, "angles") in file.entries:
            check((step, "angles"), "F32", (rows,))
        if tensor_name(number, step, "keypoints") in file.entries:
            check((step, "keypoints"), "F32", (rows, None, 3))
        if item.masks is not None:
            if item.masks[index] != rows:
                raise ValueError(f"item {number} has {item.masks[index]} masks for {rows} boxes")
            for i in range(rows):
                check((step, f"masks/{i}"), "F32", (None, None))
