"""What applications find: by plain Python with headrace-gst, else in `headrace exec` alone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

# The environment's packages without one of the files that Python reads at its start.
_WITHOUT = """
import os, site, sys
folder = {folder!r}
sys.path.append(folder)
for name in sorted(os.listdir(folder)):
    if name.endswith(".pth") and name != "headrace_applications.pth":
        site.addpackage(folder, name, None)
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


def test_a_script_of_exec_finds_them_without_it(gst: Any, tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "import gi, pyds\ngi.require_version('Gst', '1.0')\nfrom gi.repository import Gst\n"
        "print(pyds.NvDsBatchMeta.__name__, Gst.ElementFactory.find('nvinfer') is not None)\n"
    )
    code = f"from headrace.cli import main; main(['exec', {str(script)!r}])"
    assert _python(code, plain=True).splitlines()[-1] == "NvDsBatchMeta True"
