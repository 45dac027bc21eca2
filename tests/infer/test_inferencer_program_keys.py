"""Keys, thresholds, labels and parsers that a program sets over a config."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import headrace
from headrace.config.overrides import combined, given_conf, given_line
from headrace.errors import ConfigError, CustomLibraryError, ModelError

Config = Callable[..., Path]

GRAY = np.full((48, 64, 3), 128, np.uint8)


def corner(layers: Any, network: Any, params: Any) -> headrace.Detections:
    """One box in the corner."""
    return headrace.Detections(
        np.array([[0, 0, 8, 8]], np.float32), np.array([0.9], np.float32), np.zeros(1, np.int32)
    )


def one(model: headrace.Inferencer) -> headrace.ObjectMeta:
    (found,) = model(GRAY).objects
    return found


def test_keys_win_over_a_path_and_a_loaded_config(mean_config: Config, tmp_path: Path) -> None:
    path = mean_config()
    (tmp_path / "own.txt").write_text("parcel\n")
    for config in (path, headrace.ModelConfig.load(path)):
        with headrace.Inferencer.from_config(
            config, labels=tmp_path / "own.txt", interval=2, batch_size=2
        ) as model:
            assert one(model).label == "parcel"
            assert (model.interval, model.config.batch_size) == (2, 2)
        with headrace.Inferencer.from_config(config, conf=0.6) as model:
            assert len(model(GRAY).objects) == 0
        with headrace.Inferencer.from_config(config, **{"class-attrs-0.topk": 0}) as model:
            assert len(model(GRAY).objects) == 0


def test_a_key_that_is_none_is_refused_with_the_nearest(mean_config: Config) -> None:
    with pytest.raises(ConfigError, match="did you mean cluster-mode"):
        headrace.Inferencer.from_config(mean_config(), cluster_mod=2)
    with pytest.raises(ConfigError, match="did you mean threads"):
        headrace.Inferencer.from_config(mean_config(), thread=2)


class Parser:
    def __call__(self, layers: Any, network: Any, params: Any) -> headrace.Detections:
        return corner(layers, network, params)

    def method(self, layers: Any, network: Any, params: Any) -> headrace.Detections:
        return corner(layers, network, params)


@pytest.mark.parametrize(
    "function",
    [corner, lambda *args: corner(*args), partial(corner), Parser(), Parser().method],
    ids=["function", "lambda", "partial", "object", "method"],
)
def test_a_function_is_the_parser(mean_config: Config, function: Any) -> None:
    with headrace.Inferencer.from_config(mean_config(), parser=function) as model:
        assert one(model).rect == (0, 0, 16, 12)
        assert model.parser is not None
        assert model.parser.source.endswith("of the program")
        told = [n for n in model.notices if "is not called" in n.sentence]
        assert told[0].level == "info"
        assert told[0].where is not None
        assert "config.txt:" in told[0].where


def test_it_needs_no_library(mean_config: Config) -> None:
    config = mean_config(custom_lib_path=None, parse_bbox_func_name=None)
    with headrace.Inferencer.from_config(config, parser=corner) as model:
        assert one(model).confidence == pytest.approx(0.9)


def test_its_errors_name_the_line(mean_config: Config) -> None:
    def fails(layers: Any, network: Any, params: Any) -> headrace.Detections:
        return layers["nothing of this name"]  # type: ignore[no-any-return]

    with headrace.Inferencer.from_config(mean_config(), parser=fails) as model:
        model(GRAY)
        assert model.failed_items == 1
        (notice,) = [n for n in model.notices if "KeyError" in n.sentence or "raised" in n.sentence]
    assert "test_inferencer_program_keys.py:" in str(notice)
    assert "the network's outputs are" in str(notice)


@pytest.mark.parametrize("result", [None, [1, 2], "boxes"])
def test_its_results_are_checked(mean_config: Config, result: Any) -> None:
    with headrace.Inferencer.from_config(mean_config(), parser=lambda a, b, c: result) as model:
        assert len(model(GRAY).objects) == 0
        assert model.failed_items == 1
        assert any("the parser returned" in n.sentence for n in model.notices)


async def coroutine(layers: Any, network: Any, params: Any) -> None: ...


@pytest.mark.parametrize(
    ("parser", "words"),
    [
        (lambda layers: None, "cannot be called with three arguments"),
        ("my_function", "not a function"),
        (Parser, "is a class"),
        (coroutine, "coroutine"),
    ],
)
def test_what_is_no_parser_is_refused(mean_config: Config, parser: Any, words: str) -> None:
    with pytest.raises(CustomLibraryError, match=words):
        headrace.Inferencer.from_config(mean_config(), parser=parser)


def test_raw_tensors_have_no_parser(mean_config: Config) -> None:
    with pytest.raises(ConfigError, match=r"network-type 100 .*parses nothing"):
        headrace.Inferencer.from_config(mean_config(), network_type=100, parser=corner)


def test_a_model_that_takes_over_keeps_it(mean_config: Config) -> None:
    config = mean_config()
    with headrace.Inferencer.from_config(config, parser=corner) as model:
        model.update_model(config=config).wait()
        assert one(model).rect == (0, 0, 16, 12)


def test_parsers_of_other_types(mean_config: Config) -> None:
    def classify(layers: Any, network: Any, params: Any) -> headrace.Classification:
        found = headrace.Classification(text="red")
        found.add(0, 1, 0.75, "red")
        return found

    with headrace.Inferencer.from_config(
        mean_config(), network_type=1, parser=classify, parse_classifier_func_name=""
    ) as model:
        (found,) = model(GRAY).objects[0].classifiers
        assert found.labels[0].label == "red"


def bare(folder: Path, *shape: int) -> Path:
    """A model of one output (1, *shape) that grows with the image's mean."""
    values = np.random.default_rng(0).random((1, *shape)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["images"], ["pooled"]),
            helper.make_node("ReduceMean", ["pooled"], ["mean"], keepdims=0),
            helper.make_node("Mul", ["mean", "values"], ["output0"]),
        ],
        "bare",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, *shape])],
        [numpy_helper.from_array(values, "values")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "bare.onnx")
    return folder / "bare.onnx"


