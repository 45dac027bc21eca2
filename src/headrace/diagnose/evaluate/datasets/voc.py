"""Pascal VOC: one XML file for each image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from headrace._core.errors import MediaError
from headrace._core.text import quoted
from headrace.diagnose.evaluate.datasets.dataset import (
    Dataset,
    ImageFolders,
    LabelledImage,
    box_truth,
    read_bytes,
)
from headrace.media.names import IMAGE_SUFFIXES, natural_key
from headrace.media.sources.images import image_size

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_EXPECTED = "an annotation with objects: name, bndbox (xmin, ymin, xmax, ymax)"
_MOST_ELEMENTS = 1_000_000


def load_voc(path: Path, images: Sequence[Path] = (), split: str | None = None) -> Dataset:
    """Read a folder of VOC.

    Corners are pixels counted from 1, both of them inside the object. Objects marked `difficult`
    need not be found. Classes are the names that occur, sorted.

    Args:
        path: the folder with `Annotations`, or one of XML files.
        images: further folders of images, besides `JPEGImages`.
        split: a list of images in `ImageSets/Main`; None takes every XML file.

    Raises:
        MediaError: a file is not as it must be, or none of the images is there.
    """
    where = str(path)
    folder = path / "Annotations" if (path / "Annotations").is_dir() else path
    files = _split(path, folder, split) if split else list(folder.glob("*.xml"))
    if not files:
        raise MediaError("has no XML files", where=str(folder), expected="one for each image")
    usual = [p for p in (path / "JPEGImages", folder, path) if p.is_dir()]
    finder = ImageFolders([*images, *usual], where)
    read = []
    for file in sorted(files, key=natural_key):
        root = _tree(file)
        name = (root.findtext("filename") or "").strip()
        # `filename` is often that of another machine, or a copied one: the XML file's comes first
        same = [f"{file.stem}{suffix}" for suffix in sorted(IMAGE_SUFFIXES)]
        image = finder.find(*same, *([name] if name else ()))
        if image is not None:
            read.append((image, file, root))
    notices = finder.notices(len(files))
    classes = sorted({_name(o, file) for _, file, root in read for o in root.findall("object")})
    indices = {name: i for i, name in enumerate(classes)}
    labelled = tuple(_image(image, file, root, indices) for image, file, root in read)
    return Dataset(where, "boxes", tuple(classes), labelled, notices=tuple(notices))


def _split(path: Path, folder: Path, split: str) -> list[Path]:
    listing = path / "ImageSets" / "Main" / f"{split}.txt"
    files = []
    for number, line in enumerate(read_bytes(listing, "the split").decode().splitlines(), 1):
        if not (words := line.split()):
            continue
        files.append(folder / f"{words[0]}.xml")
        if not files[-1].is_file():
            raise MediaError(
                f"{quoted(words[0])} has no annotation",
                where=f"{listing}:{number}",
                expected=f"a file {files[-1]}",
            )
    return files


def _tree(file: Path) -> Element:
    """The document; entities and document types are refused."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MOST_ELEMENTS:
            raise MediaError("has more than a million elements", where=str(file))
        builder.start(tag, attributes)

    def refuse(*_: object) -> None:
        raise MediaError(
            "has a document type", where=f"{file}:{parser.CurrentLineNumber}", expected=_EXPECTED
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(read_bytes(file, "the annotation"), True)
        root = builder.close()
    except expat.ExpatError as error:
        raise MediaError(
            f"is not XML: {expat.ErrorString(error.code)}",
            where=f"{file}:{error.lineno}",
            expected=_EXPECTED,
        ) from error
    if root.tag != "annotation":
        raise MediaError(
            f"its root is <{quoted(root.tag)}>", where=str(file), expected="<annotation>"
        )
    return root


def _name(item: Element, file: Path) -> str:
    name = (item.findtext("name") or "").strip()
    if not name:
        raise MediaError("an object has no name", where=str(file), expected=_EXPECTED)
    return name


def _image(image: Path, file: Path, root: Element, indices: dict[str, int]) -> LabelledImage:
    boxes, ids, difficult = [], [], []
    for item in root.findall("object"):
        name = _name(item, file)
        texts = [item.findtext(f"bndbox/{corner}") or "" for corner in _CORNERS]
        try:
            left, top, right, bottom = (float(t) for t in texts)
        except ValueError:
            left = math.nan
        if not math.isfinite(left) or not (left <= right < math.inf and top <= bottom < math.inf):
            raise MediaError(
                f"object {quoted(name)} has the corners {', '.join(map(quoted, texts))}",
                where=str(file),
                expected="xmin <= xmax and ymin <= ymax, in pixels",
            )
        boxes.append([left - 1, top - 1, right - left + 1, bottom - top + 1])
        ids.append(indices[name])
        difficult.append((item.findtext("difficult") or "0").strip() == "1")
    size = _size(root) or image_size(image)
    return LabelledImage(str(image), box_truth(boxes, ids, difficult=difficult), image, size)


def _size(root: Element) -> tuple[int, int] | None:
    """The size that the annotation has; None for none, and for the 0 of some programs."""
    texts = [(root.findtext(f"size/{key}") or "0").strip() for key in ("width", "height")]
    width, height = (int(t) if t.isdecimal() else 0 for t in texts)
    return (width, height) if width and height else None
