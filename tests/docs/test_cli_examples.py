"""Every `$ noria …` line in the documentation of the command line runs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENE = ROOT / "examples" / "conveyor"
PAGES = sorted((ROOT / "docs" / "cli").glob("*.md"))


def _examples() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S):
            found += [(page.stem, line[2:]) for line in block.splitlines() if line.startswith("$ ")]
    return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo scene to run in: nothing is written into the checkout."""
    folder = tmp_path_factory.mktemp("docs") / "conveyor"
    shutil.copytree(SCENE, folder)
    shutil.copy(ROOT / "examples/yolox/nvdsparsebbox_yolox.cpp", folder / "my_parser.cpp")
    (folder / "pipeline.yml").write_text(
        "sources: {uri: conveyor.mp4, repeat: 2}\nmodels: config_infer_primary.txt\n"
        "tracker: iou\nsinks: [tiles.mp4]\n"
    )
    (folder / "list_layers.py").write_text(
        "import sys\nimport tensorrt as trt\n"
        "network = trt.Builder(trt.Logger()).create_network(0)\n"
        "assert trt.OnnxParser(network, trt.Logger()).parse_from_file(sys.argv[1])\n"
        "for layer in network:\n    print(layer.name, layer.get_output(0).shape)\n"
    )
    return folder


def test_every_command_has_a_page_with_an_example() -> None:
    from noria.cli import _COMMANDS

    assert {name for name, _ in _examples()} == set(_COMMANDS)


@pytest.mark.parametrize(("page", "line"), _examples())
def test_example_runs(page: str, line: str, scene: Path) -> None:
    words = shlex.split(line)
    assert words[0] == "noria"
    done = subprocess.run(
        [sys.executable, "-m", "noria", *words[1:]],
        cwd=scene,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout or "-q" in words
