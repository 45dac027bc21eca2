"""Networks and plugins of C++ libraries in a worker: the same engines, and nobody is harmed."""

from __future__ import annotations

import gc
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from headrace import Inferencer
from headrace.custom.guard import GuardOptions, keeper
from headrace.errors import CustomLibraryError, PluginError
from headrace.infer.model import load_or_build
from headrace.infer.model.guarded_engines import GuardedEngines
from headrace.infer.model.guarded_worker import PRELOADS
from headrace.plugins import get_plugin_registry
from tests.infer.model import test_engine_functions_cpp as test_cpp_engines
from tests.infer.model.test_engine_functions_cpp import _check, _config
from tests.profiles import slow
from tests.trt.host import conftest
from tests.trt.host.conftest import Compile
from tests.trt.host.darknet import Model

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)

compile_host, model = conftest.compile_host, test_cpp_engines.model  # fixtures
_registry_as_before = conftest._registry_as_before


def test_modules_to_preload_exist() -> None:
    names = {name for modules in PRELOADS.values() for name in modules}
    assert [name for name in sorted(names) if find_spec(name) is None] == []


def loaded(library: Path) -> bool:
    return str(library) in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize(
    ("major", "flag", "function"),
    [
        (8, "", "MiniYoloEngineCreate"),
        slow(7, "", "MiniYoloEngineCreate"),
        slow(10, "-DWITH_CUDA_ENGINE_GET", "NvDsInferCudaEngineGet"),
        slow(10, "-DWITH_MODEL_PARSER -DNO_FACTORY", "NvDsInferCreateModelParser"),
    ],
)
def test_every_entry_point_in_a_worker(
    compile_host: Compile,
    model: Model,
    major: int,
    flag: str,
    function: str,
) -> None:
    library = compile_host("mini_yolo.cpp", major, *flag.split())
    if loaded(library):  # by a test before, whose objects nobody has any more
        gc.collect()
    key = f"engine-create-func-name={function}" if function.startswith("Mini") else ""
    cfg = _config(model, library, key, guard="always")
    plan = load_or_build(cfg)
    _check(plan, model)
    told = [n.sentence for n in plan.decisions]
    assert f"the network was made by {function}" in told
    assert "its networks and plugins are made in a worker process of their own" in told
    assert not [n for n in plan.decisions if n.level == "warning"], plan.decisions
    again = load_or_build(cfg)
    assert "engine-loaded" in [n.code for n in again.decisions if n.where == str(plan.path)]
    _check(again, model)
    assert not loaded(library)
    here = load_or_build(_config(model, library, key, guard="never"))
    assert "engine-loaded" in [n.code for n in here.decisions if n.where == str(plan.path)]
    _check(here, model)
    assert loaded(library)


@pytest.fixture
def library(compile_host: Compile) -> Path:
    """A library that makes the network, with what a crash report needs."""
    return compile_host("mini_yolo.cpp", 10, "-g", "-rdynamic")


CREATE = "engine-create-func-name="


@pytest.mark.slow
def test_later_workers_have_what_networks_need_from_their_start(
    library: Path, model: Model
) -> None:
    cfg = _config(model, library, f"{CREATE}MiniYoloEngineCreate", guard="always")
    first = GuardedEngines(cfg, library, GuardOptions())
    assert list(first.make("MiniYoloEngineCreate", []).plugins)
    assert first.process.pid is not None
    assert "onnxruntime" in Path(f"/proc/{first.process.pid}/maps").read_text()
    first.close()
    keeper.keeper().close()  # another one is told of it, too
    second = GuardedEngines(cfg, library, GuardOptions())
    process = keeper.keeper()._process
    assert process is not None
    assert second.process.pid is not None
    assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 1, "it must not fork"
    maps = [Path(f"/proc/{pid}/maps").read_text() for pid in (process.pid, second.process.pid)]
    assert ["onnx_cpp2py_export" in m for m in maps] == [True, True]
    assert ["onnxruntime" in m for m in maps] == [False, False]
    assert [str(library) in m for m in maps] == [False, True]
    second.close()


