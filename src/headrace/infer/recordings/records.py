"""The metadata of a recording, as JSON in the header of its file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from headrace._core.json_record import JsonRecord
from headrace.custom.guard.call_args import Params, params_from
from headrace.custom.user_calls import ParserKind
from headrace.infer.geometry import Rect, ScaleTransform

FORMAT = 1
KEY = "headrace-recording"
"""The entry of the file's metadata that holds all of it."""
_Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]
_Box = tuple[float, float, float, float]


class RecordedTransform(JsonRecord, frozen=True):
    """A `ScaleTransform`."""

    src: _Box
    dst: _Box
    ratio: tuple[Annotated[float, msgspec.Meta(gt=0)], Annotated[float, msgspec.Meta(gt=0)]]
    offset: tuple[int, int]

    @classmethod
    def of(cls, transform: ScaleTransform) -> RecordedTransform:
        """The record of a transform."""
        src, dst = (tuple(map(float, rect)) for rect in (transform.src, transform.dst))
        ratio = (float(transform.ratio_x), float(transform.ratio_y))
        return cls(src, dst, ratio, (int(transform.offset_x), int(transform.offset_y)))  # type: ignore[arg-type] # four numbers each

    def transform(self) -> ScaleTransform:
        """The transform of a record."""
        return ScaleTransform(Rect(*self.src), Rect(*self.dst), *self.ratio, *self.offset)


class RecordedLabels(JsonRecord, frozen=True):
    """The result of a classifier: attribute, value, confidence and label of each attribute."""

    labels: list[tuple[int, int, float, str]]
    text: str


class ItemRecord(JsonRecord, frozen=True, omit_defaults=True):
    """One frame, or one object of it, through one model.

    Attributes:
        model: index among the models.
        transform: its place in the network input.
        object: its number in the frame; -1 for the whole frame.
        parent: its rectangle in frame pixels.
        parsed: True if its boxes are in the file; class maps likewise with `mapped`.
        masks: number of masks of the boxes parsed, and of those left by clustering.
        error: the refusal of the parser.
    """

    model: _Count
    transform: RecordedTransform
    object: Annotated[int, msgspec.Meta(ge=-1)] = -1
    parent: _Box | None = None
    parsed: bool = False
    mapped: bool = False
    masks: tuple[_Count, _Count] | None = None
    classified: RecordedLabels | None = None
    error: str | None = None


class FrameRecord(JsonRecord, frozen=True):
    """One frame; `items` is the number of items that follow from the list of all."""

    source: str
    source_id: _Count
    frame: _Count
    pts_ns: int
    width: _Size
    height: _Size
    items: _Count


class _DetectionRecord(JsonRecord, frozen=True):
    num_classes: _Count
    pre: list[float]
    post: list[float]
    labels: list[str]


class _ClassifierRecord(JsonRecord, frozen=True):
    threshold: float
    labels: list[list[str]]


class _SegmentationRecord(JsonRecord, frozen=True):
    num_classes: _Count
    threshold: float
    order: Literal["NCHW", "NHWC"]
    labels: list[str]


_PARAMS: dict[ParserKind, type[JsonRecord]] = {
    "bbox": _DetectionRecord,
    "instance": _DetectionRecord,
    "classifier": _ClassifierRecord,
    "segmentation": _SegmentationRecord,
}


class RecordedModel(JsonRecord, frozen=True):
    """One model.

    Attributes:
        name: of the config's file.
        component_id: `gie-unique-id`.
        kind: of the parser; None where nothing is parsed.
        parser: its origin, in words.
        builtin: True if it is one of headrace's own, which a replay needs no file for.
        config: the values of the config, as an INI file has them.
        network: width, height, channels of the input.
        layers: names of the outputs in binding order.
        params: as `params_json` writes them.
    """

    name: str
    component_id: int
    kind: ParserKind | None
    parser: str
    builtin: bool
    config: str
    network: tuple[_Size, _Size, _Size]
    layers: Annotated[list[str], msgspec.Meta(max_length=4096)]
    params: dict[str, Any]

    def parser_params(self) -> Params:
        """The parameters of the parser.

        Raises:
            RecordError: they are damaged.
        """
        assert self.kind is not None
        return params_from(self.kind, _PARAMS[self.kind].from_dict(self.params).to_dict())


class RecordingRecord(JsonRecord, frozen=True):
    """Everything but the tensors."""

    version: Literal[1]
    models: Annotated[list[RecordedModel], msgspec.Meta(max_length=256)]
    frames: list[FrameRecord]
    items: list[ItemRecord]
