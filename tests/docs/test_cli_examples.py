"""Every `$ headrace …` line in the documentation of the command line runs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.copies import copied_example
from tests.inside import headrace

ROOT = Path(__file__).parents[2]
SCENE = ROOT / "examples" / "conveyor"
PAGES = sorted((ROOT / "docs" / "cli").glob("*.md"))
LONG = {"batch", "bench", "build", "calibrate", "check-plugin", "compare", "compile", "demo",
        "doctor", "eval", "explain", "inspect", "lint", "repair", "run", "trtexec",
        "tune"}  # fmt: skip


def _examples() -> dict[str, list[str]]:
    """The lines of each page that has any: later ones use what earlier ones made."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S):
            lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
            if lines:
                found.setdefault(page.stem, []).extend(lines)
    return found


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo scene to run in: nothing is written into the checkout."""
    folder = tmp_path_factory.mktemp("docs") / "conveyor"
    copied_example("conveyor", folder)
    shutil.copy(ROOT / "examples/yolox/nvdsparsebbox_yolox.cpp", folder / "my_parser.cpp")
    (folder / "pipeline.yml").write_text(
        "sources: {uri: conveyor.mp4, repeat: 2}\nmodels: config_infer_primary.txt\n"
        "tracker: iou\nsinks: [tiles.mp4]\n"
    )
    right = (folder / "config_infer_primary.txt").read_text()
    wrong = right.replace("net-scale-factor=0.00392156862745098", "net-scale-factor=1")
    (folder / "broken.txt").write_text(
        wrong.replace("model-color-format=0", "model-color-format=1")
    )
    (folder / "list_layers.py").write_text(
        "import sys\nimport tensorrt as trt\n"
        "network = trt.Builder(trt.Logger()).create_network(0)\n"
        "assert trt.OnnxParser(network, trt.Logger()).parse_from_file(sys.argv[1])\n"
        "for layer in network:\n    print(layer.name, layer.get_output(0).shape)\n"
    )
    return folder


def test_every_command_has_a_page_with_an_example() -> None:
    from headrace.cli import _COMMANDS

    assert set(_examples()) == set(_COMMANDS)


def test_the_unit_on_the_page_is_that_of_the_example() -> None:
    """Who installs a wheel has no examples."""
    unit = (ROOT / "examples" / "13_service" / "headrace.service").read_text()
    page = (ROOT / "docs" / "cli" / "serve.md").read_text()
    assert f"```ini\n{unit}```" in page


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.slow] * (p in LONG)) for p in _examples()],
)
def test_examples_of_a_page_run_one_after_the_other(page: str, scene: Path) -> None:
    for line in _examples()[page]:
        words = shlex.split(line)
        assert words[0] == "headrace"
        done = headrace(*words[1:], cwd=scene)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout or "-q" in words, line
