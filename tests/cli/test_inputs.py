"""Arguments of commands: what is a config and what a source."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from headrace.cli.inputs import is_config, is_engine, is_model, parted


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a pipeline file, a config and a list of inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.yml").write_text("sources: a.mp4\nmodels: pgie.txt\n")
    (tmp_path / "pgie.txt").write_text("# a config\n[property]\n")
    (tmp_path / "list.txt").write_text("# names\na.mp4\n")
    return tmp_path


def test_a_list_is_a_config_but_where_lists_are_taken() -> None:
    assert is_config("list.txt")
    assert not is_config("list.txt", lists=True)
    assert is_config("pgie.txt", lists=True)
    Path("server.txt").write_text("# of Triton\ninfer_config {\n  unique_id: 1\n}\n")
    assert is_config("server.txt", lists=True)
    assert is_config("gone.txt", lists=True)
    assert is_config("yolo.onnx", lists=True)
    assert not is_config("s3://bucket/list.txt", lists=True)
    assert not is_config("a.mp4")


def test_configs_come_before_sources() -> None:
    assert parted(["pgie.txt", "sgie.yml", "a.mp4", "b.mp4"]) == (
        None, ("pgie.txt", "sgie.yml"), ("a.mp4", "b.mp4")
    )  # fmt: skip
    assert parted(["odd", "a.mp4"]) == (None, ("odd",), ("a.mp4",))
    assert parted(["pgie.txt"]) == (None, ("pgie.txt",), ())
    assert parted(["pgie.txt", "list.txt"], lists=True) == (None, ("pgie.txt",), ("list.txt",))
    assert parted(["pipeline.yml", "a.mp4"]) == ("pipeline.yml", (), ("a.mp4",))


@pytest.mark.parametrize(
    ("inputs", "lists", "words"),
    [
        (["pipeline.yml", "pgie.txt"], False, "it names its configs itself"),
        (["pipeline.yml", "pgie.txt"], True, "it names its configs itself"),
        (["a.mp4", "pgie.txt"], False, "a.mp4 stands where a config should"),
        (["a.mp4"], True, "a.mp4 stands where a config should"),
    ],
)
def test_a_mixture_is_wrong_usage(inputs: list[str], lists: bool, words: str) -> None:
    with pytest.raises(click.UsageError, match=words):
        parted(inputs, lists=lists)


def test_models_and_engines_go_by_their_names(folder: Path) -> None:
    assert is_engine(Path("a.engine"))
    assert not is_engine(Path("a.onnx"))
    assert is_model(Path("a.onnx"))
    assert not is_model(Path("pgie.txt"))
    (folder / "yolo.cfg").write_text("# darknet\n[net]\n")
    (folder / "config.cfg").write_text("[property]\n")
    assert is_model(folder / "yolo.cfg")
    assert not is_model(folder / "config.cfg")
