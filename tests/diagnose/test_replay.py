"""Saved calls outside parsers, caused and repeated: loading, inputs, networks, plugins."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import Inferencer
from headrace.config import ModelConfig
from headrace.custom import open_library
from headrace.custom.guard import GuardOptions, LibraryDiedError, keeper
from headrace.custom.guard.repro import Case
from headrace.diagnose.replay import repeat, title
from headrace.errors import CustomLibraryError, HeadraceError, PluginError
from headrace.infer.model import load_or_build
from headrace.infer.model.guarded_cases import load_case
from headrace.meta import NetworkInfo
from tests.custom.conftest import Compile
from tests.infer.model import test_engine_functions_cpp as test_cpp_engines
from tests.infer.model.test_engine_functions_cpp import _config
from tests.infer.model.test_guarded_plugin_layer import write_model
from tests.trt.host import conftest
from tests.trt.host.darknet import Model
from tests.warm import headrace

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)

compile_host, model = conftest.compile_host, test_cpp_engines.model  # fixtures
_registry_as_before = conftest._registry_as_before
NULL = r"crashed \(SIGSEGV\), writing a null pointer"
IMAGE = np.zeros((16, 16, 3), np.uint8)


def saved(error: object) -> Path:
    """The folder that a message names."""
    (folder,) = re.findall(r"headrace replay (\S+)", str(error))
    return Path(folder)


def again(folder: Path, *, guard: bool = True) -> str:
    case, arrays, _ = load_case(folder)
    return repeat(case, arrays, case.library, guard=guard, timeout_s=60)[0]


def loaded(folder: Path) -> tuple[Case, list[np.ndarray], dict[str, Any]]:
    case, arrays, said = load_case(folder)
    return case, list(arrays.values()), said


def cause(config: Path) -> HeadraceError | str:
    """What is told of the plugin's crash."""
    try:
        with Inferencer.from_config(config) as inferencer:
            inferencer(IMAGE)
            return next(str(n) for n in inferencer.notices if "its batch has no results" in str(n))
    except HeadraceError as error:
        return error


@pytest.mark.parametrize(
    ("how", "kind", "name", "frame", "after"),
    [
        ("crash_load", "load", "loading", "Creator::Creator", "the library was loaded"),
        ("crash_create", "build", "plugins", "createPlugin", r"1 plugin layer\(s\) were built"),
        ("crash_shapes", "build", "plugins", "getOutputDimensions", "1 plugin layer"),
        ("crash_configure", "build", "plugins", "configurePlugin", "1 plugin layer"),
        ("crash_deserialize", "plugin", "Hostile version 1", "deserialize", "plugin was loaded"),
        ("crash", "plugin", "Hostile version 1", "enqueue", r"gave out0 float32 \(1, 3, 16, 16\)"),
    ],
)
@pytest.mark.slow
def test_plugins(
    compile_host: Compile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    kind: str,
    name: str,
    frame: str,
    after: str,
) -> None:
    config = write_model(tmp_path, compile_host("hostile.cpp", 10, "-g", "-rdynamic"), "always")
    monkeypatch.setenv("HOSTILE", how)
    told = cause(config)
    folder = saved(told)
    case, _, said = loaded(folder)
    assert (case.kind, case.name) == (kind, name)
    assert re.search(NULL, said["found"])
    with pytest.raises(HeadraceError, match=NULL) as caught:
        again(folder)
    assert frame in str(caught.value)
    assert "headrace replay" not in str(caught.value), "nothing is saved anew"
    assert "custom-lib-guard" not in str(caught.value)
    monkeypatch.delenv("HOSTILE")
    assert re.search(after, again(folder))
    assert re.search(after, again(folder, guard=False))


