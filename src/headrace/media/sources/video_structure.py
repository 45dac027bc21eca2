"""Places where a video can be cut without a seam, found from its packets alone.

A cut is a key frame that nothing reaches across: every packet before it is shown before it, and
every packet behind it is shown later. H.264 and HEVC have to mark it as IDR, too: other images
that containers call key frames may need what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace._core.files import os_reason
from headrace.media.names import sniff
from headrace.media.sources.containers import open_file

# In these codecs a key frame clears all that the decoder remembers, or nothing is remembered.
_SURE = frozenset(("vp8", "vp9", "av1", "mjpeg", "png", "mpeg1video", "mpeg2video", "mpeg4"))
_IDR = {"h264": frozenset((5,)), "hevc": frozenset((19, 20))}
_SLICES = {"h264": range(1, 6), "hevc": range(32)}


@dataclass(frozen=True, slots=True)
class VideoCut:
    """A key frame from which a video can be decoded by itself.

    Attributes:
        frame: its number in the video, from 0.
        pts: of its packet, in units of the stream's time base; no other packet has it.
    """

    frame: int
    pts: int


@dataclass(frozen=True, slots=True)
class VideoSpan:
    """Frames of a video from one cut to the next.

    Attributes:
        start: its first frame.
        end: the first frame behind it; None reaches to the end of the video.
        frames: how many frames it has.
    """

    start: VideoCut
    end: VideoCut | None
    frames: int


@dataclass(frozen=True, slots=True)
class VideoStructure:
    """The packets of a video, seen as a whole.

    Attributes:
        frames: number of its packets of video.
        cuts: in order; the first is the video's first frame. Empty if `doubt` has a reason.
        doubt: why the video is better read whole; empty if nothing speaks against cuts.
    """

    frames: int
    cuts: tuple[VideoCut, ...] = ()
    doubt: str = ""

    def spans(self, least: int, multiple: int = 1) -> list[VideoSpan]:
        """Cut the video into spans.

        Args:
            least: frames that each span has at least, but for the last.
            multiple: of which the numbers of first frames are, so that batches stay the same.

        Returns:
            The spans, in order; a single one if no further cut fits.
        """
        chosen: list[VideoCut] = []
        for cut in self.cuts:
            far = not chosen or cut.frame - chosen[-1].frame >= least
            if far and cut.frame % multiple == 0:
                chosen.append(cut)
        ends = [*chosen[1:], None][: len(chosen)]
        return [
            VideoSpan(cut, end, (self.frames if end is None else end.frame) - cut.frame)
            for cut, end in zip(chosen, ends, strict=True)
        ]


def video_seconds(path: Path) -> float:
    """Length of a video in seconds by its container; 0 if it has none, or is no file."""
    try:
        if not path.is_file():  # opening a pipe would wait for a writer
            return 0.0
        with open_file(path) as container:
            return float(container.duration or 0) / 1e6 if container.streams.video else 0.0
    except (av.error.FFmpegError, OSError, ValueError, MediaError):
        return 0.0


def video_structure(path: Path, name: str) -> VideoStructure:
    """Read every packet of a video's first video stream, and decode none.

    Args:
        path: the video.
        name: for messages.

    Raises:
        MediaError: it is no video that can be opened.
    """
    try:
        container = open_file(path)
    except (av.error.FFmpegError, OSError, ValueError) as error:
        text = f"is not a video that can be read: it is {sniff(path)}"
        raise MediaError(text, where=name) from error
    with container:
        if not container.streams.video:
            raise MediaError("there is no video in it", where=name)
        return _structure(container, container.streams.video[0])


def _structure(container: av.container.InputContainer, stream: av.VideoStream) -> VideoStructure:
    context = stream.codec_context
    codec = "" if context is None else context.codec.canonical_name
    if codec not in _SURE and codec not in _IDR:
        return VideoStructure(0, doubt=f"key frames of {codec or 'this codec'} are not known to be")
    nal_bytes = _nal_bytes(codec, context.extradata or b"")
    pts: list[int] = []
    keys: list[int] = []
    try:
        for packet in container.demux(stream):
            if not packet.size:
                continue
            if packet.pts is None:
                return VideoStructure(len(pts), doubt="its packets have no time stamps")
            if packet.is_corrupt or getattr(packet, "is_discard", False):
                return VideoStructure(
                    len(pts), doubt="some of its packets are damaged or not shown"
                )
            if packet.is_keyframe and _is_entry(codec, packet, nal_bytes):
                keys.append(len(pts))
            pts.append(packet.pts)
    except (av.error.FFmpegError, OSError) as error:
        return VideoStructure(len(pts), doubt=f"it cannot be read to its end: {os_reason(error)}")
    return _with_cuts(np.array(pts, np.int64), keys, stream.frames)


def _with_cuts(pts: npt.NDArray[np.int64], keys: Sequence[int], promised: int) -> VideoStructure:
    count = len(pts)
    if not keys or keys[0] != 0:
        return VideoStructure(count, doubt="it does not begin with a key frame")
    if promised and promised != count:
        return VideoStructure(count, doubt=f"it has {count} of {promised} frames")
    if len(np.unique(pts)) < count:
        return VideoStructure(count, doubt="time stamps repeat")
    latest = np.maximum.accumulate(pts)
    earliest = np.minimum.accumulate(pts[::-1])[::-1]
    cuts = [
        VideoCut(at, int(pts[at]))
        for at in keys
        if (at == 0 or latest[at - 1] < pts[at]) and (at + 1 == count or earliest[at + 1] > pts[at])
    ]
    if not cuts or cuts[0].frame != 0:
        return VideoStructure(count, doubt="its first packet is not the first frame shown")
    return VideoStructure(count, tuple(cuts))


def _nal_bytes(codec: str, extradata: bytes) -> int:
    """Bytes of the length before each unit; 0 where start codes part them (Annex B).

    Source: ISO/IEC 14496-15, 5.3.3.1 (avcC) and 8.3.3.1 (hvcC).
    """
    offset = {"h264": 4, "hevc": 21}.get(codec)
    if offset is None or len(extradata) <= offset or extradata[0] != 1:
        return 0
    return (extradata[offset] & 3) + 1


def _is_entry(codec: str, packet: av.Packet[av.VideoStream], nal_bytes: int) -> bool:
    """Whether a key frame needs nothing before it: True if every slice of it is IDR."""
    if codec not in _IDR:
        return True
    kinds = [
        head & 31 if codec == "h264" else head >> 1 & 63
        for head in _unit_heads(bytes(packet), nal_bytes)
    ]
    slices = [kind for kind in kinds if kind in _SLICES[codec]]
    return bool(slices) and all(kind in _IDR[codec] for kind in slices)


def _unit_heads(data: bytes, nal_bytes: int) -> Iterator[int]:
    """First byte of each unit of a packet."""
    at = 0
    while nal_bytes and at + nal_bytes < len(data):
        size = int.from_bytes(data[at : at + nal_bytes])
        yield data[at + nal_bytes]
        at += nal_bytes + size
    while not nal_bytes:
        at = data.find(b"\0\0\1", at)
        if at < 0 or at + 3 >= len(data):
            return
        yield data[at + 3]
        at += 3
