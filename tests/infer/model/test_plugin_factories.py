"""Factories of layers that libraries of 4.0 to 6.x export: when they are called, what they make."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.engine import Plan
from headrace.errors import CustomLibraryError
from headrace.infer.model import load_or_build
from tests.network.caffe.models import caffemodel, layer, text_of
from tests.network.uff.models import const, node, source, uff
from tests.trt.host.conftest import Compile

CONFIG = """[property]
gie-unique-id=1
num-detected-classes=1
network-type=100
batch-size=2
{model}
custom-lib-path={library}
custom-lib-guard=never
"""
CAFFE = """model-file=net.caffemodel
proto-file=net.prototxt
output-blob-names=out"""
UFF = """uff-file=net.uff
uff-input-blob-name=x
infer-dims=3;5;6
output-blob-names={outputs}"""
IMAGES = np.random.default_rng(3).normal(size=(2, 3, 6, 7)).astype(np.float32)
Calls = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _library(compile_host: Compile, tmp_path: Path, major: int, *flags: str) -> tuple[Path, Calls]:
    """A copy, so that no other test's objects are in it; and what was called since last asked."""
    path = tmp_path / "libfactories.so"
    path.write_bytes(compile_host("factories.cpp", major, *flags).read_bytes())
    opened = ctypes.CDLL(str(path))
    opened.factory_calls.restype = ctypes.c_char_p
    seen = 0

    def calls() -> list[str]:
        nonlocal seen
        gc.collect()
        every = opened.factory_calls().decode().splitlines()
        new, seen = every[seen:], len(every)
        assert opened.factory_objects() >= 0
        return new

    calls.objects = opened.factory_objects  # type: ignore[attr-defined]
    return path, calls


def _config(library: Path, model: str) -> ModelConfig:
    path = Path("config.txt")
    path.write_text(CONFIG.format(model=model, library=library))
    return ModelConfig.load(path)


def _caffe(library: Path) -> ModelConfig:
    """relu, then a layer that no Caffe knows: times 2.5, its weight in the caffemodel."""
    text = layer("ReLU", top="r", name="relu")
    text += layer("NobodyKnows", "odd_param { odd: 3 }", bottom="r", top="t", name="times")
    text += layer("Power", "power_param { shift: 1 }", bottom="t", top="out", name="plus")
    text += layer("NobodyKnows", bottom="out", top="unused", name="other")
    Path("net.prototxt").write_text(text_of(text))
    Path("net.caffemodel").write_bytes(caffemodel({"times": [np.array([2.5])]}))
    return _config(library, CAFFE)


def _run(plan: Plan, images: np.ndarray = IMAGES) -> np.ndarray:
    with plan.open_session() as session:
        (found,) = session.run({session.inputs[0].name: images}).values()
    return found


def _told(plan: Plan) -> str:
    return "\n".join(str(n) for n in plan.decisions)


@pytest.mark.parametrize(("kind", "major"), [(0, 7), (1, 10)])
@pytest.mark.sampled
@pytest.mark.slow
def test_a_caffe_factory_of_old_plugins(
    compile_host: Compile, tmp_path: Path, kind: int, major: int
) -> None:
    path, calls = _library(compile_host, tmp_path, major, f"-DKIND={kind}")
    cfg = _caffe(path)
    expected = np.maximum(IMAGES, 0) * np.float32(2.5) + 1
    plan = load_or_build(cfg)
    np.testing.assert_allclose(_run(plan), expected, rtol=1e-6)
    configure = ("configure", "configureWithFormat")[kind]
    built = calls()
    assert built[:6] == [
        "CaffeGet",
        "isPlugin relu",
        "isPlugin times",
        "createPlugin times with 1",
        "isPlugin plus",
        "isPlugin other",
    ]
    assert f"{configure} (3,6,7) 2" in built
    assert built.count("CaffeDestroy") == built.count("~CaffeFactory") == 1
    assert built.index("terminate") < built.index("CaffeDestroy")  # it goes after its layers
    del plan
    calls()
    assert calls.objects() == 0  # type: ignore[attr-defined]

    again = load_or_build(cfg)
    assert "loaded" in _told(again)
    np.testing.assert_allclose(_run(again), expected, rtol=1e-6)
    del again
    loaded = ["RuntimeGet", "load times", "initialize", "terminate"]
    assert calls() == [*loaded, "RuntimeDestroy", "~RuntimeFactory", "~OldTimes"]


@pytest.mark.slow
def test_every_engine_in_memory_has_a_factory_of_its_own(
    compile_host: Compile, tmp_path: Path
) -> None:
    """A factory may keep one object by each name: a second session must not end the first's."""
    path, calls = _library(compile_host, tmp_path, 7)
    load_or_build(_caffe(path))
    plan = load_or_build(_caffe(path))
    calls()
    with plan.open_session() as first, plan.open_session() as second:
        made = calls()
        assert made.count("RuntimeGet") == 1  # the other one was got with the file
        assert made.count("load times") == 2
        assert "~OldTimes" not in made
        for session in (first, second):
            (found,) = session.run({"data": IMAGES}).values()
            np.testing.assert_allclose(found, np.maximum(IMAGES, 0) * 2.5 + 1, rtol=1e-6)
    assert calls().count("RuntimeDestroy") == 1  # the plan holds the first
    del plan
    assert calls() == ["RuntimeDestroy", "~RuntimeFactory", "~OldTimes"]


