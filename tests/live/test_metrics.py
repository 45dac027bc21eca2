"""Metrics of what dies: workers of guarded libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headrace
from headrace.custom.guard import keeper
from headrace.live.metrics import metrics_text
from headrace.meta import Detections, Space
from tests.conftest import CONFIG, write_mean_model
from tests.custom.conftest import Compile, compile_parser
from tests.ports import free_port

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


@pytest.fixture
def config(compile_parser: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config whose library dies of a white image."""
    monkeypatch.setenv("HEADRACE_CRASH_DIR", str(tmp_path / "crashes"))
    write_mean_model(tmp_path / "mean.onnx")
    (tmp_path / "labels.txt").write_text("thing\n")
    (tmp_path / "dies.cpp").write_text(DIES_ON_WHITE)
    library = compile_parser(tmp_path / "dies.cpp", "-O0")
    text = CONFIG.replace("mean_parser.py", str(library)).replace("name=parse", "name=Parse")
    (tmp_path / "pgie.txt").write_text(f"{text}custom-lib-guard=always\n")
    return tmp_path / "pgie.txt"


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
def test_workers_that_die_are_counted(config: Path) -> None:
    images = [np.full((32, 32, 3), value, np.uint8) for value in (60, 255, 61, 255, 62)]
    pipeline = headrace.open_pipeline(config, sources=[headrace.ArraySource(images, name="cam")])
    library = headrace.ModelConfig.load(config).custom_lib_path
    name = f'headrace_worker_deaths_total{{library="{library}"}}'

    def deaths() -> list[str]:
        return [line for line in metrics_text(pipeline).splitlines() if name in line]

    before = deaths()
    with pytest.warns(headrace.HeadraceWarning, match="aborted"):
        pipeline.run()
    assert (before, deaths()) == ([], [f"{name} 2"])
    assert 'headrace_frames_total{source="cam",id="0"} 5' in metrics_text(pipeline).splitlines()


@pytest.mark.slow
@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
def test_each_further_death_is_told_also_of_a_model_that_was_replaced(config: Path) -> None:
    white, dark = (np.full((32, 32, 3), value, np.uint8) for value in (255, 60))
    with headrace.Inferencer.from_config(config) as inferencer:

        def told() -> list[object]:
            inferencer(white)
            inferencer(dark)
            return [n.data["deaths"] for n in inferencer.notices if n.code == "worker-died"]

        assert [told(), told()] == [[], [2]]
        assert inferencer.update_model(config=config).wait(60)
        assert [told(), told()] == [[3], [4]]


def test_messages_are_counted_with_their_last_error(tmp_path: Path) -> None:
    url = f"webhook+http://127.0.0.1:{free_port()}/t?every=frame&spool={tmp_path / 'spool'}"
    Image.new("RGB", (8, 8)).save(tmp_path / "black.png")
    sink = headrace.open_sink(url)
    pipeline = headrace.Pipeline(
        headrace.open_source(str(tmp_path / "black.png")), [_found], [sink]
    )
    pipeline.run()
    lines = metrics_text(pipeline).splitlines()
    assert any(line.startswith("headrace_messages_sent_total{output=") for line in lines)
    (waiting,) = (line for line in lines if line.startswith("headrace_messages_waiting{"))
    assert waiting.endswith("} 1")
    (error,) = (line for line in lines if line.startswith("headrace_messages_last_error{"))
    assert "refused" in error


def _found(batch: headrace.Batch) -> None:
    for meta in batch.metas:
        meta.objects.append(Detections([[1, 2, 3, 4]], [0.5], [0], space=Space.FRAME), 1)
