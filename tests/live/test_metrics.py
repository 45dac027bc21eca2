"""Metrics of what dies: workers of guarded libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace.custom.guard import keeper
from headrace.live.metrics import metrics_text
from tests.conftest import CONFIG, write_mean_model
from tests.custom.conftest import Compile, compile_parser

__all__ = ["compile_parser"]
DIES_ON_WHITE = """
#include <cstdlib>
#include "nvdsinfer_custom_impl.h"

extern "C" bool Parse(std::vector<NvDsInferLayerInfo> const &layers, NvDsInferNetworkInfo const &,
                      NvDsInferParseDetectionParams const &,
                      std::vector<NvDsInferObjectDetectionInfo> &) {
  if (static_cast<const float *>(layers[0].buffer)[0] > 0.9f) std::abort();
  return true;
}
"""


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
def test_workers_that_die_are_counted(
    compile_parser: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CRASH_DIR", str(tmp_path / "crashes"))
    write_mean_model(tmp_path / "mean.onnx")
    (tmp_path / "labels.txt").write_text("thing\n")
    (tmp_path / "dies.cpp").write_text(DIES_ON_WHITE)
    library = compile_parser(tmp_path / "dies.cpp", "-O0")
    text = CONFIG.replace("mean_parser.py", str(library)).replace("name=parse", "name=Parse")
    (tmp_path / "pgie.txt").write_text(f"{text}custom-lib-guard=always\n")
    images = [np.full((32, 32, 3), value, np.uint8) for value in (60, 255, 61, 255, 62)]
    pipeline = headrace.open_pipeline(
        tmp_path / "pgie.txt", sources=[headrace.ArraySource(images, name="cam")]
    )
    name = f'headrace_worker_deaths_total{{library="{library}"}}'

    def deaths() -> list[str]:
        return [line for line in metrics_text(pipeline).splitlines() if name in line]

    before = deaths()
    with pytest.warns(headrace.HeadraceWarning, match="aborted"):
        pipeline.run()
    assert (before, deaths()) == ([], [f"{name} 2"])
    assert 'headrace_frames_total{source="cam",id="0"} 5' in metrics_text(pipeline).splitlines()
