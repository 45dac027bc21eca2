"""The picture has a panel for each set-up, with the boxes of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace.diagnose.repair import repair
from headrace.diagnose.repair.picture import write_picture
from headrace.errors import MediaError
from tests.diagnose.repair.conftest import Write
from tests.mistakes.setups import YOLOV8


@pytest.mark.slow
def test_panels_differ_by_their_boxes(write: Write, tmp_path: Path) -> None:
    path = write(YOLOV8, {"model-color-format": 1})
    found = repair(path, str(path.parent / "images"), frames=4)
    picture = np.asarray(Image.open(write_picture(found, tmp_path / "three.png")).convert("RGB"))
    width = picture.shape[1] // (len(found.shown) + (found.start not in found.shown))
    first, last = picture[:312, 10:width], picture[:312, -width + 10 :]
    assert first.shape == last.shape
    assert (first != last).any(axis=2).mean() > 0.005
    with pytest.raises(MediaError):
        write_picture(found, tmp_path / "none" / "three.png")