def test_what_a_bare_model_leaves_open_is_set(tmp_path: Path) -> None:
    path = bare(tmp_path, 100, 6)
    lines = ("parse-bbox-func-name=NvDsInferParseYolo", "num-detected-classes=4", "topk=5")
    given = [given_line("net-scale-factor=1", "--set")]
    with pytest.raises(ModelError, match=r"--set (num-detected-classes=80|parse-bbox)"):
        headrace.ModelConfig.load(path, combined(given))
    given += [given_line(text, "--set") for text in lines]
    cfg = headrace.ModelConfig.load(path, combined([*given, given_conf("0.3", "--conf")]))
    assert (cfg.parse_bbox_func_name, cfg.num_detected_classes) == ("NvDsInferParseYolo", 4)
    assert (cfg.all_classes.topk, cfg.all_classes.pre_cluster_threshold) == (5, 0.3)
    assert str(cfg.origin("num_detected_classes")) == "--set"
    assert cfg.origin("onnx_file").kind == "model"


@pytest.mark.parametrize("shape", [(100, 6), (7, 3, 5)], ids=["two would fit", "none fits"])
def test_a_function_reads_a_bare_model(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = bare(tmp_path, *shape)
    keys = {"num_detected_classes": 1, "net_scale_factor": 1}
    with headrace.Inferencer.from_config(path, parser=corner, **keys) as model:
        assert one(model).confidence == pytest.approx(0.9)
        assert not [n for n in model.notices if "is not called" in n.sentence]
    images = headrace.ArraySource([GRAY] * 2)
    pipeline = headrace.open_pipeline(
        path, sources=images, parser=lambda *given: corner(*given), **keys
    )
    assert [len(meta.objects) for _, meta in pipeline] == [1, 1]
