"""Every kind of output on every road to a run, each with a real receiver on loopback.

A road is a way to name an output: the command line, a pipeline file in two forms, an application
config with the command line's outputs, and Python with texts, a `SinkSpec`, or an opened sink.
GStreamer's elements have outputs of their own: tests/gstreamer.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import av
import pytest
from click.testing import CliRunner

import headrace
from headrace.cli import main
from headrace.config.pipeline_keys import SINK_KINDS
from headrace.media.sinks.opening import split_spec, url_of
from tests.media.conftest import write_clip
from tests.media.sources.test_stream_rtsp import Server, available

FRAMES = 60
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"  # mosquitto's
Config = Callable[..., Path]
Received = Callable[[], None]


@contextmanager
def over_udp(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        listener.bind(("127.0.0.1", 0))

        def received() -> None:
            listener.setblocking(False)
            data = b""
            try:
                while True:
                    data += listener.recv(65536)
            except BlockingIOError:
                pass
            (folder / "got.ts").write_bytes(data)
            assert images(folder / "got.ts") >= FRAMES - 1

        yield f"{prefix}udp://127.0.0.1:{listener.getsockname()[1]}", received


@contextmanager
def to_server(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    if not available():
        pytest.skip("needs python3-gi, gir1.2-gst-rtsp-server-1.0 and GStreamer's good plugins")
    server = Server()
    server.start("--record", str(folder / "got.ts"))

    def received() -> None:
        server.kill()
        assert images(folder / "got.ts") >= 10  # what the server had not written is lost

    try:
        yield prefix + server.url(path="in"), received
    finally:
        server.kill()


@contextmanager
def to_service(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    events: list[Any] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()

        def received() -> None:
            assert events

        yield f"{prefix}webhook+http://127.0.0.1:{server.server_port}/events", received
        server.shutdown()
        thread.join()


@contextmanager
def served(*words: str) -> Iterator[int]:
    """The port of a broker's server; PORT in its words becomes that."""
    if not shutil.which(words[0], path=_PATH):
        pytest.skip(f"needs the server {words[0]}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    program = str(shutil.which(words[0], path=_PATH))
    process = subprocess.Popen(
        [program, *(word.replace("PORT", str(port)) for word in words[1:])],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while True:
            assert process.poll() is None, f"{words[0]} does not start"
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def to_redis(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    redis = pytest.importorskip("redis")
    with served("redis-server", "--port", "PORT", "--dir", str(folder), "--save", "") as port:

        def received() -> None:
            with redis.Redis("127.0.0.1", port) as reader:
                assert reader.xlen("cars")

        yield f"{prefix}redis://127.0.0.1:{port}/cars", received


@contextmanager
def to_mqtt(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    mqtt = pytest.importorskip("paho.mqtt.client")
    with served("mosquitto", "-p", "PORT") as port:
        ready, came = threading.Event(), threading.Event()
        reader = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        reader.on_connect = lambda client, *_: client.subscribe("cars", 1)
        reader.on_subscribe = lambda *_: ready.set()
        reader.on_message = lambda *_: came.set()
        reader.connect("127.0.0.1", port)
        reader.loop_start()
        assert ready.wait(10.0)

        def received() -> None:
            assert came.wait(10.0)

        try:
            yield f"{prefix}mqtt://127.0.0.1:{port}/cars", received
        finally:
            reader.disconnect()
            reader.loop_stop()


@contextmanager
def to_file(folder: Path, name: str, check: Callable[[Path], None]) -> Iterator[Any]:
    path = folder / "out" / name.rpartition(":")[2]
    kind = name.rpartition(":")[0]
    yield f"{kind}:{path}" if kind else str(path), lambda: check(path)


def images(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def is_video(path: Path) -> None:
    assert images(path) == FRAMES


def has_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) == FRAMES


def has_frames(path: Path) -> None:
    assert len(json.loads(path.read_text())["images"]) == FRAMES


def has_files(path: Path) -> None:
    assert len(list(path.iterdir())) == FRAMES


def has_clips(path: Path) -> None:
    assert sum(map(images, path.iterdir())) == FRAMES


def is_playlist(path: Path) -> None:
    assert "#EXT-X-ENDLIST" in path.read_text()
    assert sum(map(images, path.parent.glob("*.ts"))) == FRAMES


def is_table(path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(path).num_rows > FRAMES / 2


OUTPUTS: dict[str, Any] = {
    "udp://": over_udp,
    "publish:udp://": lambda folder: over_udp(folder, "publish:"),
    "rtsp://": to_server,
    "publish:rtsp://": lambda folder: to_server(folder, "publish:"),
    "webhook+http://": to_service,
    "messages:webhook+http://": lambda folder: to_service(folder, "messages:"),
    "redis://": to_redis,
    "messages:redis://": lambda folder: to_redis(folder, "messages:"),
    "mqtt://": to_mqtt,
    "messages:mqtt://": lambda folder: to_mqtt(folder, "messages:"),
    "out.mp4": lambda folder: to_file(folder, "o.mp4", is_video),
    "out.m3u8": lambda folder: to_file(folder, "o.m3u8", is_playlist),
    "out.jsonl": lambda folder: to_file(folder, "o.jsonl", has_lines),
    "out.json": lambda folder: to_file(folder, "o.json", has_frames),
    "out.parquet": lambda folder: to_file(folder, "o.parquet", is_table),
    "images:out": lambda folder: to_file(folder, "images:o", has_files),
    "kitti:out": lambda folder: to_file(folder, "kitti:o", has_files),
    "clip:out": lambda folder: to_file(folder, "clip:o", has_clips),
}


def command_line(config: Path, clip: Path, output: str) -> None:
    done = CliRunner().invoke(main, ["run", str(config), str(clip), "-o", output])
    assert done.exit_code == 0, done.output


def _pipeline_file(config: Path, clip: Path, sink: object) -> None:
    path = config.with_name("pipeline.yml")
    path.write_text(json.dumps({"sources": [str(clip)], "models": [str(config)], "sinks": [sink]}))
    done = CliRunner().invoke(main, ["run", str(path)])
    assert done.exit_code == 0, done.output


def pipeline_file(config: Path, clip: Path, output: str) -> None:
    _pipeline_file(config, clip, output)


def pipeline_file_keys(config: Path, clip: Path, output: str) -> None:
    kind, path = split_spec(output)
    url = url_of(output)
    _pipeline_file(config, clip, {"kind": kind} | ({"uri": url} if url else {"path": str(path)}))


def application_config(config: Path, clip: Path, output: str) -> None:
    path = config.with_name("app.txt")
    path.write_text(
        f"[source0]\nenable=1\ntype=2\nuri=file://{clip}\n"
        f"[primary-gie]\nenable=1\nconfig-file={config}\n[sink0]\nenable=1\ntype=4\ncodec=1\n"
    )
    done = CliRunner().invoke(main, ["run", str(path), "-o", output])
    assert done.exit_code == 0, done.output


def python_texts(config: Path, clip: Path, output: str) -> None:
    headrace.open_pipeline(config, sources=clip, outputs=[output]).run()


def python_spec(config: Path, clip: Path, output: str) -> None:
    kind, path = split_spec(output)
    url = url_of(output)
    sink = headrace.SinkSpec(kind=kind, uri=url) if url else headrace.SinkSpec(kind=kind, path=path)
    spec = headrace.PipelineSpec(
        sources=(headrace.SourceSpec(uri=str(clip)),),
        models=(headrace.ModelSpec(config=config),),
        sinks=(sink,),
    )
    headrace.open_pipeline(spec).run()


def python_sink(config: Path, clip: Path, output: str) -> None:
    with headrace.Inferencer.from_config(config) as model, headrace.open_sink(output) as sink:
        headrace.Pipeline(headrace.open_source(clip), model, [sink]).run()


ROADS = (command_line, pipeline_file, pipeline_file_keys, application_config, python_texts,
         python_spec, python_sink)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__)
@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_reaches_its_receiver_on_every_road(
    output: str, road: Callable[..., None], mean_config: Config, tmp_path: Path
) -> None:
    clip = write_clip(tmp_path / "clip.mp4", FRAMES, codec="libx264")
    with OUTPUTS[output](tmp_path) as (spec, received):
        road(mean_config(), clip, spec)
        received()


def test_the_table_names_kinds_of_outputs() -> None:
    kinds = {split_spec(output + "host" * ("//" in output))[0] for output in OUTPUTS}
    of_files = {"dota", "kitti-track", "masks", "arrow", "fake"}  # as their neighbours
    of_files |= {"kitti-primary", "kitti-objects", "smart-record", "object-images"}
    assert set(SINK_KINDS) - kinds <= of_files
