"""A playlist opens nothing but what it may: no inner address, no file of elsewhere, without end."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest

from headrace.errors import MediaError
from headrace.media import open_source
from headrace.media.sources import playlist_http
from headrace.media.sources.containers import closed_options
from headrace.media.sources.playlists import (
    MAX_PLAYLIST_BYTES,
    FilesBeside,
    checked_playlist,
    moved_playlist,
)
from headrace.media.sources.reach import is_public
from headrace.media.sources.video_structure import video_seconds

FRAMES = 30
HEAD = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n"


def playlist(*segments: str) -> bytes:
    lines = "".join(f"#EXTINF:1,\n{segment}\n" for segment in segments)
    return f"{HEAD}{lines}#EXT-X-ENDLIST\n".encode()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `out.m3u8` and its segments."""
    folder = tmp_path_factory.mktemp("hls")
    options = {"hls_time": "0.5", "hls_list_size": "0"}
    with av.open(str(folder / "out.m3u8"), "w", format="hls", options=options) as container:
        stream = container.add_stream("mpeg2video", rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 64, 48, "yuv420p", 5
        for index in range(FRAMES):
            image = av.VideoFrame.from_ndarray(np.full((48, 64, 3), index * 8, np.uint8), "rgb24")
            container.mux(stream.encode(image.reformat(format="yuv420p")))
        container.mux(stream.encode(None))
    return folder


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder, and answers of a test; notes what it is asked for."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answers: dict[str, bytes | str | Callable[[Any], None]] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.SimpleHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.directory = str(self.server.folder)
            super().do_GET()
        elif callable(answer):
            answer(self)
        elif isinstance(answer, str):
            self.send_response(302)
            self.send_header("Location", answer)
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers(recording: Path) -> Iterator[tuple[Server, Server]]:
    """A server that the user names, and an inner one that no one names."""
    pair = Server(recording), Server(recording)
    for server in pair:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield pair
    for server in pair:
        server.shutdown()
        server.server_close()


def frames(url: str, **options: Any) -> int:
    with open_source(url, timeout_s=5, **options) as source:
        return sum(1 for _ in source)


def test_a_playlist_of_the_host_that_was_named_is_read(servers: tuple[Server, Server]) -> None:
    named, _ = servers
    for reach in ("same", "public", "any"):
        assert frames(f"{named.url}/out.m3u8", playlist_reach=reach) == FRAMES
    named.answers["/moved"] = "/deep/list.m3u8"
    named.answers["/deep/list.m3u8"] = playlist("../out0.ts")
    assert 0 < frames(f"{named.url}/moved") < FRAMES  # addresses are those of where it lies
    named.answers["/many.m3u8"] = b'#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS="x"\nout.m3u8\n'
    assert frames(f"{named.url}/many.m3u8") == FRAMES
    named.answers["/gone.m3u8"] = playlist("none.ts", "out0.ts")
    assert 0 < frames(f"{named.url}/gone.m3u8") < FRAMES


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "#EXTINF:1,\n{inner}/out0.ts\n#EXT-X-ENDLIST\n",
        HEAD + '#EXT-X-MAP:URI="{inner}/out0.ts"\n#EXTINF:1,\nout0.ts\n#EXT-X-ENDLIST\n',
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\n{inner}/out.m3u8\n",
        '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="{inner}/out.m3u8"\n'
        '#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO="a"\nout.m3u8\n',
        HEAD + "#EXTINF:1,\nredirect.ts\n#EXT-X-ENDLIST\n",
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nredirect.m3u8\n",
        HEAD + '#EXT-X-KEY:METHOD=AES-128,URI="{inner}/key"\n#EXTINF:1,\nout0.ts\n',
        HEAD + "#EXTINF:1,\nhttp://[::ffff:127.0.0.1]:{port}/out0.ts\n#EXT-X-ENDLIST\n",
        HEAD + "#EXTINF:1,\nhttp://2130706433:{port}/out0.ts\n#EXT-X-ENDLIST\n",
        HEAD + "#EXTINF:1,\nhttp://localhost:{port}/out0.ts\n#EXT-X-ENDLIST\n",
    ],
)
@pytest.mark.parametrize("name", ["/list.m3u8", "/video.mp4"])
def test_an_inner_address_in_a_playlist_is_not_asked(
    servers: tuple[Server, Server], text: str, name: str
) -> None:
    named, inner = servers
    named.answers[name] = text.format(inner=inner.url, port=inner.server_port).encode()
    named.answers["/redirect.ts"] = f"{inner.url}/out0.ts"
    named.answers["/redirect.m3u8"] = f"{inner.url}/out.m3u8"
    with pytest.raises(MediaError) as caught:
        frames(named.url + name)
    assert not inner.asked
    if name.endswith("m3u8"):
        assert caught.value.code == "playlist-refused"
        assert "playlist_reach" in str(caught.value)


