"""Inputs elsewhere: fetched once, hashed on the way, and gone again."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from pyarrow.csv import read_csv

from headrace._core.files import hash_file
from headrace.batches.inputs import columns_of, expand_inputs, given_inputs, shown
from headrace.batches.remote import fetched
from headrace.errors import MediaError, MissingExtraError
from tests.batches.test_running import here, rows_of_run, run
from tests.media.sources.videos import X264, write_video
from tests.ports import free_port

__all__ = ["here"]

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Path]:
    """Two videos and a text at memory://bucket/videos, and the folder they came from."""
    folder = tmp_path / "videos"
    folder.mkdir()
    write_video(folder / "a.mp4", 20, options=X264)
    write_video(folder / "b.mkv", 10, options=X264, seed=1)
    (folder / "notes.txt").write_text("no video")
    system = fsspec.filesystem("memory")
    system.put(str(folder), "/bucket/videos", recursive=True)
    yield folder
    system.rm("/bucket", recursive=True)


def test_a_folder_and_a_pattern_elsewhere_are_their_videos(bucket: Path, tmp_path: Path) -> None:
    names = ["memory:///bucket/videos/a.mp4", "memory:///bucket/videos/b.mkv"]
    found = [name.replace(":////", ":///") for name in expand_inputs(["memory://bucket/videos/"])]
    assert [Path(n).name for n in found] == [Path(n).name for n in names]
    assert list(expand_inputs(["memory://bucket/videos/*.mkv"])) == found[1:]
    (tmp_path / "list.txt").write_text("memory://bucket/videos/*.mkv\n")
    (tmp_path / "list.csv").write_text("input\nmemory://bucket/videos/*.mkv\n")
    for name in ("list.txt", "list.csv"):
        assert list(expand_inputs([str(tmp_path / name)])) == found[1:]
    (tmp_path / "list.txt").write_text("memory://bucket/nothing/*.mp4\n")
    with pytest.raises(MediaError):  # at the start, not when a worker opens it
        list(expand_inputs([str(tmp_path / "list.txt")]))
    with pytest.raises(MediaError, match="there is no video and no image"):
        list(expand_inputs(["memory://bucket/nothing/"]))


