"""Making a `ModelConfig` of a bare ONNX file, every value with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.errors import HeadraceError, ModelError
from headrace._core.findings import Finding
from headrace._core.formats.archives import model_file
from headrace._core.gpu.cuda import why_no_gpu
from headrace._core.text import counted, quoted
from headrace.config import ModelConfig
from headrace.config.document import AddedLine
from headrace.config.enums import (
    ColorFormat,
    NetworkType,
    TensorOrder,
)
from headrace.config.overrides import Overrides
from headrace.engine.input_shapes import sample_inputs
from headrace.infer.model import load_or_build
from headrace.infer.model.extra_inputs import fill_as_configured, fill_by_rule, unfilled_of_bare
from headrace.infer.model.image_input import image_range
from headrace.infer.parsers.head import CTC
from headrace.infer.parsers.labels import load_labels
from headrace.infer.recognise.deployments import kind_of_head
from headrace.infer.recognise.evidence import FileEvidence
from headrace.infer.recognise.exporters import USUAL, Exporter, exporter_of
from headrace.infer.recognise.fields import (
    PARSER_FIELDS,
    fields_of,
    origins_of,
    records,
    values_of_config,
)
from headrace.infer.recognise.first_layers import FirstLayers, weigh
from headrace.infer.recognise.heads import HeadReading, Probe, View, raw_words
from headrace.infer.recognise.images import (
    Images,
    Question,
    UndecidedError,
    options_of,
    read_images,
)
from headrace.infer.recognise.libreyolo import exporter_of_libreyolo
from headrace.infer.recognise.names import COCO, COCO_IDS, characters_in, names_in
from headrace.infer.recognise.readings import by_shape_alone, readings
from headrace.meta.layers import NetworkInfo
from headrace.network.tensor_spec import TensorSpec

_LINES = {
    "recognised-model": "the model: ",
    "recognised-images": "images: ",
    "recognised-from": "from ",
}
_NOTHING = Overrides()
_OF_BOXES = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)
_WORDS = {"stretch": "stretched to the input", "centre": "fitted in, bars around",
          "corner": "fitted in, bars right or below"}  # fmt: skip


@dataclass(frozen=True)
class Recognition:
    """A bare model, recognised.

    Attributes:
        config: runs it; its notices say in three lines what was recognised.
        reasons: field of the config -> what tells its value.
        evidence, exporter, images: what they were read from.
        reading: of the outputs; None if no built-in parser fits them.
        names: of the classes, or the characters of a reader of text.
        run: outputs of one image of noise, without the batch axis: name -> array.
    """

    config: ModelConfig
    reasons: Mapping[str, str]
    evidence: FileEvidence
    exporter: Exporter | None
    images: Images
    reading: HeadReading | None
    names: tuple[str, ...]
    run: Probe

    @property
    def lines(self) -> list[str]:
        """The three lines."""
        return [f"{n:brief}" for n in self.notices if n.code in _LINES]

    @property
    def notices(self) -> list[Finding]:
        """The three lines, and a warning about names that are not used."""
        own = [n for n in self.config.notices if n.where == str(self.evidence.path)]
        return [n for n in own if n.code in (*_LINES, "labels-count")]


def recognise(
    path: str | Path,
    user_fields: Mapping[str, object] | None = None,
    overrides: Overrides = _NOTHING,
    *,
    save: bool = True,
) -> Recognition:
    """Recognise a model by its file: head, exporter, classes, names, images.

    Values that only running tells (corners or centres, pixels or 0..1) are looked at in one run on
    noise, with the engine that is saved beside the model.

    Args:
        path: an ONNX file.
        user_fields: fields of `ModelConfig` with values; they are taken as they are.
        overrides: keys of the command line that these came from, for messages.
        save: False keeps a new engine in memory.

    Raises:
        ModelError: the file cannot be read; its input is no image; no built-in parser reads its
            outputs; or two or three answers are as likely, each named with what chooses it.
    """
    return _recognise(Path(path), dict(user_fields or {}), overrides, save=save)


def recognise_for_init(
    path: Path,
    user_fields: Mapping[str, object],
    overrides: Overrides = _NOTHING,
    *,
    save: bool = True,
) -> Recognition:
    """`recognise`, but outputs that no built-in parser reads are no error.

    Args:
        path: an ONNX file.
        user_fields: see `recognise`.
        overrides: keys of the command line, which win.
        save: False keeps a new engine in memory.

    Raises:
        ModelError: see `recognise`.
        ConfigError: a key is refused.
    """
    fields = {**user_fields, **fields_of(overrides)}
    recognition = _recognise(path, fields, overrides, required=False, save=save)
    return replace(recognition, config=overrides.on(recognition.config))


def free_image_size(path: Path) -> tuple[int, int] | None:
    """Height and width that a run takes for images of any size; None: fixed, or no answer."""
    with suppress(ModelError):
        evidence = FileEvidence.read(model_file(path))
        layers = weigh(evidence.stem)
        images = read_images(evidence, layers, _exporter(evidence, layers)[0], {})
        if images.chosen and not any(q.key == "infer-dims" for q in images.questions):
            return images.height, images.width
    return None


def _recognise(
    path: Path,
    user_fields: dict[str, object],
    overrides: Overrides = _NOTHING,
    *,
    required: bool = True,
    save: bool = True,
) -> Recognition:
    path = model_file(path)
    evidence = FileEvidence.read(path)
    given: Any = user_fields.get("input_values", ())
    filled = {item.strip().rpartition(":")[0] for item in given}
    if unfilled := unfilled_of_bare(
        path, [s for s in evidence.more_inputs if s.name not in filled]
    ):
        raise unfilled
    layers = weigh(evidence.stem)
    exporter, told = _exporter(evidence, layers)
    images = read_images(evidence, layers, exporter, user_fields)
    base = _base(evidence, images, user_fields)

    built: list[Finding] = []

    network = NetworkInfo(images.width, images.height, images.channels)

    @cache
    def probe() -> Mapping[str, Any]:
        cfg = ModelConfig(**{**base, **_engine_fields(user_fields)})
        return _run_once(cfg.of_model(path, ()), network, built, save=save)

    if any(q.key == "infer-dims" for q in images.questions):
        raise UndecidedError(path, images.questions)  # the outputs have no shapes yet
    outputs = evidence.outputs_for(images.dims)
    if any(not o.shape or not all(isinstance(d, int) for d in o.shape[1:]) for o in outputs):
        outputs = tuple(_as_run(o, probe()) for o in outputs)
    reading, names, source = _reading(
        evidence, exporter, images, outputs, probe, user_fields, required=required
    )
    if reading is None and required and user_fields.get("network_type") != NetworkType.OTHER:
        raise _unread(evidence, images, outputs, overrides)
    uncounted = reading is not None and _uncounted(reading, user_fields, outputs)
    if questions := [*images.questions, *([uncounted] if uncounted else [])]:
        raise UndecidedError(path, questions)
    own, reasons = values_of_config(evidence, exporter, images, reading)
    values = base | own
    values |= user_fields
    origins = origins_of(reasons, values, user_fields)
    reasons |= dict.fromkeys(user_fields, "set by you")
    where = str(path)
    notices = [
        Finding(code, "info", f"{head}{{text}}", where, {"text": text})
        for (code, head), text in zip(
            _LINES.items(),
            _lines(exporter, told, images, reading, values, names, source),
            strict=True,
        )
    ]
    unused = _unused_names(evidence, reading, user_fields)
    draft = ModelConfig().changed(values, origins, [*notices, *unused, *built])
    config = draft.of_model(path, records(values, names, outputs))
    return Recognition(config, reasons, evidence, exporter, images, reading, names, probe)


def _exporter(evidence: FileEvidence, layers: FirstLayers) -> tuple[Exporter | None, str]:
    """The exporter, and the evidence for it."""
    if "libreyolo_version" in evidence.metadata:
        return exporter_of_libreyolo(evidence)
    return exporter_of(evidence, layers) or (None, "")


def _base(evidence: FileEvidence, images: Images, user_fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that an engine depends on."""
    values: dict[str, Any] = {"onnx_file": evidence.path.absolute()}
    size = (images.channels, images.height, images.width)
    if images.chosen or images.interleaved:
        values["infer_dims"] = user_fields.get("infer_dims", size)
        _, images.height, images.width = values["infer_dims"]
    if images.interleaved:
        values["network_input_order"] = TensorOrder.NHWC
    order = {"RGB": ColorFormat.RGB, "BGR": ColorFormat.BGR, "GRAY": ColorFormat.GRAY}
    values["model_color_format"] = order[images.order]
    values["net_scale_factor"] = images.scaling.factor
    if images.scaling.offsets:
        values["offsets"] = images.scaling.offsets
    return values


