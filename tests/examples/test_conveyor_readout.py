"""The demo's pipeline, detector → tracker → code reader, on videos nobody trained on.

A parcel counts if its whole code can be seen (`Truth.readable`) and its box was found (IoU of one
half) in ten frames or more. Its track is the tracking id it has in most of these frames. The
read-out of a track is the complete code that its frames carry most often. The read-out accuracy is
the share of counted parcels whose track's read-out is the code printed on them; a parcel without
a track, or whose track never carries a complete code, counts as read wrongly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from conveyor_parser import parse_code
from conveyor_scene import ALPHABET, CODE_LENGTH, FPS, Scene, Truth
from conveyor_training.videos import TEST_SEEDS

from headrace import ArraySource, open_pipeline
from headrace.meta import UNTRACKED_OBJECT_ID, ClassifierParams, FrameMeta, Layer, NetworkInfo
from tests.copies import copied_example

FOLDER = Path(__file__).parents[2] / "examples" / "conveyor"
SEEDS = range(400, 404)
FIRST, FRAMES = 20, 100
LEAST_FRAMES = 10
LOOKS = 5
"""The reader looks at a tracked parcel at least every so many frames."""


@dataclass
class Parcel:
    """One parcel that is long enough readable: its code, and the tracks it had meanwhile."""

    code: str
    tracks: Counter[int] = field(default_factory=Counter)
    frames: int = 0

    @property
    def track(self) -> int | None:
        return max(self.tracks, key=lambda i: self.tracks[i], default=None)


@dataclass
class Character:
    """One character of a found parcel in one frame.

    `visible` is the largest share of it that could be seen in the last `LOOKS` frames, `shown` what
    the pipeline says it is, or None.
    """

    true: str
    visible: float
    shown: str | None
    readable: bool
    width: float


@dataclass
class Video:
    """What the pipeline made of one seed."""

    parcels: dict[int, Parcel] = field(default_factory=dict)
    readouts: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    characters: list[Character] = field(default_factory=list)

    @property
    def counted(self) -> list[Parcel]:
        return [p for p in self.parcels.values() if p.frames >= LEAST_FRAMES]

    def read(self, parcel: Parcel) -> str | None:
        """The read-out of the parcel's track."""
        said = self.readouts.get(parcel.track or 0)
        return max(said, key=lambda code: said[code]) if said else None


def images(seed: int, truths: list[list[Truth]]) -> Iterator[npt.NDArray[np.uint8]]:
    """Render a video while it is asked for; what is true of its frames goes into `truths`."""
    scene = Scene(seed)
    for t in range(FIRST, FIRST + FRAMES):
        image, seen = scene.frame(t)
        truths.append(seen)
        yield image


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[Video]:
    """All seeds as the sources of one pipeline, as `pipeline.yml` describes it."""
    folder = tmp_path_factory.mktemp("readout") / "conveyor"
    copied_example("conveyor", folder)
    truths: list[list[list[Truth]]] = [[] for _ in SEEDS]
    sources = [
        ArraySource(images(seed, truths[i]), fps=FPS, format="rgb", name=f"seed {seed}")
        for i, seed in enumerate(SEEDS)
    ]
    results = [Video() for _ in SEEDS]
    recent: dict[tuple[int, int], list[tuple[float, ...]]] = defaultdict(list)
    pipeline = open_pipeline(
        folder / "pipeline.yml", sources=sources, outputs=folder / "found.jsonl", threads=1
    )
    for _, meta in pipeline:
        source = meta.source_id
        for truth, index in matches(truths[source][meta.frame], meta):
            looks = recent[source, truth.parcel]
            looks.append(truth.character_visible)
            del looks[:-LOOKS]
            note(results[source], truth, meta, index, looks)
    assert all(len(t) == FRAMES for t in truths)
    return results


def matches(truths: list[Truth], meta: FrameMeta) -> Iterator[tuple[Truth, int]]:
    """Each parcel with the object that overlaps it best, at least by half."""
    left, top, width, height = meta.objects.rects.T
    for truth in truths:
        x, y, w, h = truth.box
        across = np.minimum(x + w, left + width) - np.maximum(x, left)
        down = np.minimum(y + h, top + height) - np.maximum(y, top)
        common = across.clip(0) * down.clip(0)
        overlap = common / (w * h + width * height - common)
        if len(overlap) and overlap.max() >= 0.5:
            yield truth, int(overlap.argmax())


