"""The runner of applications: what it starts ends with it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.outside.deepstream_apps import App, run


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare")
def test_an_application_that_hangs_is_ended_with_its_camera(tmp_path: Path) -> None:
    folder = tmp_path / "apps" / "hanging"
    folder.mkdir(parents=True)
    beats = tmp_path / "beats"
    (folder / "app.py").write_text(
        "import sys, time\nwhile True:\n    open(sys.argv[1], 'a').write('.'); time.sleep(0.02)\n"
    )
    app = App("hanging", "app.py", (str(beats),), {}, isolated=True)
    done = run(app, tmp_path, tmp_path, tmp_path / "no film", timeout_s=1)
    if not beats.exists():
        pytest.skip(f"no network of its own can be had here: {done.output}")
    assert done.code == 124
    time.sleep(0.2)
    size = beats.stat().st_size
    time.sleep(0.3)
    assert beats.stat().st_size == size
