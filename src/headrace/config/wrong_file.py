"""Refuse models and engines in a config's place, and name the commands that take them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.text import quoted

ENCODED_MODEL = (
    "an encoded TLT or TAO model (.etlt, .tlt) is encrypted and read by NVIDIA's library alone: "
    "export it to ONNX with TAO (5.0 and later do), or decode it with TAO's tools"
)
_LAYERS = re.compile(rb"^\s*(layers?\s*:?\s*\{|input(_shape)?\s*[:{])", re.MULTILINE)
_SECTIONS = re.compile(rb"^\s*\[(net|network|convolutional)\]", re.MULTILINE)


def _binary(data: bytes) -> bool:
    return b"\0" in data


def _prototxt(data: bytes) -> bool:
    return _LAYERS.search(data) is not None


def _darknet(data: bytes) -> bool:
    return _SECTIONS.search(data) is not None and b"[property]" not in data


@dataclass(frozen=True, slots=True)
class _Kind:
    """Files of one suffix.

    Attributes:
        key: of the config, that names such a file.
        option: of `headrace trtexec`, that does.
        weights: suffix of the file that belongs to it, and comes as model-file.
        readable: whether headrace can read them.
        fits: whether the content is of that kind; large files are.
    """

    key: str
    option: str = ""
    weights: str = ""
    readable: bool = True
    fits: Callable[[bytes], bool] = _binary


_ENGINE = _Kind("model-engine-file", "loadEngine")
_KINDS = {
    ".onnx": _Kind("onnx-file", "onnx"),
    ".uff": _Kind("uff-file"),
    ".caffemodel": _Kind("model-file"),
    ".weights": _Kind("model-file"),
    ".prototxt": _Kind("proto-file", weights=".caffemodel", fits=_prototxt),
    ".cfg": _Kind("custom-network-config", weights=".weights", fits=_darknet),
    **dict.fromkeys((".etlt", ".tlt"), _Kind("tlt-encoded-model", readable=False)),
    **dict.fromkeys((".engine", ".plan", ".trt"), _ENGINE),
}


def refuse_model(path: Path, data: bytes, where: str, *, large: bool) -> None:
    """Refuse a model or an engine, known by its name and content."""
    kind = _KINDS.get(path.suffix.lower())
    if kind is None or not (large or kind.fits(data)):
        return
    raise ConfigError(
        f"this is {'an engine' if kind is _ENGINE else 'a model'}, not a config.",
        where=where,
        expected="a config file, which is a few KiB of text",
        fix=[quoted(hint, limit=None) for hint in _hints(path, kind)],
        code="wrong-file",
    )


def _hints(path: Path, kind: _Kind) -> list[str]:
    if not kind.readable:
        return [ENCODED_MODEL]
    name = shlex.quote(str(path))
    weights = path.with_suffix(kind.weights) if kind.weights else None
    beside = f" --with {shlex.quote(str(weights))}" if weights is not None else ""
    hints = [f"headrace show {name}{beside} tells what is in it"]
    if kind.option:
        does = "measures it" if kind is _ENGINE else "builds and measures an engine of it"
        hints.append(f"headrace trtexec --{kind.option}={name} {does}, without a config")
    keys = f"{kind.key}={path.name}" + (f" and model-file={weights.name}" if weights else "")
    hints.append(f"other commands take a config that names it: [property] with {keys}")
    return hints
