"""Images for a model: size and order of the axes, values, colours, fit."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ModelError
from headrace.infer.recognise import exporters
from headrace.infer.recognise.deployments import CROP, FIT, ORDER, SOURCE
from headrace.infer.recognise.exporters import BYTES, CAFFE, HALF, IMAGENET, UNIT, Fit, Scaling

if TYPE_CHECKING:
    from headrace.infer.recognise.evidence import FileEvidence
    from headrace.infer.recognise.exporters import Exporter
    from headrace.infer.recognise.first_layers import FirstLayers

_TINY = 64  # pixels; exporters of free models trace them with such images
_READER, _TURN, _DETECTOR = (48, 320), (48, 192), (736, 1280)
_HALF_RANGE, _IMAGENET_RANGE, _UNIT_RANGE = (1 / 180, 1 / 85), (1 / 85, 1 / 30), (1 / 500, 1 / 180)


@dataclass(frozen=True)
class Question:
    """An open decision: the settings that make it, each with the reason for it.

    A setting is one or several `key=value`.

    Attributes:
        otherwise: what to do if none of the settings is right; empty: one of them is.
    """

    found: str
    candidates: Sequence[tuple[tuple[str, ...], str]]
    otherwise: str = ""

    @property
    def key(self) -> str:
        """The key that is asked for first."""
        return self.candidates[0][0][0].partition("=")[0]

    @property
    def options(self) -> list[str]:
        """Each candidate as options of a command line."""
        return [options_of(setting) for setting, _ in self.candidates]

    @property
    def keywords(self) -> str:
        """The first candidate as keyword arguments of Python."""
        pairs = (line.partition("=")[::2] for line in self.candidates[0][0])
        return ", ".join(f"{key.replace('-', '_')}={_literal(value)}" for key, value in pairs)


def options_of(lines: Collection[str]) -> str:
    """Lines `key=value` as options of a command line."""
    return " ".join(f"--set {shlex.quote(line)}" for line in lines)


def _literal(value: str) -> str:
    return value if re.fullmatch(r"[\d.]+", value) else f'"{value}"'


class UndecidedError(ModelError):
    """The refusal to guess; it asks all that is open."""

    def __init__(self, path: Path, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        lines = []
        for number, question in enumerate(questions):
            lines.append("and one of:" if number else "choose with one of:")
            whys = (why for _, why in question.candidates)
            lines += [f"  {o}   ({w})" for o, w in zip(question.options, whys, strict=True)]
            lines += [f"  {question.otherwise}"] if question.otherwise else []
        lines.append("in Python, as keywords: " + ", ".join(q.keywords for q in questions))
        super().__init__(
            "; ".join(question.found for question in questions),
            where=str(path),
            expected="a model that says so, or a choice",
            fix=lines,
        )


@dataclass
class Images:
    """The input.

    Attributes:
        channels, height, width: of an image.
        interleaved: the axes are height, width, channels.
        chosen: height and width were not fixed by the model.
        scaling, order, fit: see `Exporter`; order is `GRAY` for one channel.
        reasons: what tells each of `size`, `scaling`, `order`, `fit`; `layers` is what the first
            layers say beside that.
        assumed: those of them that nothing in the file tells.
        questions: what has to be chosen; until then a value stands in its place.
    """

    channels: int
    height: int
    width: int
    interleaved: bool
    chosen: bool
    scaling: Scaling = BYTES
    order: str = "RGB"
    fit: Fit = "stretch"
    cut: float = 0.0
    reasons: dict[str, str] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    @property
    def dims(self) -> tuple[int, ...]:
        """Axes of one image, as the model has them."""
        size = (self.height, self.width)
        return (*size, self.channels) if self.interleaved else (self.channels, *size)


def read_images(
    evidence: FileEvidence,
    layers: FirstLayers,
    exporter: Exporter | None,
    user_fields: Collection[str] = (),
) -> Images:
    """Read the input.

    Args:
        evidence: of the file.
        layers: its first ones.
        exporter: if known.
        user_fields: fields of `ModelConfig` that the user sets: they need no decision here.

    Raises:
        ModelError: the input is no image, or only a tiny one.
    """
    images = _axes(evidence, exporter, user_fields)
    if "net_scale_factor" not in user_fields:
        _scale(images, evidence, layers, exporter)
    _colour(images, evidence, exporter)
    if images.scaling is CAFFE and images.order == "RGB":
        images.scaling = replace(CAFFE, offsets=CAFFE.offsets[::-1])
    fit = _FITS.get(evidence.metadata.get(FIT, ""))
    if fit is not None:
        images.fit, images.reasons["fit"] = fit, _beside(evidence)
    elif cut := _share(evidence.metadata) or (exporter.cut if exporter else 0.0):
        images.fit, images.cut = "stretch", cut
        who = exporter.name if exporter else _beside(evidence)
        images.reasons["fit"] = f"{who} cuts the centre out"
    elif exporter is not None and exporter.fit is not None:
        images.fit = exporter.fit
        why = f"as {exporter.name} does"
        if exporter.crops:
            why = f"{exporter.name} cuts the centre out (centre-crop): its share is not known"
        images.reasons["fit"] = why
    else:
        images.assumed.append("fit")
        images.reasons["fit"] = "assumed: nothing in the file tells"
    return images


def _share(texts: Mapping[str, str]) -> float:
    """The share of the shorter side that is cut out of the centre; 0 without one."""
    try:
        share = float(texts.get(CROP, ""))
    except ValueError:
        return 0.0
    return share if 0 < share <= 1 else 0.0


_FITS: dict[str, Fit] = {"stretch": "stretch", "centre": "centre", "corner": "corner"}


def _beside(evidence: FileEvidence) -> str:
    return f"{evidence.metadata.get(SOURCE, '')} beside the model"


def _axes(
    evidence: FileEvidence, exporter: Exporter | None, user_fields: Collection[str]
) -> Images:
    shape = evidence.input.shape
    if len(shape) != 4 or evidence.input.dtype.kind not in "fui":
        raise ModelError(
            f"the first input {evidence.input} is no image",
            where=str(evidence.path),
            expected="four axes: a batch of images in planes or pixels",
            fix="a config with input-tensor-from-meta=1 feeds other tensors",
        )
    interleaved = shape[1] not in (1, 3) and shape[3] in (1, 3)
    channels, height, width = (shape[3], *shape[1:3]) if interleaved else shape[1:]
    if not isinstance(channels, int) or channels not in (1, 3):
        if isinstance(channels, int):
            raise ModelError(
                f"the first input {evidence.input} has {channels} channels",
                where=str(evidence.path),
                expected="1 or 3",
            )
        channels = 3
    if isinstance(height, int) and isinstance(width, int):
        if exporter is exporters.CENTERFACE and min(height, width) <= _TINY:
            raise _traced_small(evidence, height, width, user_fields)
        image_input = Images(channels, height, width, interleaved, chosen=False)
        image_input.reasons["size"] = "fixed in the model"
        return image_input
    size, why, assumed = _free_size(evidence, exporter, height, width)
    questions = []
    if size is None:
        if "infer_dims" not in user_fields:
            text = f"input {evidence.input} leaves the size of images open"
            uses = {
                640: "detectors of the last years",
                416: "smaller detectors",
                224: "classifiers",
            }
            sizes = [((f"infer-dims={channels};{n};{n}",), use) for n, use in uses.items()]
            questions.append(Question(text, sizes))
        size, why = (640, 640), "given"  # replaced by what is given
    image_input = Images(channels, *size, interleaved, chosen=True, questions=questions)
    image_input.reasons["size"] = why
    if assumed:
        image_input.assumed.append("size")
    return image_input


def _traced_small(
    evidence: FileEvidence, height: int, width: int, user_fields: Collection[str]
) -> ModelError:
    name = evidence.path.name
    return ModelError(
        f"input {evidence.input} takes images of {width}x{height}: that size was only used to "
        "write the file, no object can be seen in it",
        where=str(evidence.path),
        expected="a model with free height and width, or of a useful size",
        fix=[
            "write a folder to run, with a copy of the model for another size:",
            f"  headrace init {name} --size 640x480",
            f"  headrace init {name} --size 1280x736   (smaller objects, four times the work)",
        ],
    )


def _free_size(
    evidence: FileEvidence, exporter: Exporter | None, height: object, width: object
) -> tuple[tuple[int, int] | None, str, bool]:
    """Height and width for free axes, their source, and whether they are assumed."""
    texts = evidence.metadata
    for key in ("imgsz", "input_size", "image_size"):
        numbers = [int(n) for n in re.findall(r"\d{2,4}", texts.get(key, ""))][:2]
        if numbers:
            return (numbers[0], numbers[-1]), f"metadata {key}", False
    if exporter in (exporters.ULTRALYTICS, exporters.YOLOV5):
        return (640, 640), f"assumed, as {exporter.name} trains", True
    if exporter is exporters.PADDLE_DET:
        return _DETECTOR, "assumed, multiples of 32 for wide images", True
    if exporter is exporters.PADDLE:
        reads = len(evidence.outputs[0].shape) == 3
        return (_READER if reads else _TURN), "as PaddleOCR trains", False
    if isinstance(height, int) or isinstance(width, int):
        known = height if isinstance(height, int) else width
        assert isinstance(known, int)
        return (known, known), "assumed square", True
    return None, "", False


def _scale(
    images: Images, evidence: FileEvidence, layers: FirstLayers, exporter: Exporter | None
) -> None:
    said = _said(evidence)
    trained = exporter.scaling if exporter is not None else None
    if evidence.input.dtype.kind in "ui":
        images.scaling, why = BYTES, f"the input is {evidence.input.dtype}"
    elif layers.inside:
        images.scaling, why = (BYTES if layers.level == "bytes" else UNIT), layers.inside
    elif said is not None:
        images.scaling, why = said
    elif trained is not None and _agree(trained, layers):
        assert exporter is not None
        images.scaling, why = trained, f"as {exporter.name} does"
        images.reasons["layers"] = layers.why
    elif (measured := _measured(layers)) is not None and trained is None:
        images.scaling, why = measured, layers.why
        if measured is BYTES:  # of the means nothing tells but that they were taken off
            images.assumed.append("means")
        if measured is BYTES and layers.centred:
            images.scaling, images.order = CAFFE, "BGR"
            why += ", near 0: means were taken off, as Caffe's models have it"
    else:
        images.scaling, why = (BYTES if layers.level == "bytes" else UNIT), "undecided"
        images.questions.append(_unscaled(layers, trained))
    if images.channels == 1:
        offsets = images.scaling.offsets[:1]
        images.scaling = Scaling(images.scaling.factor, offsets, images.scaling.words)
    images.reasons["scaling"] = why


def _unscaled(layers: FirstLayers, trained: Scaling | None) -> Question:
    usual = [UNIT, IMAGENET, HALF] if layers.level == "small" else [BYTES, UNIT, IMAGENET]
    if trained is not None and trained not in usual:
        usual = [trained, *usual[:2]]
    if layers.level == "bytes" and trained is not None:
        usual = [BYTES, trained]
    return Question(
        "how values are scaled is undecided" + (f": {layers.why}" if layers.why else ""),
        [(scaling.keys, scaling.words) for scaling in usual],
    )


def _agree(trained: Scaling, layers: FirstLayers) -> bool:
    """Whether the first layers do not speak against a scaling."""
    if layers.scale is not None:
        return trained.factor / 2.5 < layers.scale < trained.factor * 2.5
    if layers.level is None:
        return True
    return (trained.factor > 0.5) == (layers.level == "bytes")


def _measured(layers: FirstLayers) -> Scaling | None:
    """The usual scaling that the first layers alone tell; None if several are as likely."""
    if layers.scale is None:
        return BYTES if layers.level == "bytes" else None
    if layers.level == "bytes":
        return BYTES
    for scaling, (low, high), centred in (
        (UNIT, _UNIT_RANGE, False),
        (HALF, _HALF_RANGE, True),
        (IMAGENET, _IMAGENET_RANGE, True),
    ):
        if low <= layers.scale < high and layers.centred == centred:
            return scaling
    return None


def _said(evidence: FileEvidence) -> tuple[Scaling, str] | None:
    """Scaling that the file states in words or numbers."""
    for key, text in _texts(evidence):
        if re.search(r"/ ?255\b", text):
            return UNIT, f"{key}: {text[:60]!r}"
    texts = evidence.metadata
    names = ("norm_mean", "norm_std") if "norm_mean" in texts else ("mean", "std")
    try:
        mean, deviation = ([float(v) for v in ast.literal_eval(texts[name])] for name in names)
    except (KeyError, ValueError, SyntaxError, TypeError):
        return None
    if len(mean) not in (1, 3) or len(deviation) != len(mean) or min(deviation, default=0) <= 0:
        return None
    bytes_ = 1.0 if max(map(abs, mean)) > 2 else 255.0
    middle = sum(deviation) / len(deviation) * bytes_
    told = f"metadata {' and '.join(names)}"
    if SOURCE in texts:
        told = _beside(evidence)
    if not any(mean) and middle == UNIT.factor**-1:
        return UNIT, told
    words = f"mean {texts[names[0]]}, deviation {texts[names[1]]}"
    return Scaling(1 / middle, tuple(m * bytes_ for m in mean), words), told


def _texts(evidence: FileEvidence) -> list[tuple[str, str]]:
    model = evidence.network.model
    return [
        ("the model's description", str(model.doc_string or "")),
        ("the graph's description", str(model.graph.doc_string or "")),
        ("metadata description", evidence.metadata.get("description", "")),
    ]


def _colour(images: Images, evidence: FileEvidence, exporter: Exporter | None) -> None:
    if images.channels == 1:
        images.order, images.reasons["order"] = "GRAY", "the input has one channel"
        return
    for key, text in _texts(evidence):
        match = re.search(r"\b(RGB|BGR)\b", text)
        if match:
            images.order, images.reasons["order"] = match[1], f"{key}: {text[:60]!r}"
            return
    if evidence.metadata.get(ORDER) in ("RGB", "BGR"):
        images.order = evidence.metadata[ORDER]
        images.reasons["order"] = _beside(evidence)
        return
    if exporter is not None and exporter.order is not None:
        images.order, images.reasons["order"] = exporter.order, f"as {exporter.name} does"
        return
    images.assumed.append("order")
    images.reasons["order"] = "assumed: nothing in the file tells"
