"""Which package of ONNX Runtime is there, and what is said of one that is not whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace._core.errors import EngineError
from headrace.engine.backends import onnxruntime_package as package
from tests.network.onnx_models import image_model, save

_HALF = {
    "empty": "",
    "without its native part": "from onnxruntime.capi import _pybind_state\n",
    "that ends the process": "raise SystemExit(0)\n",
    "without half of its names": "class InferenceSession: pass\n",
    "without a file that it reads": "open('/nowhere/ThirdPartyNotices.txt')\n",
}


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the package anew in this test alone, whether it was imported before or not."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "onnxruntime")


@pytest.mark.parametrize("kind", _HALF)
@pytest.mark.sampled
def test_half_a_package_is_one_clear_error(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "onnxruntime"
    folder.mkdir()
    (folder / "__init__.py").write_text(_HALF[kind])
    save(image_model(), tmp_path / "m.onnx")
    (tmp_path / "pgie.txt").write_text("[property]\nonnx-file=m.onnx\nnetwork-type=100\n")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "build", str(tmp_path / "pgie.txt")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    assert "is broken" in done.stderr
    assert "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnx" in done.stderr
    assert f"if {folder} is your own: rename it" in done.stderr


def test_a_file_of_that_name_is_none_of_the_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "onnxruntime.py").write_text("ready = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget(monkeypatch)
    assert package.packages() == {}
    with pytest.raises(
        EngineError, match=r"of no package of pip\) is broken: it has no Inf"
    ) as told:
        package.import_onnxruntime()
    assert f"if {tmp_path / 'onnxruntime.py'} is your own: rename it" in str(told.value)


def test_no_package_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(package, "packages", dict)
    with pytest.raises(EngineError, match=r"onnxruntime is not installed(?s:.*)for the CPU: pip"):
        package.import_onnxruntime()


@pytest.mark.parametrize(
    ("cuda", "wanted"),
    [
        (13000, "'onnxruntime-gpu[cuda,cudnn]'"),
        (12080, "'onnxruntime-gpu[cuda,cudnn]<1.27'"),
        (11080, "which is for CUDA 11.8: onnxruntime-gpu needs 525.60"),
    ],
)
def test_the_fix_is_that_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, cuda: int, wanted: str
) -> None:
    monkeypatch.setattr(package, "why_no_gpu", lambda: None)
    monkeypatch.setattr(package, "driver_cuda", lambda: cuda)
    assert wanted in package.gpu_fix()


def test_two_packages_in_one_folder_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = SimpleNamespace(get_available_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(package, "packages", lambda: {"onnxruntime": "1.24"})
    assert package.why_no_cuda(runtime) == "this onnxruntime is built without CUDA"
    both = {"onnxruntime": "1.24", "onnxruntime-gpu": "1.31"}
    monkeypatch.setattr(package, "packages", lambda: both)
    text = package.why_no_cuda(runtime)
    assert text is not None
    assert "onnxruntime and onnxruntime-gpu are both installed" in text
    runtime.get_available_providers = lambda: ["CUDAExecutionProvider"]
    assert package.why_no_cuda(runtime) is None
    runtime.get_available_providers = lambda: 1 / 0
    assert "does not say what it can use: ZeroDivisionError" in str(package.why_no_cuda(runtime))


def test_packages_of_another_folder_do_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = package.packages()
    assert list(here) in (["onnxruntime"], ["onnxruntime-gpu"])
    other = "onnxruntime-gpu" if "onnxruntime" in here else "onnxruntime"
    record = tmp_path / f"{other.replace('-', '_')}-1.99.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {other}\nVersion: 1.99\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package.packages() == here
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "onnxruntime" / "__init__.py").write_text("")
    forget(monkeypatch)
    assert package.packages() == {other: "1.99"}
