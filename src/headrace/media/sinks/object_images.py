"""Images of frames with objects, and of the objects, for training: `[img-save]` of configs."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.files import os_errors, write_where_named
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.media.pixels import to_rgb
from headrace.media.sinks.base import Sink, make_folder
from headrace.media.sinks.images import encode_image
from headrace.media.sinks.kitti import kitti_text, one_word
from headrace.media.sinks.options import SinkOptions
from headrace.media.sinks.rows import finite_rows
from headrace.meta import FrameMeta

_OPTIONS = ("full", "crops", "every", "rules", "sure", "surest", "width", "height")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_COLUMNS = (
    "image",
    "crop",
    "source",
    "frame",
    "label",
    "confidence",
    "left",
    "top",
    "width",
    "height",
)


@dataclass(frozen=True, slots=True)
class PauseRule:
    """The pause between two saved frames at a time of the day.

    Attributes:
        begin, end: of the local day; `end` itself is outside.
        pause_s: seconds.
    """

    begin: time
    end: time
    pause_s: float


def read_rules(path: Path) -> list[PauseRule]:
    """Read a CSV of `begin,end,skip`: times such as `08:00:00`, and seconds.

    Raises:
        MediaError: it cannot be read, or a row has another form.
    """
    with os_errors(MediaError, "cannot be read", str(path)):
        text = path.read_text("utf-8", "replace")
    rules = []
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        times = [_CLOCK.fullmatch(cell) for cell in cells[:2]]
        pause = re.fullmatch(r"\d+(\.\d+)?", cells[2]) if len(cells) == 3 else None
        if pause is None or None in times:
            if number == 1:
                continue  # names of the columns
            raise MediaError(
                f"row {number} is no rule", where=str(path), expected="08:00:00,18:00:00,60"
            )
        begin, end = (_time(t) for t in times if t)
        rules.append(PauseRule(begin, end, float(cells[2])))
    return rules


def _time(match: re.Match[str]) -> time:
    hour, minute, second = (int(part or 0) for part in match.groups())
    return time(hour, minute, second)


class ObjectImageSink(Sink):
    """A folder with frames in `images`, objects in `images_cropped`, KITTI text in `labels`.

    A frame is saved when an object in it passes the bounds, and the pause since the last saved
    frame of its source is over, by the times of the frames. `metadata.csv` gets a row for each
    object while it runs, `metadata.json` the same rows at the end. Nothing is drawn.

    Args:
        name: `object-images:DIR?full=1&crops=0&every=600&rules=FILE&sure=0&surest=1`, with `width`
            and `height`: whole frames, crops, the pause in seconds, pauses by time of day, least
            and largest confidence, least size in pixels.
        path: the folder, with the same options.

    Raises:
        MediaError: an option is unknown or out of range; the folder or the rules cannot be used.
    """

    kind = "object-images"
    fills_folder = True

    def __init__(self, name: str, path: Path) -> None:
        plain, _, query = path.name.partition("?")
        super().__init__(name, path.with_name(plain) if plain else path)
        options = SinkOptions(query, name, _OPTIONS)
        self._full = options.choice("full", ("0", "1"), "1") == "1"
        self._crops = options.choice("crops", ("0", "1"), "0") == "1"
        self._pause_s = options.number("every", 600, 1e9, "seconds")
        rules = options.text("rules")
        self._rules = read_rules(Path(rules)) if rules else []
        self._least = options.number("sure", 0, 1, "a confidence")
        self._most = options.number("surest", 1, 1, "a confidence")
        self._size = (
            options.number("width", 1, 1e6, "pixels"), options.number("height", 1, 1e6, "pixels")
        )  # fmt: skip
        for folder in ("images", "images_cropped", "labels"):
            make_folder(self.path / folder, name)
        self._last_ns: dict[int, int] = {}
        self._rows: list[dict[str, Any]] = []

    def _pause_ns(self) -> int:
        now = datetime.now().time()
        pauses = [rule.pause_s for rule in self._rules if rule.begin <= now < rule.end]
        return round((pauses[0] if pauses else self._pause_s) * 1e9)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        last = self._last_ns.get(meta.source_id)
        if last is not None and meta.pts_ns - last < self._pause_ns():
            return
        rows = finite_rows(meta)
        sizes = rows.values[:, 3:] >= self._size
        scores = rows.values[:, 0]
        kept = np.flatnonzero(sizes.all(axis=1) & (scores >= self._least) & (scores <= self._most))
        if not len(kept):
            return
        self._last_ns[meta.source_id] = meta.pts_ns
        stem = f"{meta.source_id:03d}_{meta.frame:06d}"
        image = ""
        if self._full:
            image = f"images/{stem}.jpg"
            self._save(image, encode_image(frame, ".jpg"))
        self._save(f"labels/{stem}.txt", kitti_text(meta)[0].encode("utf-8", "backslashreplace"))
        rgb = to_rgb(frame) if self._crops else None
        new = []
        for number in kept.tolist():
            score, left, top, width, height = rows.values[number].tolist()
            label = one_word(meta, rows.keys[number], rows.indices[number])
            crop = ""
            if rgb is not None:
                crop = f"images_cropped/{stem}_{number:03d}.jpg"
                x, y = max(0, int(left)), max(0, int(top))
                part = rgb[y : max(y + 1, round(top + height)), x : max(x + 1, round(left + width))]
                if not part.size:
                    continue
                self._save(crop, encode_image(Frame.from_array(part, PixelFormat.RGB), ".jpg"))
            values = (image, crop, meta.source_id, meta.frame, label, round(score, 6))
            box = (round(v, 3) for v in (left, top, width, height))
            new.append(dict(zip(_COLUMNS, (*values, *box), strict=True)))
        with (self.path / "metadata.csv").open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _COLUMNS)
            if not file.tell():
                writer.writeheader()
            writer.writerows(new)
        self._rows += new

    def _save(self, name: str, data: bytes) -> None:
        write_where_named(self.path / name, data, durable=False)

    def _finish(self) -> None:
        text = json.dumps(self._rows, ensure_ascii=False, indent=1)
        self._save("metadata.json", text.encode("utf-8", "backslashreplace"))
