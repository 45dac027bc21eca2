"""`headrace serve`: sources over HTTP, metrics, the original's paths, an orderly end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import av
import pytest

from headrace.live import Address, LiveServer, LiveView
from headrace.live.allowed import ServiceRules
from headrace.live.metrics import metrics_text
from headrace.live.rest import _REASONS, rest_routes
from headrace.pipeline import Pipeline
from tests.live.test_server import FILES, SCENE, Client
from tests.media.conftest import write_clip
from tests.media.sources import test_stream_rtsp as test_rtsp
from tests.pipeline.fakes import FakeModel, FakeSource
from tests.pipeline.test_pipeline_dynamic import wait_until

FRAMES = 60


def write_start(path: Path, frames: int) -> Path:
    """Write the first frames of the demo scene, as they are coded."""
    with av.open(str(SCENE / "conveyor.mp4")) as scene, av.open(str(path), "w") as start:
        stream = start.add_stream_from_template(scene.streams.video[0])
        for packet in islice(scene.demux(video=0), frames):
            packet.stream = stream
            start.mux(packet)
    return path


class Service:
    """The command, and a connection to it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "headrace", "serve", *arguments, "--listen", "127.0.0.1:0"]
        self.folder = folder
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.opening = ""  # all that it said before it listened
        for line in self.process.stderr:
            self.opening += line
            if found := re.search(r"http://127\.0\.0\.1:([0-9]+)/", line):
                break
        else:
            raise AssertionError("no address")
        self.client = Client(Address(port=int(found[1])))

    def metrics(self) -> dict[str, float]:
        text = self.client.ask("/metrics")[1].decode()
        rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def end(self) -> str:
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        out, self.rest = self.process.communicate(timeout=30)
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
    video = str(write_start(service.folder / "belt.mp4", FRAMES))
    assert ask("/readyz")[0] == ask("/healthz")[0] == 200
    assert service.client.json("/api/sources") == {"sources": []}
    status, data, _ = ask("/api/sources", {"uri": video, "name": "belt"})
    assert (status, json.loads(data)["id"]) == (201, 0)
    frames = 'headrace_frames_total{source="belt",id="0"}'
    wait_until(lambda: service.metrics().get(frames) == FRAMES, 30)
    wait_until(lambda: service.metrics()['headrace_source_up{source="belt",id="0"}'] == 0)
    assert service.metrics()['headrace_objects_total{label="box"}'] > 50

    # what cannot be opened is refused with the reason, and nothing else happens
    status, data, _ = ask("/api/sources", {"uri": video, "loop": True})
    assert status == 400
    assert "found the key loop" in str(data)
    status, data, _ = ask("/api/sources", {"uri": "nowhere.mp4"})
    assert (status, "there is no such file" in data.decode()) == (422, True)
    text = {"uri": "config_infer_primary.txt"}  # FFmpeg would show it as a video of a terminal
    status, data, _ = ask("/api/sources", text)
    assert (status, "is not a video" in data.decode()) == (422, True)
    half = b'{"uri": "\\ud800"}'
    for body in ({}, {"uri": 3}, {"uri": "a", "name": 3}, half, b"[" * 3000, b"x" * 5000):
        assert ask("/api/sources", body)[0] in (400, 413)

    # the original's paths; a video that is over leaves the list when its last frames are done
    listed = "/api/v1/stream/get-stream-info"
    wait_until(lambda: service.client.json(listed)["stream-info"]["stream-info"] == [])
    value = {"camera_id": "c1", "camera_name": "front", "camera_url": f"file://{video}"}
    for code, reason in ((200, "STREAM_ADD_SUCCESS"), (400, "STREAM_ADD_FAIL")):
        status, data, _ = ask("/api/v1/stream/add", {"key": "sensor", "value": value})
        assert (status, json.loads(data)["reason"].partition(":")[0]) == (code, reason)
    info = service.client.json(listed)["stream-info"]
    assert info["stream-info"] == [{"camera_id": "c1", "camera_name": "front", "source_id": 1}]
    assert ask("/api/v1/stream/remove", {"value": {"camera_id": "c1"}})[0] == 200
    assert ask("/api/v1/stream/remove", {"value": {"camera_id": "c1"}})[0] == 400
    assert service.client.json("/api/v1/health/get-dsready-state")["health-info"] == {
        "ds-ready": "YES"
    }
    assert ask("/api/v1/dec/skip-frames", {})[0] == 501
    assert ask("/api/v1/stream/add", {"value": value})[0] == 200  # the id is free again
    assert service.client.ask("/api/sources/77")[0] == 405

    out = service.end()
    lines = (service.folder / "found.jsonl").read_text().splitlines()
    assert all(json.loads(line)["frame"] >= 0 for line in lines)
    assert sum(json.loads(line)["source"] == "belt" for line in lines) == FRAMES
    assert f"0: belt: {FRAMES} frames, ended" in out
    assert "front" in out


