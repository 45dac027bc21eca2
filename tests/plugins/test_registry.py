"""Creators by name, version and namespace; libraries of plugins; resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import CustomLibraryError
from headrace.plugins import (
    IPluginCreator,
    IPluginCreatorV3One,
    IPluginResource,
    PluginFieldCollection,
    PluginRegistry,
)
from headrace.plugins.loading import code_of, loading


class Creator(IPluginCreator):
    def __init__(self, name: str = "Twice", version: str = "1") -> None:
        super().__init__()
        self.name, self.plugin_version = name, version
        self.field_names = PluginFieldCollection()


def test_a_creator_is_found_by_the_exact_triple() -> None:
    registry = PluginRegistry()
    creator = Creator()
    assert registry.register_creator(creator, "mine")
    assert creator.plugin_namespace == "mine"
    assert registry.find("Twice", "1", "mine") is creator
    assert registry.find("Twice", "1.0", "mine") is None
    assert registry.find("Twice", "1") is None
    assert registry.versions("Twice") == [("1", "mine")]
    assert registry.deregister_creator(creator)
    assert not registry.deregister_creator(creator)


def test_a_collision_is_refused_and_told() -> None:
    registry = PluginRegistry()
    assert registry.register_creator(Creator())
    assert not registry.register_creator(Creator())
    (notice,) = registry.notices
    assert notice.level == "warning"
    assert "plugin Twice, version 1" in notice.sentence
    assert registry.register_creator(Creator(version="2"))


def test_a_file_whose_names_are_taken_serves_its_own_models(tmp_path: Path) -> None:
    registry = PluginRegistry()
    first, second = Creator(), Creator()
    files = tmp_path / "first.py", tmp_path / "second.py"
    for creator, file in zip((first, second), files, strict=True):
        with loading(file):
            assert registry.register_creator(creator) == (creator is first)
    assert "serves its own file alone" in registry.notices[0].sentence
    assert registry.find("Twice") is first
    assert registry.candidates("Twice", "1", "") == [first, second]
    assert registry.of_file(files[0]) is registry
    assert registry.of_file(files[1]).find("Twice") is second
    assert registry.creators_of(files[1]) == [second]
    assert registry.come_from(files[1])
    assert registry.deregister_creator(first)
    assert registry.find("Twice") is None
    assert registry.of_file(files[1]).find("Twice") is second
    assert registry.deregister_creator(second)
    assert registry.candidates("Twice", "1", "") == []


def test_a_taken_name_is_found_by_the_code_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = PluginRegistry()
    for name in ("first", "second"):
        (file := tmp_path / f"{name}.so").write_text(name)
        creator = Creator()
        monkeypatch.setattr(creator, "library", str(file), raising=False)
        with loading(file):
            registry.register_creator(creator)
    for creator in registry.candidates("Twice", "1", ""):
        assert registry.find("Twice", code=code_of(creator)) is creator
        assert PluginRegistry(registry).find("Twice", code=code_of(creator)) is creator
    assert registry.find("Twice", code="0" * 64) is registry.find("Twice")


def test_children_search_their_parent_unless_told_not_to() -> None:
    parent = PluginRegistry()
    child = PluginRegistry(parent)
    creator = Creator()
    parent.register_creator(creator)
    assert child.find("Twice") is creator
    assert child.all_creators == []
    assert child.all_creators_recursive == [creator]
    child.parent_search_enabled = False
    assert child.find("Twice") is None


def test_what_is_no_creator_is_refused() -> None:
    registry = PluginRegistry()
    with pytest.raises(CustomLibraryError, match="a str is not a plugin creator"):
        registry.register_creator("Twice")
    with pytest.raises(CustomLibraryError, match="plugin_version is 1"):
        registry.register_creator(Creator(version=1))  # type: ignore[arg-type]
    with pytest.raises(CustomLibraryError, match="name is"):
        registry.register_creator(Creator("x" * 1024))


def test_generations_are_kept_apart() -> None:
    registry = PluginRegistry()

    class Third(IPluginCreatorV3One):
        name, plugin_version = "Three", "1"

    registry.register_creator(Third())
    assert registry.get_plugin_creator("Three", "1") is None
    assert registry.get_creator("Three", "1") is not None
    assert registry.plugin_creator_list == []


LIBRARY = """
from headrace.plugins import IPluginCreator, PluginFieldCollection

class ACreator(IPluginCreator):
    def __init__(self):
        super().__init__()
        self.name, self.plugin_version = "A", "1"
        self.field_names = PluginFieldCollection()
