"""Standard plugins that engine creators of TensorRT's own headers take from the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from headrace.custom.guard.keeper import can_guard
from headrace.infer.model import load_or_build
from tests.infer.model.test_engine_functions_compiled import IMAGE, config
from tests.trt.host.conftest import LINES, Compile


@pytest.mark.parametrize("guard", ["never"] + ["always"] * (can_guard() is None))
@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_factories_and_the_registry_give_those_of_the_host(
    compile_for_tensorrt: Compile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: int,
    guard: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = []
    if line < 10:
        stub, soname = tmp_path / "libnvinfer_plugin.so", f"libnvinfer_plugin.so.{line}"
        link = ["g++", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{soname}", "-o", stub]
        subprocess.run(link, check=True)
        flags = ["-Wl,--no-as-needed", str(stub)]
    library = compile_for_tensorrt("compiled/standard.cpp", line, *flags)
    cfg = config(tmp_path, library, "Standard", guard)
    cells = IMAGE.reshape(1, 3, 2, 2, 3, 2)
    y = cells.transpose(0, 3, 5, 1, 2, 4).reshape(1, 12, 2, 3)
    if line < 10:  # the functions are gone from 10 on
        y = np.clip(np.where(y < 0, y / 2, y), -5, 20)
    for _ in range(2):
        with load_or_build(cfg).open_session() as session:
            np.testing.assert_array_equal(session.run({"image": IMAGE})["y"], y)
