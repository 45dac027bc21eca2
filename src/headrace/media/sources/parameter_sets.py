"""Headers of H.264 and HEVC videos, read before an image is decoded.

Source: ITU-T H.264, 7.3.2; ITU-T H.265, 7.3.2.1 and 7.3.3; ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1.
"""

from __future__ import annotations

_HIGH = frozenset({44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244})
"""Profiles of H.264 that write chroma format, bit depths and scaling matrices into their header."""
_KINDS = {"h264": (7, 0, 31, 8), "hevc": (32, 1, 63, 28)}
"""Codec -> the kind of the first parameter set, how it stands in a unit's first byte (shift, mask),
and where that unit starts in what MP4 keeps."""
_MOST = 32  # bits of a number before it is damage
_PLANES_APART = 3  # chroma_format_idc of 4:4:4, which may code each plane alone


def reference_images(codec: str, extradata: bytes) -> int | None:
    """Return how many images a decoder keeps for others; None where no header has the number.

    Args:
        codec: FFmpeg's name.
        extradata: of the video's stream, as MP4 (`avcC`, `hvcC`) or with start codes.
    """
    if codec not in _KINDS:
        return None
    kind, shift, mask, start = _KINDS[codec]
    as_mp4 = extradata[:1] == b"\1"
    units = [extradata[start:]] if as_mp4 else extradata.split(b"\0\0\1")[1:]
    header = next((unit for unit in units if unit and unit[0] >> shift & mask == kind), b"")
    bits = _Bits(header.replace(b"\0\0\3", b"\0\0"))
    try:
        return _of_h264(bits) if codec == "h264" else _of_hevc(bits)
    except ValueError:
        return None


def _of_h264(bits: _Bits) -> int:
    bits.take(8)  # the unit's kind
    profile = bits.take(8)
    bits.take(16)  # constraints and level
    bits.number()
    if profile in _HIGH:
        chroma = bits.number()
        if chroma == _PLANES_APART:
            bits.take(1)
        bits.number(), bits.number(), bits.take(1)
        if bits.take(1):
            for index in range(12 if chroma == _PLANES_APART else 8):
                if bits.take(1):
                    _skip_scaling(bits, 16 if index < 6 else 64)
    bits.number()  # of bits of a frame's number
    order = bits.number()
    if order == 0:
        bits.number()
    elif order == 1:
        bits.take(1), bits.number(), bits.number()
        for _ in range(bits.number()):
            bits.number()
    return bits.number()


def _of_hevc(bits: _Bits) -> int:
    bits.take(28)  # the unit's kind; the set's number and layers
    layers = bits.take(3)
    bits.take(17 + 96)  # profile and level
    parts = [88 * bits.take(1) + 8 * bits.take(1) for _ in range(8 if layers else 0)]
    for size in filter(None, parts[:layers]):
        bits.take(size)
    for _ in range(layers if bits.take(1) else 0):
        bits.number(), bits.number(), bits.number()
    return bits.number()


def _skip_scaling(bits: _Bits, size: int) -> None:
    last = following = 8
    for _ in range(size):
        if following:
            code = bits.number()
            step = (code + 1) // 2 if code % 2 else -(code // 2)
            following = (last + step) % 256
        last = following or last


class _Bits:
    """Bits from the highest of the first byte on."""

    def __init__(self, data: bytes) -> None:
        self._text = "".join(f"{byte:08b}" for byte in data)
        self._at = 0

    def take(self, count: int) -> int:
        """Return the next bits; ValueError at the end."""
        self._at += count
        return int(self._text[self._at - count : self._at] or "x", 2)

    def number(self) -> int:
        """Return the next number of an Exp-Golomb code."""
        zeros = self._text.find("1", self._at) - self._at
        if not 0 <= zeros <= _MOST:
            raise ValueError
        self._at += zeros
        return self.take(zeros + 1) - 1
