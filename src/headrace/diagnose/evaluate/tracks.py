"""How good tracks are: HOTA, IDF1, MOTA and id switches against a truth.

The metrics are those of the library `trackers` (Apache-2.0), whose numbers are trackeval's.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace._core.files import os_errors
from headrace._core.lazy import import_extra

Ids = npt.NDArray[np.int64]
Boxes = npt.NDArray[np.float64]

Tracks = Mapping[int, tuple[Ids, Boxes]]
"""Frame, from 1 -> ids (N,), and boxes (N, 4) left, top, width, height in pixels."""


@dataclass(frozen=True, slots=True)
class TrackScores:
    """Scores of tracks, shares of one but for the switches.

    Attributes:
        hota, deta, assa: higher order tracking accuracy, and its parts: detection, association.
        idf1: F1 of detections with the right identity, at an IoU of one half.
        mota: 1 - (misses + false ones + switches) / truth, at an IoU of one half.
        switches: how often a true object got another id.
        frames, objects: frames of the truth, and objects in them.
    """

    hota: float
    deta: float
    assa: float
    idf1: float
    mota: float
    switches: int
    frames: int
    objects: int

    def to_dict(self) -> dict[str, float]:
        """As JSON."""
        return asdict(self)


def read_tracks(path: Path) -> Tracks:
    """Read tracks: MOTChallenge's text, JSON Lines of Headrace (`.jsonl`), or COCO's JSON.

    The annotations of COCO's JSON have `track_id`; frames are its images in their order.

    Rows of MOTChallenge that are marked as ignored (seventh number 0), and objects of JSON Lines
    without a track, are left out.

    Raises:
        ConfigError: a line that is none.
    """
    with os_errors(ConfigError, "the file cannot be read", path):
        text = path.read_text("utf-8")
    if path.suffix == ".json" and '"annotations"' in text:
        return _coco_tracks(text, path)
    rows = _json_rows if path.suffix in (".jsonl", ".json") else _mot_rows
    frames: dict[int, list[tuple[int, list[float]]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            frame, found = rows(line)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ConfigError(
                f"the line is no row of tracks: {error}",
                where=f"{path}:{number}",
                expected="frame,id,left,top,width,height,… or a line of headrace's JSON Lines",
            ) from None
        frames.setdefault(frame, []).extend(found)
    return {
        frame: (
            np.array([i for i, _ in found], np.int64),
            np.array([box for _, box in found], np.float64).reshape(-1, 4),
        )
        for frame, found in frames.items()
    }


def _coco_tracks(text: str, path: Path) -> Tracks:
    """Tracks of COCO's JSON."""
    try:
        document = json.loads(text)
        number = {image["id"]: k for k, image in enumerate(document["images"], 1)}
        frames: dict[int, list[tuple[int, list[float]]]] = {k: [] for k in number.values()}
        for row in document["annotations"]:
            box = [float(v) for v in row["bbox"]]
            frames[number[row["image_id"]]].append((int(row["track_id"]), box))
        return {
            k: (np.array([i for i, _ in rows], np.int64),
                np.array([box for _, box in rows], np.float64).reshape(-1, 4))
            for k, rows in frames.items()
        }  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the file is no COCO JSON of tracks: {error!r}",
            where=str(path),
            expected="images with id, annotations with image_id, track_id and bbox",
        ) from None


def _mot_rows(line: str) -> tuple[int, list[tuple[int, list[float]]]]:
    (fields,) = csv.reader([line])
    values = [float(v) for v in fields[:7]]
    if len(values) < 6 or not np.isfinite(values).all():
        raise ValueError("six numbers are needed")
    used = len(values) < 7 or values[6] != 0
    return int(values[0]), [(int(values[1]), values[2:6])] * used


def _json_rows(line: str) -> tuple[int, list[tuple[int, list[float]]]]:
    record = json.loads(line)
    return int(record["frame"]) + 1, [
        (int(o["object_id"]), [float(o[k]) for k in ("left", "top", "width", "height")])
        for o in record["objects"]
        if o.get("object_id") is not None
    ]


def score_tracks(truth: Tracks, result: Tracks) -> TrackScores:
    """Compare tracks with the truth, in every frame of both.

    Raises:
        MissingExtraError: the extra `tracking` is not installed.
    """
    metrics = import_extra("trackers.eval", "tracking")
    numbers = sorted({*truth, *result})
    nothing = (np.empty(0, np.int64), np.empty((0, 4)))
    ours = [result.get(frame, nothing) for frame in numbers]
    true = [truth.get(frame, nothing) for frame in numbers]
    alike = [_overlaps(t[1], o[1]) for t, o in zip(true, ours, strict=True)]
    args = _numbered([ids for ids, _ in true]), _numbered([ids for ids, _ in ours]), alike
    hota = metrics.compute_hota_metrics(*args)
    clear = metrics.compute_clear_metrics(*args)
    identity = metrics.compute_identity_metrics(*args)
    return TrackScores(
        hota=float(hota["HOTA"]),
        deta=float(hota["DetA"]),
        assa=float(hota["AssA"]),
        idf1=float(identity["IDF1"]),
        mota=float(clear["MOTA"]),
        switches=int(clear["IDSW"]),
        frames=len(truth),
        objects=sum(len(ids) for ids, _ in truth.values()),
    )


def _numbered(frames: Sequence[Ids]) -> list[Ids]:
    """Ids from 0 without gaps."""
    every = np.unique(np.concatenate([*frames, np.empty(0, np.int64)]))
    return [np.searchsorted(every, ids).astype(np.int64) for ids in frames]


def _overlaps(a: Boxes, b: Boxes) -> npt.NDArray[np.float64]:
    """(N, M) IoU of boxes left, top, width, height."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum((a[:, :2] + a[:, 2:])[:, None], (b[:, :2] + b[:, 2:])[None])
    both = np.clip(high - low, 0, None).prod(axis=2)
    areas = a[:, 2:].prod(axis=1)[:, None] + b[:, 2:].prod(axis=1)[None]
    shares: npt.NDArray[np.float64] = both / np.maximum(areas - both, 1e-9)
    return shares
