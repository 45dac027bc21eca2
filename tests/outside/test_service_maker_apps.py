"""Published applications of the service maker, byte for byte, on the demo scene."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headrace.gstreamer.pyds.loading import provide_bindings
from tests.outside.conftest import checkout
from tests.outside.service_maker_apps import APPS, install, run


@pytest.fixture(scope="module")
def installed(
    outside: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, dict[str, object]]:
    """The checkout, the folder of an installation, values for arguments."""
    folder = checkout(outside, "DeepStream")
    if not provide_bindings() or shutil.which("gst-launch-1.0") is None:
        pytest.skip("GStreamer is not installed")
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("only root can give an application an /opt of its own")
    return folder, *install(folder, tmp_path_factory.mktemp("maker"))


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
def test_it_runs_to_its_end(installed: tuple[Path, Path, dict[str, object]], name: str) -> None:
    app = APPS[name]
    if lacking := app.missing():
        pytest.skip(f"needs {', '.join(lacking)}")
    done = run(app, *installed)
    # the applications run in a process of their own and give 0 whatever becomes of it
    assert "Traceback" not in done.output, done.output[-2000:]
    assert done.frames == app.frames, done.output[-2000:]
    assert "CRITICAL" not in done.output
    assert not app.topic or done.messages > done.frames
    assert done.metadata["objects"] > done.frames
