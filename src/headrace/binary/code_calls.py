"""Functions that the code of an exported function reaches, by its machine code (x86-64, AArch64).

Parsers have C linkage, so no symbol has their types. But a parser that fills a vector calls code of
that vector, an instantiation whose symbol has the type: `std::vector<NvDsInferAttribute>::…`.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from headrace.binary.elf import ElfFile

_X86_64, _AARCH64 = 62, 183
_DEPTH = 8  # calls into one another
_MOST_BYTES = 1 << 16  # of one function without a known end
_MOST_FUNCTIONS = 5000
_CALL, _CALL_OR_JUMP = re.compile(rb"\xe8"), re.compile(rb"[\xe8\xe9]")  # to relative addresses
_FAR = re.compile(rb"\xff[\x15\x25]")  # call, jmp through a slot that the loader fills
_PLT = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?(?:\xf2)?\xff\x25", re.DOTALL)
_BL = re.compile(rb"(?=...[\x94-\x97])", re.DOTALL)
# How compilers begin functions: endbr64; push of a register; sub rsp.
_BEGINS = re.compile(rb"\xf3\x0f\x1e\xfa|[\x50-\x57]|\x41[\x50-\x57]|\x48[\x81\x83]\xec", re.DOTALL)


class CodeCalls:
    """Calls in the machine code of a library.

    Calls through pointers are not followed, and calls of functions without a symbol only where they
    begin as compilers begin functions: a name that is not reached proves nothing.

    Attributes:
        names: address -> symbol of a function.
        slots: address of a slot that the loader fills -> symbol that it will point to.
    """

    def __init__(self, elf: ElfFile) -> None:
        self.elf = elf
        self.readable = elf.bits == 64 and elf.little_endian and elf.machine in (_X86_64, _AARCH64)
        functions = [s for s in elf.symbols if s.defined and s.kind in (2, 10)]
        self.names = {s.address: s.name for s in functions}
        self.sizes = {s.address: s.size for s in functions if s.size}
        self.slots = elf.slots() if self.readable else {}

    def reached(self, name: str) -> frozenset[str]:
        """Names of the functions that the function `name` calls, directly or through others."""
        start = next((at for at, known in self.names.items() if known == name), None)
        if start is None or not self.readable:
            return frozenset()
        names: set[str] = set()
        seen, waiting = {start}, [(start, 0)]
        while waiting and len(seen) < _MOST_FUNCTIONS:
            at, depth = waiting.pop()
            for target in self._targets(at):
                if isinstance(target, str):
                    names.add(target)
                elif target not in seen:
                    seen.add(target)
                    if known := self.names.get(target):
                        names.add(known)
                    if depth < _DEPTH:
                        waiting.append((target, depth + 1))
        return frozenset(names)

    @cached_property
    def _starts(self) -> list[int]:
        """Where functions begin: those with a symbol, and those that are called."""
        starts = set(self.names)
        for start, length, _ in self.elf.segments:
            body = self._bytes(start, length)
            if self.elf.machine == _AARCH64:
                offsets = (match.start() for match in _BL.finditer(body))
                starts.update(_branch(start + at, body, at) for at in offsets if not at % 4)
                continue
            targets = self._near(start, body, _CALL)
            starts.update(at for at in targets if _BEGINS.match(self._bytes(at, 4)))
        return sorted(starts)

    def _bytes(self, at: int, count: int) -> bytes:
        for start, length, offset in self.elf.segments:
            if start <= at < start + length:
                count = min(count, start + length - at)
                return self.elf.data[at - start + offset : at - start + offset + count]
        return b""

    def _near(self, at: int, body: bytes, kinds: re.Pattern[bytes]) -> Iterator[int]:
        """Targets of calls to relative addresses."""
        for match in kinds.finditer(body, 0, max(0, len(body) - 4)):
            (offset,) = struct.unpack_from("<i", body, match.start() + 1)
            yield at + match.start() + 5 + offset

    def _targets(self, at: int) -> Iterator[int | str]:
        """Addresses and symbols that the function at an address calls."""
        size = self.sizes.get(at)
        if size is None:
            following = bisect_right(self._starts, at)
            end = self._starts[following] if following < len(self._starts) else at + _MOST_BYTES
            size = min(end - at, _MOST_BYTES)
        body = self._bytes(at, size)
        if self.elf.machine == _AARCH64:
            yield from self._arm(at, body)
            return
        for match in _FAR.finditer(body, 0, max(0, len(body) - 5)):
            (offset,) = struct.unpack_from("<i", body, match.start() + 2)
            if symbol := self.slots.get(at + match.start() + 6 + offset):
                yield symbol
        for target in self._near(at, body, _CALL_OR_JUMP):
            yield from self._resolved(target)

    def _resolved(self, target: int) -> Iterator[int | str]:
        head = self._bytes(target, 16)
        if stub := _PLT.match(head):
            if len(head) < stub.end() + 4:
                return
            (offset,) = struct.unpack_from("<i", head, stub.end())
            if symbol := self.slots.get(target + stub.end() + 4 + offset):
                yield symbol
        elif target in self.names or _BEGINS.match(head):
            yield target

    def _arm(self, at: int, body: bytes) -> Iterator[int | str]:
        for offset in range(0, len(body) - 3, 4):
            (word,) = struct.unpack_from("<I", body, offset)
            if word & 0x7C000000 != 0x14000000:  # b, bl
                continue
            target = _branch(at + offset, body, offset)
            if symbol := self._arm_stub(target):
                yield symbol
            elif target in self.names or word & 0x80000000:  # bl calls functions only
                yield target

    def _arm_stub(self, target: int) -> str | None:
        """Find the symbol of a PLT entry: `adrp x16`, `ldr x17, [x16, #offset]`, and more."""
        head = self._bytes(target, 12)
        words = struct.unpack_from(f"<{len(head) // 4}I", head)
        words = words[1:] if words and words[0] == 0xD503245F else words  # bti c
        if len(words) < 2 or words[0] & 0x9F00001F != 0x90000010:
            return None
        if words[1] & 0xFFC003FF != 0xF9400211:
            return None
        page = (words[0] >> 29 & 3) | (words[0] >> 5 & 0x7FFFF) << 2
        page = page - (1 << 21) if page & 1 << 20 else page
        where = target + (4 if len(head) // 4 > len(words) else 0)
        slot = (where & ~0xFFF) + (page << 12) + ((words[1] >> 10 & 0xFFF) << 3)
        return self.slots.get(slot)


def _branch(at: int, body: bytes, position: int) -> int:
    """Target of `b` or `bl` at an address: 26 bits, signed, count words."""
    offset = (int.from_bytes(body[position : position + 4], "little") & 0x3FFFFFF) << 2
    return at + (offset - (1 << 28) if offset & 1 << 27 else offset)
