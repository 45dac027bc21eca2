"""Whether a config's classes, its label file and the outputs of its model belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace._core.findings import Data, Finding
from headrace._core.text import counted, quoted
from headrace.config.enums import NetworkType, TensorOrder
from headrace.infer.parser_choice import Choice
from headrace.infer.parsers import BuiltinParser, parse_coverage_bbox
from headrace.infer.parsers.class_maps import Segmenter
from headrace.infer.parsers.head import CTC, Head
from headrace.infer.parsers.labels import Labels
from headrace.infer.trial import advised
from headrace.meta import NetworkInfo
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.config import ModelConfig

_BACKGROUND = {"background", "__background__", "_background_", "bg", "unlabeled", "none", "n/a"}


def class_findings(
    cfg: ModelConfig,
    choice: Choice,
    outputs: Sequence[TensorSpec],
    network: NetworkInfo | None,
    labels: Labels,
) -> list[Finding]:
    """Warnings if the outputs hold other classes than the config and its label file have.

    Args:
        cfg: the config.
        choice: its parser, which fits the outputs.
        outputs: of the model, batch first; none if they are not known.
        network: size of the network input, None where it is not known.
        labels: of the config's label file, none if it names none.
    """
    counts = class_counts(cfg, choice, outputs, network)
    if counts and isinstance(choice.parser, BuiltinParser):
        counts = _with_background(choice.parser, counts[0], cfg.num_detected_classes, labels)
    notices = class_notices(cfg, counts, labels)
    if not notices and isinstance(choice.parser, BuiltinParser):
        notices += _background_of_yolo(cfg, choice.parser.head.name, labels)
    return notices


def _with_background(parser: BuiltinParser, held: int, number: int, labels: Labels) -> list[int]:
    """The numbers of classes that outputs may mean, with and without a score of background."""
    if held == number or 0 not in parser.head.surplus:
        return [held]
    counts = [held + more for more in sorted(parser.head.surplus)]
    return [len(labels)] if len(labels) in counts else counts


def _background_of_yolo(cfg: ModelConfig, head: str, labels: Labels) -> list[Finding]:
    """A warning if class 0 of a head that has no background is called so."""
    if "Yolo" not in head or not labels or labels.detector[0].strip().lower() not in _BACKGROUND:
        return []
    text = f"the first label, '{quoted(labels.detector[0])}', names class 0, and {head} has no "
    text += "background class: every class has the name of the one before"
    return [_of_file(cfg, text, code="labels-background")]


def class_counts(
    cfg: ModelConfig, choice: Choice, outputs: Sequence[TensorSpec], network: NetworkInfo | None
) -> list[int]:
    """How many classes the outputs hold, as headrace's own parsers read them.

    Returns:
        One number; of a classifier one for each output. Empty where the outputs do not tell.
    """
    parser = choice.parser
    if parser is None:  # the built-in classifier
        counts = [spec.shape[1] for spec in outputs if len(spec.shape) > 1]
        return [n for n in counts if isinstance(n, int)] if len(counts) == len(outputs) else []
    axis: int | str | None = None
    if isinstance(parser, BuiltinParser) and parser.head.key == Head.key:
        axis = parser.classes(outputs, network, cfg.num_detected_classes)
    elif parser is parse_coverage_bbox:
        shapes = [spec.shape for spec in outputs if "cov" in spec.name]
        axis = shapes[-1][1] if shapes and len(shapes[-1]) == 4 else None
    elif isinstance(parser, Segmenter) and outputs and _has_scores(outputs[0]):
        axis = outputs[0].shape[3 if cfg.segmentation_output_order is TensorOrder.NHWC else 1]
    return [axis] if isinstance(axis, int) else []


def _has_scores(output: TensorSpec) -> bool:
    """Whether an output is a map of scores; integers are class numbers, and count no classes."""
    return len(output.shape) == 4 and output.dtype.kind == "f"


def class_notices(cfg: ModelConfig, counts: Sequence[int], labels: Labels) -> list[Finding]:
    """Warnings if the outputs, `num-detected-classes` and the label file disagree.

    Args:
        cfg: the config.
        counts: of `class_counts`, of a detector all that are as likely; empty compares the labels
            with the config alone.
        labels: of the config's file, none if it names none.
    """
    if cfg.network_type is NetworkType.CLASSIFIER:
        if cfg.parse_classifier_func_name == CTC:  # one character a line
            return []
        texts = _classifier_texts(counts, labels)
        return [_of_file(cfg, text, code="classifier-labels") for text in texts]
    number = cfg.num_detected_classes
    if not number:
        return []  # said already
    notices = []
    held = counts[0] if counts else number
    if held != number:
        text = "num-detected-classes={given}, but the model's outputs hold {classes}"
        data: Data = {"given": number, "classes": counted(held, "class")}
        where = cfg.where("num_detected_classes")
        changes = [{"num-detected-classes": str(n)} for n in counts]
        if cfg.network_type is NetworkType.SEGMENTATION and len(labels) == number:
            # the classes may stand on another axis
            text += ", if segmentation-output-order is right; the label file has {given}, too"
            finding = Finding("class-count", "warning", text, where, data)
            notices.append(advised(finding, changes))
        elif len(changes) > 1:
            text += ", or one more with a background"
            notices.append(advised(Finding("class-count", "warning", text, where, data), changes))
        else:
            fix = f"set num-detected-classes={held}; filter-out-class-ids hides classes"
            data = {**data, "set": changes[0]}
            notices.append(Finding("class-count", "warning", text, where, data, remedies=(fix,)))
    if labels.records:
        what = (
            counted(held, "class") + " of the model"
            if held != number
            else f"num-detected-classes={number}"
        )
        for text in _texts(labels, held, number, what):
            finding = _of_file(cfg, text, code="labels-count")
            background = labels.detector[0].strip().lower() in _BACKGROUND
            if not counts and len(labels) > number and not background:  # the outputs do not tell
                change = {"num-detected-classes": str(len(labels))}
                finding = advised(finding.changed(suffix=", or there are more classes"), [change])
            notices.append(finding)
    return notices


def _of_file(cfg: ModelConfig, text: str, *, code: str) -> Finding:
    return Finding(code, "warning", text, str(cfg.labelfile_path or cfg.path))


def _texts(labels: Labels, held: int, number: int, what: str) -> list[str]:
    """Compare a detector's labels with the `held` classes of its outputs; return the faults."""
    count, names = len(labels), labels.detector
    background = names[0].strip().lower() in _BACKGROUND
    if count == held or (count == number and not (background and count == held + 1)):
        return []
    said = counted(count, "label")
    one_line = [field for field in labels.records[0] if field]
    if count == 1 and len(one_line) > 1:
        text = f"one line of {len(one_line)} labels for {what}: the label file of a detector has "
        return [text + "one label per line; separated by ';' they are those of a classifier"]
    if count == held + 1 and background:
        return [f"{said} for {what}: {_shift(names[0])}"]
    if count > held:
        return [f"{said} for {what}: the file is that of another model"]
    text = f"{said} for {what}: objects of the other classes have no name"
    return [text + _MISSING if count == held - 1 else text]


