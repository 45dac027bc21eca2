"""Angles that a C++ parser sets and nobody asked for: named, and never confused with garbage."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.custom.compile.build_library import compile_library
from headrace.custom.ignored_angles import IgnoredAngles
from headrace.meta import DetectionParams, NetworkInfo
from tests.custom.conftest import rows_layer

SOURCE = """
#include "nvdsinfer_custom_impl.h"
extern "C" bool ParseTurned(std::vector<NvDsInferLayerInfo> const &layers,
                            NvDsInferNetworkInfo const &, NvDsInferParseDetectionParams const &,
                            std::vector<NvDsInferObjectDetectionInfo> &objects) {
  const float *rows = static_cast<const float *>(layers[0].buffer);
  for (unsigned i = 0; i < layers[0].inferDims.d[0]; ++i, rows += 6) {
    NvDsInferObjectDetectionInfo b{};
    b.classId = 0; b.left = rows[1]; b.top = rows[2]; b.width = rows[3]; b.height = rows[4];
    b.detectionConfidence = rows[5];
    b.rotation_angle = rows[0];
    objects.push_back(b);
  }
  return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseTurned);
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("turned")
    (folder / "own.cpp").write_text(SOURCE)
    compile_library([folder / "own.cpp"], folder / "libown.so")
    return folder / "libown.so"


@pytest.mark.parametrize("guard", ["always", "never"])
@pytest.mark.parametrize("rotation", [None, True])
def test_angles_are_used_or_named(
    library: Path,
    rotation: bool | None,
    guard: str,
    network: NetworkInfo,
    params: DetectionParams,
) -> None:
    rng = np.random.default_rng(0)
    with closing(open_library(library, rotation=rotation, guard=guard, abi="28")) as opened:
        parse = opened.bbox_parser("ParseTurned")
        for _ in range(5):
            rows = rng.uniform(10, 200, (5, 6)).astype(np.float32)
            rows[:, 0], rows[:, 5] = rng.uniform(-0.7, 1.5, 5), 0.9
            found = parse(rows_layer(rows), network, params)
            assert len(found) == 5
            if rotation:
                np.testing.assert_array_equal(found.angles, rows[:, 0])
            else:
                assert found.angles is None
        told = [d for d in opened.decisions if d.code == "angles-not-used"]
    assert len(told) == (0 if rotation else 1)
    if told:
        assert told[0].level == "warning"
        assert -0.7 <= told[0].data["low"] < told[0].data["high"] <= 1.5


GARBAGE = {
    "the same": lambda rng, n: np.full(n, -0.499),
    "nothing": lambda rng, n: np.zeros(n),
    "pointers": lambda rng, n: rng.uniform(1, 9, n) * 1e-41,
    "coordinates": lambda rng, n: rng.uniform(10, 500, n),
    "not finite": lambda rng, n: np.full(n, np.nan),
    "scores": lambda rng, n: SCORES,
    "two values": lambda rng, n: np.resize([0.5, 1.5], n),
}
SCORES = np.linspace(0.5, 0.99, 10)


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_lay_on_the_stack_is_no_angle(kind: str) -> None:
    seen, rng = IgnoredAngles(), np.random.default_rng(1)
    for _ in range(40):
        if seen.looking:
            values = GARBAGE[kind](rng, 10).astype(np.float32)
            assert seen.look(values, SCORES.astype(np.float32), "lib") is None
    assert not seen.looking
