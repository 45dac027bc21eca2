"""The HTML report."""

from __future__ import annotations

from math import nan

import pytest

from headrace.diagnose.compare.chain import ChainStage
from headrace.diagnose.compare.stage_drift import StageTime
from headrace.errors import MediaError


def test_a_report_has_stages_images_and_reasons(planted):
    found = planted(filter_out_class_ids=(0, 1))
    found.a = "<script>alert(1)</script>"
    page = found.to_html()
    assert found.verdict in page
    assert "<script>" not in page
    assert page.count('<svg class="shot"') == len(found.worst) > 0
    assert page.count('class="a alone"') == sum(len(f.pairs.only_a) for f in found.worst) > 0
    assert "Boxes that B lacks" in page
    assert "<td>filter-out-class-ids</td>" in page
    assert "data:image/webp;base64," in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_report_of_equal_models_has_no_images(planted):
    page = planted().to_html()
    assert 'class="verdict good"' in page
    assert "Frames that differ most" not in page


def test_a_report_that_cannot_be_written_is_refused(planted, tmp_path):
    with pytest.raises(MediaError, match="cannot be written"):
        planted().write_html(tmp_path / "no" / "report.html")


def test_a_stage_that_one_side_never_ran_has_no_figures_there():
    assert StageTime(ChainStage.PARSER, 0.25, 0.5).row == ("parser", "0.250", "0.500", "2.00")
    assert StageTime(ChainStage.PARSER, 0.25, nan).row == ("parser", "0.250", "", "")
