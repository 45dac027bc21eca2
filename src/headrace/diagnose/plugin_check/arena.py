"""Memory for plugins that are checked: between pages that cannot be accessed, and known bytes.

    | no access | known bytes | tensor | known bytes to the end of the page | no access |

Every run has addresses of its own, and memory of earlier runs is out of reach: code that keeps an
address is ended where it uses it.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from itertools import count

import numpy as np

from headrace._core import _native
from headrace._core.types import Array

PAGE = mmap.PAGESIZE
ALIGNMENT = 256
"""Bytes that addresses are a multiple of, as those of `cudaMalloc`."""
GUARD_PAGES = 256
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
_SLOTS = 100
"""Regions that a report of a crash can name; those behind are of lent data (`lent.h`)."""
_numbers = count()


@dataclass(slots=True)
class Tensor:
    """Memory of one tensor, or of the workspace.

    Attributes:
        name: for messages.
        data: its bytes.
        writable: whether the plugin may write to it.
    """

    name: str
    data: Array
    writable: bool
    _before: Array
    _behind: Array
    _known: int
    _pages: mmap.mmap
    _slot: int

    @property
    def address(self) -> int:
        """Of the first byte."""
        return int(self.data.ctypes.data)

    def written_outside(self) -> str:
        """Where known bytes around it were changed: "before" or "behind"; empty if nowhere."""
        if np.any(self._before != self._known):
            return "before"
        return "behind" if np.any(self._behind != self._known) else ""

    def lock(self) -> None:
        """The tensor is complete: from now on the plugin may only read it."""
        if not self.writable:
            _native.guard_protect(*self._range(), True, False)

    def close(self) -> None:
        """Put the memory out of reach; its addresses are not used again in this process."""
        start, size = self._range()
        _native.guard_protect(start, size, False, False)
        name = f"old: {self.name} of an earlier call"
        _native.guard_set_region(self._slot, start, start + size, name)
        _kept.append(self._pages)

    def _range(self) -> tuple[int, int]:
        return int(self._before.ctypes.data), self._before.size + self.data.size + self._behind.size


_kept: list[mmap.mmap] = []


def tensor(name: str, size: int, *, writable: bool, known: int) -> Tensor:
    """Make memory of `size` bytes with bytes of the value `known` around it."""
    room = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
    inner = -(-room // PAGE) * PAGE
    pages = mmap.mmap(-1, inner + 2 * GUARD_PAGES * PAGE, flags=_PRIVATE)
    whole = np.frombuffer(pages, np.uint8)
    base = int(whole.ctypes.data)
    first = GUARD_PAGES * PAGE
    body = whole[first : first + inner]
    body[:] = known
    at = inner - room
    made = Tensor(
        name, body[at : at + size], writable, body[:at], body[at + size :], known, pages,
        next(_numbers) % _SLOTS,
    )  # fmt: skip
    _native.guard_protect(base, first, False, False)
    _native.guard_protect(base + first + inner, GUARD_PAGES * PAGE, False, False)
    start = base + first + at
    _native.guard_set_region(made._slot, start, start + size, name)
    return made
