"""The first layers tell the scaling: folded weights roughly, kept statistics closely."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from headrace.infer.recognise.evidence import FileEvidence
from headrace.infer.recognise.first_layers import FirstLayers, weigh
from headrace.infer.recognise.images import read_images
from tests.infer.recognise.models import SPREAD, filters, node, save


def stem_of(path: Path) -> FirstLayers:
    return weigh(FileEvidence.read(path).stem)


def with_statistics(path: Path, scale: float, offset: float) -> Path:
    """A convolution and the normalisation that trained on images scaled so."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.2, (16, 3, 3, 3)).astype(np.float32) + np.float32(0.1)
    images = rng.normal(0.45 * 255, SPREAD, (4000, 1, 1, 1))
    # neighbours and channels alike, as in natural images
    noise = rng.normal(0, SPREAD, (4000, 3, 3, 3)) * np.sqrt(1 - 0.9)
    seen = ((images - 0.45 * 255) * np.sqrt(0.9) + 0.45 * 255 + noise - offset) * scale
    answers = np.einsum("nchw,ochw->no", seen, weights)
    constants = {"w": weights, "one": np.ones(16, np.float32), "zero": np.zeros(16, np.float32),
                 "mean": answers.mean(axis=0).astype(np.float32),
                 "variance": answers.var(axis=0).astype(np.float32)}  # fmt: skip
    nodes = [
        node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3]),
        node("BatchNormalization", ["y", "one", "zero", "mean", "variance"], ["z"]),
    ]
    return save(path, nodes, {"x": [1, 3, 8, 8]}, {"z": [1, 16, 6, 6]}, constants=constants)


@pytest.mark.parametrize(("scale", "offset", "centred"), [
    (1 / 255, 0, False), (1 / 127.5, 127.5, True), (1 / 57.6, 116, True),
])  # fmt: skip
def test_statistics_tell_scale_and_mean(
    tmp_path: Path, scale: float, offset: float, centred: bool
) -> None:
    stem = stem_of(with_statistics(tmp_path / "m.onnx", scale, offset))
    assert stem.level == "small"
    assert stem.scale == pytest.approx(scale, rel=0.25)
    assert stem.centred is centred


def test_statistics_of_bytes(tmp_path: Path) -> None:
    stem = stem_of(with_statistics(tmp_path / "m.onnx", 1.0, 0))
    assert stem.level == "bytes"
    assert stem.scale == pytest.approx(1, rel=0.25)


@pytest.mark.parametrize(("doc", "order", "offsets"), [
    ("", "BGR", (103.939, 116.779, 123.68)), ("takes RGB", "RGB", (123.68, 116.779, 103.939)),
])  # fmt: skip
def test_bytes_around_zero_lost_caffes_means(
    tmp_path: Path, doc: str, order: str, offsets: tuple[float, ...]
) -> None:
    path = with_statistics(tmp_path / "m.onnx", 1.0, 116)
    model = onnx.load(path)
    model.doc_string = doc
    onnx.save(model, path)
    evidence = FileEvidence.read(path)
    images = read_images(evidence, weigh(evidence.stem), None)
    assert (images.order, images.scaling.factor, images.scaling.offsets) == (order, 1.0, offsets)
    assert "means" in images.assumed
    evidence = FileEvidence.read(with_statistics(tmp_path / "plain.onnx", 1.0, 0))
    images = read_images(evidence, weigh(evidence.stem), None)
    assert (images.scaling.offsets, "means" in images.assumed) == ((), True)


def test_statistics_as_initialised_tell_nothing(tmp_path: Path) -> None:
    constants = {"w": filters(3, 15.0), **{n: np.full(8, v, np.float32) for n, v in
                 {"a": 1, "b": 0, "mean": 0, "variance": 1}.items()}}  # fmt: skip
    nodes = [node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3]),
             node("BatchNormalization", ["y", "a", "b", "mean", "variance"], ["z"])]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": [1, 3, 8, 8]}, {"z": [1, 8, 6, 6]},
                constants=constants)  # fmt: skip
    assert stem_of(path).level is None


@pytest.mark.parametrize(("spread", "level"), [(1.0, "bytes"), (15.0, None), (500.0, "small")])
def test_folded_weights_tell_bytes_from_small_numbers(
    tmp_path: Path, spread: float, level: str | None
) -> None:
    nodes = [node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])]
    path = save(tmp_path / "m.onnx", nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 8, 6, 6]},
                constants={"w": filters(3, spread)})  # fmt: skip
    stem = stem_of(path)
    assert (stem.level, stem.scale) == (level, None)
    assert "vary by" in stem.why


@pytest.mark.parametrize(("operator", "number", "level"), [
    ("Div", 255.0, "bytes"), ("Mul", 1 / 255, "bytes"), ("Sub", 123.7, "bytes"),
    ("Sub", 0.45, "small"), ("Div", 0.226, "small"),
])  # fmt: skip
def test_a_graph_that_normalises_itself(
    tmp_path: Path, operator: str, number: float, level: str
) -> None:
    nodes = [node(operator, ["x", "c"], ["s"]),
             node("Conv", ["s", "w"], ["y"], kernel_shape=[3, 3])]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 8, 6, 6]},
                constants={"w": filters(3, 1.0), "c": np.float32(number)})  # fmt: skip
    stem = stem_of(path)
    assert stem.level == level
    assert operator in stem.inside


def test_no_convolution_no_word(tmp_path: Path) -> None:
    nodes = [node("GlobalAveragePool", ["x"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 3, 1, 1]})
    assert stem_of(path) == FirstLayers()
