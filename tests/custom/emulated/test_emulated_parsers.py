"""Model parsers, and calibrators of engine creators, of libraries for another processor and this.

Their header is made of the tables of virtual functions, as in test_emulated_networks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace._core import _native
from headrace.custom.guard.keeper import can_guard
from headrace.errors import CustomLibraryError
from headrace.infer.model import load_or_build
from tests.custom.emulated.test_emulated_creators import build
from tests.infer.model.test_engine_functions_compiled import IMAGE, config
from tests.trt.host.conftest import (
    LINES,
    SOURCES,
    Compile,
    _registry_as_before,
    compile_for_tensorrt,
)

__all__ = ["_registry_as_before", "compile_for_tensorrt"]  # fixtures
GUARDS = ["never"] + ["always"] * (can_guard() is None)
PARSER = "NvDsInferCreateModelParser"
WITH_TABLES = LINES[:-1]
"""Line 11 has no calibrators."""


@pytest.fixture(params=["here", "emulated"])
def compiled(
    request: pytest.FixtureRequest, compile_for_tensorrt: Compile, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[int], Path]:  # fmt: skip
    """`compiled(line)`: the library for this processor or for AArch64."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARSER", "works")
    if request.param == "here":
        return lambda line: compile_for_tensorrt("compiled/parsers.cpp", line)
    return lambda line: build(tmp_path, line, SOURCES / "compiled/parsers.cpp")


def release(line: int) -> str:
    """As errors begin to name it: a library without creators tells its line alone."""
    return _native.foreign_release_text(line, 0)


def sums() -> np.ndarray:
    return IMAGE.reshape(1, 3, 2, 2, 3, 2).sum((1, 3, 5))[:, None]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    ("line", "how"),
    [*((n, "works") for n in LINES), (7, "implicit"), (8, "implicit"), (8, "unnamed")],
)
@pytest.mark.sampled
def test_a_parsers_model_is_built_saved_and_found_again(
    compiled: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int,
    how: str, guard: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PARSER", how)
    cfg = config(tmp_path, compiled(line), "", guard)
    for turn in range(2):
        plan = load_or_build(cfg)
        with plan.open_session() as session:
            found = session.run({"image": IMAGE})["sums"]
        np.testing.assert_allclose(found.reshape(sums().shape), sums(), rtol=1e-6)
        told = [n.sentence for n in plan.decisions]
        assert any(f"made by {PARSER}" in text for text in told) == (turn == 0)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("throws", "it threw std::runtime_error: no weights today"),
        ("fails", "7"),
        ("none", "it returned no parser"),
        ("empty", "output"),
        ("nulls", "it was given null for an object"),
    ],
)
@pytest.mark.sampled
def test_failures_of_a_parser_are_named(
    compiled: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int,
    how: str, words: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PARSER", how)
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(tmp_path, compiled(line), ""))
    assert words in str(caught.value)
    assert PARSER in str(caught.value)


@pytest.mark.skipif(can_guard() is not None, reason="no workers here")
@pytest.mark.parametrize("line", LINES)
@pytest.mark.sampled
def test_the_death_of_a_parser_is_named(
    compiled: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    monkeypatch.setenv("PARSER", "crashes")
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(tmp_path, compiled(line), "", "always"))
    assert f"function {PARSER} for {release(line)}" in str(caught.value)
    assert "crashed (SIGSEGV)" in str(caught.value)


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("line", WITH_TABLES)
@pytest.mark.sampled
def test_a_calibrators_table_is_enough(
    compiled: Callable[[int], Path], tmp_path: Path, line: int, guard: str
) -> None:
    plan = load_or_build(config(tmp_path, compiled(line), "ReadsItsTable", guard))
    assert plan.header.precision == "int8"
    with plan.open_session() as session:
        found = session.run({"image": IMAGE})["sums"]
    image = np.clip(np.rint(IMAGE * 4), -128, 127) / 4  # the table's scale is 0.25
    exact = image.reshape(1, 3, 2, 2, 3, 2).sum((1, 3, 5))
    assert np.abs(exact - sums()).max() > 1
    np.testing.assert_allclose(found.ravel(), exact.ravel(), atol=0.51)


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("line", WITH_TABLES)
@pytest.mark.sampled
def test_batches_in_an_emulated_library_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int, guard: str
) -> None:
    monkeypatch.chdir(tmp_path)
    library = build(tmp_path, line, SOURCES / "compiled/parsers.cpp")
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(tmp_path, library, "AsksForBatches", guard))
    assert "the batches of a calibrator are in the memory of an emulated library" in str(
        caught.value
    )
    assert f"AsksForBatches for {release(line)}" in str(caught.value)


@pytest.mark.skipif(can_guard() is not None, reason="no workers here")
@pytest.mark.parametrize("line", WITH_TABLES)
@pytest.mark.sampled
def test_the_death_of_a_calibrator_is_named(
    compiled: Callable[[int], Path], tmp_path: Path, line: int
) -> None:
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(tmp_path, compiled(line), "CrashesReading", "always"))
    assert f"CrashesReading for {release(line)}" in str(caught.value)
    assert "crashed (SIGSEGV)" in str(caught.value)
