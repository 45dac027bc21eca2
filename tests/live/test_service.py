"""`noria serve`: sources over HTTP, metrics, the original's paths, an orderly end."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noria.live.metrics import metrics_text
from noria.pipeline import Pipeline
from tests.live.test_server import FILES, SCENE, Client
from tests.pipeline.fakes import FakeModel, FakeSource
from tests.pipeline.test_dynamic import wait_until


class Service:
    """The command, and a connection to it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "noria", "serve", *arguments, "--listen", "127.0.0.1:0"]
        self.folder = folder
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:([0-9]+)/", line):
                break
        else:
            raise AssertionError("no address")
        from noria.live import Address

        self.client = Client(Address(port=int(found[1])))

    def metrics(self) -> dict[str, float]:
        text = self.client.ask("/metrics")[1].decode()
        rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def end(self) -> str:
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 0
        return out


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    for name in FILES:
        shutil.copy(SCENE / name, tmp_path)
    shutil.copy(SCENE / "detector.onnx", tmp_path)
    found = Service(tmp_path, "config_infer_primary.txt", "-o", "found.jsonl")
    yield found
    found.process.kill()
    found.process.wait()


def test_a_service(service: Service) -> None:
    ask = service.client.ask
    film = str(SCENE / "conveyor.mp4")
    assert ask("/readyz")[0] == ask("/healthz")[0] == 200
    assert service.client.json("/api/sources") == {"sources": []}
    status, data, _ = ask("/api/sources", {"uri": film, "name": "belt"})
    assert (status, json.loads(data)) == (201, {"id": 0})
    frames = 'noria_frames_total{source="belt",id="0"}'
    wait_until(lambda: service.metrics().get(frames) == 250, 30)
    wait_until(lambda: service.metrics()['noria_source_up{source="belt",id="0"}'] == 0)
    assert service.metrics()['noria_objects_total{label="box"}'] > 100

    # what cannot be opened is refused with the reason, and nothing else happens
    status, data, _ = ask("/api/sources", {"uri": "nowhere.mp4"})
    assert (status, "there is no such file" in data.decode()) == (422, True)
    for body in ({}, {"uri": 3}, {"uri": "a", "name": 3}, b"[" * 3000, b"x" * 5000):
        assert ask("/api/sources", body)[0] in (400, 413)

    # the original's paths
    value = {"camera_id": "c1", "camera_name": "front", "camera_url": f"file://{film}"}
    for code, reason in ((200, "STREAM_ADD_SUCCESS"), (400, "STREAM_ADD_FAIL")):
        status, data, _ = ask("/api/v1/stream/add", {"key": "sensor", "value": value})
        assert (status, json.loads(data)["reason"].partition(":")[0]) == (code, reason)
    info = service.client.json("/api/v1/stream/get-stream-info")["stream-info"]
    assert info["stream-info"] == [{"camera_id": "c1", "camera_name": "front", "source_id": 1}]
    assert ask("/api/v1/stream/remove", {"value": {"camera_id": "c1"}})[0] == 200
    assert ask("/api/v1/stream/remove", {"value": {"camera_id": "c1"}})[0] == 400
    assert service.client.json("/api/v1/health/get-dsready-state")["health-info"] == {
        "ds-ready": "YES"
    }
    assert ask("/api/v1/osd/process-mode", {})[0] == 501
    assert ask("/api/v1/stream/add", {"value": value})[0] == 200  # the id is free again
    assert service.client.ask("/api/sources/77")[0] == 405

    out = service.end()
    lines = (service.folder / "found.jsonl").read_text().splitlines()
    assert all(json.loads(line)["frame"] >= 0 for line in lines)
    assert sum(json.loads(line)["source"] == "belt" for line in lines) == 250
    assert "0: belt: 250 frames, ended" in out
    assert "front" in out


@pytest.mark.slow
def test_a_removed_source(service: Service) -> None:
    status, data, _ = service.client.ask("/api/sources", {"uri": str(SCENE / "conveyor.mp4")})
    number = json.loads(data)["id"]
    connection: Any = service.client._connection
    connection.request("DELETE", f"/api/sources/{number}")
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 204
    connection.request("DELETE", f"/api/sources/{number}")
    answer = connection.getresponse()
    assert (answer.status, status) == (404, 201)
    answer.read()
    assert service.end()


def test_metrics_hold_hostile_names() -> None:
    source = FakeSource(3, name='a"b\\c\nd')
    pipeline = Pipeline(source, FakeModel())
    pipeline.run()
    text = metrics_text(pipeline)
    assert 'noria_frames_total{source="a\\"b\\\\c\\nd",id="0"} 3' in text.splitlines()
    assert "noria_up 0" in text.splitlines()


def test_every_metric_is_described() -> None:
    pipeline = Pipeline(FakeSource(1), FakeModel())
    pipeline.run()
    lines = metrics_text(pipeline).splitlines()
    described = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")} <= described
