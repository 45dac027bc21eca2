"""PriorBox, DetectionOutput, and a small SSD made of them, against slow references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ModelError
from tests.network.caffe import slow
from tests.network.caffe.models import caffemodel, layer, network_of, run, text_of
from tests.profiles import examples


def prior_text(parameters, shape=(1, 3, 32, 48)):
    text = layer("Pooling", "pooling_param { kernel_size: 8 stride: 8 }", top="f", name="p")
    text += layer("PriorBox", f"prior_box_param {{ {parameters} }}", bottom="f data", top="priors")
    return text_of(text, shape)


def priors(parameters):
    network = network_of(prior_text(parameters), outputs=["priors"])
    (node,) = network.model.graph
    return node.inputs[0].const_value.numpy()


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("min_size: 10", {}),
        ("min_size: 10 max_size: 20 aspect_ratio: 2 aspect_ratio: 3", {"largest": [20]}),
        ("min_size: 10 min_size: 14 max_size: 20 max_size: 30 aspect_ratio: 2 flip: false",
         {"least": [10, 14], "largest": [20, 30], "ratios": [2], "flip": False}),
        ("min_size: 30 aspect_ratio: 2 aspect_ratio: 0.5 clip: true", {"least": [30],
         "ratios": [2, 0.5], "clip": True}),
        ("min_size: 10 step: 7 offset: 0.25", {"step": (7, 7), "offset": 0.25}),
        ("min_size: 10 step_h: 5 step_w: 9", {"step": (5, 9)}),
        ("min_size: 10 img_h: 64 img_w: 96", {"image": (64, 96)}),
    ],
)  # fmt: skip
def test_prior_boxes(text, more):
    settings = {
        "image": (32, 48),
        "least": [10],
        "largest": [],
        "flip": True,
        "clip": False,
        "step": None,
        "offset": 0.5,
        "ratios": [2, 3] if "ratio: 3" in text else [],
        **more,
    }
    found = priors(f"{text} variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.3")
    wanted = slow.prior_boxes(4, 6, **settings)
    assert found.shape == (1, 2, wanted.size)
    np.testing.assert_allclose(found[0, 0], wanted.ravel(), atol=1e-6)
    np.testing.assert_allclose(found[0, 1].reshape(-1, 4), [[0.1, 0.1, 0.2, 0.3]] * len(wanted))


def test_one_variance_serves_all_coordinates():
    assert set(priors("min_size: 10 variance: 0.25")[0, 1]) == {0.25}
    assert set(priors("min_size: 10")[0, 1]) == {np.float32(0.1)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "min_size: 10 max_size: 9",
        "min_size: 10 variance: -1",
        "min_size: 10 aspect_ratio: 0",
        "min_size: 10 step: 0",
    ],
)
def test_impossible_priors_are_refused(text):
    with pytest.raises(ModelError, match="PriorBox"):
        priors(text)


def detect(parameters, location, confidence, count, *, tops="out"):
    """DetectionOutput alone, priors of a 4x6 grid; location and confidence are the input."""
    width = location.shape[1]
    text = f"""input: "both" input_shape {{ dim: 1 dim: {width + confidence.shape[1]} }}
    layer {{ name: "cut" type: "Slice" bottom: "both" top: "l" top: "c"
             slice_param {{ slice_point: {width} }} }}
    layer {{ name: "shape" type: "Slice" bottom: "both" top: "one" top: "rest"
             slice_param {{ slice_point: 1 }} }}
    layer {{ name: "r" type: "Reshape" bottom: "one" top: "pixel"
             reshape_param {{ shape {{ dim: 0 dim: 1 dim: 1 dim: 1 }} }} }}
    layer {{ name: "t1" type: "Tile" bottom: "pixel" top: "line"
             tile_param {{ axis: 2 tiles: 4 }} }}
    layer {{ name: "t2" type: "Tile" bottom: "line" top: "grid"
             tile_param {{ axis: 3 tiles: 6 }} }}
    layer {{ name: "t3" type: "Tile" bottom: "grid" top: "tall"
             tile_param {{ axis: 2 tiles: 8 }} }}
    layer {{ name: "t4" type: "Tile" bottom: "tall" top: "image"
             tile_param {{ axis: 3 tiles: 8 }} }}
    layer {{ name: "p" type: "PriorBox" bottom: "grid" bottom: "image" top: "priors"
             prior_box_param {{ {PRIORS} }} }}
    """
    text += layer("DetectionOutput", f"detection_output_param {{ {parameters} }}",
                  bottom="l c priors", top=tops)  # fmt: skip
    assert count == 4 * 6 * 2
    return run(text, np.concatenate([location, confidence], axis=1), outputs=tops.split())


PRIORS = "min_size: 10 max_size: 18 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"
COUNT = 48
BOXES = slow.prior_boxes(4, 6, (32, 48), [10], [18], [], flip=True, clip=False, step=None,
                         offset=0.5)  # fmt: skip
VARIANCE = (0.1, 0.1, 0.2, 0.2)


def expected(location, confidence, *, classes, shared, code, in_target=False, **rules):
    sets = 1 if shared else classes
    boxes = np.array(
        [
            [slow.decode(BOXES[i], VARIANCE, location.reshape(COUNT, sets, 4)[i, s], code,
                         in_target=in_target) for i in range(COUNT)]
            for s in range(sets)
        ]
    )  # fmt: skip
    return slow.detections(boxes, confidence.reshape(COUNT, classes), **rules)


def compare(found, wanted, image):
    assert found.shape[0] == 1
    rows = found[0]
    filled = rows[rows[:, 1] >= 0]
    assert len(filled) == len(wanted)
    wanted = np.reshape(wanted, (-1, 6))
    wanted[:, 2:] = wanted[:, 2:].clip(0, 1)
    assert (rows[:, 0] == image).all()
    np.testing.assert_allclose(filled[:, 1:], wanted, atol=2e-5)
    empty = rows[len(wanted) :]
    assert (empty[:, 1] == -1).all()
    assert (empty[:, 2:] == 0).all()


@settings(max_examples=examples(25))
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 4),
    shared=st.booleans(),
    code=st.sampled_from(["CORNER", "CENTER_SIZE", "CORNER_SIZE"]),
    in_target=st.booleans(),
    background=st.integers(-1, 2),
    top_k=st.sampled_from([-1, 5, 20, 400]),
    keep=st.sampled_from([1, 7, 200, -1]),
    nms=st.sampled_from([0.1, 0.45]),
    threshold=st.sampled_from([None, 0.3, 0.6, 1.1]),
)
def test_detection_output(seed, classes, shared, code, in_target, background, top_k, keep, nms,
                          threshold):  # fmt: skip
    rng = np.random.default_rng(seed)
    sets = 1 if shared else classes
    location = rng.normal(size=(3, COUNT * sets * 4)).astype(np.float32) * (0.1 if in_target else 1)
    confidence = rng.random((3, COUNT * classes)).astype(np.float32)
    confidence += np.arange(confidence.size, dtype=np.float32).reshape(3, -1) * 1e-6  # no ties
    text = f"""num_classes: {classes} share_location: {str(shared).lower()} code_type: {code}
        variance_encoded_in_target: {str(in_target).lower()} background_label_id: {background}
        keep_top_k: {keep} nms_param {{ nms_threshold: {nms} top_k: {top_k} }}"""
    if threshold is not None:
        text += f" confidence_threshold: {threshold}"
    found = detect(text, location, confidence, COUNT)["out"]
    for i in range(3):
        wanted = expected(location[i], confidence[i], classes=classes, shared=shared, code=code,
                          in_target=in_target, background=background, threshold=threshold,
                          nms=nms, top_k=top_k, keep=keep)  # fmt: skip
        compare(found[i], wanted, i)


def test_second_top_counts_the_rows():
    location = np.zeros((2, COUNT * 4), np.float32)
    confidence = np.zeros((2, COUNT * 2), np.float32)
    confidence[0, 1] = confidence[0, 5] = confidence[1, 3] = 0.9
    text = "num_classes: 2 keep_top_k: 10 confidence_threshold: 0.5 code_type: CENTER_SIZE"
    found = detect(text, location, confidence, COUNT, tops="out count")
    assert found["count"].view(np.int32).ravel().tolist() == [2, 1]  # the bits of integers
    assert found["out"].shape == (2, 1, 10, 7)


def test_equal_scores_keep_the_first_boxes():
    location = np.zeros((1, COUNT * 4), np.float32)
    confidence = np.full((1, COUNT * 2), 0.5, np.float32)
    text = "num_classes: 2 nms_param { top_k: 3 nms_threshold: 0.99 } code_type: CENTER_SIZE"
    found = detect(text, location, confidence, COUNT)["out"][0, 0]
    np.testing.assert_allclose(found[:3, 3:], BOXES[:3].clip(0, 1), atol=1e-6)


@pytest.mark.parametrize("text", ["num_classes: 0", "num_classes: 3", "", "num_classes: 2 x: 1",
                                  "num_classes: 2 nms_param { eta: 0.5 }"])  # fmt: skip
def test_impossible_detection_is_refused(text):
    zeros = np.zeros((1, COUNT * 4), np.float32), np.zeros((1, COUNT * 2), np.float32)
    with pytest.raises(ModelError, match="DetectionOutput"):
        detect(text, *zeros, COUNT)


def ssd_text():
    """Two feature maps, heads with Permute, Flatten, Concat, Softmax: SSD in small."""
    conv = "convolution_param {{ num_output: {} kernel_size: 3 pad: 1 stride: {} }}"
    text = layer("Convolution", conv.format(8, 2), bottom="data", top="c1", name="c1")
    text += layer("ReLU", bottom="c1", top="c1", name="r1")
    text += layer("Pooling", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }", bottom="c1",
                  top="f1", name="p1")  # fmt: skip
    text += layer("Normalize", "norm_param { across_spatial: false channel_shared: false }",
                  bottom="f1", top="n1", name="norm")  # fmt: skip
    text += layer("Convolution", conv.format(8, 2), bottom="f1", top="f2", name="c2")
    for i, feature in ((1, "n1"), (2, "f2")):
        for head, outputs in (("loc", 4 * 4), ("conf", 4 * 3)):
            name = f"{head}{i}"
            text += layer("Convolution", conv.format(outputs, 1), bottom=feature, top=name,
                          name=name)  # fmt: skip
            text += layer("Permute", "permute_param { order: [0, 2, 3, 1] }", bottom=name,
                          top=f"{name}p", name=f"{name}p")  # fmt: skip
            text += layer("Flatten", "flatten_param { axis: 1 }", bottom=f"{name}p",
                          top=f"{name}f", name=f"{name}f")  # fmt: skip
        sizes = f"min_size: {8 * i} max_size: {14 * i} aspect_ratio: 2 {VARIANCES}"
        text += layer("PriorBox", f"prior_box_param {{ {sizes} }}", bottom=f"{feature} data",
                      top=f"prior{i}", name=f"prior{i}")  # fmt: skip
    text += layer("Concat", "concat_param { axis: 1 }", bottom="loc1f loc2f", top="loc", name="l")
    text += layer(
        "Concat", "concat_param { axis: 1 }", bottom="conf1f conf2f", top="conf", name="c"
    )
    text += layer("Concat", "concat_param { axis: 2 }", bottom="prior1 prior2", top="prior",
                  name="p")  # fmt: skip
    text += layer("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }", bottom="conf",
                  top="conf_r", name="cr")  # fmt: skip
    text += layer("Softmax", "softmax_param { axis: 2 }", bottom="conf_r", top="conf_s", name="cs")
    text += layer("Flatten", "flatten_param { axis: 1 }", bottom="conf_s", top="conf_f", name="cf")
    text += layer("DetectionOutput", f"detection_output_param {{ {RULES} }}",
                  bottom="loc conf_f prior", top="detection_out", name="detection_out")  # fmt: skip
    return text_of(text, (1, 3, 32, 48))


VARIANCES = "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"
RULES = """num_classes: 3 share_location: true background_label_id: 0 code_type: CENTER_SIZE
    keep_top_k: 20 confidence_threshold: 0.4 nms_param { nms_threshold: 0.45 top_k: 30 }"""


def ssd_weights():
    rng = np.random.default_rng(3)

    def conv(outputs, inputs):
        return [rng.normal(size=(outputs, inputs, 3, 3)) * 0.1, rng.normal(size=outputs) * 0.1]

    heads = {f"{h}{i}": conv(n, 8) for i in (1, 2) for h, n in (("loc", 16), ("conf", 12))}
    return {"c1": conv(8, 3), "c2": conv(8, 8), "norm": [rng.random(8) * 3], **heads}


def test_a_whole_ssd():
    x = np.random.default_rng(5).normal(size=(2, 3, 32, 48)).astype(np.float32)
    data = caffemodel(ssd_weights())
    found = run(ssd_text(), x, data)["detection_out"]
    parts = run(ssd_text(), x, data, outputs=["loc", "conf"])
    plain = {"flip": True, "clip": False, "step": None, "offset": 0.5}
    grids = [
        slow.prior_boxes(h, w, (32, 48), [8 * i], [14 * i], [2], **plain)
        for i, h, w in ((1, 8, 12), (2, 4, 6))
    ]
    boxes = np.concatenate(grids)
    assert found.shape == (2, 1, 20, 7)
    for i in range(2):
        scores = slow.softmax(parts["conf"][i].reshape(-1, 3).astype(np.float64), 1)
        offsets = parts["loc"][i].reshape(-1, 4)
        own = np.array([[slow.decode(b, VARIANCE, t, "CENTER_SIZE")
                         for b, t in zip(boxes, offsets, strict=True)]])  # fmt: skip
        wanted = slow.detections(own, scores, background=0, threshold=0.4, nms=0.45, top_k=30,
                                 keep=20)  # fmt: skip
        assert wanted
        compare(found[i], wanted, i)
