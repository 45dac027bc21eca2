"""The trackers of the original's files: targets with a life cycle, and as asked, a look.

The rules are in the native core (`native/src/track/targets.cpp`).
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace.infer.preprocess import LAYOUTS
from headrace.media.color_matrix import color_matrix
from headrace.media.frame import Frame
from headrace.pipeline.track.looks import LookModel, Looks, rects_of
from headrace.pipeline.track.original_live import LiveValues
from headrace.pipeline.track.rejoin import WayRejoin
from headrace.pipeline.track.selection import Corners, Found
from headrace.pipeline.track.tracker import FloatArray, Ids, Places, TrackIds

if TYPE_CHECKING:
    from headrace.infer.gpu.patches import DevicePatches

Look: TypeAlias = "Callable[[Any, Any], npt.NDArray[np.uint8]]"
HostPixels: TypeAlias = "tuple[list[Any], int, tuple[int, int], tuple[float, ...]]"
Pixels: TypeAlias = "HostPixels | tuple[Look, tuple[int, int]]"


def pixels_of(frame: Frame) -> HostPixels:
    """The planes of a frame as the core reads them; of a GPU's image, a copy on the host."""
    size = (frame.width, frame.height)
    return list(frame.planes), LAYOUTS[frame.format], size, tuple(color_matrix(frame.color))


