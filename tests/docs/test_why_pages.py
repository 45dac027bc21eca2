"""The pages that start from a symptom: what they print, and that their parts are there."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.custom.guard import keeper
from headrace.infer.attach import EDGE, DropReason
from headrace.infer.tally.box_losses import CLUSTER_FILTERS
from tests.copies import copied_example
from tests.mistakes.cases import config_text
from tests.mistakes.models import MODELS
from tests.mistakes.scene import write_scenes
from tests.mistakes.setups import LABELS, YOLOV8
from tests.profiles import slow

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "why").glob("*.md"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo scene, and beside it a small YOLOv8 export with its config, labels and images."""
    made = tmp_path_factory.mktemp("why") / "conveyor"
    copied_example("conveyor", made)
    write_scenes(made, ["images"])
    MODELS["yolov8.onnx"](made / "yolov8.onnx")
    keys = YOLOV8.configs["config.txt"] | {"labelfile-path": "labels_yolov8.txt"}
    (made / "config_yolov8.txt").write_text(config_text(keys))
    (made / "labels_yolov8.txt").write_text(LABELS)
    return made


def blocks(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a page with the lines that it shows."""
    for block in re.findall(r"```console\n(.*?)```", page, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = part.splitlines()
            yield command, shown


def printed(command: str, folder: Path) -> list[str]:
    """The lines that a command prints, as the pages show them: without notes and folders."""
    if not command.startswith("headrace "):
        subprocess.run(["sh", "-c", command], cwd=folder, check=True)
        return []
    done = CliRunner().invoke(main, shlex.split(command)[1:])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    refused = re.search(r"^(?:error|.*: error )", done.output, re.M) is not None
    assert (done.exit_code > 1) == refused, done.output
    text = done.output.replace(f"{folder}/", "")
    return [line.rstrip() for line in text.splitlines() if not line.startswith("note:")]


def written(page: str, folder: Path) -> None:
    """Write the sources that a page shows."""
    for name, text in re.findall(r"`([\w.]+)`:\n\n```cpp\n(.*?)```", page, re.S):
        (folder / name).write_text(text)


def matches(shown: list[str], lines: list[str]) -> bool:
    """Whether the lines are those shown; an ellipsis stands for any text, on its own for lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…"
        else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown
    )  # fmt: skip
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


_LONG = ("int8", "crash", "less-accurate", "no-boxes", "secondary-silent", "wrong-thresholds")


@pytest.mark.parametrize(
    "path", [slow(p) if p.stem in _LONG else p for p in PAGES], ids=lambda path: path.stem
)
def test_the_commands_print_what_the_page_shows(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.stem == "crash" and keeper.can_guard() is not None:
        pytest.skip("it would end this process")
    page = path.read_text()
    written(page, folder)
    monkeypatch.chdir(folder)
    saved = ""
    for command, shown in blocks(page):
        lines = printed(command.replace("FOLDER", saved), folder)
        told = re.search(r"headrace replay (\S+)", "\n".join(lines))
        saved = told[1] if told else saved
        assert matches(shown, lines), f"$ {command}\n" + "\n".join(lines)


@pytest.mark.parametrize("path", [p for p in PAGES if p.stem != "index"], ids=lambda p: p.stem)
def test_a_page_has_causes_and_ends_with_a_command(path: Path) -> None:
    page = path.read_text()
    causes = page.split("## Likely causes")[1].split("\n## ")[0]
    numbers = re.findall(r"^\*\*(\d)\. ", causes, re.M)
    assert 3 <= len(numbers) <= 5
    assert numbers == [str(i + 1) for i in range(len(numbers))]
    checks = re.findall(r"^- Check: .*?(?=^- Change: )", causes, re.M | re.S)
    assert len(checks) == len(numbers)
    last = page.split("## What decides")[1]
    assert re.search(r"^\$ headrace (lint|explain|compare|eval|replay) ", last, re.M)
    assert f"]({path.name})" in (path.parent / "index.md").read_text()


def test_every_filter_has_a_row() -> None:
    page = (ROOT / "docs" / "why" / "no-boxes.md").read_text()
    named = " ".join(re.findall(r"^\| (`.*?) \|", page, re.M)).replace(", `-h`", "")
    named += " `detected-min-h` `detected-max-h`"
    attach = {drop.key for drop in DropReason if drop and not drop.edge}
    filters = {*CLUSTER_FILTERS, EDGE, *attach}
    assert {name for name in filters if f"`{name}`" not in named} == set()
