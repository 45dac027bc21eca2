"""Engine creators and model parsers in C++: from Darknet files and a config to boxes."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from headrace import Inferencer
from headrace.config import ModelConfig
from headrace.custom.compile.build_library import compile_library
from headrace.custom.guard.keeper import can_guard
from headrace.engine import Plan
from headrace.errors import CustomLibraryError
from headrace.infer.model import load_or_build
from headrace.infer.model.init_params import init_params
from headrace.media import Frame, PixelFormat
from tests.network.darknet.models import Darknet
from tests.profiles import slow
from tests.trt.host.conftest import Compile
from tests.trt.host.darknet import Model, tiny_yolo

CONFIG = """[property]
net-scale-factor=0.00392156862745098
model-file={weights}
custom-network-config={cfg}
batch-size=2
gie-unique-id=1
num-detected-classes=3
network-type=0
cluster-mode=4
custom-lib-path={library}
custom-lib-guard={guard}
parse-bbox-func-name=NvDsInferParseMiniYolo
{more}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.chdir(tmp_path)
    return tiny_yolo(tmp_path)


def _config(model: Model, library: Path, more: str = "", guard: str = "never") -> ModelConfig:
    path = model.cfg.parent / "config.txt"
    keys = {"weights": model.weights, "cfg": model.cfg, "library": library, "guard": guard}
    path.write_text(CONFIG.format(**keys, more=more))
    return ModelConfig.load(path)


def _check(plan: Plan, model: Model) -> None:
    with plan.open_session() as session:
        found = session.run({"input": model.images})["rows"]
    np.testing.assert_allclose(found, model.rows, atol=2e-4)


def test_attributes_of_a_class_come_in_the_order_of_the_structure(model: Model) -> None:
    more = (
        "[class-attrs-all]\npre-cluster-threshold=0.25\npost-cluster-threshold=0.5\neps=0.75\n"
        "minBoxes=4\ngroup-threshold=5\ndbscan-min-score=0.125\nnms-iou-threshold=0.375\ntopk=7"
    )
    params = Mock()
    init_params(_config(model, Path("none.so"), more), params)
    assert params.set_classes.call_args.args == ([[0.25, 0.5, 0.75, 4, 5, 0.125, 0.375, 7]] * 3,)


@pytest.mark.parametrize(
    ("major", "flag", "key", "function"),
    [
        (10, "", "engine-create-func-name=MiniYoloEngineCreate", "MiniYoloEngineCreate"),
        slow(8, "", "engine-create-func-name=MiniYoloEngineCreate", "MiniYoloEngineCreate"),
        slow(7, "", "engine-create-func-name=MiniYoloEngineCreate", "MiniYoloEngineCreate"),
        (10, "-DWITH_CUDA_ENGINE_GET", "", "NvDsInferCudaEngineGet"),
        (10, "-DWITH_MODEL_PARSER", "", "NvDsInferCreateModelParser"),
    ],
)
@pytest.mark.sampled
def test_every_entry_point_makes_the_network(
    compile_host: Compile, model: Model, major: int, flag: str, key: str, function: str
) -> None:
    library = compile_host("mini_yolo.cpp", major, *([flag] if flag else []))
    cfg = _config(model, library, key)
    plan = load_or_build(cfg)
    _check(plan, model)
    assert any(n.sentence == f"the network was made by {function}" for n in plan.decisions)
    parser = function == "NvDsInferCreateModelParser"
    expected = f"{'mini.weights' if parser else 'model'}_b2_gpu0_fp32.engine"
    assert plan.path == model.cfg.parent / expected
    again = load_or_build(cfg)
    told = [n.sentence for n in again.decisions if n.where == str(plan.path)]
    if parser:  # its runtime factory says false: the engine cannot be loaded
        refused = "engine not used: NvDsInferPluginFactoryRuntimeGet: it returned false"
        built = f"built from {library.name}"
        assert [text.partition(";")[0] for text in told] == [refused.partition(";")[0], built]
    else:
        assert told == ["loaded"]
    _check(again, model)


@pytest.mark.slow
def test_a_changed_model_file_builds_anew(compile_host: Compile, model: Model) -> None:
    library = compile_host("mini_yolo.cpp", 10)
    cfg = _config(model, library, "engine-create-func-name=MiniYoloEngineCreate")
    load_or_build(cfg)
    changed = tiny_yolo(model.cfg.parent, seed=9)
    plan = load_or_build(cfg)
    assert any("model-file changed" in n.sentence for n in plan.decisions)
    _check(plan, changed)