_MISSING = (
    "; if class 0 of the model is background, its line is missing and every name is one too early"
)


def _shift(name: str) -> str:
    return (
        f"the first one, '{quoted(name)}', gives every class the name of the one before: remove it"
    )


def _classifier_texts(counts: Sequence[int], labels: Labels) -> list[str]:
    """Compare a classifier's labels with the `counts` of its outputs; return the faults."""
    count = len(labels)
    if count > 1 and all(len(fields) == 1 for fields in labels.records):
        text = f"{count} lines of one label each: a classifier's label file has one line for"
        return [f"{text} each attribute, its classes separated by ';', so only class 0 has a name"]
    texts = []
    for number, (held, fields) in enumerate(zip(counts, labels.records, strict=False)):
        names = len(fields) - (fields[-1:] == ("",))  # a closing semicolon is usual
        output = f"output {number}" if len(counts) > 1 else "the output"
        what = f"line {number + 1} has {counted(names, 'label')} for {output}, which holds "
        what += counted(held, "class")
        if names == held + 1 and fields[0].strip().lower() in _BACKGROUND:
            texts.append(f"{what}: {_shift(fields[0])}")
        elif names > held:
            texts.append(f"{what}: the file is that of another model")
        elif names < held:
            text = f"{what}: nothing is attached for the others"
            texts.append(text + _MISSING if names == held - 1 else text)
    return texts
