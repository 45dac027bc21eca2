"""What applications find: by plain Python with headrace-gst, else in `headrace exec` alone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# The environment's packages without one of the files that Python reads at its start.
_WITHOUT = """
import os, site, sys
folder = {folder!r}
sys.path.append(folder)
for name in sorted(os.listdir(folder)):
    if name.endswith(".pth") and name != "headrace_applications.pth":
        site.addpackage(folder, name, None)
"""
_SOURCE = f"import sys; sys.path.insert(0, {str(ROOT / 'packaging' / 'gst')!r})\n"
_INSTALLED = _SOURCE + "import headrace_applications; headrace_applications.install()\n"
"""What Python does at its start where headrace-gst is installed."""
_GST = """
import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
"""
_FOUND = """
from importlib.util import find_spec
print(*[name for name in ("pyds", "pyservicemaker") if find_spec(name)])
"""


def _python(code: str, *, plain: bool) -> str:
    folder = sysconfig.get_path("purelib")
    if plain:
        command = [sys.executable, "-S", "-c", _WITHOUT.format(folder=folder) + code]
    else:
        command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_headrace_gst_probing_gives_the_true_answer() -> None:
    assert _python("import headrace" + _FOUND, plain=True).split() == []


def test_with_it_every_python_finds_them() -> None:
    if not Path(sysconfig.get_path("purelib"), "headrace_applications.pth").is_file():
        pytest.skip("headrace-gst is not installed")
    assert _python(_FOUND, plain=False).split() == ["pyds", "pyservicemaker"]
    assert _python("import sys; print('headrace' in sys.modules)", plain=False) == "False\n"


@pytest.mark.slow
def test_a_script_of_exec_finds_them_without_it(gst: Any, tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "import gi, pyds\ngi.require_version('Gst', '1.0')\nfrom gi.repository import Gst\n"
        "print(pyds.NvDsBatchMeta.__name__, Gst.ElementFactory.find('nvinfer') is not None)\n"
    )
    code = f"from headrace.cli import main; main(['exec', {str(script)!r}])"
    assert _python(code, plain=True).splitlines()[-1] == "NvDsBatchMeta True"


@pytest.mark.slow
def test_a_script_without_pyds_has_the_elements_after_its_first_init(gst: Any) -> None:
    code = """
before = "headrace.gstreamer.elements" in sys.modules
ok, rest = Gst.init_check(["app", "clip.mp4"])
print(before, ok, rest, Gst.ElementFactory.make("nvstreammux", None) is not None)
"""
    told = _python(_INSTALLED + _GST + code, plain=True)
    assert told == "False True ['app', 'clip.mp4'] True\n"


@pytest.mark.parametrize("first", ["import pyds", "pass"])
@pytest.mark.sampled
def test_init_answers_as_a_first_call_whatever_was_imported(gst: Any, first: str) -> None:
    answers = {
        "tuple(Gst.init_check(None))": "(True, [])",
        "tuple(Gst.init_check(['app', 'x']))": "(True, ['app', 'x'])",
        "Gst.init(['app', 'x'])": "['app', 'x']",
        "Gst.init(None)": "[]",
    }
    code = f"""
import os
for call in {list(answers)}:
    if os.fork() == 0:
        print(call, eval(call), sep=": ", flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    told = _python(_INSTALLED + first + _GST + code, plain=True)
    assert told.splitlines() == [f"{call}: {answer}" for call, answer in answers.items()]


@pytest.mark.slow
def test_adding_to_a_pipeline_answers_true(gst: Any) -> None:
    """As in C, and in Python without GstPython: `if not pipeline.add(element)` is common."""
    code = """
Gst.init(None)
pipeline, element = Gst.Pipeline(), Gst.ElementFactory.make("nvstreammux")
print(pipeline.add(element), Gst.Bin.new("b").add(Gst.ElementFactory.make("nvdsosd")))
try:
    pipeline.add(element)
except Exception as error:
    print(type(error).__name__)
"""
    told = _python(_INSTALLED + _GST + code, plain=True)
    assert told in ("True True\nAddError\n", "True True\n")


@pytest.mark.slow
def test_a_module_over_gst_brings_the_elements_too(gst: Any) -> None:
    code = """
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstBase", "1.0")
from gi.repository import GstBase
from gi.repository import Gst
Gst.init(None)
print(Gst.ElementFactory.find("nvinfer") is not None)
"""
    assert _python(_INSTALLED + code, plain=True) == "True\n"


def test_switched_off_there_are_no_elements(gst: Any) -> None:
    code = "import os; os.environ['HEADRACE_GST'] = '0'\n" + _INSTALLED + _GST
    code += "Gst.init(None); print(Gst.ElementFactory.find('nvinfer'))"
    assert _python(code, plain=True) == "None\n"


@pytest.mark.slow
def test_cuda_is_there_once_gi_is(gst: Any) -> None:
    before = "from importlib.util import find_spec; print(find_spec('cuda'))\n"
    code = """
from cuda.bindings import driver, nvrtc, runtime
from cuda import cuda, cudart
print(*runtime.cudaGetDeviceCount(), *driver.cuInit(0), driver.CUresult.CUDA_SUCCESS,
      runtime.cudaGetDeviceProperties(0)[1].integrated, nvrtc.nvrtcResult.NVRTC_SUCCESS,
      cuda.CUresult is driver.CUresult, cudart.cudaError_t is runtime.cudaError_t)
"""
    told = _python(_INSTALLED + before + _GST + code, plain=True).splitlines()
    assert told == ["None", "0 1 0 0 0 0 True True"]
