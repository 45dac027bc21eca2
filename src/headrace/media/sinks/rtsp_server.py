"""An RTSP server for players: streams at paths behind one address, over TCP (RFC 2326).

Players that ask for UDP are refused with 461, and ask for TCP then. A player begins with the next
key frame; one that is too slow misses images until another one. All streams of an address share one
server and its thread.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from headrace._core.text import error_text
from headrace._core.threads import start_thread
from headrace.media.sinks.rtp import CLOCK, Packets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import av

_MOST_PLAYERS = 64
_REQUEST_BYTES = 16 << 10
_BEHIND_BYTES = 2 << 20  # that wait for a player
_IDLE_S = 60.0  # until the next request of a player that does not play
_STREAM_S = 10.0  # until the first image, for who asks before it
_LINGER_S = 0.2  # for the last images
_END_S = 2.0
_METHODS = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER, SET_PARAMETER"
_REASONS = {
    200: "OK", 404: "Not Found", 454: "Session Not Found", 461: "Unsupported Transport",
    501: "Not Implemented", 503: "Service Unavailable",
}  # fmt: skip
_servers: dict[tuple[str, int], _Server] = {}
_lock = threading.Lock()


class Mount:
    """One stream of a server.

    Args:
        host, port: of the server; `0.0.0.0` serves other machines, too.
        path: of the stream, as `/ds-test`.
        codec: `h264` or `h265`.

    Raises:
        OSError: nothing can listen there, or another stream has the path.
    """

    def __init__(self, host: str, port: int, path: str, codec: str) -> None:
        self.path = path.strip("/")
        self.packets = Packets(codec)
        self.players: set[_Player] = set()
        with _lock:
            server = _servers.get((host, port))
            if server is not None and self.path in server.mounts:
                raise OSError(errno.EADDRINUSE, f"another output streams to {path} there")
            if server is None:
                server = _servers[host, port] = _Server(host, port)
            server.mounts[self.path] = self
            server.start()
        self._server, self._address = server, (host, port)

    def mux(self, packets: Sequence[av.Packet[av.VideoStream]]) -> None:
        """Send encoded images to all players; without one they go nowhere.

        Raises:
            OSError: the server has ended.
        """
        for packet in packets:
            ticks = round((packet.pts or 0) * packet.time_base * CLOCK)
            self.send(bytes(packet), ticks, key=packet.is_keyframe)

    def send(self, data: bytes, ticks: int, *, key: bool) -> None:
        """Send one encoded image to all players.

        Args:
            data: as `Packets.of_image` takes it.
            ticks: when it is shown, in ticks of `CLOCK`.
            key: True where a player can begin with it.

        Raises:
            OSError: the server has ended.
        """
        if (failure := self._server.failure) is not None:
            raise OSError(errno.ECONNABORTED, f"the server has ended: {error_text(failure)}")
        self._server.post(self._deliver, self.packets.of_image(data, ticks), key)

    def _deliver(self, image: list[bytes], key: bool) -> None:
        for player in list(self.players):
            player.send(image, key=key)

    def close(self) -> None:
        """End the stream: its players are closed, and with the last stream the server."""
        with _lock:
            if self._server.mounts.pop(self.path, None) is None:
                return
            last = not self._server.mounts
            if last:
                del _servers[self._address]
        self._server.post(self._leave)
        if last:
            self._server.close()

    def _leave(self) -> None:
        for player in list(self.players):
            player.writer.close()


class _Player:
    """A connection, and the stream that it plays."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.session = secrets.token_hex(8)
        self.mount: Mount | None = None
        self._channel = 0
        self._waits = True  # for a key frame

    def setup(self, mount: Mount, transport: str) -> str | None:
        """Take the stream over this connection; the transport, None where it is not TCP."""
        for one in transport.split(","):
            fields = one.strip().split(";")
            if fields[0].upper() != "RTP/AVP/TCP":
                continue
            own = next((f.partition("=")[2] for f in fields if f.startswith("interleaved=")), "0-1")
            first = own.partition("-")[0]
            self._channel = int(first) % 255 if first.isdecimal() and len(first) < 4 else 0
            self.mount = mount
            return f"RTP/AVP/TCP;unicast;interleaved={self._channel}-{self._channel + 1}"
        return None

    def send(self, image: list[bytes], *, key: bool) -> None:
        """Send an image, unless it cannot be decoded without those that were left out."""
        if self._waits and not key:
            return
        self._waits = self.writer.transport.get_write_buffer_size() > _BEHIND_BYTES
        if not self._waits:
            begin = b"$" + bytes((self._channel,))
            self.writer.write(b"".join(begin + len(p).to_bytes(2, "big") + p for p in image))


