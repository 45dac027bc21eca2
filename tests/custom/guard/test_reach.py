"""Which files a worker reaches: those that its user may read, or those that the config names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace._core import _native
from headrace.custom.guard import GuardOptions, keeper
from headrace.custom.guard.reach import NamedPaths, reach_of
from headrace.errors import ConfigError
from headrace.infer.parser_choice import custom_library
from headrace.meta import DetectionParams, Layer, NetworkInfo

PARSER = """
import ctypes, json, os, statistics
from pathlib import Path
from headrace import Detections

def attempt(act):
    try:
        act()
        return 1.0
    except OSError:
        return 0.0

def parse(layers, network, params):
    import colorsys  # a module that is not loaded yet
    there, own = Path(os.environ["THERE"]), Path(os.environ["TMPDIR"])
    ctypes.CDLL("libm.so.6")
    return Detections([[
        attempt((there / "read/file").read_text) + 2 * attempt((there / "other/file").read_text),
        attempt(lambda: (there / "write/new").write_text("x")),
        attempt(lambda: (there / "read/new").write_text("x")),
        attempt(lambda: (own / "new").write_text("x")),
    ]], [1], [0])
"""


def tried(config: Path, parser: Path) -> list[float]:
    cfg = headrace.ModelConfig.load(config)
    library = custom_library(cfg, parser)
    params = DetectionParams(1, np.zeros(1, np.float32))
    layers = {"a": Layer("a", np.zeros(1, np.float32))}
    box = library.bbox_parser("parse")(layers, NetworkInfo(8, 8, 3), params).boxes[0]
    assert "worker-open" not in [n.code for n in library.decisions]
    library.close()  # type: ignore[attr-defined]
    values: list[float] = box.tolist()
    return values


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
@pytest.mark.skipif(not _native.guard_landlock_version(), reason="no Landlock in this kernel")
@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("", [3, 0, 0, 1]),
        ("write:{0}/write", [3, 1, 0, 1]),
        ("read:{0}/read", [1, 0, 0, 1]),
        ("read:{0}/read;write:{0}/write", [1, 1, 0, 1]),
    ],
)
def test_a_worker_reaches_what_the_config_names(
    tmp_path: Path,
    mean_config: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    paths: str,
    expected: list[float],
) -> None:
    there = tmp_path / "there"
    for name in ("read", "write", "other"):
        (there / name).mkdir(parents=True)
        (there / name / "file").write_text("content")
    (tmp_path / "library").mkdir()
    parser = tmp_path / "library" / "parser.py"
    parser.write_text(PARSER)
    monkeypatch.setenv("THERE", str(there))
    keys = {"custom_lib_paths": paths.format(there)} if paths else {}
    config = mean_config(
        custom_lib_path=parser, parse_bbox_func_name="parse", custom_lib_guard="always", **keys
    )
    assert tried(config, parser) == expected
    assert (there / "write" / "new").exists() == bool(expected[1])


@pytest.mark.parametrize(
    ("entry", "phrase"),
    [
        ("/tmp", "names no path"),
        ("execute:/tmp", "names no path"),
        ("read:", "names no path"),
        ("write:nowhere", "nowhere does not exist"),
    ],
)
def test_an_entry_that_names_nothing_is_refused(
    tmp_path: Path, mean_config: Callable[..., Path], entry: str, phrase: str
) -> None:
    with pytest.raises(ConfigError, match=phrase):
        NamedPaths.read([entry], tmp_path)
    with pytest.raises(ConfigError, match=phrase) as caught:
        GuardOptions.of(headrace.ModelConfig.load(mean_config(custom_lib_paths=entry)))
    assert "config" in str(caught.value), "it names the file"


def test_paths_are_those_of_the_config(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    named = NamedPaths.read(["read:a", f"write:{tmp_path}"], tmp_path)
    assert named == NamedPaths((f"{tmp_path}/a",), (str(tmp_path),))


def test_devices_are_those_of_a_gpu_where_there_is_one() -> None:
    everything, own = reach_of([], ["/own"], gpu=False), reach_of(["/here"], ["/own"], gpu=True)
    assert "/dev" not in everything.reads
    assert "/proc" in everything.reads
    assert not everything.narrow
    assert "/dev/null" in everything.devices
    assert own.narrow
    assert "/here" in own.reads
    assert "/proc" not in own.reads
    assert own.writes == ("/own",)
