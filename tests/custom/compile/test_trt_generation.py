"""Sources of older releases of TensorRT compile without being told which it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.binary.elf import ElfFile
from headrace.custom.compile.build_library import compile_library
from headrace.custom.compile.trt_generation import evidence_of, tried
from headrace.errors import CustomLibraryError

SEVEN = """
#include "NvInfer.h"
#include <cstring>
using namespace nvinfer1;
struct P : IPluginV2IOExt {
    int getNbOutputs() const override { return 1; }
    Dims getOutputDimensions(int, const Dims *in, int) override { return in[0]; }
    int initialize() override { return 0; }
    void terminate() override {}
    size_t getWorkspaceSize(int) const override { return 0; }
    int enqueue(int batch, const void *const *in, void **out, void *, cudaStream_t) override {
        std::memcpy(out[0], in[0], 4 * batch);
        return 0;
    }
    size_t getSerializationSize() const override { return 0; }
    void serialize(void *) const override {}
    bool supportsFormatCombination(int, const PluginTensorDesc *, int, int) const override {
        return true;
    }
    const char *getPluginType() const override { return "P"; }
    const char *getPluginVersion() const override { return "1"; }
    void destroy() override { delete this; }
    IPluginV2IOExt *clone() const override { return new P(*this); }
    void setPluginNamespace(const char *) override {}
    const char *getPluginNamespace() const override { return ""; }
    DataType getOutputDataType(int, const DataType *t, int) const override { return t[0]; }
    bool isOutputBroadcastAcrossBatch(int, const bool *, int) const override { return false; }
    bool canBroadcastInputAcrossBatch(int) const override { return false; }
    void configurePlugin(const PluginTensorDesc *, int, const PluginTensorDesc *, int) override {}
};
extern "C" void *make() { return new P; }
"""
EIGHT = """
#include "NvInfer.h"
extern "C" int bindings(nvinfer1::ICudaEngine *e) { return e->getNbBindings(); }
"""
TEN = """
#include "NvInfer.h"
extern "C" int tensors(nvinfer1::ICudaEngine *e) { return e->getNbIOTensors(); }
"""
ELEVEN = """
#include "NvInfer.h"
#if NV_TENSORRT_MAJOR < 11
#error "TensorRT 11 or newer"
#endif
extern "C" int tensors(nvinfer1::ICudaEngine *e) { return e->getNbIOTensors(); }
"""


def compiled(folder: Path, text: str, **options: Any) -> list[tuple[str, int]]:
    """Compile; code and release of the notices about a release."""
    source = folder / "source.cpp"
    source.write_text(text)
    result = compile_library([source], folder / "libsource.so", **options)
    assert "headrace_headers_tensorrt" in ElfFile.read(result.library).exported()
    return [(n.code, n.data["major"]) for n in result.notices]


@pytest.mark.parametrize(
    ("text", "majors"),
    [
        (ELEVEN, [11]),
        (SEVEN, [7]),
        (EIGHT, []),  # old members stay
        (TEN, []),
    ],
)
@pytest.mark.sampled
def test_the_release_is_found_and_reported(tmp_path: Path, text: str, majors: list[int]) -> None:
    assert compiled(tmp_path, text) == [("compiled-generation", major) for major in majors]


@pytest.mark.slow
def test_a_release_that_is_named_is_taken(tmp_path: Path) -> None:
    assert compiled(tmp_path, SEVEN, define=["NV_TENSORRT_MAJOR=7"]) == []
    with pytest.raises(CustomLibraryError, match="does not compile"):
        compiled(tmp_path, SEVEN, define=["NV_TENSORRT_MAJOR=10"])


@pytest.mark.slow
def test_headers_beside_a_source_speak_for_it_too(tmp_path: Path) -> None:
    (tmp_path / "p.h").write_text(SEVEN)
    assert compiled(tmp_path, '#include "p.h"\n') == [("compiled-generation", 7)]


@pytest.mark.slow
def test_without_a_release_that_fits_the_nearest_is_named(tmp_path: Path) -> None:
    text = SEVEN + "void f(IBuilder *b) { b->noSuchThing(); }"
    with pytest.raises(CustomLibraryError) as caught:
        compiled(tmp_path, text)
    message = str(caught.value)
    assert "7 is the nearest: -D NV_TENSORRT_MAJOR=7" in message
    assert "noSuchThing" in message
    assert "leave it out" not in message


def test_a_source_without_tensorrt_is_tried_once(tmp_path: Path) -> None:
    with pytest.raises(CustomLibraryError) as caught:
        compiled(tmp_path, "int f() { return nothing; }\n")
    assert "release of TensorRT" not in str(caught.value)


def shell(log: Path, takes: dict[str, int]) -> Callable[[int], list[tuple[Path, list[str]]]]:
    """Commands that stand for a compiler: a file is taken for one release, or for 0 for each."""

    def commands(major: int) -> list[tuple[Path, list[str]]]:
        return [
            (Path(name), ["sh", "-c", f"echo {major} {name} >> {log}; {said}"])
            for name, wanted in takes.items()
            for said in ["true" if wanted in (0, major) else "echo error: the same >&2; false"]
        ]

    return commands


@pytest.mark.parametrize(("wanted", "majors"), [(7, [10, 11, 8, 7]), (5, [10, 11, 8, 7])])
def test_no_release_is_tried_that_cannot_help(
    tmp_path: Path, wanted: int, majors: list[int]
) -> None:
    log = tmp_path / "log"
    found = tried("#include <NvInfer.h>", shell(log, {"a": 0, "b": wanted, "c": 0}))
    assert [one.major for one in found] == majors
    assert [one.errors for one in found] == [1, 1, 1, int(wanted == 5)]
    read = [line for line in log.read_text().splitlines() if "b" not in line]
    assert read == ["10 a", "10 c"] + ["7 a", "7 c"] * (wanted == 7)


def test_no_release_is_tried_for_a_header_that_none_has(tmp_path: Path) -> None:
    with pytest.raises(CustomLibraryError) as caught:
        compiled(tmp_path, '#include <NvInfer.h>\n#include "of_others.h"\n')
    assert "of_others.h: No such file" in str(caught.value)
    assert "of TensorRT were tried" not in str(caught.value)


def test_a_file_that_the_front_end_takes_is_tried_once(tmp_path: Path) -> None:
    (one,) = tried("#include <NvInfer.h>", shell(tmp_path / "log", {"a": 0}))
    assert not one.errors


def test_evidence_orders_the_releases() -> None:
    assert evidence_of("int x;") == ([], [])
    assert evidence_of("#include <NvInfer.h>")[0] == [10, 11, 8, 7, 6, 5]
    assert evidence_of(SEVEN)[0][0] == 7
    assert evidence_of(EIGHT)[0][0] == 8
    assert evidence_of(ELEVEN)[0][0] == 11


NVCC = """#!/bin/bash
words=()
while [ $# != 0 ]; do
  case "$1" in
    -ccbin | -Xcompiler) shift ;;
    --expt-relaxed-constexpr | --extended-lambda) ;;
    --cuda) words+=(-fsyntax-only) ;;
    *) words+=("$1") ;;
  esac
  shift
done
exec g++ -fPIC -D__global__= -x c++ "${words[@]}"
"""
"""Stands for nvcc; it has its options, and takes no other of g++."""


@pytest.mark.slow
def test_code_for_the_gpu_is_compiled_for_the_release_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, text in (("bin/nvcc", NVCC), ("include/cuda_runtime.h", "")):
        path = tmp_path / "cuda" / file
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    source = tmp_path / "source.cu"
    source.write_text(SEVEN + "__global__ void kernel() {}\n")
    result = compile_library([source], tmp_path / "libsource.so", cuda="nvcc")
    assert [n.data["major"] for n in result.notices if n.code == "compiled-generation"] == [7]