@pytest.mark.parametrize("path", ["/out.m3u8", "/out0.ts"])
def test_a_redirect_to_an_inner_address_is_not_followed(
    servers: tuple[Server, Server], path: str
) -> None:
    named, inner = servers
    named.answers["/a.ts"] = inner.url + path
    with pytest.raises(MediaError, match="is an inner address"):
        frames(f"{named.url}/a.ts")
    assert not inner.asked
    assert frames(f"{named.url}/a.ts", playlist_reach="any") > 0
    assert inner.asked


def test_a_redirect_on_the_same_host_is_followed(servers: tuple[Server, Server]) -> None:
    named, _ = servers
    named.answers["/a.ts"] = "/out0.ts"
    assert frames(f"{named.url}/a.ts", playlist_reach="same") > 0
    named.answers["/round"] = "/round"
    with pytest.raises(MediaError, match="cannot be opened"):
        frames(f"{named.url}/round")


@pytest.mark.parametrize(
    "segment",
    [
        "file:///etc/hostname.ts",
        "/etc/hostname.ts",
        "{secret}",
        "file:{secret}",
        "data:video/mp2t;base64,AAAA",
        "tcp://127.0.0.1:{port}/a.ts",
        "ftp://127.0.0.1:{port}/a.ts",
        "concat:{secret}|{secret}",
        "crypto:{secret}",
    ],
)
def test_a_playlist_of_the_web_opens_no_file_and_no_other_protocol(
    servers: tuple[Server, Server], recording: Path, tmp_path: Path, segment: str
) -> None:
    named, inner = servers
    secret = shutil.copy(recording / "out0.ts", tmp_path / "secret.ts")
    segment = segment.format(secret=secret, port=inner.server_port)
    named.answers["/list.m3u8"] = playlist(segment)
    with pytest.raises(MediaError):
        frames(f"{named.url}/list.m3u8")
    assert not inner.asked


@pytest.mark.parametrize(
    "segment",
    ["../secret.ts", "{up}/secret.ts", "file:{up}/secret.ts", "link.ts", "{inner}/out0.ts"],
)
@pytest.mark.parametrize("name", ["list.m3u8", "list.mp4", "list.ts"])
def test_a_playlist_in_a_file_opens_files_beside_it_alone(
    servers: tuple[Server, Server], recording: Path, tmp_path: Path, segment: str, name: str
) -> None:
    _, inner = servers
    folder = tmp_path / "folder"
    shutil.copytree(recording, folder)
    shutil.copy(recording / "out0.ts", tmp_path / "secret.ts")
    (folder / "link.ts").symlink_to(tmp_path / "secret.ts")
    (folder / name).write_bytes(playlist(segment.format(up=tmp_path, inner=inner.url)))
    expected = "does not lie beside it" if name.endswith("m3u8") else "it is an HLS playlist"
    with pytest.raises(MediaError, match=expected):
        frames(str(folder / name))
    assert video_seconds(folder / name) == 0
    assert not inner.asked


