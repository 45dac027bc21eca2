"""Plugins of C++ whose names and shapes are not to be believed, and that always crash."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

from headrace.config import ModelConfig
from headrace.custom.guard import keeper
from headrace.infer.model import load_or_build
from tests.trt.host import conftest
from tests.trt.host.conftest import Compile
from tests.warm import headrace

compile_host = conftest.compile_host
GUARDS = ["never"] + ["always"] * (keeper.can_guard() is None)
CONFIG = """[property]
onnx-file=m.onnx
network-type=100
gie-unique-id=1
custom-lib-path={library}
custom-lib-guard={guard}
"""


def write_model(folder: Path, library: Path, guard: str) -> Path:
    """A config, whose model has the plugin in its middle."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Hostile", ["r"], ["s"], name="hostile"),
        helper.make_node("Neg", ["s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "m.onnx")
    (folder / "c.txt").write_text(CONFIG.format(library=library, guard=guard))
    return folder / "c.txt"


def _run(folder: Path, library: Path, guard: str, how: str) -> subprocess.CompletedProcess[str]:
    write_model(folder, library, guard)
    Image.new("RGB", (16, 16)).save(folder / "p.png")
    return headrace("run", "c.txt", "p.png", "-o", "o.jsonl", cwd=folder, HOSTILE=how)


CASES = [
    ("long", ["libhostile", "name is 'xxxxxxxxxxxxxxxxxxxx'..., longer than 1023 bytes"]),
    ("bytes", ["libhostile", r"name is b'\xff\xfe', which is no UTF-8"]),
    ("type_bytes", ["getPluginType", "UTF-8"]),
    (
        "huge",
        ["layer 'hostile': output 's' of shape (1, 3, 1073741824, 1048576) (float32)"],
    ),
    ("huger", ["layer 'hostile': output 's' of shape (1, 2000000000, 2000000000, 16)", "bytes"]),
]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(("how", "words"), CASES, ids=[how for how, _ in CASES])
@pytest.mark.slow
def test_it_is_told_where_and_what(
    compile_host: Compile, tmp_path: Path, guard: str, how: str, words: list[str]
) -> None:
    done = _run(tmp_path, compile_host("hostile.cpp"), guard, how)
    assert done.returncode == 5, done.stderr
    for text in words:
        assert text in done.stderr
    assert len(done.stderr) < 4000
    assert "surrogates" not in done.stderr


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.slow
def test_a_line_end_in_a_type_stays_on_its_line(
    compile_host: Compile, tmp_path: Path, guard: str
) -> None:
    done = _run(tmp_path, compile_host("hostile.cpp"), guard, "type_lines")
    assert done.returncode == 0, done.stderr
    assert r"no creator is registered for Hos\ntile version 1" in done.stderr


@pytest.mark.skipif("always" not in GUARDS, reason="no workers here")
@pytest.mark.slow
def test_a_plugin_that_always_crashes_fails_the_run(compile_host: Compile, tmp_path: Path) -> None:
    done = _run(tmp_path, compile_host("hostile.cpp"), "always", "crash")
    assert done.returncode == 5, done.stderr
    assert "none of the 1 item(s) of c.txt was inferred" in done.stderr
    assert "its batch has no results" in done.stderr


@pytest.mark.skipif("always" not in GUARDS, reason="no workers here")
@pytest.mark.parametrize("how", ["crash_create", "crash_deserialize"])
@pytest.mark.slow
def test_a_plugin_that_is_never_made_ends_the_run(
    compile_host: Compile, tmp_path: Path, how: str
) -> None:
    library = compile_host("hostile.cpp")
    if how == "crash_deserialize":  # of a saved engine
        assert _run(tmp_path, library, "always", "").returncode == 0
    done = _run(tmp_path, library, "always", how)
    assert done.returncode == 5, done.stderr
    assert "SIGSEGV" in done.stderr
    assert "started again" not in done.stderr


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.sampled
def test_values_beyond_its_type_are_told_once_wherever_it_runs(
    compile_host: Compile, tmp_path: Path, guard: str
) -> None:
    config = write_model(tmp_path, compile_host("hostile.cpp"), guard)
    config.write_text(config.read_text() + "net-scale-factor=1000\n")
    for name in ("p0.png", "p1.png"):
        Image.new("RGB", (16, 16), (200, 9, 9)).save(tmp_path / name)
    done = headrace("run", "c.txt", "p*.png", "-o", "o.jsonl", cwd=tmp_path, HOSTILE="half")
    assert done.returncode == 0, done.stderr
    text = "layer 'hostile': input 0 has values beyond HALF, which ends at 65504"
    assert done.stderr.count(text) == 1


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("sessions", [1, 2])
def test_calls_of_two_contexts_are_under_way_at_once(
    compile_host: Compile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guard: str,
    sessions: int,
) -> None:
    monkeypatch.setenv("HOSTILE", "meets")
    monkeypatch.setenv("HOSTILE_MEET", str(tmp_path / "meet"))
    (tmp_path / "meet").mkdir()
    config = write_model(tmp_path, compile_host("hostile.cpp"), guard)
    config.write_text(f"{config.read_text()}custom-lib-paths=write:meet\n")
    plan = load_or_build(ModelConfig.load(config))
    given = np.ones((1, 3, 16, 16), np.float32)
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        opened = [stack.enter_context(plan.open_session()) for _ in range(sessions)]
        runs = [pool.submit(opened[i % sessions].run, {"x": given}) for i in range(2)]
        assert all(np.array_equal(run.result()["y"], -given) for run in runs)
