"""Published DeepStream applications in Python, byte for byte, on the demo scene."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace.gstreamer.pyds.loading import provide_bindings
from tests.outside.conftest import checkout, need_broker
from tests.outside.deepstream_apps import APPS, elementary, long_video, prepare, run


@pytest.fixture(scope="module")
def prepared(outside: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The copy of the applications, the scratch folder, the bare video."""
    folder = checkout(outside, "deepstream_python_apps")
    if not provide_bindings() or shutil.which("gst-launch-1.0") is None:
        pytest.skip("GStreamer is not installed")
    scratch = tmp_path_factory.mktemp("apps")
    long_video(scratch)
    return prepare(folder, scratch), scratch, elementary(scratch)


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
def test_it_runs_to_its_end(prepared: tuple[Path, Path, Path], name: str) -> None:
    app = APPS[name]
    if app.isolated and shutil.which("unshare") is None:
        pytest.skip("there is no unshare to give it a network of its own")
    if app.messages:
        need_broker()
    copy, scratch, video = prepared
    done = run(app, copy, scratch, video)
    assert done.code == 0, done.output[-2000:]
    assert done.complete(app), done.output[-2000:]
    assert done.messages == app.messages
    assert "Traceback" not in done.output
    assert "CRITICAL" not in done.output
    assert [kind for kind in app.finds if not done.metadata.get(kind)] == []
    if app.finds[:1] == ("objects",):
        assert done.metadata["objects"] > 3 * done.metadata["frames"]
