"""A reader of the parts of ELF files that decide whether, and how, a library can be called.

It reads the dynamic segment, which every loadable library has, stripped or not, and trusts
nothing: every offset is checked against the file.

Why not pyelftools (0.33, public domain): it makes a parsed container of every symbol. Symbols,
versions and needs of numpy's OpenBLAS (24 MiB, 11,440 symbols) take 24 ms here and 2,630 ms there,
of libarrow (46 MiB, 10,114 symbols) 32 and 1,210 ms, of libopenvino (20 MiB, 11,370) 29 and
1,330 ms; importing takes 15 and 72 ms. 100,000 symbols would take 0.3 and 10 to 20 s. It also
trusts the file: sizes and counts of a damaged one are neither bounded nor checked.
"""

from __future__ import annotations

import platform
import re
import struct
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

MACHINES = {
    3: "x86 (32 bit)",
    8: "MIPS",
    21: "POWER (64 bit)",
    22: "s390x",
    40: "ARM (32 bit)",
    62: "x86-64",
    183: "AArch64 (ARM 64 bit, as in Jetson)",
    243: "RISC-V",
    258: "LoongArch",
}
FILE_TYPES = {1: "an object file (.o)", 2: "an executable", 3: "a shared library", 4: "a core dump"}

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 1, 4, 5, 6, 10
_DT_RELA, _DT_RELASZ, _DT_PLTRELSZ, _DT_JMPREL = 7, 8, 2, 23
_DT_SONAME, _DT_RPATH, _DT_RUNPATH, _DT_GNU_HASH = 14, 15, 29, 0x6FFFFEF5
_DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
_MAX_SYMBOLS = 4_000_000
_MAX_SECTIONS = 1000


HOST_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "ppc64le": 21, "s390x": 22}
"""Name of a machine, as `platform.machine()` gives it -> its `e_machine`."""


class ElfError(ValueError):
    """The file is not ELF, or is damaged."""


class DynamicSymbol(NamedTuple):  # a library has thousands
    """An entry of `.dynsym`.

    Attributes:
        kind: STT_*: 1 data, 2 function.
        weak: it may stay undefined.
        version: the version it is demanded in, and `needed_from` the library that must have it.
        address: where it is, from the library's start.
        size: bytes of it; 0 where unknown.
    """

    name: str
    defined: bool
    kind: int
    exported: bool
    weak: bool = False
    version: str | None = None
    needed_from: str | None = None
    address: int = 0
    size: int = 0