def note(
    video: Video, truth: Truth, meta: FrameMeta, index: int, looks: list[tuple[float, ...]]
) -> None:
    """Remember what is said of one parcel in one frame."""
    obj = meta.objects[index]
    shown = {label.attribute: label.label for c in obj.classifiers for label in c.labels}
    for place in range(CODE_LENGTH):
        visible = max(look[place] for look in looks)
        video.characters.append(
            Character(truth.code[place], visible, shown.get(place), truth.readable, obj.width)
        )
    parcel = video.parcels.setdefault(truth.parcel, Parcel(truth.code))
    parcel.frames += truth.readable
    if obj.object_id == UNTRACKED_OBJECT_ID:
        return
    if truth.readable:
        parcel.tracks[obj.object_id] += 1
    if len(shown) == CODE_LENGTH:
        video.readouts[obj.object_id]["".join(shown[i] for i in range(CODE_LENGTH))] += 1


@pytest.mark.slow
def test_codes_of_unseen_seeds_are_read(videos: list[Video]) -> None:
    counted = [(video.read(p), p.code) for video in videos for p in video.counted]
    right = sum(read == code for read, code in counted)
    assert len(counted) >= 30
    assert right / len(counted) >= 0.95, [pair for pair in counted if pair[0] != pair[1]]


@pytest.mark.slow
def test_parcels_keep_their_ids(videos: list[Video]) -> None:
    parcels = [p for video in videos for p in video.counted]
    tracks = [p.track for p in parcels]
    assert len(set(tracks)) == len(tracks)
    assert sum(len(p.tracks) == 1 for p in parcels) / len(parcels) >= 0.95


@pytest.mark.slow
def test_readable_codes_are_shown_in_full(videos: list[Video]) -> None:
    """The reader looks again often enough: an early, incomplete reading does not stay."""
    seen = [c for video in videos for c in video.characters if c.readable]
    assert sum(c.shown == c.true for c in seen) / len(seen) >= 0.95


@pytest.mark.slow
def test_nothing_is_made_up(videos: list[Video]) -> None:
    """Characters shown are right, and were seen lately."""
    shown = [c for video in videos for c in video.characters if c.shown is not None]
    assert sum(c.shown != c.true for c in shown) / len(shown) <= 0.005
    # Parcels that are too narrow are not looked at any more, and keep what was read.
    hidden = [c for video in videos for c in video.characters if c.visible < 0.02 and c.width >= 60]
    assert len(hidden) > 100
    assert sum(c.shown is not None for c in hidden) / len(hidden) <= 0.01


def test_a_code_is_one_word_with_lines_for_what_cannot_be_read() -> None:
    labels = [list(ALPHABET)] * CODE_LENGTH
    layers = {}
    for place, character in enumerate("K7A2"):
        row = np.full(len(ALPHABET), 0.001, np.float32)
        row[ALPHABET.index(character)] = 0.9 if place != 2 else 0.5  # not above the threshold
        layers[f"character{place + 1}"] = Layer(f"character{place + 1}", row)
    network = NetworkInfo(128, 96, 1)
    found = parse_code(layers, network, ClassifierParams(0.5, labels))
    assert found.text == "K7_2"
    assert [(a, label) for a, _, _, label in found.attributes] == [(0, "K"), (1, "7"), (3, "2")]
    assert [v for _, v, _, _ in found.attributes] == [ALPHABET.index(c) for c in "K72"]
    assert [c for _, _, c, _ in found.attributes] == pytest.approx([0.9] * 3)
    whole = parse_code(layers, network, ClassifierParams(0.4, labels))
    assert (whole.text, len(whole.attributes)) == ("K7A2", 4)
    nothing = parse_code(layers, network, ClassifierParams(0.95, labels))
    assert (nothing.text, nothing.attributes) == ("", [])


def test_the_videos_were_never_trained_on() -> None:
    assert set(SEEDS) <= set(TEST_SEEDS)
