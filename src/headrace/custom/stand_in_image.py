"""A shared library written byte by byte: no compiler is needed where it is used.

It has a name (SONAME), version nodes, and room for symbols, which are added to its image while it
is loaded: the tables that the dynamic loader searches are in writable memory. So one stand-in
serves every library that is loaded later, whatever that asks for. x86-64 only.
"""

from __future__ import annotations

import ctypes
import struct
from typing import NamedTuple

ANCHOR = "headrace_stand_in"
"""The one symbol that it exports from the start: the beginning of its writable memory."""

CAPACITY = 2048
_BUCKETS = 512
_STUB = 16
_PAGE = 0x1000
_NAME_BYTES = 256 * 1024
_DATA_BYTES = 256 * 1024
RECORD = struct.Struct("<QQQQ")  # Record in native/src/stand_ins/stand_in.h
SYMBOL = struct.Struct("<IBBHQQ")
FUNCTION, OBJECT = 2, 1
GLOBAL = 1 << 4


class Area(NamedTuple):
    """Where things are, as offsets from the image's base."""

    writable: int
    hash: int
    symbols: int
    versions: int
    definitions: int
    records: int
    names: int
    data: int
    end: int


def elf_hash(name: str) -> int:
    """The hash of System V's symbol tables and of version nodes."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value ^= high >> 24
        value &= ~high & 0xFFFFFFFF
    return value


def area(versions: int) -> Area:
    """The places in an image with that number of version nodes beside its base."""
    writable = _PAGE + CAPACITY * _STUB
    at = writable + 64 + 16 * 16  # what the anchor names, then the dynamic section
    hash_at, at = at, at + 4 * (2 + _BUCKETS + CAPACITY)
    symbols, at = _up(at), _up(at) + CAPACITY * SYMBOL.size
    symbol_versions, at = at, at + 2 * CAPACITY
    definitions, at = _up(at), _up(at) + 28 * (versions + 1)
    # From here on memory only: the file ends with the first names.
    names, at = _up(at), _up(at) + _NAME_BYTES
    records, at = _up(at), _up(at) + CAPACITY * RECORD.size
    data, at = _up(at), _up(at) + _DATA_BYTES
    return Area(writable, hash_at, symbols, symbol_versions, definitions, records, names, data, at)


def build(soname: str, nodes: tuple[str, ...]) -> bytes:
    """The file of a stand-in.

    Args:
        soname: its name, which a library's DT_NEEDED entry is matched with.
        nodes: version nodes that libraries demand of it, such as `libcudart.so.12`.
    """
    where = area(len(nodes))
    names = bytearray(b"\0")

    def text(value: str) -> int:
        names.extend(value.encode() + b"\0")
        return len(names) - len(value.encode()) - 1

    soname_at, anchor_at = text(soname), text(ANCHOR)
    node_at = [soname_at if node == soname else text(node) for node in nodes]
    image = bytearray(where.names)
    _stubs(image, where)
    dynamic = [
        (14, soname_at), (4, where.hash), (5, where.names), (6, where.symbols), (10, len(names)),
        (11, SYMBOL.size), (0x6FFFFFF0, where.versions), (0x6FFFFFFC, where.definitions),
        (0x6FFFFFFD, len(nodes) + 1), (0, 0),
    ]  # fmt: skip
    for i, entry in enumerate(dynamic):
        struct.pack_into("<qQ", image, where.writable + 64 + 16 * i, *entry)
    struct.pack_into("<II", image, where.hash, _BUCKETS, CAPACITY)
    struct.pack_into("<I", image, where.hash + 8 + 4 * (elf_hash(ANCHOR) % _BUCKETS), 1)
    SYMBOL.pack_into(
        image, where.symbols + SYMBOL.size, anchor_at, GLOBAL | OBJECT, 0, 1, where.writable, 64
    )
    struct.pack_into("<H", image, where.versions + 2, 1)
    for i, node in enumerate((soname, *nodes)):
        at, last = where.definitions + 28 * i, i == len(nodes)
        flags, index, following = int(i == 0), i + 1, 0 if last else 28
        struct.pack_into(
            "<HHHHIIIII", image, at, 1, flags, index, 1, elf_hash(node), 20, following,
            [soname_at, *node_at][i], 0,
        )  # fmt: skip
    struct.pack_into("<QQ", image, where.writable, len(names), 2)  # names used, next symbol
    _header(image, where, len(names))
    return bytes(image + names)


def _stubs(image: bytearray, where: Area) -> None:
    """Function i: `lea record_i(%rip), %r11; jmp *(%r11)`."""
    for i in range(CAPACITY):
        at = _PAGE + _STUB * i
        distance = where.records + RECORD.size * i - (at + 7)
        image[at : at + 10] = b"\x4c\x8d\x1d" + distance.to_bytes(4, "little") + b"\x41\xff\x23"


def _header(image: bytearray, where: Area, name_bytes: int) -> None:
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    struct.pack_into(
        "<16sHHIQQQIHHHHHH", image, 0, ident, 3, 62, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0
    )
    in_file = where.names + name_bytes - where.writable
    segments = [  # type, flags, offset, address, bytes in file, bytes in memory, alignment
        (1, 5, 0, 0, where.writable, where.writable, _PAGE),
        (1, 6, where.writable, where.writable, in_file, where.end - where.writable, _PAGE),
        (2, 6, where.writable + 64, where.writable + 64, 160, 160, 8),
        (0x6474E551, 6, 0, 0, 0, 0, 16),  # no executable stack
    ]
    for i, (kind, flags, offset, address, size, memory, align) in enumerate(segments):
        struct.pack_into(
            "<IIQQQQQQ", image, 64 + 56 * i, kind, flags, offset, address, address, size, memory,
            align,
        )  # fmt: skip


def _up(value: int) -> int:
    return (value + 15) & ~15


class Loaded:
    """The image of a stand-in in this process, to which symbols are added.

    Not safe for two threads at once.

    Attributes:
        names: (symbol, version) pairs that it exports.
    """

    def __init__(self, anchor: int, soname: str, nodes: tuple[str, ...]) -> None:
        self._where = area(len(nodes))
        self._base = anchor - self._where.writable
        image = (ctypes.c_char * self._where.end).from_address(self._base)
        self._memory = memoryview(image).cast("B")
        self._soname = self._base + self._where.names + 1
        self._data = 0
        self.soname = soname
        self.nodes = nodes
        self.names: set[tuple[str, str | None]] = set()

    def _control(self) -> tuple[int, int]:
        used, following = struct.unpack_from("<QQ", self._memory, self._where.writable)
        return used, following

    def _add(self, name: str, version: str | None, kind: int, value: int, size: int) -> None:
        """Export a symbol."""
        where, memory = self._where, self._memory
        used, index = self._control()
        encoded = name.encode() + b"\0"
        if index >= CAPACITY or used + len(encoded) > _NAME_BYTES:
            raise MemoryError(f"the stand-in for {self.soname} is full")
        memory[where.names + used : where.names + used + len(encoded)] = encoded
        SYMBOL.pack_into(
            memory, where.symbols + SYMBOL.size * index, used, GLOBAL | kind, 0, 1, value, size
        )
        node = 1 if version is None else self.nodes.index(version) + 2
        struct.pack_into("<H", memory, where.versions + 2 * index, node)
        bucket = where.hash + 8 + 4 * (elf_hash(name) % _BUCKETS)
        chain = where.hash + 8 + 4 * (_BUCKETS + index)
        memory[chain : chain + 4] = memory[bucket : bucket + 4]
        struct.pack_into("<QQ", memory, where.writable, used + len(encoded), index + 1)
        struct.pack_into("<I", memory, bucket, index)  # from here on it is found
        self.names.add((name, version))

    def add_function(self, name: str, version: str | None, target: int) -> int:
        """Export a function that jumps to `target` with its record; return its address."""
        used, index = self._control()
        where, stub = self._where, _PAGE + _STUB * index
        name_at = self._base + where.names + used
        record = where.records + RECORD.size * index
        RECORD.pack_into(self._memory, record, target, name_at, self._soname, 0)
        self._add(name, version, FUNCTION, stub, _STUB)
        return self._base + stub

    def add_data(self, name: str, version: str | None, words: list[int]) -> int:
        """Export read-only words of 8 bytes; return their address."""
        at = self._place(struct.pack(f"<{len(words)}Q", *words))
        self._add(name, version, OBJECT, at, 8 * len(words))
        return self._base + at

    def text(self, value: str) -> int:
        """Put a text into its memory; return the address."""
        return self._base + self._place(value.encode() + b"\0")

    def _place(self, data: bytes) -> int:
        at = self._where.data + self._data
        if self._data + len(data) > _DATA_BYTES:
            raise MemoryError(f"the stand-in for {self.soname} is full")
        self._memory[at : at + len(data)] = data
        self._data += _up(len(data))
        return at
