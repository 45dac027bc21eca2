"""Two models on the same frames: which stage makes them differ, and by how much."""

from noria.diagnose.compare.comparison import Comparison
from noria.diagnose.compare.matching import Tolerance
from noria.diagnose.compare.run import compare
from noria.diagnose.compare.sides import SideSpec

__all__ = ["Comparison", "SideSpec", "Tolerance", "compare"]
