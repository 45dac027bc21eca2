"""Changed configs on frames at hand, and the figures of their results.

`ConfigTrials` holds frames with the tensors that the network made of them. Called with a change
(keys and their new values) it prepares the images again where the change asks for it, parses,
clusters and filters as a run would, and returns an `Outcome`: boxes, labels or class maps of each
frame, with the figures that tell a right reading from a wrong one. All advice is tried so.

    trials = ConfigTrials.of_model(inferencer.model, frames)
    outcome = trials({"net-scale-factor": "1", "offsets": None})
    outcome.sound, outcome.objects, outcome.steady  # and str(outcome), outcome.data

`advised` words a finding whose remedy is a change, and `tried` adds what came of it.

Start at `trials.py`.
"""

from headrace.infer.trial.advice import advised, better, calmer, plain, some, tried, tried_changes
from headrace.infer.trial.candidates import (
    in_range,
    other_ranges,
    parser_change,
    parser_changes,
    range_change,
    readers,
)
from headrace.infer.trial.outcome import FrameReading, Outcome
from headrace.infer.trial.samples import Run, Sample, sampled
from headrace.infer.trial.trials import (
    Budget,
    Change,
    ConfigTrials,
    change_text,
    changed_config,
    network_of,
)

__all__ = [
    "Budget",
    "Change",
    "ConfigTrials",
    "FrameReading",
    "Outcome",
    "Run",
    "Sample",
    "advised",
    "better",
    "calmer",
    "change_text",
    "changed_config",
    "in_range",
    "network_of",
    "other_ranges",
    "parser_change",
    "parser_changes",
    "plain",
    "range_change",
    "readers",
    "sampled",
    "some",
    "tried",
    "tried_changes",
]
