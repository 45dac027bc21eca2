"""Evaluation of models on images with truth: mAP, accuracy, mIoU, side by side.

Start at `evaluation.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.diagnose.evaluate.classification import ClassificationScores
    from headrace.diagnose.evaluate.datasets import Dataset, load_dataset
    from headrace.diagnose.evaluate.detection import DetectionScores
    from headrace.diagnose.evaluate.evaluation import evaluate
    from headrace.diagnose.evaluate.report import ConfigScores, EvaluationReport
    from headrace.diagnose.evaluate.segmentation import SegmentationScores
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".classification": "ClassificationScores",
            ".datasets": "Dataset load_dataset",
            ".detection": "DetectionScores",
            ".evaluation": "evaluate",
            ".report": "ConfigScores EvaluationReport",
            ".segmentation": "SegmentationScores",
        },
    )

__all__ = [
    "ClassificationScores",
    "ConfigScores",
    "Dataset",
    "DetectionScores",
    "EvaluationReport",
    "SegmentationScores",
    "evaluate",
    "load_dataset",
]
