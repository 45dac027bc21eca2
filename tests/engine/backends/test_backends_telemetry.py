"""No runtime leaves files in the user's cache or sends events, unless the user wants it to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import write_mean_model

RUN = """
import numpy as np
from headrace.engine import build
from headrace.network import network_from_onnx
with build(network_from_onnx("mean.onnx")).open_session(threads=1) as session:
    session.run({s.name: np.zeros([max(d, 1) for d in s.dims], np.float32) for s in session.inputs})
"""


def test_a_run_writes_nothing_into_the_cache(tmp_path: Path) -> None:
    write_mean_model(tmp_path / "mean.onnx")
    home = tmp_path / "home"
    home.mkdir()
    environment = {k: v for k, v in os.environ.items() if "TELEMETRY" not in k and "XDG" not in k}
    subprocess.run(
        [sys.executable, "-c", RUN], check=True, cwd=tmp_path, env=environment | {"HOME": str(home)}
    )
    assert list(home.rglob("*")) == []


OPENVINO = """
import sys, threading
from multiprocessing import get_start_method
import headrace.engine.backends.openvino
start = get_start_method(allow_none=True)
print("openvino_telemetry" in sys.modules, threading.active_count(), start)
"""


@pytest.mark.slow
def test_openvino_reports_no_import() -> None:
    pytest.importorskip("openvino_telemetry")
    done = subprocess.run([sys.executable, "-c", OPENVINO], check=True, capture_output=True)
    assert done.stdout == b"False 1 None\n"