def _reading(
    evidence: FileEvidence,
    exporter: Exporter | None,
    images: Images,
    outputs: tuple[TensorSpec, ...],
    probe: Probe,
    user_fields: Mapping[str, Any],
    *,
    required: bool,
) -> tuple[HeadReading | None, tuple[str, ...], str]:
    """The reading of the outputs, the names of the classes, and where these come from."""
    known = names_in(evidence.metadata)
    if user_fields.get("labelfile_path"):
        known = tuple(load_labels(user_fields["labelfile_path"]).detector), "labelfile-path"
    count = user_fields.get("num_detected_classes") or (len(known[0]) if known else 0)
    network = NetworkInfo(images.width, images.height, images.channels)
    if user_fields.get("network_type") == NetworkType.OTHER:  # the caller reads the outputs
        return None, known[0] if known else (), ""
    view = View(evidence, exporter, outputs, network, count, probe)
    candidates = readings(view)
    kind = user_fields.get("network_type", kind_of_head(evidence.metadata))
    candidates = [r for r in candidates if r.kind is kind] or candidates
    asked = next((user_fields[f] for f in PARSER_FIELDS.values() if f in user_fields), None)
    if asked is not None:
        candidates = [r for r in candidates if r.parser == asked] or [
            _as_asked(user_fields, view, candidates)
        ]
    doubtful = by_shape_alone(view) if required and not candidates else []
    if len(candidates) > 1 or doubtful:
        question = _which(evidence, outputs, candidates, doubtful)
        raise UndecidedError(evidence.path, [*images.questions, question])
    if not candidates:
        return None, known[0] if known else (), "named in the metadata" if known else ""
    reading = candidates[0]
    names, source = _names(evidence, reading, known)
    if reading.classes is None and reading.kind in _OF_BOXES and names:
        reading = replace(reading, classes=len(names), counted=source)
    return reading, names, source


