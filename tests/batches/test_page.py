"""The report of a batch: figures that agree with its tables, and a page that keeps text as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.batches.page import batch_page
from headrace.batches.summary import summarised
from headrace.cli import main
from headrace.errors import HeadraceError
from tests.batches.test_running import here, run
from tests.media.sources.videos import X264, write_video

__all__ = ["here"]


@pytest.fixture
def out(here: None, mean_config: Callable[..., Path], tmp_path: Path) -> Path:
    videos = tmp_path / "videos"
    videos.mkdir()
    write_video(videos / "<b>video.mp4", 30, options=X264)
    write_video(videos / "other.mp4", 10, options=X264, seed=1)
    (videos / "<i>broken.mp4").write_bytes(b"no video")
    done = run(mean_config(), videos, "-o", tmp_path / "out", "--threads", 2, "-q", "--split", 0.5)
    assert done.exit_code == 1
    return tmp_path / "out"


def test_figures_are_those_of_the_tables(out: Path) -> None:
    summary = summarised(out)
    assert summary.units == {"done": 4, "failed": 1}
    assert (summary.inputs, summary.frames, summary.objects) == (3, 40, 40)
    assert summary.classes == [("thing", 40)]
    (line,) = summary.over_time
    assert line.counts.sum() == 40
    assert summary.longest_s == pytest.approx(29 / 25)
    assert [Path(r.input).name for r in summary.failed] == ["<i>broken.mp4"]
    assert len(summary.slowest) == 4
    done = CliRunner().invoke(main, ["batch", "report", str(out), "--json"])
    assert json.loads(done.stdout)["classes"] == {"thing": 40}


def test_the_page_has_everything_and_no_tags_of_others(out: Path) -> None:
    done = CliRunner().invoke(main, ["batch", "report", str(out)])
    assert done.exit_code == 0, done.output
    page = (out / "report.html").read_text()
    assert "&lt;b&gt;video.mp4" in page
    assert "<b>video" not in page
    assert "<i>broken" not in page
    assert page.count('<svg class="shot"') == 2
    assert "<polyline" in page
    assert page.count(">thing</text>") == 2
    assert ">100.0 %<" in page
    assert "http" not in page.replace("http-equiv", "")
    assert run("-o", out, "--verify").exit_code == 0


def test_inputs_that_are_gone_have_no_images(out: Path) -> None:
    for video in (out.parent / "videos").iterdir():
        video.unlink()
    assert '<svg class="shot"' not in batch_page(summarised(out))


def test_a_folder_without_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="there is no batch in this folder"):
        summarised(tmp_path)