@pytest.mark.slow
def test_a_crash_while_a_network_is_made(library: Path, model: Model) -> None:
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(_config(model, library, f"{CREATE}Crashes", guard="always"))
    text = str(caught.value)
    assert "Crashes: function Crashes crashed (SIGSEGV), writing a null pointer" in text
    assert "crash" in text.partition("#0")[2].partition("\n")[0]
    assert "its inputs are saved; to repeat the call: headrace replay" in text
    assert "started again" not in text, "the run ends"
    assert not loaded(library)


@pytest.mark.slow
def test_a_network_that_is_never_made(library: Path, model: Model) -> None:
    cfg = _config(model, library, f"{CREATE}Loops", guard="always")
    engines = GuardedEngines(cfg, library, GuardOptions(build_timeout_s=1, restarts=1))
    with pytest.raises(CustomLibraryError, match="Loops: function Loops did not return within 1 s"):
        engines.make("Loops", [])
    engines.options = GuardOptions()
    made = engines.make("MiniYoloEngineCreate", [])
    assert list(made.plugins), "a new worker does what the old one could not"
    engines.close()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("SaysFalse", "it returned false"),
        ("Throws", "it threw std::runtime_error: no weights today"),
    ],
)
@pytest.mark.sampled
def test_failures_are_told_as_without_a_worker(
    library: Path,
    model: Model,
    function: str,
    words: str,
) -> None:
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(_config(model, library, CREATE + function, guard="always"))
    assert f"{function}: {words}" in str(caught.value)


def test_a_crash_while_plugins_are_built(
    library: Path,
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MINI_YOLO_HARM", str(tmp_path / "harm"))
    (tmp_path / "harm").write_text("configure")
    keys = f"{CREATE}MiniYoloEngineCreate\ncustom-lib-paths=write:."  # it removes the file
    cfg = _config(model, library, keys, guard="always")
    with pytest.raises(CustomLibraryError, match=r"crashed \(SIGSEGV\)") as caught:
        load_or_build(cfg)
    assert "started again" not in str(caught.value)
    assert not (tmp_path / "harm").exists()


def test_a_crash_in_enqueue_costs_one_batch(
    library: Path,
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harm = tmp_path / "harm"
    monkeypatch.setenv("MINI_YOLO_HARM", str(harm))
    keys = f"{CREATE}MiniYoloEngineCreate\ncustom-lib-paths=write:."  # it removes the file
    cfg = _config(model, library, keys, guard="always")
    pixels = np.round(model.images[0] * 255).astype(np.uint8).transpose(1, 2, 0)
    image = np.ascontiguousarray(pixels)
    with Inferencer.from_config(cfg) as inferencer:
        before = [o.rect for o in inferencer(image).objects]
        assert before
        harm.write_text("enqueue")
        assert len(inferencer(image).objects) == 0
        assert not harm.exists()
        assert [o.rect for o in inferencer(image).objects] == before
        (told,) = [str(n) for n in inferencer.notices if "its batch has no results" in str(n)]
    assert "plugin MiniYoloRows" in told
    assert "crashed (SIGSEGV), writing a null pointer; its worker process is started again" in told
    assert not loaded(library)


def test_plugins_of_a_worker_cannot_be_created_here(
    library: Path,
    model: Model,
) -> None:
    cfg = _config(model, library, f"{CREATE}MiniYoloEngineCreate", guard="always")
    GuardedEngines(cfg, library, GuardOptions())
    creator = get_plugin_registry().find("MiniYoloRows", "1")
    assert creator is not None
    with pytest.raises(PluginError, match="is in a worker process"):
        creator.create_plugin("layer", creator.field_names)


@pytest.mark.slow
def test_factories_rule_it_out_and_that_is_told(compile_host: Compile, model: Model) -> None:
    library = compile_host("mini_yolo.cpp", 10, "-DWITH_MODEL_PARSER")
    plan = load_or_build(_config(model, library, guard="auto"))
    _check(plan, model)
    told = [n for n in plan.decisions if "are not guarded, but run in this process" in n.sentence]
    assert [n.level for n in told] == ["warning"]
    with pytest.raises(CustomLibraryError, match="are not guarded, but run in this process"):
        load_or_build(_config(model, library, guard="always"))
