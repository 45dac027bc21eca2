"""Engine creators compiled against TensorRT's public headers, of many releases.

`HEADRACE_OUTSIDE/tensorrt-headers` has a folder a release, as for test_tensorrt_plugins.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.infer.model import load_or_build
from tests.infer.model.test_engine_functions_compiled import IMAGE, config, sums_and_one
from tests.outside.test_tensorrt_plugins import build, releases, version


@pytest.mark.slow
def test_creators_of_every_release_build_their_network(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = 0
    for headers in releases(outside):
        release = version(headers)
        if release == 110000:
            continue  # it has no IPluginV2IOExt
        (folder := tmp_path / headers.name).mkdir()
        library = build(
            headers, release, folder, "compiled/creators.cpp", f'-DNAME="{headers.name}"'
        )
        for function in ["Sums"] + ["Implicit"] * (release < 100000):
            plan = load_or_build(config(folder, library, function))
            with plan.open_session() as session:
                found = session.run({"image": IMAGE})["sums_and_one"]
            np.testing.assert_allclose(found.reshape(1, 1, 2, 3), sums_and_one(), rtol=1e-6)
        built += 1
    assert built >= 12
