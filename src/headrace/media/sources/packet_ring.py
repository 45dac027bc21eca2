"""`PacketRing`: the last packets of a source as they came, for recordings without encoding."""

from __future__ import annotations

import io
import threading
from collections import deque
from typing import Any

import av

from headrace._core.plain_record import PlainRecord

_MAX_BYTES = 64 << 20
_MAX_S = 600.0


class KeptPacket(PlainRecord, frozen=True):
    """One packet, apart from the container it came from.

    Attributes:
        number: rises by one from packet to packet of a ring.
        time_ns: presentation time in the stream's own time; the decoding time if it has none.
        data: as it came.
        pts, dts, duration: in units of `time_base`.
        is_key: True for a key frame.
    """

    number: int
    time_ns: int
    data: bytes
    pts: int | None
    dts: int | None
    duration: int
    time_base: Any
    is_key: bool

    def copy(self) -> Any:
        """An `av.Packet` of its own: writing one changes it."""
        packet = av.Packet(self.data)
        packet.pts, packet.dts, packet.duration = self.pts, self.dts, self.duration
        packet.time_base, packet.is_keyframe = self.time_base, self.is_key
        return packet


class PacketRing:
    """Holds packets back to the key frame before some seconds ago, within a number of bytes.

    One thread adds, others take. What the limit of bytes drops begins at a key frame again.

    Args:
        before_s: how far back a recording may begin.
        max_bytes: of data that is held.

    Attributes:
        template: a stream of FFmpeg with the parameters of the packets; None before the first.
        codec: of the packets, as FFmpeg calls it.
        offset_ns: what the source adds to a stream's times to get those of its frames.
        connection: rises when the stream began anew: older packets are gone.
        cut: True if the limit dropped packets that were still wanted.
    """

    def __init__(self, before_s: float, max_bytes: int = _MAX_BYTES) -> None:
        self._before_ns = round(min(before_s, _MAX_S) * 1e9)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._items: deque[KeptPacket] = deque()
        self._bytes = self._count = 0
        self._shelf: Any = None
        self.template: Any = None
        self.codec = ""
        self.offset_ns = 0
        self.connection = 0
        self.cut = False

    def begin(self, stream: av.VideoStream) -> None:
        """Forget everything; packets of `stream` follow."""
        # a stream dies with its container: its parameters are kept in one that is never written
        shelf = av.open(io.BytesIO(), "w", format="matroska")
        template = shelf.add_stream_from_template(stream)
        with self._lock:
            self._items.clear()
            self._bytes = 0
            self._shelf, self.template = shelf, template
            self.codec = stream.codec_context.codec.canonical_name
            self.connection += 1

    def add(self, packet: av.Packet[av.VideoStream]) -> None:
        """Take a packet of the present stream."""
        time = packet.pts if packet.pts is not None else packet.dts
        if time is None or not packet.time_base:
            return  # it could not be placed
        base = packet.time_base
        kept = KeptPacket(
            self._count, round(time * base.numerator * 1_000_000_000 / base.denominator),
            bytes(packet), packet.pts, packet.dts, packet.duration or 0, base, packet.is_keyframe,
        )  # fmt: skip
        with self._lock:
            self._count += 1
            self._items.append(kept)
            self._bytes += len(kept.data)
            if self._bytes > self._max_bytes:
                self.cut = True
                self._drop_first()
                while self._items and not (
                    self._items[0].is_key and self._bytes <= self._max_bytes
                ):
                    self._drop_first()

    def trim(self, now_ns: int) -> None:
        """Drop packets that no recording from a frame of time `now_ns` on needs."""
        oldest = now_ns - self.offset_ns - self._before_ns
        with self._lock:
            keys = [i for i, p in enumerate(self._items) if p.is_key and p.time_ns <= oldest]
            for _ in range(keys[-1] if keys else 0):
                self._drop_first()

    def _drop_first(self) -> None:
        self._bytes -= len(self._items.popleft().data)

    def since(self, number: int, until_ns: int) -> list[KeptPacket]:
        """Packets from a number on; the last ones are those of the frame of time `until_ns`."""
        with self._lock:
            items = [p for p in self._items if p.number >= number]
        end = until_ns - self.offset_ns
        last = max((i for i, p in enumerate(items) if p.time_ns <= end), default=-1)
        return items[: last + 1]

    def start_of(self, time_ns: int) -> int | None:
        """Number of the last key frame at or before a frame's time, else of the first one."""
        time_ns -= self.offset_ns
        with self._lock:
            keys = [p for p in self._items if p.is_key]
        earlier = [p.number for p in keys if p.time_ns <= time_ns]
        return earlier[-1] if earlier else keys[0].number if keys else None

    @property
    def size_bytes(self) -> int:
        """Bytes that are held."""
        return self._bytes
