"""The command that compiles a library that is not there."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.config import ModelConfig
from headrace.config.library_sources import build_command
from headrace.errors import ConfigError

PARSER = """#include "nvdsinfer_custom_impl.h"
int helper();
extern "C" bool ParseNothing(std::vector<NvDsInferLayerInfo> const&, NvDsInferNetworkInfo const&,
    NvDsInferParseDetectionParams const&, std::vector<NvDsInferParseObjectInfo>&)
{ return helper() == 1; }
"""


def config(folder: Path, library: str) -> Path:
    path = folder / "config.txt"
    path.write_text(
        f"[property]\nonnx-file=m.onnx\nnum-detected-classes=1\ncustom-lib-path={library}\n"
        "parse-bbox-func-name=ParseNothing\ngie-unique-id=1\n"
    )
    return path


def error_of(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        ModelConfig.load(path).check_files()
    return str(caught.value)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_command_of_a_makefile_s_sources_builds_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "impl"
    folder.mkdir()
    (folder / "parse.cpp").write_text(PARSER)
    (folder / "more.cpp").write_text("int helper() { return 1; }\n")
    (folder / "broken.cpp").write_text("no C++\n")
    (folder / "Makefile").write_text("CC:= g++\nSRCFILES:= parse.cpp \\\n  more.cpp\n")
    monkeypatch.chdir(tmp_path)
    text = error_of(config(tmp_path, "impl/libimpl.so"))
    command = text.partition("compile it from the sources beside it: ")[2].splitlines()[0]
    assert command == "headrace compile impl/parse.cpp impl/more.cpp -o impl/libimpl.so"
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "libimpl.so").exists()


def test_all_sources_without_a_makefile_and_kernels_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.cpp", "a.cpp", "k.cu", "k_host.cpp", "x.h", "notes.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    command = build_command(tmp_path / "lib n.so")
    assert command == "headrace compile a.cpp b.cpp k.cu -o 'lib n.so'"


def test_nothing_is_offered_without_sources(tmp_path: Path) -> None:
    assert build_command(tmp_path / "lib.so") is None
    assert build_command(tmp_path / "no" / "lib.so") is None
    (tmp_path / "Makefile").write_text("SRCFILES:= gone.cpp\n")
    assert build_command(tmp_path / "lib.so") is None
    (tmp_path / "a.cpp").touch()
    assert "sources beside it" in error_of(config(tmp_path, "lib.so"))
    assert "sources beside it" not in error_of(config(tmp_path, "no/lib.so"))
