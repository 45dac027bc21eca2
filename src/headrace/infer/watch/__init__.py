"""Plausibility watch: rules on samples of a model's inputs, outputs and boxes.

`Watch` belongs to one model. Each rule has a name, evidence it needs, and a sentence: the cause,
the figures, the key to change. A finding is a `Finding` of level `warning` with that `rule`.

Start at `watch.py`.
"""

from headrace.infer.watch.watch import Watch

__all__ = ["Watch"]
