"""Data sets made of folders alone: one for each class, or one of images and one of masks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace._core.files import os_errors
from headrace._core.text import quoted
from headrace.diagnose.evaluate.datasets.dataset import Dataset, LabelledImage, left_out
from headrace.media.image_file import opened_image
from headrace.media.names import IMAGE_SUFFIXES, natural_key
from headrace.media.sources.images import image_size

IGNORED = 255
"""The value of a mask's pixels that count for nothing."""

_MASKS = "an image of one channel, 8 bit: the value of a pixel is its class, 255 counts for nothing"


def load_class_folders(path: Path) -> Dataset:
    """Read a folder with one folder of images for each class, which has the name of the class.

    Raises:
        MediaError: there is no such folder, or no image in it.
    """
    where = str(path)
    names = sorted((p for p in _listed(path) if p.is_dir() and _images(p)), key=natural_key)
    if not names:
        raise MediaError(
            "has no folders with images", where=where, expected="a folder for each class"
        )
    labelled = [
        LabelledImage(str(file), number, file)
        for number, folder in enumerate(names)
        for file in _images(folder)
    ]
    return Dataset(where, "classes", tuple(p.name for p in names), tuple(labelled))


def load_masks(path: Path, images: Sequence[Path], names: Sequence[str] = ()) -> Dataset:
    """Read a folder of masks; each has the name of its image, with another suffix.

    Args:
        path: the masks; PNG with one channel, palette or gray, whose values are the classes.
        images: folders of the images.
        names: of the classes, from value 0 on; () takes the model's.

    Raises:
        MediaError: there is no mask, or no image of one.
    """
    where = str(path)
    masks = {p.stem: p for p in _images(path) if p.suffix.lower() in (".png", ".bmp", ".tif")}
    if not masks:
        raise MediaError("has no masks", where=where, expected=f"PNG files: {_MASKS}")
    files = {p.stem: p for folder in reversed(images) for p in _images(folder)}
    if not images:
        raise MediaError("the images of the masks are missing", fix="--images names their folder")
    missing = [name for name in masks if name not in files]
    if len(missing) == len(masks):
        raise MediaError(
            f"no image has the name of a mask, as {quoted(missing[0])}",
            where=where,
            expected=f"images in {', '.join(map(str, images))}",
        )
    labelled = [
        LabelledImage(str(files[stem]), mask, files[stem], image_size(mask))
        for stem, mask in masks.items()
        if stem in files
    ]
    text = "masks have no image and are left out"
    notices = (left_out(missing, text, where),) if missing else ()
    return Dataset(where, "masks", tuple(names), tuple(labelled), notices=notices)


def read_mask(path: Path, classes: int) -> npt.NDArray[np.uint8]:
    """(h, w) class of every pixel, 255 for those that count for nothing.

    Raises:
        MediaError: it is no such image, or has a value that is no class.
    """
    with opened_image(path) as image:
        if image.mode not in ("P", "L", "1"):
            raise MediaError(f"a mask of mode {image.mode}", where=str(path), expected=_MASKS)
        values = np.asarray(image).astype(np.uint8)
    most = int(values[values != IGNORED].max(initial=0))
    if most >= classes:
        raise MediaError(
            f"the mask has the value {most}",
            where=str(path),
            expected=f"0 to {classes - 1}, the classes, or {IGNORED}",
        )
    return values


def _images(folder: Path) -> list[Path]:
    paths = [p for p in _listed(folder) if p.suffix.lower() in IMAGE_SUFFIXES and p.is_file()]
    return sorted(paths, key=natural_key)


def _listed(folder: Path) -> list[Path]:
    with os_errors(MediaError, "the folder cannot be read", folder):
        return [p for p in folder.iterdir() if not p.name.startswith(".")]
