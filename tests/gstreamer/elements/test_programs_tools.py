"""GStreamer's own tools behind `headrace exec`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer.elements.programs import is_tool
from headrace.gstreamer.elements.register import ELEMENTS, factory
from tests.gstreamer.conftest import SCENE
from tests.warm import started_anew

LOADER = list(Path("/usr/lib").glob("*/gstreamer-1.0/libgstpython.so"))


@pytest.fixture
def tools(gst: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not LOADER or shutil.which("gst-inspect-1.0") is None:
        pytest.skip("GStreamer's tools or its loader of Python are not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_tools_are_programs_of_gstreamer() -> None:
    assert not is_tool("gst-no-such-tool")
    assert not is_tool("ls")
    assert not is_tool("./gst-script.py")


@pytest.mark.slow
def test_inspect_shows_properties_and_only_there(tools: None, tmp_path: Path) -> None:
    done = started_anew("exec", "gst-inspect-1.0", "nvstreammux")
    assert done.returncode == 0, done.stderr
    assert "batched-push-timeout" in done.stdout
    assert "sink_%u" in done.stdout
    folder = next((tmp_path / "cache" / "headrace").iterdir())
    assert {p.stem for p in (folder / "python").glob("*.py")} == set(ELEMENTS)
    assert (folder / "registry").is_file()
    assert "GST_PLUGIN_PATH" not in os.environ


@pytest.mark.slow
def test_another_python_may_be_first_on_the_path(
    tools: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    done = started_anew("exec", "gst-inspect-1.0", "nvinfer")
    assert done.returncode == 0, done.stderr
    assert "config-file-path" in done.stdout
    assert "ImportError" not in done.stderr


@pytest.mark.slow
def test_each_element_shows_its_properties(tools: None) -> None:
    missing = {}
    for name in ELEMENTS:
        done = started_anew("exec", "gst-inspect-1.0", name)
        assert done.returncode == 0, done.stderr
        shown = set(re.findall(r"^  ([\w-]+) *: ", done.stdout, re.M))
        kind: Any = factory(name)[2]
        if lacking := set(kind.PROPERTIES) - shown:
            missing[name] = lacking
    assert missing == {}


@pytest.mark.slow
def test_a_line_of_gst_launch_writes_a_video(tools: None, tmp_path: Path) -> None:
    for name in ("config_infer_primary.txt", "detector.onnx", "labels.txt", "conveyor_parser.py"):
        (tmp_path / name).write_bytes((SCENE / name).read_bytes())
    line = (
        f"-q filesrc location={SCENE}/conveyor.mp4 ! qtdemux ! h264parse ! nvv4l2decoder ! "
        "m.sink_0 nvstreammux name=m batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={tmp_path}/config_infer_primary.txt ! nvvideoconvert ! nvdsosd "
        f"! nvv4l2h264enc ! h264parse ! mp4mux ! filesink location={tmp_path}/out.mp4"
    )
    done = started_anew("exec", "gst-launch-1.0", *line.split())
    assert done.returncode == 0, done.stderr
    from headrace.media import open_source

    with open_source(str(tmp_path / "out.mp4")) as video:
        assert len(list(video)) == 250


def test_python_answers_only_what_nobody_else_has(gst: Any, tmp_path: Path) -> None:
    """An installed `pyds` wins; `cuda` is answered for applications of GStreamer alone."""
    (tmp_path / "pyds.py").write_text("OWN = True\n")
    code = (
        "import importlib.util as u\n"
        "print(u.find_spec('pyds').origin)\n"
        "print(u.find_spec('cuda') if u.find_spec('cuda') is None else 'cuda')"
    )
    run = lambda **more: subprocess.run(  # noqa: E731
        [sys.executable, "-c", code], env={**os.environ, **more}, capture_output=True, text=True,
        cwd=tmp_path, check=True,
    ).stdout.split()  # fmt: skip
    assert run() == [str(tmp_path / "pyds.py"), "None"]
    (tmp_path / "pyds.py").unlink()
    assert run()[0] == "None"  # no file: it is Headrace's
    off = subprocess.run(
        [sys.executable, "-c", "import pyds"], env={**os.environ, "HEADRACE_GST": "0"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "No module named 'pyds'" in off.stderr


@pytest.mark.slow
def test_tests_skip_where_the_elements_are_switched_off(gst: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
         str(Path(__file__).parents[1] / "pyds" / "test_bridge.py")],
        env={**os.environ, "HEADRACE_GST": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "HEADRACE_GST=0 switches the elements off" in done.stdout
    assert re.search(r"^\d+ skipped in", done.stdout, re.M)


@pytest.mark.slow
def test_an_exception_of_c_plus_plus_does_not_end_a_process_with_gstreamer(gst: Any) -> None:
    """onnxruntime throws one within itself at each run into buffers of ours, on two threads."""
    code = """
import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
import threading
import onnxruntime as ort
def throw():
    for _ in range(300):
        try:
            ort.RunOptions().get_run_config_entry("nothing")
        except Exception:
            continue
        raise SystemExit("it did not throw")
threads = [threading.Thread(target=throw) for _ in range(2)]
for one in threads: one.start()
for one in threads: one.join()
print("alive")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr[-500:]
