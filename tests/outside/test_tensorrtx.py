"""Programs and sources of wang-xinyu/tensorrtx, unchanged, with TensorRT's C++ interface."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace.custom import include_dir
from headrace.custom.compile.build_library import compile_library
from tests.outside.conftest import checkout

PYTHON = os.environ.get("HEADRACE_OUTSIDE_PYTHON", sys.executable)
PROGRAMS = {
    "mlp": ("mlp", "models/mlp.wts", 10),
    "lenet": ("lenet", "models/lenet.wts", 8),
    "alexnet": ("alexnet", "models/alexnet.wts", 8),
    "squeezenet": ("squeezenet", "models/squeezenet.wts", 8),
    "mobilenet_v2": ("mobilenet/mobilenetv2", "mobilenet.wts", 8),
    "resnet18": ("resnet", "resnet18.wts", 8),
    "resnet34": ("resnet", "resnet34.wts", 8),
    "resnet50": ("resnet", "resnet50.wts", 8),
    "resnext50_32x4d": ("resnet", "resnext50.wts", 8),
    "wideresnet50": ("resnet", "wideresnet50.wts", 8),
}
"""Program -> its folder, the weights that it reads, the generation that it was written for."""
IMAGES = {"lenet": ("6.pgm", (32, 32)), "alexnet": ("cats.jpg", (224, 224, 3)),
            "squeezenet": ("cats.jpg", (224, 224, 3))}  # fmt: skip
"""Program -> the image that it reads with OpenCV, and its height, width and channels."""
OPENCV = Path("/usr/include/opencv4")
LINKS = ["-lopencv_imgcodecs", "-lopencv_imgproc", "-lopencv_core"]
FOREIGN = re.compile(
    r"opencv2?/|CV_|cv::|torch/script\.h|windows\.h|(kernel|cuda_utils|config|calibrator)\.h"
    r"|printTensorShape|std::ifstream"
)
"""What sources lack that is not TensorRT's."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_pytorchs_numbers(outside: Path, tmp_path: Path, name: str) -> None:
    folder, weights, generation = PROGRAMS[name]
    found = (checkout(outside, "tensorrtx") / folder).glob(f"{name}.c*")
    source = next(found)
    models = Path(__file__).with_name("tensorrtx_models.py")
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("PyTorch is not installed; HEADRACE_OUTSIDE_PYTHON names a Python that has it")
    if name in IMAGES and not OPENCV.is_dir():
        pytest.skip("no OpenCV: apt install libopencv-dev")
    build = tmp_path / "build"
    (tmp_path / weights).parent.mkdir(exist_ok=True)
    build.mkdir()
    draw(name, tmp_path)
    subprocess.run([PYTHON, models, name, tmp_path], check=True)
    (tmp_path / "weights.wts").rename(tmp_path / weights)
    program = build / name
    compile_library(
        [source], program, program=True, define=[f"NV_TENSORRT_MAJOR={generation}"],
        include=[source.parent, *([OPENCV] if name in IMAGES else [])],
        links=LINKS if name in IMAGES else [],
    )  # fmt: skip
    made = subprocess.run([program, "-s"], cwd=build, capture_output=True, text=True)
    assert made.returncode in (0, 1), made.stderr  # 1 is what most of them return then
    ran = subprocess.run([program, "-d"], cwd=build, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    expected = np.array((tmp_path / "expected.txt").read_text().split(), np.float32)
    if name in IMAGES:  # the first ones are printed each time
        tail = ran.stdout.rpartition("\n====")[0].rpartition("\n")[2]
        expected = expected[:21]
    else:
        tail = ran.stdout.rpartition("utput:")[2]
        if name not in ("mlp", "mobilenet_v2"):  # the first and the last ten are printed
            expected = np.concatenate([expected[:10], expected[-10:]])
    ends = r"(?=,)" if "," in tail else ""
    numbers = np.array(re.findall(rf"-?\d+(?:\.\d+)?(?:e[-+]\d+)?{ends}", tail), np.float32)
    np.testing.assert_allclose(numbers, expected, rtol=1e-3, atol=1e-3)


def draw(name: str, folder: Path) -> None:
    """Write the image that a program reads, as large as its input, and its pixels as bytes."""
    if name not in IMAGES:
        return
    file, shape = IMAGES[name]
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (8, 8, *shape[2:]), np.uint8)
    pixels = pixels.repeat(shape[0] // 8, axis=0).repeat(shape[1] // 8, axis=1)
    (folder / "assets").mkdir()
    Image.fromarray(pixels).save(folder / "assets" / file, "PNG")  # OpenCV looks into the file
    (folder / "image").write_bytes(pixels.tobytes())


@pytest.mark.slow
def test_most_sources_compile(outside: Path) -> None:
    folder = checkout(outside, "tensorrtx")
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    good, bad, foreign = 0, [], 0
    for source in sorted(folder.rglob("*.cpp")):
        project = folder / source.relative_to(folder).parts[0]
        headers = {p.parent for p in (*project.rglob("*.h*"),)} - {project / "windows"}
        command = ["g++", "-std=c++17", "-fsyntax-only", "-w", "-DNV_TENSORRT_MAJOR=8"]
        command += ["-DAPI_EXPORTS", f"-I{include_dir()}", "-I/usr/include/opencv4"]
        command += [f"-I{p}" for p in (source.parent, *sorted(headers), project)]
        done = subprocess.run([*command, source], capture_output=True, text=True)
        if done.returncode == 0:
            good += 1
        elif FOREIGN.search(next((e for e in done.stderr.splitlines() if "error:" in e), "")):
            foreign += 1
        else:
            bad.append(source.relative_to(folder))
    print(f"{good} compile, {foreign} lack what is not TensorRT's, {len(bad)} do not: {bad}")
    assert good / max(1, good + len(bad)) >= 0.85
