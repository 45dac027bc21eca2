"""Tracking: the same object keeps its id from frame to frame."""

from noria.track.open import TRACKERS, open_tracker, tracker_settings
from noria.track.settings import Setting
from noria.track.tracker import Tracker, TrackIds

__all__ = ["TRACKERS", "Setting", "TrackIds", "Tracker", "open_tracker", "tracker_settings"]
