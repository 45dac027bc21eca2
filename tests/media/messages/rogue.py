"""Servers that behave badly, one protocol and one way each."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAYS = ("silent", "drip", "endless", "junk", "nested", "closed")
# How an answer begins that says it is long; what comes in one piece, again and again; and what is
# nested as deep as the protocol's text of 64 kB allows.
_CHUNK = b"10000\r\n" + bytes(0x10000) + b"\r\n"
_ANSWERS = {
    "webhook+http": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", _CHUNK,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
    ),
    "redis": (b"$100000\r\n", b"$100000000000\r\n", bytes(65536), b"*1\r\n" * 200_000),
    "mqtt": (
        b"\x20\xff\xff\xff\x7f", b"\x30\xff\xff\xff\x7f", bytes(65536), b"\x20\x02\0\0" * 5000,
    ),
    "amqp": (
        b"\x01\0\0\0\x10\0\0", b"\x01\0\0\xff\xff\xff\xff", bytes(65536),
        b"\x01\0\0\0\0\0\0\xce" * 8000,
    ),
    "kafka": (b"\0\0\xff\0\0\0", b"\x7f\xff\xff\xff", bytes(65536), b"\0\0\0\x04\0\0\0\x01" * 5000),
}  # fmt: skip


@contextmanager
def rogue(scheme: str, way: str) -> Iterator[int]:
    """Listen; yields the port."""
    over = threading.Event()

    def answer(link: socket.socket) -> None:
        long, endless, more, nested = _ANSWERS[scheme]
        with link, contextlib.suppress(OSError):
            if way == "silent":
                over.wait()
            link.recv(65536)
            if way == "drip":
                link.sendall(long)
                while not over.wait(0.05):
                    link.sendall(b"a")
            elif way == "endless":
                link.sendall(endless)
                while not over.is_set():
                    link.sendall(more)
            elif way != "closed":
                link.sendall(random.Random(1).randbytes(4000) if way == "junk" else nested)
                over.wait()
            else:
                link.sendall(long[:3])

    def accept() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                link, _ = listener.accept()
                threading.Thread(target=answer, args=(link,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()
