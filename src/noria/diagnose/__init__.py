"""Looking at models and pipelines from outside: how good they are, and why."""

from typing import TYPE_CHECKING

from noria._core.lazy import lazy

if TYPE_CHECKING:
    from noria.diagnose.average_precision import Scored, Truth, average_precision
    from noria.diagnose.sensitivity import SensitivityReport, sensitivity
else:  # lint must not wait for what judges models
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".average_precision": "Scored Truth average_precision",
            ".sensitivity": "SensitivityReport sensitivity",
        },
    )

__all__ = ["Scored", "SensitivityReport", "Truth", "average_precision", "sensitivity"]
