"""Networks that functions of a Python library make."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.errors import ConfigError, CustomLibraryError, HeadraceError
from headrace.infer.model import load_or_build
from tests.creators import registry_as_before

HEAD = """
import numpy as np
import headrace.trt as trt
from headrace.custom import IModelParser

def fill(network, factor=2.0):
    x = network.add_input("data", trt.float32, (-1, 3, 4, 5))
    two = network.add_constant((1, 1, 1, 1), np.full(1, factor, np.float32)).get_output(0)
    y = network.add_elementwise(x, two, trt.ElementWiseOperation.PROD).get_output(0)
    y.name = "y"
    network.mark_output(y)

def profiled(builder, config, batch):
    profile = builder.create_optimization_profile()
    profile.set_shape("data", (1, 3, 4, 5), (batch, 3, 4, 5), (batch, 3, 4, 5))
    config.add_optimization_profile(profile)
    return config
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with registry_as_before():
        yield partial(_config, tmp_path)


def _config(folder: Path, code: str, *lines: str) -> ModelConfig:
    (folder / "lib.py").write_text(HEAD + textwrap.dedent(code))
    text = ["[property]", "gie-unique-id=1", "batch-size=2", "network-type=100",
            "custom-lib-path=lib.py", *lines]  # fmt: skip
    (folder / "c.txt").write_text("\n".join(text) + "\n")
    return ModelConfig.load(folder / "c.txt")


def doubled(plan) -> None:
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    with plan.open_session() as session:
        np.testing.assert_array_equal(session.run({"data": x})["y"], 2 * x)


CREATE = """
def make(builder, config, initParams, dataType):
    assert initParams.maxBatchSize == 2 and initParams.uniqueID == 1
    assert dataType == trt.float32
    network = builder.create_network(1)
    fill(network)
    return RETURNED
"""


@pytest.mark.parametrize(
    "returned",
    [
        "builder.build_engine(network, profiled(builder, config, 2))",
        "builder.build_serialized_network(network, profiled(builder, config, 2))",
        "network",
    ],
)
def test_engine_creator(config, returned):
    cfg = config(CREATE.replace("RETURNED", returned), "engine-create-func-name=make")
    plan = load_or_build(cfg)
    doubled(plan)
    assert Path("model_b2_gpu0_fp32.engine").exists()
    assert any("made by make" in n.sentence for n in plan.decisions)
    again = load_or_build(cfg)
    assert any(n.code == "engine-loaded" for n in again.decisions)


def test_a_changed_library_is_called_again(config):
    cfg = config(CREATE.replace("RETURNED", "network"), "engine-create-func-name=make")
    load_or_build(cfg)
    code = CREATE.replace("RETURNED", "network").replace("fill(network)", "fill(network, 3.0)")
    plan = load_or_build(config(code, "engine-create-func-name=make"))
    x = np.ones((1, 3, 4, 5), np.float32)
    with plan.open_session() as session:
        assert session.run({"data": x})["y"].max() == 3


def test_old_creator_by_its_fixed_name(config):
    plan = load_or_build(
        config("""
        def NvDsInferCudaEngineGet(builder, initParams, dataType):
            network = builder.create_network(1)
            fill(network)
            return network
        """)
    )
    doubled(plan)


@pytest.mark.parametrize("full", [True, False])
def test_model_parser_and_the_order_of_its_calls(config, full):
    Path("m.own").write_text("2")
    code = f"""
    calls = []
    class Parser(IModelParser):
        def __init__(self, initParams):
            self.path = initParams.modelFilePath
        def hasFullDimsSupported(self):
            calls.append("full")
            return {full}
        def parseModel(self, network):
            calls.append("parse")
            assert network.has_implicit_batch_dimension != {full}
            x = network.add_input("data", trt.float32, {(-1, 3, 4, 5) if full else (3, 4, 5)})
            shape = (1,) * len(x.shape)
            factor = np.full(1, float(open(self.path).read()), np.float32)
            c = network.add_constant(shape, factor).get_output(0)
            y = network.add_elementwise(x, c, trt.ElementWiseOperation.PROD).get_output(0)
            y.name = "y"
            network.mark_output(y)
            return 0
        def getModelName(self):
            assert calls == ["full", "parse"]
            return "own"
    def NvDsInferCreateModelParser(initParams):
        return Parser(initParams)
    """
    plan = load_or_build(config(code, "model-file=m.own"))
    doubled(plan)
    assert Path("m.own_b2_gpu0_fp32.engine").exists()


def test_named_creator_goes_before_the_fixed_names_and_the_model(config):
    code = CREATE.replace("RETURNED", "network") + textwrap.dedent("""
    def NvDsInferCreateModelParser(initParams):
        raise AssertionError("not this one")
    """)
    doubled(load_or_build(config(code, "engine-create-func-name=make", "onnx-file=none.onnx")))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def other(a): pass", "no function 'make'"),
        ("make = 3", "not a function"),
        ("def make(a, b): pass", "cannot be called with 4 arguments"),
        ("def make(b, c, i, d): raise KeyError('weights')", "KeyError: 'weights'"),
        ("def make(b, c, i, d): return None", "no engine"),
        ("def make(b, c, i, d): return 'engine'", "not built by its `builder`"),
        ("def make(b, c, i, d): return b.create_network(1)", "has no outputs"),
        ("def make(b, c, i, d): return b.build_engine(b.create_network(1), c)", "no engine"),
    ],
)
def test_what_goes_wrong_is_told(config, code, said):
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(code, "engine-create-func-name=make"))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return None", "returned a NoneType"),
        ("class P(IModelParser):\n        def parseModel(self, n): return 7\n    return P()",
         "status 7"),
        ("return IModelParser()", "NotImplementedError"),
    ],
)  # fmt: skip
def test_model_parsers_that_fail(config, body, said):
    code = f"\ndef NvDsInferCreateModelParser(initParams):\n    {body}\n"
    Path("m.own").write_text("2")
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(code, "model-file=m.own"))
    assert said in str(caught.value)


def test_library_of_parsers_alone_still_needs_a_model(config):
    with pytest.raises((ConfigError, HeadraceError), match="model"):
        load_or_build(config("def parse(layers, network, params): ..."))


def test_what_python_makes_is_not_guarded(config):
    lines = ("engine-create-func-name=make", "custom-lib-guard=")
    text = CREATE.replace("RETURNED", "network")
    plan = load_or_build(config(text, lines[0], lines[1] + "auto"))
    doubled(plan)
    assert not [n for n in plan.decisions if "not guarded" in n.sentence]
    with pytest.raises(HeadraceError, match="networks that Python makes are not guarded") as said:
        load_or_build(config(text, lines[0], lines[1] + "always"))
    assert said.value.code == "not-guarded"
    assert "guard=auto" in str(said.value)


def test_plugins_in_python_are_refused_where_all_is_guarded(config):
    text = """
from headrace.plugins import IPluginCreator, PluginFieldCollection
class Own(IPluginCreator):
    def __init__(self):
        super().__init__()
        self.name, self.plugin_version = "Own", "1"
        self.field_names = PluginFieldCollection()
""" + CREATE.replace("RETURNED", "network")
    with pytest.raises(HeadraceError, match="are not guarded"):
        load_or_build(config(text, "custom-lib-guard=always"))
