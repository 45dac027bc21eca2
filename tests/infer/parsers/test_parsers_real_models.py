"""Real networks on real photographs: the built-in heads find what is on them."""

from __future__ import annotations

import cv2
import numpy as np
import onnxruntime as ort
import pytest

from headrace.infer.parsers import suggest
from headrace.meta import Layer, NetworkInfo

pytestmark = pytest.mark.data
PERSON, BUS, FRISBEE = 0, 5, 29


def outputs(model, blob):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    values = session.run(names, {session.get_inputs()[0].name: blob})
    return {n: Layer(n, v[0]) for n, v in zip(names, values, strict=True)}


def suppressed(found, limit=0.5):
    """Plain class-wise suppression with OpenCV."""
    kept = cv2.dnn.NMSBoxesBatched(
        found.boxes.tolist(), found.scores.tolist(), found.class_ids.tolist(), 0.0, limit
    )
    return found.select(np.array(kept, dtype=int).ravel())


@pytest.fixture(scope="module")
def yolox(data_dir, parse):
    def detect(name):
        image = cv2.imread(str(data_dir / "images" / name))
        scale = min(416 / image.shape[1], 416 / image.shape[0])
        small = cv2.resize(image, None, fx=scale, fy=scale)
        canvas = np.full((416, 416, 3), 114, np.float32)
        canvas[: small.shape[0], : small.shape[1]] = small
        layers = outputs(
            data_dir / "models" / "yolox_nano.onnx",
            np.ascontiguousarray(canvas.transpose(2, 0, 1))[None],
        )
        network = NetworkInfo(416, 416, 3)
        assert suggest(layers, network, 80)[0] == "HeadraceParseYoloX"
        found = parse(
            "HeadraceParseYoloX", {n: x.data for n, x in layers.items()}, [0.4] * 80, (416, 416)
        )
        return suppressed(found), scale

    return detect


def overlap(a, b):
    low = np.maximum(a[:2], b[:2])
    size = np.maximum(np.minimum(a[:2] + a[2:], b[:2] + b[2:]) - low, 0)
    return size.prod() / (a[2:].prod() + b[2:].prod() - size.prod())


def test_yolox_finds_the_bus_and_the_people(yolox):
    found, scale = yolox("bus.jpg")
    boxes = found.boxes / scale
    buses, people = boxes[found.class_ids == BUS], boxes[found.class_ids == PERSON]
    assert len(buses) == 1
    assert len(people) >= 3
    # read off the photograph by eye
    assert overlap(buses[0], np.array([10, 230, 790, 520])) > 0.8
    for person in ([50, 400, 195, 500], [222, 405, 122, 450], [670, 390, 140, 490]):
        assert max(overlap(p, np.array(person)) for p in people) > 0.7


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("street_0.jpg", {PERSON: 3}),
        ("street_1.jpg", {BUS: 1}),
        ("street_2.jpg", {PERSON: 3}),
        ("street_3.jpg", {PERSON: 4, FRISBEE: 3}),
    ],
)
def test_yolox_finds_what_is_on_each_photograph(yolox, name, least):
    found, _ = yolox(name)
    for k, count in least.items():
        assert (found.class_ids == k).sum() >= count
    assert (found.scores > 0.4).all()


@pytest.mark.parametrize(
    ("name", "centres"),
    [
        ("bus.jpg", [(134, 440), (286, 451)]),
        ("street_1.jpg", []),
        ("street_3.jpg", [(102, 92), (222, 154), (252, 154), (342, 160)]),
    ],
)
def test_rfb_finds_the_faces(data_dir, parse, name, centres):
    image = cv2.imread(str(data_dir / "images" / name))
    blob = cv2.dnn.blobFromImage(image, 1 / 128, (320, 240), (127, 127, 127), swapRB=True)
    layers = outputs(data_dir / "models" / "version-RFB-320.onnx", blob)
    assert suggest(layers)[0] == "HeadraceParseSSDCorners"
    tensors = {n: x.data for n, x in layers.items()}
    found = suppressed(parse("HeadraceParseSSDCorners", tensors, [0.7], (320, 240)), 0.3)
    boxes = found.boxes * np.array([image.shape[1] / 320, image.shape[0] / 240] * 2)
    got = sorted((boxes[:, :2] + boxes[:, 2:] / 2).tolist())
    assert len(got) == len(centres)
    if centres:  # read off the photographs by eye
        np.testing.assert_allclose(got, centres, atol=8)