"""


def test_a_library_registers_its_creators_and_takes_them_away(tmp_path: Path) -> None:
    registry = PluginRegistry()
    file = tmp_path / "a.py"
    file.write_text(LIBRARY)
    handle = registry.load_library(file)
    assert handle is not None
    first = registry.find("A")
    assert handle.creators == (first,)
    file.write_text(LIBRARY + "\n")
    again = registry.load_library(file)  # the same file, edited: the new one counts
    assert again is not None
    assert registry.find("A") is not first
    other = tmp_path / "b.py"
    other.write_text(LIBRARY)
    assert registry.load_library(other) is None
    assert str(file) in registry.notices[0].sentence
    registry.deregister_library(again)
    assert registry.find("A") is None


def test_a_library_may_list_its_creators(tmp_path: Path) -> None:
    registry = PluginRegistry()
    file = tmp_path / "a.py"
    file.write_text(LIBRARY + "def get_plugin_creators():\n    return [ACreator()]\n")
    assert registry.load_library(file) is not None
    assert registry.find("A") is not None
    file.write_text(LIBRARY + "def get_plugin_creators():\n    return 1 / 0\n")
    with pytest.raises(CustomLibraryError, match="ZeroDivisionError"):
        PluginRegistry().load_library(file)


def test_libraries_that_cannot_be_loaded(tmp_path: Path) -> None:
    registry = PluginRegistry()
    with pytest.raises(CustomLibraryError, match="no such plugin library"):
        registry.load_library(tmp_path / "none.py")
    binary = tmp_path / "libx.so"
    binary.write_bytes(b"\x7fELF")
    with pytest.raises(CustomLibraryError, match=r"cannot be loaded: truncated ELF"):
        registry.load_library(binary)


class Resource(IPluginResource):
    released = 0

    def clone(self) -> Resource:
        return Resource()

    def release(self) -> None:
        self.released += 1


def test_resources_are_shared_and_counted() -> None:
    registry = PluginRegistry()
    mine = Resource()
    first = registry.acquire_plugin_resource("key", mine)
    second = registry.acquire_plugin_resource("key", Resource())
    assert first is second
    assert first is not mine
    assert registry.release_plugin_resource("key")
    assert first.released == 0
    assert registry.release_plugin_resource("key")
    assert first.released == 1
    assert not registry.release_plugin_resource("key")


class Spaced(IPluginCreatorV3One):
    def __init__(self) -> None:
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = "Spaced", "1", "acme"
        self.field_names = PluginFieldCollection()


def test_a_version_3_creator_keeps_its_own_namespace() -> None:
    registry = PluginRegistry()
    creator = Spaced()
    assert registry.register_creator(creator)
    assert creator.plugin_namespace == "acme"
    assert registry.find("Spaced", "1", "acme") is creator
    assert registry.find("Spaced", "1") is creator  # what it was registered under
    assert registry.find("Spaced", "1", "other") is None
    assert registry.near("Spaced", "1", "other") == [
        "plugin Spaced is registered as version 1, namespace 'acme', not as version 1, "
        "namespace 'other'"
    ]
    assert registry.deregister_creator(creator)
    assert registry.find("Spaced", "1") is None


def test_a_given_namespace_goes_before_its_own() -> None:
    registry = PluginRegistry()
    creator = Spaced()
    registry.register_creator(creator, "mine")
    assert creator.plugin_namespace == "mine"
    assert registry.find("Spaced", "1", "acme") is None


class Recorder:
    """An `IErrorRecorder` that keeps texts."""

    MAX_DESC_LENGTH = 1000

    def __init__(self) -> None:
        self.texts: list[str] = []

    def report_error(self, code: object, text: str) -> bool:
        self.texts.append(text)
        return True


def test_the_same_object_again_is_refused_without_a_notice() -> None:
    registry = PluginRegistry()
    creator = Creator()
    assert registry.register_creator(creator)
    assert not registry.register_creator(creator)
    assert not registry.notices
    assert registry.find("Twice") is creator


def test_the_recorder_is_told_of_all_errors(tmp_path: Path) -> None:
    registry = PluginRegistry()
    registry.error_recorder = recorder = Recorder()
    registry.register_creator(Creator())
    registry.register_creator(Creator())
    registry.get_creator("Nobody", "1")
    (tmp_path / "two.py").write_text(LIBRARY)
    assert registry.load_library(tmp_path / "two.py") is not None
    assert registry.load_library(tmp_path / "two.py") is None
    collision, absent, loaded = recorder.texts
    assert "is registered already" in collision
    assert "Cannot find plugin: Nobody" in absent
    assert "two.py: its creators are registered already" in loaded


def test_a_loaded_library_gives_no_second_handle_until_it_changes(tmp_path: Path) -> None:
    registry = PluginRegistry()
    path = tmp_path / "own.py"
    path.write_text(LIBRARY)
    handle = registry.load_library(path)
    assert handle is not None
    assert registry.load_library(path) is None
    registry.deregister_library(handle)
    assert registry.load_library(path) is not None
    path.write_text(LIBRARY + "# changed\n")
    assert registry.load_library(path) is not None
    assert len(registry.all_creators) == 1
