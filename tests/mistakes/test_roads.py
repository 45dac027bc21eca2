"""What one road says of a model or its library, every other road says, on objects as on frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gstreamer.conftest import gst, play
from tests.mistakes import roads
from tests.mistakes.roads import BLIND, MISTAKES, ROADS, Told
from tests.mistakes.store import fill
from tests.session import made_once

__all__ = ["gst", "play"]
pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
_CASES = [
    pytest.param(
        name, road, secondary, id=f"{name}-{road}-{'objects' if secondary else 'frames'}",
        marks=[] if name == "wrong parser" and road == "pipeline file" else [pytest.mark.slow],
    )
    for name, mistake in MISTAKES.items()
    for road in ROADS
    for secondary in (False, True)
    if mistake.keys is not None or not (secondary or road in ("application config", "nvinfer"))
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "mistakes", fill)


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, Told]]:
    """What `open_pipeline` says of each mistake on whole frames."""
    return {}


@pytest.mark.parametrize(("name", "road", "secondary"), _CASES)
def test_a_road_says_what_the_others_say(
    name: str, road: str, secondary: bool, store: Path, known: dict[str, dict[str, Told]],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    if name not in known:
        monkeypatch.chdir(tmp_path / "one")
        configs = roads.write(name, tmp_path / "one", store, secondary=False)
        known[name] = roads.by_open_pipeline(configs)
    expected = known[name]
    assert expected
    monkeypatch.chdir(tmp_path / "other")
    configs = roads.write(name, tmp_path / "other", store, secondary=secondary)
    more: tuple[Any, ...] = ()
    if road == "nvinfer":
        more = request.getfixturevalue("play"), monkeypatch
    found = ROADS[road](configs, *more)
    assert sorted(found) == sorted(expected)
    if road == "service":  # its log has no data
        return
    for code, one in expected.items():
        assert found[code].level == one.level
        if one.confirmed and not (one.level == "error" and road in BLIND):
            assert found[code].confirmed == one.confirmed, code
        elif one.confirmed:
            assert one.confirmed in {found[code].confirmed, *found[code].named}, code