def test_from_a_config_to_boxes(compile_host: Compile, model: Model) -> None:
    height, width = model.images.shape[2:]
    pixels = np.round(model.images[0] * 255).astype(np.uint8)
    slow = Darknet(model.cfg.read_text(), 5)
    slow.run(pixels[None].astype(np.float32) * np.float32(0.00392156862745098))
    rows = np.concatenate(slow.rows, 1)[0]
    rows = rows[np.argsort(-rows[:, 4])]
    threshold = (rows[24, 4] + rows[25, 4]) / 2
    left, top = np.clip(rows[:25, 0], 0, width), np.clip(rows[:25, 1], 0, height)
    right, bottom = np.clip(rows[:25, 2], 0, width), np.clip(rows[:25, 3], 0, height)
    wanted = np.stack([left, top, right - left, bottom - top], 1)

    library = compile_host("mini_yolo.cpp", 10)
    more = "engine-create-func-name=MiniYoloEngineCreate\n[class-attrs-all]\ntopk=100\n"
    cfg = _config(model, library, f"{more}pre-cluster-threshold={threshold:.7f}")
    frame = Frame.from_array(pixels.transpose(1, 2, 0), PixelFormat.RGB)
    with Inferencer.from_config(cfg) as inferencer:
        found = np.array([o.rect for o in inferencer(frame).objects], np.float32)
    assert len(found) == 25
    for rect in wanted:
        assert np.abs(found - rect).max(1).min() < 0.05


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("SaysFalse", "it returned false"),
        ("GivesNoEngine", "it returned true, but no engine"),
        ("Throws", "it threw std::runtime_error: no weights today"),
        ("AddsNonsense", "(Unnamed Layer* 0) [ElementWise]"),
        ("NotThere", "no function 'NotThere'"),
    ],
)
@pytest.mark.sampled
def test_failures_are_told(compile_host: Compile, model: Model, function: str, words: str) -> None:
    library = compile_host("mini_yolo.cpp", 10)
    cfg = _config(model, library, f"engine-create-func-name={function}")
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(cfg)
    assert words in str(caught.value)
    assert function in str(caught.value)


@pytest.mark.parametrize("guard", ["never"] + ["always"] * (can_guard() is None))
@pytest.mark.sampled
def test_a_precision_that_is_not_built_is_told_once_with_its_line(
    compile_host: Compile, model: Model, guard: str
) -> None:
    more = "network-mode=2\nengine-create-func-name=MiniYoloEngineCreate"
    cfg = _config(model, compile_host("mini_yolo.cpp", 10), more, guard=guard)
    for _ in range(2):  # built, then loaded
        told = [n for n in load_or_build(cfg).decisions if "FP32 is built" in n.sentence]
        assert [n.where for n in told] == [str(cfg.origin("network_mode"))]
        assert told[0].sentence.startswith("network-mode=2: ")


@pytest.mark.slow
def test_a_function_that_calls_nothing_of_tensorrt(
    compile_host: Compile, model: Model, tmp_path: Path
) -> None:
    """It is compiled against headrace's headers all the same."""
    source = tmp_path / "refuses.cpp"
    source.write_text(
        '#include "nvdsinfer_custom_impl.h"\nextern "C" bool Refuses('
        "nvinfer1::IBuilder *, nvinfer1::IBuilderConfig *, const NvDsInferContextInitParams *, "
        "nvinfer1::DataType, nvinfer1::ICudaEngine *&) { return false; }\n"
    )
    library = tmp_path / "librefuses.so"
    compile_library([source], library)
    with pytest.raises(CustomLibraryError, match="Refuses: it returned false"):
        load_or_build(_config(model, library, "engine-create-func-name=Refuses"))


def test_a_missing_file_is_the_users_message(
    compile_host: Compile, model: Model, capfd: pytest.CaptureFixture[str]
) -> None:
    library = compile_host("mini_yolo.cpp", 10)
    cfg = _config(model, library, "engine-create-func-name=MiniYoloEngineCreate")
    model.weights.unlink()
    with pytest.raises(CustomLibraryError, match="it returned false"):
        load_or_build(cfg)
    assert "cannot read" in capfd.readouterr().err
