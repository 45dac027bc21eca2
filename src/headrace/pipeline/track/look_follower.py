"""A ReID model beside any tracker: an object that was lost keeps its id by its look."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from headrace.media.frame import Frame
from headrace.pipeline.track.looks import LookModel, Looks, rects_of
from headrace.pipeline.track.rejoin import similarity
from headrace.pipeline.track.selection import Corners, Found
from headrace.pipeline.track.tracker import FloatArray, Follower, Ids, Places, TrackIds

_WAIT = 12  # frames in which an object that came may be held back
_BRIEF = 2  # frames that a track may miss without being asked who it is
_DOUBT = 0.5  # below the similarity that is enough: the object may be seen in part
_RISE = 0.005  # of the similarity from frame to frame, as more of the object is seen
_NO = float("-inf")
_OWN = 0.1  # by so much another lost object must be more alike to be taken for
_FAR = 0.1  # similarity that a lost object loses for being out of reach


@dataclass(slots=True)
class _Known:
    """An object by the id that is reported for it."""

    group: int
    last: int  # frame
    place: Corners
    gallery: deque[Looks]
    looked: int  # frame of the newest look


@dataclass(slots=True)
class _Track:
    """A track of the inner tracker."""

    last: int  # frame
    out: int = 0  # id that is reported for it; 0 while that is open
    before: int = 0  # that which it had when it was seen last
    waited: int = 0
    best: float = _NO  # similarity so far


class LookFollower:
    """Any tracker, with a ReID model beside it.

    A track that begins, or comes back after some frames, has the id of the lost object that looks
    most like it. As long as that likeness is growing, which is so while it comes out from behind
    something, it is held back: an id that was reported never changes.

    Args:
        inner: the tracker of the source.
        model: makes looks.
        ids: gives out numbers for tracks of the inner tracker that turn out to be another object.
        least: similarity (cosine) that is enough.
        gap: frames after which a lost object is forgotten.
        interval: frames between two looks of an object.
        history: most looks kept of an object.
        peers: followers of other sources: a new track may be an object of theirs, by its look
            alone. None keeps sources apart.
    """

    def __init__(
        self,
        inner: Follower,
        model: LookModel,
        ids: TrackIds,
        *,
        least: float,
        gap: int,
        interval: int,
        history: int = 20,
        peers: WeakSet[LookFollower] | None = None,
    ) -> None:
        self._inner, self._model, self._ids = inner, model, ids
        self._least, self._gap, self._interval, self._history = least, gap, interval, history
        self._tracks: dict[int, _Track] = {}  # by the inner tracker's ids
        self._known: dict[int, _Known] = {}
        self._frame = 0
        self._peers: WeakSet[LookFollower] = WeakSet() if peers is None else peers
        self._peers.add(self)
        self._new: tuple[npt.NDArray[np.intp], Looks] | None = None

    def step(self, objects: Found, elapsed: int, frame: Frame, size: tuple[int, int]) -> Ids:
        """Tracks of the objects of a frame."""
        self._frame += elapsed
        inner = self._inner.step(objects, elapsed, frame, size).tolist()
        opened = [row for row, i in enumerate(inner) if i > 0 and self._is_open(i, elapsed)]
        rows = np.array(
            [row for row, i in enumerate(inner) if i > 0 and (row in opened or self._due(i))],
            np.intp,
        )
        looks = self._model(frame, rects_of(objects.corners[rows])) if len(rows) else None
        self._new = None if looks is None else (rows, looks)
        look_of = {} if looks is None else dict(zip(rows.tolist(), looks, strict=True))
        for row in opened:
            track = self._tracks.setdefault(inner[row], _Track(self._frame))
            track.before, track.out = track.out or track.before, 0
        self._decide(objects, inner, opened, look_of)
        ids = np.zeros(len(inner), np.int64)
        for row, i in enumerate(inner):
            if i > 0:
                track = self._tracks[i]
                track.last, ids[row] = self._frame, track.out
                if track.out:
                    self._learn(track.out, objects, row, look_of.get(row))
        self._forget()
        return ids

    def _is_open(self, i: int, elapsed: int) -> bool:
        """Whether a track is asked who it is: it is new, or undecided, or was away."""
        track = self._tracks.get(i)
        if track is None or not track.out:
            return True
        away = self._frame - track.last - elapsed > _BRIEF
        if away:
            track.waited, track.best = 0, _NO
        return away

    def _due(self, i: int) -> bool:
        return self._frame - self._known[self._tracks[i].out].looked >= self._interval

    def _decide(
        self, objects: Found, inner: list[int], opened: list[int], look_of: Mapping[int, Looks]
    ) -> None:
        """Give open tracks the ids of lost objects, the most alike first."""
        taken = {track.out for i in inner if i > 0 and (track := self._tracks[i]).out}
        fitting = [
            (
                self._score(known, objects, row, look_of[row])
                + (_OWN if out == self._tracks[inner[row]].before else 0.0),
                -out,
                row,
            )
            for row in opened
            for out, known in self._known.items()
            if out not in taken and known.group == int(objects.groups[row])
        ]
        new = [row for row in opened if not self._tracks[inner[row]].before]
        pairs = sorted(fitting + self._elsewhere(objects, new, look_of), reverse=True)
        left = set(opened)
        for score, minus, row in pairs:
            if score >= self._least and row in left and -minus not in taken:
                for track in self._tracks.values():
                    if track.out == -minus:  # was away, and is asked when it comes back
                        track.out = 0
                    if track.before == -minus:
                        track.before = 0
                self._tracks[inner[row]].out = -minus
                taken.add(-minus)
                left.discard(row)
        for row in sorted(left):
            track = self._tracks[inner[row]]
            free = {-minus: s for s, minus, r in pairs if r == row and -minus not in taken}
            best = max(free.values(), default=_NO)
            near = best >= self._least - _DOUBT
            if near and free.get(track.before) == best:  # nothing speaks against its own id
                track.out = track.before
                taken.add(track.out)
                continue
            grows = near and best > track.best + _RISE
            track.best, track.waited = max(best, track.best), track.waited + 1
            if not grows or track.waited > _WAIT:
                i = inner[row]
                track.out = int(self._ids.take(1)[0]) if i in self._known else i

    def _elsewhere(
        self, objects: Found, rows: list[int], look_of: Mapping[int, Looks]
    ) -> list[tuple[float, int, int]]:
        """Candidates for new tracks among the objects of other sources: score, -id, row."""
        others = {
            out: known
            for peer in self._peers
            if peer is not self
            for out, known in peer._known.items()
            if out not in self._known
        }
        return [
            (similarity(look_of[row], known.gallery) - _FAR / 2, -out, row)
            for row in rows
            for out, known in others.items()
            if known.group == int(objects.groups[row])
        ]

    def _score(self, known: _Known, objects: Found, row: int, look: Looks) -> float:
        """Similarity, less for an object that cannot have come so far."""
        box, gone = objects.corners[row], self._frame - known.last
        middle = (box[:2] + box[2:] - known.place[:2] - known.place[2:]) / 2
        reach = float(np.hypot(*(box[2:] - box[:2]))) * (1 + gone / 5)
        far = min(1.0, float(np.hypot(*middle)) / reach) if reach > 0 else 1.0
        return similarity(look, known.gallery) - _FAR * max(0.0, far - 0.5)

    def _learn(self, out: int, objects: Found, row: int, look: Looks | None) -> None:
        place, group = np.array(objects.corners[row]), int(objects.groups[row])
        known = self._known.get(out)
        if known is None:
            gallery: deque[Looks] = deque(maxlen=self._history)
            known = self._known[out] = _Known(group, self._frame, place, gallery, self._frame)
        known.last, known.place = self._frame, place
        if look is not None:
            known.gallery.append(look)
            known.looked = self._frame

    def _forget(self) -> None:
        oldest = self._frame - self._gap
        self._known = {out: k for out, k in self._known.items() if k.last >= oldest}
        self._tracks = {
            i: t for i, t in self._tracks.items() if t.last >= oldest and t.out in (0, *self._known)
        }

    def reported(self) -> tuple[Corners, FloatArray] | None:
        """Boxes of the tracker."""
        return self._inner.reported()

    def looks(self) -> tuple[npt.NDArray[np.intp], Looks] | None:
        """Objects of the last step that were looked at, and their looks."""
        return self._new

    def velocities(self) -> Corners:
        """Of the objects of the last step."""
        return self._inner.velocities()

    def pass_over(self, elapsed: int, frame: Frame, size: tuple[int, int]) -> Places | None:
        """A frame in which nothing was looked for."""
        self._frame += elapsed
        places = self._inner.pass_over(elapsed, frame, size)
        if places is None:
            return None
        outs = [track.out if (track := self._tracks.get(i)) else 0 for i in places.ids.tolist()]
        ids = np.array(outs, np.int64)
        order = np.argsort(ids)
        order = order[ids[order] > 0]
        confidences = places.confidences
        return Places(
            ids[order], places.corners[order], None if confidences is None else confidences[order]
        )
