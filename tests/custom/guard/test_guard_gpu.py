"""Parsers that use a GPU, in this process and in a worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.custom.guard import keeper
from tests.custom.gpu import BROKEN, KINDS, Gpu, gpu_library

pytestmark = [
    pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here"),
    pytest.mark.skipif("HEADRACE_SANITIZED" in os.environ, reason="its runtime is there"),
]
SOURCE = Path(__file__).parents[1] / "sources" / "gpu_parser.cpp"
CALLS = """
import json, sys
import numpy as np
from headrace.custom import open_library
from headrace.custom.guard import GuardOptions
from headrace.errors import ParserError
from headrace.meta import DetectionParams, Layer, NetworkInfo

guard, memory = sys.argv[2], int(sys.argv[3])
options = GuardOptions(memory_mib=memory, timeout_s=3.0)
library = open_library(sys.argv[1], guard=guard, guard_options=options)
import os
parse = library.bbox_parser(os.environ.get("PARSER", "ParseOnGpu"))
params = DetectionParams(1, np.full(1, 0.5, np.float32))
found = []
for value in map(float, sys.argv[4:]):
    rows = np.arange(1, 41, dtype=np.float32).reshape(10, 4)
    rows[9, 3] = value
    try:
        seen = parse({"rows": Layer("rows", rows)}, NetworkInfo(640, 640, 3), params)
        found.append(bool(np.array_equal(seen.boxes[:, 2:], 2 * rows[:, 2:])) and len(seen) == 10)
    except ParserError as error:
        found.append(str(error))
print(json.dumps(found))
"""


@pytest.fixture(scope="session", params=KINDS)
def gpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Gpu:
    return gpu_library(request.param, SOURCE, tmp_path_factory)


@pytest.mark.slow
@pytest.mark.parametrize(("guard", "memory"), [("never", 0), ("always", 4096), ("always", 512)])
@pytest.mark.sampled
def test_boxes_are_the_same(gpu: Gpu, tmp_path: Path, guard: str, memory: int) -> None:
    assert gpu.run(CALLS, guard, memory, 3, 5, cwd=tmp_path) == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["never", "always"])
def test_a_parser_for_device_memory_gets_it(gpu: Gpu, tmp_path: Path, guard: str) -> None:
    found = gpu.run(CALLS, guard, 4096, 3, 5, 7, cwd=tmp_path, PARSER="ParseOnGpu_cuda")
    assert found == [True, True, True]


@pytest.mark.parametrize("more", [{}, {"GPU_PARSER_THREAD": "1"}], ids=["here", "in a thread"])
@pytest.mark.sampled
def test_a_broken_gpu_ends_the_worker_not_the_stream(
    gpu: Gpu, tmp_path: Path, more: dict[str, str]
) -> None:
    calls = 3, 5, 666, 5
    good, quick, bad, after = gpu.run(CALLS, "always", 4096, *calls, cwd=tmp_path, **more)
    assert (good, quick, after) == (True, True, True)
    assert f"ParseOnGpu: the function {BROKEN}; its worker process is started again" in bad
    assert "compute-sanitizer" in bad
    assert "headrace replay" in bad


REPLAYS = """
import json, subprocess, sys
from pathlib import Path

(saved,) = Path(sys.argv[2]).iterdir()
told = []
for how in ([], ["--guard"]):
    command = [sys.executable, "-m", "headrace", "replay", str(saved), *how]
    done = subprocess.run(command, capture_output=True, text=True)
    told.append([done.returncode, done.stderr])
print(json.dumps(told))
"""


@pytest.mark.slow
def test_a_replay_names_the_gpu(gpu: Gpu, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    gpu.run(CALLS, "always", 4096, 666, cwd=tmp_path, HEADRACE_CRASH_DIR=str(cases))
    for code, told in gpu.run(REPLAYS, cases, cwd=tmp_path):
        assert code == 5
        assert BROKEN in told


def test_without_a_worker_the_parser_says_false(gpu: Gpu, tmp_path: Path) -> None:
    good, bad, after = gpu.run(CALLS, "never", 0, 3, 666, 5, cwd=tmp_path)
    assert good is True
    assert "returned false" in bad
    assert "returned false" in after


@pytest.mark.slow
def test_an_endless_kernel_is_ended(gpu: Gpu, tmp_path: Path) -> None:
    good, late, after = gpu.run(CALLS, "always", 4096, 3, 667, 5, cwd=tmp_path)
    assert good is True
    assert "did not return within" in late
    assert after is True