def _which(
    evidence: FileEvidence,
    outputs: Sequence[TensorSpec],
    candidates: Sequence[HeadReading],
    doubtful: Sequence[HeadReading],
) -> Question:
    """The question for the parser: of `candidates`, or of those that only the shapes allow."""
    outs = ", ".join(str(o) for o in outputs)
    choices = [
        (r.choice, f"{r.words}, {_counted(r.classes)}" if r.classes else r.words)
        for r in candidates or doubtful
    ]
    if candidates:
        return Question(
            f"{len(candidates)} built-in parsers read outputs like these ({outs})", choices
        )
    some = counted(len(doubtful), "built-in parser")
    return Question(
        f"no built-in parser reads what the model gives for an image of noise; {some} would read "
        f"the shapes of its outputs ({outs})",
        choices,
        f"another head? headrace init {evidence.path.name} -o {evidence.path.stem}   "
        "(writes a parser, with the names and shapes in place)",
    )


def _as_run(output: TensorSpec, run: Mapping[str, Any]) -> TensorSpec:
    """The output with the shape that a run gave it, where the file leaves axes open."""
    shape = np.shape(run[output.name])
    return TensorSpec(output.name, output.dtype, (output.shape[0] if output.shape else 1, *shape))


def _uncounted(
    reading: HeadReading, user_fields: Mapping[str, object], outputs: Sequence[TensorSpec]
) -> Question | None:
    """The question for the number of classes, where nothing holds it."""
    if reading.kind not in _OF_BOXES or reading.classes is not None:
        return None
    if "num_detected_classes" in user_fields:
        return None
    ids = (91, "COCO: ids 1 to 90")
    if reading.from_one:
        counts = [ids, (2, "one kind: id 1")]
    elif (reading.parser or "").startswith("HeadraceParseBoxesLabels"):  # written by either kind
        counts = [(80, "COCO counted from 0"), ids, (1, "one kind")]
    else:
        counts = [(80, "COCO"), (1, "one kind")]
    names = ", ".join(o.name for o in outputs)
    return Question(
        f"{reading.words}: the outputs ({names}) do not say how many classes there "
        "are; --labels FILE counts them, and headrace init writes a config and labels to fill in",
        [((f"num-detected-classes={number}",), words) for number, words in counts],
    )