def test_a_manifest_or_list_elsewhere_is_read_as_one_here(
    here: None, bucket: Path, mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    system = fsspec.filesystem("memory")
    csv = "input,camera\na.mp4,north\n./b.mkv,south\nmemory://bucket/videos/a.mp4,west\n"
    (tmp_path / "rows.csv").write_text(csv)
    pq.write_table(read_csv(tmp_path / "rows.csv"), tmp_path / "rows.parquet")
    system.pipe_file("/bucket/videos/rows.csv", csv.encode())
    system.put_file(str(tmp_path / "rows.parquet"), "/bucket/videos/rows.parquet")
    system.pipe_file("/bucket/videos/list.txt", b"# two\na.mp4\nb.mkv\n")
    names = ["memory://bucket/videos/a.mp4", "memory://bucket/videos/b.mkv"]
    assert list(expand_inputs(["memory://bucket/videos/list.txt"])) == names
    for kind in ("csv", "parquet"):
        manifest = f"memory://bucket/videos/rows.{kind}"
        columns, _ = columns_of([manifest])
        assert columns == (("camera", "string"),)
        assert list(given_inputs([manifest], columns)) == [
            (names[0], ("north",)), (names[1], ("south",))
        ]  # fmt: skip
    config, out = mean_config(), tmp_path / "out"
    done = run(config, "memory://bucket/videos/rows.csv", "-o", out, "--threads", 2, "-q")
    assert done.exit_code == 0, done.output
    rows = pq.read_table(out / "manifest.parquet", columns=["input", "camera"]).to_pylist()
    assert sorted(list(row.values()) for row in rows) == [[names[0], "north"], [names[1], "south"]]


@pytest.mark.parametrize("content", [None, b"video\na.mp4\n", b'input\n""\n'])
def test_a_manifest_elsewhere_that_is_none_is_refused_before_anything_is_written(
    here: None, mean_config: Callable[..., Path], tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        fsspec.filesystem("memory").pipe_file("/bucket/bad.csv", content)
    out = tmp_path / "out"
    done = run(mean_config(), "memory://bucket/bad.csv", "-o", out, "--threads", 2)
    assert done.exit_code == 6
    assert "memory://bucket/bad.csv" in done.stderr
    assert not out.exists()
    if content is not None:
        fsspec.filesystem("memory").rm("/bucket", recursive=True)


def test_a_batch_over_urls_has_the_rows_of_the_files(
    here: None, bucket: Path, mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    config, out = mean_config(), tmp_path / "out"
    done = run(config, "memory://bucket/videos/", "-o", out, "--threads", 2, "--split", 0.2, "-q")
    assert done.exit_code == 0, done.output
    manifest = {
        Path(r["input"]).name: r for r in pq.read_table(out / "manifest.parquet").to_pylist()
    }
    assert set(manifest) == {"a.mp4", "b.mkv"}
    for name, row in manifest.items():
        assert (row["size_bytes"], row["sha256"]) == hash_file(bucket / name)
        assert row["input"].startswith("memory://")
        assert row["first_frame"] is None
    files = {row["file"] for row in manifest.values()}
    tables = [pq.read_table(out / file, partitioning=None) for file in files]
    expected = rows_of_run(config, bucket / "a.mp4", bucket / "b.mkv")
    assert sum(t.num_rows for t in tables) == len(expected) == 30
    assert {s for t in tables for s in t["source"].to_pylist()} == {
        r["input"] for r in manifest.values()
    }


def test_a_copy_is_gone_with_its_unit(bucket: Path) -> None:
    with fetched("memory://bucket/videos/a.mp4") as (path, size, digest):
        assert path.name == "a.mp4"
        assert hash_file(path) == (size, digest) == hash_file(bucket / "a.mp4")
    assert not path.exists()


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("url", ["s3://none/*.mp4", "s3://none/"])
def test_a_bucket_that_is_not_there_is_no_empty_one(
    url: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    system = SimpleNamespace(
        glob=lambda path: [], find=lambda path: [], exists=lambda b: asked.append(b) or there
    )
    monkeypatch.setattr("headrace.batches.remote._opened", lambda url: (system, url[5:]))
    words = "there is no video" if there else "there is no such bucket"
    with pytest.raises(MediaError, match=words):
        list(expand_inputs([url]))
    assert asked == ["none"]


def test_what_cannot_be_fetched_is_worded_without_secrets() -> None:
    with (
        pytest.raises(MediaError, match="cannot be fetched") as caught,
        fetched("memory://user:secret@bucket/none.mp4?token=geheim"),
    ):
        pass
    assert "secret" not in str(caught.value)
    assert "geheim" not in str(caught.value)
    with pytest.raises((MediaError, MissingExtraError)), fetched("gibtsnicht://x/y.mp4"):
        pass
    assert shown("s3://key:secret@bucket/x.mp4") == "s3://bucket/x.mp4"


HOP_BY_HOP = ("host", "expect", "transfer-encoding")


class _Flaky(http.server.BaseHTTPRequestHandler):
    """A reverse proxy before a storage that answers every third request with 503, and slowly."""

    target = ""
    count = 0

    def do_GET(self) -> None:
        self._pass()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def _pass(self) -> None:
        import urllib.error
        import urllib.request

        type(self).count += 1
        time.sleep(0.02)
        if "100-continue" in self.headers.get("Expect", "").lower():
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._body()
        if type(self).count % 3 == 0:
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
        headers.setdefault("Content-Type", "application/octet-stream")  # urllib's own is a form
        asked = urllib.request.Request(self.target + self.path, body, headers, method=self.command)
        try:
            answer = urllib.request.urlopen(asked)
        except urllib.error.HTTPError as error:
            answer = error
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> bytes | None:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.mark.slow
def test_a_bucket_that_answers_503_and_slowly_loses_nothing(
    here: None, bucket: Path, mean_config: Callable[..., Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    s3fs = pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    moto = server.ThreadedMotoServer(port=0)
    moto.start()
    address = "http://{}:{}".format(*moto.get_host_and_port())
    system = s3fs.S3FileSystem(endpoint_url=address)
    system.mkdir("videos")
    for name in ("a.mp4", "b.mkv"):
        system.put(str(bucket / name), f"videos/{name}")
    _Flaky.target = address
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Flaky)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.server_port}")
        s3fs.S3FileSystem.clear_instance_cache()
        config, out = mean_config(), tmp_path / "out"
        words = [config, "s3://videos/", "-o", out, "--threads", 2, "-q", "--retries", 3]
        done = run(*words, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["frames"] == 30
        assert _Flaky.count > 6
        port = free_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        s3fs.S3FileSystem.clear_instance_cache()
        listed = tmp_path / "list.txt"
        listed.write_text("s3://videos/a.mp4\n")
        done = run(config, listed, "-o", tmp_path / "dead", "--threads", 2, "-q")
        assert done.exit_code == 1
        assert "s3://videos/a.mp4: cannot be fetched" in done.stderr
    finally:
        proxy.shutdown()
        moto.stop()


def test_a_broken_file_elsewhere_is_tried_once_and_called_by_its_url(
    here: None, bucket: Path, mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    fsspec.filesystem("memory").pipe_file("/bucket/videos/broken.mp4", b"no video")
    out = tmp_path / "out"
    done = run(mean_config(), "memory://bucket/videos/", "-o", out, "--threads", 1, "--retries", 3)
    assert done.exit_code == 1
    rows = pq.read_table(out / "manifest.parquet").to_pylist()
    (failed,) = (row for row in rows if row["outcome"] == "failed")
    assert failed["attempts"] == 1
    assert failed["error"].startswith(f"{failed['input']}: is not a video that can be read")


def test_a_file_that_is_not_there_is_asked_for_once(
    here: None, bucket: Path, mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    listed, out = tmp_path / "list.txt", tmp_path / "out"
    listed.write_text("memory://bucket/videos/none.mp4\nmemory://bucket/videos/a.mp4\n")
    done = run(mean_config(), listed, "-o", out, "--threads", 1, "--retries", 3)
    assert done.exit_code == 1
    rows = pq.read_table(out / "manifest.parquet").to_pylist()
    (failed,) = (row for row in rows if row["outcome"] == "failed")
    assert (failed["attempts"], failed["input"]) == (1, "memory://bucket/videos/none.mp4")
