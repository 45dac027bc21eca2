"""custom-lib-abi: the box layout of a C++ library, from the config to the frame."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.custom import include_dir
from headrace.infer.inferencer import Inferencer
from tests.infer.scenes import image

Config = Callable[..., Path]

# Two boxes, so that a wrong size of the first shows in the second.
PARSER = """
#include "nvdsinfer_custom_impl.h"
extern "C" bool Parse(std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &,
                      NvDsInferParseDetectionParams const &,
                      std::vector<NvDsInferObjectDetectionInfo> &objects) {
    for (int i = 0; i < 2; ++i) {
        NvDsInferObjectDetectionInfo o = {};
        o.classId = 0;
        o.left = 2 + 8 * i; o.top = 4; o.width = 6; o.height = 8;
        o.detectionConfidence = 0.5f + 0.25f * i;
        objects.push_back(o);
    }
    return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(Parse);
"""


@pytest.mark.parametrize("size", [24, 28])
@pytest.mark.parametrize("said", ["auto", "size"])
@pytest.mark.sampled
def test_both_layouts_by_config_and_by_detection(mean_config: Config, size: int, said: str) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    config = mean_config(
        custom_lib_path="libparse.so",
        parse_bbox_func_name="Parse",
        custom_lib_abi=size if said == "size" else "auto",
    )
    (config.parent / "parse.cpp").write_text(PARSER)
    options = ["-shared", "-fPIC", f"-DHEADRACE_BOX_BYTES={size}", f"-I{include_dir()}"]
    subprocess.run(
        [compiler, *options, "parse.cpp", "-o", "libparse.so"], cwd=config.parent, check=True
    )
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([image([], size=(32, 32))])
    found = [(o.left, o.top, o.width, o.height, o.confidence) for o in meta.objects]
    assert found == [(2, 4, 6, 8, 0.5), (10, 4, 6, 8, 0.75)]