class _Server:
    """Listens at one address, in a thread of its own."""

    def __init__(self, host: str, port: int) -> None:
        self.mounts: dict[str, Mount] = {}
        self.failure: Exception | None = None
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._broken)
        self._players = 0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Answer players from now on."""
        if self._thread is None:
            name = "headrace-rtsp-server"
            self._thread = start_thread(self._run, name=name, failed=self._failed)

    def post(self, work: Callable[..., object], *arguments: object) -> None:
        """Do something in the server's thread; nothing once it has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *arguments)

    def close(self) -> None:
        """End the thread."""
        self.post(self._loop.call_later, _LINGER_S, self._loop.stop)
        if self._thread is not None:
            self._thread.join(_END_S)

    def _failed(self, error: Exception) -> None:
        self.failure = error

    def _broken(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failed(context.get("exception") or RuntimeError(context["message"]))

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(
                asyncio.start_server(self._serve, sock=self._socket, limit=_REQUEST_BYTES)
            )
            self._loop.run_forever()
        finally:
            self._socket.close()
            self._loop.run_until_complete(_ended())
            self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one player until it leaves."""
        player = _Player(writer)
        self._players += 1
        try:
            while self._players <= _MOST_PLAYERS:
                plays = player.mount is not None and player in player.mount.players
                request = await asyncio.wait_for(_request(reader), None if plays else _IDLE_S)
                if request is None or not await self._answer(player, *request):
                    return
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
            pass  # it left, or speaks something else
        finally:
            self._players -= 1
            if player.mount is not None:
                player.mount.players.discard(player)
            writer.close()

    async def _answer(
        self, player: _Player, method: str, address: str, fields: dict[str, str]
    ) -> bool:
        """Answer one request; False after the last."""
        status, lines, body = 200, [f"CSeq: {int(fields.get('cseq', '0'))}"], ""
        path = urlsplit(address).path.strip("/").removesuffix("/stream=0")
        mount = self.mounts.get(path)
        if method == "OPTIONS":
            lines.append(f"Public: {_METHODS}")
        elif method in ("DESCRIBE", "SETUP") and mount is None:
            status = 404
        elif method == "DESCRIBE" and mount is not None:
            if await _begun(mount):
                body = _sdp(mount)
                lines += [f"Content-Base: {address.rstrip('/')}/", "Content-Type: application/sdp"]
            else:
                status = 503
        elif method == "SETUP" and mount is not None:
            transport = player.setup(mount, fields.get("transport", ""))
            status = 461 if transport is None else 200
            lines += [f"Transport: {transport}", f"Session: {player.session}"] if transport else []
        elif method == "PLAY":
            status = 454 if player.mount is None else 200
            lines += [f"Session: {player.session}", "Range: npt=now-"] if status == 200 else []
        elif method not in ("TEARDOWN", "GET_PARAMETER", "SET_PARAMETER"):
            status = 501
        lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join((f"RTSP/1.0 {status} {_REASONS[status]}", *lines))
        player.writer.write(f"{head}\r\n\r\n{body}".encode())
        await player.writer.drain()
        if method == "PLAY" and player.mount is not None:
            player.mount.players.add(player)
        return method != "TEARDOWN"


async def _ended() -> None:
    """End all that is at work for players."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _begun(mount: Mount) -> bool:
    """Wait for the first image; False where none comes in time."""
    for _ in range(round(_STREAM_S / 0.05)):
        if mount.packets.described:
            return True
        await asyncio.sleep(0.05)
    return False


def _sdp(mount: Mount) -> str:
    """Describe a stream to a player (RFC 4566)."""
    begin = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=headrace\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
    return f"{begin}{mount.packets.description()}\r\na=control:stream=0\r\n"


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]] | None:
    """Method, address and fields of the next request; reports of RTCP between them are skipped.

    Returns:
        None at the end.

    Raises:
        ValueError: it is none.
    """
    while (first := await reader.read(1)) == b"$":
        await reader.readexactly(1)
        await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    if not first:
        return None
    text = (first + await reader.readuntil(b"\r\n\r\n")).decode("utf-8", "strict")
    start, *rest = text.split("\r\n")
    method, address, _ = start.split(" ")
    if not address.isprintable():
        raise ValueError("an address with control characters")
    pairs = (line.partition(":") for line in rest if ":" in line)
    fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
    await reader.readexactly(min(int(fields.get("content-length", "0")), _REQUEST_BYTES))
    return method, address, fields
