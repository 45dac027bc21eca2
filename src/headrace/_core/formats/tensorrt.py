"""Engines of TensorRT: their marks, and the facts in them that need no TensorRT."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_HEAD_BYTES = 4096
_MOST_READ = 1 << 28  # bytes of an engine that are searched for names
_MOST_NAMES = 60

_SERIALISATIONS = {205: "8.2", 213: "8.4", 232: "8.5"}
_TAGS = (b"ftrt", b"ptrt", b"vtrt")


def is_tensorrt_engine(head: bytes, size_bytes: int) -> bool:
    """Whether a file that starts with `head` and is `size_bytes` long is a TensorRT engine.

    Engines since TensorRT 5 or so start with a tag of four letters. Older ones are a
    FlatBuffer behind its own length: 8 bytes of length, 4 of root offset, within a few bytes of
    the size of the file.
    """
    if head[:4] in _TAGS:
        return True
    if len(head) < 64:
        return False
    length, root = struct.unpack_from("<QI", head)
    return bool(0 <= size_bytes - length <= 64 and 8 <= root <= 64 and root % 4 == 0)


def is_tensorrt_file(path: Path) -> bool:
    """Whether `path` is an engine of TensorRT, bare or behind the metadata some exporters add."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
            if head[:4] in _TAGS or is_tensorrt_engine(head, path.stat().st_size):
                return True
            start = _wrapped_at(head, path.stat().st_size)
            file.seek(start)
            return bool(start) and file.read(4) in _TAGS
    except OSError:
        return False


def _wrapped_at(head: bytes, size: int) -> int:
    """Where the engine begins behind a length and JSON; 0 if there is no such thing."""
    if len(head) < 5 or head[4:5] != b"{":
        return 0
    start = 4 + int(struct.unpack_from("<I", head)[0])
    return start if start < min(size, 1 << 20) else 0


def without_wrapper(data: bytes) -> bytes:
    """Strip the metadata in front of an engine, if there are any."""
    start = _wrapped_at(data[:_HEAD_BYTES], len(data))
    return data[start:] if start and data[start : start + 4] in _TAGS else data


def built_by(data: bytes) -> str:
    """Name the TensorRT that built an engine, by its first bytes. Source: TensorRT facts 5."""
    if data[:4] == b"vtrt":
        return "TensorRT-RTX"
    if data[:4] == b"ftrt" and len(data) >= 28:
        return "TensorRT " + ".".join(map(str, data[24:28]))
    if data[:4] == b"ptrt" and len(data) >= 8:
        release = _SERIALISATIONS.get(struct.unpack_from("<I", data, 4)[0])
        if release is not None:
            return f"TensorRT {release}"
    return "TensorRT 8.5 or older"


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Facts of an engine that stand in its file in plain text.

    Attributes:
        built_by: the release of TensorRT.
        gpu: name of the GPU that it was built on; empty where it does not say.
        names: of tensors and layers, the most frequent first.
        plugins: names of plugins.
        metadata: what an exporter wrote in front of it: names of classes, image size.
    """

    built_by: str
    gpu: str = ""
    names: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


# A name stands behind its length, in 4 or 8 bytes: numbers of weights seldom look so.
_PRINTED = re.compile(rb"[\x20-\x7e]{3,400}")
_NAME = re.compile(r"[A-Za-z_/(][\w./:\-\[\]() +,{}]*")
_PLUGIN = re.compile(rb"[A-Za-z]\w{2,60}_TRT(?![A-Za-z0-9_])")
_GPU = re.compile(r"(NVIDIA|GeForce|Tesla|Quadro|Xavier|Orin)\b.*")


def read_engine_facts(path: Path) -> EngineFacts:
    """Read the facts of the engine at `path`, which `is_tensorrt_file` takes for one.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(_MOST_READ)
    engine = without_wrapper(data)
    names: Counter[str] = Counter()
    gpu = ""
    for match in _PRINTED.finditer(engine):
        start, size = match.start(), len(match[0])
        if not any(
            start >= width and int.from_bytes(engine[start - width : start], "little") == size
            for width in (4, 8)
        ):
            continue
        text = match[0].decode("ascii")
        if _GPU.fullmatch(text):
            gpu = gpu or text
        elif _NAME.fullmatch(text):
            names[text] += 1
    plugins = dict.fromkeys(name.decode("ascii") for name in _PLUGIN.findall(engine))
    return EngineFacts(
        built_by(engine),
        gpu,
        tuple(name for name, _ in names.most_common(_MOST_NAMES) if name not in plugins),
        tuple(plugins)[:_MOST_NAMES],
        _wrapper(data, len(data) - len(engine)),
    )


def _wrapper(data: bytes, size: int) -> Mapping[str, object]:
    """Read the JSON in front of an engine, which is `size` bytes long with its own length."""
    try:
        metadata = json.loads(data[4:size]) if size else {}
    except (ValueError, RecursionError):
        return {}
    return metadata if isinstance(metadata, dict) else {}
