"""The bytes of a model file: the kind they look like, or words why they cannot be read."""

from __future__ import annotations

import stat
import struct
from pathlib import Path

from headrace._core.errors import ModelError
from headrace._core.files import os_errors

PLAN_MAGIC = b"HEADRPLN"
"""First bytes of a plan that headrace wrote; foreign files have others."""

HEAD_BYTES = 4096
"""How much of a file `looks_like` wants to see."""

_STARTS: tuple[tuple[bytes, str], ...] = (
    (PLAN_MAGIC, "a headrace plan"),
    (b"version https://git-lfs.github.com/spec/", "a Git LFS pointer; the data was never fetched"),
    (b"/annex/objects/", "a git-annex pointer; the data was never fetched"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras weights?)"),
    (b"\x80\x02", "a Python pickle (an old PyTorch checkpoint?)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7767517", "an ncnn model"),
    (b"\x7fELF", "a shared library or program"),
    (b"\x93NUMPY", "a NumPy array"),
)
_TEXTS: tuple[tuple[bytes, str], ...] = (
    (b"<!doctype html", "a web page (HTML), perhaps a failed download"),
    (b"<html", "a web page (HTML), perhaps a failed download"),
    (b"<?xml", "an XML file (OpenVINO IR?)"),
    (b"<net ", "an XML file (OpenVINO IR?)"),
    (b"[net]", "a Darknet network text (.cfg)"),
    (b"[property]", "an nvinfer config"),
    (b"layer {", "a Caffe network text (prototxt)"),
    (b"input:", "a Caffe network text (prototxt)"),
    (b"name:", "a Caffe network text (prototxt)"),
    (b"{", "a JSON file"),
)


def is_tensorrt_engine(head: bytes, size_bytes: int) -> bool:
    """Whether a file that starts with `head` and is `size_bytes` long is a TensorRT engine.

    Engines since TensorRT 5 or so start with one of two four-letter tags. Older ones are a
    FlatBuffer behind its own length: 8 bytes of length, 4 of root offset, within a few bytes of
    the size of the file.
    """
    if head[:4] in (b"ptrt", b"ftrt"):
        return True
    if len(head) < 64:
        return False
    length, root = struct.unpack_from("<QI", head)
    return bool(0 <= size_bytes - length <= 64 and 8 <= root <= 64 and root % 4 == 0)


def looks_like(head: bytes, size_bytes: int) -> str | None:
    """Name the kind of a file by its first `HEAD_BYTES`; None if no known kind fits.

    Source: the formats' own signatures; tried on real files of each kind where at hand.
    """
    if is_tensorrt_engine(head, size_bytes):
        return "a TensorRT engine"
    for start, words in _STARTS:
        if head.startswith(start):
            return words
    if head[:4] == b"PK\x03\x04":
        return "a PyTorch checkpoint (zip)" if b"data.pkl" in head else "a zip archive"
    if head[4:8] == b"TFL3":
        return "a TensorFlow Lite model"
    if head[257:262] == b"ustar":
        return "a tar archive"
    if len(head) > 9 and head[8:9] == b"{" and struct.unpack_from("<Q", head)[0] < size_bytes:
        return "a safetensors file"
    if not head.strip(b"\0"):
        return "nothing but zero bytes"
    return _looks_like_protobuf(head) or _looks_like_text(head)


def _looks_like_protobuf(head: bytes) -> str | None:
    if b"tensorflow_extension" in head[:256]:
        return "a UFF model"
    # field 1 = a length-delimited NodeDef whose op is a placeholder
    if head[:1] == b"\x0a" and (b"Placeholder" in head[:512] or b"\x12\x05Const" in head[:512]):
        return "a TensorFlow graph (.pb)"
    # NetParameter: field 1 = name, then layers as field 100 (or 2 in old files)
    if head[:1] == b"\x0a" and len(head) > 3:
        after_name = 2 + head[1]
        if head[after_name : after_name + 2] == b"\xa2\x06":
            return "a Caffe model (caffemodel)"
    return None


def _looks_like_text(head: bytes) -> str | None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    for start, words in _TEXTS:
        if text[: len(start)].lower() == start:
            return words
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if error.start < len(text) - 4:
            return None
    return None if any(b < 9 or 13 < b < 32 for b in text) or not text else "a text file"


_TAGS = (b"ftrt", b"ptrt", b"vtrt")


def is_tensorrt_file(path: Path) -> bool:
    """Whether `path` is an engine of TensorRT, bare or behind the metadata some exporters add."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
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
    start = _wrapped_at(data[:HEAD_BYTES], len(data))
    return data[start:] if start and data[start : start + 4] in _TAGS else data


def built_by(data: bytes) -> str:
    """Name the TensorRT that built an engine, by its first bytes. Source: TensorRT facts 5."""
    if data[:4] == b"vtrt":
        return "TensorRT-RTX"
    if data[:4] == b"ftrt" and len(data) >= 28:
        return "TensorRT " + ".".join(map(str, data[24:28]))
    return "TensorRT 8.5 or older"


MAX_FILE_BYTES = 2**31
"""A protobuf message ends at 2 GiB; no weights file of the older formats is longer either."""


def read_model_file(path: Path, what: str, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return all bytes of a model file; `what` names its kind for messages.

    One that is missing, not regular, empty or longer than `max_bytes` is refused unread.
    """
    where = str(path)
    with os_errors(ModelError, "the model cannot be read", where, expected=what):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "is a folder" if stat.S_ISDIR(status.st_mode) else "is not a regular file"
            raise ModelError(kind, where=where, expected=what)
        if status.st_size > max_bytes:
            raise ModelError(
                f"{status.st_size} bytes are too many",
                where=where,
                expected=f"{what} of at most {max_bytes} bytes",
            )
        data = path.read_bytes()
    if not data:
        raise ModelError("the file is empty", where=where, expected=what)
    return data


def foreign(data: bytes, path: Path, what: str, damage: str) -> ModelError:
    """Return the error for bytes of another kind: the kind they look like, else the damage."""
    words = looks_like(data[:HEAD_BYTES], len(data))
    if words is not None and words != what:
        return ModelError(f"it looks like {words}", where=str(path), expected=what)
    return ModelError(
        f"truncated or damaged: {damage}",
        where=str(path),
        expected=what,
        fix="copy or download it again",
    )