@pytest.mark.slow
def test_a_caffe_factory_of_v2_plugins(compile_host: Compile, tmp_path: Path) -> None:
    path, calls = _library(compile_host, tmp_path, 8, "-DKIND=2", "-DNO_RUNTIME")
    cfg = _caffe(path)
    expected = np.maximum(IMAGES, 0) * np.float32(2.5) + 1
    plan = load_or_build(cfg)
    np.testing.assert_allclose(_run(plan), expected, rtol=1e-6)
    built = calls()
    assert built[3] == "createPlugin times with 1"
    assert built.count("CaffeDestroy") == built.count("~CaffeFactory") == 1
    again = load_or_build(cfg)  # the registered creator loads it
    assert "loaded" in _told(again)
    np.testing.assert_allclose(_run(again), expected, rtol=1e-6)
    del plan, again
    calls()
    assert calls.objects() == 0  # type: ignore[attr-defined]


@pytest.mark.slow
def test_without_a_runtime_factory_the_engine_is_built_each_time(
    compile_host: Compile, tmp_path: Path
) -> None:
    path, calls = _library(compile_host, tmp_path, 7, "-DNO_RUNTIME")
    plan = load_or_build(_caffe(path))
    assert "no creator is registered for IPlugin version 1" in _told(plan)
    expected = np.maximum(IMAGES, 0) * np.float32(2.5) + 1
    np.testing.assert_allclose(_run(plan), expected, rtol=1e-6)
    built = calls()
    assert built.index("terminate") < built.index("CaffeDestroy")  # after the session with it
    again = load_or_build(_caffe(path))
    assert "engine not used" in _told(again)
    np.testing.assert_allclose(_run(again), expected, rtol=1e-6)


@pytest.mark.slow
def test_a_runtime_factory_that_says_false_builds_anew(
    compile_host: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls = _library(compile_host, tmp_path, 7)
    load_or_build(_caffe(path))
    calls()
    monkeypatch.setenv("HEADRACE_TEST_FACTORY", "no runtime")
    plan = load_or_build(_caffe(path))
    assert "engine not used: NvDsInferPluginFactoryRuntimeGet: it returned false" in _told(plan)
    np.testing.assert_allclose(_run(plan), np.maximum(IMAGES, 0) * 2.5 + 1, rtol=1e-6)
    made = calls()
    assert made[:2] == ["RuntimeGet", "CaffeGet"]
    assert made.count("RuntimeGet") == 1


@pytest.mark.slow
def test_a_changed_library_builds_anew(compile_host: Compile, tmp_path: Path) -> None:
    path, _ = _library(compile_host, tmp_path, 7)
    load_or_build(_caffe(path))
    path.unlink()
    other, _ = _library(compile_host, tmp_path, 10, "-DKIND=1")
    assert "custom-lib-path changed" in _told(load_or_build(_caffe(other)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("false", "NvDsInferPluginFactoryCaffeGet: it returned false"),
        ("type", "it gave a factory of type 7"),
        ("throw", r"createPlugin\('times'\): it threw std::runtime_error: no such layer today"),
    ],
)
def test_failures_are_told(
    compile_host: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, words: str
) -> None:
    path, calls = _library(compile_host, tmp_path, 7)
    monkeypatch.setenv("HEADRACE_TEST_FACTORY", asked)
    with pytest.raises(CustomLibraryError, match=words):
        load_or_build(_caffe(path))
    assert calls().count("CaffeDestroy") == (asked != "false")


@pytest.mark.parametrize(("kind", "major"), [(0, 7), (1, 10)])
@pytest.mark.sampled
def test_a_uff_factory(compile_host: Compile, tmp_path: Path, kind: int, major: int) -> None:
    path, calls = _library(compile_host, tmp_path, major, f"-DKIND={kind}")
    Path("net.uff").write_bytes(
        uff(
            source((-1, 3, 5, 6)),
            const("w", np.array([3.0], np.float32)),
            node("times1", "_Times", ["x", "w"], mode="fast", sizes=[1, 2]),
            node("m", "MarkOutput", ["times1"]),
        )
    )
    cfg = _config(path, UFF.format(outputs="times1"))
    images = np.random.default_rng(4).normal(size=(2, 3, 5, 6)).astype(np.float32)
    plan = load_or_build(cfg)
    np.testing.assert_allclose(_run(plan, images), images * 3, rtol=1e-6)
    built = calls()
    assert built[:5] == [
        "UffGet",
        "isPlugin times1",
        "createPlugin times1 with 1",
        "field mode 2 5",
        "field sizes 1 2",
    ]
    assert built.count("UffDestroy") == 1


def test_a_uff_plugin_without_inputs(compile_host: Compile, tmp_path: Path) -> None:
    path, calls = _library(compile_host, tmp_path, 7)
    Path("net.uff").write_bytes(
        uff(
            source((-1, 3, 5, 6)),
            node("times", "_Anchors", []),
            node("both", "Binary", ["times", "times"], func="add"),
            node("m", "MarkOutput", ["both"]),
        )
    )
    plan = load_or_build(_config(path, UFF.format(outputs="both")))
    found = _run(plan, np.zeros((2, 3, 5, 6), np.float32))
    np.testing.assert_array_equal(found, np.full((2, 1, 1, 3), 8, np.float32))
    assert "createPlugin times with 0" in calls()
