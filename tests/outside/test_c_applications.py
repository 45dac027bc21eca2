"""Published applications in C and C++, byte for byte: compiled, and run on the demo scene."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import cv2
import pytest

from tests.outside import deepstream_apps as python_apps
from tests.outside.c_apps import APPS, App
from tests.outside.conftest import checkout, need_broker
from tests.outside.deepstream_apps import PORT, SCENE, SERVER, elementary, ended, mqtt_messages
from tests.ports import free_port

HEADRACE = str(Path(sys.executable).with_name("headrace"))
COUNTER = Path(__file__).with_name("counter")
# of the probe that a program in C and its twin in Python share
FRAME = re.compile(
    r"Frame Number *= *(\d+).*?Vehicle.count *= *(\d+) *Person.count *= *(\d+)", re.IGNORECASE
)


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The demo scene's video in the forms that the applications take."""
    from tests.outside.app_models import save_color_classes

    folder = tmp_path_factory.mktemp("media")
    video = elementary(folder)
    raw = "videoscale ! videoconvert ! video/x-raw,format=I420,width=640,height=360"
    line = f"filesrc location={video} ! h264parse ! avdec_h264 ! {raw} ! filesink location="
    subprocess.run(["gst-launch-1.0", "-q", *f"{line}{folder}/raw.yuv".split()], check=True)
    cv2.imwrite(str(folder / "one.jpg"), cv2.VideoCapture(str(SCENE / "conveyor.mp4")).read()[1])
    save_color_classes(folder / "colors.onnx")
    return {
        "h264": video, "mp4": SCENE / "conveyor.mp4", "uri": (SCENE / "conveyor.mp4").as_uri(),
        "mjpeg": folder / "conveyor.mjpeg", "raw": folder / "raw.yuv", "jpeg": folder / "one.jpg",
        "rtsp": f"rtsp://127.0.0.1:{PORT}/video", "scene": SCENE, "scratch": folder,
    }  # fmt: skip


def compiled(app: App, outside: Path, folder: Path) -> None:
    """Compile an application, as its Makefile would, to `app` in a folder."""
    sources = [str(path) for s in app.sources.split() for path in sorted(outside.glob(s))]
    options = shlex.split(app.options.format(outside=outside))
    done = subprocess.run(
        [HEADRACE, "compile", "--exe", *sources, *options, "-o", "app"],
        cwd=folder, env=os.environ | {"CC": app.compiler}, timeout=1800,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def ran(app: App, folder: Path, values: dict[str, object]) -> subprocess.CompletedProcess[str]:
    """Run it to its end; one without an end gets Ctrl-C once all frames are counted."""
    arguments = [one.format(**values) for one in app.arguments.split()]
    environment = os.environ | {
        "HEADRACE_GST_DISPLAY": "none", "PYTHONPATH": str(COUNTER),
        "COUNTED": str(folder / "counted.json"),
    }  # fmt: skip
    command = [HEADRACE, "exec", "./app", *arguments]
    if app.ends:
        return ended(command, 300, cwd=folder, env=environment)
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        until = time.monotonic() + 240
        while time.monotonic() < until and counted(folder)["frames"] < app.frames:
            time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, output, "")


def counted(folder: Path) -> dict[str, int]:
    """What the element of the application that saw most gave."""
    path = folder / "counted.json"
    rows = json.loads(path.read_text() or "{}") if path.is_file() else {}
    return max(rows.values(), key=lambda row: int(row["results"]), default={"frames": 0})


def outcome(
    app: App, outside: Path, media: dict[str, object], folder: Path
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Compile and run an application in a folder, with configurations that it lacks.

    Returns:
        What it left, and how many messages came.
    """
    checkout(outside, app.sources.partition("/")[0])
    for file, text in app.configs.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / file).is_file():
            (folder / file).write_text(text.format(**media, here=folder))
    compiled(app, outside, folder)
    port = free_port()
    if "{mqtt}" in app.arguments:
        need_broker()
    camera = [sys.executable, SERVER, SCENE / "conveyor.mp4", str(PORT)]
    server = subprocess.Popen(camera) if "{rtsp}" in app.arguments else None
    try:
        with mqtt_messages(port) if "{mqtt}" in app.arguments else nullcontext([]) as messages:
            done = ran(app, folder, media | {"here": folder, "mqtt": port})
    finally:
        if server is not None:
            server.kill()
            server.wait()
    return done, len(messages)


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
def test_it_is_compiled_and_runs_to_its_end(
    outside: Path, media: dict[str, object], tmp_path: Path, name: str
) -> None:
    app = APPS[name]
    done, messages = outcome(app, outside, media, tmp_path)
    output = done.stdout + done.stderr
    found = counted(tmp_path)
    print(f"{name}: exit {done.returncode}, {found}, {messages} messages")
    assert done.returncode == 0, output[-2000:]
    assert "Traceback" not in output
    assert app.says in output
    assert found["frames"] == app.frames
    assert not app.frames or found["results"] >= app.frames


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test1", "test2", "test3", "test4"])
def test_its_twin_in_python_finds_the_same_in_each_frame(
    outside: Path, media: dict[str, object], tmp_path: Path, name: str
) -> None:
    app, twin = APPS[name], python_apps.APPS[name]
    if name == "test3":  # in C it adds the numbers of a batch's frames up
        app = app._replace(arguments="{uri}", frames=python_apps.FRAMES)
        twin = replace(twin, arguments=("-i", "{uri}"))
    copy = python_apps.prepare(checkout(outside, "deepstream_python_apps"), tmp_path)
    done = python_apps.run(twin, copy, tmp_path, Path(str(media["h264"])))
    own, _ = outcome(app, outside, media, copy / "apps" / twin.folder)
    in_c, in_python = (Counter(FRAME.findall(text)) for text in (own.stdout, done.output))
    assert in_c.total() == app.frames
    assert in_c == in_python
    assert sum(int(number) for frame in in_c for number in frame[1:]) > app.frames
