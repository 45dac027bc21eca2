"""Every reader of YAML survives what makes parsers run out of stack or memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEPTH = 200_000
BOMBS = {
    "lists": "a: " + "[" * DEPTH,
    "flow mappings": "a: " + "{a: " * DEPTH,
    "closed lists": "a: " + "[" * DEPTH + "]" * DEPTH + "\n",
    "dashes": "a:\n  " + "- " * DEPTH,
    "question marks": "? " * DEPTH,
    "blocks": "\n".join(" " * i + "a:" for i in range(2000)),
    "deep under a known key": "property:\n  onnx-file: " + "[" * DEPTH,
    "deep key": "property:\n  ? " + "[" * DEPTH + "\n  : 1",
    "deep sources": "models: [a.txt]\nsources: " + "[" * DEPTH,
    "alias of itself": "&a sources: &b [*b]\nmodels: *b\n",
    "laughs": "a0: &a0 [x]\n"
    + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(12))
    + "sources: *a12\nmodels: [a.txt]\n",
    "merged laughs": "a0: &a0 {x: 1}\n"
    + "".join(f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 9)}]}}\n" for i in range(12))
    + "property: *a12\n",
}
# The reader runs in a process of its own: what overflows the stack kills it.
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from headrace.errors import HeadraceError
from headrace.config import ModelConfig, is_pipeline_file, load_pipeline
from headrace.pipeline.track import open_tracker
read = {{"model": ModelConfig.load, "pipeline": load_pipeline, "tracker": open_tracker,
         "kind": is_pipeline_file}}[sys.argv[1]]
for path in sys.argv[2:]:
    try:
        read(path)
    except HeadraceError as error:
        assert len(str(error)) < 20_000, len(str(error))
print("survived")
""".replace("{{", "{").replace("}}", "}")


@pytest.mark.parametrize("reader", ["model", "pipeline", "tracker", "kind"])
@pytest.mark.sampled
def test_deep_and_endless_yaml(reader: str, tmp_path: Path) -> None:
    paths = []
    for number, text in enumerate(BOMBS.values()):
        path = tmp_path / f"{number}.yml"
        path.write_text(text)
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", READ, reader, *paths],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "survived\n", (done.returncode, done.stderr[-2000:])
