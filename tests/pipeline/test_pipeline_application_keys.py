"""Keys of deepstream-app configs whose work is seen in a run alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from headrace.config import load_pipeline
from tests.pipeline.conftest import DETECTOR, FRAMES, READER, Run
from tests.ports import free_port

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")


def test_every_output_of_each_batch_lies_in_its_folder(run: Run, tmp_path: Path) -> None:
    raw = f"infer-raw-output-dir={tmp_path}/raw\n"
    _, metas = run(DETECTOR + raw + READER + raw.replace("raw\n", "crops\n"))
    files = sorted((tmp_path / "raw").iterdir())
    names = {file.name.split("_batch0")[0] for file in files}
    for layer in names:
        mine = [file for file in files if file.name.startswith(f"{layer}_batch0")]
        assert [f.name for f in mine] == [
            f"{layer}_batch{n:010d}_batchsize01.bin" for n in range(FRAMES)
        ]
        sizes = {file.stat().st_size for file in mine}
        assert len(sizes) == 1
        assert np.fromfile(mine[0], np.uint8).tobytes() != bytes(sizes.pop())
    found = sum(len(meta.objects) for meta in metas)
    crops = [file.name for file in (tmp_path / "crops").iterdir()]
    layers = {name.split("_batch0")[0] for name in crops}
    items = sum(int(name.rpartition("batchsize")[2][:-4]) for name in crops)
    assert items % len(layers) == 0
    assert 0 < items <= found * len(layers)  # small objects are not read


def test_key_frames_of_a_source_alone(run: Run) -> None:
    _, metas = run(
        "[source1]\nenable=1\ntype=2\nuri=file://conveyor.mp4\nintra-decode-enable=1\n" + DETECTOR
    )
    times = {n: [m.pts_ns for m in metas if m.source_id == n] for n in (0, 1)}
    assert len(times[0]) == FRAMES
    assert times[1] == [0]  # the video has one key frame


SERVED = """[source-list]
num-source-bins=1
list=file://conveyor.mp4
sensor-id-list=Camera0
use-nvmultiurisrcbin=1
http-port={port}
max-batch-size=3
[source-attr-all]
enable=1
type=3
simulate-fps-interval-ms=60
"""


@pytest.mark.slow
def test_requests_add_a_source_to_a_run_that_ends_by_itself(scene: Path, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    port = free_port()
    path = scene / "served.txt"
    out = tmp_path / "out.jsonl"
    path.write_text(SERVED.format(port=port) + DETECTOR)
    command = [sys.executable, "-m", "headrace", "run", str(path), "-o", str(out)]
    run = subprocess.Popen(
        [*command, "--limit", "40", "--device", "cpu"], stderr=subprocess.PIPE, text=True
    )
    where = f"http://127.0.0.1:{port}/api/v1"
    try:
        for _ in range(400):
            try:
                urllib.request.urlopen(f"{where}/stream/get-stream-info", timeout=1).read()
                break
            except OSError:
                assert run.poll() is None, run.stderr.read() if run.stderr else ""
                time.sleep(0.05)
        camera = {"camera_id": "Camera1", "camera_url": str(scene / "conveyor.mp4"),
                  "change": "camera_add"}  # fmt: skip
        body = json.dumps({"key": "sensor", "value": camera}).encode()
        urllib.request.urlopen(f"{where}/stream/add", body, timeout=5).read()
        _, errors = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 0, errors
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    names = [row["source"] for row in rows]
    assert set(names) == {"Camera0", "Camera1"}
    assert names.count("Camera0") == 40


def test_errors_of_sources_go_to_the_broker_of_the_list(scene: Path) -> None:
    path = scene / "errors.txt"
    path.write_text(
        SERVED.format(port=0) + DETECTOR + "[streammux]\ndrop-pipeline-eos=1\n"
        "[source-list]\nenable-error-propagation=1\nproto-lib=/x/libnvds_mqtt_proto.so\n"
        "conn-str=h;1883\n"
    )
    spec = load_pipeline(path)
    assert (spec.errors_to, spec.rest) == ("mqtt://h:1883/deepstream", None)
    assert (spec.keep_open, spec.end_when_over) == (True, False)
    assert spec.batch_size == 3
    assert spec.sources[0].pace_ms == 60
