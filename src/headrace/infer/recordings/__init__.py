"""Output tensors of frames, kept in a file: parsers are tested without the model.

Start at `recording.py`.
"""

from headrace.infer.recordings.compare import assert_same_objects, first_difference, result_text
from headrace.infer.recordings.recording import RecordedItem, Recording, load_recording
from headrace.infer.recordings.replay import ReplayedItem, replay_recording
from headrace.infer.recordings.writer import RecordingSink

__all__ = [
    "RecordedItem",
    "Recording",
    "RecordingSink",
    "ReplayedItem",
    "assert_same_objects",
    "first_difference",
    "load_recording",
    "replay_recording",
    "result_text",
]
