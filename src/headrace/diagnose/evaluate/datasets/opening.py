"""Data sets of every format, by the name of the format or by the look of the path."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, get_args

from headrace._core.errors import MediaError
from headrace._core.text import quoted
from headrace.diagnose.evaluate.datasets.coco import load_coco
from headrace.diagnose.evaluate.datasets.dataset import Dataset
from headrace.diagnose.evaluate.datasets.folders import load_class_folders, load_masks
from headrace.diagnose.evaluate.datasets.voc import load_voc
from headrace.diagnose.evaluate.datasets.yolo import load_yolo
from headrace.infer.parsers.labels import load_labels

DatasetFormat = Literal["coco", "yolo", "voc", "folders", "masks"]
FORMATS: tuple[DatasetFormat, ...] = get_args(DatasetFormat)


def load_dataset(
    path: str | PathLike[str],
    format: DatasetFormat | None = None,
    *,
    images: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    split: str | None = None,
    names: str | PathLike[str] | None = None,
) -> Dataset:
    """Read images and the truth about them, for `headrace.evaluate`.

    Args:
        path: a COCO JSON; a `data.yaml` of YOLO; a folder of Pascal VOC; a folder with one folder
            of images for each class; a folder of masks.
        format: None decides by the path: `.json` is COCO, `.yaml` YOLO, a folder with
            `Annotations` or XML files VOC, with `images` masks, and with folders classes.
        images: folders of images, for COCO, VOC and masks; for COCO also one video, whose frames
            the JSON describes.
        split: of YOLO (`val` by default) and VOC.
        names: a label file with the names of the masks' classes, from value 0 on.

    Raises:
        MediaError: the data set is not as it must be; the message has the file and the line or id.
        ConfigError: the file of names cannot be read.
    """
    location = Path(path)
    folders = [Path(p) for p in ([images] if isinstance(images, str | PathLike) else images)]
    if format is not None and format not in FORMATS:
        raise MediaError(
            f"{quoted(format)} is no format of a data set",
            expected=f"one of {', '.join(FORMATS)}",
        )
    if not location.exists():
        raise MediaError("there is no such data set", where=str(location))
    chosen = format or _format(location, bool(folders))
    if chosen == "coco":
        return load_coco(location, folders)
    if chosen == "yolo":
        return load_yolo(location, split)
    if chosen == "voc":
        return load_voc(location, folders, split)
    if chosen == "folders":
        return load_class_folders(location)
    return load_masks(location, folders, load_labels(fspath(names)).detector if names else ())


def _format(path: Path, images: bool) -> DatasetFormat:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return "coco"
    if suffix in (".yaml", ".yml"):
        return "yolo"
    if not path.is_dir():
        raise MediaError(
            "is no data set that is known",
            where=str(path),
            expected="a COCO JSON, a data.yaml of YOLO, or a folder",
        )
    if (path / "Annotations").is_dir() or next(path.glob("*.xml"), None):
        return "voc"
    return "masks" if images else "folders"
