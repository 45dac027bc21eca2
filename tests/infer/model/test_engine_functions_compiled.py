"""Engine creators of libraries that were compiled against TensorRT's own headers, of every line.

Their header is made of the tables of virtual functions, as in tests/trt/host/test_plugins_compiled.
Public headers: tests/outside/test_tensorrt_creators.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from headrace._core import _native
from headrace.config import ModelConfig
from headrace.custom.guard import GuardOptions
from headrace.custom.guard.keeper import can_guard
from headrace.engine.plan import Plan
from headrace.errors import CustomLibraryError
from headrace.infer.model import load_or_build
from tests.trt.host.conftest import LINES, Compile
from tests.trt.host.test_plugins_compiled import RELEASES

IMAGE = np.arange(72, dtype=np.float32).reshape(1, 3, 4, 6) - 36
CONFIG = """[property]
net-scale-factor=1
batch-size=1
network-type=100
custom-lib-path={library}
custom-lib-guard={guard}
"""


def config(
    folder: Path, library: Path, function: str, guard: str = "never", more: str = ""
) -> ModelConfig:
    path = folder / "config.txt"
    named = f"engine-create-func-name={function}\n" if function else ""
    path.write_text(CONFIG.format(library=library, guard=guard) + named + more)
    return ModelConfig.load(path)


def release(line: int) -> str:
    """As errors begin to name it; from 10 on, creators tell the line alone."""
    return _native.foreign_release_text(line, RELEASES[line] if line < 10 else 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compiled(compile_for_tensorrt: Compile, line: int) -> Path:
    return compile_for_tensorrt("compiled/creators.cpp", line, f'-DNAME="{line}"')


def sums_and_one() -> npt.NDArray[np.float32]:
    """Sums of 2 by 2 pixels of all channels; halved below zero; plus one."""
    sums = IMAGE.reshape(1, 3, 2, 2, 3, 2).sum((1, 3, 5), keepdims=False)[:, None]
    return np.where(sums < 0, sums / 2, sums) + 1


@pytest.mark.parametrize("guard", ["never"] + ["always"] * (can_guard() is None))
@pytest.mark.parametrize(
    ("line", "function"),
    [*((line, "Sums") for line in LINES), (7, "Implicit"), (8, "Implicit")],
)
@pytest.mark.sampled
def test_an_engine_is_built_saved_and_found_again(
    compile_for_tensorrt: Compile,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    line: int,
    function: str,
    guard: str,
) -> None:
    cfg = config(folder, compiled(compile_for_tensorrt, line), function, guard)
    for turn in range(2):
        plan = load_or_build(cfg)
        with plan.open_session() as session:
            found = session.run({"image": IMAGE})["sums_and_one"]
        np.testing.assert_allclose(found.reshape(1, 1, 2, 3), sums_and_one(), rtol=1e-6)
        told = [n.sentence for n in plan.decisions]
        assert any(f"made by {function}" in text for text in told) == (turn == 0)
    assert "affinity" not in capfd.readouterr().err  # which a worker may not choose


@pytest.mark.parametrize("guard", ["never"] + ["always"] * (can_guard() is None))
@pytest.mark.parametrize("lines", [(8, 8), (7, 10)])
@pytest.mark.sampled
def test_two_libraries_with_plugins_of_one_name_each_read_their_own_data(
    compile_for_tensorrt: Compile,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: tuple[int, int],
    guard: str,
) -> None:
    configs = []
    for adds, line in enumerate(lines, 1):
        flags = (f'-DNAME="{lines}"', f"-DADDS={adds}", f"-DRESERVED={16 * adds - 16}")
        library = compile_for_tensorrt("compiled/creators.cpp", line, *flags)
        (own := folder / f"model{adds}").mkdir()
        configs.append(config(own, library, "Sums", guard))
    for turn in ("built", "found again"):
        plans = []
        for cfg in configs:
            monkeypatch.chdir(cfg.path.parent)
            plans.append(load_or_build(cfg))
        for adds, plan in enumerate(plans, 1):
            with plan.open_session() as session:
                found = session.run({"image": IMAGE})["sums_and_one"]
            np.testing.assert_allclose(found.ravel() + 1 - adds, sums_and_one().ravel(), rtol=1e-6)
            made = any("made by Sums" in n.sentence for n in plan.decisions)
            assert made == (turn == "built")


@pytest.mark.parametrize(
    "guards",
    [("never", "never")] + [("always", "always"), ("never", "always")] * (can_guard() is None),
)
def test_nodes_of_one_name_are_computed_by_each_configs_own_library(
    compile_for_tensorrt: Compile, folder: Path, guards: tuple[str, str]
) -> None:
    node = onnx.helper.make_node("PlusOneOfPair", ["image"], ["sums_and_one"])
    image, out = (onnx.helper.make_tensor_value_info(n, 1, IMAGE.shape) for n in
                  ("image", "sums_and_one"))  # fmt: skip
    plans = []
    for adds, guard in enumerate(guards, 1):
        (own := folder / f"model{adds}").mkdir()
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [image], [out]))
        onnx.save(model, own / "model.onnx")
        flags = ('-DNAME="Pair"', f"-DADDS={adds}", f"-DRESERVED={16 * adds - 16}")
        library = compile_for_tensorrt("compiled/creators.cpp", 8, *flags)
        cfg = config(own, library, "", guard, f"onnx-file={own}/model.onnx\n")
        plans.append(load_or_build(cfg))
        Plan.load(own / "model.onnx_b1_gpu0_fp32.engine").open_session().close()
    for adds, plan in enumerate(plans, 1):
        with plan.open_session() as session:
            found = session.run({"image": IMAGE})["sums_and_one"]
        np.testing.assert_array_equal(found, IMAGE + adds)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("Throws", "it threw std::runtime_error: no weights today"),
        ("Nulls", "INetworkDefinition::addActivation: it was given null for an object"),
        ("Stranger", "it was given an object that is not of this host"),
        ("DeadNetwork", "it returned false"),
        ("Refused", "INetworkDefinition::add"),
        ("Wide", "it was given dimensions of 99 axes"),
        ("Wild", "an object that is not of this host"),
        ("None", "it returned true, but no engine"),
        ("Twice", "it returned false"),
    ],
)
@pytest.mark.sampled
def test_failures_name_the_call(
    compile_for_tensorrt: Compile, folder: Path, line: int, function: str, words: str
) -> None:
    cfg = config(folder, compiled(compile_for_tensorrt, line), function)
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(cfg)
    assert words in str(caught.value)
    assert f"{function} for {release(line)}" in str(caught.value)


@pytest.mark.skipif(can_guard() is not None, reason="no workers here")
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("Hangs", "did not return within 3 s and was ended"),
        ("Exits", "ended its process by exit(3)"),
        ("Aborts", "aborted (SIGABRT)"),
        ("Freed", "crashed (SIGSEGV), reading address"),
    ],
)
@pytest.mark.sampled
def test_deaths_name_function_and_release(
    compile_for_tensorrt: Compile,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: int,
    function: str,
    words: str,
) -> None:
    of = GuardOptions.of
    shorter = staticmethod(lambda cfg: replace(of(cfg), build_timeout_s=3))
    monkeypatch.setattr(GuardOptions, "of", shorter)
    cfg = config(folder, compiled(compile_for_tensorrt, line), function, "always")
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(cfg)
    assert f"function {function} for {release(line)}" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(("line", "number"), [(10, 91), (11, 89)])
def test_a_function_that_only_a_newer_release_has_is_named(
    compile_for_tensorrt: Compile, folder: Path, line: int, number: int
) -> None:
    flags = f'-DNAME="{line}"', f"-DNEWER={number + 5}"
    library = compile_for_tensorrt("compiled/creators.cpp", line, *flags)
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(folder, library, "Newer"))
    words = f"INetworkDefinition::function {number + 5}, newer than TensorRT {line}."
    assert words in str(caught.value)


@pytest.mark.skipif(can_guard() is not None, reason="no workers here")
@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_a_death_by_a_null_layer_names_the_call_and_its_release(
    compile_for_tensorrt: Compile, folder: Path, line: int
) -> None:
    cfg = config(folder, compiled(compile_for_tensorrt, line), "Dies", "always")
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(cfg)
    method = "addRNNv2" if line < 10 else "addMoE"
    words = f"before, INetworkDefinition::{method} of TensorRT {line}"
    assert words in str(caught.value)
    assert "was answered with null" in str(caught.value)
    assert "Dies" in str(caught.value)
