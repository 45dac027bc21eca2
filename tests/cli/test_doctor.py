"""`headrace doctor` tells what can be used, and what is there and cannot."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, Self

import pytest

from headrace._core import _native
from headrace._core.errors import EngineError, MissingExtraError
from headrace.diagnose.doctor import engines, examination, gpu, surroundings, trials
from headrace.diagnose.doctor.checks import Area, Check
from headrace.diagnose.doctor.examination import examine, examine_part
from headrace.diagnose.doctor.trials import Trials
from tests.inside import headrace

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of this machine."""
    folder = tmp_path_factory.mktemp("doctor")
    done = headrace("doctor", "--json", cwd=folder)
    assert os.listdir(folder) == []
    found = json.loads(done.stdout)
    assert done.returncode == int(any(c["state"] == "problem" for c in found["checks"]))
    return found


@pytest.mark.slow
def test_this_machine_can_run_models(report: Report) -> None:
    checks = {c["name"]: c for c in report["checks"]}
    assert checks["onnxruntime"]["state"] == "ok"
    assert "ran a small model on cpu" in checks["onnxruntime"]["text"]


@pytest.mark.slow
def test_it_tries_the_protections_of_a_worker(report: Report) -> None:
    checks = {c["name"]: c for c in report["checks"] if c["area"] == "guard"}
    assert all(check["state"] != "problem" for check in checks.values())
    if checks["workers"]["state"] == "ok":
        assert checks.keys() == {"workers", "Landlock", "protections"}
        version = _native.guard_landlock_version()
        assert checks["Landlock"]["state"] == ("ok" if version else "absent")
        assert f"version {version}" in checks["Landlock"]["text"] or not version


