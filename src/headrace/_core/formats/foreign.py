"""The format of a file or folder, and the error for one that stands where a model should."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace._core.errors import ModelError
from headrace._core.formats.folders import folder_format, transformers_task
from headrace._core.formats.sniff import HEAD_BYTES, sniff
from headrace._core.formats.table import FORMATS, SHARD, Format, by_suffix
from headrace._core.formats.tensorrt import is_tensorrt_file
from headrace._core.text import quoted

_THEN = "then headrace run MODEL.onnx VIDEO; docs/export.md has the commands of each framework"
_READ = ("onnx", "openvino", "openvino-weights", "tensorrt", "headrace-plan", "darknet", "prototxt",
         "caffemodel", "uff")  # fmt: skip
# Forms in which many formats are packed: then the name tells more, where it is special.
_WRAPPINGS = ("pickle", "zip", "tar", "gzip", "text", "json", "xml")
_WEIGHTS = {".bin": (("openvino-weights", ".xml"), ("ncnn-weights", ".param"))}
_USUAL = {"sklearn": ".pkl"}  # suffixes of formats without one of their own; .pt for the others
_EXPORTED = re.compile(
    r"_(openvino|int8_openvino|ncnn|rknn|paddle|saved|mnn|imx|float32|float16|integer_quant)(_model)?"
    r"|[-_.](fp16|fp32|int8|sim|gpu0|b\d+)"
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """The format of a path, as far as it can be seen.

    Attributes:
        path: of the file or folder.
        key: of its format in `FORMATS`.
        damage: how its content breaks off; empty if it is whole, as far as that is seen.
        by_name: whether only its name tells it.
        member: the file in a folder that counts.
    """

    path: Path
    key: str
    damage: str = ""
    by_name: bool = False
    member: str = ""

    @property
    def format(self) -> Format:
        """Its format."""
        return FORMATS[self.key]

    @property
    def summary(self) -> str:
        """Its format in one sentence, without a full stop."""
        suffix = self.path.suffix.lower()
        words = f"this is {'a folder with ' * bool(self.member)}{self.format.name}"
        if self.damage:
            return f"{words}, and it breaks off: {self.damage}"
        if self.by_name and self.format.marked:
            return f"by its name {words}, but its content is not: it is damaged, or another thing"
        if self.by_name:
            return f"by its name {words}"
        other = by_suffix(suffix)
        if other is not None and suffix not in self.format.suffixes and self._misnamed(other):
            return f"{words}, in spite of its name ({suffix} is of {FORMATS[other].name})"
        return words

    def _misnamed(self, other: str) -> bool:
        """Whether the name is one of another framework: checkpoints of many are named .pt."""
        groups = (("torch", "Torch", "YOLO", "PyTorch", "Hugging", "timm", "pickle", "scikit",
                   "safetensors"), ("HDF5", "Keras", "TensorFlow"))  # fmt: skip
        names = FORMATS[other].name, self.format.name
        return not any(all(any(w in name for w in group) for name in names) for group in groups)

    def ways(self) -> list[str]:
        """Commands and hints that lead to an ONNX model."""
        if self.damage:
            return ["copy or download it again"]
        if self.by_name and self.format.marked:
            return [
                f"copy or download it again; head -c 200 {_Word(self.path):} shows its beginning"
            ]
        if self.member and self.key == "onnx":
            return [f"headrace run {shlex.quote(str(self.path / self.member))} VIDEO"]
        hints = []
        if self.format.model and self.key not in _READ and (model := onnx_beside(self.path)):
            hints = [f"{model.name} lies beside it: headrace run {shlex.quote(str(model))} VIDEO"]
        path = self.path / self.member
        if path.suffix.lower() == ".onnx" and self.format.model and self.key not in _READ:
            # the ONNX that is made must not overwrite it
            path = path.with_suffix((*self.format.suffixes, _USUAL.get(self.key, ".pt"))[0])
            hints.append(f"name it by its content first: mv {_Word(self.path):} {_Word(path):}")
        folder = self.path if self.path.is_dir() else self.path.parent
        stem = path.with_suffix("")
        values = {
            "file": path, "stem": stem, "folder": folder, "onnx": path.with_suffix(".onnx"),
            "model": _beside(path, ".pdmodel", ".json"), "weights": _beside(path, ".pdiparams"),
            "task": transformers_task(folder) if self.key == "huggingface" else "",
        }  # fmt: skip
        words = {name: _Word(value) for name, value in values.items()}
        for way in self.format.ways:
            start, python, code = way.partition("python -c ")
            text = start.format(**words)
            if python:
                text += f"python -c {shlex.quote(code.format(**words))}"
            hints.append(quoted(text, limit=None))
        return hints


class _Word(str):
    """A path in a command: `{x}` is quoted for the shell, `{x!r}` for Python in single quotes."""

    __slots__ = ()

    def __new__(cls, value: object) -> _Word:
        return super().__new__(cls, os.fspath(value) if isinstance(value, Path) else str(value))

    def __format__(self, spec: str) -> str:
        return shlex.quote(str(self))

    def __repr__(self) -> str:
        return json.dumps(str(self), ensure_ascii=False)


def looks_like(head: bytes, size_bytes: int) -> str | None:
    """Name the kind of a file by its first `HEAD_BYTES`; None if no known kind fits."""
    key = sniff(head, size_bytes)
    if key == "zip" and b"data.pkl" in head:
        key = "torch"
    return None if key in (None, "onnx") else FORMATS[key].name


def onnx_beside(path: Path) -> Path | None:
    """Find the ONNX model of the same name beside a model or an engine of another format.

    `x.onnx` belongs to `x.engine`, `x.onnx_b1_gpu0_fp16.engine` and the folder `x_ncnn_model`.
    """
    stems = (path.stem, path.name.partition(".onnx")[0], _EXPORTED.sub("", path.stem))
    files = (path.with_name(f"{stem}.onnx") for stem in stems if stem)
    return next((file for file in files if file != path and file.is_file()), None)


def identify(path: Path) -> Sighting | None:
    """Find the format of a path: by its content first, then by its name; None if neither helps.

    Nothing of it is executed or unpickled. What cannot be read is None.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            return _folder(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
        key, damage = _content(path, head, status.st_size)
    except (OSError, ValueError):
        return None
    if key is None or key in _WRAPPINGS:
        named = _by_name(path)
        if named is not None and named not in _READ[:2] and not (key and FORMATS[named].marked):
            return Sighting(path, named, by_name=True)
    return None if key is None else Sighting(path, key, damage)


def _content(path: Path, head: bytes, size: int) -> tuple[str | None, str]:
    """Format and damage of a file."""
    if is_tensorrt_file(path):
        return "tensorrt", ""
    key = sniff(head, size)
    if key == "zip":
        from headrace._core.formats.checkpoints import zip_format  # brings zipfile

        key, broken = zip_format(path)
        if key in ("torch", "torch-state") and path.suffix.lower() == ".bin":
            key = _of_folder(path) or key
        return key, "its directory at the end is missing" if broken else ""
    if key == "pickle":
        from headrace._core.formats.checkpoints import pickle_format

        return pickle_format(path), ""
    if key == "hdf5":
        return _hdf5(path, head, size)
    if key == "safetensors":
        return _safetensors(path, head, size)
    return key, ""


def _hdf5(path: Path, head: bytes, size: int) -> tuple[str, str]:
    """Tell a whole Keras model from weights; compare the size with the end that the file names."""
    version = head[8] if len(head) > 48 else 9
    at = 40 if version < 2 else 28 if version < 4 else 0
    end = struct.unpack_from("<Q", head, at)[0] if at else 0
    damage = f"{size} of {end} bytes are there" if size < end < 1 << 62 else ""
    with open(path, "rb") as file:
        whole = b"model_config" in file.read(1 << 22)
    return "keras-h5" if whole else "hdf5", damage


def _safetensors(path: Path, head: bytes, size: int) -> tuple[str, str]:
    length = struct.unpack_from("<Q", head)[0]
    with open(path, "rb") as file:
        file.seek(8)
        header = file.read(min(length, 1 << 26))
    ends = [int(text) for text in _offsets(header)]
    needed = 8 + length + max(ends, default=0)
    if size < needed:
        return "safetensors", f"{size} of {needed} bytes are there"
    return _of_folder(path) or "safetensors", ""


def _of_folder(path: Path) -> str | None:
    """Find the format of the folder that weights stand in, by its config.json."""
    key, _ = folder_format(path.parent) or (None, "")
    return key if key in ("huggingface", "timm") else None


def _offsets(header: bytes) -> Iterator[bytes]:
    """Ends of the tensors that a safetensors header names."""
    for part in header.split(b'"data_offsets"')[1:]:
        numbers = part.partition(b"[")[2].partition(b"]")[0].split(b",")
        if len(numbers) == 2 and numbers[1].strip().isdigit() and len(numbers[1]) < 20:
            yield numbers[1]


def _by_name(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if SHARD.fullmatch(suffix):
        return "tensorflow-checkpoint"
    for key, partner in _WEIGHTS.get(suffix, ()):
        if path.with_suffix(partner).is_file():
            return key
    return by_suffix(suffix)


def _beside(path: Path, *suffixes: str) -> str:
    """Name the file of the same stem that is there, else the one of the first suffix."""
    names = [path.with_suffix(suffix) for suffix in suffixes]
    return next((name for name in names if name.is_file()), names[0]).name


def _folder(path: Path) -> Sighting | None:
    key, member = folder_format(path) or (None, "")
    return None if key is None else Sighting(path, key, member=member)


def model_words(path: Path) -> str | None:
    """Say that a file is a model, where none belongs; None: its content is none."""
    sighting = identify(path)
    if sighting is None or sighting.by_name or not sighting.format.model:
        return None
    return sighting.summary


def foreign_model(path: Path, expected: str = "an ONNX model") -> ModelError | None:
    """Return the error for a path of another format than `expected`; None if it is not known.

    It says in one sentence what the path is, then the way to an ONNX model.
    """
    sighting = identify(path)
    if sighting is None:
        return None
    ways = sighting.ways()
    noise = sighting.damage or (sighting.by_name and sighting.format.marked)
    if sighting.format.model and not noise and sighting.key not in _READ:
        ways.append(_THEN)
    return ModelError(
        sighting.summary,
        where=quoted(str(path), limit=None),
        expected=expected,
        fix=ways,
        code="model-of-other-kind",
        data={"format": sighting.key},
    )
