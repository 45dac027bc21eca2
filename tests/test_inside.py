"""Commands in the tests' own process say, write and end as those in a process of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import inside
from tests.guest import differences, process_state
from tests.warm import started_anew

LOUD = """
def loud(layers, network, params):
    import os, warnings
    os.write(1, b"past Python\\n")
    print(os.getcwd(), os.environ["HOME"], flush=True)
    warnings.warn("of a parser")
    return parse(layers, network, params)
"""


@pytest.mark.parametrize(
    "line", ["run config.txt photos -o out.jsonl --json", "rnu", "show gone.txt"]
)
def test_it_says_and_does_the_same_as_a_process(
    mean_config: Callable[..., Path], photos: Path, tmp_path: Path, line: str
) -> None:
    mean_config(parse_bbox_func_name="loud", parser=LOUD)
    inside.headrace("build", "config.txt", cwd=tmp_path)
    alone = started_anew(*line.split(), cwd=tmp_path)
    files = {p.name: p.read_bytes() for p in tmp_path.glob("*.jsonl")}
    before = process_state()
    called = inside.headrace(*line.split(), cwd=tmp_path)
    changed = differences(before, process_state(before))
    assert changed == {}
    assert called.returncode == alone.returncode
    for stream in ("stdout", "stderr"):
        texts = [getattr(done, stream).replace("python -m ", "") for done in (called, alone)]
        one, other = (re.sub(r"\d+\.\d+", "T", text) for text in texts)
        assert one == other
    assert files == {p.name: p.read_bytes() for p in tmp_path.glob("*.jsonl")}
    assert ("of a parser" in called.stderr) == ("past Python" in called.stderr) == bool(files)
