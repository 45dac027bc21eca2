"""Cameras that requests added are there again after a restart."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from headrace.live import Address, LiveServer, LiveView
from headrace.live.allowed import AllowedSources, ServiceRules
from headrace.live.kept import KeptSource, KeptSources
from headrace.live.kept_file import service_file
from headrace.pipeline import Pipeline
from tests.live.test_server import Client
from tests.media.conftest import MakeMeta, write_clip
from tests.media.conftest import make_meta as make_meta  # a fixture
from tests.media.sinks.test_rtsp_server import streaming
from tests.pipeline.fakes import FakeModel, FakeSource
from tests.pipeline.test_pipeline_dynamic import wait_until
from tests.ports import free_port

SECRET = "s3:cret"


@contextmanager
def life(file: Path, *entries: str, first: Sequence[Any] = ()) -> Iterator[tuple[Pipeline, Client]]:
    """One life of a service that keeps its list in a file."""
    view = LiveView()
    pipeline = Pipeline(first, FakeModel(), [view], keep_open=True)
    rules = ServiceRules(AllowedSources(entries), kept=KeptSources(file))
    server = LiveServer(pipeline, view, Address(port=0), service=rules)
    run, client = Thread(target=pipeline.run), Client(server.address)
    run.start()
    try:
        yield pipeline, client
    finally:
        client.close()
        pipeline.stop(5)
        run.join()
        server.close()
    assert [t.name for t in threading.enumerate() if t.name.startswith("headrace-decode")] == []


def delete(client: Client, number: int) -> int:
    return deleted(client, number)[0]


def deleted(client: Client, number: int) -> tuple[int, bytes]:
    client._connection.request("DELETE", f"/api/sources/{number}")
    answer = client._connection.getresponse()
    return answer.status, answer.read()


def warnings(pipeline: Pipeline) -> list[str]:
    return [n.code for n in pipeline.notices if n.level == "warning"]


def test_cameras_come_back_until_they_are_removed(make_meta: MakeMeta, tmp_path: Path) -> None:
    file = tmp_path / "state" / "list.json"
    video = str(write_clip(tmp_path / "video.mp4", 5))
    with streaming(make_meta) as (_, port):
        uri = f"rtsp://me:{SECRET}@127.0.0.1:{port}/a"
        with life(file) as (_, client):
            assert client.ask("/api/sources", {"uri": video})[0] == 201
            assert client.ask("/api/sources", {"uri": uri, "name": "gate"})[0] == 201
            value = {"camera_id": "c7", "camera_url": uri, "camera_name": "door"}
            assert client.ask("/api/v1/stream/add", {"value": value})[0] == 200
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

        with life(file) as (pipeline, client):

            def running() -> list[tuple[int, str]]:
                listed = client.json("/api/sources")["sources"]
                return [(s["id"], s["name"]) for s in listed if s["state"] == "running"]

            wait_until(lambda: running() == [(1, "gate"), (2, "door")], 20)  # and not the video
            assert client.ask("/api/sources", {"uri": video})[0] == 201
            wait_until(lambda: any(r.source_id == 3 for r in pipeline.snapshot().sources), 20)
            assert client.ask("/api/v1/stream/add", {"value": value})[0] == 400  # it is there
            assert client.ask("/api/v1/stream/remove", {"value": {"camera_id": "c7"}})[0] == 200
            assert SECRET not in "".join(map(str, pipeline.notices))

    with life(file) as (pipeline, client):  # the camera is away now
        (listed,) = client.json("/api/sources")["sources"]
        assert (listed["id"], listed["name"], listed["frames"]) == (1, "gate", 0)
        assert [delete(client, 1), delete(client, 1)] == [204, 404]
    with life(file) as (pipeline, client):
        assert client.json("/api/sources") == {"sources": []}


def test_the_answer_says_that_a_source_of_the_file_comes_back(tmp_path: Path) -> None:
    camera = FakeSource(10_000, live=True, delay_s=0.01)
    with life(tmp_path / "list.json", first=[camera]) as (_, client):
        number = json.loads(client.ask("/api/sources", {"uri": "rtsp://127.0.0.1:1/a"})[1])["id"]
        status, data = deleted(client, 0)
        assert (status, json.loads(data)["comes_back"]) == (200, True)
        assert deleted(client, number) == (204, b"")
        wait_until(lambda: client.json("/api/state")["sources"] == [], 10)  # nor on the page
        paths = client.json("/openapi.json")["paths"]["/api/sources/{id}"]["delete"]["responses"]
        assert paths.keys() > {"200", "204"}
        assert "content" not in paths["204"]


@pytest.mark.slow
def test_a_camera_that_is_away_is_taken_as_one_of_a_file(
    make_meta: MakeMeta, tmp_path: Path
) -> None:
    port, file = free_port(), tmp_path / "list.json"
    with life(file) as (_, client):
        for body in ({"uri": f"rtsp://127.0.0.1:{port}/a", "name": "gate"}, {"uri": "camera:77"}):
            status, data, _ = client.ask("/api/sources", body)
            assert (status, json.loads(data)["state"]) == (201, "connecting")

        def listed() -> list[dict[str, object]]:
            rows: list[dict[str, object]] = client.json("/api/sources")["sources"]
            return rows

        wait_until(lambda: all(row["error"] for row in listed()), 20)
        assert [(row["state"], row["live"]) for row in listed()] == [("connecting", True)] * 2
        assert [(row["name"], row["uri"]) for row in listed()] == [
            ("gate", f"rtsp://127.0.0.1:{port}/a"), ("camera:77", "camera:77")
        ]  # fmt: skip
        assert client.ask("/api/sources", {"uri": "http://127.0.0.1:1/a.mp4"})[0] == 422
        with streaming(make_meta, port=port):
            wait_until(lambda: listed()[0]["state"] == "running", 40)
    kept = json.loads(file.read_text())["sources"]
    assert [entry["uri"] for entry in kept] == [f"rtsp://127.0.0.1:{port}/a", "camera:77"]


def test_the_list_of_today_decides(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    kept = KeptSources(file)
    pipeline = Pipeline(FakeSource(1, live=True), FakeModel(), keep_open=True)
    kept.keep(pipeline, KeptSource(0, f"rtsp://me:{SECRET}@127.0.0.1:9/a", "gate"))
    before = file.read_bytes()
    with life(file, "srt:") as (pipeline, client):
        assert client.json("/api/sources") == {"sources": []}
        assert warnings(pipeline) == ["source-not-restored"]
        assert SECRET not in "".join(map(str, pipeline.notices))
    assert file.read_bytes() == before
    with life(file, "rtsp:") as (pipeline, client):
        assert [s["name"] for s in client.json("/api/sources")["sources"]] == ["gate"]


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "sources": [{"id": 0, "uri": "rtsp://ga',
        '{"version": 2, "sources": []}',
        '{"version": 1, "sources": [{"id": -1, "uri": "rtsp://gate/1"}]}',
        '{"version": 1, "sources": [{"id": 0, "uri": "/etc/passwd"}]}',
        '{"version": 1, "sources": [{"id": 0, "uri": "rtsp://gate/1", "name": 3}]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_list_is_put_aside(tmp_path: Path, text: str) -> None:
    file = tmp_path / "list.json"
    file.write_text(text)
    pipeline = Pipeline([], FakeModel(), keep_open=True)
    KeptSources(file).restore(pipeline, AllowedSources())
    assert warnings(pipeline) == ["kept-unreadable"]
    assert pipeline.sources == []
    assert (tmp_path / "list.json.unreadable").read_text() == text


def test_a_list_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    kept = KeptSources(tmp_path / "state" / "list.json")
    pipeline = Pipeline(FakeSource(1, live=True), FakeModel(), keep_open=True)
    for name in ("a", "b"):
        kept.keep(pipeline, KeptSource(0, "rtsp://gate/1", name))
    assert warnings(pipeline) == ["kept-unwritten"]


def test_an_id_of_the_pipeline_file_stays_with_it(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    row = {"id": 0, "uri": "rtsp://127.0.0.1:9/a", "camera_id": "c"}
    file.write_text(json.dumps({"version": 1, "sources": [row]}))
    pipeline = Pipeline(FakeSource(1, live=True), FakeModel(), keep_open=True)
    kept = KeptSources(file)
    kept.restore(pipeline, AllowedSources())
    assert [s.source_id for s in pipeline.sources] == [0, 1]
    assert kept.cameras == {"c": 1}
    pipeline.close()


def test_each_service_has_files_of_its_own() -> None:
    services = (("a.txt", 1, "sources"), ("a.txt", 2, "sources"), ("b", 1, "sources"),
                ("b", 1, "changes"))  # fmt: skip
    assert len({service_file([c], p, kind) for c, p, kind in services}) == 4
