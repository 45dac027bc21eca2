"""An RTSP server that repeats one H.264 video in real time, to any number of clients.

Over TCP alone (interleaved). Sources: RFC 2326 for RTSP, RFC 3550 for RTP, RFC 6184 for H.264.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import av
from av.bitstream import BitStreamFilterContext

_MOST = 1400  # bytes of a packet's payload
_CLOCK, _FIRST = 90_000, 1_000  # clients take 0 for no time
_SPS, _PPS, _FRAGMENT = 7, 8, 28
_START = b"\0\0\1"


@dataclass(frozen=True, slots=True)
class _Image:
    """An image in the order of decoding; times are from the first one's decoding on.

    With B frames an image is shown in another order than it is decoded in: it is sent when it is
    to be decoded, and its packets say when it is to be shown.
    """

    parts: list[bytes]
    sent_s: Fraction
    shown_s: Fraction


class _Video:
    """The images of a video, and how long it is until it begins again."""

    def __init__(self, path: Path) -> None:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            rate, base = stream.average_rate, stream.time_base
            assert rate is not None
            assert base is not None
            filter = BitStreamFilterContext("h264_mp4toannexb", stream)
            packets = [p for one in container.demux(stream) for p in filter.filter(one) if p.size]
        units = [list(_units(bytes(packet))) for packet in packets]
        known = {unit[0] & 31: unit for image in units for unit in image}
        self.parameters = ",".join(base64.b64encode(known[kind]).decode() for kind in (_SPS, _PPS))
        sent, shown = [_ticks(p.dts) for p in packets], [_ticks(p.pts) for p in packets]
        self.images = [
            _Image(
                [x for u in unit for x in _payloads(u)], (d - sent[0]) * base, (s - sent[0]) * base
            )
            for unit, d, s in zip(units, sent, shown, strict=True)
        ]
        self.length_s = max((max(x) - min(x)) * base for x in (sent, shown)) + 1 / rate


def _ticks(time: int | None) -> int:
    assert time is not None, "the video has no times"
    return time


def _units(data: bytes) -> Iterator[bytes]:
    """The NAL units between start codes."""
    for part in data.split(_START)[1:]:
        yield part.rstrip(b"\0")


def _payloads(unit: bytes) -> Iterator[bytes]:
    if len(unit) <= _MOST:
        yield unit
        return
    head, rest = unit[0], unit[1:]
    for at in range(0, len(rest), _MOST):
        first, last = at == 0, at + _MOST >= len(rest)
        flags = first << 7 | last << 6 | (head & 31)
        yield bytes([head & 0x60 | _FRAGMENT, flags]) + rest[at : at + _MOST]


async def _serve(video: _Video, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one client until it leaves."""
    playing = None
    try:
        while request := await _request(reader):
            method, address, sequence = request
            lines = [f"CSeq: {sequence}", "Session: 1;timeout=3600"]
            body = ""
            if method == "OPTIONS":
                lines.append("Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER")
            elif method == "DESCRIBE":
                body = (
                    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=video\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
                    "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:video\r\n"
                    f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={video.parameters}\r\n"
                )
                lines += [f"Content-Base: {address}/", "Content-Type: application/sdp"]
            elif method == "SETUP":
                lines.append("Transport: RTP/AVP/TCP;unicast;interleaved=0-1")
            lines.append(f"Content-Length: {len(body)}")
            writer.write(("RTSP/1.0 200 OK\r\n" + "\r\n".join(lines) + "\r\n\r\n" + body).encode())
            if method == "PLAY" and playing is None:
                playing = asyncio.create_task(_play(video, writer))
            if method == "TEARDOWN":
                return
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        if playing is not None:
            playing.cancel()
        writer.close()


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, str] | None:
    """Method, address and number of the next request; packets of RTCP between them are skipped."""
    while True:
        first = await reader.read(1)
        if first == b"$":
            _, size = await reader.readexactly(1), await reader.readexactly(2)
            await reader.readexactly(int.from_bytes(size, "big"))
            continue
        if not first:
            return None
        text = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        method, address, _ = text.split(" ", 2)
        fields = dict(line.split(": ", 1) for line in text.split("\r\n")[1:] if ": " in line)
        return method, address, {k.lower(): v for k, v in fields.items()}["cseq"]


async def _play(video: _Video, writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    start, sequence = loop.time(), 0
    with contextlib.suppress(OSError):
        for turn, image in ((turn, one) for turn in count() for one in video.images):
            begin_s = turn * video.length_s
            await asyncio.sleep(start + float(begin_s + image.sent_s) - loop.time())
            stamp = _FIRST + round((begin_s + image.shown_s) * _CLOCK) & 0xFFFFFFFF
            for place, part in enumerate(image.parts):
                last = place == len(image.parts) - 1
                header = b"\x80" + bytes([last << 7 | 96]) + sequence.to_bytes(2, "big")
                packet = header + stamp.to_bytes(4, "big") + bytes(4) + part
                writer.write(b"$\0" + len(packet).to_bytes(2, "big") + packet)
                sequence = sequence + 1 & 0xFFFF
            await writer.drain()


def _run(path: Path, talk: Any) -> None:
    async def main() -> None:
        video = _Video(path)
        server = await asyncio.start_server(
            lambda reader, writer: _serve(video, reader, writer), "127.0.0.1", 0
        )
        talk.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def shown(path: Path) -> Iterator[str]:
    """Show a video in a process of its own; yields its address."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_run, args=(path, theirs), daemon=True)
    process.start()
    try:
        yield f"rtsp://127.0.0.1:{mine.recv()}/video"
    finally:
        process.kill()
        process.join()