@dataclass(frozen=True)
class ElfFile:
    """The facts in a shared library's file.

    Attributes:
        bits: 32 or 64.
        machine: `e_machine`; see `MACHINES`.
        file_type: `e_type`: 1 object file, 2 executable, 3 shared library.
        needed: names of the libraries it is linked against (DT_NEEDED).
        run_paths: folders it searches for them (DT_RUNPATH or DT_RPATH).
        symbols: its dynamic symbols.
        version_needs: versions it needs, by library: `{"libc.so.6": ["GLIBC_2.34"]}`.
        version_defs: versions that it offers itself.
        loaded_bytes: how much of the file a loader maps; the rest are sections for other tools.
        data: the whole file.
        segments: (address, size in the file, offset) of what a loader maps.
        relocations: (address, bytes) of the tables of 64-bit relocations with addends.
    """

    path: Path
    bits: int
    little_endian: bool
    machine: int
    file_type: int
    soname: str | None
    needed: tuple[str, ...]
    run_paths: tuple[str, ...]
    symbols: tuple[DynamicSymbol, ...]
    version_needs: dict[str, list[str]]
    version_defs: frozenset[str]
    loaded_bytes: int
    data: bytes
    segments: tuple[tuple[int, int, int], ...] = ()
    relocations: tuple[tuple[int, int], ...] = ()

    @classmethod
    def read(cls, path: Path) -> ElfFile:
        """Read a file.

        Raises:
            ElfError: it is no ELF file, or its header or dynamic segment is damaged.
            OSError: it cannot be read.
        """
        return cls.parse(path.read_bytes(), path)

    @classmethod
    def parse(cls, data: bytes, path: Path) -> ElfFile:
        """`read`, from the bytes of a file."""
        try:
            return _Reader(data).read(path)
        except (struct.error, IndexError, OverflowError) as error:
            raise ElfError(f"damaged or truncated ELF file: {error}") from error

    @property
    def machine_name(self) -> str:
        """The processor it is for."""
        return MACHINES.get(self.machine, f"machine {self.machine}")

    @property
    def type_name(self) -> str:
        """The kind of file, with its article."""
        return FILE_TYPES.get(self.file_type, f"ELF type {self.file_type}")

    def exported(self) -> set[str]:
        """Names that `dlsym` would find in this file."""
        return {s.name for s in self.symbols if s.defined and s.exported and s.name}

    def functions(self) -> set[str]:
        """Names of exported functions."""
        return {s.name for s in self.symbols if s.defined and s.exported and s.kind in (2, 10)}

    def slots(self) -> dict[int, str]:
        """Find the places in memory that the loader fills with addresses of symbols.

        Returns:
            Address of a slot -> name of its symbol; empty for files of 32 bits.
        """
        names: dict[int, str] = {}
        if self.bits != 64:
            return names
        order = "<" if self.little_endian else ">"
        for table, size in self.relocations:
            for start, length, offset in self.segments:
                if start <= table < start + length:
                    at = table - start + offset
                    data = self.data[at : at + min(size, start + length - table) // 24 * 24]
                    for slot, info, _ in struct.iter_unpack(f"{order}QQq", data):
                        number = info >> 32
                        if 0 < number <= len(self.symbols):
                            names[slot] = self.symbols[number - 1].name
        return names

    def section(self, name: str) -> bytes | None:
        """Return the bytes of a section, which no loader reads.

        None if there is none, as in stripped or damaged files, or in files of 32 bits.
        """
        if self.bits != 64 or not self.little_endian:
            return None
        data = self.data
        try:
            (table,) = struct.unpack_from("<Q", data, 40)
            size, count, names_at = struct.unpack_from("<HHH", data, 58)
            offsets = [table + i * size for i in range(min(count, _MAX_SECTIONS))]
            headers = [struct.unpack_from("<IIQQQQ", data, at) for at in offsets]
            _, _, _, _, start, length = headers[names_at]
        except (struct.error, IndexError):
            return None
        names = data[start : start + length]
        for name_at, _, _, _, offset, bytes_ in headers:
            if names[name_at : names.find(b"\0", name_at)] == name.encode():
                return data[offset : offset + bytes_]
        return None

    def compilers(self) -> tuple[str, ...]:
        """Return names and versions of the compilers, as they wrote them into `.comment`."""
        content = self.section(".comment") or b""
        texts = [t.decode("utf-8", "replace").strip() for t in content.split(b"\0") if t.strip()]
        return tuple(dict.fromkeys(texts))

    def number(self, name: str) -> int | None:
        """The constant unsigned int that it exports as `name`; None if there is none."""
        for symbol in self.symbols:
            if symbol.name == name and symbol.defined and symbol.kind == 1:
                for start, length, offset in self.segments:
                    at = symbol.address - start
                    if 0 <= at <= length - 4:
                        data = self.data[offset + at : offset + at + 4]
                        return int.from_bytes(data, "little" if self.little_endian else "big")
        return None


class _Reader:
    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF":
            raise ElfError("not an ELF file")
        if len(data) < 20:
            raise ElfError("truncated ELF file: the header is incomplete")
        if data[4] not in (1, 2) or data[5] not in (1, 2):
            raise ElfError(f"damaged ELF header: class {data[4]}, byte order {data[5]}")
        self.data = data
        self.wide = data[4] == 2
        self.order = "<" if data[5] == 1 else ">"
        self.loads: list[tuple[int, int, int]] = []  # address, size in file, offset

    def unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        if offset < 0:
            raise ElfError("damaged ELF file: negative offset")
        return struct.unpack_from(self.order + layout, self.data, offset)

    def read(self, path: Path) -> ElfFile:
        file_type, machine = self.unpack("HH", 16)
        dynamic = self._segments()
        tags = self._dynamic(dynamic) if dynamic else {}
        strings = self._strings(tags)
        needed = tuple(self._text(strings, v) for v in tags.get(_DT_NEEDED, ()))
        paths = tags.get(_DT_RUNPATH) or tags.get(_DT_RPATH) or []
        soname = tags.get(_DT_SONAME)
        return ElfFile(
            path=path,
            bits=64 if self.wide else 32,
            little_endian=self.order == "<",
            machine=machine,
            file_type=file_type,
            soname=self._text(strings, soname[0]) if soname else None,
            needed=needed,
            run_paths=tuple(p for v in paths for p in self._text(strings, v).split(":") if p),
            symbols=self._symbols(tags, strings),
            version_needs=self._version_needs(tags, strings),
            version_defs=self._version_defs(tags, strings),
            loaded_bytes=max((start + size for _, size, start in self.loads), default=0),
            data=self.data,
            segments=tuple(self.loads),
            relocations=tuple(
                (tags[table][0], tags[size][0])
                for table, size in ((_DT_RELA, _DT_RELASZ), (_DT_JMPREL, _DT_PLTRELSZ))
                if table in tags and size in tags
            ),
        )

    def _segments(self) -> tuple[int, int] | None:
        """Remember the loaded segments; (offset, size) of the dynamic one."""
        if self.wide:
            (table,) = self.unpack("Q", 32)
            size, count = self.unpack("HH", 54)
        else:
            (table,) = self.unpack("I", 28)
            size, count = self.unpack("HH", 42)
        dynamic = None
        for i in range(count):
            if self.wide:
                kind, _, offset, address, _, length, _, _ = self.unpack(
                    "IIQQQQQQ", table + i * size
                )
            else:
                kind, offset, address, _, length = self.unpack("IIIII", table + i * size)
            if kind == _PT_LOAD:
                if offset + length > len(self.data):  # the loader would be killed by SIGBUS
                    raise ElfError("truncated ELF file: a segment ends beyond the file")
                self.loads.append((address, length, offset))
            elif kind == _PT_DYNAMIC:
                dynamic = offset, length
        return dynamic

    def _offset(self, address: int) -> int:
        for start, length, offset in self.loads:
            if start <= address < start + length:
                return address - start + offset
        raise ElfError(f"damaged ELF file: address {address:#x} is in no segment")

    def _dynamic(self, where: tuple[int, int]) -> dict[int, list[int]]:
        offset, length = where
        layout, size = ("qQ", 16) if self.wide else ("iI", 8)
        tags: dict[int, list[int]] = {}
        for at in range(offset, offset + min(length, len(self.data)), size):
            tag, value = self.unpack(layout, at)
            if tag == 0:
                break
            tags.setdefault(tag, []).append(value)
        return tags

    def _strings(self, tags: dict[int, list[int]]) -> bytes:
        if _DT_STRTAB not in tags:
            return b""
        start = self._offset(tags[_DT_STRTAB][0])
        return self.data[start : start + tags.get(_DT_STRSZ, [0])[0]]

    def _text(self, strings: bytes, at: int) -> str:
        end = strings.find(b"\0", at) if at < len(strings) else -1
        if end < 0:
            raise ElfError("damaged ELF file: a name lies outside the string table")
        return strings[at:end].decode("utf-8", "backslashreplace")

    def _symbols(self, tags: dict[int, list[int]], strings: bytes) -> tuple[DynamicSymbol, ...]:
        if _DT_SYMTAB not in tags:
            return ()
        start = self._offset(tags[_DT_SYMTAB][0])
        layout, size = ("IBBHQQ", 24) if self.wide else ("IIIBBH", 16)
        count = min(self._symbol_count(tags), _MAX_SYMBOLS)
        versions = self._demanded_versions(tags, strings)
        indices = self._offset(tags[_DT_VERSYM][0]) if versions and _DT_VERSYM in tags else None
        if start + count * size > len(self.data):
            raise ElfError("truncated ELF file: the symbol table is incomplete")
        symbols = []
        table = self.data[start : start + count * size]
        rows = enumerate(struct.iter_unpack(self.order + layout, table))
        for i, values in islice(rows, 1, None):
            if self.wide:
                name, info, other, section, address, length = values
            else:
                name, address, length, info, other, section = values
            exported = info >> 4 in (1, 2, 10) and other & 3 in (0, 3)
            file = version = None
            if indices is not None and section == 0:
                (index,) = self.unpack("H", indices + 2 * i)
                file, version = versions.get(index & 0x7FFF, (None, None))
            symbols.append(
                DynamicSymbol(
                    self._text(strings, name),
                    section != 0,
                    info & 15,
                    exported,
                    info >> 4 == 2,
                    version,
                    file,
                    address,
                    length,
                )
            )
        return tuple(symbols)

    def _symbol_count(self, tags: dict[int, list[int]]) -> int:
        """Return the number of dynamic symbols, which only the hash tables have."""
        if _DT_HASH in tags:
            return self.unpack("II", self._offset(tags[_DT_HASH][0]))[1]
        if _DT_GNU_HASH not in tags:
            return 0
        at = self._offset(tags[_DT_GNU_HASH][0])
        buckets, first, bloom, _ = self.unpack("IIII", at)
        table = at + 16 + bloom * (8 if self.wide else 4)
        if table + buckets * 4 > len(self.data):
            raise ElfError("truncated ELF file: the hash table is incomplete")
        last = max(self.unpack(f"{buckets}I", table), default=0)
        if last < first:
            return first  # nothing is exported
        chain = table + buckets * 4
        while not self.unpack("I", chain + (last - first) * 4)[0] & 1:
            last += 1
            if last - first > _MAX_SYMBOLS:
                raise ElfError("damaged ELF file: a chain of the hash table does not end")
        return last + 1

    def _version_needs(self, tags: dict[int, list[int]], strings: bytes) -> dict[str, list[str]]:
        needs: dict[str, list[str]] = {}
        for file, version in self._demanded_versions(tags, strings).values():
            needs.setdefault(file, []).append(version)
        return needs

    def _demanded_versions(
        self, tags: dict[int, list[int]], strings: bytes
    ) -> dict[int, tuple[str, str]]:
        """Index that symbols refer by -> (library, version)."""
        needs: dict[int, tuple[str, str]] = {}
        if _DT_VERNEED not in tags:
            return needs
        at = self._offset(tags[_DT_VERNEED][0])
        for _ in range(min(tags.get(_DT_VERNEEDNUM, [0])[0], 4096)):
            _, count, file, aux, following = self.unpack("HHIII", at)
            entry = at + aux
            for _ in range(count):
                _, _, index, name, next_aux = self.unpack("IHHII", entry)
                needs[index] = self._text(strings, file), self._text(strings, name)
                if not next_aux:
                    break
                entry += next_aux
            if not following:
                break
            at += following
        return needs

    def _version_defs(self, tags: dict[int, list[int]], strings: bytes) -> frozenset[str]:
        names = set()
        if _DT_VERDEF not in tags:
            return frozenset()
        at = self._offset(tags[_DT_VERDEF][0])
        for _ in range(min(tags.get(_DT_VERDEFNUM, [0])[0], 4096)):
            _, _, _, _, _, aux, following = self.unpack("HHHHIII", at)
            names.add(self._text(strings, self.unpack("II", at + aux)[0]))
            if not following:
                break
            at += following
        return frozenset(names)


def is_foreign(elf: ElfFile) -> bool:
    """Whether a library is for another machine than this one."""
    return HOST_MACHINES.get(platform.machine(), elf.machine) != elf.machine


def version_key(version: str) -> tuple[int, ...]:
    """`GLIBC_2.34` -> (2, 34), to compare versions."""
    return tuple(int(n) for n in re.findall(r"\d+", version))
