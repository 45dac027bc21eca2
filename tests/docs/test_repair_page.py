"""The example of the page on repairs prints what it says, and its Python runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.config import ModelConfig
from tests.copies import copied_example

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli" / "repair.md").read_text()


@pytest.mark.slow
def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied_example("conveyor", tmp_path / "conveyor")
    monkeypatch.chdir(folder)
    right = Path("config_infer_primary.txt").read_text()
    wrong = re.sub("net-scale-factor=.*", "net-scale-factor=1", right)
    Path("broken.txt").write_text(wrong.replace("model-color-format=0", "model-color-format=1"))
    (command, *_) = re.findall(r"^\$ (.*)$", PAGE, re.M)
    done = CliRunner().invoke(main, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    example = PAGE.split("```\n", 2)[1].split("\nCONFIG is")[0]
    # how many are tried changes with whatever findings advise
    shown, printed = (
        [re.sub(r"^tried \d+", "tried N", line.strip()) for line in lines]
        for lines in (
            [line for line in example.splitlines() if line.startswith("    ")],
            done.stdout.splitlines(),
        )
    )
    assert [line for line in shown if line not in ("…", *printed)] == []
    assert Path("broken.txt").read_text() != right
    repaired, meant = (ModelConfig.load(name) for name in (
        "repaired.txt", "config_infer_primary.txt"
    ))  # fmt: skip
    assert repaired.net_scale_factor == pytest.approx(meant.net_scale_factor)
    assert repaired.model_color_format == meant.model_color_format
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(block, "repair.md", "exec"), {})
    assert "chosen model-color-format=0" in capsys.readouterr().out
    assert Path("python.txt").exists()
