"""`headrace explain` on a terminal, as JSON and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from headrace.cli import main
from tests.infer.tally.test_box_losses import detector


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config whose model finds two cars and a person in any image, and an image."""
    with detector(tmp_path):
        pass
    Image.fromarray(np.full((64, 64, 3), 60, np.uint8)).save(tmp_path / "grey.png")
    return tmp_path


def explain(folder: Path, *options: str) -> Result:
    command = ["explain", str(folder / "config.txt"), str(folder / "grey.png"), *options]
    return CliRunner().invoke(main, command)


def test_it_answers_in_text_and_writes_a_page(folder: Path) -> None:
    page = folder / "page.html"
    done = explain(folder, "--at", "20,20", "-o", str(page), "--set", "topk=1")
    assert done.exit_code == 0, done.output
    assert "2 objects, 1 more candidate dropped: car 0.7 at 38,16 12x8" in done.stdout
    assert "number 2 by score of its class, topk=1 (--set): set 2" in done.stdout
    assert done.stdout.endswith(f"wrote {page}\n")
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_json_alone_is_on_standard_output(folder: Path) -> None:
    done = explain(folder, "--json", "--conf", "0.8", "--box", "38,16,12,8")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["at"] == [38, 16, 12, 8]
    (model,) = data["models"]
    assert model["dropped"][0]["verdict"] == {
        "stage": "threshold",
        "text": "score 0.7 < pre-cluster-threshold=0.8",
        "key": "pre-cluster-threshold",
        "where": "--conf",
        "fix": "set 0.69",
        "value": pytest.approx(0.7),
        "limit": 0.8,
        "change": {"class-attrs-all.pre-cluster-threshold": "0.69"},
        "outcome": "2 objects in 1 frame instead of 1",
    }


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--at", "20"], 2, "'20' is not X,Y: 2 numbers."),
        (["--at", "a,b"], 2, "'a,b' is not X,Y: 2 numbers."),
        (["--at", "nan,1"], 3, "is no place"),
        (["--at", "90,1"], 3, "90,1 lies outside of the frame"),
        (["--at", "1,1", "--box", "1,1,5,5"], 3, "a point and a box are given"),
        (["--box", "1,1,0,5"], 3, "a box of 0x5 pixels"),
        (["--frame", "7"], 6, "there is no frame 7"),
        (["--floor", "0"], 2, "not in the range"),
        (["-o", "no/such/folder/page.html"], 6, "cannot be written"),
    ],
)
def test_a_wrong_question_is_refused(
    folder: Path, options: list[str], code: int, text: str
) -> None:
    done = explain(folder, *options)
    assert done.exit_code == code, done.output
    assert text in done.output