def _as_asked(
    user_fields: Mapping[str, object], view: View, others: list[HeadReading]
) -> HeadReading:
    """The reading by the parser that is asked for, with the classes that all `others` count."""
    kind, name = next((k, user_fields[f]) for k, f in PARSER_FIELDS.items() if f in user_fields)
    counts = {r.classes: r for r in others if r.kind is kind}
    known = next(iter(counts.values())) if len(counts) == 1 else None
    if view.names or known is None:
        return HeadReading(kind, str(name), view.names or None, kind.label, "as asked")
    return replace(known, parser=str(name), words=kind.label, why="as asked", suppressed=False,
                   counted=known.counted or known.why)  # fmt: skip


def _engine_fields(user_fields: Mapping[str, object]) -> dict[str, Any]:
    fields = ("infer_dims", "network_mode", "batch_size", "model_engine_file", "custom_lib_path",
              "gpu_id", "net_scale_factor", "offsets", "model_color_format")  # fmt: skip
    return {name: user_fields[name] for name in fields if name in user_fields}


def _run_once(
    cfg: ModelConfig, network: NetworkInfo, built: list[Finding], *, save: bool
) -> dict[str, Any]:
    """The outputs of one image of noise, without the batch axis; `built` gets a new engine's.

    Inputs beside the image are filled as in a run: boxes may be in the size that one of them has.
    """
    low, high = image_range(cfg)
    save = save and why_no_gpu() is not None  # a run on the GPU would not use this engine
    try:
        plan = load_or_build(cfg, threads=1, save=save)
        if save:
            notices = (n for n in plan.decisions if n.level == "info")
            built += [n for n in notices if n.code == "engine-built"]
        with plan.open_session() as session:
            feeds = sample_inputs(session.inputs, 1, low=low, high=high)
            fill_by_rule(session.inputs[1:], feeds, network)
            fill_as_configured(cfg, session.inputs[1:], feeds)
            return {name: np.asarray(a)[0] for name, a in session.run(feeds).items()}
    except HeadraceError as error:  # what this config leaves out is not the user's to hear of
        error.notices = [n for n in error.notices if n not in cfg.notices]
        raise


def _unread(
    evidence: FileEvidence, images: Images, outputs: Sequence[TensorSpec], overrides: Overrides
) -> ModelError:
    name = evidence.path.name
    words = ["headrace init", name, "-o", evidence.path.stem]
    words += [options_of([_option(line)]) for line in overrides.lines]
    choices = [[option] for question in images.questions for option in question.options]
    many = " (choose how values are scaled)" if choices else ""
    return ModelError(
        "no built-in parser reads these outputs: " + ", ".join(map(str, outputs)),
        where=str(evidence.path),
        expected="a parser that knows what they mean",
        fix=[
            f"write one, with the names and shapes in place{many}:",
            *("  " + " ".join([*words, *choice]) for choice in choices or [[]]),
            "or take them as tensors: --set network-type=100 --set output-tensor-meta=1",
        ],
    )


def _option(line: AddedLine) -> str:
    group = "" if line.group == "property" else f"{line.group}."
    return f"{group}{line.key}={line.text}"


def _names(
    evidence: FileEvidence, reading: HeadReading, known: tuple[tuple[str, ...], str] | None
) -> tuple[tuple[str, ...], str]:
    if reading.parser == CTC:
        characters = characters_in(evidence.metadata)
        return characters, "listed in the metadata" if characters else ""
    if known and known[1] == "labelfile-path":  # it is used whatever it holds
        return known[0], "named in the label file"
    if known and reading.classes in (None, len(known[0])):
        return known[0], f"named in the metadata, {known[1]}"
    if reading.own_names:
        return reading.own_names, ""
    if reading.classes == len(COCO) and reading.kind is not NetworkType.CLASSIFIER:
        return COCO, "taken for COCO's: there are 80"
    if reading.classes == len(COCO_IDS) and reading.kind is not NetworkType.CLASSIFIER:
        return COCO_IDS, "taken for COCO's ids 1 to 90: there are 91"
    return (), f"the metadata name {len(known[0])} in {known[1]}" if known else ""


