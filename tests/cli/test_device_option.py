"""`--device` of the commands that run or build engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from headrace._core.gpu.cuda import why_no_gpu
from tests.warm import headrace

Config = Callable[..., Path]
COMMANDS = {
    "run": ("run", "pgie.txt", "a.png"),
    "batch": ("batch", "pgie.txt", "a.png", "-o", "results"),
    "build": ("build", "pgie.txt"),
    "serve": ("serve", "pgie.txt", "--listen", "127.0.0.1:0"),
}


@pytest.fixture
def scene(mean_config: Config, tmp_path: Path) -> Path:
    """pgie.txt and a.png."""
    mean_config().rename(tmp_path / "pgie.txt")
    Image.new("RGB", (64, 48), (255, 0, 0)).save(tmp_path / "a.png")
    return tmp_path


@pytest.mark.parametrize("device", ["gpu", "cuda:1234", "cpu,cpu"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_no_device_has_is_wrong_usage(scene: Path, command: str, device: str) -> None:
    done = headrace(*COMMANDS[command], "--device", device, cwd=scene)
    assert done.returncode == 2, done.stderr
    assert "--device" in done.stderr
    assert "cuda:" in done.stderr


@pytest.mark.parametrize("devices", ["cuda,cuda:1", "cuda:0,cuda:0", "cuda:0,", "cpu,cuda:0"])
def test_several_devices_are_different_gpus(scene: Path, devices: str) -> None:
    done = headrace(*COMMANDS["run"], "--device", devices, cwd=scene)
    assert done.returncode == 2, done.stderr
    assert "cuda:0,cuda:1" in done.stderr


@pytest.mark.skipif(why_no_gpu() is None, reason="there is a GPU")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_gpu_that_is_not_there_is_an_error(scene: Path, command: str) -> None:
    before = sorted(scene.iterdir())
    done = headrace(*COMMANDS[command], "--device", "cuda", cwd=scene)
    assert done.returncode == 4, done.stderr
    assert "--device cuda: " in done.stderr
    assert "--device cpu runs without one" in done.stderr
    assert [p for p in sorted(scene.iterdir()) if p.suffix == ".engine"] == []
    assert set(before) <= set(scene.iterdir())


def test_the_engine_of_a_backend_has_its_device(scene: Path) -> None:
    done = headrace("build", "pgie.txt", "--device", "cpu", "--backend", "onnxruntime", cwd=scene)
    assert done.returncode == 2
    assert "leave --device out" in done.stderr
    done = headrace("build", "pgie.txt", "--device", "cpu", cwd=scene)
    assert done.returncode == 0, done.stderr
    again = headrace(*COMMANDS["run"], "--device", "cpu", cwd=scene)
    assert "engine: loaded" in again.stderr
