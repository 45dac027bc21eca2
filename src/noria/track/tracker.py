"""Protocol of trackers, and the numbers of tracks."""

from __future__ import annotations

from threading import Lock
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from noria._core.notices import Notice
from noria.media.frame import Frame
from noria.meta import FrameMeta

Ids = npt.NDArray[np.int64]


class TrackIds:
    """Gives out the numbers of tracks: 1, 2, 3 and so on, each once.

    Trackers of one pipeline may share one, so that no two of them use the same number. Safe to use
    from several threads.
    """

    def __init__(self) -> None:
        self._next = 1
        self._lock = Lock()

    def take(self, count: int) -> Ids:
        """(count,) int64, numbers never given out before, rising."""
        with self._lock:
            first = self._next
            self._next += count
        return np.arange(first, first + count, dtype=np.int64)


@runtime_checkable
class Tracker(Protocol):
    """Gives the same object the same id in every frame of a source.

    Attributes:
        name: what `open_tracker` calls it.
        notices: choices and ignored settings.
    """

    name: str
    notices: list[Notice]

    def update(self, frame: Frame, meta: FrameMeta) -> None:
        """Track the objects of the next frame of its source.

        Sets `meta.objects.object_ids` and `tracker_confidences` in place, and may append objects
        where no model ran (`meta.inferred` is false). A tracker that moves `rects` puts the
        detector's into `detector_rects`. Objects without a track keep `UNTRACKED_OBJECT_ID`.

        Args:
            frame: the picture; frames of one source come in order.
            meta: its metadata.
        """
        ...

    def end_of_stream(self, source_id: int) -> None:
        """Forget the tracks of a source; their ids are not used again."""
        ...

    def close(self) -> None:
        """Forget everything."""
        ...
