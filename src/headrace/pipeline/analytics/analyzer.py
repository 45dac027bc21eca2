"""`Analytics`: applies rules about places to the objects of each frame."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from headrace._core.findings import Finding
from headrace.media.frame import Frame
from headrace.meta import UNTRACKED_OBJECT_ID, FrameMeta
from headrace.meta.analytics import FrameAnalytics, ObjectAnalytics
from headrace.meta.figures import Point
from headrace.pipeline.analytics.display import figures_of
from headrace.pipeline.analytics.geometry import crossing, is_inside
from headrace.pipeline.analytics.motion import Motion
from headrace.pipeline.analytics.rules import (
    ALL_SOURCES,
    AnalyticsRules,
    CrossingMode,
    Line,
    Region,
    SourceRules,
)
from headrace.pipeline.analytics.rules_file import load_rules

FORGET_NS = 8_000_000_000
"""An object that was not seen for so long is a new one. Source: the original's TIME_OUT_MSEC."""


@dataclass(slots=True)
class _State:
    """One source: its rules in its own pixels, and its objects by track."""

    rules: SourceRules
    size: tuple[int, int]
    origin: AnalyticsRules | None = None  # that `rules` came from
    motions: dict[int, Motion] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    counts: deque[tuple[int, Counter[int]]] = field(default_factory=deque)
    looked_ns: int = 0


