"""Images with the truth about each: boxes, a class, or the class of every pixel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.files import os_errors
from headrace._core.findings import Finding
from headrace.diagnose.evaluate.box_matching import Truth

TruthKind = Literal["boxes", "classes", "masks"]

MOST_BYTES = 2**30  # of one file that describes images


@dataclass(frozen=True, slots=True)
class LabelledImage:
    """One image and the truth about it.

    Attributes:
        name: as the data set has it.
        truth: boxes and their classes; or the class of the whole image; or the path of the mask.
        path: of the image; None for a frame of the data set's video.
        size: width and height in pixels that the truth is about, EXIF orientation applied; None if
            the data set does not know.
    """

    name: str
    truth: Truth | int | Path
    path: Path | None = None
    size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Images with the truth about them, checked.

    Attributes:
        name: the file or folder that it was read from.
        kind: `boxes`, `classes` (one an image) or `masks` (one class a pixel).
        classes: names in the order of the class ids; () if the data set has none.
        images: in order; those of a video are its first frames.
        video: the video whose frames the images are, or None.
        step: of the video, one frame of so many is an image.
        notices: what was left out, and why.
    """

    name: str
    kind: TruthKind
    classes: tuple[str, ...]
    images: tuple[LabelledImage, ...]
    video: str | None = None
    step: int = 1
    notices: tuple[Finding, ...] = field(default=())

    def limited(self, most: int | None) -> Dataset:
        """At most so many images, spread evenly."""
        count = len(self.images)
        if most is None or most >= count:
            return self
        if self.video is not None:  # a decoder gives every frame: a whole step suits it
            step = -(-count // most)
            return replace(self, images=self.images[::step], step=self.step * step)
        chosen = (self.images[i * count // most] for i in range(most))
        return replace(self, images=tuple(chosen))

    @property
    def has_masks(self) -> bool:
        """True if every object has a mask."""
        truths = [p.truth for p in self.images if isinstance(p.truth, Truth)]
        known = [t for t in truths if len(t.boxes)]
        return bool(known) and all(t.masks is not None for t in known)

    def __repr__(self) -> str:
        named = f"{len(self.classes)} classes" if self.classes else "classes without names"
        return f"Dataset({self.name}: {len(self.images)} images, {named}, {self.kind})"


class ImageFolders:
    """Finds the images that a data set names.

    Args:
        folders: where to look, in order.
        where: the data set, for errors.
    """

    def __init__(self, folders: Iterable[Path], where: str) -> None:
        self.folders = list(dict.fromkeys(folders))
        self.where = where
        self.missing: list[str] = []
        self._found: dict[Path, str] = {}
        for folder in self.folders:
            if not folder.exists():
                raise MediaError("there is no such folder", where=str(folder))

    def find(self, *names: str) -> Path | None:
        """The first file of these names; else of their last parts, in one of the folders.

        Raises:
            MediaError: it is another image's already.
        """
        for candidate in dict.fromkeys((*names, *(Path(name).name for name in names))):
            for folder in self.folders:
                file = folder / candidate
                if candidate and file.is_file():
                    other = self._found.setdefault(file, names[0])
                    if other != names[0]:
                        raise MediaError(
                            f"{file} would be the image of {other} and of {names[0]}",
                            where=self.where,
                            expected="an image of its own for each",
                        )
                    return file
        self.missing.append(names[0])
        return None

    def notices(self, total: int) -> list[Finding]:
        """A warning of the images that are not there.

        Raises:
            MediaError: not one is.
        """
        if not self.missing:
            return []
        if len(self.missing) == total:
            raise MediaError(
                f"none of the {total} images of the truth is there, as {self.missing[0]}",
                where=self.where,
                expected=f"images in {', '.join(map(str, self.folders))}",
                fix="--images names their folder",
            )
        return [left_out(self.missing, "images are not there and left out", self.where)]


def left_out(names: Sequence[str], text: str, where: str) -> Finding:
    """A warning that counts things and names the first five."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return Finding(
        "left-out", "warning", f"{len(names)} {text}: {', '.join(names[:5])}{more}", where
    )


def box_truth(
    boxes: Sequence[Sequence[float]],
    class_ids: Sequence[int],
    *,
    crowd: Sequence[bool] | None = None,
    difficult: Sequence[bool] | None = None,
    areas: Sequence[float] | None = None,
    masks: Sequence[object] | None = None,
) -> Truth:
    """A truth from lists; the arguments are the attributes of `Truth`."""
    return Truth(
        np.array(boxes, np.float64).reshape(-1, 4),
        np.array(class_ids, np.int64),
        np.array(crowd if crowd is not None else [False] * len(boxes), np.bool_),
        None if difficult is None else np.array(difficult, np.bool_),
        None if areas is None else np.array(areas, np.float64),
        None if masks is None else tuple(masks),
    )


def read_bytes(path: Path, what: str) -> bytes:
    """The content of a file that describes images.

    Raises:
        MediaError: it cannot be read, or has more than 1 GiB.
    """
    with os_errors(MediaError, f"{what} cannot be read", path):
        if path.stat().st_size > MOST_BYTES:
            raise MediaError(f"is too large for {what}", where=str(path), expected="at most 1 GiB")
        return path.read_bytes()
