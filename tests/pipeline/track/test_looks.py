"""ReID models: the vectors are the runtime's own, and faults of a model are errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from headrace.errors import ConfigError, HeadraceError
from headrace.media import Frame, PixelFormat
from headrace.pipeline.track.looks import LookModel
from tests.pipeline.track.look_model import write_model

IMAGE = np.random.default_rng(0).integers(0, 256, (96, 80, 3), dtype=np.uint8)
FRAME = Frame.from_array(IMAGE, PixelFormat.RGB)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("bgr", [False, True])
def test_vectors_are_those_of_onnxruntime(tmp_path: Path, last: bool, bgr: bool) -> None:
    path = write_model(tmp_path / "looks.onnx", last=last)
    offsets = (10.0, 20.0, 30.0)
    model = LookModel(
        path, batch=2, channels_last=last, bgr=bgr, scale=0.5, offsets=offsets, normalize=False
    )
    # crops of the model's own size need no scaling
    rects = np.array([[3, 5, 16, 32], [40, 10, 16, 32], [60, 60, 16, 32]], np.float32)
    looks = model(FRAME, rects)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for (x, y, w, h), look in zip(rects.astype(int), looks, strict=True):
        crop = IMAGE[y : y + h, x : x + w, :: -1 if bgr else 1].astype(np.float32)
        tensor = 0.5 * (crop - np.array(offsets, np.float32))
        if not last:
            tensor = tensor.transpose(2, 0, 1)
        (expected,) = session.run(None, {"image": tensor[None]})
        assert look == pytest.approx(expected[0], abs=1e-5, rel=1e-5)


def test_vectors_have_length_one_where_there_is_something_to_see(tmp_path: Path) -> None:
    model = LookModel(write_model(tmp_path / "looks.onnx"))
    looks = model(FRAME, np.array([[0, 0, 40, 60], [500, 500, 10, 10]], np.float32))
    assert np.linalg.norm(looks, axis=1).tolist() == pytest.approx([1, 0])
    assert model(FRAME, np.empty((0, 4), np.float32)).shape[0] == 0


def test_a_model_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = write_model(tmp_path / "looks.onnx")
    with pytest.raises(ConfigError, match=r"inferDims is \[3, 64, 16\], the input of the model"):
        LookModel(path, shape=[3, 64, 16])
    with pytest.raises(ConfigError, match="reidFeatureSize is 128, the vectors have 24"):
        LookModel(path, size=128)(FRAME, np.array([[0, 0, 9, 9]], np.float32))
    with pytest.raises(HeadraceError, match=r"none\.onnx"):
        LookModel(tmp_path / "none.onnx")