def _unused_names(
    evidence: FileEvidence, reading: HeadReading | None, user_fields: Mapping[str, object]
) -> list[Finding]:
    """A warning if the metadata name another number of classes than the outputs hold."""
    known = names_in(evidence.metadata)
    if (
        reading is None
        or known is None
        or user_fields.get("labelfile_path")
        or reading.parser == CTC
    ):
        return []
    names, key = known
    if reading.classes in (None, len(names)) or set(names) <= {*reading.own_names}:
        return []
    text = f"the metadata name {counted(len(names), 'class')} in {key}, and the outputs hold "
    text += f"{reading.classes}: these names are not used; --labels names the classes"
    return [Finding("labels-count", "warning", text, str(evidence.path))]


def _counted(classes: int | None) -> str:
    return "classes not counted" if classes is None else counted(classes, "class")


def _lines(
    exporter: Exporter | None,
    told: str,
    images: Images,
    reading: HeadReading | None,
    values: Mapping[str, Any],
    names: tuple[str, ...],
    source: str,
) -> list[str]:
    """Model, images, and where each comes from."""
    raw = values.get("network_type") == NetworkType.OTHER
    if reading is None or raw:
        words = raw_words(reading) if raw else "no built-in parser reads the outputs"
    else:
        parser = reading.parser or "built in"
        count = values.get("num_detected_classes") or reading.classes
        number = _counted(count)
        if reading.parser == CTC:
            number = f"{len(names)} characters"
        known = exporter is not None and exporter.name not in reading.words
        of = f" of {exporter.name}" if exporter is not None and known else ""
        words = f"{reading.words}{of}, parser {parser}, {number}"
    size = f"{images.width}x{images.height}"
    scaling = images.scaling.words if "scaling" in images.reasons else _scaled(values)
    first = ", ".join(quoted(name) for name in names[:3]) + ", …" * (len(names) > 3)
    named = f": {first}" if names else ", which nothing names"
    named += f" ({source})" if source else ""
    model = f"{words}{'' if reading is None or raw else named}"
    fit = "the centre cut out" if images.cut else _WORDS[images.fit]
    seen = f"{size} {images.order} {scaling}, {fit}"
    return [model, seen, _sources(told, images, reading)]


def _scaled(values: Mapping[str, Any]) -> str:
    """The scaling that is given, in words."""
    factor, offsets = float(values["net_scale_factor"]), tuple(values.get("offsets", ()))
    for usual in USUAL:
        close = np.isclose(factor, usual.factor, rtol=1e-5) and len(offsets) == len(usual.offsets)
        if close and np.allclose(offsets, usual.offsets):
            return f"{usual.words} (set by you)"
    means = f"(x - {', '.join(f'{n:g}' for n in offsets)})" if offsets else "x"
    return f"{means} * {factor:.6g} (set by you)"


def _sources(told: str, images: Images, reading: HeadReading | None) -> str:
    """Where each of the two other lines comes from."""
    parts = [told, reading.why if reading is not None else ""]
    parts += [images.reasons.get("layers", "")]
    by_reason: dict[str, list[str]] = {}
    for name in ("size", "scaling", "order", "fit"):
        if name in images.reasons and name not in images.assumed:
            by_reason.setdefault(images.reasons[name], []).append(name)
    parts += [f"{', '.join(names)}: {why}" for why, names in by_reason.items()]
    text = "; ".join(part for part in dict.fromkeys(parts) if part)
    if images.assumed:
        keys = {"size": "infer-dims", "order": "model-color-format",
                "fit": "maintain-aspect-ratio", "scaling": "net-scale-factor",
                "means": "offsets"}  # fmt: skip
        last = sorted(images.assumed, key="means".__eq__)
        named = ", ".join(f"{name} ({keys[name]})" for name in last)
        text += f"; assumed, for nothing in the file tells: {named}"
    return text
