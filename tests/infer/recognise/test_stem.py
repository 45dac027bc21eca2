"""What is read from the beginning of a model file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.infer.recognise.stem import Stem, read_stem
from tests.infer.watch.detectors import write_detector

node = helper.make_node
MEAN, DEVIATION = np.float32([123.675, 116.28, 103.53]), np.float32([58.4, 57.1, 57.4])


def write(
    path: Path, nodes: list[onnx.NodeProto], *, raw: bool = True, **constants: object
) -> Path:
    def tensor(name: str, value: object) -> onnx.TensorProto:
        array = np.asarray(value, np.float32)
        if raw:
            return numpy_helper.from_array(array, name)
        return helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.ravel())

    graph = helper.make_graph(
        nodes,
        "stem",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, None, 32])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [tensor(n, v) for n, v in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


WEIGHTS = np.arange(2 * 3 * 3 * 3).reshape(2, 3, 3, 3)


@pytest.mark.parametrize("raw", [True, False])
def test_normalisation_in_the_graph(raw: bool, tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.onnx",
        [
            node("Cast", ["image"], ["a"], to=1),
            node("Sub", ["a", "mean"], ["b"]),
            node("Div", ["b", "deviation"], ["c"]),
            node("Conv", ["c", "w", "bias"], ["out"]),
        ],
        raw=raw,
        mean=MEAN.reshape(1, 3, 1, 1),
        deviation=DEVIATION.reshape(1, 3, 1, 1),
        w=WEIGHTS,
        bias=[1, 2],
    )
    stem = read_stem(path)
    assert stem is not None
    assert (stem.input, stem.axes) == ("image", (None, 3, None, 32))
    np.testing.assert_allclose(stem.factor, 1 / DEVIATION, rtol=1e-6)
    np.testing.assert_allclose(stem.shift, -MEAN / DEVIATION, rtol=1e-6)
    np.testing.assert_array_equal(stem.conv, WEIGHTS)
    np.testing.assert_array_equal(stem.bias, [1, 2])
    assert stem.normalises
    assert stem.statistics is None


def test_constants_as_nodes_and_arithmetic_either_way_round(tmp_path: Path) -> None:
    two = numpy_helper.from_array(np.float32(2), "")
    path = write(
        tmp_path / "m.onnx",
        [
            node("Constant", [], ["two"], value=two),
            node("Mul", ["two", "image"], ["a"]),
            node("Add", ["a", "minus"], ["b"]),
            node("Relu", ["b"], ["out"]),
        ],
        minus=[-1],
    )
    stem = read_stem(path)
    assert stem is not None
    assert (float(stem.factor[0]), float(stem.shift[0])) == (2, -1)
    assert stem.conv is None


def test_statistics_behind_the_first_convolution_and_of_the_input(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.onnx",
        [
            node("Conv", ["image", "w"], ["a"]),
            node("BatchNormalization", ["a", "one", "zero", "mean", "var"], ["out"]),
        ],
        w=WEIGHTS, one=[1, 1], zero=[0, 0], mean=[3, 4], var=[25, 36],
    )  # fmt: skip
    stem = read_stem(path)
    assert stem is not None
    assert stem.statistics is not None
    np.testing.assert_array_equal(stem.statistics, [[3, 4], [25, 36]])
    path = write(
        tmp_path / "m.onnx",
        [node("BatchNormalization", ["image", "one", "zero", "mean", "var"], ["out"])],
        one=[1] * 3, zero=[0] * 3, mean=MEAN, var=DEVIATION**2,
    )  # fmt: skip
    stem = read_stem(path)
    assert stem is not None
    np.testing.assert_allclose(stem.factor, 1 / DEVIATION, rtol=1e-6)


def test_what_branches_or_lies_elsewhere_says_nothing(tmp_path: Path) -> None:
    slices = [node("Relu", ["image"], ["a"]), node("Neg", ["image"], ["b"])]
    path = write(tmp_path / "m.onnx", [*slices, node("Add", ["a", "b"], ["out"])])
    stem = read_stem(path)
    assert stem is not None
    assert not stem.normalises
    assert stem.conv is None


def test_metadata(tmp_path: Path) -> None:
    path = write_detector(tmp_path / "m.onnx", metadata={"author": "A", "names": "{0: 'x'}"})
    stem = read_stem(path)
    assert stem is not None
    assert stem.metadata == {"author": "A", "names": "{0: 'x'}"}


@pytest.mark.parametrize("cut", [0, 1, 20, 200, -1])
def test_no_file_and_broken_ones(cut: int, tmp_path: Path) -> None:
    assert read_stem(tmp_path / "none.onnx") is None
    path = write_detector(tmp_path / "m.onnx")
    path.write_bytes(path.read_bytes()[:cut])
    stem = read_stem(path)
    assert stem is None or not stem.normalises


def test_bytes_of_anything(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = bytearray(write_detector(tmp_path / "m.onnx", stem=True).read_bytes())
    for _ in range(300):
        data = whole.copy()
        for at in rng.integers(0, len(data), 4):
            data[at] = rng.integers(0, 256)
        (tmp_path / "odd.onnx").write_bytes(data)
        read_stem(tmp_path / "odd.onnx")  # says something or nothing, and does not fail


def test_half_precision_and_weights_in_another_file(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", [node("Conv", ["image", "w"], ["out"])], w=WEIGHTS)
    model = onnx.load(path)
    for value in (
        numpy_helper.from_array(WEIGHTS.astype(np.float16), "w"),
        helper.make_tensor("w", TensorProto.FLOAT16, WEIGHTS.shape, WEIGHTS.ravel()),
    ):
        model.graph.initializer[0].CopyFrom(value)
        onnx.save(model, path)
        stem = read_stem(path)
        assert stem is not None
        np.testing.assert_array_equal(stem.conv, WEIGHTS)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(WEIGHTS), "w"))
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    stem = read_stem(path)
    assert stem is not None
    np.testing.assert_array_equal(stem.conv, WEIGHTS)
    (tmp_path / "w.bin").unlink()
    stem = read_stem(path)
    assert stem is not None
    assert stem.conv is None


def test_a_focus_is_followed_but_is_not_direct(tmp_path: Path) -> None:
    cuts = [node("Slice", ["image", "zero", "one"], [f"s{i}"]) for i in range(4)]
    join = node("Concat", ["s0", "s1", "s2", "s3"], ["joined"], axis=1)
    path = write(tmp_path / "m.onnx", [*cuts, join, node("Conv", ["joined", "w"], ["out"])],
                 zero=[0], one=[1], w=WEIGHTS)  # fmt: skip
    stem = read_stem(path)
    assert stem is not None
    assert stem.focus
    assert not stem.direct
    np.testing.assert_array_equal(stem.conv, WEIGHTS)


@pytest.mark.parametrize("gain", [[1, 1], [0.3, 1.7]])
def test_statistics_as_initialised_are_none(gain: list[float], tmp_path: Path) -> None:
    stem = normalised(tmp_path / "m.onnx", gain, [0, 0])
    assert stem.untrained
    assert stem.conv is not None
    assert stem.statistics is None


def test_a_learnt_shift_tells_of_a_training(tmp_path: Path) -> None:
    stem = normalised(tmp_path / "m.onnx", [0.3, 0.3], [0.5, 0.4])
    assert not stem.untrained
    assert stem.statistics is not None


def normalised(path: Path, gain: list[float], shift: list[float]) -> Stem:
    """The stem of a model with a batch normalisation of mean 0 and variance 1."""
    nodes = [
        node("Conv", ["image", "w"], ["a"]),
        node("BatchNormalization", ["a", "gain", "shift", "zero", "one"], ["out"]),
    ]
    write(path, nodes, w=WEIGHTS, gain=gain, shift=shift, one=[1, 1], zero=[0, 0])
    stem = read_stem(path)
    assert stem is not None
    return stem


@pytest.mark.parametrize("alike", [False, True], ids=["by chance", "as training makes them"])
def test_weights_without_training(alike: bool, tmp_path: Path) -> None:
    """A bias of zeros tells only of filters whose channels are unrelated."""
    weights = np.random.default_rng(0).normal(0, 0.1, (16, 2, 3, 3))
    weights[:, 1] = weights[:, 0] if alike else weights[:, 1]
    nodes = [node("Conv", ["image", "w", "b"], ["out"])]
    stem = read_stem(write(tmp_path / "m.onnx", nodes, w=weights, b=np.zeros(16)))
    assert stem is not None
    assert stem.untrained is not alike
