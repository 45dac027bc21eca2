"""Timing caches: opaque bytes that scripts keep between builds."""

from __future__ import annotations

from typing import Any

from noria.trt.api.host_memory import IHostMemory
from noria.trt.api.strict import Closable

_MAGIC = b"NORIATTC"


class ITimingCache(Closable):
    """Noria keeps measured times elsewhere, see `noria build --timing-cache`; this one carries
    whatever bytes it was given, so that scripts that save and load it work.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytes(data) or _MAGIC

    def serialize(self) -> IHostMemory:
        """The bytes to save."""
        return IHostMemory(self._data)

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Take another cache in."""
        if not isinstance(input_cache, ITimingCache):
            raise TypeError(f"a timing cache, not a {type(input_cache).__name__}")
        if len(input_cache._data) > len(self._data):
            self._data = input_cache._data
        return True

    def reset(self) -> bool:
        """Forget everything."""
        self._data = _MAGIC
        return True

    def query_keys(self) -> list[Any]:
        """Keys of an editable cache; there are none."""
        return []
