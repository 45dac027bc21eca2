"""The search of a tracker's settings against true tracks, with a part held out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.errors import ConfigError
from headrace.diagnose.evaluate.tracks import Boxes, Ids, Tracks, TrackScores, score_tracks
from headrace.media.frame import Frame
from headrace.meta import UNTRACKED_OBJECT_ID, FrameMeta
from headrace.pipeline.track.open import open_tracker, settings_of_tracker
from headrace.pipeline.track.settings import Setting

Values = Mapping[str, Any]

RANGES: Mapping[str, tuple[float, float]] = {
    # of `iou`
    "min_iou": (0.05, 0.6), "min_hits": (1, 5), "max_age": (5, 120), "max_new_iou": (0.3, 0.95),
    "min_confidence": (-1, 0.6), "velocity_gain": (0, 1),
    # of the library's
    "lost_track_buffer": (5, 120), "minimum_iou_threshold": (0.05, 0.6),
    "minimum_consecutive_frames": (1, 5), "track_activation_threshold": (0.1, 0.8),
    "high_conf_det_threshold": (0.2, 0.8),
    # of the original's
    "minDetectorConfidence": (0, 0.6), "minTrackerConfidence": (0, 0.8),
    "minIouDiff4NewTarget": (0.2, 1), "probationAge": (0, 6), "maxShadowTrackingAge": (5, 120),
    "earlyTerminationAge": (1, 3), "minMatchingScore4Overall": (0, 0.6),
    "minMatchingScore4SizeSimilarity": (0, 0.7), "minMatchingScore4Iou": (0, 0.5),
    "minMatchingScore4VisualSimilarity": (0, 0.8), "matchingScoreWeight4Iou": (0, 1),
    "matchingScoreWeight4SizeSimilarity": (0, 1), "matchingScoreWeight4VisualSimilarity": (0, 1),
    "tentativeDetectorConfidence": (0, 0.6), "minMatchingScore4TentativeIou": (0.1, 0.7),
    "filterLr": (0.01, 0.2), "filterChannelWeightsLr": (0.01, 0.2), "gaussianSigma": (0.4, 1.2),
    "featureImgSizeLevel": (1, 5),
    # of any with a ReID model
    "reid_similarity": (0.3, 0.95),
}  # fmt: skip
"""Settings that are searched, and where."""

_VISUAL = ("Visual", "filter", "gaussian", "featureImg", "minTrackerConfidence")


@dataclass(frozen=True, slots=True)
class TrackTrial:
    """One set of settings.

    Attributes:
        changes: settings that differ from those at the start.
        tuned, held_out: scores on the frames of the search, and on those it never used.
        us_per_object: time of the tracker for an object and frame.
    """

    changes: Values
    tuned: TrackScores
    held_out: TrackScores
    us_per_object: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "changes": dict(self.changes), "tuned": self.tuned.to_dict(),
            "held_out": self.held_out.to_dict(), "us_per_object": round(self.us_per_object, 2),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrackSearch:
    """The trials of a search.

    Attributes:
        tracker: name of the tracker.
        start: the trial without changes.
        trials: all, in their order.
        split: number of the first frame that was held out, from 1.
    """

    tracker: str
    start: TrackTrial
    trials: Sequence[TrackTrial]
    split: int

    @property
    def front(self) -> list[TrackTrial]:
        """Trials that no other beats in both HOTA of the search and time; the best first."""
        front: list[TrackTrial] = []
        for trial in sorted(self.trials, key=lambda t: (-t.tuned.hota, t.us_per_object)):
            if all(trial.us_per_object < 0.8 * other.us_per_object for other in front):
                front.append(trial)
        return front

    @property
    def best(self) -> TrackTrial:
        """The best of the front that is no worse than the start on the frames held out."""
        return next(
            (t for t in self.front if t.held_out.hota >= self.start.held_out.hota), self.start
        )


def searched_settings(tracker: str | Path, names: Iterable[str] = ()) -> list[Setting]:
    """The settings of a tracker that a search changes: `names`, or all of `RANGES`.

    Raises:
        ConfigError: the tracker has none of a name, or no range is known for it.
    """
    name, settings = settings_of_tracker(tracker)
    has = {s.name: s for s in settings if s.name in RANGES}
    for asked in names:
        if asked not in has:
            raise ConfigError(
                f"the search has no range for the setting {asked!r} of {name}",
                where="--key",
                expected="some of " + ", ".join(has),
            )
    wanted = list(names) or [
        n for n in has if "nvdcf" in name or not any(word in n for word in _VISUAL)
    ]
    if not any("reid=" in part for part in (str(tracker),)):
        wanted = [n for n in wanted if n != "reid_similarity" or n in set(names)]
    return [has[n] for n in wanted]


def search_tracker(
    tracker: str | Path,
    play: Callable[[], Iterable[tuple[Frame, FrameMeta]]],
    truth: Tracks,
    settings: Sequence[Setting],
    *,
    trials: int = 40,
    at_once: int = 8,
    held_out: float = 1 / 3,
    seed: int = 0,
    on_round: Callable[[int], None] | None = None,
) -> TrackSearch:
    """Search the settings of a tracker against HOTA.

    The first trials lie anywhere in the ranges, later ones near the best so far. Several trackers
    see each pass over the frames.

    Args:
        tracker: as `open_tracker` takes it.
        play: gives each frame with the objects of a detector, anew at each call.
        truth: true tracks.
        settings: of `searched_settings`.
        trials: how many sets are tried beside that at the start.
        at_once: trackers of a pass.
        held_out: share of the frames, the last ones, that the search never uses.
        seed: of the random numbers.
        on_round: called with the number of trials after each pass.

    Raises:
        ConfigError: truth has too few frames for two parts.
        MissingExtraError: the extra `tracking` is not installed.
    """
    numbers = sorted(truth)
    cut = int(len(numbers) * (1 - held_out))
    if cut < 2 or len(numbers) - cut < 2:
        raise ConfigError(
            f"the truth has {len(numbers)} frames", where="--truth", expected="enough for two parts"
        )
    split = numbers[cut]
    rng = np.random.default_rng(seed)
    done = _pass(tracker, play, truth, [{}], split)
    name = done[0][0]
    found = [trial for _, trial in done]
    while len(found) <= trials:
        best = sorted(found, key=lambda t: -t.tuned.hota)[:3]
        some = [
            _anywhere(settings, rng) if len(found) < trials / 3
            else _near(best[int(rng.integers(len(best)))].changes, settings, rng)
            for _ in range(min(at_once, trials + 1 - len(found)))
        ]  # fmt: skip
        found += [trial for _, trial in _pass(tracker, play, truth, some, split)]
        if on_round is not None:
            on_round(len(found) - 1)
    return TrackSearch(name, found[0], found, split)


def _drawn(setting: Setting, rng: np.random.Generator) -> Any:
    low, high = RANGES[setting.name]
    if isinstance(setting.default, int):
        return int(rng.integers(int(low), int(high) + 1))
    return round(float(rng.uniform(low, high)), 4)


def _anywhere(settings: Sequence[Setting], rng: np.random.Generator) -> Values:
    some = [s for s in settings if rng.random() < 0.5] or list(settings[:1])
    return {s.name: _drawn(s, rng) for s in some}


def _near(changes: Values, settings: Sequence[Setting], rng: np.random.Generator) -> Values:
    """A set a few steps away from another."""
    values = dict(changes)
    for _ in range(int(rng.integers(1, 4))):
        setting = settings[int(rng.integers(len(settings)))]
        low, high = RANGES[setting.name]
        now = values.get(setting.name, setting.default)
        moved = np.clip(now + rng.normal(0, 0.15 * (high - low)), low, high)
        whole = isinstance(setting.default, int)
        values[setting.name] = round(float(moved)) if whole else round(float(moved), 4)
    return values


def _pass(
    tracker: str | Path,
    play: Callable[[], Iterable[tuple[Frame, FrameMeta]]],
    truth: Tracks,
    sets: Sequence[Values],
    split: int,
) -> list[tuple[str, TrackTrial]]:
    """Scores of several sets of settings, by one pass over the frames."""
    opened = [open_tracker(tracker, **changes) for changes in sets]
    results: list[dict[int, tuple[Ids, Boxes]]] = [{} for _ in sets]
    spent, objects = [0.0] * len(sets), 1
    for image, meta in play():
        number = meta.frame + 1
        objects += len(meta.objects)
        for k, one in enumerate(opened):
            copy = deepcopy(meta)
            start = time.process_time()
            one.update(image, copy)
            spent[k] += time.process_time() - start
            ids = copy.objects.object_ids
            kept = ids != UNTRACKED_OBJECT_ID
            results[k][number] = (
                ids[kept].astype(np.int64), copy.objects.rects[kept].astype(np.float64)
            )  # fmt: skip
    for one in opened:
        one.close()
    parts = [_part(truth, 0, split), _part(truth, split, None)]
    trials = []
    for changes, result, seconds in zip(sets, results, spent, strict=True):
        tuned = score_tracks(parts[0], _part(result, 0, split))
        held = score_tracks(parts[1], _part(result, split, max(truth) + 1))
        trials.append(TrackTrial(dict(changes), tuned, held, 1e6 * seconds / objects))
    return [(one.name, trial) for one, trial in zip(opened, trials, strict=True)]


def _part(tracks: Tracks, first: int, end: int | None) -> Tracks:
    return {n: row for n, row in tracks.items() if first <= n and (end is None or n < end)}
