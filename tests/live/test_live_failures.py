"""Planted failures of one of two models of a service: every one is told, and the other runs on."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.live import Address
from tests.live.test_server import FILES, SCENE, Client
from tests.pipeline.test_pipeline_dynamic import wait_until

N_S = 3.0
PARSER = """
import os, time
from pathlib import Path
import conveyor_parser
import numpy as np
from headrace import Detections

FAULT = Path(__file__).with_name("fault")
if FAULT.exists() and FAULT.read_text() == "load":
    os.abort()


def lose_gpu():
    # the second model fails from now on, with the error of an engine whose GPU is lost
    from headrace.errors import EngineError
    from headrace.infer.inferencer import Inferencer

    def begin(self, batch, begin=Inferencer.begin):
        if self.name == "bad.txt":
            raise EngineError("the GPU is lost")
        return begin(self, batch)

    Inferencer.begin = begin


def parse(layers, network, params):
    fault = FAULT.read_text() if FAULT.exists() else ""
    if fault == "crash":
        os.abort()
    if fault == "hang":
        time.sleep(3600)
    if fault == "gpu":
        lose_gpu()
    if fault == "raise":
        raise ValueError("planted")
    if fault == "shapes":
        return np.zeros((3, 5))
    if fault == "nothing":
        return Detections.from_xyxy(np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int32))
    return conveyor_parser.parse_conveyor(layers, network, params)
