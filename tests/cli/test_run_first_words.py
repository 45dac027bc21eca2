"""The words of a first run: a fact once, alike in `run` and `lint`, with a command that works."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.inside import headrace
from tests.ports import free_port

Config = Callable[..., Path]


@pytest.fixture
def scene(mean_config: Config, tmp_path: Path) -> Path:
    """pgie.txt and a.png."""
    mean_config().rename(tmp_path / "pgie.txt")
    Image.new("RGB", (64, 48), (255, 0, 0)).save(tmp_path / "a.png")
    return tmp_path


@pytest.mark.parametrize("key", ["mean-file", "custom-lib-path", "labelfile-path", "onnx-file"])
def test_a_missing_file_is_said_once_and_alike_in_run_and_lint(scene: Path, key: str) -> None:
    given = ("--set", f"{key}=gone.so")
    ran = headrace("run", "pgie.txt", "a.png", *given, cwd=scene)
    linted = headrace("lint", "pgie.txt", *given, cwd=scene)
    assert ran.returncode != 0
    for said in (ran.stderr, linted.stdout):
        assert said.count("gone.so: there is no such file") == 1, said
        assert said.count(f"expected a file at {scene / 'gone.so'}") == 1, said
        assert "not given" not in said


def test_lint_finds_all_faults_of_a_file_at_once(scene: Path) -> None:
    faults = {"network-mode": "7", "cluster-mode": "9", "labelfile-path": "gone.txt",
              "onnx-file": "gone.onnx", "infer-dims": "3;x;4"}  # fmt: skip
    path = scene / "pgie.txt"
    lines = [n for n in path.read_text().splitlines() if n.partition("=")[0] not in faults]
    keys = [f"{key}={value}" for key, value in faults.items()]
    path.write_text("\n".join(["[property]", *keys, *(n for n in lines if n != "[property]")]))
    said = headrace("lint", "pgie.txt", cwd=scene).stdout
    for line, (key, value) in enumerate(faults.items(), 2):
        assert re.search(rf"^pgie\.txt:{line}:\d+: error .*{key}={re.escape(value)}", said, re.M)


def test_messages_that_nobody_took_are_not_said_to_be_written(
    scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(scene / "state"))
    output = f"kafka://127.0.0.1:{free_port()}/topic"
    done = headrace("run", "pgie.txt", "a.png", "-o", output, cwd=scene)
    assert done.returncode == 9, done.stderr
    assert f"messages to {output}: 1 waiting" in done.stdout
    assert "1 message left waiting in" in done.stderr
    assert "wrote" not in done.stdout


def test_the_name_of_an_engine_is_explained_where_it_is_first_printed(scene: Path) -> None:
    first = headrace("run", "pgie.txt", "a.png", "--set", "gpu-id=2", "--device", "cpu", cwd=scene)
    assert [p.name for p in scene.glob("*_gpu2_*.engine")]
    assert "it runs on the CPU: gpu2 in its name is no GPU" in first.stderr
    assert "profile nvinfer: rules of the original" in first.stdout


def test_the_command_that_is_named_for_a_missing_library_builds_it(scene: Path) -> None:
    folder = scene / "impl"
    folder.mkdir()
    (folder / "Makefile").write_text("CC:= g++\nSRCFILES:= parse.cpp\nTARGET_LIB:= libparse.so\n")
    (folder / "parse.cpp").write_text(
        '#include "nvdsinfer_custom_impl.h"\n'
        'extern "C" bool Parse(std::vector<NvDsInferLayerInfo> const &,\n'
        "    NvDsInferNetworkInfo const &, NvDsInferParseDetectionParams const &,\n"
        "    std::vector<NvDsInferObjectDetectionInfo> &) { return true; }\n"
    )
    given = ("--set", "custom-lib-path=impl/libparse.so", "--set", "parse-bbox-func-name=Parse")
    refused = headrace("run", "pgie.txt", "a.png", *given, cwd=scene)
    (command,) = re.findall(r"headrace (compile .*)$", refused.stderr, re.M)
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    assert headrace(*command.split(), cwd=scene).returncode == 0
    assert headrace("run", "pgie.txt", "a.png", *given, cwd=scene).returncode == 0
