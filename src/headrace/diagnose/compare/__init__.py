"""Two models on the same frames: which stage makes them differ, and by how much.

Start at `comparison.py`.
"""

from headrace.diagnose.compare.comparison import Comparison
from headrace.diagnose.compare.matching import Tolerance
from headrace.diagnose.compare.run import compare
from headrace.diagnose.compare.sides import SideSpec

__all__ = ["Comparison", "SideSpec", "Tolerance", "compare"]
