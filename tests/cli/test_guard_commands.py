"""`headrace run --guard`, `headrace trust`, `headrace replay`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from PIL import Image

from headrace.custom import include_dir
from headrace.custom.guard import keeper
from tests.warm import headrace

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)
Config = Callable[..., Path]

PARSER = """
#include <cstdio>
#include "nvdsinfer_custom_impl.h"
static int *volatile nowhere = nullptr;
extern "C" bool Parse(std::vector<NvDsInferLayerInfo> const &layers, NvDsInferNetworkInfo const &,
                      NvDsInferParseDetectionParams const &,
                      std::vector<NvDsInferObjectDetectionInfo> &objects) {
    std::puts("the library prints");
    std::fflush(stdout);
    NvDsInferObjectDetectionInfo o = {};
    o.left = 2; o.top = 4; o.width = 6; o.height = 8; o.detectionConfidence = 0.5f;
    objects.push_back(o);
    if (static_cast<const float *>(layers[0].buffer)[0] > 0.9f) *nowhere = 1;
    return true;
}
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`headrace` in a state folder of its own."""

    def run_(*args: object) -> subprocess.CompletedProcess[str]:
        return headrace(*args, XDG_STATE_HOME=str(tmp_path / "state"))

    return run_


@pytest.fixture
def config(mean_config: Config) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    path = mean_config(custom_lib_path="libparse.so", parse_bbox_func_name="Parse")
    (path.parent / "parse.cpp").write_text(PARSER)
    subprocess.run(
        [
            compiler,
            "-g",
            "-shared",
            "-fPIC",
            f"-I{include_dir()}",
            "parse.cpp",
            "-o",
            "libparse.so",
        ],
        cwd=path.parent,
        check=True,
    )
    photos = path.parent / "photos"
    photos.mkdir()
    for i, value in enumerate((10, 255, 20)):
        Image.fromarray(np.full((32, 32, 3), value, np.uint8)).save(photos / f"{i}.png")
    return path


@pytest.mark.slow
def test_a_crash_its_replay_and_trust(
    config: Path, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    photos, library = config.parent / "photos", config.parent / "libparse.so"
    done = run("run", config, photos, "-o", "jsonl:-")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"frame"') == 3
    assert "the library prints" not in done.stdout, "standard output is for results"
    assert "the library prints" in done.stderr
    assert "it is not trusted yet" in done.stderr.replace("because ", "")
    assert "the function crashed (SIGSEGV), writing a null pointer" in done.stderr
    assert "#0 Parse at" in done.stderr or not shutil.which("addr2line")
    (folder,) = re.findall(r"headrace replay (\S+)", done.stderr)

    again = run("replay", folder)
    assert again.returncode == -11
    assert "1.png" in again.stderr or "frame 1 of" in again.stderr
    assert f"gdb -ex run --args {sys.executable} -m headrace replay {folder}" in again.stderr
    guarded = run("replay", folder, "--guard")
    assert guarded.returncode == 5
    assert "the function crashed (SIGSEGV)" in guarded.stderr
    assert "started again" not in guarded.stderr
    assert "headrace replay" not in guarded.stderr
    assert len(list(Path(folder).parent.iterdir())) == 1, "nothing is saved anew"
    sound = config.parent / "libsound.so"
    source = PARSER.replace("*nowhere = 1", "return true")
    subprocess.run(
        ["g++", "-shared", "-fPIC", f"-I{include_dir()}", "-xc++", "-", "-o", str(sound)],
        input=source,
        text=True,
        check=True,
    )
    mended = run("replay", folder, "--library", sound)
    assert mended.returncode == 0
    assert "now: the function returned Detections(1 boxes" in mended.stdout
    assert "did not recur in this build of the library, which is not the one" in mended.stderr
    assert f"headrace replay {folder} --library {sound} --guard" in mended.stderr
    said = Path(folder, "case.json")
    said.write_text(said.read_text().replace('"past_the_end": false', '"past_the_end": true'))
    past = run("replay", folder, "--library", sound)
    assert past.returncode == 0
    assert "did not recur" not in past.stderr
    assert "not noticed in this process" in past.stderr.partition("--guard shows it")[0]
    assert "not noticed" not in run("replay", folder, "--library", sound, "--guard").stderr

    broken = library.read_bytes()
    shutil.copy(sound, library)
    compiled = run("replay", folder, "--guard")
    assert "note: the library was compiled anew, or replaced, since then" in compiled.stderr
    assert "did not recur in this build" in compiled.stderr
    library.write_bytes(broken)

    assert "no library is trusted yet" in run("trust").stdout
    assert run("trust", library).returncode == 0
    assert str(library) in run("trust").stdout
    died = run("run", config, photos, "-o", config.parent / "found.jsonl")
    assert died.returncode == -11, "a trusted library runs in the application"
    note = died.stderr.rpartition("headrace: ")[2]
    assert note.startswith(f"SIGSEGV: this process has loaded {library}, which is trusted\n")
    assert "--guard always runs it in a worker process" in note
    assert "guarded again" in run("trust", "--remove", library).stdout
    assert run("run", config, photos, "--guard", "auto", "-q").returncode == 0
    assert run("trust", config.parent / "absent.so").returncode == 5
    assert run("replay", config.parent).returncode == 5


@pytest.mark.slow
def test_an_endless_replay_ends(
    config: Path, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    source = PARSER.replace("*nowhere = 1", "for (volatile int i = 0;; i = i + 1) {}")
    subprocess.run(
        ["g++", "-g", "-shared", "-fPIC", f"-I{include_dir()}", "-xc++", "-", "-o", "libparse.so"],
        input=source,
        text=True,
        check=True,
        cwd=config.parent,
    )
    config.write_text(config.read_text() + "custom-lib-guard-timeout=1\n")
    done = run("run", config, config.parent / "photos", "-o", config.parent / "found.jsonl")
    assert done.returncode == 0, done.stderr
    assert "did not return within 1 s" in done.stderr
    (folder,) = re.findall(r"headrace replay (\S+)", done.stderr)
    before = sorted(Path(folder).parent.iterdir())
    start = monotonic()
    for flags, limit in (((), "1"), (("--guard",), "1"), (("--timeout", "0.5"), "0.5")):
        again = run("replay", folder, *flags)
        assert again.returncode == 5, again.stderr
        ended = again.stderr.partition("error: ")[2]
        assert f"the function did not return within {limit} s" in ended
        assert "started again" not in again.stderr
        assert ("Parse at" in again.stderr) is ("--guard" in flags) or not shutil.which("addr2line")
    assert monotonic() - start < 30
    assert sorted(Path(folder).parent.iterdir()) == before
    case = Path(folder, "case.json")
    case.write_text(case.read_text().replace('"timeout": 1', '"timeout": -1'))
    assert "-1.0 is no limit" in run("replay", folder).stderr
