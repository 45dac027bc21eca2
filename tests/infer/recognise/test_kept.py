"""Recognitions beside a model: used while nothing changed that they depend on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace._core.errors import ModelError
from headrace._core.files import FileHash
from headrace.config import ModelConfig
from headrace.config.document import AddedLine
from headrace.config.overrides import Overrides
from headrace.engine import fingerprint
from headrace.infer.recognise import deployments, kept, recognise, sidecars
from headrace.infer.recognise.kept import KEPT_FIELDS, kept_path
from headrace.infer.recognise.sidecars import files_beside
from tests.infer.recognise.test_recognise import yolov8


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return yolov8(tmp_path / "m.onnx")


@pytest.fixture
def recognitions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The models that were really recognised."""
    calls: list[Path] = []
    real = recognise._recognise

    def counted(path: Path, *args: Any, **options: Any) -> Any:
        calls.append(path)
        return real(path, *args, **options)

    monkeypatch.setattr(recognise, "_recognise", counted)
    return calls


def keys(*texts: str) -> Overrides:
    lines = (text.partition("=") for text in texts)
    return Overrides(tuple(AddedLine("property", k, v, "--set") for k, _, v in lines))


def test_the_second_load_gives_the_same_config_and_recognises_nothing(
    model: Path, recognitions: list[Path]
) -> None:
    first, second = ModelConfig.load(model), ModelConfig.load(model)
    assert recognitions == [model]
    assert second.values() == first.values()
    assert second.labels == first.labels == (("cat",), ("dog",), ("a;b",))
    assert {n: second.origin(n) for n in second.FIELDS} == {
        n: first.origin(n) for n in first.FIELDS
    }
    assert second.origin("topk", class_id=1) == first.origin("topk", class_id=1)
    told = [n for n in first.notices if n.code != "engine-built"]
    assert [*second.notices] == told
    assert {"recognised-model", "recognised-images", "recognised-from"} <= {n.code for n in told}


def test_the_hash_of_the_bytes_that_were_read_is_recorded(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Any] = []
    real = fingerprint.hash_file

    def counted(file: Any) -> FileHash:
        hashed.append(file)
        return real(file)

    monkeypatch.setattr(fingerprint, "hash_file", counted)
    ModelConfig.load(model)
    assert model not in hashed  # a second reading takes the time of the first
    entry = json.loads(kept_path(model).read_text())["entries"][0]
    assert entry["model"]["sha256"] == real(model).sha256


def test_each_set_of_keys_has_an_entry_of_its_own(model: Path, recognitions: list[Path]) -> None:
    for _ in range(2):
        assert ModelConfig.load(model, keys("net-scale-factor=1")).net_scale_factor == 1
        assert ModelConfig.load(model).net_scale_factor != 1
    assert len(recognitions) == 2
    # a threshold is set after recognition
    assert ModelConfig.load(model, Overrides((), 0.9)).all_classes.pre_cluster_threshold == 0.9
    assert len(recognitions) == 2


def test_a_new_name_keeps_nothing_of_the_old_path(model: Path, recognitions: list[Path]) -> None:
    ModelConfig.load(model)
    folder = model.parent / "other"
    folder.mkdir()
    moved = model.rename(folder / "n.onnx")
    kept_path(model).rename(kept_path(moved))
    cfg = ModelConfig.load(moved)
    assert cfg.onnx_file == moved
    assert {n.where for n in cfg.notices} == {str(moved)}


@pytest.mark.parametrize(
    "change", ["another model", "a file beside it", "a label file", "the code", "the version"]
)
def test_it_is_recognised_again_where_something_changed(
    model: Path, recognitions: list[Path], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    labels = model.with_name("l.txt")
    labels.write_text("x\ny\nz\n")
    overrides = keys(f"labelfile-path={labels}") if change == "a label file" else Overrides()
    ModelConfig.load(model, overrides)
    if change == "another model":
        yolov8(model, names="{0: 'car', 1: 'bus', 2: 'van'}")
    elif change == "a file beside it":
        model.with_name("config.json").write_text("{}")
    elif change == "a label file":
        labels.write_text("x\ny\nw\n")
    elif change == "the code":
        monkeypatch.setattr(kept, "_state_of_code", list)
    else:
        monkeypatch.setattr("headrace.__version__", "99.0")
    ModelConfig.load(model, overrides)
    assert len(recognitions) == 2
    if change == "another model":
        assert ModelConfig.load(model).labels[0] == ("car",)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"[]",
        lambda data: data.replace(b'"net_scale_factor"', b'"custom_lib_path"'),
        lambda data: data.replace(b'"cluster_mode":2', b'"cluster_mode":77'),
        lambda data: data.replace(b'"num_detected_classes":3', b'"num_detected_classes":"x"'),
        lambda data: data + b" " * (1 << 22),
    ],
)
def test_what_is_no_recognition_is_not_believed(
    model: Path, recognitions: list[Path], damage: Any
) -> None:
    first = ModelConfig.load(model)
    file = kept_path(model)
    data = file.read_bytes()
    assert damage(data) != data
    file.write_bytes(damage(data))
    again = ModelConfig.load(model)
    assert (again.values(), again.custom_lib_path) == (first.values(), None)
    assert len(recognitions) == 2


def test_a_pipe_in_its_place_is_not_waited_for(model: Path) -> None:
    import os

    os.mkfifo(kept_path(model))
    assert ModelConfig.load(model).num_detected_classes == 3


def test_nothing_is_kept_of_a_model_that_is_refused(tmp_path: Path) -> None:
    model = yolov8(tmp_path / "m.onnx", task="unheard of")
    with pytest.raises(ModelError):
        ModelConfig.load(model)
    assert not kept_path(model).exists()


def test_no_field_of_an_entry_names_a_file() -> None:
    assert ModelConfig.FIELDS.keys() >= KEPT_FIELDS
    assert not [n for n in KEPT_FIELDS if n.endswith(("_file", "_path", "_paths", "_files"))]


def test_the_file_is_json_for_people(model: Path) -> None:
    ModelConfig.load(model)
    (entry,) = json.loads(kept_path(model).read_text())["entries"]
    assert entry["values"]["parse_bbox_func_name"] == "HeadraceParseYoloV8"
    assert entry["model"]["name"] == "m.onnx"


@pytest.mark.parametrize("folder", ["onnx", "plain"])
def test_every_file_that_is_read_beside_a_model_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    read: list[Path] = []
    monkeypatch.setattr(deployments, "_text", lambda path: read.append(path) or "")
    model = tmp_path / folder / "m.onnx"
    sidecars.texts_beside(model)
    monkeypatch.setattr(deployments, "_text", lambda path: read.append(path) or _some(path))
    sidecars.texts_beside(model)
    sidecars.luxonis_texts(model)
    sidecars.mmdeploy_texts(model)
    sidecars.modelinfo_texts(model)
    sidecars.tao_texts(model.parent)
    assert len({*read}) >= 8
    assert {*read} <= {*files_beside(model)}


def _some(path: Path) -> str:
    """A text that leads on to the next file."""
    if path.name == "nvinfer_config.txt":
        return "[property]\nnet-scale-factor=1\n"
    if path.name == "deploy.json":
        return '{"models": [{"net": "m.onnx"}]}'
    if path.name == "pipeline.json":
        return '{"pipeline": {"tasks": [{"transforms": [{"type": "Normalize"}]}]}}'
    return '{"model_type": "x"}' if path.name == "config.json" else ""
