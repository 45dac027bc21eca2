"""Formats by the first bytes of a file. Source: the formats' own signatures."""

from __future__ import annotations

import struct
from pathlib import Path

HEAD_BYTES = 4096
"""How much of a file `sniff` wants to see."""

PLAN_MAGIC = b"HEADRPLN"
"""First bytes of a plan that headrace wrote; foreign files have others."""

TORCH_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""A pickled number, with which PyTorch began files before 1.6."""

_STARTS: tuple[tuple[bytes, str], ...] = (
    (PLAN_MAGIC, "headrace-plan"),
    (b"version https://git-lfs.github.com/spec/", "lfs"),
    (b"/annex/objects/", "annex"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (TORCH_MAGIC, "torch-legacy"),
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"Rar!\x1a\x07", "rar"),
    (b"7767517", "ncnn"),
    (b"\xdd\x85\x76\x00", "ncnn"),  # the same number, of a .param.bin
    (b"\x7fELF", "elf"),
    (b"\x93NUMPY", "npy"),
    (b"RKNN", "rknn"),
    (b"CYPTRKNN", "rknn"),
    (b"\x01HEF", "hailo"),
    (b"GGUF", "gguf"),
    (b"IMOD", "ascend"),
    (b"LDMK", "kendryte"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)
_FLATBUFFERS = {b"TFL3": "tflite", b"ORTM": "ort", b"ET12": "executorch", b"MNNR": "mnn"}
_TEXTS: tuple[tuple[bytes, str], ...] = (
    (b"<!doctype html", "html"),
    (b"<html", "html"),
    (b"<net ", "openvino"),
    (b"[net]", "darknet"),
    (b"[property]", "nvinfer"),
    (b"layer {", "prototxt"),
    (b"input:", "prototxt"),
    (b"name:", "prototxt"),
)
_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_NEWEST_IR = 32  # versions of ONNX's file format that are thinkable


def sniff(head: bytes, size_bytes: int) -> str | None:
    """Name the format of a file in `FORMATS`; None if no known one fits.

    Args:
        head: its first `HEAD_BYTES`, or all of it.
        size_bytes: its size.
    """
    if not size_bytes:
        return "empty"
    from headrace._core.formats.tensorrt import is_tensorrt_engine

    if is_tensorrt_engine(head, size_bytes):
        return "tensorrt"
    for start, key in _STARTS:
        if head.startswith(start):
            return key
    if head[4:8] in _FLATBUFFERS:
        return _FLATBUFFERS[head[4:8]]
    if head[257:262] == b"ustar":
        return "tar"
    if len(head) > 9 and head[8:9] == b"{" and struct.unpack_from("<Q", head)[0] < size_bytes:
        return "safetensors"
    if not head.strip(b"\0"):
        return "zeros"
    if head.startswith(_PICKLES):
        return "pickle"
    return _protobuf(head) or _text(head)


def is_openvino(path: Path) -> bool:
    """Whether a file is the XML of an OpenVINO model."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return False
    return b"<net " in head and sniff(head, len(head)) == "openvino"


def _protobuf(head: bytes) -> str | None:
    if b"tensorflow_extension" in head[:256]:
        return "uff"
    if head[:1] == b"\x08" and len(head) > 4 and head[1] <= _NEWEST_IR:
        return _versioned(head)
    # field 1 = a length-delimited NodeDef whose op is a placeholder
    if head[:1] == b"\x0a" and (b"Placeholder" in head[:512] or b"\x12\x05Const" in head[:512]):
        return "graphdef"
    # Paddle's ProgramDesc: field 1 = a BlockDesc: idx 0, parent_idx -1
    if head[:1] == b"\x0a" and b"\x08\x00\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" in head[:20]:
        return "paddle"
    # NetParameter: field 1 = name, then layers as field 100 (or 2 in old files)
    if head[:1] == b"\x0a" and len(head) > 3:
        after_name = 2 + head[1]
        if head[after_name : after_name + 2] == b"\xa2\x06":
            return "caffemodel"
    return None


def _versioned(head: bytes) -> str | None:
    """Tell ONNX, Core ML and SavedModel apart: their first field is a version."""
    tag, length = head[2], head[3]
    if tag in (0x3A, 0x42) or (tag == 0x12 and head[4 : 4 + length].isascii() and length < 64 and (
        head[4 : 4 + length].decode("ascii").isprintable()
    )):  # fmt: skip
        return "onnx"  # a graph, an opset, or the name of the producer
    if tag != 0x12:
        return None
    at = 3  # of a message, whose length has more bytes than one
    while at < min(len(head), 13) and head[at] > 127:
        at += 1
    inside = head[at + 1 : at + 2]
    if inside == b"\x0a" and head[1] == 1 and (b"\x12" in head[at + 2 : at + 16]):
        return "savedmodel"
    return "coreml" if inside == b"\x0a" else None


def _text(head: bytes) -> str | None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    lowered = text[:512].lower()
    for start, key in _TEXTS:
        if lowered.startswith(start):
            return key
    if lowered.startswith(b"<?xml"):
        if b"<net " in lowered:
            return "openvino"
        return "html" if b"<html" in lowered or b"<error>" in lowered else "xml"
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if error.start < len(text) - 4 or len(text) < 64:
            return None
    if not text or any(b < 9 or 13 < b < 32 for b in text):
        return None
    if not text.startswith(b"{"):
        return "text"
    if b'"magic":"pir"' in text[:200].replace(b" ", b""):
        return "paddle"
    return "tensorflow-js" if b'"modelTopology"' in text else "json"
