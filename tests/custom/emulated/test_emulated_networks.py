"""Engine creators of libraries for another processor make the networks that those for this one do.

Their header is made of the tables of virtual functions, as in tests/trt/host/test_plugins_compiled.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.custom.emulated.messages import Body, NonsenseError, Reader
from headrace.custom.emulated.networks import EmulatedNetworks
from headrace.custom.guard import GuardOptions
from headrace.custom.guard.keeper import can_guard
from headrace.errors import CustomLibraryError
from headrace.infer.model import load_or_build
from tests.custom.emulated.test_emulated_creators import build
from tests.infer.model.test_engine_functions_compiled import (
    IMAGE,
    config,
    release,
    sums_and_one,
)
from tests.trt.host.conftest import LINES, SOURCES, _registry_as_before

__all__ = ["_registry_as_before"]  # a fixture
CREATORS = SOURCES / "compiled/creators.cpp"
GUARDS = ["never"] + ["always"] * (can_guard() is None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compiled(folder: Path, line: int) -> Path:
    return build(folder, line, CREATORS, f'-DNAME="{line}"')


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    ("line", "function"),
    [*((line, "Sums") for line in LINES), (7, "Implicit"), (8, "Implicit")],
)
@pytest.mark.sampled
def test_an_engine_is_built_saved_and_found_again(
    folder: Path, line: int, function: str, guard: str
) -> None:
    cfg = config(folder, compiled(folder, line), function, guard)
    for turn in range(2):
        plan = load_or_build(cfg)
        with plan.open_session() as session:
            found = session.run({"image": IMAGE})["sums_and_one"]
        np.testing.assert_allclose(found.reshape(1, 1, 2, 3), sums_and_one(), rtol=1e-6)
        told = [n.sentence for n in plan.decisions]
        assert any(f"made by {function}" in text for text in told) == (turn == 0)


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
def test_failures_name_the_call(folder: Path, line: int, function: str, words: str) -> None:
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(folder, compiled(folder, line), function))
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
        ("Freed", "crashed (SIGSEGV), accessing address"),
        ("Dies", "was answered with null"),
    ],
)
@pytest.mark.sampled
def test_deaths_name_function_and_release(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: int, function: str, words: str
) -> None:
    of = GuardOptions.of
    shorter = staticmethod(lambda cfg: replace(of(cfg), build_timeout_s=3))
    monkeypatch.setattr(GuardOptions, "of", shorter)
    with pytest.raises(CustomLibraryError) as caught:
        load_or_build(config(folder, compiled(folder, line), function, "always"))
    assert f"function {function} for {release(line)}" in str(caught.value)
    assert words in str(caught.value)


def test_after_a_failure_the_next_creator_works(folder: Path) -> None:
    library = compiled(folder, 8)
    for _ in range(2):
        with pytest.raises(CustomLibraryError, match="no weights today"):
            load_or_build(config(folder, library, "Throws"))
    assert load_or_build(config(folder, library, "Sums")).outputs
    assert open_library(library).decisions


def test_a_program_that_asks_for_inner_names_is_refused() -> None:
    link: Any = SimpleNamespace(process=SimpleNamespace(answering=None))
    networks = EmulatedNetworks(link)
    for what in range(3):  # a call, a value, and setting it
        question = Body().add("II", what, networks.number(link)).text("__class__").data()
        with pytest.raises(NonsenseError, match="__class__"):
            link.process.answering(Reader(question))
