"""Readers of data sets: COCO, YOLO, Pascal VOC, folders of classes and of masks."""

from headrace.diagnose.evaluate.datasets.dataset import Dataset, LabelledImage
from headrace.diagnose.evaluate.datasets.opening import DatasetFormat, load_dataset

__all__ = ["Dataset", "DatasetFormat", "LabelledImage", "load_dataset"]