def doctor_beside(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the doctor where packages of a folder come first."""
    return subprocess.run(
        [sys.executable, "-m", "headrace", "doctor", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
    )


BREAKING = {
    "import os\nos.kill(os.getpid(), 11)": "killed by SIGSEGV",
    "import os\nos._exit(3)": "ended with exit status 3: nothing was printed",
    "import os\nos._exit(0)": "ended with exit status 0: nothing was printed",
    "import os\nos.kill(os.getpid(), 40)": "killed by signal 40",
    "while True: pass": "did not end within 3 s",
}


@pytest.mark.parametrize("text", BREAKING)
@pytest.mark.sampled
def test_a_part_that_breaks_its_process_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "__init__.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(trials, "_LONGEST_S", 3)
    with Trials(["openvino"]) as started:
        (check,) = started.checks("engine", "openvino")
    assert (check.name, check.state) == ("openvino", "problem")
    assert BREAKING[text] in check.text
    assert check.fix == ("headrace doctor --part openvino shows what it prints",)


@pytest.mark.parametrize(
    ("part", "module", "name"),
    [("openvino", "openvino", "openvino"), ("gstreamer", "gi", "GStreamer")],
)
def test_one_part_alone(tmp_path: Path, part: str, module: str, name: str) -> None:
    (tmp_path / f"{module}.py").write_text("print('hi')\nraise ImportError('libfoo is\\nmissing')")
    done = doctor_beside(tmp_path, "--part", part)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith("  problem ")]
    assert name in lines[at]
    assert lines[at].endswith(r"libfoo is\nmissing")
    assert lines[-1] == "1 problem"
    assert "hi" not in lines
    wrong = headrace("doctor", "--part", "heart")
    assert wrong.returncode == 2
    assert "'heart' is none of gpu, onnxruntime" in wrong.stderr


def test_leaving_ends_what_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openvino.py").write_text("import time\ntime.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    started = Trials(["openvino"])
    with pytest.raises(KeyboardInterrupt), started:
        raise KeyboardInterrupt
    (trial,) = started._trials.values()
    assert trial.process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.sampled
def test_a_signal_ends_the_trials_too(tmp_path: Path, number: signal.Signals) -> None:
    mark = f"import time; time.sleep(61.{os.getpid()})"
    (tmp_path / "openvino.py").write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {mark!r}])"
    )
    code = "from headrace.diagnose.doctor.trials import Trials\n"
    code += "with Trials(['openvino']) as started: started.checks('engine', 'openvino')"
    doctor = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: running(mark))
    doctor.send_signal(number)
    assert doctor.wait(20) == -signal.SIGINT  # as any KeyboardInterrupt, here of `Trials`
    wait_until(lambda: not running(mark))


def running(mark: str) -> bool:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return any(line.endswith(mark) for line in found.stdout.splitlines())


def wait_until(true: Callable[[], bool]) -> None:
    end = monotonic() + 30
    while not true():
        assert monotonic() < end
        sleep(0.1)


HARMLESS = {
    "a process that it leaves": "import subprocess\nsubprocess.Popen(['sleep', '50'])\n",
    "much talk": "import sys\nsys.stderr.write('talk\\n' * 100_000)\n",
    "a goodbye": "import atexit, os\natexit.register(os.write, 1, b'goodbye')\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HARMLESS)
@pytest.mark.sampled
def test_what_a_package_does_beside_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "openvino.py").write_text(HARMLESS[kind] + "raise ImportError('the reason')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    start = monotonic()
    with Trials(["openvino"]) as started:
        (check,) = started.checks("engine", "openvino")
    assert check.text.endswith("the reason")
    assert monotonic() - start < 30


def test_a_broken_part_of_headrace_s_own_needs_is_told(tmp_path: Path) -> None:
    (tmp_path / "av.py").write_text("raise ImportError('libavcodec.so is missing')\n")
    done = doctor_beside(tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "libavcodec.so is missing" in done.stderr
    assert "pip install --force-reinstall" in done.stderr


def test_a_runtime_that_computes_wrongly_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engines.get_backend("onnxruntime")

    class Doubling:
        def __init__(self, *given: object) -> None:
            self.runner = real.open(*given)
            self.device, self.close = "cpu", self.runner.close

        def run(self, feeds: dict[str, object]) -> list[object]:
            return [2 * array for array in self.runner.run(feeds)]

    assert engines.engine_check("onnxruntime").state == "ok"
    backend = SimpleNamespace(open=Doubling, version=real.version)
    monkeypatch.setattr(engines, "get_backend", lambda name: backend)
    check = engines.engine_check("onnxruntime")
    assert check.state == "problem"
    assert "gave wrong results" in check.text


def test_two_packages_of_one_runtime_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"onnxruntime": "1.24", "onnxruntime-gpu": "1.31"}
    monkeypatch.setattr(engines, "packages", lambda: both)
    (check,) = engines.package_checks(gpu=False)
    assert check.state == "problem"
    assert "onnxruntime 1.24 and onnxruntime-gpu 1.31" in check.text
    assert "pip uninstall -y onnxruntime onnxruntime-gpu && pip install" in check.fix[0]


def test_a_driver_that_fails_is_a_problem_and_none_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: "there is no NVIDIA driver (libcuda.so.1)")
    monkeypatch.setattr(gpu, "no_gpu_driver", lambda: True)
    assert [c.state for c in gpu.gpu_checks()] == ["absent"]
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: "cuInit: unknown error")
    monkeypatch.setattr(gpu, "no_gpu_driver", lambda: False)
    (check,) = gpu.gpu_checks()
    assert check.state == "problem"
    assert check.fix


def test_what_is_missing_has_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> object:
        raise MissingExtraError("GStreamer cannot be used", fix="apt install it")

    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(surroundings, "gstreamer", absent)
    assert surroundings.gstreamer_check() == Check(
        "tools", "GStreamer", "absent", "GStreamer cannot be used", ("apt install it",)
    )
    (compiler,) = surroundings.compiler_checks()
    assert compiler.state == "absent"
    assert "apt install g++" in compiler.fix[0]
    monkeypatch.setattr(surroundings, "requires", lambda name: ["nothing>=2; extra == 'x'"])
    for check in surroundings.extra_checks():
        assert check.state == "ok" or "pip install" in check.fix[0]


def test_storages_that_work_and_packages_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setattr(surroundings, "usable_schemes", lambda: {"s3": False, "gs": True})
    texts = {check.name: check.text for check in surroundings.extra_checks()}
    assert texts["remote"].startswith("fsspec ")
    assert texts["remote"].endswith(", gs:// works, s3:// needs pip install s3fs")
    assert "pip install" not in texts["arrow"]


@pytest.mark.slow
def test_files_of_the_working_folder_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    with Trials(["onnxruntime"]) as started:
        checks = started.checks("engine", "onnxruntime")
    assert {check.state for check in checks} == {"ok"}


@pytest.mark.parametrize("text", ["print('hi'); raise RuntimeError('half')", "raise SystemExit(0)"])
@pytest.mark.slow
def test_bindings_that_fail_disturb_nothing_else(tmp_path: Path, report: Report, text: str) -> None:
    (tmp_path / "gi.py").write_text(text)
    done = doctor_beside(tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert sys.version.split()[0] in done.stdout
    assert "Runtimes" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    states = {words[1]: words[0] for words in lines if len(words) > 1}
    assert (states["GStreamer"], states["compiler"]) == ("problem", "ok")
    assert f"headrace run computes on {report['device']}" in done.stdout


class NoTrials(Trials):
    """The parts that have a process each stay out of it."""

    def __enter__(self) -> Self:
        return self

    def checks(self, area: Area, name: str) -> list[Check]:
        return []


def test_a_part_that_fails_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> object:
        raise OSError("the loader is broken")

    monkeypatch.setattr(surroundings, "gstreamer", broken)
    (problem,) = examine_part("gstreamer").problems
    assert problem.area == "tools"
    assert "the loader is broken" in problem.text
    monkeypatch.setattr(examination, "compiler_checks", broken)
    monkeypatch.setattr(examination, "Trials", NoTrials)
    found = examine()
    assert [c.text for c in found.problems if c.area == "tools"] == [
        "cannot be examined: OSError: the loader is broken"
    ]
    assert any(c.area == "extra" for c in found.checks)


def test_the_record_of_the_video_unit_is_that_of_its_header() -> None:
    assert ctypes.sizeof(gpu._Caps) == 88
    assert gpu._Caps.supported.offset == 24
    assert gpu._Caps.max_width.offset == 28


def test_a_library_that_refuses_the_kernel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise EngineError("the NVIDIA driver refuses headrace's kernel", fix="a newer driver")

    monkeypatch.setattr(gpu, "Kernel", refused)
    check = gpu._kernel()
    assert (check.state, check.fix) == ("problem", ("a newer driver",))