class Analytics:
    """Counts objects in regions and across lines; stands behind the tracker of a pipeline.

    Sets `FrameMeta.analytics` and `Objects.analytics`, and adds the figures of the rules. Sources
    are kept apart. Lines and headings need a tracker.

    Args:
        rules: by source.

    Attributes:
        name, kind: as in reports.
        totals: crossings of each line so far, by source id; also of sources that have ended.

    For one thread at a time.
    """

    name = "analytics"
    kind = "analytics"

    def __init__(self, rules: AnalyticsRules) -> None:
        self.rules = rules
        self.totals: dict[int, Counter[str]] = {}
        self._sources: dict[int, _State] = {}
        self._tracked = self._over = False  # objects have had tracks; a source came to its end
        self._untracked = 0  # objects without one

    @property
    def notices(self) -> list[Finding]:
        """Parts of the rules that are not applied as written."""
        notices = list(self.rules.notices)
        needed = any(rules.need_tracker for rules in self.rules.sources.values())
        without = self._untracked > (0 if self._over else _TRIAL) and not self._tracked
        if needed and without:
            text = "no object has a track: no line is crossed and no direction is found; "
            text += "add a tracker (--tracker iou)"
            notices.append(Finding("no-tracks", "warning", text, self.rules.where))
        return notices

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read the rules from a config file of `nvdsanalytics`.

        Raises:
            ConfigError: it cannot be read, or something in it is refused.
        """
        return cls(load_rules(path))

    def set_regions(self, source_id: int, regions: tuple[Region, ...]) -> None:
        """Replace the regions of one source from its next frame on; any thread.

        Its other rules stay. Coordinates are in pixels of `AnalyticsRules.size`.
        """
        own = self.rules.sources.get(source_id, self.rules.sources.get(ALL_SOURCES, SourceRules()))
        sources = {**self.rules.sources, source_id: replace(own, regions=regions)}
        self.rules = replace(self.rules, sources=sources)

    def update(self, frame: Frame, meta: FrameMeta) -> None:
        """Apply the rules to the next frame of its source."""
        self.apply(meta)

    def apply(self, meta: FrameMeta) -> None:
        """Apply the rules to the metadata of the next frame of its source."""
        state = self._state(meta)
        rules, objects = state.rules, meta.objects
        analytics = FrameAnalytics(
            {rule.name: 0 for rule in (*rules.regions, *rules.crowds)},
            {rule.name: False for rule in rules.crowds},
            {rule.name: 0 for rule in rules.lines},
        )
        class_ids, ids = objects.class_ids.tolist(), objects.object_ids.tolist()
        self._forget(state, meta.pts_ns)
        for index, rect in enumerate(objects.rects.tolist()):
            class_id, track = class_ids[index], ids[index]
            if track == UNTRACKED_OBJECT_ID:
                self._untracked += 1
                motion = Motion(meta.pts_ns)
            else:
                self._tracked = True
                motion = state.motions.setdefault(track, Motion(meta.pts_ns))
            one = self._one(rules, class_id, motion.add(tuple(rect), meta.pts_ns), motion)
            if one == _NOTHING:
                continue
            objects.analytics[index] = one
            for names, counts in (
                (one.regions, analytics.inside),
                (one.crossed, analytics.crossed),
            ):
                for name in names:
                    counts[name] += 1
            for name in one.crowds:
                analytics.inside[name] += 1
        for crowd in rules.crowds:
            # like the original, an empty place is not crowded, whatever the threshold
            analytics.crowded[crowd.name] = analytics.inside[crowd.name] >= max(1, crowd.threshold)
        for name, number in analytics.crossed.items():
            state.totals[name] += number
        analytics.crossed_total = dict(state.totals)
        analytics.classes = self._classes(state, Counter(class_ids), meta.pts_ns)
        meta.analytics = analytics
        meta.figures += figures_of(self.rules, rules, analytics)

    def end_of_stream(self, source_id: int) -> None:
        """Forget a source; its totals begin at 0 if it comes again."""
        self._sources.pop(source_id, None)
        self._over = True

    def close(self) -> None:
        """Forget everything."""
        self._over = True
        self._sources.clear()

    def _state(self, meta: FrameMeta) -> _State:
        size = meta.width, meta.height
        state = self._sources.get(meta.source_id)
        if state is None:
            state = self._sources[meta.source_id] = _State(SourceRules(), (0, 0))
            if self.rules.of(meta.source_id, *size).lines:
                self.totals[meta.source_id] = state.totals
        every = self.rules
        if state.size != size or state.origin is not every:
            state.rules, state.size = every.of(meta.source_id, *size), size
            state.origin = every
        return state

    def _one(
        self, rules: SourceRules, class_id: int, point: Point, motion: Motion
    ) -> ObjectAnalytics:
        directions: list[str] = []
        stopped = False
        for heading in rules.headings:
            if heading.applies(class_id):
                stopped = stopped or motion.stopped
                if not stopped and motion.heads(heading):
                    directions.append(heading.name)
        return ObjectAnalytics(
            tuple(
                r.name
                for r in rules.regions
                if r.applies(class_id) and is_inside(r.points, point) != r.inverse
            ),
            tuple(
                c.name for c in rules.crowds if c.applies(class_id) and is_inside(c.points, point)
            ),
            tuple(
                line.name for line in rules.lines if line.applies(class_id) and _hit(line, motion)
            ),
            tuple(directions),
            stopped,
        )

    def _forget(self, state: _State, now: int) -> None:
        """Drop objects that were not seen for long; look for them once a second of the stream."""
        if 0 <= now - state.looked_ns < 1_000_000_000:
            return
        state.looked_ns = now
        old = [i for i, motion in state.motions.items() if now - motion.last_ns > FORGET_NS]
        for track in old:
            del state.motions[track]

    def _classes(self, state: _State, counts: Counter[int], now: int) -> dict[int, int]:
        """Objects of each class; with a window, the most frequent number in it.

        Of equally frequent numbers it is the least. Source: the original takes the mode, too.
        """
        window = self.rules.window_ms * 1_000_000
        if not window:
            return dict(sorted(counts.items()))
        state.counts.append((now, counts))
        while now - state.counts[0][0] > window:
            state.counts.popleft()
        classes = sorted({c for _, counted in state.counts for c in counted})
        smooth = {}
        for class_id in classes:
            numbers = Counter(counted[class_id] for _, counted in state.counts)
            smooth[class_id] = min(numbers, key=lambda n: (-numbers[n], n))
        return smooth


_NOTHING = ObjectAnalytics()
_TRIAL = 100  # objects without a track that a tracker on trial may leave at its begin


def _hit(line: Line, motion: Motion) -> bool:
    """Whether an object crosses a line in this frame."""
    if line.mode is CrossingMode.EXACT:
        step = motion.step
        if step is None:
            return False
        sign = crossing(line.start, line.end, *step, extended=line.extended)
        return sign != 0 and line.side in (0, sign)
    if line.name in motion.crossed or not motion.passed(line):
        return False
    motion.crossed.add(line.name)
    return True
