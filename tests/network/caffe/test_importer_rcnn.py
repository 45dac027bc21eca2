"""RPROI in a small Faster R-CNN: regions, and heads that run on each of them."""

import numpy as np
import pytest

from headrace.engine import BuildOptions, build
from headrace.errors import ModelError
from tests.network.caffe.models import caffemodel, layer, network_of

RULES = """region_proposal_param { feature_stride: 16 prenms_top: 50 nms_max_out: 6
    anchor_ratio_count: 2 anchor_scale_count: 1 iou_threshold: 0.6 min_box_size: 4
    anchor_ratio: 0.5 anchor_ratio: 2 anchor_scale: 1 }
    roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: 0.0625 }"""


def text(rules=RULES):
    conv = "convolution_param {{ num_output: {} kernel_size: 1 }}"
    net = 'name: "t"\ninput: "data"\ninput_shape { dim: 1 dim: 3 dim: 64 dim: 80 }\n'
    net += 'input: "im_info"\ninput_shape { dim: 1 dim: 1 dim: 1 dim: 3 }\n'
    net += layer("Pooling", "pooling_param { pool: AVE kernel_size: 16 stride: 16 }", top="small",
                 name="small")  # fmt: skip
    for name, count in (("features", 5), ("deltas", 8), ("logits", 4)):
        net += layer("Convolution", conv.format(count), bottom="small", top=name, name=name)
    net += layer("Reshape", "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } }",
                 bottom="logits", top="pair", name="pair")  # fmt: skip
    net += layer("Softmax", bottom="pair", top="pair_s", name="pair_s")
    net += layer("Reshape", "reshape_param { shape { dim: 0 dim: 4 dim: -1 dim: 0 } }",
                 bottom="pair_s", top="scores", name="scores")  # fmt: skip
    net += layer("RPROI", rules, bottom="scores deltas features im_info", top="rois pool",
                 name="rp")  # fmt: skip
    for name, count in (("cls", 3), ("bbox_pred", 12)):
        net += layer("InnerProduct", f"inner_product_param {{ num_output: {count} }}",
                     bottom="pool", top=name, name=name)  # fmt: skip
    return net + layer("Softmax", bottom="cls", top="cls_prob", name="cls_prob")


def weights():
    rng = np.random.default_rng(1)
    shapes = {"features": (5, 3, 1, 1), "deltas": (8, 3, 1, 1), "logits": (4, 3, 1, 1),
              "cls": (3, 20), "bbox_pred": (12, 20)}  # fmt: skip
    return caffemodel({n: [rng.normal(size=s), rng.normal(size=s[0]) * 0.1]
                       for n, s in shapes.items()})  # fmt: skip


def test_regions_and_what_is_computed_of_each():
    from tests.plugins.standard.driving import run

    outputs = ["rois", "cls_prob", "bbox_pred"]
    network = network_of(text(), weights(), outputs)
    network.path = None
    x = np.random.default_rng(0).normal(size=(2, 3, 64, 80)).astype(np.float32)
    info = np.array([[64, 80, 1], [60, 70, 1]], np.float32).reshape(2, 1, 1, 3)
    with build(network, BuildOptions(max_batch=2)).open_session() as session:
        found = session.run({"data": x, "im_info": info})
    assert {n: a.shape for n, a in found.items()} == {
        "rois": (2, 1, 6, 4), "cls_prob": (2, 6, 3), "bbox_pred": (2, 6, 12),
    }  # fmt: skip
    np.testing.assert_allclose(found["cls_prob"].sum(axis=2), 1, rtol=1e-5)
    before = ["scores", "deltas", "features"]
    network = network_of(text(), weights(), before)
    network.path = None
    with build(network, BuildOptions(max_batch=2)).open_session() as session:
        parts = session.run({"data": x})
    fields = {
        "poolingH": 2, "poolingW": 2, "featureStride": 16, "preNmsTop": 50, "nmsMaxOut": 6,
        "anchorsRatioCount": 2, "anchorsScaleCount": 1, "iouThreshold": 0.6, "minBoxSize": 4.0,
        "spatialScale": 0.0625, "anchorsRatios": [0.5, 2.0], "anchorsScales": [1.0],
    }  # fmt: skip
    rois, pooled = run("RPROI_TRT", *(parts[n] for n in before), info, **fields)
    np.testing.assert_allclose(found["rois"], rois, rtol=1e-4, atol=1e-3)
    rng = np.random.default_rng(1)
    for shape in ((5, 3), 5, (8, 3), 8, (4, 3), 4, (3, 20), 3):
        rng.normal(size=shape)
    weight, bias = rng.normal(size=(12, 20)), rng.normal(size=12) * 0.1
    wanted = pooled.reshape(2, 6, 20) @ weight.T + bias
    np.testing.assert_allclose(found["bbox_pred"], wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("anchor_ratio_count: 2", "anchor_ratio_count: 3"),
        ("nms_max_out: 6", "nms_max_out: 0"),
        ("anchor_scale: 1", "anchor_scale: 1 anchor_scale: 2"),
        ("anchor_scale_count: 1", "anchor_scale_count: 2 anchor_scale: 2"),
        ("pooled_h: 2", ""),
    ],
)
def test_impossible_proposals_are_refused(old, new):
    with pytest.raises(ModelError, match="RPROI"):
        network_of(text(RULES.replace(old, new)), weights())
