"""`headrace eval`: tables, JSON, gates and wrong usage."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from tests.diagnose.evaluate.conftest import BLUE, RED, boxes, classifier
from tests.diagnose.evaluate.datasets.images import image

__all__ = ["boxes", "classifier"]


def run(*words):
    return CliRunner().invoke(main, ["eval", *map(str, words)])


@pytest.fixture
def data(boxes, tmp_path):
    return ["--coco", boxes(), "--images", tmp_path / "images"]


def test_a_table_a_report_and_gates(mean_config, data, tmp_path):
    cfg, page = mean_config(), tmp_path / "r.html"
    done = run(cfg, *data, "-o", page, "--min-map50", 0.4)
    assert done.exit_code == 0, done.output
    assert "mAP50-95" in done.stdout
    assert "Thing where nothing is: 2" in done.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")
    below = run(cfg, *data, "--min-map50", 0.6, "--min-map", 0.1)
    assert below.exit_code == 8
    assert "config.txt: mAP50 0.5000 is below 0.6" in below.stderr
    assert run(cfg, *data, "--min-miou", 0.1).exit_code == 1


def test_json_of_several_configs(mean_config, data):
    cfg = mean_config()
    done = run(cfg, cfg, *data, "--set", "2:pre-cluster-threshold=0.9", "--json", "--limit", 3)
    found = json.loads(done.stdout)
    assert found["dataset"]["images"] == 3
    first, second = found["results"]
    assert first["figures"]["mAP50"] == second["figures"]["mAP50"]
    assert first["figures"]["mAP large"] is None
    assert first["at_config"]["right"] > second["at_config"]["right"]
    assert first["classes"][0]["name"] == "Thing"
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    page = page.partition("## Evaluation")[2].partition("\n## ")[0]
    keys = {*found["dataset"], *first, *first["at_config"], *first["classes"][0]}
    assert [key for key in keys if f"`{key}`" not in page] == []
    more = run(mean_config(num_detected_classes=3, labelfile_path=None), *data)
    assert "classes are paired in their order" in more.stderr
    shown = run(cfg, cfg, *data)
    assert "(+0.000)" in shown.stdout


def test_a_classifier_and_a_map(classifier, tmp_path):
    image(tmp_path / "kinds" / "rouge" / "a.png", color=RED)
    image(tmp_path / "kinds" / "bleu" / "a.png", color=BLUE)
    words = [classifier.path, "--folders", tmp_path / "kinds", "--map", "red=rouge"]
    done = run(*words, "--map", "blue=bleu", "--min-accuracy", 1)
    assert done.exit_code == 0, done.output
    assert "top-1" in done.stdout
    strict = run(*words, "--strict")
    assert strict.exit_code == 7
    assert "1 of 2 classes of the data set are no labels of the model" in strict.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "name one data set"),
        (["--coco", "a.json", "--voc", "b"], "2 are given"),
        (["--folders", "b", "--images", "c"], "--images is not for --folders"),
        (["--coco", "b", "--split", "c"], "--split is not for --coco"),
        (["--coco", "b", "--names", "c"], "--names is not for --coco"),
        (["--coco", "b", "--map", "car"], "is no LABEL=CLASS"),
        (["--coco", "b", "--min-map", "nan"], "not in the range"),
    ],
)
def test_wrong_usage(words, text):
    done = run("c.txt", *words)
    assert done.exit_code == 2
    assert text in done.stderr


def test_errors_have_their_exit_codes(mean_config, tmp_path):
    assert run(mean_config(), "--coco", tmp_path / "gone.json").exit_code == 6
    lost = run("c.txt", "--coco", "t.json", "-o", tmp_path / "gone" / "r.html")
    assert "there is no such folder" in lost.stderr
    image(tmp_path / "kinds" / "a" / "a.png")
    done = run(mean_config(), "--folders", tmp_path / "kinds")
    assert done.exit_code == 3
    assert "do not fit" in done.stderr


def test_tracks_are_scored_side_by_side(tmp_path):
    pytest.importorskip("trackers")
    rows = [(t, i, 10 * t, 100 * i, 40, 80) for t in range(1, 11) for i in (1, 2)]
    swapped = [(t, 3 - i if t > 5 else i, *box) for t, i, *box in rows]
    for name, some in (("gt", rows), ("same", rows), ("swapped", swapped)):
        lines = [",".join(map(str, row)) for row in some]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    files = [str(tmp_path / f"{name}.txt") for name in ("same", "swapped", "gt")]
    result = CliRunner().invoke(main, ["eval", *files[:2], "--tracks", files[2], "--json"])
    scores = list(json.loads(result.stdout).values())
    assert [s["switches"] for s in scores] == [0, 2]
    assert scores[0]["hota"] == 1 > scores[1]["hota"]
    table = CliRunner().invoke(main, ["eval", *files[:2], "--tracks", files[2]]).stdout
    assert "HOTA" in table
    assert "1.0000" in table