@pytest.mark.slow
def test_a_plugin_that_dies_when_it_is_ended(
    compile_host: Compile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = compile_host("hostile.cpp", 10, "-g", "-rdynamic")
    config = write_model(tmp_path, library, "always")
    for how in ("", "crash_terminate"):  # while it is built, all is well
        monkeypatch.setenv("HOSTILE", how)
        with Inferencer.from_config(config) as inferencer:
            inferencer(IMAGE)
    told = capsys.readouterr().err
    assert re.search(rf"\[ERROR\] Exception caught in destroy\(\): .*{NULL}", told)
    folder = saved(told)
    guarded = headrace("replay", folder, "--guard")
    assert guarded.returncode == 5
    assert "terminate" in guarded.stderr
    monkeypatch.delenv("HOSTILE")
    assert again(folder) == again(folder, guard=False) == "the plugin was loaded"


@pytest.mark.slow
def test_the_command_with_a_plugin(
    compile_host: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = compile_host("hostile.cpp", 10, "-g", "-rdynamic")
    monkeypatch.setenv("HOSTILE", "crash")
    told = str(cause(write_model(tmp_path, library, "always")))
    assert "custom-lib-guard=never" not in told
    folder = saved(told)
    died = headrace("replay", folder)
    assert died.returncode == -11
    first, then, now, debugger, worker = died.stderr.splitlines()
    assert first == f"{library}: plugin Hostile version 1, layer 'hostile'"
    assert then == "then: the function crashed (SIGSEGV), writing a null pointer"
    assert now.startswith("now it runs in this process: if it crashes again, this program ends")
    assert re.search(rf"gdb -ex run --args \S+ -m headrace replay {folder}$", debugger)
    assert worker.endswith(f"headrace replay {folder} --guard")
    guarded = headrace("replay", folder, "--guard")
    assert guarded.returncode == 5
    assert "this process" not in guarded.stderr
    assert re.search(rf"layer 'hostile': plugin method Plugin::enqueue {NULL}", guarded.stderr)
    sound = headrace("replay", folder, HOSTILE="")
    assert sound.returncode == 0
    assert "now: the plugin gave out0 float32 (1, 3, 16, 16) from" in sound.stdout
    assert "did not recur in the same library" in sound.stderr


def test_the_arrays_are_those_of_the_call(
    compile_host: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = compile_host("hostile.cpp", 10, "-g", "-rdynamic")
    config = write_model(tmp_path, library, "always")
    config.write_text(config.read_text() + "net-scale-factor=1\n")
    monkeypatch.setenv("HOSTILE", "crash")
    with Inferencer.from_config(config) as inferencer:
        inferencer(np.full((16, 16, 3), (3, 5, 7), np.uint8))
        folder = saved(next(n for n in inferencer.notices if "headrace replay" in str(n)))
    _, (data, given), _ = loaded(folder)
    assert data.size == 0, "it serializes nothing"
    assert [given[0, i].mean() for i in range(3)] == [7, 5, 3], "an image in BGR"


def own(library: Path, folder: Path) -> Path:
    """A copy that may be loaded into this process: other tests see whether the library is."""
    return Path(shutil.copy(library, folder))


@pytest.mark.slow
def test_networks_with_their_files(compile_host: Compile, model: Model, tmp_path: Path) -> None:
    library = own(compile_host("mini_yolo.cpp", 10, "-g", "-rdynamic"), tmp_path)
    cfg = _config(model, library, "engine-create-func-name=Crashes", guard="always")
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(cfg)
    folder = saved(caught.value)
    with pytest.raises(CustomLibraryError, match=f"Crashes: function Crashes {NULL}"):
        again(folder)
    described = folder / "case.json"
    described.write_text(described.read_text().replace('"Crashes"', '"MiniYoloEngineCreate"'))
    weights = model.weights.read_bytes()
    sizes = set()
    for change in (lambda: None, lambda: model.cfg.write_text("[net]"), model.cfg.unlink):
        change()
        sizes.add(again(folder, guard=False))
    assert len(sizes) == 1, "files that changed are taken as they were"
    assert re.match(r"the function made a network of [0-9,]+ bytes with the plugins yolo", *sizes)
    (told,) = load_case(folder)[0].args.notices  # type: ignore[union-attr]
    assert "custom-network-config is not there any more: the copy that was saved" in str(told)
    assert next(folder.glob("file_*/mini.weights")).read_bytes() == weights
    next(folder.glob("file_*/mini.cfg")).write_text("[net]")
    with pytest.raises(CustomLibraryError, match=r"mini\.cfg is not what it was"):
        load_case(folder)


@pytest.mark.slow
def test_plugins_of_a_network_that_a_parser_made(
    compile_host: Compile, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compile_host("mini_yolo.cpp", 10, "-DWITH_MODEL_PARSER", "-DNO_FACTORY")
    library = own(made, tmp_path)
    harm = tmp_path / "harm"
    monkeypatch.setenv("MINI_YOLO_HARM", str(harm))
    harm.write_text("configure")
    with pytest.raises(HeadraceError, match=NULL) as caught:
        load_or_build(_config(model, library, guard="always"))
    folder = saved(caught.value)
    case, _, said = loaded(folder)
    assert (case.kind, said["made-by"]) == ("build", "NvDsInferCreateModelParser")
    assert title(case).startswith("plugins of ")
    harm.unlink()  # no worker may
    assert again(folder) == again(folder, guard=False) == "1 plugin layer(s) were built"
    harm.write_text("configure")
    with pytest.raises(HeadraceError, match=NULL):
        again(folder)


def test_the_filling_of_inputs(
    compile_parser: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = GuardOptions(crash_dir=tmp_path / "with a space")
    path = compile_parser("inputs.cpp")
    library = open_library(path, guard="always", guard_options=options)
    fill = library.input_initializer()
    assert fill is not None
    inputs = {"a": np.zeros((4, 2, 3), np.float32), "b": np.zeros((4, 5), np.float32)}
    monkeypatch.setenv("CRASH_IN_INPUTS", "1")
    library.close()  # type: ignore[attr-defined]  # the next worker has the variable
    text = f"NvDsInferInitializeInputLayers: the function {NULL}"
    with pytest.raises(LibraryDiedError, match=text) as caught:
        fill(inputs, NetworkInfo(4, 3, 3), 4)
    (folder,) = options.crash_dir.iterdir()
    assert f"headrace replay '{folder}'" in str(caught.value)
    case, (a, b), _ = loaded(folder)
    assert case.kind == "inputs"
    assert (a.shape, b.shape) == ((4, 2, 3), (4, 5))
    with pytest.raises(LibraryDiedError, match=NULL):
        again(folder)
    monkeypatch.delenv("CRASH_IN_INPUTS")
    for guard in (False, True):
        text = "the function filled a float32 (4, 2, 3) from 3 to 4, b float32 (4, 5) from 3 to 4"
        assert again(folder, guard=guard) == text


@pytest.mark.slow
def test_another_build_without_the_plugin(
    compile_host: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model
) -> None:
    monkeypatch.setenv("HOSTILE", "crash")
    library = compile_host("hostile.cpp", 10, "-g", "-rdynamic")
    folder = saved(cause(write_model(tmp_path, library, "always")))
    case, arrays, _ = load_case(folder)
    other = compile_host("mini_yolo.cpp", 10, "-g", "-rdynamic")
    for path, words in (
        (other, "no creator is registered for it"),
        (tmp_path / "absent.so", "the library cannot be loaded: No such file"),
        (tmp_path / "m.onnx", "the library cannot be loaded: "),
    ):
        with pytest.raises((PluginError, CustomLibraryError), match=words):
            repeat(case, arrays, path, guard=True, timeout_s=60)


def test_a_config_reads_back(tmp_path: Path, compile_host: Compile) -> None:
    """What the library saw of its config comes back the same."""
    from headrace.infer.model.guarded_cases import ARGS_READERS, NetworkArgs
    from headrace.infer.model.init_params import LISTS, NUMBERS, PATHS, TEXTS

    (tmp_path / "net.cfg").write_text("[net]")
    path = tmp_path / "c.txt"
    path.write_text(
        "[property]\ngie-unique-id=3\nonnx-file=a b.onnx\nbatch-size=7\nnetwork-mode=1\n"
        "custom-network-config=net.cfg\ninfer-dims=3;8;9\noffsets=1.5;2;3\n"
        "output-blob-names=x;y\nnum-detected-classes=2\n[class-attrs-1]\ntopk=5\n"
    )
    cfg = ModelConfig.load(path)
    folder = tmp_path / "case"
    folder.mkdir()
    said = NetworkArgs(cfg, "Make").write(folder)
    back = ARGS_READERS["network"](said, [], folder)
    assert isinstance(back, NetworkArgs)
    assert (back.function, back.notices) == ("Make", ())
    for key in {*PATHS.values(), *TEXTS.values(), *NUMBERS.values(), *LISTS.values(),
                "offsets", "infer_dims", "dynamic_properties", "per_class"}:  # fmt: skip
        assert getattr(back.config, key, None) == getattr(cfg, key, None), key
    assert back.config is not None
    assert back.config.custom_network_config == str(tmp_path / "net.cfg")
