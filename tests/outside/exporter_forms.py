"""How models of many exporters are read, beside what is known to be right: a table for the docs.

    python -m tests.outside.exporter_forms INDEX.csv [--page PAGE.md] [--known FORMS.csv]
        [--equal EQUAL.csv ...] [--earlier PAGE.md] [WORD]

INDEX.csv has a line for each ONNX file: path, family, task, form, csv_line, classes, and notes of
what is right, as `box=xyxy; unit=pixels; needs_nms=yes; colour=RGB; scale=0..1 (/255);
resize=stretch`. What is left out is not judged. FORMS.csv names exporter and version of a
`csv_line`; EQUAL.csv is what `tests.outside.exporter_runtimes` writes. Lines of an earlier
page stay for the forms that are not in the index. WORD: only paths with it.
The exit code is 1 if a file is read wrongly.

The outputs and the images are judged apart: what a file does not say about its images is asked, and
the table gives the answer that the notes have, to see how the outputs are read then.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from headrace.config.document import AddedLine
from headrace.config.enums import NetworkType
from headrace.config.overrides import Overrides
from headrace.errors import HeadraceError
from headrace.infer.recognise.images import Question, UndecidedError
from headrace.infer.recognise.recognise import Recognition, recognise_for_init
from tests.outside.exporter_page import page, results, rows_of, writers

CENTRES, CORNERS = "cxcywh", "xyxy"
PARSERS = {  # what each takes boxes for
    **dict.fromkeys(
        ("HeadraceParseYoloV8", "HeadraceParseYoloV5", "HeadraceParseYoloV8Seg",
         "HeadraceParseYoloV5Seg", "HeadraceParseYoloV8Pose", "HeadraceParseYoloObb",
         "HeadraceParseYoloEndObb", "HeadraceParseBoxesScoresObb"),
        (CENTRES, "pixels"),
    ),
    **dict.fromkeys(
        ("HeadraceParseRTDETR", "HeadraceParseRTDETREnd", "HeadraceParseYoloV8Unit",
         "HeadraceParseDetr", "HeadraceParseDetrSoftmax", "HeadraceParseDetrSeg"),
        (CENTRES, "0..1"),
    ),
    **dict.fromkeys(
        ("NvDsInferParseYolo", "HeadraceParseYoloCorners", "HeadraceParseYoloEndSeg",
         "HeadraceParseYoloEndPose", "HeadraceParseBoxesScores", "HeadraceParseFcos",
         "HeadraceParseYoloNasPose", "HeadraceParseBoxesLabels", "HeadraceParseDetsLabels"),
        (CORNERS, "pixels"),
    ),
    **dict.fromkeys(
        ("HeadraceParseEfficientNMS", "HeadraceParseBoxesLabelsMasks", "HeadraceParseYoloV7Rows",
         "HeadraceParseYoloNasRows", "NvDsInferParseYoloV5CustomBatchedNMSTLT"),
        (CORNERS, "pixels"),
    ),
    **dict.fromkeys(
        ("HeadraceParseSSDCorners", "HeadraceParseSSDRows", "HeadraceParseBoxesLabelsUnit",
         "HeadraceParseEfficientNMSUnit", "NvDsInferParseCustomBatchedNMSTLT"),
        (CORNERS, "0..1"),
    ),
    "HeadraceParseSSDCenters": (CENTRES, "0..1"),
}  # fmt: skip

_SCALES = (("(/255)", "/ 255"), ("0..255", "0..255"), ("ImageNet", "ImageNet"),
           ("127.5", "127.5"), ("-1..1", "127.5"), ("0..1", "/ 255"))  # fmt: skip
"""Words of the notes, and of the answer to choose."""
_IMAGES = ("net-scale-factor", "infer-dims")


_REGIONS = "HeadraceParseTextRegions"
"""Its regions do not overlap: what the notes mean is the step from the map to them."""


class Answer(NamedTuple):
    """How one file is read.

    `state` is that of the outputs: `read`, `wrong`, `asked`, `unread` or `refused`; `images` says
    how they are prepared: `read`, `asked` with the keys, or `wrong`.
    """

    row: Mapping[str, str]
    state: str
    words: str
    images: str = ""
    shapes: str = ""
    assumed: str = ""

    @property
    def named(self) -> tuple[str, str, str]:
        """Family, task and form."""
        return self.row["family"], self.row["task"], self.row["form"]


def faults(known: Recognition, notes: Mapping[str, str], row: Mapping[str, str]) -> Iterator[str]:
    """What speaks against a reading of the outputs."""
    reading = known.reading
    assert reading is not None
    box, unit = PARSERS.get(reading.parser or "", ("", ""))
    if box and notes.get("box") and box not in notes["box"]:
        yield f"boxes are {notes['box']}, not {box}"
    if unit and notes.get("unit") and unit not in notes["unit"]:
        yield f"boxes are in {notes['unit']}, not {unit}"
    needs = notes.get("needs_nms")
    if reading.parser and reading.kind is NetworkType.DETECTOR:
        if needs == "yes" and reading.suppressed and reading.parser != _REGIONS:
            yield "suppression is needed"
        if needs == "no" and not reading.suppressed and not _one_to_one(known):
            yield "the boxes are final"
    own, shown = row["classes"], reading.classes
    counted = own.isdecimal() and shown and reading.kind is not NetworkType.OTHER
    if counted and shown - int(own) not in _SURPLUS.get(reading.parser or "", (0,)):
        yield f"there are {own} classes, not {shown}"
    kinds = _KINDS.get(row["task"], (reading.kind,))
    if reading.kind not in kinds:
        yield f"it is of {row['task']}, not {reading.kind.label}"


_KINDS = {
    "detect": (NetworkType.DETECTOR,),
    "obb": (NetworkType.DETECTOR,),
    "classify": (NetworkType.CLASSIFIER,),
    "semantic": (NetworkType.SEGMENTATION,),
    "pose crop": (NetworkType.DETECTOR, NetworkType.OTHER),
    "embedding": (NetworkType.OTHER,),
    "depth": (NetworkType.OTHER,),
}
"""Task of a line, and what it may be read as; other tasks have several ways."""


def _one_to_one(known: Recognition) -> bool:
    """Thousands of rows of which each object has one: no file tells, and suppression keeps them."""
    shape = known.evidence.outputs_for(known.images.dims)[0].shape
    return any((isinstance(d, int) and d > 1000) or not isinstance(d, int) for d in shape[1:])


_SURPLUS = {
    "HeadraceParseHeatmapPose": range(-500, 1),
    "HeadraceParseMoveNet": range(-500, 1),
    "HeadraceParseSimCC": range(-500, 1),
    **dict.fromkeys(
        ("HeadraceParseRetinaFace", "HeadraceParseSSDCorners", "HeadraceParseUltraFacePriors"),
        (-1, 0),
    ),
    "HeadraceParseDetr": (0, 11),
    "HeadraceParseClassMap": (0, 1),
}
"""Heads whose notes count points, the background, or COCO's 80 classes for its 91 ids."""


