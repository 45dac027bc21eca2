"""For which release a library was compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.custom.guard.options import GuardOptions
from headrace.custom.nvmot.generation import choose, possible
from tests.custom.nvmot.built import SOME, library


def payload(path: Path) -> dict[str, object]:
    return {"path": str(path), "config": "", "width": 960, "height": 544, "streams": 1}


@pytest.mark.sampled
@pytest.mark.parametrize("generation", SOME)
def test_trials_find_the_generation(
    tmp_path_factory: pytest.TempPathFactory, generation: str
) -> None:
    path = library(tmp_path_factory, generation)
    chosen, finding = choose(path, payload(path), GuardOptions(timeout_s=10))
    # the structures of 8.0 are those of 9.0, but for records of past frames
    assert chosen == ("9.0" if generation == "8.0" else generation)
    assert finding.level == "info"
    assert finding.data["generation"] == chosen


@pytest.mark.slow
def test_functions_narrow_the_choice(tmp_path_factory: pytest.TempPathFactory) -> None:
    old, _ = possible(library(tmp_path_factory, "5.0"))
    assert list(old) == ["6.0", "5.0"]
    new, _ = possible(library(tmp_path_factory, "6.3"))
    assert new[-1] == "6.3"
    assert "5.0" not in new


def test_the_folder_of_a_release_decides(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    path = tmp_path / "libtracker.so"
    path.write_bytes(
        library(tmp_path_factory, "6.3").read_bytes() + b"/opt/nvidia/deepstream/deepstream-6.4/lib"
    )
    chosen, finding = choose(path, payload(path), None)
    assert (chosen, finding.level) == ("6.4", "info")


@pytest.mark.slow
def test_without_trials_the_newest_is_a_guess(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = library(tmp_path_factory, "7.0")
    chosen, finding = choose(path, payload(path), None)
    assert (chosen, finding.level, finding.code) == ("9.1", "warning", "tracker-generation")
