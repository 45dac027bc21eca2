"""Readers of data sets: COCO, YOLO, Pascal VOC, folders of classes and of masks."""

from noria.diagnose.evaluate.datasets.dataset import Dataset, Picture
from noria.diagnose.evaluate.datasets.opening import DatasetFormat, load_dataset

__all__ = ["Dataset", "DatasetFormat", "Picture", "load_dataset"]
