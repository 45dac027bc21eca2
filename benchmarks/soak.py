"""A service for a long time with a fault every few seconds: `python -m benchmarks.soak [MINUTES]`.

`headrace serve` runs the conveyor's detector on two cameras, its parser in a worker process, events
go to a web service. Every `EVERY_S` seconds something fails in turn: the broker answers 503, a
camera hangs up, a camera falls silent, the worker is killed, the disk takes no more, the model is
changed for another. Each has to show in a metric and in the log, and memory has to stay flat. At
the end there is a table of memory, frames and messages by minute.

The exit status is 1 where a fault did not show, or the last third takes more memory than the first.
"""

from __future__ import annotations

import http.server
import io
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av

CONVEYOR = Path(__file__).parents[1] / "examples" / "conveyor"
EVERY_S = 20.0
GROWTH_BYTES = 20 << 20
"""Memory that the last third of the run may take above the first."""


class Camera:
    """Sends a clip again and again at its pace to whoever connects, as MPEG-TS.

    Attributes:
        silent: True while it sends nothing, and keeps the connection.
    """

    def __init__(self, clip: Path) -> None:
        packets = io.BytesIO()
        with av.open(str(clip)) as source, av.open(packets, "w", format="mpegts") as target:
            stream = target.add_stream_from_template(source.streams.video[0])
            for packet in source.demux(source.streams.video[0]):
                if packet.dts is not None:
                    packet.stream = stream
                    target.mux(packet)
            self._seconds = float(source.duration or 0) / 1e6
        self._data = packets.getvalue()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._links: set[socket.socket] = set()
        self.silent = False
        self.url = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            link, _ = self._server.accept()
            self._links.add(link)
            threading.Thread(target=self._send, args=(link,), daemon=True).start()

    def _send(self, link: socket.socket) -> None:
        piece = max(188, int(len(self._data) / self._seconds / 10))
        try:
            while True:
                for at in range(0, len(self._data), piece):
                    while self.silent:
                        time.sleep(0.1)
                    link.sendall(self._data[at : at + piece])
                    time.sleep(0.1)
        except OSError:
            self._links.discard(link)

    def hang_up(self) -> None:
        """Close every connection."""
        for link in list(self._links):
            link.shutdown(socket.SHUT_RDWR)
            link.close()


