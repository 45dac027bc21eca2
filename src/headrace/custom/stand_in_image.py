"""A shared library written byte by byte: no compiler is needed where it is used.

It has a name (SONAME), version nodes, and room for symbols, which are added to its image while it
is loaded: the tables that the dynamic loader searches are in writable memory. So one stand-in
serves every library that is loaded later, whatever that asks for. For x86-64 and AArch64. An image
that is not loaded here can be filled, too, see `FileImage`.
"""

from __future__ import annotations

import struct
from collections.abc import Container
from typing import NamedTuple

ANCHOR = "headrace_stand_in"
"""The one symbol that it exports from the start: the beginning of its writable memory."""

CAPACITY = 2048
_BUCKETS = 512
_STUB = 16
_PAGE = 0x10000  # the largest of AArch64's
X86_64, AARCH64 = 62, 183
_NAME_BYTES = 256 * 1024
_DATA_BYTES = 256 * 1024
RECORD = struct.Struct("<QQQQ")  # Record in native/src/stand_ins/stand_in.h
SYMBOL = struct.Struct("<IBBHQQ")
FUNCTION, OBJECT = 2, 1
GLOBAL = 1 << 4
_STRING_BYTES = 10  # DT_STRSZ


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
    writable = (_PAGE + CAPACITY * _STUB + _PAGE - 1) // _PAGE * _PAGE
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


def build(soname: str, nodes: tuple[str, ...], machine: int) -> bytes:
    """The file of a stand-in.

    Args:
        soname: its name, which a library's DT_NEEDED entry is matched with.
        nodes: version nodes that libraries demand of it, such as `libcudart.so.12`.
        machine: `e_machine` of the libraries, `X86_64` or `AARCH64`.
    """
    where = area(len(nodes))
    names = bytearray(b"\0")

    def text(value: str) -> int:
        names.extend(value.encode() + b"\0")
        return len(names) - len(value.encode()) - 1

    soname_at, anchor_at = text(soname), text(ANCHOR)
    node_at = [soname_at if node == soname else text(node) for node in nodes]
    image = bytearray(where.names)
    _STUBS[machine](image, where)
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
    _header(image, where, len(names), machine)
    return bytes(image + names)


def _x86_64_stubs(image: bytearray, where: Area) -> None:
    """Function i: `lea record_i(%rip), %r11; jmp *(%r11)`."""
    for i in range(CAPACITY):
        at = _PAGE + _STUB * i
        distance = where.records + RECORD.size * i - (at + 7)
        image[at : at + 10] = b"\x4c\x8d\x1d" + distance.to_bytes(4, "little") + b"\x41\xff\x23"


def _aarch64_stubs(image: bytearray, where: Area) -> None:
    """Function i: `adrp x16, record_i; add x16, x16, :lo12:record_i; ldr x17, [x16]; br x17`."""
    for i in range(CAPACITY):
        at, record = _PAGE + _STUB * i, where.records + RECORD.size * i
        pages = (record >> 12) - (at >> 12)
        adrp = 0x90000010 | (pages & 3) << 29 | (pages >> 2) << 5
        add = 0x91000210 | (record & 0xFFF) << 10
        struct.pack_into("<4I", image, at, adrp, add, 0xF9400211, 0xD61F0220)


_STUBS = {X86_64: _x86_64_stubs, AARCH64: _aarch64_stubs}


def _header(image: bytearray, where: Area, name_bytes: int, machine: int) -> None:
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    struct.pack_into(
        "<16sHHIQQQIHHHHHH", image, 0, ident, 3, machine, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0
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


class Image:
    """A stand-in to which symbols are added.

    Not safe for two threads at once.

    Attributes:
        names: (symbol, version) pairs that it exports.
        type_infos: addresses of `std::type_info` objects, by their symbols.
        class_type_info: the word that every `std::type_info` of a class without bases begins with.
    """

    def __init__(self, memory: memoryview, base: int, soname: str, nodes: tuple[str, ...]) -> None:
        self._where = area(len(nodes))
        self._base = base
        self._memory = memory
        self._soname = base + self._where.names + 1
        self._data = 0
        self.soname = soname
        self.nodes = nodes
        self.names: set[tuple[str, str | None]] = set()
        self.type_infos: dict[str, int] = {}
        self.class_type_info = 0

    def target(self, function: str) -> int:
        """Return the address that a function of that name jumps to."""
        return 0

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

    def add_function(self, name: str, version: str | None) -> int:
        """Export a function that jumps to its target with its record; return its address."""
        used, index = self._control()
        where, stub = self._where, _PAGE + _STUB * index
        name_at = self._base + where.names + used
        record = where.records + RECORD.size * index
        RECORD.pack_into(self._memory, record, self.target(name), name_at, self._soname, 0)
        self._add(name, version, FUNCTION, stub, _STUB)
        return self._base + stub

    def add_type_info(self, name: str, version: str | None) -> int:
        """Export a `std::type_info` of a class without bases: its vtable, and its name."""
        address = self.add_data(name, version, [self.class_type_info, self.text(name[4:])], {1})
        self.type_infos[name] = address
        return address

    def add_data(
        self, name: str, version: str | None, words: list[int], addresses: Container[int] = ()
    ) -> int:
        """Export read-only words of 8 bytes; return their address.

        Args:
            name: the symbol.
            version: its node, or None.
            words: the values.
            addresses: which of them, by index, are addresses in this image.
        """
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


class FileImage(Image):
    """An image in a file: addresses in it are offsets until its loader adds where it lies.

    Attributes:
        moved: offsets of words that are addresses, beside those of the records.
        begun: offsets of words that become `class_type_info`.
        records: offset of the records, and how many there are.
    """

    def __init__(self, soname: str, nodes: tuple[str, ...], machine: int) -> None:
        content = build(soname, nodes, machine)
        self._content = bytearray(area(len(nodes)).end)
        self._content[: len(content)] = content
        super().__init__(memoryview(self._content), 0, soname, nodes)
        self.moved: list[int] = []
        self.begun: list[int] = []

    @property
    def anchor(self) -> int:
        """Offset of the symbol `ANCHOR`."""
        return self._where.writable

    @property
    def records(self) -> tuple[int, int]:
        """Offset of the records, and how many there are."""
        return self._where.records, self._control()[1]

    def add_type_info(self, name: str, version: str | None) -> int:
        """Export one; its loader fills in the first word."""
        address = super().add_type_info(name, version)
        self.begun.append(address)
        return address

    def add_data(
        self, name: str, version: str | None, words: list[int], addresses: Container[int] = ()
    ) -> int:
        """Export words, and note which are addresses."""
        at = super().add_data(name, version, words, addresses)
        self.moved += [at + 8 * i for i, word in enumerate(words) if word and i in addresses]
        return at

    def file(self) -> bytes:
        """Return the file, all of its memory in it."""
        whole, where = self._content, self._where
        size = where.end - where.writable
        used, _ = self._control()
        # the writable segment's bytes in the file; the table of strings ends with the names
        struct.pack_into("<Q", whole, 64 + 56 + 32, size)
        for i in range(10):
            at = where.writable + 64 + 16 * i
            if struct.unpack_from("<q", whole, at)[0] == _STRING_BYTES:
                struct.pack_into("<Q", whole, at + 8, used)
        return bytes(whole)