@pytest.mark.slow
def test_a_source_replaces_those_of_the_file_and_notes_come_at_once(tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(SCENE / name, tmp_path)
    (tmp_path / "app.txt").write_text(
        "[source0]\nenable=1\ntype=3\nuri=file:///nowhere.mp4\n[sink0]\nenable=1\ntype=2\n"
        "[primary-gie]\nenable=1\nconfig-file=config_infer_primary.txt\n"
    )
    found = Service(tmp_path, "app.txt", str(SCENE / "conveyor.mp4"), "-o", "found.jsonl")
    try:
        assert found.opening.count("[sink0] is left out") == 1
        wait_until(lambda: (tmp_path / "found.jsonl").stat().st_size > 0, 20)
        found.end()
        assert "[sink0]" not in found.rest
    finally:
        found.process.kill()


@pytest.mark.slow
def test_cameras_that_are_not_there_are_told_alike_and_stop_no_readiness(tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(SCENE / name, tmp_path)
    cameras = [f"rtsp://127.0.0.1:1/{name}" for name in "ab"]
    found = Service(tmp_path, "config_infer_primary.txt", *cameras)
    try:
        wait_until(lambda: all(r["error"] for r in found.client.json("/api/sources")["sources"]), 9)
        time.sleep(1)  # notices are looked for twice a second
        rows = found.client.json("/api/sources")["sources"]
        assert [row["state"] for row in rows] == ["connecting"] * 2
        assert {s["state"] for s in found.client.json("/api/state")["sources"]} == {"connecting"}
        assert found.metrics()[f'headrace_source_connected{{source="{cameras[0]}",id="0"}}'] == 0
        assert found.client.ask("/readyz")[0] == 200
        found.end()
        for row, name in zip(rows, cameras, strict=True):
            told = row["error"].partition(" (last try")[0]
            assert "there was no connection" in told
            assert f"warning: {name}: {told}" in found.rest
    finally:
        found.process.kill()


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
    assert 'headrace_frames_total{source="a\\"b\\\\c\\nd",id="0"} 3' in text.splitlines()
    assert "headrace_up 0" in text.splitlines()


def test_metrics_are_not_rounded() -> None:
    pipeline = Pipeline(FakeSource(1, name="a"), FakeModel())
    pipeline.run()
    pipeline.report.sources[0].frames = 123_456_789
    pipeline.report.stages["infer"] = 1_234_567.5
    lines = metrics_text(pipeline).splitlines()
    assert 'headrace_frames_total{source="a",id="0"} 123456789' in lines
    assert 'headrace_stage_seconds_total{stage="infer"} 1234567.5' in lines


def test_one_camera_added_by_many_at_once(tmp_path: Path) -> None:
    video = str(write_clip(tmp_path / "video.mp4", 5))
    view = LiveView()
    pipeline = Pipeline([], FakeModel(), [view], keep_open=True)
    server = LiveServer(pipeline, view, Address(port=0), service=ServiceRules())
    run = Thread(target=pipeline.run)
    answers: list[int] = []

    def add() -> None:
        client = Client(server.address)
        value = {"camera_id": "same", "camera_url": video, "change": "camera_add"}
        answers.append(client.ask("/api/v1/stream/add", {"value": value})[0])
        client.close()

    threads = [Thread(target=add) for _ in range(30)]
    for thread in threads:  # the sources wait for the run
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [400] * 29
    assert len(pipeline.sources) == 1
    run.start()
    pipeline.stop()
    run.join()
    server.close()


@pytest.mark.slow
def test_an_answer_says_nothing_of_a_file(service: Service) -> None:
    secret = "password hunter2 of the administrator"
    for name in ("notes.txt", "notes.jpg", "notes.mp4", "notes.m3u8", "notes.png", "notes.srt"):
        (service.folder / name).write_text(f"{secret}\n" * 20)
    (service.folder / "hidden-name.txt").touch()
    for name in (
        "notes.txt", "notes.jpg", "notes.mp4", "notes.m3u8", "notes.png", "notes.srt", "notes.*",
        "hidden-nama.txt", "hidden-name.txt", "", "nowhere",
    ):  # fmt: skip
        for uri in (str(service.folder / name), f"file://{service.folder / name}"):
            value = {"camera_id": uri, "camera_url": uri}
            for answer in (
                service.client.ask("/api/sources", {"uri": uri}),
                service.client.ask("/api/v1/stream/add", {"value": value}),
            ):
                assert answer[0] in (400, 422) or name in ("notes.*", "")  # images in it
                text = answer[1].decode()
                assert "hunter2" not in text
                assert "hidden-name" not in text.replace(uri.removeprefix("file://"), "")


@pytest.mark.slow
def test_names_forge_no_line(service: Service) -> None:
    name = "belt\nsource 9, forged: ended\x1b[2J\u2028\u202e"
    body = {"uri": str(write_clip(service.folder / "clip.mp4", 5)), "name": name}
    assert service.client.ask("/api/sources", body)[0] == 201
    assert service.client.ask("/api/%0aforged:ended/%1b[2J")[0] == 404
    wait_until(lambda: service.client.json("/api/sources") == {"sources": []}, 30)
    service.client.close()
    service.process.send_signal(signal.SIGTERM)
    out, err = service.process.communicate(timeout=30)
    for text in (out, err):
        assert not re.search(r"[\x1b\u2028\u202e]|^source 9|^forged", text, re.MULTILINE)
    assert r"source 0, belt\nsource 9, forged: ended\x1b[2J" in err


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["rtsp", "http", "pipe"])
@pytest.mark.sampled
def test_an_end_while_a_source_opens(service: Service, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/x"
        if scheme == "pipe":
            uri = str(service.folder / "pipe.jpg")
            os.mkfifo(uri)
        answers: list[int] = []
        asking = Thread(
            target=lambda: answers.append(service.client.ask("/api/sources", {"uri": uri})[0])
        )
        asking.start()
        link = silent.accept() if scheme != "pipe" else ()
        service.process.send_signal(signal.SIGTERM)
        service.process.communicate(timeout=30)
        asking.join(10)
    assert service.process.returncode == 0
    assert answers == [503] or (scheme != "http" and answers == [201])
    for end in link[:1]:
        end.close()
    assert (service.folder / "found.jsonl").exists()


@pytest.mark.slow
def test_sources_of_the_list_alone(tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(SCENE / name, tmp_path)
    (tmp_path / "videos").mkdir()
    video = str(write_clip(tmp_path / "videos" / "a.mp4", 5))
    service = Service(
        tmp_path, "config_infer_primary.txt", "--allow-source", "videos", "--allow-source", "udp:"
    )
    try:
        ask = service.client.ask
        assert ask("/api/sources", {"uri": video})[0] == 201
        for uri in (str(SCENE / "conveyor.mp4"), "rtsp://127.0.0.1:1/x", "labels.txt", "/dev/zero"):
            status, data, _ = ask("/api/sources", {"uri": uri})
            error = {"error": "the service takes no source from there"}
            assert (status, json.loads(data)) == (403, error)
            value = {"camera_id": "c", "camera_url": uri}
            assert ask("/api/v1/stream/add", {"value": value})[0] == 400
    finally:
        service.end()


def test_every_described_path_is_there() -> None:
    view = LiveView()
    pipeline = Pipeline(FakeSource(1), FakeModel(), [view])
    server = LiveServer(pipeline, view, Address(port=0), service=ServiceRules())
    client = Client(server.address)
    paths = client.json("/openapi.json")["paths"]
    for path, methods in paths.items():
        for method, described in methods.items():
            body = {} if method == "post" else None
            client._connection.request(
                method.upper(), path.format(id=7, index=7), json.dumps(body) if body == {} else None
            )
            answer = client._connection.getresponse()
            answer.read()
            assert str(answer.status) in {*described["responses"], "400"}
            assert ("{" in path) == ("parameters" in described)
    schema = paths["/api/settings"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    settings = client.json("/api/settings")
    assert set(schema["properties"]) == set(settings)
    assert set(schema["properties"]["osd"]["properties"]) == set(settings["osd"])
    routes = rest_routes(pipeline, view, ServiceRules())
    routed = {str(route.path).replace(":int", "") for route in routes}
    own = {path for path in routed if not path.startswith("/api/v1/")}
    assert own - {"/openapi.json"} == set(paths)
    originals = routed - own - {f"/api/v1/{path}" for path in _REASONS}
    page = (Path(__file__).parents[2] / "docs" / "cli" / "serve.md").read_text()
    named = {path.removeprefix("/api/v1") for path in own | originals}
    patterns = [re.sub(r"\{\w+\}", "(ID|N)", path) for path in sorted(named)]
    assert [pattern for pattern in patterns if not re.search(pattern, page)] == []
    client.close()
    server.close()
    pipeline.close()


def test_every_metric_is_described() -> None:
    pipeline = Pipeline(FakeSource(1), FakeModel())
    pipeline.run()
    lines = metrics_text(pipeline).splitlines()
    described = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    parts = ("bucket", "sum", "count")
    histograms = ("headrace_stage_duration_seconds", "headrace_latency_seconds")
    described |= {f"{name}_{part}" for name in histograms for part in parts}
    counts = [line for line in lines if line.startswith("headrace_stage_duration_seconds_count")]
    assert 'headrace_stage_duration_seconds_count{stage="decode"} 2' in counts  # and the end
    buckets = [int(line.split()[-1]) for line in lines if 'bucket{stage="decode"' in line]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 2
    assert {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")} <= described


def test_each_live_source_has_a_histogram_of_its_latency() -> None:
    pipeline = Pipeline([FakeSource(1, live=True), FakeSource(1, name='a"b')], FakeModel(2))
    pipeline.run()
    lines = [x for x in metrics_text(pipeline).splitlines() if "source_latency" in x]
    assert lines[-1] == 'headrace_source_latency_seconds_count{source="fake",id="0"} 0'
    assert not [line for line in lines if 'id="1"' in line]


@pytest.mark.slow
@pytest.mark.skipif(not test_rtsp.available(), reason="no RTSP server of GStreamer")
def test_every_line_of_a_json_log_is_json(tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(SCENE / name, tmp_path)
    camera = test_rtsp.Server()
    camera.start()
    found = Service(tmp_path, "config_infer_primary.txt", "--log-format", "json")
    status, data, _ = found.client.ask("/api/sources", {"uri": camera.url(), "name": "gate"})
    assert (status, json.loads(data)["id"]) == (201, 0)
    frames = 'headrace_frames_total{source="gate",id="0"}'
    wait_until(lambda: found.metrics().get(frames, 0) > 0, 30)
    camera.kill()
    state = "/api/state"
    wait_until(lambda: found.client.json(state)["sources"][0]["state"] == "reconnecting", 30)
    time.sleep(1)  # the notice is looked for twice a second
    found.client.close()
    found.process.send_signal(signal.SIGTERM)
    out, err = found.process.communicate(timeout=30)
    assert (found.process.returncode, out) == (0, "")
    rows = [json.loads(line) for line in err.splitlines()]
    assert any("was lost" in r["message"] and r["level"] == "warning" for r in rows)
    assert any(r.get("event") == "source" and r["source"] == "gate" for r in rows)
    losses = [(r["code"], r["where"]) for r in rows if "was lost" in r["message"]]
    assert losses.count(("connection-away", "gate")) == 1
    assert len(losses) == len(set(losses))
    assert rows[-1]["event"] == "stopped"
    assert rows[-1]["frames"] > 0


@pytest.mark.slow
def test_rates_go_to_the_json_log(tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(SCENE / name, tmp_path)
    (tmp_path / "app.txt").write_text(
        "[application]\nenable-perf-measurement=1\nperf-measurement-interval-sec=1\n"
        f"[source0]\nenable=1\ntype=3\nuri=file://{SCENE / 'conveyor.mp4'}\n"
        "[sink0]\nenable=1\ntype=1\n[streammux]\nwidth=640\nheight=360\n"
        "[primary-gie]\nenable=1\nconfig-file=config_infer_primary.txt\n"
    )
    found = Service(tmp_path, "app.txt", "--log-format", "json")
    wait_until(lambda: found.metrics().get("headrace_frames_total", 1) > 0, 30)
    time.sleep(1.5)
    found.client.close()
    found.process.send_signal(signal.SIGTERM)
    out, err = found.process.communicate(timeout=30)
    assert (found.process.returncode, out) == (0, "")
    rows = [json.loads(line) for line in err.splitlines()]
    assert any("**PERF" in r["message"] for r in rows if r.get("event") == "rates")


@pytest.mark.slow
def test_settings_while_it_runs(service: Service) -> None:
    ask, video = service.client.ask, str(SCENE / "conveyor.mp4")
    assert service.client.json("/api/settings")["interval"] == 0

    def reply(path: str, body: dict[str, Any]) -> tuple[int, str]:
        status, data, _ = ask(path, body)
        return status, json.loads(data).get("reason", "").partition(":")[0]

    body = {"stream": {"stream_id": "0", "interval": 4}}
    assert reply("/api/v1/infer/set-interval", body) == (200, "INFER_INTERVAL_UPDATE_SUCCESS")
    for wrong in (-1, 1.5, "x", None, True, 1 << 40):
        body = {"stream": {"interval": wrong}}
        assert reply("/api/v1/infer/set-interval", body) == (400, "INFER_INTERVAL_UPDATE_FAIL")
    body = {"stream": {"batched_push_timeout": 100000}}
    assert reply("/api/v1/mux/batched-push-timeout", body)[0] == 200
    assert reply("/api/v1/osd/process-mode", {"stream": {"process_mode": 0}})[0] == 200
    assert reply("/api/v1/osd/process-mode", {"stream": {"process_mode": 1}})[0] == 501
    assert reply("/api/v1/enc/bitrate", {})[0] == 501
    region = {"roi_id": "0", "left": 1, "top": 1, "width": 9, "height": 9}
    status, reason = reply("/api/v1/roi/update", {"stream": {"stream_id": "0", "roi": [region]}})
    assert (status, reason) == (400, "ROI_UPDATE_FAIL")  # no analytics
    tracker = {"stream": {"stream_id": "0", "config_path": "changes.yml"}}
    status, reason = reply("/api/v1/nvtracker/config-path", tracker)
    assert (status, reason) == (400, "NVTRACKER_CONFIG_UPDATE_FAIL")  # no tracker

    assert ask("/api/settings", {"osd": {"labels": False}})[0] == 200
    for wrong_settings in ({}, {"osd": {"x": True}}, {"osd": {"ids": 1}}, {"a": 1, "interval": 7}):
        assert ask("/api/settings", wrong_settings)[0] == 422
    found = service.client.json("/api/settings")
    assert (found["interval"], found["batch_timeout_s"]) == (4, 0.1)
    assert (found["osd"]["labels"], found["osd"]["boxes"]) == (False, True)

    # it counts: one of five frames goes through the model
    assert ask("/api/sources", {"uri": video})[0] == 201
    wait_until(lambda: any(k.startswith("headrace_inferred") and v == 50 for k, v in
                           service.metrics().items()), 30)  # fmt: skip

    # another model, from the folder of the running one alone
    for wrong_model in ("/etc/passwd", "../config.txt", "nowhere.txt", "", 3):
        assert ask("/api/models/0", {"config": wrong_model})[0] == 422
    assert ask("/api/models/7", {"config": "config_infer_primary.txt"})[0] == 404
    assert ask("/api/models/0", {"config": "config_infer_primary.txt"})[0] == 200
    assert ask("/api/sources/0/clip", {})[0] == 422  # no output takes clips

    assert reply("/api/v1/app/quit", {"stream": {"app_quit": 1}}) == (200, "QUIT_SUCCESS")
    assert service.process.wait(20) == 0
