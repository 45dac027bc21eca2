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
_MOST_AXES = 8

_SERIALISATIONS = {205: "8.2", 213: "8.4", 232: "8.5"}
_NEWEST_MAJOR, _MOST_MINOR = 20, 40  # thinkable releases; others are no release's bytes
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
    if data[:4] == b"ftrt":
        parts = data[24:28]
        known = len(parts) == 4 and 8 <= parts[0] <= _NEWEST_MAJOR and parts[1] <= _MOST_MINOR
        return "TensorRT " + (".".join(map(str, parts)) if known else "8.6 or newer")
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
        shapes: of tensors, by name, without a batch; engines of TensorRT 8.5 and older have them.
        inputs, outputs: shapes by name, with the batch, -1 for a free axis; engines of TensorRT 8.6
            and newer have them.
        plugins: names of plugins.
        metadata: what an exporter wrote in front of it: names of classes, image size.
    """

    built_by: str
    gpu: str = ""
    names: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    outputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


def tensors_text(tensors: Mapping[str, tuple[int, ...]]) -> str:
    """Tensors in words: `images 1x3x640x640, sizes ?x2`."""
    sides = {name: "x".join("?" if d < 0 else str(d) for d in t) for name, t in tensors.items()}
    return ", ".join(f"{name} {size}" for name, size in sides.items())


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
    shapes: dict[str, tuple[int, ...]] = {}
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
            if (shape := _shape_behind(engine, match.end() + 1)) is not None:
                shapes[text] = shape
    plugins = dict.fromkeys(name.decode("ascii") for name in _PLUGIN.findall(engine))
    return EngineFacts(
        built_by(engine),
        gpu,
        tuple(name for name, _ in names.most_common(_MOST_NAMES) if name not in plugins),
        shapes,
        inputs=_bound(engine, 0),
        outputs=_bound(engine, 1),
        plugins=tuple(plugins)[:_MOST_NAMES],
        metadata=_wrapper(data, len(data) - len(engine)),
    )


def _shape_behind(engine: bytes, end: int) -> tuple[int, ...] | None:
    """Read the dimensions behind a name that ends at `end`; None where no such table is.

    Older engines are a FlatBuffer. Its table of dimensions has two vectors of one length: sizes,
    whose distance is 4, then their kinds. Each number of that is checked. Tried on real engines.
    """
    start = -(-end // 4) * 4
    for at in range(start, min(start + 36, len(engine) - 16), 4):
        distance, four, count = struct.unpack_from("<III", engine, at)
        if four != 4 or not 1 <= count <= _MOST_AXES or distance != 12 + 4 * count:
            continue
        if len(engine) < at + 16 + 8 * count:
            return None
        sizes = struct.unpack_from(f"<{count}i", engine, at + 12)
        twin, *kinds = struct.unpack_from(f"<{count + 1}I", engine, at + 12 + 4 * count)
        if twin == count and max(kinds) < 16 and all(0 < size < 1 << 24 for size in sizes):
            return sizes
    return None


# Newer engines are a stream of values behind tags: a tag and a version, 16 bits each, then the
# value; a compound value ends with its tag inverted. Tags that differ by release are not read.
# Tried on real engines of 8.6.1, 10.0.1, 10.9.0 and 10.15.1.
_TAG = rb".\x80\x01\x00"
_INT = rb"\x07\x80\x01\x00(.{4})"
_TENSOR = re.compile(
    _INT + _TAG + rb"\x18\x80\x01\x00(.{8})\x01\x80\x0c\x80\x01\x00(.{8})", re.DOTALL
)  # the place of a tensor, then its name: an array of characters behind its length, twice
_AXES = re.compile(
    rb"(?:\x11\x80\x01\x00" + _INT + rb"\x01\x80\x07|\xea\x80\x01\x00" + _INT + rb"\x01\x80\x09)"
    rb"\x80\x01\x00(.{8})",
    re.DOTALL,
)  # 32 bits for a size, or 64
_ROLE = re.compile(_TAG + _INT + _TAG + _INT, re.DOTALL)
_MOST_RECORD = 400  # bytes from a name to its dimensions
_MOST_NAME = 400


def _bound(engine: bytes, role: int) -> dict[str, tuple[int, ...]]:
    """Read the shapes of a newer engine's inputs (0) or outputs (1), in the order of the file."""
    if engine[:4] != b"ftrt":
        return {}
    tensors: dict[str, tuple[int, ...]] = {}
    for match in _TENSOR.finditer(engine):
        place, size, twin = (int.from_bytes(part, "little") for part in match.groups())
        end = match.end() + size
        if place or size != twin or not 0 < size <= _MOST_NAME:
            continue
        text = engine[match.end() : end].decode("utf-8", "replace")
        shape = _axes_behind(engine, end, role)
        if shape is not None and text.isprintable():
            tensors.setdefault(text, shape)
    return tensors


def _axes_behind(engine: bytes, end: int, role: int) -> tuple[int, ...] | None:
    """Read the dimensions behind a name that ends at `end`; None for another role."""
    match = _AXES.search(engine, end, end + _MOST_RECORD)
    if match is None:
        return None
    narrow, wide, twin = match.groups()
    count = int.from_bytes(narrow or wide, "little")
    if count > _MOST_AXES or count != int.from_bytes(twin, "little"):
        return None
    form = f"<{count}{'i' if narrow else 'q'}"
    behind = match.end() + struct.calcsize(form) + 2
    known = _ROLE.match(engine, behind)
    if known is None or int.from_bytes(known[2], "little") != role:
        return None
    sizes = struct.unpack_from(form, engine, match.end())
    return sizes if all(-1 <= size < 1 << 31 for size in sizes) else None


def _wrapper(data: bytes, size: int) -> Mapping[str, object]:
    """Read the JSON in front of an engine, which is `size` bytes long with its own length."""
    try:
        metadata = json.loads(data[4:size]) if size else {}
    except (ValueError, RecursionError):
        return {}
    return metadata if isinstance(metadata, dict) else {}
