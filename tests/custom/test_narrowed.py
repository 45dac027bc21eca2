"""INT64 outputs for parsers of the time of INT32: narrowed, or named."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.custom.compile.build_library import compile_library
from headrace.infer.inferencer import Inferencer
from headrace.media import Frame
from tests.infer.recognise.models import rows_of

SOURCE = """
#include "nvdsinfer_custom_impl.h"
#include <cstring>
extern "C" bool ParseNumbers(std::vector<NvDsInferLayerInfo> const &layers,
                             NvDsInferNetworkInfo const &, float,
                             std::vector<NvDsInferAttribute> &labels, std::string &text) {
  const int *numbers = static_cast<const int *>(layers[0].buffer);
  for (int i = 0; i < 4; ++i) text += static_cast<char>('a' + numbers[i]);
  text += layers[0].dataType == INT32 ? "/32" : "/64";
  labels.push_back({0, 0, 0.9f, strdup(text.c_str())});
  return true;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("narrowed")
    (folder / "own.cpp").write_text(SOURCE)
    compile_library([folder / "own.cpp"], folder / "libown.so")
    return folder / "libown.so"


def texts(folder: Path, library: Path, keys: str = "", **options: Any) -> tuple[str, list[str]]:
    rows_of(folder / "m.onnx", np.array([[1, 20, 6, 2**40]]), names=["ids"])
    config = folder / "config.txt"
    config.write_text(
        "[property]\nonnx-file=m.onnx\nnetwork-type=1\nnet-scale-factor=0.01\n"
        f"custom-lib-path={library}\nparse-classifier-func-name=ParseNumbers\n{keys}"
    )
    with Inferencer.from_config(config, **options) as model:
        (meta,) = model.process([Frame.from_array(np.zeros((64, 64, 3), np.uint8))])
        text = meta.objects.texts[0].strip()
        return text, [n.code for n in model.notices if n.code.startswith("outputs-")]


@pytest.mark.parametrize("guard", ["always", "never"])
def test_numbers_arrive_as_the_library_reads_them(
    tmp_path: Path, library: Path, guard: str
) -> None:
    text, codes = texts(tmp_path, library, "custom-lib-int64=int32\n", guard=guard)
    assert text.startswith("bug")
    assert text.endswith("/32")
    assert codes == []  # as it was asked


def test_a_release_without_int64_narrows_by_itself(tmp_path: Path, library: Path) -> None:
    text, codes = texts(tmp_path, library, "gie-unique-id=1\n", generation="6.2")
    assert (text[:3], text[-3:], codes) == ("bug", "/32", ["outputs-narrowed"])


@pytest.mark.slow
@pytest.mark.parametrize(("release", "ending"), [("8", "/32"), ("10", "/64")])
@pytest.mark.sampled
def test_a_library_of_an_older_tensorrt_gets_what_it_got(
    tmp_path: Path, library: Path, release: str, ending: str
) -> None:
    (tmp_path / "nv.c").write_text("int nv(void) { return 1; }")
    nvinfer = tmp_path / f"libnvinfer.so.{release}"
    subprocess.run(["gcc", "-shared", f"-Wl,-soname,{nvinfer.name}", tmp_path / "nv.c", "-o",
                    nvinfer], check=True)  # fmt: skip
    (tmp_path / "own.cpp").write_text(SOURCE)
    linked = tmp_path / "liblinked.so"
    links = ["-Wl,--no-as-needed", str(nvinfer)]
    compile_library([tmp_path / "own.cpp"], linked, links=links)
    text, codes = texts(tmp_path, linked)
    assert text[-3:] == ending
    assert codes == ["outputs-narrowed" if release == "8" else "outputs-int64"]


def test_where_nothing_tells_the_output_is_named(tmp_path: Path, library: Path) -> None:
    text, codes = texts(tmp_path, library)
    assert (text[:3], text[-3:]) == ("bau", "/64")
    assert "outputs-int64" in codes
    text, codes = texts(tmp_path, library, "custom-lib-int64=int64\n")
    assert (text[-3:], codes) == ("/64", [])
