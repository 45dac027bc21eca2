"""`headrace record` and `headrace replay` of recordings, and the pytest fixture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from headrace.cli import main
from tests.infer.recordings.scenes import noise, rows_config


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording of two images that a parser in Python decoded, with its config."""
    config = rows_config(tmp_path / "a", custom_lib_path="parser.py")
    (tmp_path / "images").mkdir()
    for seed in range(2):
        Image.fromarray(noise(seed)).save(tmp_path / "images" / f"{seed}.png")
    done = run("record", config, tmp_path / "images", "-o", tmp_path / "r.safetensors")
    assert done.exit_code == 0, done.output
    assert "2 frames, 2 runs of a model" in done.stdout
    return tmp_path


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_replay_tells_whether_the_parser_still_gives_the_same(folder: Path) -> None:
    config = folder / "a" / "config.txt"
    done = run("replay", folder / "r.safetensors", config)
    assert done.exit_code == 0, done.output
    assert done.stdout.count("frame ") == 2
    assert done.stdout.endswith("all 2 as recorded\n")
    done = run("replay", "-q", folder / "r.safetensors", config, "--set", "pre-cluster-threshold=1")
    assert done.exit_code == 1
    assert "2 of 2 differ from the recording; the first: frame 0 of " in done.stderr
    assert " are found; first difference" in done.stderr
    library = ["--custom-lib", folder / "a" / "parser.py", "--func", "parse"]
    assert run("replay", folder / "r.safetensors", *library).exit_code == 0


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["r.safetensors"], 3, "were parsed by parse in parser.py"),
        (["a/config.txt"], 6, "no recording can be read"),
        (["a", "--func", "parse"], 2, "is a saved call"),
        (["a"], 5, "there is no saved call to replay"),
        (["r.safetensors", "--timeout", "3"], 2, "is a recording"),
        (["r.safetensors", "--set", "topk=3"], 2, "--set goes with a CONFIG"),
        (["r.safetensors", "--custom-lib", "no.so", "--func", "f"], 3, "no.so"),
    ],
)
def test_a_wrong_replay_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, text: str
) -> None:
    monkeypatch.chdir(folder)
    done = run("replay", *options)
    assert done.exit_code == code, done.output
    assert text in done.output


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--frames", "1,x"], 2, "is no list of frames"),
        (["--frames", "1,7"], 6, "expected frame 7, too"),
        (["--limit", "0"], 2, "not in the range"),
        (["-o", "a"], 2, "is a directory"),
        (["-o", "a/config.txt/r"], 6, "is a file, not a folder"),
        (["-o", "/dev/full"], 6, "a device or pipe"),
    ],
)
def test_a_wrong_recording_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, text: str
) -> None:
    monkeypatch.chdir(folder)
    before = (folder / "r.safetensors").read_bytes()
    out = [] if "-o" in options else ["-o", "r.safetensors"]
    done = run("record", "a/config.txt", "images", *out, *options)
    assert done.exit_code == code, done.output
    assert text in done.output
    assert (folder / "r.safetensors").read_bytes() == before
    assert not list(folder.glob(".headrace-*")) + list(folder.glob("*.part"))


TEST = """
import headrace
from a.parser import parse


def test_boxes(headrace_recording):
    for item in headrace_recording("r.safetensors"):
        headrace.assert_same_objects(parse(item.layers, item.network, item.params), item)


def test_moved_boxes(headrace_recording):
    item = headrace_recording("r.safetensors")[1]
    found = parse(item.layers, item.network, item.params)
    found.boxes += 4
    headrace.assert_same_objects(found, item)
"""


@pytest.mark.slow
def test_the_fixture_finds_a_recording_beside_the_test(folder: Path) -> None:
    (folder / "test_parser.py").write_text(TEST)
    plugin = [] if _installed() else ["-p", "headrace.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-q", "--rootdir=.", "-p", "no:cacheprovider"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: frame 1 of " in done.stdout
    assert "\nE         - " in done.stdout
    assert "\nE         + " in done.stdout


def _installed() -> bool:
    """True if the installation already names the plugin: an editable one may be older."""
    from importlib.metadata import entry_points

    return "headrace.pytest_plugin" in {e.value for e in entry_points(group="pytest11")}
