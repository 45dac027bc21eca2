"""A C++ plugin of each class and its Python twin: the same calls, the same numbers."""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.custom import CustomLibrary
from headrace.plugins import (
    DataType,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    Tracer,
    get_plugin_registry,
)
from headrace.plugins.drivers import add_layer
from headrace.plugins.registry import PluginRegistry
from headrace.plugins.types import TensorRTPhase
from headrace.trt.host.callback_errors import collected_errors
from headrace.trt.host.forwarding import fields_to
from headrace.trt.host.world import World
from tests.plugins.life_cycles import X, live_on
from tests.plugins.samples import PLUGINS, ScaleV3, Watched, creator_for
from tests.trt.host.conftest import Compile

Open = Callable[[Path], CustomLibrary]
NAMES = {kind: plugin.__name__ for kind, plugin in PLUGINS.items()}
FIELDS = PluginFieldCollection(
    [PluginField("factor", np.array([2.5], np.float32), PluginFieldType.FLOAT32)]
)


@pytest.fixture(autouse=True)
def _two_tactics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 8])
    Watched.reset()


def _life(creator: Any, *, implicit: bool, profiles: int) -> list[np.ndarray[Any, Any]]:
    """Create, add, build, save, free, load, run in two contexts, free."""
    registry = PluginRegistry()
    assert registry.register_creator(creator)
    third = creator.name == "ScaleV3"
    user = creator.create_plugin("scale", FIELDS, *([TensorRTPhase.BUILD] if third else []))
    layer = add_layer(user, layer="scale", input_types=[DataType.FLOAT], implicit_batch=implicit)
    user.destroy()
    return live_on(layer, registry, profiles=profiles, contexts=2)


def _calls(tracer: Tracer) -> list[tuple[Any, ...]]:
    """What was called, without times, addresses and which of two equal tactics was the faster."""

    def plain(text: str) -> str:
        text = re.sub(r"\b\d{9,}\b", "address", text)
        return re.sub(r"<[^>]*object at 0x\w+>", "object", text)

    return [
        (c.phase, c.cls, c.object, c.method, plain(c.arguments), plain(c.result), c.made)
        for c in tracer
        if c.method != "set_tactic"
    ]


def live_as_twins(kind: str, found: Any, *, line: int = 10, unnamed: bool = False) -> None:
    """Let the plugin of Python and that of a library live, and compare values and calls.

    Args:
        kind: of `PLUGINS`.
        found: creator of the library's.
        line: of TensorRT whose headers the library was compiled against.
        unnamed: the library has no names of classes: its creator has that of the plugin.
    """
    profiles = 2 if kind in ("V2DynamicExt", "V3") else 1
    traces = []
    for creator in (creator_for(PLUGINS[kind]), found):
        gc.collect()  # plugins of earlier tests end outside the trace
        with Tracer() as tracer:
            results = _life(creator, implicit=kind == "V2", profiles=profiles)
        for result, n in zip(results, (2, 2, 1) * 2, strict=True):
            np.testing.assert_array_equal(result, X[:n] * np.float32(2.5))
        assert not tracer.failures
        calls = _calls(tracer)
        if line == 11:  # its classes have no such functions
            calls = [call for call in calls if "broadcast" not in call[3]]
        if unnamed and creator is found:
            twin = type(creator_for(PLUGINS[kind])).__name__
            calls = [
                (c[0], twin if c[1] == f"{NAMES[kind]}Creator" else c[1], *c[2:]) for c in calls
            ]
        traces.append(calls)
    python, compiled = traces
    assert len(python) > 30
    assert compiled == python


@pytest.mark.parametrize("major", [8, 10])
@pytest.mark.parametrize("kind", list(PLUGINS))
@pytest.mark.sampled
def test_twins_live_the_same_life(
    compile_host: Compile, opened: Open, kind: str, major: int
) -> None:
    opened(compile_host("twins.cpp", major))
    found = get_plugin_registry().find(NAMES[kind])
    assert found is not None
    live_as_twins(kind, found)


def test_creators_have_the_fields_and_names_of_the_library(
    compile_host: Compile, opened: Open
) -> None:
    path = compile_host("twins.cpp", 10)
    opened(path)
    registry = get_plugin_registry()
    creators = [registry.find(name) for name in NAMES.values()]
    assert [type(c).__name__ for c in creators] == ["SecondCreator"] * 4 + ["ThirdCreator"]
    for creator in creators:
        assert [(f.name, f.type.name) for f in creator.field_names] == [("factor", "FLOAT32")]
        assert creator.library == str(path)
    assert registry.get_plugin_creator("ScaleV3", "1") is None  # not of the version-2 line


