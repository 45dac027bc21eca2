"""The report as a page: complete, with its images inside, and nothing of names taken as HTML."""

import re

import pytest

from headrace import evaluate, load_dataset
from headrace.errors import MediaError
from tests.diagnose.evaluate.conftest import BLUE, RED
from tests.diagnose.evaluate.datasets.images import image, mask


def written(report, tmp_path):
    text = report.write_html(tmp_path / "report.html").read_text()
    outside = re.findall(r'(?:href|src)="(?!data:)[^"]*"', text)
    assert outside == []
    assert "url(" not in text
    assert "<script" not in text
    return text


def test_boxes_curves_and_several_configs(mean_config, boxes, tmp_path):
    dataset = load_dataset(
        boxes(categories=[{"id": 1, "name": "<b>Thing</b>"}]), images=tmp_path / "images"
    )
    report = evaluate([mean_config(), mean_config()], dataset, class_map={"thing": "<b>thing</b>"})
    text = written(report, tmp_path)
    assert "<b>Thing" not in text
    assert "&lt;b&gt;Thing&lt;/b&gt;" in text
    assert text.count('<figure class="chart">') == 3  # the mean of both, and of each its classes
    assert text.count('<figure class="shot">') == 4
    assert text.count('<rect class="missed"') == 2
    assert text.count('<rect class="false"') == 4
    assert text.count("data:image/webp") == 4
    assert "1 lost, 1 false" in text
    assert "0.500 (+0.000)" in text


def test_many_classes_have_charts_of_six_lines_and_no_matrix(mean_config, boxes, tmp_path):
    names = [{"id": i, "name": f"n{i}"} for i in range(1, 31)]
    rows = [
        {"image_id": 1, "category_id": i, "bbox": [0, 0, 9, 9], "area": 81} for i in range(1, 31)
    ]
    dataset = load_dataset(boxes(categories=names, annotations=rows), images=tmp_path / "images")
    cfg = mean_config(num_detected_classes=30, labelfile_path=None)
    text = written(evaluate(cfg, dataset), tmp_path)
    assert text.count('<figure class="chart">') == 6
    assert "4 more charts" in text
    assert '<table class="matrix">' not in text


def test_wrong_answers_of_a_classifier(classifier, tmp_path):
    image(tmp_path / "kinds" / "red" / "a.png", color=BLUE)
    image(tmp_path / "kinds" / "blue" / "a.png", color=BLUE)
    report = evaluate(classifier, load_dataset(tmp_path / "kinds"))
    text = written(report, tmp_path)
    assert "red, taken for blue (0.78)" in text
    (tmp_path / "kinds" / "red" / "a.png").unlink()
    with pytest.raises(MediaError, match="cannot be read"):
        report.write_html(tmp_path / "again.html")


def test_maps_beside_their_truth(segmenter, tmp_path):
    image(tmp_path / "images" / "a.png", (8, 4), RED)
    mask(tmp_path / "masks" / "a.png", [[1] * 4 + [255] * 4] * 4)
    dataset = load_dataset(tmp_path / "masks", images=tmp_path / "images")
    text = written(evaluate(segmenter, dataset), tmp_path)
    assert "0.0 % of the pixels are right" in text
    assert text.count("data:image/webp") == 2


def test_a_report_that_cannot_be_written(mean_config, boxes, tmp_path):
    report = evaluate(mean_config(), load_dataset(boxes(), images=tmp_path / "images"))
    with pytest.raises(MediaError, match="the report cannot be written"):
        report.write_html(tmp_path / "gone" / "report.html")
    assert "<table" in report._repr_html_()
    assert "config.txt mAP50 0.500" in repr(report)
