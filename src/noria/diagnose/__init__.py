"""Looking at models and pipelines from outside: how good they are, and why."""

from noria.diagnose.average_precision import average_precision
from noria.diagnose.box_matching import Scored, Truth
from noria.diagnose.sensitivity import SensitivityReport, sensitivity

__all__ = ["Scored", "SensitivityReport", "Truth", "average_precision", "sensitivity"]