def test_numbers_of_half_a_byte_end_with_a_whole_one(compile_host: Compile, opened: Open) -> None:
    opened(compile_host("packed.cpp", 10))
    (field,) = get_plugin_registry().find("Packed").field_names
    assert (field.type, bytes(field.data)) == (PluginFieldType.INT4, b"\x21\x03")


def test_a_name_that_is_taken_is_told(compile_host: Compile, opened: Open) -> None:
    opened(compile_host("twins.cpp", 10))
    first = get_plugin_registry().find("ScaleV2")
    library = opened(compile_host("twins.cpp", 8))
    assert get_plugin_registry().find("ScaleV2") is first
    told = [n.sentence for n in library.decisions if n.level == "warning"]
    assert len(told) == 5
    assert "plugin ScaleV2, version 1, namespace '' is registered already" in told[0]


def test_a_destroyed_plugin_is_not_called(compile_host: Compile, opened: Open) -> None:
    opened(compile_host("twins.cpp", 10))
    plugin = get_plugin_registry().find("ScaleDynamic").create_plugin("x", FIELDS)
    plugin.destroy()
    with pytest.raises(ValueError, match="destroyed already"):
        plugin.clone()


def test_creators_come_back_with_their_library(compile_host: Compile, opened: Open) -> None:
    registry = get_plugin_registry()
    for _ in range(2):
        opened(compile_host("twins.cpp", 10))
        creator = registry.find("ScaleV2")
        assert creator is not None
        assert registry.deregister_creator(creator)
        assert registry.find("ScaleV2") is None


def test_a_library_takes_its_creator_back(compile_host: Compile, opened: Open) -> None:
    opened(compile_host("twins.cpp", 10))
    registry = get_plugin_registry()
    creator = registry.find("ScaleV2")
    address = creator.native.address
    assert World().call(registry, "deregister_creator", [address])
    assert registry.find("ScaleV2") is None
    assert not World().call(registry, "deregister_creator", [address])
    assert World().call(registry, "register_creator", [creator, ""])  # it may stay loaded


def test_load_library_and_a_registry_of_its_own(compile_host: Compile) -> None:
    path = compile_host("twins.cpp", 10)
    handle = get_plugin_registry().load_library(path)
    assert handle is not None
    assert sorted(c.name for c in handle.creators) == sorted(NAMES.values())
    get_plugin_registry().deregister_library(handle)
    assert get_plugin_registry().find("ScaleV3") is None


EXPORTED = ["ScaleDynamic", "ScaleV2", "ScaleV3"]


@pytest.mark.slow
def test_exported_creators_enter_the_registry(compile_host: Compile, opened: Open) -> None:
    """`getPluginCreators` instead of REGISTER_TENSORRT_PLUGIN."""
    path = compile_host("twins.cpp", 10, "-DEXPORT_CREATORS")
    with collected_errors() as messages:
        library = opened(path)
    assert (2, "three creators") in messages.log  # by the logger that it was given a finder of
    registry = get_plugin_registry()
    ours = [c for c in registry.all_creators if getattr(c, "library", "") == str(path)]
    assert sorted(c.name for c in ours) == EXPORTED
    assert not [n for n in library.decisions if n.level == "warning"]
    opened(path)  # again: the same, without a collision
    assert not [n for n in library.decisions if n.level == "warning"]
    found = registry.find("ScaleV3")
    (first, *_) = _life(found, implicit=False, profiles=1)
    np.testing.assert_array_equal(first, X[:2] * np.float32(2.5))


def test_load_library_registers_exported_creators(compile_host: Compile) -> None:
    path = compile_host("twins.cpp", 10, "-DEXPORT_CREATORS")
    handle = get_plugin_registry().load_library(path)
    assert handle is not None
    assert sorted(c.name for c in handle.creators) == EXPORTED
    get_plugin_registry().deregister_library(handle)
    assert get_plugin_registry().find("ScaleV2") is None


def test_the_registry_is_listed(compile_host: Compile, opened: Open) -> None:
    path = compile_host("twins.cpp", 10)
    opened(path)
    lists = ctypes.CDLL(str(path)).list_creators
    registry = get_plugin_registry()
    assert lists(b"ScaleV2", 0) == lists(b"ScaleDynamic", 0) == 1
    assert lists(b"NMS_TRT", 0) == 1  # a standard plugin: not this library's
    assert lists(b"ScaleV3", 0) == 0  # not of the version-2 line
    assert lists(b"", 0) == len(registry.plugin_creator_list)
    assert lists(b"", 1) == len(registry.all_creators)


def test_an_empty_list_has_null_data() -> None:
    kind = PluginFieldType.FLOAT32
    fields = [PluginField("none", [], kind), PluginField("one", [2.0], kind)]
    assert fields_to(fields) == [
        ("none", int(kind), 0, None),
        ("one", int(kind), 1, np.float32(2).tobytes()),
    ]
