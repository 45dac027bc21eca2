"""Models of other frameworks on every road: the same sentence, with the command that leads on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import headrace
from headrace.config import ModelConfig, load_pipeline
from headrace.errors import HeadraceError, ModelError
from headrace.infer.model import load_or_build
from tests._core.formats.test_foreign import FILES
from tests.inside import headrace as command

WORDS = "this is a checkpoint of Ultralytics (PyTorch)"
WAY = "yolo export model="


@pytest.fixture
def best(tmp_path: Path) -> Path:
    """A checkpoint of Ultralytics."""
    path = tmp_path / "best.pt"
    path.write_bytes(FILES["best.pt"][0])
    return path


@pytest.mark.parametrize("words", [
    ("run", "{}", "video.mp4"), ("show", "{}"), ("init", "{}"), ("build", "{}"), ("bench", "{}"),
    ("explain", "{}", "picture.jpg"), ("serve", "{}", "video.mp4"), ("lint", "{}"),
])  # fmt: skip
@pytest.mark.sampled
def test_commands(best: Path, words: tuple[str, ...]) -> None:
    done = command(*(word.format(best) for word in words))
    assert done.returncode in (1, 4)
    text = done.stdout + done.stderr
    assert WORDS in text
    assert f"{WAY}{best} format=onnx" in text


def test_it_is_a_model_that_is_missing_and_not_a_config(tmp_path: Path) -> None:
    done = command("run", str(tmp_path / "best.pt"), "video.mp4")
    assert "there is no such model." in done.stderr


@pytest.mark.parametrize("load", [ModelConfig.load, load_pipeline])
def test_python(best: Path, load: Callable[[Path], object]) -> None:
    with pytest.raises(ModelError, match="Ultralytics") as caught:
        load(best)
    assert caught.value.code == "model-of-other-kind"
    assert caught.value.data == {"format": "ultralytics"}


def test_the_pipeline_of_a_program(best: Path) -> None:
    with pytest.raises(ModelError, match="Ultralytics"):
        headrace.Inferencer.from_config(best)
    with pytest.raises(ModelError, match="Ultralytics"):
        headrace.open_pipeline(best, sources="video.mp4")


@pytest.mark.parametrize("key", ["onnx-file", "model-engine-file"])
def test_keys_of_a_config(best: Path, key: str) -> None:
    cfg = best.with_name("config.txt")
    cfg.write_text(f"[property]\n{key}=best.pt\n")
    with pytest.raises(HeadraceError, match="Ultralytics") as caught:
        load_or_build(ModelConfig.load(cfg))
    assert WAY in str(caught.value)
    done = command("lint", str(cfg))
    assert WORDS in done.stdout + done.stderr


def _built(path: Path) -> object:
    return load_or_build(ModelConfig(onnx_file=path))


@pytest.mark.parametrize("name", ["model", "config", "show", "lint"])
def test_a_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "net_saved_model"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(FILES["saved_model.pb"][0])
    if name in ("show", "lint"):
        done = command(name, str(folder))
        text = done.stdout + done.stderr
    else:
        load = ModelConfig.load if name == "config" else _built
        with pytest.raises(ModelError) as caught:
            load(folder)
        text = str(caught.value)
    assert "this is a SavedModel of TensorFlow" in text
    assert f"--saved-model {folder} --output {folder}.onnx" in text


def test_the_onnx_beside_a_foreign_engine_is_used_and_said_once(
    tmp_path: Path, mean_config: Callable[..., Path]
) -> None:
    cfg = mean_config()
    text = cfg.read_text().replace("onnx-file=mean.onnx", "model-engine-file=mean.engine")
    assert "onnx-file" not in text
    cfg.write_text(text)
    (tmp_path / "mean.engine").write_bytes(b"ftrt" + bytes(20) + bytes((10, 3, 0, 26)) + bytes(99))
    loaded = ModelConfig.load(cfg)
    assert loaded.onnx_file == tmp_path / "mean.onnx"
    assert ModelConfig.of_text(cfg.read_bytes(), cfg).onnx_file == loaded.onnx_file
    assert [n.code for n in loaded.notices].count("onnx-of-engine") == 1
    plan = load_or_build(loaded)
    assert plan.header.model.name == "mean.onnx"
    used = [n for n in plan.decisions if n.code == "engine-not-used"]
    assert len(used) == 1
    assert "TensorRT 10.3.0.26" in used[0].sentence
    (tmp_path / "mean.engine").unlink()
    assert ModelConfig.load(cfg).onnx_file is None


def test_show_reads_an_engine_of_tensorrt(tmp_path: Path) -> None:
    path = tmp_path / "net.engine"
    body = (6).to_bytes(8, "little") + b"images\0\0EfficientNMS_TRT\0"
    path.write_bytes(b"ftrt" + bytes(20) + bytes((8, 6, 1, 6)) + body)
    (tmp_path / "net.onnx").write_bytes(b"x")
    data = json.loads(command("show", str(path), "--json").stdout)
    assert data["built_by"] == "TensorRT 8.6.1.6"
    assert data["names_in_it"] == ["images"]
    assert data["plugins"] == ["EfficientNMS_TRT"]
    assert data["onnx_beside_it"] == str(tmp_path / "net.onnx")
    assert "tensorrt is not installed" in data["runs_here"]
    done = command("run", str(path), "video.mp4")
    assert "runs the ONNX model beside it" in done.stderr
