"""Libraries that a toolkit lacks, as the linker needs them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace.binary.elf import ElfFile
from headrace.custom.compile.absent_libraries import link_stubs


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_stubs_stand_for_libraries_of_nvidia_alone(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/cuda_runtime_api.h").write_text("#define CUDART_VERSION  12040\n")
    names = [
        "curandGenerate",
        "mine",
        "cublasSgemm_v2",
        "cuMemsetD8",
        "cublasLtMatmul",
        "cudnnCreate",
        "cublasGemmWrap<float>(cublasContext*, int)",
        "cudnnWrap(int)",
    ]
    stubs = link_stubs(names, tmp_path, "g++", tmp_path)
    exported = {path.name: set(ElfFile.read(path).exported()) for path in stubs}
    assert exported == {
        "libcublasLt.so.12": {"cublasLtMatmul"},
        "libcublas.so.12": {"cublasSgemm_v2"},
        "libcudnn.so.8": {"cudnnCreate"},
        "libcurand.so.10": {"curandGenerate"},
        "libcuda.so.1": {"cuMemsetD8"},
    }
