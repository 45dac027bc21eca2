"""How models of many exporters are read, beside what is known to be right: a table for the docs.

    python -m tests.outside.exporter_forms INDEX.csv [--table PAGE.md] [WORD]

INDEX.csv has a line for each ONNX file: path, family, task, form, and notes of what is right, as
`box=xyxy; unit=pixels; needs_nms=yes; colour=RGB; scale=0..1 (/255); resize=stretch`. What is left
out is not judged. WORD: only paths with it. The exit code is 1 if a file is read wrongly.
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

from headrace.config.enums import NetworkType
from headrace.errors import HeadraceError
from headrace.infer.recognise.images import UndecidedError
from headrace.infer.recognise.recognise import Recognition, recognise_for_init

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
    "HeadraceParseSSDCorners": (CORNERS, "0..1"),
    "HeadraceParseSSDCenters": (CENTRES, "0..1"),
}  # fmt: skip


class Answer(NamedTuple):
    """How one file is read: `read`, `wrong`, `asked`, `unread` or `refused`."""

    family: str
    task: str
    form: str
    state: str
    words: str


def faults(known: Recognition, notes: Mapping[str, str], task: str) -> Iterator[str]:
    """What speaks against a reading."""
    reading, images = known.reading, known.images
    assert reading is not None
    box, unit = PARSERS.get(reading.parser or "", ("", ""))
    if box and notes.get("box") and box not in notes["box"]:
        yield f"boxes are {notes['box']}, not {box}"
    if unit and notes.get("unit") and unit not in notes["unit"]:
        yield f"boxes are in {notes['unit']}, not {unit}"
    needs = notes.get("needs_nms")
    judged = box and reading.kind is NetworkType.DETECTOR and needs in ("yes", "no")
    if judged and reading.suppressed is (needs == "yes"):
        yield "suppression is needed" if needs == "yes" else "the boxes are final"
    if notes.get("colour") in ("RGB", "BGR") and images.order != notes["colour"]:
        yield f"colours are {notes['colour']}"
    scale = notes.get("scale", "")
    if "(/255)" in scale and images.scaling.words != "/ 255":
        yield f"values are {scale}"
    if scale.startswith("0..255") and images.scaling.words != "0..255":
        yield f"values are {scale}"
    fit = notes.get("resize", "")
    expected = "stretch" if fit.startswith("stretch") else ""
    if fit.startswith("letterbox"):
        expected = "corner" if re.search("top|bottom", fit) else "centre" if "cent" in fit else ""
    if expected and images.fit != expected:
        yield f"images are fitted in by {fit}"
    if task == "embedding" and reading.kind is not NetworkType.OTHER:
        yield "an embedding has no classes"


def answer(row: Mapping[str, str]) -> Answer:
    """Read one file."""
    pairs = (part.partition("=")[::2] for part in row["notes"].split(";"))
    notes = {key.strip(): value.strip() for key, value in pairs}
    named = row["family"], row["task"], row["form"]
    try:
        known = recognise_for_init(Path(row["path"]), {}, save=False)
    except UndecidedError as error:
        return Answer(*named, "asked", str(error.questions[0].found))
    except HeadraceError as error:
        return Answer(*named, "refused", f"{error:brief}")
    if known.reading is None:
        return Answer(*named, "unread", "no built-in parser")
    kind = known.reading.kind
    words = known.reading.parser or ("tensors" if kind is NetworkType.OTHER else "built in")
    wrong = "; ".join(faults(known, notes, row["task"]))
    return Answer(*named, "wrong" if wrong else "read", f"{words}: {wrong}" if wrong else words)


def table(answers: list[Answer]) -> str:
    """Lines of Markdown: forms that are read alike share one."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for one in answers:
        words = one.words if one.state in ("read", "wrong") else ""
        rows.setdefault((one.family, one.task, one.state, words), []).append(one.form)
    lines = ["| exporter | task | forms | answer | parser |", "|---|---|---|---|---|"]
    for (family, task, state, words), forms in rows.items():
        parser = f"`{words}`" if words else ""
        lines.append(f"| {family} | {task} | {', '.join(forms)} | {state} | {parser} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Read the files, print each answer and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    answers = []
    with options.index.open(newline="") as file:
        for row in csv.DictReader(file):
            if options.word in row["path"] and Path(row["path"]).is_file():
                answers.append(answer(row))
                print(*answers[-1], sep=" | ", flush=True)
    counts = Counter(one.state for one in answers)
    print(", ".join(f"{state} {number}" for state, number in counts.most_common()))
    if options.table:
        options.table.write_text(table(answers))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
