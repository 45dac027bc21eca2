"""Refuse models and engines in a config's place, and name the commands that take them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from headrace._core import formats
from headrace._core.errors import ConfigError
from headrace._core.formats.table import FORMATS, is_model_name
from headrace._core.plain_record import PlainRecord
from headrace._core.text import quoted

_LAYERS = re.compile(rb"^\s*(layers?\s*:?\s*\{|input(_shape)?\s*[:{])", re.MULTILINE)
_SECTIONS = re.compile(rb"^\s*\[(net|network|convolutional)\]", re.MULTILINE)


def _binary(data: bytes) -> bool:
    return b"\0" in data


def _prototxt(data: bytes) -> bool:
    return _LAYERS.search(data) is not None


def _darknet(data: bytes) -> bool:
    return _SECTIONS.search(data) is not None and b"[property]" not in data


class _Kind(PlainRecord, frozen=True):
    """Files of one suffix.

    Attributes:
        formats: of such files, in `FORMATS`.
        key: of the config, that names such a file.
        option: of `headrace trtexec`, that does.
        weights: suffix of the file that belongs to it, and comes as model-file.
        readable: whether headrace can read them.
        fits: whether the content is of that kind; large files are.
    """

    formats: tuple[str, ...]
    key: str
    option: str = ""
    weights: str = ""
    readable: bool = True
    fits: Callable[[bytes], bool] = _binary


_ENGINE = _Kind(("tensorrt", "headrace-plan"), "model-engine-file", "loadEngine")
_KINDS = {
    ".onnx": _Kind(("onnx",), "onnx-file", "onnx"),
    ".uff": _Kind(("uff",), "uff-file"),
    ".caffemodel": _Kind(("caffemodel",), "model-file"),
    ".weights": _Kind((), "model-file"),
    ".prototxt": _Kind(("prototxt",), "proto-file", weights=".caffemodel", fits=_prototxt),
    ".cfg": _Kind(("darknet",), "custom-network-config", weights=".weights", fits=_darknet),
    **dict.fromkeys((".etlt", ".tlt"), _Kind(("etlt",), "tlt-encoded-model", readable=False)),
    **dict.fromkeys((".engine", ".plan", ".trt"), _ENGINE),
}
_TEXTS = ("text", "json", "xml", "nvinfer")  # see `neighbours`


def refuse_model(path: Path, data: bytes, where: str, *, large: bool) -> None:
    """Refuse a model or an engine: by its content first, then by its name.

    Raises:
        ConfigError: it is of a format that a config names.
        ModelError: it is of another format, breaks off, or is named like a model and is none.
    """
    kind = _KINDS.get(path.suffix.lower())
    fits = kind is not None and (large or kind.fits(data))
    if not (fits or large or _is_odd(path, data)):
        return
    error = formats.foreign_model(path, "a config, or a bare ONNX model")
    key = None if error is None else error.data["format"]
    named = (
        key == "text" and kind is None and is_model_name(path.name)
    )  # text of another kind, named like a model
    known = named or key not in _TEXTS
    if error is not None and known and (kind is None or key not in kind.formats):
        if is_model_name(path.name) or FORMATS[str(key)].model:
            raise error
        raise ConfigError(error.finding, code="wrong-file")
    if kind is None or not fits:
        return
    sighting = formats.identify(path)
    words = f"this is {'an engine' if kind is _ENGINE else 'a model'}"
    if sighting is not None and not (sighting.by_name and sighting.format.marked):
        words = sighting.summary
    raise ConfigError(
        f"{words}, not a config.",
        where=where,
        expected="a config file, which is a few KiB of text",
        fix=[quoted(hint, limit=None) for hint in _hints(path, kind)],
        code="wrong-file",
    )


def refuse_folder(path: Path, *, has_configs: bool = False) -> None:
    """Refuse the folder of a model; ONNX files beside configs do not make it one.

    Raises:
        ModelError: it is one.
    """
    error = formats.foreign_model(path, "a config, or a bare ONNX model")
    if error is not None and not (has_configs and error.data["format"] == "onnx"):
        raise error


def _is_odd(path: Path, data: bytes) -> bool:
    """Whether a file is no text of lines, or is named like a model."""
    odd = b"\0" in data or data[:512].lstrip()[:1] == b"<" or data.startswith(b"version https:")
    return odd or (is_model_name(path.name) and b"[property]" not in data)


def _hints(path: Path, kind: _Kind) -> list[str]:
    from shlex import quote  # noqa: PLC0415 - for what is refused

    name = quote(str(path))
    model = formats.onnx_beside(path) if kind is _ENGINE or not kind.readable else None
    runs = f"headrace run {quote(str(model))} VIDEO runs the ONNX model beside it"
    hints = [runs] if model is not None else []
    if not kind.readable:
        return [*hints, *FORMATS["etlt"].ways]
    weights = path.with_suffix(kind.weights) if kind.weights else None
    beside = f" --with {quote(str(weights))}" if weights is not None else ""
    hints.append(f"headrace show {name}{beside} tells what is in it")
    if kind.option:
        does = "measures it" if kind is _ENGINE else "builds and measures an engine of it"
        hints.append(f"headrace trtexec --{kind.option}={name} {does}, without a config")
    keys = f"{kind.key}={path.name}" + (f" and model-file={weights.name}" if weights else "")
    hints.append(f"other commands take a config that names it: [property] with {keys}")
    return hints
