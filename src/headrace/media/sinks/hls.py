"""HTTP Live Streaming: a playlist and its segments, for a web server to give away."""

from __future__ import annotations

import glob
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import av

from headrace._core.errors import MediaError
from headrace._core.files import os_errors, refuse_link
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink, part_of
from headrace.media.sinks.frame_encoder import FrameEncoder
from headrace.media.sinks.options import SinkOptions
from headrace.media.sinks.series import unfinished
from headrace.media.sources.decoded import reason_of
from headrace.meta import FrameMeta

# no key frames between those that segments begin with: all are equally long
_OPTIONS = {"crf": "23", "preset": "veryfast", "sc_threshold": "0"}


class HlsSink(Sink):
    """Writes H.264 in segments of MPEG-TS, `NAME0.ts` and so on beside the playlist `NAME.m3u8`.

    A segment is in the playlist when it is whole, and the playlist is replaced as a whole, so that
    players may follow while it grows.

    Args:
        name: `out.m3u8`, or `out.m3u8?segment=2&keep=5`: seconds of a segment, and how many
            segments stay (0, the default: all; older ones are deleted from the disk).
        path: the same.
        fps: expected frame rate.
        threads: encoder threads; None lets the encoder choose.
        append: True continues the playlist that is there.

    Raises:
        MediaError: an option is unknown or no number in its range; the folder cannot be made.
    """

    kind = "hls"
    needs_pixels = True

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        fps: float | None = None,
        threads: int | None = None,
        append: bool = False,
    ) -> None:
        plain, _, query = path.name.partition("?")
        options = SinkOptions(query, name, ("segment", "keep"))
        self._segment_s = options.number("segment", 2.0, 3600.0, "seconds", least=0.1)
        self._keep = options.whole("keep", 0, 100_000, "segments")
        self._target = part_of(path.with_name(plain), name, "playlist").target
        with os_errors(MediaError, "cannot be created", name):
            for part in self._target.parent.glob(f"{glob.escape(self._target.stem)}*.tmp"):
                refuse_link(part)  # FFmpeg would write through it
        super().__init__(name, path.with_name(plain))
        self._rate = Fraction(fps or 25.0).limit_denominator(1001)
        self._threads = threads
        self._goes_on = append and self._target.exists()
        if self._goes_on:
            self._set_aside()
        self._container: Any = None
        self._encoder: FrameEncoder | None = None

    def _start(self, frame: Frame) -> FrameEncoder:
        flags = "temp_file+independent_segments" + ("+delete_segments" if self._keep else "")
        if self._goes_on:
            flags += "+append_list+discont_start"
        options = {
            "hls_time": f"{self._segment_s:g}",
            "hls_list_size": str(self._keep),
            "hls_flags": flags,
            "hls_segment_filename": str(self._target.with_suffix("")).replace("%", "%%") + "%d.ts",
        }
        if self._keep:
            options["hls_delete_threshold"] = "1"
        else:
            options["hls_playlist_type"] = "event"
        target = f"file:{self._target}"
        self._container = av.open(target, "w", format="hls", container_options=options)
        return FrameEncoder(
            self._container, frame, rate=self._rate, name=self.name, notice=self._notice,
            options=_OPTIONS, threads=self._threads,
            gop_s=self._segment_s,
        )  # fmt: skip

    def _set_aside(self) -> None:
        """Rename segments that a killed run did not bring into the playlist."""
        listed = set(self._target.read_text(encoding="utf-8", errors="replace").splitlines())
        numbers = re.compile(re.escape(self._target.stem) + r"(\d+)\.ts(\.tmp)?")
        known = [int(m[1]) for name in listed if (m := numbers.fullmatch(Path(name).name))]
        for path in self._target.parent.iterdir():
            match = numbers.fullmatch(path.name)
            if match is None or (not match[2] and int(match[1]) <= max(known, default=-1)):
                continue
            target = unfinished(path)
            path.rename(target)
            text = f"a run that was cut off left a segment: it is {target.name} now"
            self._notice("output-recovered", "warning", text)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        if self._encoder is None:
            self._encoder = self._start(frame)
        try:
            self._container.mux(self._encoder.encode(frame, meta))
        except (ValueError, RuntimeError, av.error.FFmpegError) as error:
            if isinstance(error, OSError):
                raise
            self._broken = True
            text = f"frame {meta.frame} cannot be written: {reason_of(error)}"
            raise MediaError(text, where=str(self.path)) from error

    def _finish(self) -> None:
        if self._encoder is None or self._container is None:
            self._notice("output-empty", "warning", "no frame came, so no playlist was written")
            return
        try:
            if not self._broken:
                self._container.mux(self._encoder.flush())
        finally:
            self._container.close()
            self._encoder = self._container = None  # the encoder has this sink's notices
