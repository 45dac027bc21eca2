"""Names, suggestions and errors."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ParserError
from headrace.infer.parsers import WELL_KNOWN, builtin_parser, suggest
from headrace.infer.parsers.catalogue import HEADS
from headrace.meta import DetectionParams, Layer, NetworkInfo
from headrace.network.tensor_spec import TensorSpec

CATALOGUE = [
    "NvDsInferParseCustomResnet",
    "NvDsInferParseCustomTfSSD",
    "NvDsInferParseCustomNMSTLT",
    "NvDsInferParseCustomSSDTLT",
    "NvDsInferParseCustomYOLOV3TLT",
    "NvDsInferParseCustomBatchedNMSTLT",
    "NvDsInferParseYoloV5CustomBatchedNMSTLT",
    "NvDsInferParseCustomBatchedYoloV5NMSTLT",
    "NvDsInferParseCustomEfficientDetTAO",
    "NvDsInferParseCustomDDETRTAO",
    "NvDsInferParseCustomRTDETRTAO",
    "NvDsInferParseCustomYoloV11OBB",
    "NvDsInferParseCustomFrcnnTLT",
    "NvDsInferParseCustomFasterRCNN",
    "NvDsInferParseCustomSSD",
    "NvDsInferParseCustomYoloV3",
    "NvDsInferParseCustomYoloV3Tiny",
    "NvDsInferParseCustomYoloV2",
    "NvDsInferParseCustomYoloV2Tiny",
    "NvDsInferParseCustomYoloV4",
    "NvDsInferParseCustomYoloV7",
    "NvDsInferParseCustomYoloV8",
    "NvDsInferParseYoloV11",
    "NvDsInferParseCustomYoloOriginal",
    "NvDsInferParseYolo",
    "NvDsInferParseYoloCuda",
    "NvDsInferParseCustomYoloV7_cuda",
    "NvDsInferParseCustomYoloV8_cuda",
    "NvDsInferParseCustomYoloV11_cuda",
    "NvDsInferParseCustomYoloV3_cuda",
]


def outputs(dtype=np.float32, **shapes):
    return {name: Layer(name, np.zeros(shape, dtype)) for name, shape in shapes.items()}


def test_every_name_of_the_catalogue_is_there_once():
    assert set(CATALOGUE) <= set(WELL_KNOWN)
    assert all(builtin_parser(name) is WELL_KNOWN[name] for name in WELL_KNOWN)
    assert len(HEADS) == len(WELL_KNOWN)
    assert {n for n in WELL_KNOWN if n not in CATALOGUE} == {
        n for n in WELL_KNOWN if n.startswith("HeadraceParse")
    }


COCO = NetworkInfo(640, 640, 3)


@pytest.mark.parametrize(
    ("layers", "network", "first"),
    [
        (outputs(output0=(84, 8400)), None, "HeadraceParseYoloV8"),
        (outputs(output0=(8400, 84)), COCO, "HeadraceParseYoloV8"),
        (outputs(output0=(5, 8400)), COCO, "HeadraceParseYoloV8"),
        (outputs(output=(3549, 85)), NetworkInfo(416, 416, 3), "HeadraceParseYoloX"),
        (outputs(output=(25200, 85)), COCO, "HeadraceParseYoloV5"),
        (outputs(output=(8400, 6)), COCO, "NvDsInferParseYolo"),
        (outputs(output0=(300, 6)), COCO, "NvDsInferParseYolo"),
        (outputs(output0=(300, 84)), COCO, "HeadraceParseRTDETR"),
        (outputs(scores=(4420, 2), boxes=(4420, 4)), None, "HeadraceParseSSDCorners"),
        (
            outputs(num_dets=(1,), det_boxes=(100, 4), det_scores=(100,), det_classes=(100,)),
            None,
            "HeadraceParseEfficientNMS",
        ),
        (outputs(a=(1,), b=(200, 4), c=(200,), d=(200,)), None, "HeadraceParseEfficientNMS"),
        (
            outputs(num_detections=(1,), nmsed_boxes=(9, 4), nmsed_scores=(9,), nmsed_classes=(9,)),
            None,
            "NvDsInferParseCustomYoloV4",
        ),
        (outputs(a=(1, 200, 7), b=(1, 1)), None, "NvDsInferParseCustomNMSTLT"),
        (outputs(pred_logits=(300, 91), pred_boxes=(300, 4)), None, "NvDsInferParseCustomDDETRTAO"),
        (outputs(a=(300, 91), b=(300, 4)), None, "HeadraceParseDetr"),
        (
            outputs(a=(3, 80, 80, 85), b=(3, 40, 40, 85), c=(3, 20, 20, 85)),
            COCO,
            "HeadraceParseYoloV5Raw",
        ),
        (outputs(np.float16, output0=(84, 8400)), None, "HeadraceParseYoloV8"),
    ],
)
def test_the_likely_head_is_suggested_first(layers, network, first):
    assert suggest(layers, network)[0] == first


def test_the_number_of_classes_breaks_a_tie():
    layers = outputs(output=(8400, 85))
    assert suggest(layers, COCO, 81)[0] == "HeadraceParseYoloV8"
    assert suggest(layers, COCO, 80)[0] == "HeadraceParseYoloX"


@pytest.mark.parametrize(
    ("shapes", "network", "classes"),
    [
        ([(1, 1000)], None, 80),  # classes of an image
        ([(1000, 1, 1)], None, 80),
        ([(1, 480, 640)], NetworkInfo(640, 480, 3), 80),  # depth
        ([(480, 640)], None, 2),  # a class map
        ([(150, 120, 160)], None, 150),
        ([(60, 480, 640)], None, 60),
        ([(197, 768)], None, 1),  # features
        ([(68, 2)], None, 1),  # landmarks
        ([(468, 3)], None, 1),
        ([(40, 6625)], None, 1),  # characters
        ([(4, 10), (4, 4)], None, 1),
        ([(85, 13, 13)], NetworkInfo(416, 416, 3), 80),  # YOLOv2 has 5 * 85
        ([(125, 13, 13)], NetworkInfo(416, 416, 3), 80),
    ],
)
def test_nothing_is_suggested_for_outputs_that_are_no_boxes(shapes, network, classes):
    layers = outputs(**{f"o{i}": shape for i, shape in enumerate(shapes)})
    assert suggest(layers, network, classes) == []


@pytest.mark.parametrize(
    ("shape", "classes", "names"),
    [
        ((8400, 85), 80, ["HeadraceParseYoloX", "HeadraceParseYoloV5"]),  # not 81 classes
        ((84, 8400), 81, ["HeadraceParseYoloV8", "NvDsInferParseYoloV11"]),  # the config is wrong
        (
            (20, 21504),
            15,
            # the last as fifteen classes, the third as faces with five points
            [
                "HeadraceParseYoloV8",
                "NvDsInferParseYoloV11",
                "HeadraceParseYoloV8Pose",
                "NvDsInferParseCustomYoloV11OBB",
            ],
        ),
        ((425, 13, 13), 80, ["NvDsInferParseCustomYoloV2", "NvDsInferParseCustomYoloV2Tiny"]),
    ],
)  # fmt: skip
def test_heads_that_read_as_many_classes_come_first(shape, classes, names):
    size = 1024 if 21504 in shape else 416 if 13 in shape else 640
    assert suggest(outputs(o=shape), NetworkInfo(size, size, 3), classes) == names


@pytest.mark.parametrize("axes", [("n", "h", "w"), ("n", 1, "h", "w"), ("n", "a", "b", "c")])
def test_nothing_is_suggested_for_axes_that_are_all_free(axes):
    assert suggest([TensorSpec("o", np.dtype(np.float32), axes)], None, 80) == []


def test_a_wrong_number_of_classes_names_the_head_that_reads_so_many():
    params = DetectionParams(80, np.full(80, 0.5, np.float32))
    with pytest.raises(ParserError) as caught:
        WELL_KNOWN["HeadraceParseYoloV8"](outputs(output=(8400, 85)), COCO, params)
    text = str(caught.value)
    assert "read so they hold 81 classes, but num-detected-classes=80" in text
    assert "parse-bbox-func-name=HeadraceParseYoloV5" in text
    assert "set num-detected-classes" not in text


def test_nothing_is_suggested_for_what_no_head_reads():
    assert suggest(outputs(logits=(1000,))) == []
    assert suggest(outputs(np.int64, output0=(84, 8400))) == []
    assert suggest({}) == []


def test_specs_of_a_session_count_without_their_batch_axis():
    specs = [TensorSpec("output0", np.dtype(np.float32), ("batch", 84, 8400))]
    assert suggest(specs)[0] == "HeadraceParseYoloV8"
    assert suggest([TensorSpec("output0", np.dtype(np.float32), ())]) == []
    free = [TensorSpec("output0", np.dtype(np.float32), (None, "n", 6))]
    assert "NvDsInferParseYolo" in suggest(free)


@pytest.mark.parametrize("name", sorted(WELL_KNOWN))
def test_outputs_of_another_model_are_an_error_that_names_them(parse, name):
    with pytest.raises(ParserError) as error:
        parse(name, {"prob_7": np.zeros((3, 2, 4, 5, 6), np.float32)}, [0.5])
    text = str(error.value)
    assert f"parse-bbox-func-name={name}" in text
    assert "'prob_7' float32[3, 2, 4, 5, 6]" in text
    assert error.value.finding.expectation


@pytest.mark.parametrize("name", sorted(WELL_KNOWN))
def test_no_outputs_at_all_is_the_same_error(parse, name):
    with pytest.raises(ParserError, match="none"):
        parse(name, {}, [0.5])


def test_an_integer_tensor_is_not_taken_for_scores(parse):
    with pytest.raises(ParserError, match="int32"):
        parse("NvDsInferParseYoloV11", [np.zeros((6, 20), np.int32)], [0.5, 0.5])