def test_files_beside_a_playlist_are_read(recording: Path, tmp_path: Path) -> None:
    assert frames(str(recording / "out.m3u8")) == FRAMES
    shutil.copytree(recording, tmp_path / "in")
    (tmp_path / "up.m3u8").write_bytes(playlist("in/out0.ts"))
    assert 0 < frames(str(tmp_path / "up.m3u8")) < FRAMES
    (tmp_path / "in" / "any.m3u8").write_bytes(playlist(f"{recording}/out0.ts"))
    assert 0 < frames(str(tmp_path / "in" / "any.m3u8"), playlist_reach="any") < FRAMES


def test_other_lists_are_refused(recording: Path, tmp_path: Path) -> None:
    shutil.copytree(recording, tmp_path, dirs_exist_ok=True)
    (tmp_path / "a.txt").write_text("ffconcat version 1.0\nfile out0.ts\n")
    with pytest.raises(MediaError, match="a list of files for FFmpeg"):
        frames(str(tmp_path / "a.txt"))
    assert frames(str(tmp_path / "a.txt"), playlist_reach="any") > 0
    (tmp_path / "b.mp4").write_text("ffconcat version 1.0\nfile b.mp4\n")
    with pytest.raises(MediaError, match="a list of files"):
        frames(str(tmp_path / "b.mp4"))
    sdp = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 33\n"
    (tmp_path / "c.mp4").write_text(sdp)
    with pytest.raises(MediaError, match="is not a video"):
        frames(str(tmp_path / "c.mp4"))


