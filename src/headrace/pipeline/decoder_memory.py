"""Memory of videos: decoded side by side, refused where it lacks."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace.engine.machine import usable_cores

if TYPE_CHECKING:
    from headrace.media import Source

_BYTES_PER_PIXEL = 1.5  # of images in 4:2:0
# Of one decoder with one thread, measured of H.264 and HEVC with 1 to 16 references: each of them,
# which no setting of FFmpeg makes fewer, with the motion that is kept beside it; the images on
# their way to the muxer; and the decoder and its container, whatever the size of images.
_PER_REFERENCE, _IMAGES, _OWN_BYTES = 1.5, 5, 1_000_000
_REFERENCES = 2  # of a video that does not say
_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def free_memory() -> int | None:
    """Return the bytes that this process may still take; None where the system has no such number.

    The least of the machine's available memory and the rest of the control group's limit.
    """
    free_bytes = []
    try:
        lines = _MEMINFO.read_text().splitlines()
        free_bytes += [
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")
        ]
    except (OSError, ValueError, IndexError):  # not a Linux, or not readable
        pass
    try:
        limit, used = ((_CGROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        free_bytes += [int(limit) - int(used)] if limit.strip() != "max" else []
    except (OSError, ValueError):  # no control group of the second version
        pass
    return min(free_bytes, default=None)


class DecoderMemory:
    """The memory of videos that are open side by side.

    Args:
        total: how many sources there will be.

    Attributes:
        threads: of each decoder: 1 where there are sources for every core, else None. Each further
            one holds images of its own, and finds no core to run on.
        needed: bytes of the sources so far, once each has decoded its references.
    """

    def __init__(self, total: int) -> None:
        self.threads = 1 if total > usable_cores() else None
        self._total = total
        self._free = free_memory()
        self.needed, self._videos = 0.0, 0
        self._lock, self._full = Lock(), False

    def add(self, source: Source) -> None:
        """Count an opened source; one without a decoder, or a size yet, needs nothing.

        Raises:
            HeadraceError: those so far would not fit into memory; with the number that would.
        """
        from headrace.media.sources.decoded import DecodedSource  # PyAV takes its time

        if not isinstance(source, DecodedSource) or not source.width:
            return
        images = _IMAGES + _PER_REFERENCE * (source.reference_images or _REFERENCES)
        more = source.width * source.height * images * _BYTES_PER_PIXEL + _OWN_BYTES
        with self._lock:
            if not self._full:
                self.needed += more
                self._videos += 1
                fits = self._free is None or self._videos < 2 or self.needed <= self._free
                self._full = not fits
            if not self._full or self._free is None:
                return
        source.close()
        raise HeadraceError(
            f"{self._total} sources are decoded side by side, and the images of the first "
            f"{self._videos} alone need about {self.needed / 1e9:.1f} GB: "
            f"{self._free / 1e9:.1f} GB of memory are free",
            expected=f"about {self._videos - 1} sources of that size",
            fix=[
                "lower repeat, or run some of them later: headrace batch takes any number of "
                "videos",
                "take videos of fewer pixels",
            ],
        )