"""


class Planted:
    """A service of two models, of which the second one can fail."""

    def __init__(self, folder: Path, *options: str, fault: str = "") -> None:
        self.folder = folder
        for name in {*FILES, "detector.onnx", "conveyor_parser.py"}:
            shutil.copy(SCENE / name, folder)
        text = (folder / "config_infer_primary.txt").read_text()
        (folder / "good.txt").write_text(text)
        bad = text.replace("gie-unique-id=1", "gie-unique-id=2")
        shutil.copy(SCENE / "detector.onnx", folder / "bad.onnx")
        bad = bad.replace("detector.onnx", "bad.onnx").replace("conveyor_parser.py", "planted.py")
        bad = bad.replace("parse_conveyor", "parse")
        (folder / "bad.txt").write_text(bad)
        (folder / "planted.py").write_text(PARSER)
        if fault:
            self.plant(fault)
        (folder / "pipeline.yml").write_text(
            f"keep-open: true\nsources: [{{uri: {SCENE / 'conveyor.mp4'}, loop: true}}]\n"
            "models: [good.txt, bad.txt]\nsinks: [found.jsonl]\n"
        )
        command = [sys.executable, "-m", "headrace", "serve", "pipeline.yml", *options]
        command += ["--listen", "127.0.0.1:0", "--log-format", "json", "--threads", "1"]
        command += ["--answers-within", str(N_S), "--results-within", str(N_S)]
        self.log_file = folder / "log"
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=self.log_file.open("wb"), stdout=subprocess.DEVNULL,
            env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "PYTHONFAULTHANDLER": "1"},
        )  # fmt: skip
        self.client: Any = None

    def plant(self, fault: str) -> None:
        """Let the second model fail from now on."""
        part = self.folder / "fault.part"
        part.write_text(fault)
        part.rename(self.folder / "fault")

    def connect(self) -> None:
        """Wait until it listens."""
        wait_until(lambda: "listening" in self.log_file.read_text(), 60)
        port = re.findall(r"http://127\.0\.0\.1:([0-9]+)/", self.log_file.read_text())[0]
        self.client = Client(Address(port=int(port)))
        wait_until(lambda: self.inferred("good.txt") > 0 and self.inferred("bad.txt") > 0, 60)

    def codes(self) -> list[str]:
        """Codes of the notices in the log."""
        return [
            row["code"]
            for row in map(json.loads, self.log_file.read_text().splitlines())
            if "code" in row
        ]

    def metric(self, name: str) -> float:
        """The value of a metric."""
        text = self.client.ask("/metrics")[1].decode()
        values = {k: v for k, _, v in (line.rpartition(" ") for line in text.splitlines())}
        return float(values.get(name, 0))  # models come when they are loaded

    def inferred(self, model: str) -> float:
        """Items that a model ran on."""
        return self.metric(f'headrace_inferred_total{{model="{model}"}}')

    def told_within(self, seconds: float) -> None:
        """Check that all places say so in time, and that the other model runs on."""
        end = time.monotonic() + seconds
        before = self.inferred("good.txt")
        wait_until(lambda: self.client.ask("/readyz")[0] == 503, end - time.monotonic())
        wait_until(lambda: "model-not-ready" in self.codes(), max(0.6, end - time.monotonic()))
        assert self.metric('headrace_model_ready{model="bad.txt"}') == 0
        assert self.metric('headrace_model_ready{model="good.txt"}') == 1
        assert self.metric("headrace_ready") == 0
        states = {m["name"]: m for m in self.client.json("/api/models")["models"]}
        assert states["bad.txt"]["state"] == "not-ready"
        assert states["bad.txt"]["reason"]
        assert "bad.txt" in json.loads(self.client.ask("/readyz")[1])["reasons"][0]
        assert self.inferred("good.txt") > before

    def end(self) -> int:
        """Stop it; returns its exit code."""
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Any]:
    services: list[Planted] = []

    def start(*options: str, fault: str = "") -> Planted:
        services.append(Planted(tmp_path, *options, fault=fault))
        return services[-1]

    yield start
    for service in services:
        service.process.kill()
        service.process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "guard"),
    [("crash", "always"), ("hang", "always"), ("hang", "never"), ("raise", "never"),
     ("shapes", "never"), ("nothing", "never"), ("gpu", "never")],
)  # fmt: skip
def test_a_model_that_fails_is_told_and_the_other_runs_on(
    planted: Any, fault: str, guard: str
) -> None:
    service = planted("--guard", guard)
    service.connect()
    assert service.client.ask("/readyz")[0] == 200
    service.plant(fault)
    service.told_within(N_S + 2)
    count = service.inferred("good.txt")
    wait_until(lambda: service.inferred("good.txt") > count + 5, 5)
    assert service.end() == 11
    rows = [json.loads(line) for line in (service.folder / "found.jsonl").open()]
    assert "failed" not in rows[0]
    assert rows[-5].get("failed") == (None if fault == "nothing" else [2])


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["always", "never"])
def test_a_model_that_hangs_from_its_first_frame_stops_no_other(planted: Any, guard: str) -> None:
    service = planted("--guard", guard, fault="hang")
    service.connect()
    wait_until(lambda: service.client.ask("/readyz")[0] == 503, N_S + 2)
    for _ in range(4):  # beyond the time limit of a guarded call
        count = service.inferred("good.txt")
        wait_until(lambda count=count: service.inferred("good.txt") > count + 5, 3)
        time.sleep(2)
    assert service.end() == 11


@pytest.mark.slow
@pytest.mark.parametrize("name", ["planted.py", "bad.onnx"])
@pytest.mark.parametrize("missing", [False, True])
def test_a_file_that_cannot_be_loaded_again_is_told(planted: Any, name: str, missing: bool) -> None:
    service = planted("--guard", "always", "--not-ready", "restart")
    service.connect()
    path = service.folder / name
    content = path.read_bytes()
    part = path.with_suffix(".part")
    part.write_text("this is neither Python nor a model")
    part.rename(path)
    if missing:
        path.unlink()
    service.plant("crash")
    service.told_within(N_S + 2)
    wait_until(lambda: "model-not-restarted" in service.codes(), 20)
    part.write_bytes(content)
    part.rename(path)
    service.plant("")
    wait_until(lambda: service.client.ask("/readyz")[0] == 200, 40)
    wait_until(lambda: "model-ready" in service.codes(), 5)
    assert service.end() == 0


@pytest.mark.slow
def test_a_stuck_model_is_loaded_anew(planted: Any) -> None:
    service = planted("--guard", "never", "--not-ready", "restart")
    service.connect()
    service.plant("hang")
    service.told_within(N_S + 2)
    wait_until(lambda: "model-restarted" in service.codes(), 20)
    service.plant("")
    wait_until(lambda: service.client.ask("/readyz")[0] == 200, 40)
    assert service.metric('headrace_model_restarts_total{model="bad.txt"}') >= 1
    assert service.end() in (0, 11)


@pytest.mark.slow
def test_a_service_can_end_with_its_model(planted: Any) -> None:
    service = planted("--guard", "never", "--not-ready", "exit")
    service.connect()
    service.plant("raise")
    assert service.process.wait(N_S + 10) == 11
    assert "model-not-ready" in service.codes()


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["raise", "crash"])
def test_a_model_that_fails_from_its_first_frame_ends_as_not_ready(
    planted: Any, fault: str
) -> None:
    service = planted("--guard", "always", fault=fault)
    service.connect()
    service.told_within(N_S + 2)
    assert service.end() == 11


@pytest.mark.slow
def test_a_library_that_crashes_at_load_ends_the_start_in_the_log(planted: Any) -> None:
    service = planted("--guard", "always", fault="load")
    assert service.process.wait(60) == 5
    rows = [json.loads(line) for line in service.log_file.read_text().splitlines()]
    assert (rows[-1]["event"], rows[-1]["exit_code"]) == ("error", 5)


@pytest.mark.slow
def test_updates_there_and_back(planted: Any) -> None:
    service = planted("--guard", "never")
    service.connect()
    ask, folder = service.client.ask, service.folder
    sub = folder / "sub"
    sub.mkdir()
    shutil.copy(folder / "detector.onnx", folder / "second.onnx")
    (folder / "broken.onnx").write_bytes(b"no model")

    def update(body: dict[str, Any], path: str = "/api/models/0") -> tuple[int, Any]:
        status, data, _ = ask(path, body)
        return status, json.loads(data)

    assert update({"model": "second.onnx"}) == (200, {"model": 0, "version": 2})
    text = (folder / "good.txt").read_text()
    for name in ("detector.onnx", "labels.txt", "conveyor_parser.py"):
        text = text.replace(f"={name}", f"=../{name}")
    (sub / "third.txt").write_text(text)
    assert update({"config": "sub/third.txt"}) == (200, {"model": 0, "version": 3})
    assert service.client.json("/api/models")["models"][0]["file"] == "sub/third.txt"
    for body in ({"model": "broken.onnx"}, {"config": "/etc/hosts"}, {"version": 9}, {}):
        status, answer = update(body)
        assert (status, bool(answer["error"])) == (422, True), body
    assert update({"config": "good.txt"}) == (200, {"model": 0, "version": 4})
    wait_until(lambda: service.client.json("/api/models")["models"][0]["version"] == 4, 10)
    rollback = "/api/models/0/rollback"
    assert update({}, rollback) == (200, {"model": 0, "version": 3})
    wait_until(lambda: service.client.json("/api/models")["models"][0]["version"] == 3, 10)
    assert [update({}, rollback)[1]["version"] for _ in range(3)] == [4, 3, 4]
    assert update({}, rollback) == (200, {"model": 0, "version": 3})
    (folder / "second.onnx").write_bytes(b"changed since")
    status, answer = update({"version": 2})
    assert (status, "was changed since" in answer["error"]) == (422, True)
    model = service.client.json("/api/models")["models"][0]
    assert [run["version"] for run in model["history"]] == [1, 2, 3, 4, 3, 4, 3, 4, 3]
    assert len(model["refused"]) == 5
    assert model["state"] == "ready"
    name = 'headrace_model_inferred_total{model="good.txt",version="%d"}'
    assert service.metric(name % 1) > 0
    assert service.metric(name % 3) > 0
    wait_until(lambda: service.codes().count("model-not-updated") >= 4, 5)
    wait_until(lambda: service.codes().count("model-updated") == 8, 5)
    assert service.end() == 0