def image_faults(known: Recognition, notes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What speaks against the images: which of their facts, and what is right."""
    images = known.images
    if notes.get("colour") in ("RGB", "BGR") and images.order not in (notes["colour"], "GRAY"):
        yield "order", f"colours are {notes['colour']}"
    scale = notes.get("scale", "")
    if scale.endswith("(/255)") and images.scaling.words != "/ 255":
        yield "scaling", f"values are {scale}"
    if scale == "0..255" and images.scaling.words != "0..255":
        yield "scaling", f"values are {scale}"
    fit = notes.get("resize", "")
    expected = "stretch" if fit.startswith("stretch") else ""
    if fit.startswith("letterbox"):
        expected = "corner" if re.search("top|bottom", fit) else "centre" if "cent" in fit else ""
    if expected and images.fit != expected:
        yield "fit", f"images are fitted in by {fit}"


def settings(question: Question, row: Mapping[str, str], notes: Mapping[str, str]) -> list[str]:
    """The lines `key=value` that answer a question as the notes have it; else its first answer."""
    if question.key == "num-detected-classes" and row["classes"].isdecimal():
        return [f"num-detected-classes={row['classes']}"]
    words = next((own for said, own in _SCALES if said in notes.get("scale", "")), "")
    if question.key == "infer-dims" and row["task"] in ("classify", "embedding"):
        return list(question.candidates[-1][0])
    lines = [setting for setting, why in question.candidates if words and words in why]
    return list((lines or [question.candidates[0][0]])[0])


def notes_of(row: Mapping[str, str]) -> dict[str, str]:
    """The notes of a line of the index."""
    pairs = (part.partition("=")[::2] for part in row["notes"].split(";"))
    return {key.strip(): value.strip() for key, value in pairs}


def recognised(
    row: Mapping[str, str], lines: list[AddedLine], asked: list[str], path: Path | None = None
) -> Recognition:
    """Read one file, answering the questions about its images; `lines` gets the answers.

    Raises:
        UndecidedError: the reading of the outputs is asked.
        HeadraceError: the file is refused.
    """
    while True:
        overrides = Overrides(tuple(lines))
        try:
            return recognise_for_init(path or Path(row["path"]), {}, overrides, save=False)
        except UndecidedError as error:
            open_ = [q for q in error.questions if q.key not in asked]
            keys = [q.key for q in open_]
            if not open_ or any(key.startswith("parse-") for key in keys):
                raise
            asked += keys
            for question in open_:
                for line in settings(question, row, notes_of(row)):
                    key, _, value = line.partition("=")
                    lines.append(AddedLine("property", key, value, "--set"))


def answer(row: Mapping[str, str]) -> Answer:
    """Read one file."""
    notes, asked = notes_of(row), list[str]()
    try:
        known = recognised(row, [], asked)
    except UndecidedError as error:
        words = "; ".join(q.found for q in error.questions if q.key not in _IMAGES)
        return Answer(row, "asked", words or "asked twice", ", ".join(asked))
    except HeadraceError as error:
        return Answer(row, "refused", f"{error:brief}")
    shapes = ", ".join(map(str, known.evidence.outputs_for(known.images.dims)))
    if known.reading is None:
        return Answer(row, "unread", "no built-in parser", shapes=shapes)
    kind = known.reading.kind
    words = known.reading.parser or (
        f"tensors ({known.reading.words})" if kind is NetworkType.OTHER else "built in"
    )
    wrong = list(faults(known, notes, row))
    differ = list(image_faults(known, notes))
    assumed = [f"{what}" for what in known.images.assumed]
    misread = [text for what, text in differ if (what not in assumed and "scaling" not in what)
               or (what == "scaling" and "net-scale-factor" not in asked)]  # fmt: skip
    images = (", ".join(asked) and "asked: " + ", ".join(asked)) or "read"
    if misread:
        images = "wrong: " + "; ".join(misread)
    taken = [text for what, text in differ if what in assumed]
    note = ", ".join(assumed) + (f" ({'; '.join(taken)})" if taken else "")
    state = "wrong" if wrong else "read"
    words = f"{words}: {'; '.join(wrong)}" if wrong else words
    return Answer(row, state, words, images, shapes, note)


def main() -> int:
    """Read the files, print each answer and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--known", type=Path)
    parser.add_argument("--equal", type=Path, nargs="*", default=())
    parser.add_argument("--earlier", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    earlier = rows_of(options.earlier)
    answers = []
    with options.index.open(newline="") as file:
        for row in csv.DictReader(file):
            if options.word in row["path"] and Path(row["path"]).is_file():
                one = answer(row)
                answers.append(one)
                print(*one.named, one.state, one.words, one.images, one.shapes, one.assumed,
                      sep=" | ", flush=True)  # fmt: skip
    counts = Counter(one.state for one in answers)
    print("outputs:", ", ".join(f"{state} {number}" for state, number in counts.most_common()))
    images = Counter(one.images.partition(":")[0] for one in answers if one.state == "read")
    print("images:", ", ".join(f"{state} {number}" for state, number in images.most_common()))
    if options.page:
        known, equal = writers(options.known), results(options.equal)
        options.page.write_text(page(answers, known, equal, earlier))
    return 1 if counts["wrong"] or images["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
