"""Search of the usual mistakes of a config, tried on frames. Start at `search.py`."""

from headrace.diagnose.repair.plausibility import TrueBox
from headrace.diagnose.repair.repairing import Repair, repair

__all__ = ["Repair", "TrueBox", "repair"]
