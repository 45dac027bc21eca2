"""Calibration of models with plugins, and the command's way to name images and to end."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper, numpy_helper
from PIL import Image

from headrace.cli import main
from headrace.config import ModelConfig
from headrace.diagnose.calibrate.scales import calibrate
from headrace.infer.model import load_or_build
from headrace.plugins import get_plugin_registry
from headrace.plugins.standard import init_libnvinfer_plugins

PLUGIN = """
import numpy as np
from headrace.plugins import *

class Twice(IPluginV2DynamicExt):
    def __init__(self):
        super().__init__()
        self.num_outputs, self.plugin_type = 1, "Twice"
        self.plugin_version, self.plugin_namespace = "1", ""
    def get_output_datatype(self, index, types):
        return types[0]
    def get_output_dimensions(self, index, inputs, exprs):
        return DimsExprs(inputs[0])
    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].type == KIND and in_out[pos].format == TensorFormat.LINEAR
    def configure_plugin(self, inputs, outputs):
        pass
    def clone(self):
        return Twice()
    def serialize(self):
        return b"-"
    def enqueue(self, inp, out, inputs, outputs, workspace, stream):
        x = array_at(inputs[0], inp[0].dims, KIND)
        y = 2.0 * x
        if KIND == DataType.INT8:
            y = np.clip(np.rint(y * inp[0].scale / out[0].scale), -128, 127)
        array_at(outputs[0], out[0].dims, KIND, writable=True)[...] = y

class TwiceCreator(IPluginCreator):
    def __init__(self):
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = "Twice", "1", ""
        self.field_names = PluginFieldCollection([])
    def create_plugin(self, name, fields):
        return Twice()
    def deserialize_plugin(self, name, data):
        return Twice()