class Broker(http.server.ThreadingHTTPServer):
    """Takes messages, unless it is away.

    Attributes:
        away: True while it answers 503.
        taken: messages.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.away, self.taken = False, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Taking(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Broker

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.taken += not self.server.away
        self.send_response(503 if self.server.away else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Service:
    """`headrace serve` with two cameras, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        for name in (
            "detector.onnx",
            "labels.txt",
            "conveyor_parser.py",
            "config_infer_primary.txt",
        ):
            shutil.copy(CONVEYOR / name, folder / name)
        shutil.copy(CONVEYOR / "config_infer_primary.txt", folder / "other.txt")
        self.cameras, self.broker = [Camera(CONVEYOR / "conveyor.mp4") for _ in range(2)], Broker()
        self._log, self._port = folder / "log.jsonl", _free_port()
        command = [
            sys.executable,
            "-m",
            "headrace",
            "serve",
            str(folder / "config_infer_primary.txt"),
        ]
        command += ["--guard", "always", "--log-format", "json", "--listen", self.address]
        command += ["-o", str(folder / "out.jsonl")]
        command += ["-o", f"webhook+http://127.0.0.1:{self.broker.server_port}/t?every=frame"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, stderr=log, stdout=log)
        self._until(lambda: "headrace_up" in self.metrics(), 120)
        for camera in self.cameras:
            self.post("/api/sources", {"uri": camera.url})

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._port}"

    def _until(self, done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if done():
                    return
            except OSError:
                pass
            time.sleep(0.5)
        raise SystemExit(f"the service did not come up:\n{self._log.read_text()[-2000:]}")

    def post(self, path: str, body: dict[str, Any]) -> None:
        """Ask for something; errors are raised."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    def metrics(self) -> str:
        """Prometheus' text."""
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def total(self, name: str) -> float:
        """Sum of a metric over its labels; `name` may go on with the first of them."""
        rows = re.findall(rf"^{re.escape(name)}(?:.*}})? (\S+)$", self.metrics(), re.M)
        return sum(map(float, rows))

    def log_lines(self) -> int:
        """Lines of the log."""
        return self._log.read_bytes().count(b"\n")

    def notices_from(self, line: int, codes: set[str]) -> list[str]:
        """Notices of these codes in the log behind so many lines."""
        rows = [json.loads(r) for r in self.log_from(line).splitlines() if r.startswith("{")]
        return [f"{r['code']}: {r['message']}" for r in rows if r.get("code") in codes]

    def log_from(self, line: int) -> str:
        """The log behind so many lines."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[line:])

    def workers(self) -> list[int]:
        """Processes below the service that run the parser."""
        return [p for p in _below(self.process.pid) if b"guard" in _command(p)]

    def memory_bytes(self) -> int:
        """Memory of the service and its processes, shared pages by share."""
        return sum(map(_pss, [self.process.pid, *_below(self.process.pid)]))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _below(pid: int) -> list[int]:
    try:
        rows = Path(f"/proc/{pid}/task").iterdir()
        children = [int(c) for t in rows for c in (t / "children").read_text().split()]
    except OSError:
        return []
    return [*children, *(g for c in children for g in _below(c))]


def _pss(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(re.findall(r"^Pss:\s+(\d+)", text, re.M)[0]) * 1024


def _broker(service: Service) -> None:
    service.broker.away = True
    time.sleep(6)
    service.broker.away = False


def _hang_up(service: Service) -> None:
    service.cameras[0].hang_up()


def _silence(service: Service) -> None:
    service.cameras[1].silent = True
    time.sleep(13)
    service.cameras[1].silent = False


def _worker(service: Service) -> None:
    for pid in service.workers()[-1:]:
        os.kill(pid, signal.SIGKILL)


def _disk(service: Service) -> None:
    before = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    time.sleep(3)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, before)


def _model(service: Service) -> None:
    service.post("/api/models/0", {"config": "other.txt"})


# What fails, the metric that has to rise, and the notices of which the log has to have one.
_LOST = {"connection-away", "connection-lost"}
FAULTS: tuple[tuple[str, Callable[[Service], None], str, set[str]], ...] = (
    ("broker", _broker, "headrace_messages_failures_total", _LOST),
    ("camera hangs up", _hang_up, "headrace_reconnects_total", _LOST),
    ("camera is silent", _silence, "headrace_reconnects_total", _LOST),
    ("worker", _worker, "headrace_worker_deaths_total", {"parser-failed", "worker-died"}),
    (
        "disk", _disk, 'headrace_output_failures_total{output="jsonl',
        {"output-away", "output-lost"},
    ),
    ("model", _model, "headrace_model_updates_total", {"model-updated"}),
)  # fmt: skip


def _minute(number: int, memory: list[tuple[float, int]], faults: int, service: Service) -> str:
    mb = sorted(m / 1e6 for t, m in memory if t >= 60 * number)
    frames = service.total("headrace_frames_total")
    return (
        f"{number + 1:6}  {mb[0]:9.0f}  {statistics.median(mb):7.0f}  {mb[-1]:7.0f}"
        f"  {frames:13.0f}  {service.broker.taken:8}  {faults:6}"
    )


def main(minutes: float = 30.0) -> int:
    """Run for so long; the exit status."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-soak-"))
    service = Service(folder)
    begin, shown, unseen = time.monotonic(), Counter[str](), []
    memory: list[tuple[float, int]] = []
    minutes_passed: list[str] = []
    number = 0
    while (at := time.monotonic() - begin) < minutes * 60:
        name, fail, metric, codes = FAULTS[number % len(FAULTS)]
        number += 1
        lines, before = service.log_lines(), service.total(metric)
        fail(service)
        while time.monotonic() - begin < at + EVERY_S:
            time.sleep(2)
            memory.append((time.monotonic() - begin, service.memory_bytes()))
            if memory[-1][0] >= 60 * (len(minutes_passed) + 1):
                minutes_passed.append(_minute(len(minutes_passed), memory, number, service))
        after, told = service.total(metric), service.notices_from(lines, codes)
        missing = [] if after > before else ["metric"]
        missing += [] if told else ["log"]
        shown[name] += not missing
        if missing:
            unseen.append(
                f"{name} at {at:.0f} s: no {' and '.join(missing)}; log:\n"
                f"{service.log_from(lines)[-600:]}"
            )
        print(f"{at:6.0f} s  {name:18} {'NOT' if missing else ''} shown  "
              f"{memory[-1][1] / 1e6:.0f} MB  {service.total('headrace_frames_total'):.0f} frames  "
              f"{service.broker.taken} messages\n"
              f"          {metric} {before:g} -> {after:g}\n"
              f"          {told[0][:150] if told else 'no notice'}", flush=True)  # fmt: skip
    print("\nminute  memory MB (least, median, most)  frames  messages  faults")
    print("\n".join(minutes_passed), end="\n\n")
    frames = service.total("headrace_frames_total")
    stop = time.monotonic()
    service.process.send_signal(signal.SIGTERM)
    status = service.process.wait(60)
    took = time.monotonic() - stop
    third = minutes * 60 / 3
    first = statistics.median(m for t, m in memory if 30 < t < third)
    last = statistics.median(m for t, m in memory if t > 2 * third)
    print(f"{number} faults, {sum(shown.values())} shown; {frames:.0f} frames, "
          f"{service.broker.taken} messages; memory {first / 1e6:.0f} then {last / 1e6:.0f} MB; "
          f"status {status} {took:.1f} s after SIGTERM")  # fmt: skip
    print("\n".join(unseen))
    shutil.rmtree(folder, ignore_errors=True)
    return int(bool(unseen) or last > first + GROWTH_BYTES)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0))
