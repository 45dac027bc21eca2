"""Compiled plugins of TensorRT's own headers that misbehave in a worker, a method at a time.

Each is named by library, class, method and release, none hangs, and the application goes on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from headrace.config import ModelConfig
from headrace.custom.guard import GuardOptions
from headrace.custom.guard.keeper import can_guard
from headrace.errors import HeadraceError
from headrace.infer.model import load_or_build
from tests.infer.model.test_engine_functions_compiled import config, release
from tests.trt.host.conftest import LINES, Compile

pytestmark = pytest.mark.skipif(can_guard() is not None, reason="no workers here")
X = np.arange(24, dtype=np.float32).reshape(1, 3, 2, 4)
METHODS = [
    "getNbOutputs", "getPluginType", "getPluginVersion", "getOutputDimensions",
    "getOutputDataType", "supportsFormatCombination", "configurePlugin", "getWorkspaceSize",
    "initialize", "clone", "getSerializationSize", "serialize", "enqueue", "terminate", "destroy",
]  # fmt: skip
OF_CREATOR = ["createPlugin", "deserializePlugin"]
ENDS = {
    "throw": "uncaught std::runtime_error: unruly in {method}",
    "crash": "crashed (SIGSEGV), writing a null pointer",
    "hang": "did not return within ",
    "abort": "aborted (SIGABRT)",
    "exit": "ended its process by exit(3)",
    "overflow": "used up its stack",
}
KINDS = {7: ["crash", "exit"], 8: ["throw", "abort"], 10: ["throw"], 11: ["overflow"]}
"""Line -> what its methods do; a throw of line 7 reaches the host, and is below."""
ENDINGS = [
    (line, kind, method)
    for line, kinds in KINDS.items()
    for kind in kinds
    for method in [*OF_CREATOR, *METHODS]
] + [(8, "hang", method) for method in ("createPlugin", "clone", "serialize", "enqueue", "destroy")]
ODD = [
    ("strange generation", "UnrulyCreator", "createPlugin failed"),
    ("other line", "UnrulyCreator", "the places of their functions differ"),
    ("null plugin", "UnrulyCreator", "createPlugin returned null"),
    ("wild plugin", "UnrulyCreator", "UnrulyCreator::createPlugin of {release}"),
    ("null from data", "UnrulyCreator", "deserializePlugin returned null"),
    ("null clone", "Unruly", "clone returned None"),
    ("strange expression", "Unruly", "getOutputDimensions returned, for axis 0, an expression"),
    ("null expression", "Unruly", "getOutputDimensions failed"),
    ("99 axes", "Unruly", "getOutputDimensions failed: 99 axes"),
    ("negative axes", "Unruly", "getOutputDimensions failed: -3 axes"),
    ("negative extent", "Unruly", "getOutputDimensions returned DimsExprs(1, -7, 2, 4)"),
    ("no format", "Unruly", "supportsFormatCombination refuses"),
    ("huge workspace", "Unruly", "getWorkspaceSize returned 4611686018427387903"),
    ("status 17", "Unruly", "enqueue returned 17"),
    ("past the output", "Unruly", "Unruly::enqueue of {release}"),
    ("type 99", "Unruly", "getOutputDataType failed: 99"),
    ("null type", "Unruly", "getPluginType returned ''"),
    ("no output", "Unruly", "getNbOutputs returned 0"),
    ("-5 outputs", "Unruly", "getNbOutputs returned -5"),
    ("1e9 outputs", "Unruly", "getNbOutputs returned 1000000000"),
    ("initialize fails", "Unruly", "initialize returned status 5"),
    ("huge data", "Unruly", "getSerializationSize returned 4611686018427387903"),
    ("past its data", "Unruly", "serialize wrote"),
    ("destroyed twice", "Unruly", "Unruly::destroy of {release}"),
]
THROWN = [m for m in [*OF_CREATOR, *METHODS] if m not in ("terminate", "destroy")]


@pytest.fixture
def run(compile_for_tensorrt: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run(line, abuse)`: the model with one such layer is built and run, then loaded and run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_CRASH_DIR", str(tmp_path / "crashes"))
    of = GuardOptions.of

    def run_(line: int, abuse: str) -> None:
        limit = 8 if abuse.startswith("hang") else 60
        shorter = staticmethod(lambda cfg: replace(of(cfg), timeout_s=4, build_timeout_s=limit))
        monkeypatch.setattr(GuardOptions, "of", shorter)
        library = compile_for_tensorrt("compiled/unruly.cpp", line)
        node = onnx.helper.make_node("Unruly", ["image"], ["y"], abuse=abuse)
        ends = [onnx.helper.make_tensor_value_info(n, 1, X.shape) for n in ("image", "y")]
        graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
        onnx.save(onnx.helper.make_model(graph), tmp_path / "model.onnx")
        cfg = config(tmp_path, library, "", "always", f"onnx-file={tmp_path}/model.onnx\n")
        for _ in range(2):
            with load_or_build(ModelConfig.load(cfg.path)).open_session() as session:
                np.testing.assert_array_equal(session.run({"image": X})["y"], X + 1)

    return run_


def _assert_named(error: HeadraceError, line: int, *words: str) -> None:
    named = release(line)
    for word in ("libunruly.so", named, *words):
        assert word.format(release=named) in str(error), f"{word}: {error}"


@pytest.mark.parametrize(("line", "kind", "method"), ENDINGS)
@pytest.mark.sampled
def test_a_death_names_library_class_method_and_release(
    run: Any, line: int, kind: str, method: str
) -> None:
    owner = "UnrulyCreator" if method in OF_CREATOR else "Unruly"
    with pytest.raises(HeadraceError) as caught:
        run(line, f"{kind} {method}")
    end = ENDS[kind].format(method=method)
    _assert_named(caught.value, line, f"plugin method {owner}::{method} of {{release}}", end)


@pytest.mark.parametrize("method", THROWN)
@pytest.mark.sampled
def test_what_a_method_of_line_7_throws_is_reported(run: Any, method: str) -> None:
    owner = "UnrulyCreator" if method in OF_CREATOR else "Unruly"
    with pytest.raises(HeadraceError) as caught:
        run(7, f"throw {method}")
    _assert_named(caught.value, 7, f"class {owner}", method, f"unruly in {method}")


@pytest.mark.parametrize("method", ["terminate", "destroy"])
@pytest.mark.sampled
def test_what_is_thrown_on_the_way_out_is_printed(run: Any, method: str) -> None:
    run(7, f"throw {method}")


@pytest.mark.parametrize(("abuse", "owner", "words"), ODD)
@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_a_strange_answer_names_library_class_method_and_release(
    run: Any, line: int, abuse: str, owner: str, words: str
) -> None:
    with pytest.raises(HeadraceError) as caught:
        run(line, abuse)
    _assert_named(caught.value, line, owner, words)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_one_object_for_all_layers_computes(run: Any, line: int) -> None:
    run(line, "one for all")


def test_the_application_goes_on_after_all_of_them(run: Any) -> None:
    for abuse in ("crash enqueue", "hang clone", "exit createPlugin"):
        with pytest.raises(HeadraceError):
            run(8, abuse)
    run(8, "")
