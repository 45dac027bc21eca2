"""Tensors of regions and objects for models that take prepared ones (`nvdspreprocess`)."""

from __future__ import annotations

from headrace.infer.preparation.preparer import TensorPreparer
from headrace.infer.preparation.rules import PreparationGroup, PreparationRules
from headrace.infer.preparation.rules_file import load_preparation

__all__ = ["PreparationGroup", "PreparationRules", "TensorPreparer", "load_preparation"]
