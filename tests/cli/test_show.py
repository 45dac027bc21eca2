"""`headrace show` of configs whose network a function of the custom library makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.config import ModelConfig
from headrace.custom.guard import keeper
from headrace.errors import CustomLibraryError
from headrace.infer.model import guarded_engines as look
from headrace.infer.model import load_or_build
from headrace.infer.model.inspect_engine import engine_function
from tests.cli.test_show_model import headrace
from tests.infer.model import test_engine_functions_cpp as test_cpp_engines
from tests.infer.model.test_engine_functions_cpp import _config
from tests.infer.model.test_guarded_plugin_layer import write_model
from tests.network.onnx_models import image_model, save
from tests.profiles import slow
from tests.trt.host import conftest
from tests.trt.host.conftest import Compile
from tests.trt.host.darknet import Model

compile_host, model = conftest.compile_host, test_cpp_engines.model  # fixtures
_registry_as_before = conftest._registry_as_before
CREATE = "engine-create-func-name="
workers = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)


@workers
@pytest.mark.parametrize(
    ("major", "guard"), [(10, "always"), slow(7, "always"), slow(10, "never"), slow(7, "never")]
)
def test_the_network_is_made_and_shown(
    compile_host: Compile, model: Model, major: int, guard: str
) -> None:
    library = compile_host("mini_yolo.cpp", major)
    cfg = _config(model, library, f"{CREATE}MiniYoloEngineCreate", guard=guard)
    before = sorted(cfg.path.parent.rglob("*"))
    shown = headrace("show", cfg.path, "--json")
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert sorted(cfg.path.parent.rglob("*")) == before, "nothing is saved by showing it"
    plan = load_or_build(cfg)
    for kind, specs in (("inputs", plan.inputs), ("outputs", plan.outputs)):
        wanted = [(s.name, list(s.shape[1:])) for s in specs]
        assert [(n, d[1:]) for n, d in map(_spec, data["model"][kind])] == wanted
    count = model.cfg.read_text().count("[convolutional]")
    assert len([x for x in data["layers"] if x["operator"] == "Conv"]) == count > 4
    made = data["made by"]
    assert (made["function"], made["there"], made["not_made"]) == (
        "MiniYoloEngineCreate", True, None,
    )  # fmt: skip
    assert ("IBuilderConfig" in made["signature"]) == (major == 10)
    assert made["reason"].startswith("new" if major == 10 else "old")
    assert "against headrace's headers" in made["evidence"][0]
    assert f"the headers stood for TensorRT {major}" in made["evidence"]
    text = headrace("show", cfg.path, "--set-only").stdout
    assert f"network: MiniYoloEngineCreate of {library.name} (engine creator) makes" in text
    assert f"{count} Conv" in text
    assert "--layers lists them" in text
    assert "unk__" not in json.dumps(data)
    assert "[Convolution]" not in text
    assert "[Convolution]" in headrace("show", cfg.path, "--layers").stdout


def _spec(text: str) -> tuple[str, list[object]]:
    """`input float32[?, 3, 8, 8]` -> its name and shape."""
    name, _, dims = text.rstrip("]").partition(" ")
    shape = dims.partition("[")[2].split(", ")
    return name, [int(d) if d.isdigit() else d for d in shape]


@workers
@pytest.mark.parametrize(
    ("function", "words"),
    [
        pytest.param("SaysFalse", "it returned false", marks=pytest.mark.slow),
        pytest.param("Throws", "no weights today", marks=pytest.mark.slow),
        ("Crashes", "SIGSEGV"),
        ("Loops", "did not return within"),
    ],
)
@pytest.mark.sampled
def test_why_there_is_no_network(
    compile_host: Compile,
    model: Model,
    function: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(look, "PREVIEW_LIMIT_S", 5.0 if function != "Loops" else 0.5)
    library = compile_host("mini_yolo.cpp", 10)
    cfg = _config(model, library, CREATE + function)
    shown = headrace("show", cfg.path, "--json")
    data = json.loads(shown.stdout)
    assert shown.returncode == (5 if function != "Loops" else 0), "a run waits longer"
    assert [words in p for p in data["problems"]] == [True] * (function != "Loops")
    assert words in data["made by"]["not_made"]
    assert function in data["made by"]["not_made"]
    assert "inputs" not in data["model"]
    assert data["made by"]["there"]
    if function in ("SaysFalse", "Crashes"):
        shown = headrace("show", cfg.path)
        assert f"not made: {library}" in shown.stdout
        assert "headrace run would refuse: " in shown.stderr
        assert "started again" not in shown.stdout + shown.stderr


@workers
@pytest.mark.slow
def test_a_saved_engine_needs_no_function(
    compile_host: Compile, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = compile_host("mini_yolo.cpp", 10)
    harm = tmp_path / "harm"
    monkeypatch.setenv("MINI_YOLO_HARM", str(harm))
    monkeypatch.chdir(tmp_path)  # where the engine is saved
    keys = f"{CREATE}MiniYoloEngineCreate\ncustom-lib-paths=write:."  # it removes the file
    cfg = _config(model, library, keys, guard="always")
    saved = load_or_build(cfg).path
    assert saved is not None
    harm.write_text("create")
    shown = headrace("show", cfg.path)
    assert not harm.exists()
    assert shown.returncode == 0, shown.stderr
    assert "not made: " in shown.stdout
    assert f"note: {saved}: loaded" in shown.stderr
    harm.write_text("create")
    assert load_or_build(cfg).path == saved
    path = cfg.path
    path.write_text(path.read_text() + "batch-size=3\n")
    shown = headrace("show", path)
    assert shown.returncode == 5, "the engine is for another batch"
    harm.write_text("create")
    with pytest.raises(CustomLibraryError, match="SIGSEGV"):
        load_or_build(ModelConfig.load(path))


@workers
@pytest.mark.parametrize("guard", [slow("never"), "always"])
@pytest.mark.slow
def test_a_plugin_that_cannot_be_created_is_a_problem(
    compile_host: Compile, tmp_path: Path, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_model(tmp_path, compile_host("hostile.cpp"), guard)
    assert headrace("show", config).returncode == 0
    monkeypatch.setenv("HOSTILE", "crash_create")
    shown = headrace("show", config)
    assert shown.returncode == 5
    assert "headrace run would refuse: " in shown.stderr
    for words in ("SIGSEGV", "libhostile", "createPlugin", "plugins of", "m.onnx"):
        assert words in shown.stderr
    assert "started again" not in shown.stderr
    monkeypatch.delenv("HOSTILE")
    assert load_or_build(ModelConfig.load(config)).path is not None
    monkeypatch.setenv("HOSTILE", "crash_create")
    assert headrace("show", config).returncode == 0, "the saved engine has it"


def test_a_function_that_is_not_there(compile_host: Compile, model: Model) -> None:
    library = compile_host("mini_yolo.cpp", 10)
    shown = headrace("show", _config(model, library, f"{CREATE}MiniYoloEngineCreat").path)
    assert "MiniYoloEngineCreat of" in shown.stdout
    assert "is not there" in shown.stdout
    assert "did you mean MiniYoloEngineCreate?" in shown.stderr
    assert shown.returncode == 5


@pytest.mark.slow
def test_compiled_against_the_original_headers(
    compile_host: Compile, model: Model, tmp_path: Path
) -> None:
    source = tmp_path / "foreign.cpp"
    source.write_text(
        "namespace nvinfer1 { struct Layer { virtual ~Layer(); virtual void run() const; }; }\n"
        'extern "C" bool Make() { nvinfer1::Layer().run(); return true; }\n'
        "nvinfer1::Layer::~Layer() {}\nvoid nvinfer1::Layer::run() const {}\n"
    )
    stub = tmp_path / "libnvinfer.so.7"
    (tmp_path / "empty.cpp").write_text('extern "C" void nothing() {}\n')
    compiler = shutil.which("g++")
    assert compiler is not None
    line = [compiler, "-shared", "-fPIC", "-o"]
    subprocess.run([*line, stub, tmp_path / "empty.cpp", f"-Wl,-soname,{stub.name}"], check=True)
    library = tmp_path / "libforeign.so"
    subprocess.run([*line, library, source, "-Wl,--no-as-needed", stub], check=True)
    cfg = _config(model, library, f"{CREATE}Make")
    found = engine_function(cfg, None)
    assert found is not None
    assert (found.there, found.callable_here) == (True, True)
    assert found.reason == "old, as far as it shows: linked against libnvinfer.so.7"
    assert "IBuilderConfig" not in found.signature
    assert "linked against libnvinfer.so.7" in found.evidence


@workers
def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "import headrace.trt as trt\n"
        "def make(builder, config, params, dtype):\n"
        "    open('pid', 'w').write(str(os.getpid()))\n"
        "    network = builder.create_network(1)\n"
        "    x = network.add_input('x', trt.float32, (1, 3, 8, 8))\n"
        "    y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)\n"
        "    y.name = 'y'\n"
        "    network.mark_output(y)\n"
        "    return network\n"
        "def parse(layers, network, params): ...\n"
    )
    config = tmp_path / "c.txt"
    config.write_text(
        "[property]\ncustom-lib-path=mine.py\nengine-create-func-name=make\ncluster-mode=2\n"
        "num-detected-classes=1\nparse-bbox-func-name=parse\ninfer-dims=3;8;8\n"
        "custom-lib-paths=write:.\n"
    )
    data = json.loads(headrace("show", config, "--json").stdout)
    assert data["model"]["inputs"] == ["x float32[1, 3, 8, 8]"]
    assert data["model"]["operators"] == ["1 Relu"]
    assert data["made by"]["signature"].startswith("def make(builder, config")
    assert int((tmp_path / "pid").read_text()) != os.getpid()
    monkeypatch.setattr(look, "can_guard", lambda: "the moon is full")
    assert "the moon is full" in headrace("show", config).stdout


def test_a_config_with_a_model_has_none_of_this(tmp_path: Path) -> None:
    save(image_model(), tmp_path / "m.onnx")
    config = tmp_path / "c.txt"
    config.write_text("[property]\nonnx-file=m.onnx\nnetwork-type=100\n")
    data = json.loads(headrace("show", config, "--json").stdout)
    assert "made by" not in data
    assert "layers" not in data
    assert json.loads(headrace("show", config, "--json", "--layers").stdout)["layers"]
