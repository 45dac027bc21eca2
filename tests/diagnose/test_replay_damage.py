"""`headrace replay` of folders that are not as they were written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.custom.guard.call_args import LoadArgs, ParserArgs
from headrace.custom.guard.crash import LibraryDiedError
from headrace.custom.guard.repro import Case, save_case
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.errors import CustomLibraryError
from headrace.infer.model.guarded_cases import BuildArgs, NetworkArgs, PluginArgs, load_case
from headrace.meta import ClassifierParams, NetworkInfo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    params = ClassifierParams(0.5, [["a"]])
    network = NetworkInfo(4, 4, 3)
    args = ParserArgs(network, params)
    case = Case(Path("lib.so"), "0", "classifier", "Parse", "auto", None, args)
    data = np.arange(12, dtype=np.float32)
    saved = save_case(case, {"y": data}, LibraryDiedError("it crashed"), tmp_path)
    assert isinstance(saved, Path)
    return saved


def test_a_sound_folder(folder: Path) -> None:
    case, arrays, said = load_case(folder)
    assert (case.kind, case.name, said["found"]) == ("classifier", "Parse", "it crashed")
    np.testing.assert_array_equal(arrays["y"], np.arange(12, dtype=np.float32))
    described = folder / "case.json"
    described.rename(folder / "elsewhere.json")
    described.symlink_to("elsewhere.json")
    assert load_case(folder)[0] == case


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.unlink()
        make(file)

    return change


def _said(**entries: object) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))

    return change


DAMAGE: list[tuple[str, Callable[[Path], object], str]] = [
    ("case.json", _instead(lambda f: f.symlink_to("/dev/zero")), "it is no regular file"),
    ("case.json", _instead(os.mkfifo), "it is no regular file"),
    ("case.json", _instead(Path.mkdir), "it is no regular file"),
    ("case.json", Path.unlink, "No such file"),
    ("case.json", lambda f: os.truncate(f, 1 << 32), "it has 4294967296 bytes, and at most"),
    ("case.json", lambda f: f.write_text("[" * 100000), "its JSON is nested too deeply"),
    ("case.json", lambda f: f.write_text("[]"), "the JSON in it is a list, not an object"),
    ("case.json", lambda f: f.write_text("null"), "the JSON in it is null"),
    ("case.json", lambda f: f.write_text('"x"'), "the JSON in it is text"),
    ("case.json", lambda f: f.write_text("{}"), "it is no case of this version"),
    ("case.json", _said(library=7), "'7' is no name"),
    ("case.json", _said(library="a\0b"), "is no name"),
    ("case.json", _said(kind="load"), "'config' is absent"),
    ("case.json", _said(kind="inputs"), "'max-batch' is absent"),
    ("case.json", _said(kind="plugin", config=False), "it has no config"),
    ("layer_0.npy", _instead(os.mkfifo), "it is no regular file"),
    ("layer_0.npy", _instead(lambda f: f.symlink_to("/dev/zero")), "it is no regular file"),
    ("layer_0.npy", lambda f: os.truncate(f, 0), "EOF"),
    ("layer_0.npy", lambda f: os.truncate(f, 100), "EOF"),
    ("layer_0.npy", lambda f: os.truncate(f, 173), "it has 173 bytes; float32 (12,) is 176"),
    ("layer_0.npy", lambda f: os.truncate(f, 1 << 33), "it has 8589934592 bytes, and at most"),
    (
        "layer_0.npy",
        lambda f: np.save(f, np.array([{}], object), allow_pickle=True),
        "it has Python objects, not numbers",
    ),
    ("layer_0.npy", lambda f: np.save(f, np.array(["a"])), "it has <U1, not numbers"),
    (
        "layer_0.npy",
        lambda f: f.write_bytes(b"\x93NUMPY\x01\0" + (99).to_bytes(2, "little") + b"(" * 99),
        "EOF in multi-line statement",
    ),
    (
        "case.json",
        _said(layers=[{"name": str(i), "file": "layer_0.npy"} for i in range(5000)]),
        "it has 5000 layers, and at most 4096 are read",
    ),
    (
        "layer_0.npy",
        lambda f: f.write_bytes(f.read_bytes().replace(b"(12,), }        ", b"(1000000000,), }")),
        "it has 176 bytes; float32 (1000000000,) is 4000000128",
    ),
]


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGE)
def test_a_damaged_folder_is_refused_with_its_file(
    folder: Path, name: str, damage: Callable[[Path], object], words: str
) -> None:
    damage(folder / name)
    with pytest.raises(CustomLibraryError) as caught:
        load_case(folder)
    assert caught.value.where == str(folder / name)
    assert caught.value.finding.sentence.startswith("there is no saved call to replay: ")
    assert words in caught.value.finding.sentence
    assert caught.value.finding.expectation
    assert caught.value.finding.remedies


def test_layers_are_files_of_the_folder(folder: Path) -> None:
    np.save(folder.parent / "other.npy", np.zeros(1, np.float32))
    said = json.loads((folder / "case.json").read_text())
    said["layers"][0]["file"] = "../other.npy"
    (folder / "case.json").write_text(json.dumps(said))
    with pytest.raises(CustomLibraryError, match="No such file"):
        load_case(folder)


def test_layers_are_limited_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _said(layers=[{"name": str(i), "file": "layer_0.npy"} for i in range(500)])(
        folder / "case.json"
    )
    load_case(folder)
    monkeypatch.setattr("headrace.custom.guard.repro.MAX_BYTES", 499 * 48)
    with pytest.raises(CustomLibraryError, match="it has 48 bytes, and at most 0 more are read"):
        load_case(folder)
    _said(layers=[{"name": "y", "file": "layer_0.npy"}] * 2)(folder / "case.json")
    with pytest.raises(CustomLibraryError, match="two of its layers have one name"):
        load_case(folder)


def test_cases_of_the_first_version_are_read(tmp_path: Path) -> None:
    """As it was written before there were other calls than those of parsers."""
    np.save(tmp_path / "layer_0.npy", np.ones((1, 4), np.float32))
    text = """{"headrace-case": 1, "library": "/x/libp.so", "sha256": "ab", "kind": "bbox",
     "function": "Parse", "abi": "auto", "rotation": null, "network": [32, 16, 3],
     "params": {"num_classes": 1, "pre": [0.25], "post": [0.0], "labels": ["thing"]},
     "timeout": 10.0, "memory": 4096, "layers": [{"name": "y", "file": "layer_0.npy"}],
     "found": "the function crashed (SIGSEGV)", "when": "2026-03-01", "machine": "Linux x86_64"}"""
    (tmp_path / "case.json").write_text(text)
    case, arrays, said = load_case(tmp_path)
    assert (case.kind, case.name, said["found"]) == ("bbox", "Parse", said["found"])
    assert isinstance(case.args, ParserArgs)
    assert case.args.network == NetworkInfo(32, 16, 3)
    assert arrays["y"].shape == (1, 4)


RECORD = {
    "node": "n", "generation": "V2DynamicExt", "type": "T", "version": "1", "namespace": "",
    "inputs": ["in0"], "shape_inputs": [], "outputs": ["out0"],
    "input_types": ["FLOAT"], "output_types": ["FLOAT"], "dtypes": ["float32"],
    "shapes": ['[["axis",0,0],4]'], "blobs": ["plugin 0.0"], "workspaces": [0], "tactics": [0],
    "profiles": [{"min": [[1, 4]], "opt": [[1, 4]], "max": [[2, 4]], "values": []}],
}  # fmt: skip
REQUEST = {
    "inputs": [["x", "<f4", [None, "h", 4]]], "max_batch": 2, "batched": True,
    "profiles": [{"x": [[1, 4], [1, 4], [2, 4]]}], "scales": {"x": 0.5}, "where": "m.onnx",
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> ModelConfig:
    path = tmp_path / "given.txt"
    (tmp_path / "m.onnx").write_bytes(b"model")
    path.write_text("[property]\ngie-unique-id=1\nonnx-file=m.onnx\ncustom-lib-path=lib.so\n")
    return ModelConfig.load(path)


def _saved(kind: str, args: LoadArgs, to: Path, arrays: int) -> Path:
    case = Case(Path("lib.so"), "0", kind, "It", "auto", None, args)
    data = {f"data {i}": np.zeros((1, 4), np.float32) for i in range(arrays)}
    saved = save_case(case, data, LibraryDiedError("it crashed"), to)
    assert isinstance(saved, Path)
    load_case(saved)
    return saved


def _fails(folder: Path, words: str) -> None:
    with pytest.raises(CustomLibraryError, match="no saved call to replay") as caught:
        load_case(folder)
    assert words in caught.value.finding.sentence


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_said(record={**RECORD, "dtypes": ["float33"]}), "dtypes.0: Invalid enum value"),
        (_said(record={**RECORD, "inputs": []}), "do not go together"),
        (_said(record=[]), "Expected `object`, got `array`"),
        (_said(inputs=3), "its plugin has 2 arrays"),
        (_said(inputs=None), "its plugin has 2 arrays"),
        (_said(inputs=-1), "-1 is no such number"),
        (_said(inputs=True), "True is no such number"),
        (_said(place={}), "is no name"),
        (_said(config="yes"), "'yes' is neither true nor false"),
    ],
)
def test_damaged_plugins(
    tmp_path: Path, config: ModelConfig, change: Callable[[Path], None], words: str
) -> None:
    record = PluginRecord.from_dict(RECORD)
    args = PluginArgs(config, record=record, place="p", inputs=1)
    folder = _saved("plugin", args, tmp_path, 2)
    change(folder / "case.json")
    _fails(folder, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": [["x", "O", [1]]]}, "inputs.0.1: "),
        ({"max_batch": 0}, "max_batch: "),
        ({"max_batch": True}, "max_batch: "),
        ({"profiles": [{"x": [[1]]}]}, "profiles.0: "),
        ({"scales": {"x": "0.5"}}, "scales"),
        ({"network": 3}, "network: "),
        ({"where": None}, "where: "),
    ],
)
def test_damaged_requests(
    tmp_path: Path, config: ModelConfig, change: dict[str, object], words: str
) -> None:
    folder = _saved("build", BuildArgs(config, "", REQUEST), tmp_path, 1)
    read = load_case(folder)[0].args
    assert isinstance(read, BuildArgs)
    assert json.loads(json.dumps(read.request)) == REQUEST
    _said(request={**REQUEST, **change})(folder / "case.json")
    _fails(folder, words)


def test_damaged_files_of_a_model(tmp_path: Path, config: ModelConfig) -> None:
    folder = _saved("network", NetworkArgs(config, "Make"), tmp_path, 0)
    (entry,) = json.loads((folder / "case.json").read_text())["files"]
    for change, words in (
        ({"key": "gie-unique-id", "name": "x"}, "its config names no gie-unique-id"),
        ({"key": "model-file"}, "its config names no model-file"),
        ({"key": "path"}, "its config names no path"),
        ({"sha256": "00"}, "'00' is no hash"),
        ({"sha256": "0" * 64}, "m.onnx is not what it was"),
        ({"sha256": "0" * 64, "name": "../case.json"}, "No such file"),
        ({"kept": 1, "sha256": "0" * 64}, "1 is neither true nor false"),
    ):
        _said(files=[{**entry, **change}])(folder / "case.json")
        _fails(folder, words)
    _said(files=[entry])(folder / "case.json")
    load_case(folder)
    copy = folder / "file_0" / "m.onnx"
    for damage in (lambda f: os.truncate(f, 1 << 40), _instead(os.mkfifo), Path.unlink):
        damage(copy)
        load_case(folder)  # it is not needed: the file itself is as it was
        (tmp_path / "m.onnx").rename(tmp_path / "elsewhere")
        _fails(folder, "")
        (tmp_path / "elsewhere").rename(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (Path.unlink, "No such file"),
        (_instead(os.mkfifo), "it is no regular file"),
        (_instead(lambda f: f.symlink_to("/dev/zero")), "it is no regular file"),
        (lambda f: os.truncate(f, 1 << 33), "it has 8589934592 bytes, and at most"),
        (lambda f: f.write_text("[property]\nbatch-size=many\n"), "batch-size"),
    ],
)
def test_damaged_configs(
    tmp_path: Path, config: ModelConfig, damage: Callable[[Path], object], words: str
) -> None:
    folder = _saved("load", LoadArgs(config), tmp_path, 0)
    damage(folder / "config.txt")
    _fails(folder, words)


def test_large_models_stay_where_they_are(
    tmp_path: Path, config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.infer.model.guarded_cases.MAX_COPIES", 4)
    folder = _saved("network", NetworkArgs(config, "Make"), tmp_path, 0)
    assert not list(folder.glob("file_*"))
    (tmp_path / "m.onnx").write_bytes(b"other")
    (told,) = load_case(folder)[0].args.notices  # type: ignore[union-attr]
    assert str(told) == f"{tmp_path / 'm.onnx'}: onnx-file is not what it was"
