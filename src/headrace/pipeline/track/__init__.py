"""Tracking: the same object keeps its id from frame to frame. Names resolve on first use.

Start at `tracker.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.pipeline.track.open import TRACKERS, open_tracker, tracker_settings
    from headrace.pipeline.track.settings import Setting
    from headrace.pipeline.track.tracker import LiveTracker, Tracker, TrackIds
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".open": "TRACKERS open_tracker tracker_settings",
            ".settings": "Setting",
            ".tracker": "LiveTracker Tracker TrackIds",
        },
    )

__all__ = [
    "TRACKERS",
    "LiveTracker",
    "Setting",
    "TrackIds",
    "Tracker",
    "open_tracker",
    "tracker_settings",
]
