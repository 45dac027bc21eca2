"""Plausibility watch: looks at samples of what a model gets and gives, and says what is off.

`Watch` belongs to one model. Each rule has a name, evidence it needs, and a sentence: the cause,
the figures, the key to change. A finding is a `Notice` of level `warning` with that `rule`.
"""

from noria.infer.watch.watch import Watch

__all__ = ["Watch"]