def test_a_playlist_through_a_pipe_or_a_connection_is_not_read(
    servers: tuple[Server, Server], recording: Path, tmp_path: Path
) -> None:
    _, inner = servers
    text = playlist(f"{inner.url}/out0.ts", str(recording / "out0.ts"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(text * 200), daemon=True)
    writer.start()
    with pytest.raises(MediaError):
        frames(str(pipe))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            link, _ = server.accept()
            with link:
                link.sendall(text * 200)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(MediaError):
            frames(f"tcp://127.0.0.1:{server.getsockname()[1]}", reconnect=None)
    assert not inner.asked


def test_an_endless_playlist_is_too_long(servers: tuple[Server, Server]) -> None:
    named, _ = servers
    sent = [0]

    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(HEAD.encode())
        block = b"#EXTINF:1,\nout0.ts\n" * 4000
        try:
            while sent[0] < 1 << 30:
                handler.wfile.write(block)
                sent[0] += len(block)
        except OSError:
            pass

    named.answers["/list.m3u8"] = endless
    with pytest.raises(MediaError, match="the playlist is too long") as caught:
        frames(f"{named.url}/list.m3u8")
    assert caught.value.code == "playlist-refused"
    assert sent[0] < 10 * MAX_PLAYLIST_BYTES  # what waits in buffers of the system, too


def test_a_playlist_that_drips_is_given_up(servers: tuple[Server, Server]) -> None:
    named, _ = servers
    over = threading.Event()

    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(HEAD.encode())
        try:
            while not over.wait(0.05):
                handler.wfile.write(b"#")
        except OSError:
            pass

    named.answers["/list.m3u8"] = drip
    try:
        with pytest.raises(MediaError, match="cannot be opened"):
            open_source(f"{named.url}/list.m3u8", timeout_s=0.3).close()
    finally:
        over.set()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"#EXTM3U\n" + b"a\n" * (MAX_PLAYLIST_BYTES // 2 + 1), "too long"),
        (b"#EXTM3U\n" + b"\n" * 1_000_000, "too long"),  # with the address before each
        (b"#EXTM3U\n" + b"#EXT-X-STREAM-INF:BANDWIDTH=1\na\n" * 101, "names too many others"),
        (b"#EXTM3U\n#EXTINF:1,\n\xff.ts\n", "is no text"),
        (b"#EXTM3U\n#EXT-X-TARGETDURATION:99999\n#EXTINF:1,\na.ts\n", "still grows"),
        (b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1e9,\na.ts\n", "still grows"),
        (b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:inf,\na.ts\n", "still grows"),
        (b'#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="k"\na\n', "encrypted"),
        (b'#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="k"\na\n', "encrypted"),
    ],
)
def test_playlists_have_limits(text: bytes, problem: str) -> None:
    with pytest.raises(MediaError, match=problem):
        checked_playlist(text, "http://a.example/" + "x" * 60, inner=False)


def test_one_error_alone_comes_of_many(
    recording: Path,
    tmp_path: Path,
    servers: tuple[Server, Server],
    capfd: pytest.CaptureFixture[str],
) -> None:
    named, inner = servers
    text = playlist(*(f"{inner.url}/{i}.ts" for i in range(9)))
    several = "#EXT-X-STREAM-INF:BANDWIDTH=9\n{}\n" * 3
    several = "#EXTM3U\n" + several.format(*(f"{inner.url}/{i}.m3u8" for i in range(3)))
    for content in (text, several.encode()):
        named.answers["/list.m3u8"] = content
        (tmp_path / "list.m3u8").write_bytes(content)
        for url in (f"{named.url}/list.m3u8", str(tmp_path / "list.m3u8")):
            with pytest.raises(MediaError):
                frames(url)
    assert "Traceback" not in capfd.readouterr().err
    assert not inner.asked


def test_a_usual_playlist_of_a_day_is_read() -> None:
    day = HEAD.encode() + b"".join(
        b"#EXT-X-PROGRAM-DATE-TIME:2024-01-01T00:00:00.000Z\n#EXTINF:2.000,\nseg-%06d.ts\n" % n
        for n in range(86400 // 2)
    )
    url = "https://camera.example/recordings/2024-01-01/list.m3u8"
    assert checked_playlist(day, url, inner=True) == day
    none = b"#EXTM3U\n#EXT-X-KEY:METHOD=NONE\na\n"
    assert checked_playlist(none, "a.m3u8", inner=True) == none


def test_a_moved_playlist_gets_full_addresses() -> None:
    text = b'#EXTM3U\n#EXT-X-MAP:URI="i.mp4",BYTERANGE="1@0"\n\na.ts\n/b.ts\nhttp://c.example/c\n'
    assert moved_playlist(text, "http://x.example/d/l.m3u8") == (
        b'#EXTM3U\n#EXT-X-MAP:URI="http://x.example/d/i.mp4",BYTERANGE="1@0"\n\n'
        b"http://x.example/d/a.ts\nhttp://x.example/b.ts\nhttp://c.example/c\n"
    )


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *((a, True) for a in ("8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8")),
        *((a, False) for a in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "0.0.0.0")),
        *((a, False) for a in ("169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255")),
        *((a, False) for a in ("::1", "::", "fe80::1%eth0", "fd00:ec2::254", "ff02::1")),
        *((a, False) for a in ("::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::")),
        ("64:ff9b::808:808", True),
    ],
)
def test_inner_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


