"""Encoded video as packets of RTP: RFC 3550, of H.264 by RFC 6184, of H.265 by RFC 7798."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterator

CLOCK = 90_000
"""Ticks a second of the times in packets."""
TYPE = 96
_MOST_BYTES = 1400  # of a packet's payload: it fits into one frame of Ethernet
_FIRST = 1_000  # players take a time of 0 for no time
_MARKS = re.compile(rb"\x00\x00\x01")  # between the units of a stream, Annex B
_H264_HEADERS, _H265_HEADERS = {7: "sps", 8: "pps"}, {32: "vps", 33: "sps", 34: "pps"}
_H264_FRAGMENT, _H265_FRAGMENT = 28, 49


class Packets:
    """Cuts the images of one stream into packets, and keeps its parameter sets.

    Args:
        codec: `h264` or `h265`.

    Attributes:
        headers: the latest parameter sets by name: `sps` and `pps`, `vps` of H.265 too.
    """

    def __init__(self, codec: str) -> None:
        self.codec = codec
        self.headers: dict[str, bytes] = {}
        self._sequence = secrets.randbits(15)
        self._sender = secrets.token_bytes(4)

    def of_image(self, data: bytes, ticks: int) -> list[bytes]:
        """Cut one image.

        Args:
            data: its units with start codes between them, as encoders write them.
            ticks: when it is shown, in ticks of `CLOCK`.
        """
        units = [unit for part in _MARKS.split(data) if (unit := part.rstrip(b"\0"))]
        for unit in units:
            if name := self._names.get(self._type(unit)):
                self.headers[name] = unit
        payloads = [part for unit in units for part in self._payloads(unit)]
        stamp = (_FIRST + ticks & 0xFFFFFFFF).to_bytes(4, "big") + self._sender
        packets = []
        for index, payload in enumerate(payloads):
            last = index == len(payloads) - 1
            begin = bytes((0x80, last << 7 | TYPE)) + self._sequence.to_bytes(2, "big")
            packets.append(begin + stamp + payload)
            self._sequence = self._sequence + 1 & 0xFFFF
        return packets

    def description(self) -> str:
        """The lines of SDP about the stream."""
        sets = {name: base64.b64encode(unit).decode() for name, unit in self.headers.items()}
        if self.codec == "h264":
            name = "H264"
            sprop = f"sprop-parameter-sets={sets['sps']},{sets['pps']}"
            values = (
                f"packetization-mode=1;profile-level-id={self.headers['sps'][1:4].hex()};{sprop}"
            )
        else:
            name, values = "H265", ";".join(f"sprop-{name}={sets[name]}" for name in sorted(sets))
        lines = f"m=video 0 RTP/AVP {TYPE}", f"a=rtpmap:{TYPE} {name}/{CLOCK}"
        return "\r\n".join((*lines, f"a=fmtp:{TYPE} {values}"))

    @property
    def described(self) -> bool:
        """Whether all parameter sets came."""
        return set(self.headers) >= set(self._names.values())

    @property
    def _names(self) -> dict[int, str]:
        return _H264_HEADERS if self.codec == "h264" else _H265_HEADERS

    def _type(self, unit: bytes) -> int:
        return unit[0] & 31 if self.codec == "h264" else unit[0] >> 1 & 63

    def _payloads(self, unit: bytes) -> Iterator[bytes]:
        """The unit whole, or in fragments."""
        if len(unit) <= _MOST_BYTES:
            yield unit
            return
        if self.codec == "h264":
            head, rest = bytes((unit[0] & 0x60 | _H264_FRAGMENT,)), unit[1:]
        else:
            head, rest = bytes((unit[0] & 0x81 | _H265_FRAGMENT << 1, unit[1])), unit[2:]
        for at in range(0, len(rest), _MOST_BYTES):
            first, last = at == 0, at + _MOST_BYTES >= len(rest)
            flags = first << 7 | last << 6 | self._type(unit)
            yield head + bytes((flags,)) + rest[at : at + _MOST_BYTES]
