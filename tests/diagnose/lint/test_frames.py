"""Lint with frames: what is advised is tried on them, and only what they confirm is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from headrace.cli import main
from headrace.diagnose.lint.fixes import fixes_for
from headrace.diagnose.lint.frames import split_source
from headrace.diagnose.lint.linting import Linter, LintReport
from headrace.errors import ConfigError
from tests.infer.watch.detectors import config_for, frames


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of six images."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number, frame in enumerate(frames(count=6)):
        pixels = np.asarray(frame.to_bgr())[..., ::-1]
        Image.fromarray(np.ascontiguousarray(pixels)).save(folder / f"{number}.png")
    return folder


def linted(images: Path, **keys: Any) -> tuple[Path, LintReport]:
    config = config_for(images.parent, **keys)
    return config, Linter(source=images).lint([config])


def test_a_right_setup_has_no_finding(images: Path) -> None:
    _, report = linted(images)
    assert [f.code for f in report.findings if f.severity != "note"] == []


def test_a_model_that_is_given_no_objects_is_told(images: Path) -> None:
    _, report = linted(images, process_mode=2)
    assert "objects-from-nowhere" in [f.code for f in report.findings]


def test_an_error_is_told_with_the_parser_that_reads_the_frames_and_mended(images: Path) -> None:
    config, report = linted(images, parse_bbox_func_name=None)
    (error,) = [f for f in report.findings if f.severity == "error"]
    assert error.code == "parser-missing"
    assert error.data["set"] == {"parse-bbox-func-name": "HeadraceParseYoloV8"}
    (fix,) = fixes_for(report.findings)
    fix.write()
    again = Linter(source=images).lint([config])
    assert again.count("error") == again.count("warning") == 0


def test_a_warning_of_the_run_is_mended_where_the_frames_confirm_it(images: Path) -> None:
    config, report = linted(images, cluster_mode=4)
    assert [f.code for f in report.findings if f.severity == "warning"] == ["clustering-missing"]
    (fix,) = fixes_for(report.findings)
    fix.write()
    assert "cluster-mode=2" in config.read_text()
    assert not fixes_for(Linter(source=images).lint([config]).findings)


def test_without_frames_nothing_of_it_is_written(images: Path) -> None:
    config = config_for(images.parent, parse_bbox_func_name=None)
    report = Linter().lint([config])
    assert any("guesses, not tried" in f.finding.sentence for f in report.findings)
    assert not fixes_for(report.findings)


def test_the_command_takes_a_source_beside_the_config(images: Path) -> None:
    config = config_for(images.parent, cluster_mode=4)
    outcome = CliRunner().invoke(main, ["lint", str(config), str(images), "--fix", "--yes"])
    assert outcome.exit_code == 0, outcome.output
    assert "0 errors, 0 warnings" in outcome.output
    alone = CliRunner().invoke(main, ["lint", str(images)])
    assert alone.exit_code == 2


def test_one_source_only(images: Path, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    assert split_source([config, images]) == ([config], images)
    assert split_source([config, tmp_path]) == ([config, tmp_path], None)
    with pytest.raises(ConfigError, match="2 sources"):
        split_source([config, images, tmp_path / "a.mp4"])
