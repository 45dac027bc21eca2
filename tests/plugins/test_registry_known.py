"""What is in the registry by itself: standard plugins and installed packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from headrace.plugins import IPluginCreator, PluginFieldCollection, PluginRegistry
from headrace.plugins.registry import ENTRY_POINTS, known_plugins


class MineCreator(IPluginCreator):
    def __init__(self, name: str = "Mine") -> None:
        super().__init__()
        self.name, self.plugin_version = name, "1"
        self.field_names = PluginFieldCollection()


def fill(registry: PluginRegistry) -> None:
    registry.register_creator(MineCreator("ByFunction"))


def broken(registry: PluginRegistry) -> None:
    raise RuntimeError("no such luck")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> PluginRegistry:
    registry = PluginRegistry()
    monkeypatch.setattr("headrace.plugins.registry.get_plugin_registry", lambda: registry)
    monkeypatch.setattr("headrace.plugins.registry._done", False)
    return registry


def entries(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    points = [EntryPoint(n, f"{__name__}:{v}", ENTRY_POINTS) for n, v in values.items()]

    def found(group: str) -> Any:
        return points if group == ENTRY_POINTS else []

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.value.split(":")[1]])


def test_standard_plugins_are_there_after_the_first_question(fresh: PluginRegistry) -> None:
    assert fresh.all_creators == []
    assert known_plugins() is fresh
    assert fresh.find("EfficientNMS_TRT") is not None
    count = len(fresh.all_creators)
    known_plugins()
    assert len(fresh.all_creators) == count
    assert fresh.notices == []


def test_standard_plugins_give_way(fresh: PluginRegistry) -> None:
    early = MineCreator("BatchedNMS_TRT")
    fresh.register_creator(early)
    known_plugins()
    assert fresh.find("BatchedNMS_TRT") is early
    late = MineCreator("EfficientNMS_TRT")
    assert fresh.register_creator(late)
    assert fresh.find("EfficientNMS_TRT") is late
    assert not fresh.register_creator(MineCreator("EfficientNMS_TRT"))  # but that one stays


def test_installed_packages_bring_plugins(
    fresh: PluginRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries(monkeypatch, one="MineCreator", two="fill", three="broken")
    known_plugins()
    assert fresh.find("Mine") is not None
    assert fresh.find("ByFunction") is not None
    (notice,) = fresh.notices
    assert notice.where == "entry point three"
    assert "RuntimeError: no such luck" in notice.sentence
    assert fresh.find("EfficientNMS_TRT") is not None
