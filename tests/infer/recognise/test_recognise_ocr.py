"""The three bare models of the package rapidocr-onnxruntime read a page, without a config."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import headrace

NAMES = ("ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "ch_PP-OCRv4_rec_infer")


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """Copies, since engines are saved beside them."""
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or spec.origin is None:
        pytest.skip("rapidocr-onnxruntime is not installed")
    folder = Path(spec.origin).parent / "models"
    return [Path(shutil.copy(folder / f"{name}.onnx", tmp_path)) for name in NAMES]


@pytest.mark.slow
def test_a_page_is_read(models: list[Path]) -> None:
    page = Image.new("RGB", (960, 400), "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(48)
    pen.text((60, 60), "Bare models", fill="black", font=font)
    pen.text((300, 220), "read this", fill="navy", font=font)
    frames = []
    with headrace.open_pipeline(
        *models, sources=headrace.ArraySource([np.asarray(page)])
    ) as pipeline:
        frames += [meta for _, meta in pipeline]
    (meta,) = frames
    found = sorted(meta.objects, key=lambda thing: thing.rect[1])
    read = [
        label.label
        for thing in found
        for result in thing.classifiers
        if result.classifier_type == "text"
        for label in result.labels
    ]
    assert [text.replace(" ", "") for text in read] == ["Baremodels", "readthis"]
    for thing, (left, top) in zip(found, ((60, 60), (300, 220)), strict=True):
        assert thing.label == "text"
        assert thing.rect[0] == pytest.approx(left, abs=16)
        assert thing.rect[1] == pytest.approx(top, abs=24)
    turned = [
        r.labels[0].label for t in found for r in t.classifiers if r.classifier_type == "class"
    ]
    assert turned == ["0", "0"]
