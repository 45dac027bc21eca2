"""A container of FFmpeg in a file that is locked, and that plays while it grows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import av

from headrace.media.sinks.base import create

_HYBRID_SINCE = (61, 7, 0)  # FFmpeg 7.1


class OutputFile:
    """The file under FFmpeg: system errors keep their number, and a failed file stays as it is.

    Every byte has its explicit place, so a write that Ctrl-C broke into is simply done again; the
    interrupt is raised when FFmpeg is done.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._fd = create(path, name, follow=False)
        self._at = self._end = 0
        self.sealed = False
        self.interrupted = False

    def write(self, data: bytes) -> int:
        """Write at the present place; a sealed file takes nothing."""
        view, at = memoryview(data), self._at
        end = at + len(view)
        while at < end and not self.sealed:
            try:
                at += os.pwrite(self._fd, view[at - end :], at)
            except KeyboardInterrupt:
                self.interrupted = True
        self._at, self._end = end, max(self._end, end)
        return len(view)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to another place."""
        self._at = offset + (0, self._at, self._end)[whence]
        return self._at

    def tell(self) -> int:
        """The present place."""
        return self._at

    def close(self) -> None:
        """Close it; the lock ends."""
        os.close(self._fd)


def open_container(file: OutputFile, format: str) -> Any:
    """Open a container for writing; an MP4 is fragmented until it is finished.

    What is muxed is in the file a second of it later, wherever its key frames are.

    Args:
        file: takes the bytes.
        format: `mp4`, `mov` or `matroska`.
    """
    options = {"flush_packets": "1"}
    if format == "matroska":
        options["cluster_time_limit"] = "1000"  # ms
    elif av.library_versions["libavformat"] >= _HYBRID_SINCE:
        # delay_moov: without it there is no edit list, and times shift by the B-frames.
        options["movflags"] = "hybrid_fragmented+delay_moov"
        options["frag_duration"] = "1000000"  # µs
    return av.open(file, "w", format=format, container_options=options)
