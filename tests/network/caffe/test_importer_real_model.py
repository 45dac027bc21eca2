"""The face detector that exists as Caffe and as ONNX: both must see the same in real images."""

import numpy as np
import pytest
from PIL import Image

from headrace.engine import BuildOptions, build
from headrace.network import network_from_onnx
from headrace.network.caffe.importer import network_from_caffe


def images(folder):
    for path in sorted(folder.glob("*.jpg")):
        image = Image.open(path).convert("RGB").resize((320, 240))
        yield ((np.asarray(image, np.float32) - 127) / 128).transpose(2, 0, 1)


def decoded(offsets, priors):
    """Corners from centre and size offsets, as the twin with post-processing gives them."""
    centre = priors[:, :2] + offsets[..., :2] * 0.1 * priors[:, 2:]
    size = priors[:, 2:] * np.exp(offsets[..., 2:] * 0.2)
    return np.concatenate([centre - size / 2, centre + size / 2], axis=-1)


def priors():
    found = []
    for step, sizes in ((8, (10, 16, 24)), (16, (32, 48)), (32, (64, 96)), (64, (128, 192, 256))):
        h, w = -(-240 // step), -(-320 // step)
        for j in range(h):
            for i in range(w):
                x, y = (i + 0.5) / w, (j + 0.5) / h
                found += [(x, y, s / 320, s / 240) for s in sizes]
    return np.clip(np.array(found), 0, 1)


@pytest.mark.slow
def test_caffe_equals_its_onnx_twins(data_dir):
    folder = data_dir / "models"
    caffe = network_from_caffe(folder / "RFB-320.prototxt", folder / "RFB-320.caffemodel")
    bare = network_from_onnx(folder / "version-RFB-320_without_postprocessing.onnx")
    whole = network_from_onnx(folder / "version-RFB-320.onnx")
    batch = np.stack(list(images(data_dir / "images")))
    assert len(batch) == 5
    found, twin, full = (
        build(n, BuildOptions(max_batch=8)).open_session().run({"input": batch})
        for n in (caffe, bare, whole)
    )
    assert found["scores"][..., 1].max() > 0.5
    for name, values in twin.items():
        np.testing.assert_allclose(found[name], values, atol=1e-4)
    np.testing.assert_allclose(found["scores"], full["scores"], atol=1e-4)
    np.testing.assert_allclose(decoded(found["boxes"], priors()), full["boxes"], atol=1e-4)
