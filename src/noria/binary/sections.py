"""What compilers leave in a library for readers: sections that no loader looks at."""

from __future__ import annotations

import struct

from noria.binary.elf import ElfFile


def section(elf: ElfFile, name: str) -> bytes | None:
    """The bytes of a section; None if there is none, as in stripped or damaged files."""
    if elf.bits != 64 or not elf.little_endian:
        return None
    data = elf.data
    try:
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count, names_at = struct.unpack_from("<HHH", data, 58)
        headers = [
            struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(min(count, 1000))
        ]
        _, _, _, _, start, length = headers[names_at]
    except (struct.error, IndexError):
        return None
    names = data[start : start + length]
    for name_at, _, _, _, offset, bytes_ in headers:
        end = names.find(b"\0", name_at)
        if names[name_at:end] == name.encode():
            return data[offset : offset + bytes_]
    return None


def build_notes(elf: ElfFile) -> tuple[str, ...]:
    """Names and versions of the compilers, as they wrote them into `.comment`."""
    content = section(elf, ".comment") or b""
    texts = [t.decode("utf-8", "replace").strip() for t in content.split(b"\0") if t.strip()]
    return tuple(dict.fromkeys(texts))
