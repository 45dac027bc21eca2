"""The worker's view of the tensors of a call: copied for it, or shared as they are."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from headrace._core import _native
from headrace._core.types import Array
from headrace.custom.guard import ipc
from headrace.meta import Layer

if TYPE_CHECKING:
    from typing import Any


MAP_REGION = 159
"""Number of the region (`guard_set_region`) of class maps; those before are tensors."""

_MAX_KNOWN = 4096
Regions = list[tuple[int, int, int, int]]
"""Per tensor: start, end, file or -1, offset of its first page in that."""


class CannotShareError(Exception):
    """There is no address space for shared tensors: the application must copy them."""


class Tensors:
    """The layers of calls, in the worker's memory.

    Each tensor is followed by a page that can only be read, then by a gap. Shared ones can only be
    read themselves; the first write makes a copy of their pages for this process, see
    `guard/crash.cpp`.
    """

    def __init__(self, results: int) -> None:
        self._results = results
        self._slots: dict[int, _native.GuardMapping] = {}
        self._names: list[str] = []
        self._arrays: list[Array] = []
        self._protected: list[int] = []  # pages behind tensors
        self._known: dict[tuple[int, ...], tuple[dict[str, Layer], Regions]] = {}
        self._current: tuple[int, ...] | None = None

    def prepare(self, names: list[str], arrays: list[Array]) -> None:
        """Set the layers of calls from now on; copies of tensors will be in `arrays`.

        To be called while nothing is protected.
        """
        self._names, self._arrays = names, arrays
        self._known.clear()
        self._current = None
        self._protected = [
            ipc.page_ceil(_native.address_of(a) + a.nbytes) for a in arrays if a.nbytes
        ]
        for i in range(MAP_REGION):
            _native.guard_set_region(i, 0, 0, "")

    @contextmanager
    def unprotected(self) -> Iterator[None]:
        """Make all of the input region readable: a message takes the place of copies."""
        self._protect(False)
        try:
            yield
        finally:
            self._protect(True)

    def _protect(self, protect: bool) -> None:
        for page in self._protected:
            _native.guard_protect(page, ipc.PAGE, True, not protect)
            _native.guard_protect(page + ipc.PAGE, ipc.GAP, not protect, not protect)

    def layers(self, words: memoryview) -> dict[str, Layer]:
        """Return the layers of the call that the control page describes.

        Raises:
            CannotShareError: there is no address space for a shared tensor.
        """
        count = min(len(self._names), ipc.MAX_PLACES)
        key = tuple(words[ipc.PLACES : ipc.PLACES + 3 * count])
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = self._find(key)
        if key != self._current:
            self._current = key
            regions = zip(self._names, known[1][:MAP_REGION], strict=False)
            for i, (name, (start, end, file, offset)) in enumerate(regions):
                _native.guard_set_region(i, start, end, f"output layer {name}", file, offset)
        return known[0]

    def _find(self, key: tuple[int, ...]) -> tuple[dict[str, Layer], Regions]:
        layers: dict[str, Layer] = {}
        regions: Regions = []
        for i, (name, array) in enumerate(zip(self._names, self._arrays, strict=True)):
            position, slot, size = key[3 * i : 3 * i + 3] if 3 * i < len(key) else (0, 0, 0)
            if not position:
                start = _native.address_of(array)
                regions.append((start, start + array.nbytes, -1, 0))
            else:
                array, start = self._shared(array, position - 1, slot, size)
                offset = (position - 1) // ipc.PAGE * ipc.PAGE
                regions.append((start, start + array.nbytes, self._results, offset))
            layers[name] = Layer(name, array)
        return layers, regions

    def _shared(self, like: Array, offset: int, slot: int, size: int) -> tuple[Array, int]:
        mapping = self._slots.get(slot)
        if mapping is None:
            try:
                mapping = _native.GuardMapping(self._results, slot, size)
            except RuntimeError as error:
                raise CannotShareError(str(error)) from error
            self._slots[slot] = mapping
        start = mapping.address + offset - slot
        memory = (ctypes.c_char * like.nbytes).from_address(start)
        view: Any = memory  # writable, as a copy would be: see above
        return np.frombuffer(view, like.dtype).reshape(like.shape), start
