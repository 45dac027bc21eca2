"""Tensors of regions and objects for models that take prepared ones (`nvdspreprocess`).

Start at `preparer.py`.
"""

from __future__ import annotations

from headrace.pipeline.preparation.preparer import TensorPreparer
from headrace.pipeline.preparation.rules import PreparationGroup, PreparationRules
from headrace.pipeline.preparation.rules_file import load_preparation

__all__ = ["PreparationGroup", "PreparationRules", "TensorPreparer", "load_preparation"]
