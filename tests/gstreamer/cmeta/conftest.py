"""C applications for the tests: compiled by `headrace compile --exe`, run by `headrace exec`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.custom.compile.build_library import compile_library
from tests.gstreamer.conftest import SCENE
from tests.warm import started_anew

PROGRAMS = Path(__file__).parent / "programs"
Application = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def needs_headers() -> None:
    """Skip where C applications over GStreamer cannot be compiled or run."""
    tool = shutil.which("pkg-config")
    if tool is None or subprocess.run([tool, "--exists", "gstreamer-1.0"], check=False).returncode:
        pytest.skip("GStreamer's headers are not installed")
    if not any(True for _ in Path("/usr/lib").glob("*/gstreamer-1.0/libgstpython.so")):
        pytest.skip("GStreamer's loader of Python is not installed")


@pytest.fixture(scope="session")
def clip(gst: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo scene's start as H.264 without a container, as the samples read it."""
    path = tmp_path_factory.mktemp("clip") / "clip.h264"
    pipeline = gst.parse_launch(
        f"filesrc location={SCENE}/conveyor.mp4 ! qtdemux ! h264parse ! "
        f"video/x-h264,stream-format=byte-stream ! identity eos-after=100 ! "
        f"filesink location={path}"
    )
    pipeline.set_state(gst.State.PLAYING)
    done = gst.MessageType.EOS | gst.MessageType.ERROR
    pipeline.get_bus().timed_pop_filtered(30 * gst.SECOND, done)
    pipeline.set_state(gst.State.NULL)
    return path


@pytest.fixture
def application(needs_headers: None, tmp_path: Path) -> Application:
    """`application(source, arguments…, **options)` compiles a C application and runs it."""

    def run(name: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        target = tmp_path / Path(name).stem
        compile_library([PROGRAMS / name], target, program=True, **options)
        return started_anew("exec", target, *arguments)

    return run