class TargetFollower:
    """The targets of one source.

    Args:
        live: values of the core, see `OriginalTracker`; others are taken from the next frame on.
        ids: gives out numbers.
        model: makes looks, where the file asks for them.
    """

    def __init__(self, live: LiveValues, ids: TrackIds, model: LookModel | None = None) -> None:
        self._live, self._values = live, live.values
        values = live.values
        numbers = _numbers(values)
        self._targets = _native.Targets(numbers)
        self._sees = bool(values["visual"])
        self._ids = ids
        self._model = model
        self._associates = model is not None and values["reid"] in (1, 3)
        self._gallery = _Gallery(values) if model is not None and values["reid"] in (2, 3) else None
        self._rejoin = WayRejoin(values, numbers) if values["rejoin"] else None
        self._patches: DevicePatches | None = None
        self._frame = 0
        self._new: tuple[npt.NDArray[np.intp], Looks] | None = None
        self._high = secrets.randbelow(2**31 - 1) + 1 << 32 if values["unique"] else 0
        self._corners: Corners = np.empty((0, 4))
        self._confidences: FloatArray = np.empty(0, np.float32)

    @property
    def targets(self) -> _native.Targets:
        """The core; `states()` shows all targets."""
        return self._targets

    def step(self, objects: Found, elapsed: int, frame: Frame, size: tuple[int, int]) -> Ids:
        """Tracks of the objects of a frame."""
        self._frame += elapsed
        self._follow_changes()
        looks = None
        if self._associates and self._model is not None:
            looks = self._model(frame, rects_of(objects.corners))
        self._new = None if looks is None else (np.arange(len(objects)), looks)
        self._targets.step(objects, elapsed, size, self._pixels(frame), looks)
        if self._gallery is not None and self._model is not None:
            keys = self._targets.keys().tolist()
            due = self._gallery.due
            wanted = [r for r, key in enumerate(keys) if key and due(key, self._frame)]
            rows = np.array(wanted, np.intp)
            if looks is None and len(rows):
                self._new = rows, self._model(frame, rects_of(objects.corners[rows]))
            elif looks is not None:
                self._new = rows, looks[rows]
            if self._new is not None:
                for row, look in zip(self._new[0].tolist(), self._new[1], strict=True):
                    self._gallery.learn(keys[row], self._frame, look)
        self._name_fresh()
        ids = np.empty(len(objects), np.int64)
        self._corners = np.array(objects.corners)
        self._confidences = np.empty(len(objects), np.float32)
        self._targets.results(ids, self._confidences, self._corners)
        return ids

    def _follow_changes(self) -> None:
        if self._values is not self._live.values:
            self._values = self._live.values
            self._targets.change(_numbers(self._values))

    def _name_fresh(self) -> None:
        """Give ids to the targets that are reported now: a lost one's, or the next number."""
        fresh = self._targets.fresh().tolist()
        if self._rejoin is None:
            for key in fresh:
                self._targets.name(key, self._high + int(self._ids.take(1)[0]))
            return
        keys, ids, states, ages, shadows, _, _, groups = self._targets.states()
        group_of = dict(zip(keys.tolist(), groups.tolist(), strict=True))
        self._rejoin.keep(self._frame, set(ids[states == _ACTIVE].tolist()))
        for row in np.flatnonzero((shadows > self._values["probation"]) & (ids > 0)).tolist():
            key, shadow = int(keys[row]), int(shadows[row])
            self._rejoin.lose(
                int(ids[row]), int(groups[row]), self._targets.way(key)[:-shadow],
                int(ages[row]) - shadow, self._looks_of(key),
            )  # fmt: skip
        for key in fresh:
            looks = self._looks_of(key)
            before = self._rejoin.match(
                group_of[key], self._targets.way(key), looks[-1] if looks else None
            )
            self._targets.name(
                key, before if before is not None else self._high + int(self._ids.take(1)[0])
            )
        if self._gallery is not None:
            self._gallery.keep(set(keys.tolist()))

    def _looks_of(self, key: int) -> deque[Looks]:
        return deque() if self._gallery is None else self._gallery.of(key)

    def looks(self) -> tuple[npt.NDArray[np.intp], Looks] | None:
        """Objects of the last step that were looked at, and their looks."""
        return self._new

    def reported(self) -> tuple[Corners, FloatArray]:
        """Boxes and confidences of the objects of the last step by the tracker."""
        return self._corners, self._confidences

    def velocities(self) -> Corners:
        """None are needed: `pass_over` gives the places."""
        return np.zeros_like(self._corners)

    def pass_over(self, elapsed: int, frame: Frame, size: tuple[int, int]) -> Places:
        """A frame in which nothing was looked for: the targets that are reported, by their id."""
        self._frame += elapsed
        self._follow_changes()
        self._targets.pass_over(elapsed, size, self._pixels(frame))
        _, ids, states, _, _, corners, confidences, _ = self._targets.states()
        rows = np.flatnonzero((states == _ACTIVE) & (ids > 0))
        rows = rows[np.argsort(ids[rows])]
        return Places(ids[rows], corners[rows], confidences[rows] if self._sees else None)

    def _pixels(self, frame: Frame) -> Pixels | None:
        if not self._sees:
            return None
        planes = frame.on_device
        if planes is None or planes.downloaded:
            return pixels_of(frame)
        if self._patches is None or self._patches.gpu != planes.gpu:
            from headrace.infer.gpu.patches import DevicePatches

            self._patches = DevicePatches(planes.gpu)
        return partial(self._patches, frame), (frame.width, frame.height)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Those of the values that the core takes."""
    return {k: v for k, v in values.items() if isinstance(v, bool | int | float)}


class _Gallery:
    """Looks of targets by their key, for re-association."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._interval, self._history = values["reid_interval"], values["reid_history"]
        self._looks: dict[int, deque[Looks]] = {}
        self._looked: dict[int, int] = {}

    def due(self, key: int, frame: int) -> bool:
        """Whether a target is looked at in a frame."""
        last = self._looked.get(key)
        return last is None or (self._interval >= 0 and frame - last > self._interval)

    def learn(self, key: int, frame: int, look: Looks) -> None:
        self._looks.setdefault(key, deque(maxlen=self._history)).append(look)
        self._looked[key] = frame

    def of(self, key: int) -> deque[Looks]:
        return self._looks.get(key, deque())

    def keep(self, keys: set[int]) -> None:
        """Forget targets that ended; a lost one holds its looks elsewhere."""
        self._looks = {k: v for k, v in self._looks.items() if k in keys}
        self._looked = {k: v for k, v in self._looked.items() if k in keys}


_ACTIVE = 1
