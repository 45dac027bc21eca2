"""Every standard plugin as a node of an ONNX model: built, saved, loaded and run by an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from headrace.engine import Plan
from headrace.engine.builder import BuildOptions, build
from headrace.network.onnx_file import network_from_onnx
from headrace.plugins.standard import standard_layers
from headrace.plugins.standard.layer import StandardLayer
from tests.plugins.standard import test_batched_nms as test_nms
from tests.plugins.standard import test_bert, test_pillars, test_priors, test_proposals
from tests.plugins.standard.driving import run
from tests.profiles import thinned

RANDOM = np.random.default_rng(0)


def f(*shape: int) -> Any:
    return RANDOM.normal(0, 1, shape).astype(np.float32)


def u(*shape: int) -> Any:
    return RANDOM.random(shape).astype(np.float32)


def rois(*shape: int) -> Any:
    start = u(*shape, 2) * 6
    return np.concatenate([start, start + u(*shape, 2) * 6], -1).astype(np.float32)


def i(values: Any) -> Any:
    return np.array(values, np.int32)


BOXES, SCORES = test_nms.scene()
NORMAL = {"epsilon": 0.01, "scales": [1.0, 2.0], "bias": [0.5, -0.5], "relu": 1, "alpha": 0.1}
PYRAMID = [f(2, 2, 64 // s, 96 // s) for s in (4, 8, 16, 32)]
MASK = {"num_classes": 3, "keep_topk": 5, "score_threshold": 0.3, "iou_threshold": 0.5}
DCN = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "group": 1, "deformable_group": 1}
LEVELS = [(16, 24), (8, 12), (4, 6), (2, 3), (1, 1)]

EXAMPLES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "EfficientNMS_TRT": ([BOXES, SCORES], test_nms.EFFICIENT),
    "EfficientNMS_ONNX_TRT": ([BOXES[:, :, 0], SCORES], test_nms.OLD_EFFICIENT),
    "EfficientNMS_Explicit_TF_TRT": ([BOXES, SCORES], test_nms.TF),
    "EfficientNMS_Implicit_TF_TRT": ([BOXES, SCORES], test_nms.TF),
    "BatchedNMSDynamic_TRT": ([BOXES, SCORES], test_nms.BATCHED),
    "BatchedNMS_TRT": ([BOXES, SCORES], test_nms.BATCHED),
    "NMSDynamic_TRT": ([f(2, 60, 1, 1), u(2, 45, 1, 1), test_nms.priors_of(15)], test_nms.SSD),
    "NMS_TRT": ([f(2, 60, 1, 1), u(2, 45, 1, 1), test_nms.priors_of(15)], test_nms.SSD),
    "PriorBox_TRT": ([f(2, 3, 4, 5), f(2, 3, 40, 50)], {"minSize": [9.0], "aspectRatios": [2.0]}),
    "GridAnchor_TRT": ([f(2, 1, 1, 1)], test_priors.GRID),
    "GridAnchorRect_TRT": (
        [f(2, 1, 1, 1)], {**test_priors.GRID, "featureMapShapes": [4, 4, 3, 3, 2, 1]},
    ),
    "LReLU_TRT": ([f(2, 3, 4)], {"negSlope": 0.1}),
    "Clip_TRT": ([f(2, 3, 4)], {"clipMin": -0.5, "clipMax": 0.5}),
    "Normalize_TRT": (
        [f(2, 3, 4, 5)],
        {"weights": [2.0], "acrossSpatial": 0, "channelShared": 1, "nbWeights": 1, "eps": 0.1},
    ),
    "InstanceNormalization_TRT": ([f(2, 2, 4, 5)], NORMAL),
    "GroupNormalizationPlugin": ([f(2, 4, 3, 3), f(4), f(4)], {"eps": 0.1, "num_groups": 2}),
    "Region_TRT": ([f(2, 16, 2, 3)], {"num": 2, "coords": 4, "classes": 3}),
    "ResizeNearest_TRT": ([f(2, 3, 4, 5)], {"scale": 1.5}),
    "FlattenConcat_TRT": ([f(2, 3, 4, 5), f(2, 1, 4, 5)], {"axis": 1, "ignoreBatch": 0}),
    "BatchTilePlugin_TRT": ([f(2, 1, 1, 1), f(1, 2, 3, 4)], {}),
    "SpecialSlice_TRT": ([f(2, 3, 6)], {}),
    "Reorg_TRT": ([f(2, 3, 4, 6)], {"stride": 2}),
    "CoordConvAC": ([f(2, 3, 4, 5)], {}),
    "ROIAlign_TRT": ([f(2, 3, 8, 9), rois(4), i([0, 1, 1, 0])], {"output_height": 2, "mode": 0}),
    "CropAndResize": ([f(2, 3, 8, 9), u(2, 4, 4, 1)], {"crop_width": 3, "crop_height": 2}),
    "CropAndResizeDynamic": ([f(2, 3, 8, 9), u(2, 4, 4, 1)], {"crop_width": 3, "crop_height": 2}),
    "PyramidROIAlign_TRT": (
        [rois(2, 5) * 8, *PYRAMID], {"pooled_size": 3, "image_size": [64, 96], "fpn_scale": 32},
    ),
    "MultilevelCropAndResize_TRT": (
        [rois(2, 5) * 8, *PYRAMID, f(2, 2, 1, 1)], {"pooled_size": 3, "image_size": [3, 64, 96]},
    ),
    "Proposal": ([u(2, 6, 4, 6), f(2, 24, 4, 6)], test_proposals.FASTER),
    "ProposalDynamic": ([u(2, 6, 4, 6), f(2, 24, 4, 6)], test_proposals.FASTER),
    "RPROI_TRT": (
        [u(2, 12, 4, 5), f(2, 24, 4, 5), f(2, 3, 4, 5),
         np.array([[64, 80, 1], [60, 70, 1]], np.float32).reshape(2, 1, 1, 3)],
        test_proposals.RPROI,
    ),
    "ProposalLayer_TRT": (
        [u(2, 1536, 2, 1), f(2, 1536, 4, 1)],
        {"prenms_topk": 50, "keep_topk": 9, "iou_threshold": 0.5, "image_size": [3, 64, 96]},
    ),
    "MultilevelProposeROI_TRT": (
        [x for h, w in LEVELS for x in (f(2, 3 * h * w, 4, 1), u(2, 3 * h * w, 1, 1))],
        {"prenms_topk": 50, "keep_topk": 9, "fg_threshold": 0.2, "iou_threshold": 0.5,
         "image_size": [3, 64, 96]},
    ),
    "GenerateDetection_TRT": (
        [f(2, 7, 12, 1, 1), u(2, 7, 3, 1, 1), rois(2, 7)], {**MASK, "image_size": [3, 64, 96]},
    ),
    "DetectionLayer_TRT": ([f(2, 7, 12, 1, 1), u(2, 7, 3, 1, 1), rois(2, 7) / 12], MASK),
    "MultiscaleDeformableAttnPlugin_TRT": (
        [f(2, 26, 2, 3), i([[4, 5], [2, 3]]), i([0, 20]), u(2, 4, 2, 2, 2, 2), u(2, 4, 2, 2, 2)],
        {},
    ),
    "ModulatedDeformConv2d": (
        [f(2, 4, 5, 6), f(2, 18, 5, 6), u(2, 9, 5, 6), f(3, 4, 3, 3), f(3)], DCN,
    ),
    "VoxelGeneratorPlugin": (
        [u(2, 60, 4) * 8, i([60, 30])],
        {"max_num_points_per_voxel": 3, "max_voxels": 12,
         "point_cloud_range": [0.0, 0.0, -2.0, 8.0, 6.0, 7.0], "voxel_feature_num": 10,
         "voxel_size": [2.0, 1.5, 9.0]},
    ),
    "PillarScatterPlugin": (
        [f(2, 5, 64), i([[[0, 0, k % 3, k] for k in range(5)]] * 2), i([5, 2])],
        {"dense_shape": [3, 5]},
    ),
    "DecodeBbox3DPlugin": ([f(2, 3, 4, 8), f(2, 3, 4, 28), f(2, 3, 4, 8)], test_pillars.HEAD),
    "TopkLastDim": ([f(2, 5, 3)], {"type_id": 0, "k": 2, "is_largest": 1, "axis": 1}),
    **test_bert.EXAMPLES,
}  # fmt: skip

BUILT_IN = {"Split", "ScatterND", "ScatterElements"}  # nodes of these names are ONNX's own

KINDS = [layer for layer in standard_layers() if layer.name not in BUILT_IN]


def example_of(layer: type[StandardLayer]) -> tuple[list[Any], dict[str, Any]]:
    """Inputs and fields for a plugin; later versions of one share those of the first."""
    versions = (vars(base).get("version") for base in layer.__mro__)
    keys = (f"{layer.name}:{version}" for version in versions)
    return next(
        (EXAMPLES[key] for key in keys if key in EXAMPLES), EXAMPLES.get(layer.name, ([], {}))
    )


def model_of(
    layer: type[StandardLayer], inputs: list[Any], fields: dict[str, Any], path: Path
) -> int:
    """A model of the node alone, behind an Identity; the number of its outputs."""
    names = [f"x{k}" for k in range(len(inputs))]
    count = layer_of(layer, fields).outputs
    outputs = [f"y{k}" for k in range(count)]
    version = {"plugin_version": layer.version}
    attributes = {k: v for k, v in fields.items() if not (isinstance(v, list) and not v)}
    nodes = [
        helper.make_node("Identity", ["x0"], ["first"]),
        helper.make_node(layer.name, ["first", *names[1:]], outputs, "it", **attributes, **version),
    ]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
    ]
    integers = layer.integer_outputs
    ends = [
        helper.make_tensor_value_info(n, 6 if k in integers else 1, None)
        for k, n in enumerate(outputs)
    ]
    graph = helper.make_graph(nodes, "g", infos, ends)
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return count


def layer_of(layer: type[StandardLayer], fields: dict[str, Any]) -> StandardLayer:
    from headrace.plugins.standard.fields import Given
    from tests.plugins.standard.driving import fields as collection

    return layer(Given.read(layer.fields, collection(fields), "it"), "it")


@pytest.mark.parametrize("layer", thinned(KINDS, 3), ids=lambda k: f"{k.name}-{k.version}")
def test_a_node_of_a_model(layer: type[StandardLayer], tmp_path: Path) -> None:
    inputs, fields = example_of(layer)
    count = model_of(layer, inputs, fields, tmp_path / "m.onnx")
    plan = build(network_from_onnx(tmp_path / "m.onnx"), BuildOptions(batched=False))
    vanished = not plan.header.plugins
    if layer.name not in ("ROIAlign_TRT", "ResizeNearest_TRT"):  # those with exceptions
        assert vanished == (layer.decompose is not StandardLayer.decompose)
    plan.save(tmp_path / "m.engine")
    feeds = {f"x{k}": x for k, x in enumerate(inputs)}
    with Plan.load(tmp_path / "m.engine").open_session() as session:
        found = session.run(feeds)
    if layer.name in ("NMS_TRT", "BatchTilePlugin_TRT"):  # one input has a batch of 1
        wanted = layer_of(layer, fields).compute(inputs)
    else:
        wanted = run(layer.name, *inputs, version=layer.version, **fields)
    for k in range(count):
        got, want = found[f"y{k}"], wanted[k]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_every_plugin_has_an_example() -> None:
    assert {layer.name for layer in KINDS} == {key.partition(":")[0] for key in EXAMPLES}
    assert all(example_of(layer)[0] for layer in KINDS)