def test_a_name_that_moves_to_an_inner_address_is_refused(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    named, _ = servers
    answers = iter(["93.184.216.34", *["127.0.0.1"] * 9])
    real = socket.getaddrinfo

    def lookup(host: str, port: int, **kind: Any) -> Any:
        return real(next(answers) if host == "evil.example" else host, port, **kind)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    feed: Any = SimpleNamespace(left=False)
    files = playlist_http.WebFiles(
        f"http://evil.example:{named.server_port}/out.m3u8", "public", {}, 2.0, feed
    )
    with pytest.raises(MediaError, match="is an inner address"):
        files.resolved()
    assert not named.asked


def test_secrets_go_to_the_host_that_was_named_alone(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    named, other = servers
    monkeypatch.setattr(playlist_http, "is_public", lambda address: True)
    named.answers["/list.m3u8"] = playlist("out0.ts", f"{other.url}/out0.ts")
    url = f"http://user:hunter2@127.0.0.1:{named.server_port}/list.m3u8"
    assert frames(url, options={"headers": "X-Key: k\r\n"}) > 0
    assert "Authorization" in named.asked[-1][1]
    assert named.asked[-1][1]["X-Key"] == "k"
    assert other.asked
    for _, headers in other.asked:
        assert not {"Authorization", "X-Key"} & set(headers)
    with pytest.raises(MediaError, match="another place"):
        frames(url, playlist_reach="same")


def test_ranges_of_a_file(servers: tuple[Server, Server], recording: Path) -> None:
    named, _ = servers
    data = (recording / "out0.ts").read_bytes()
    half = len(data) // 2 // 188 * 188

    def part(handler: Any) -> None:
        start, _, end = (
            handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        )
        piece = data[int(start) : int(end) + 1 if end else None]
        handler.send_response(206)
        handler.send_header("Content-Length", str(len(piece)))
        handler.end_headers()
        handler.wfile.write(piece)

    named.answers["/all.ts"] = part
    lines = f"#EXT-X-BYTERANGE:{half}@0\n#EXTINF:1,\nall.ts\n"
    lines += f"#EXT-X-BYTERANGE:{len(data) - half}@{half}\n#EXTINF:1,\nall.ts\n"
    named.answers["/list.m3u8"] = f"{HEAD}{lines}#EXT-X-ENDLIST\n".encode()
    with (
        open_source(f"{named.url}/list.m3u8") as source,
        open_source(f"{named.url}/out0.ts") as all_,
    ):
        assert sum(1 for _ in source) == sum(1 for _ in all_)
    assert {h.get("Range") for path, h in named.asked if path == "/all.ts"} >= {
        f"bytes=0-{half - 1}",
        f"bytes={half}-{len(data) - 1}",
    }


@pytest.mark.parametrize("chain", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_playlists_that_name_each_other_end(
    servers: tuple[Server, Server], recording: Path, tmp_path: Path, chain: list[str]
) -> None:
    named, _ = servers
    head = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"
    for name, following in zip(chain, [*chain[1:], chain[0]], strict=True):
        text = f"{head}{following}.m3u8\n".encode()
        (tmp_path / f"{name}.m3u8").write_bytes(text)
        named.answers[f"/{name}.m3u8"] = text
    named.answers["/moved.m3u8"] = "/a.m3u8"
    for url in (str(tmp_path / "a.m3u8"), f"{named.url}/a.m3u8", f"{named.url}/moved.m3u8"):
        with pytest.raises(MediaError, match="names too many others") as caught:
            frames(url)
        assert "expected segments: another playlist names it" in str(caught.value)
    named.answers["/main.m3u8"] = f"{head}out.m3u8\n".encode()
    named.answers["/moved.m3u8"] = "/main.m3u8"
    assert frames(f"{named.url}/main.m3u8") == frames(f"{named.url}/moved.m3u8") == FRAMES
    shutil.copytree(recording, tmp_path / "r")
    (tmp_path / "r" / "main.m3u8").write_text(f"{head}out.m3u8\n")
    assert frames(str(tmp_path / "r" / "main.m3u8")) == FRAMES


def test_each_kind_of_source_opens_its_own_protocols(recording: Path) -> None:
    assert closed_options("rtsp")["protocol_whitelist"].split(",")[0] == "rtsp"
    for scheme in ("rtsp", "http", "https", "rtmp", "udp", "srt", "tcp", "file", ""):
        protocols = closed_options(scheme)["protocol_whitelist"].split(",")
        assert ("file" in protocols) == (scheme == "file")
        assert not {"concat", "crypto", "data", "subfile", "pipe"} & set(protocols)
        formats = closed_options(scheme)["format_whitelist"].split(",")
        assert {"mpegts", "rtsp", "mpjpeg"} <= set(formats)
        assert not {"hls", "concat", "sdp"} & set(formats)
    with pytest.raises(MediaError, match="does not lie beside it"):
        FilesBeside(recording / "out.m3u8")("/etc/passwd", 1, {})
    with pytest.raises(ValueError, match="must be same, public or any"):
        open_source("a.mp4", playlist_reach="all")  # type: ignore[arg-type]