"""
CONFIG = """[property]
onnx-file=m.onnx
custom-lib-path=twice.py
network-type=100
output-tensor-meta=1
net-scale-factor=0.00392156862745098
batch-size=2
gie-unique-id=1
"""


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    registry = get_plugin_registry()
    init_libnvinfer_plugins()  # these stay
    before = set(map(id, registry.all_creators))
    yield
    for creator in registry.all_creators:
        if id(creator) not in before:
            registry.deregister_creator(creator)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A model image -> Conv -> Twice -> Conv -> y, its config, and six images."""
    rng = np.random.default_rng(0)
    weights = {n: rng.normal(0, 0.3, (4, c, 3, 3)) for n, c in (("w", 3), ("v", 4))}
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["a"], pads=[1] * 4, name="first"),
        helper.make_node("Twice", ["a"], ["p"], name="twice"),
        helper.make_node("Conv", ["p", "v"], ["y"], pads=[1] * 4, name="last"),
    ]
    info = [
        helper.make_tensor_value_info(n, 1, ["N", c, 8, 8]) for n, c in (("image", 3), ("y", 4))
    ]
    arrays = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], arrays)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "m.onnx",
    )
    (tmp_path / "twice.py").write_text(PLUGIN.replace("KIND", "DataType.FLOAT"))
    (tmp_path / "images").mkdir()
    for i in range(6):
        pixels = rng.integers(0, 255, (12, 16, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{i}.png")
    path = tmp_path / "c.txt"
    path.write_text(CONFIG)
    return path


def outputs(path: Path, x: Any) -> Any:
    plan = load_or_build(ModelConfig.load(path), save=False)
    with plan.open_session() as session:
        return session.run({"image": x})["y"]


def test_outputs_of_plugins_get_scales_and_int8_plugins_run_by_them(
    config: Path, tmp_path: Path
) -> None:
    report = calibrate(ModelConfig.load(config), [str(tmp_path / "images")], method="minmax")
    scales = report.table.scales
    assert set(scales) == {"image", "a", "p", "y"}
    assert scales["p"] == pytest.approx(2 * scales["a"])
    x = np.random.default_rng(1).random((2, 3, 8, 8), np.float32)
    wanted = outputs(config, x)
    config.write_text(f"{CONFIG}network-mode=1\nint8-calib-file=m.onnx.calib\n")
    (tmp_path / "twice.py").write_text(PLUGIN.replace("KIND", "DataType.INT8"))
    made = outputs(config, x)
    assert np.abs(made - wanted).max() < 0.08 * np.abs(wanted).max()
    assert not np.array_equal(made, wanted)


SWISH = Path(__file__).parents[3] / "examples" / "11_cpp_plugin" / "swish.cpp"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("Twice", {}),
        ("Swish_TRT", {"beta": 2.0}),
        ("CustomGeluPluginDynamic", {"type_id": 0, "bias": [0.1, 0.2]}),
        ("GroupNormalizationPlugin", {"eps": 1e-5, "num_groups": 2}),
    ],
)
def test_models_with_plugins_are_calibrated_saved_and_loaded(
    config: Path, tmp_path: Path, operator: str, attributes: dict[str, Any]
) -> None:
    if operator == "Swish_TRT":
        if shutil.which("g++") is None:
            pytest.skip("no g++")
        words = ["compile", str(SWISH), "-o", str(tmp_path / "swish.so")]
        assert CliRunner().invoke(main, words).exit_code == 0
        config.write_text(CONFIG.replace("twice.py", "swish.so"))
    model = onnx.load(tmp_path / "m.onnx")
    node = model.graph.node[1]
    node.op_type = operator
    node.attribute.extend(helper.make_attribute(*pair) for pair in attributes.items())
    if operator == "GroupNormalizationPlugin":
        node.input.extend(["ones", "zeros"])
        ends = (np.ones(4, np.float32), np.zeros(4, np.float32))
        named = zip(("ones", "zeros"), ends, strict=True)
        model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in named)
    onnx.save(model, tmp_path / "m.onnx")
    words = [str(config), str(tmp_path / "images"), "--json"]
    made = CliRunner().invoke(main, ["calibrate", *words])
    assert made.exit_code == 0, made.output
    assert "dB of signal to noise" in made.output
    x = np.random.default_rng(1).random((2, 3, 8, 8), np.float32)
    wanted = outputs(config, x)
    int8 = config.with_name("int8.txt")
    int8.write_text(f"{config.read_text()}network-mode=1\nint8-calib-file=m.onnx.calib\n")
    fresh = load_or_build(ModelConfig.load(int8), save=False)
    built = CliRunner().invoke(main, ["build", str(int8)])
    assert "dB of signal to noise" in built.output
    assert list(tmp_path.glob("*int8.engine"))
    loaded = load_or_build(ModelConfig.load(int8))
    results = []
    for plan in (fresh, loaded):
        with plan.open_session() as session:
            results.append(session.run({"image": x})["y"])
    np.testing.assert_array_equal(*results)
    assert 0 < np.abs(results[0] - wanted).max() < 0.08 * np.abs(wanted).max()


def test_images_are_named_as_sources(config: Path, tmp_path: Path) -> None:
    words = [str(config), str(tmp_path / "images"), "--scales-only", "--frames", "4", "--json"]
    result = CliRunner().invoke(main, ["calibrate", *words])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "m.onnx.calib").is_file()
    missing = CliRunner().invoke(main, ["calibrate", str(config)])
    assert missing.exit_code == 2
    assert "SOURCE" in missing.output


@pytest.mark.slow
def test_sigterm_keeps_what_was_seen(config: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    slow = f"        open({str(begun)!r}, 'a').write('.')\n        import time; time.sleep(0.1)\n"
    plugin = PLUGIN.replace("KIND", "DataType.FLOAT")
    (tmp_path / "twice.py").write_text(
        plugin.replace("        y = 2.0 * x\n", slow + "        y = 2.0 * x\n")
    )
    images = [str(tmp_path / "images")] * 40
    words = [sys.executable, "-m", "headrace", "calibrate", str(config), *images]
    with subprocess.Popen(
        [*words, "--frames", "240", "--scales-only"], stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and (not begun.exists() or begun.stat().st_size < 8):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode == 130, said
    assert (tmp_path / "m.onnx.calib.partial").is_file(), said
