"""The report of a batch as one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.lazy import import_extra
from headrace._core.pages import Series, image_uri, line_chart, render_page
from headrace._core.text import duration_text
from headrace.batches.ledger import UnitRecord
from headrace.batches.summary import BatchSummary
from headrace.batches.tables import read_table
from headrace.media import open_source

if TYPE_CHECKING:
    from markupsafe import Markup

_SAMPLES = 6
_MOST_BOXES = 100
_DECODED = 300  # frames of an input that are read to come to the one that is shown
_WIDTH = 640


@dataclass(frozen=True, slots=True)
class SampleBox:
    """A box on a sample image.

    Attributes:
        label: its class.
        text: label and confidence.
        box: left, top, width and height in pixels of the frame.
        colour: number of a colour of the page, 0 to 5.
    """

    label: str
    text: str
    box: tuple[float, float, float, float]
    colour: int


@dataclass(frozen=True, slots=True)
class SampleImage:
    """One frame of an input with its objects.

    Attributes:
        uri: the image, as a `data:` address.
        caption: input and number of the frame.
        width, height: of the frame in pixels.
        boxes: its objects, at most 100.
    """

    uri: str
    caption: str
    width: int
    height: int
    boxes: tuple[SampleBox, ...]


def batch_page(summary: BatchSummary) -> str:
    """Render totals, classes over time, slow and failed inputs, and sample images.

    Inputs that are not there any more have no images.
    """
    colours = {label: n % 6 for n, (label, _) in enumerate(summary.classes)}
    done = summary.units.get("done", 0)
    return render_page(
        "batch.html",
        title=f"Batch {Path(summary.path).resolve().name}",
        summary=summary,
        done=done,
        failed=summary.units.get("failed", 0),
        lost=summary.units.get("lost", 0),
        chart=_chart(summary),
        classes=[(label or "(no label)", f"{n:,}", n) for label, n in summary.classes],
        work=duration_text(summary.work_s),
        slowest=[_slow(r) for r in summary.slowest],
        failures=[(r.input, r.error, r.attempts) for r in summary.failed],
        warned=[(r.input, "; ".join(r.warnings)) for r in summary.warned],
        parts_of=sorted(summary.parts.items()),
        samples=_samples(summary, colours),
    )


def _slow(record: UnitRecord) -> tuple[str, str, str, str, str]:
    first = "" if record.first is None else f"from frame {record.first:,}"
    each = 1000 * record.seconds / record.frames
    return (
        record.input, first, f"{record.frames:,}", f"{record.seconds:.2f}", f"{each:.2f}",
    )  # fmt: skip


def _chart(summary: BatchSummary) -> Markup | None:
    if not summary.over_time:
        return None
    minutes = summary.longest_s >= 300
    length = summary.longest_s / (60 if minutes else 1)
    width = length / len(summary.over_time[0].counts)
    midpoints = (np.arange(len(summary.over_time[0].counts)) + 0.5) * width
    most = max(int(one.counts.max()) for one in summary.over_time)
    return line_chart(
        [Series(one.label or "(no label)", midpoints, one.counts) for one in summary.over_time],
        x_label=f"time in the video, {'min' if minutes else 's'}",
        y_label=f"objects per {width:.2g} {'min' if minutes else 's'}",
        x_range=(0.0, max(length, 1e-9)),
        y_range=(0.0, max(1, most)),
    )


def _samples(summary: BatchSummary, colours: dict[str, int]) -> list[SampleImage]:
    samples: list[SampleImage] = []
    seen: set[str] = set()
    for record in summary.richest:
        if record.input in seen or len(samples) == _SAMPLES or not Path(record.input).is_file():
            continue
        seen.add(record.input)
        try:
            sample = _sample(summary, record, colours)
        except (HeadraceError, OSError):
            continue  # the input changed, or its table is gone: --verify says so
        if sample is not None:
            samples.append(sample)
    return samples


def _sample(
    summary: BatchSummary, record: UnitRecord, colours: dict[str, int]
) -> SampleImage | None:
    """The frame of a unit that has most objects, among its first ones."""
    pq, pc = import_extra("pyarrow.parquet", "arrow"), import_extra("pyarrow.compute", "arrow")
    file = record.files.get("parquet")
    if file is None or (record.first or 0) > _DECODED:
        return None
    columns = ["source", "frame", "label", "confidence", "left", "top", "width", "height"]
    path = f"{summary.root}/{file.path}"
    if summary.system is None:
        table = read_table(Path(path)).select(columns)
    else:
        table = pq.read_table(path, columns=columns, partitioning=None, filesystem=summary.system)
    table = table.filter(pc.equal(table["source"], record.input))  # others may be packed with it
    frames = table["frame"].to_numpy()
    frames = frames[frames < _DECODED]
    if not len(frames):
        return None
    chosen = int(np.bincount(frames).argmax())
    rows = [row for row in table.to_pylist() if row["frame"] == chosen]
    rgb = _image(Path(record.input), chosen)
    height, width = rgb.shape[:2]
    boxes = tuple(_box(row, colours) for row in rows[:_MOST_BOXES])
    caption = f"{record.input}, frame {chosen}: {len(rows)} objects"
    return SampleImage(image_uri(rgb, max_width=_WIDTH), caption, width, height, boxes)


def _image(path: Path, number: int) -> Any:
    with open_source(str(path), live=False) as source:
        for frame in source:
            if frame.frame == number:
                return frame.to_rgb()
    raise MediaError(f"there is no frame {number} any more", where=str(path))


def _box(row: dict[str, Any], colours: dict[str, int]) -> SampleBox:
    left, top, width, height = (round(row[k], 1) for k in ("left", "top", "width", "height"))
    text = f"{row['label']} {row['confidence']:.2f}"
    return SampleBox(row["label"], text, (left, top, width, height), colours.get(row["label"], 0))
