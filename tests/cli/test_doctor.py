"""`noria doctor` tells what can be used, and what is there and cannot."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from noria._core.errors import EngineError, MissingExtraError
from noria.diagnose.doctor import engines, gpu, surroundings, trial
from noria.diagnose.doctor.checks import Check
from noria.diagnose.doctor.examination import examine
from tests.warm import noria


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_this_machine_can_run_models() -> None:
    done = noria("doctor", "--json")
    found = json.loads(done.stdout)
    checks = {c["name"]: c for c in found["checks"]}
    assert checks["onnxruntime"]["state"] == "ok"
    assert "ran a small model on cpu" in checks["onnxruntime"]["text"]
    problems = [c for c in found["checks"] if c["state"] == "problem"]
    assert done.returncode == int(bool(problems))
    text = noria("doctor").stdout
    assert "Runtimes" in text
    assert f"noria run computes on {found['device']}" in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("raise ImportError('libfoo.so.1 is missing')", "libfoo.so.1 is missing"),
        ("import os\nos.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("import os\nos._exit(3)", "ended with exit status 3: nothing was printed"),
        ("import os\nos.kill(os.getpid(), 40)", "killed by signal 40"),
    ],
)
def test_a_runtime_that_is_broken_is_a_problem(tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "__init__.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        check = engines._checked("openvino")
    assert check.state == "problem"
    assert wanted in check.text


def test_a_runtime_that_computes_wrongly_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    real = trial.get_backend("onnxruntime")

    class Doubling:
        def __init__(self, *given: object) -> None:
            self.runner = real.open(*given)
            self.device, self.close = "cpu", self.runner.close

        def run(self, feeds: dict[str, object]) -> list[object]:
            return [2 * array for array in self.runner.run(feeds)]

    assert "version" in trial.trial("onnxruntime")
    backend = SimpleNamespace(open=Doubling, version=real.version)
    monkeypatch.setattr(trial, "get_backend", lambda name: backend)
    assert "gave wrong results" in trial.trial("onnxruntime")["error"]


def test_two_packages_of_one_runtime_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"onnxruntime": "1.24", "onnxruntime-gpu": "1.31"}
    monkeypatch.setattr(engines, "packages", lambda: both)
    monkeypatch.setattr(engines, "_checked", lambda name: Check("engine", name, "ok", ""))
    check = by_name(list(engines.engine_checks()))["packages"]
    assert check.state == "problem"
    assert "onnxruntime 1.24 and onnxruntime-gpu 1.31" in check.text
    assert "pip uninstall -y onnxruntime onnxruntime-gpu && pip install" in check.fix[0]


def test_a_driver_that_fails_is_a_problem_and_none_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: "there is no NVIDIA driver (libcuda.so.1)")
    assert [c.state for c in gpu.gpu_checks()] == ["absent"]
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: "cuInit: unknown error")
    (check,) = gpu.gpu_checks()
    assert check.state == "problem"
    assert check.fix


def test_what_is_missing_has_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> object:
        raise MissingExtraError("GStreamer cannot be used", fix="apt install it")

    monkeypatch.setenv("CXX", "no-such-compiler")
    checks = by_name(list(surroundings.tool_checks(absent)))
    assert checks["GStreamer"] == Check(
        "tools", "GStreamer", "absent", "GStreamer cannot be used", ("apt install it",)
    )
    assert checks["compiler"].state == "absent"
    assert "apt install g++" in checks["compiler"].fix[0]
    monkeypatch.setattr(surroundings, "requires", lambda name: ["nothing>=2; extra == 'x'"])
    for check in surroundings.extra_checks():
        assert check.state == "ok" or "pip install" in check.fix[0]


def test_files_of_the_working_folder_change_nothing(tmp_path: Path) -> None:
    for name in ("json", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not this one')")
    found = json.loads(noria("doctor", "--json", cwd=tmp_path).stdout)
    (check,) = [c for c in found["checks"] if c["name"] == "onnxruntime"]
    assert check["state"] == "ok", check


@pytest.mark.parametrize("text", ["print('hi'); raise RuntimeError('half')", "raise SystemExit(0)"])
def test_bindings_that_fail_disturb_nothing_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "gi.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "noria", "doctor", "--json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    checks = {c["name"]: c for c in json.loads(done.stdout)["checks"]}
    assert checks["GStreamer"]["state"] == "absent"
    assert checks["compiler"]["state"] == "ok"


def test_an_area_that_fails_is_a_problem_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> object:
        raise OSError("the loader is broken")

    monkeypatch.setattr(engines, "_checked", lambda name: Check("engine", name, "ok", ""))
    found = examine(broken)
    (problem,) = [c for c in found.problems if c.area == "tools"]
    assert "the loader is broken" in problem.text
    assert any(c.area == "extra" for c in found.checks)


def test_the_record_of_the_video_unit_is_that_of_its_header() -> None:
    assert ctypes.sizeof(gpu._Caps) == 88
    assert gpu._Caps.supported.offset == 24
    assert gpu._Caps.max_width.offset == 28


def test_a_library_that_refuses_the_kernel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise EngineError("the NVIDIA driver refuses noria's kernel", fix="a newer driver")

    monkeypatch.setattr(gpu, "Kernel", refused)
    check = gpu._kernel()
    assert (check.state, check.fix) == ("problem", ("a newer driver",))


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    done = noria("doctor", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []
    assert sys.version.split()[0] in done.stdout
