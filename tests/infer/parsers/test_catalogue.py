"""Names, suggestions and errors."""

from __future__ import annotations

import numpy as np
import pytest

from noria.errors import ParserError
from noria.infer.parsers import WELL_KNOWN, builtin_parser, suggest
from noria.infer.parsers.catalogue import HEADS
from noria.meta import Layer, NetworkInfo
from noria.network.tensor_spec import TensorSpec

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
        n for n in WELL_KNOWN if n.startswith("NoriaParse")
    }


COCO = NetworkInfo(640, 640, 3)


@pytest.mark.parametrize(
    ("layers", "network", "first"),
    [
        (outputs(output0=(84, 8400)), None, "NoriaParseYoloV8"),
        (outputs(output0=(8400, 84)), COCO, "NoriaParseYoloV8"),
        (outputs(output0=(5, 8400)), COCO, "NoriaParseYoloV8"),
        (outputs(output=(3549, 85)), NetworkInfo(416, 416, 3), "NoriaParseYoloX"),
        (outputs(output=(25200, 85)), COCO, "NoriaParseYoloV5"),
        (outputs(output=(8400, 6)), COCO, "NvDsInferParseYolo"),
        (outputs(output0=(300, 6)), COCO, "NvDsInferParseYolo"),
        (outputs(output0=(300, 84)), COCO, "NoriaParseRTDETR"),
        (outputs(scores=(4420, 2), boxes=(4420, 4)), None, "NoriaParseSSDCorners"),
        (
            outputs(num_dets=(1,), det_boxes=(100, 4), det_scores=(100,), det_classes=(100,)),
            None,
            "NoriaParseEfficientNMS",
        ),
        (outputs(a=(1,), b=(200, 4), c=(200,), d=(200,)), None, "NoriaParseEfficientNMS"),
        (
            outputs(num_detections=(1,), nmsed_boxes=(9, 4), nmsed_scores=(9,), nmsed_classes=(9,)),
            None,
            "NvDsInferParseCustomYoloV4",
        ),
        (outputs(a=(1, 200, 7), b=(1, 1)), None, "NvDsInferParseCustomNMSTLT"),
        (outputs(pred_logits=(300, 91), pred_boxes=(300, 4)), None, "NvDsInferParseCustomDDETRTAO"),
        (outputs(a=(300, 91), b=(300, 4)), None, "NoriaParseDetr"),
        (
            outputs(a=(3, 80, 80, 85), b=(3, 40, 40, 85), c=(3, 20, 20, 85)),
            COCO,
            "NoriaParseYoloV5Raw",
        ),
        (outputs(np.float16, output0=(84, 8400)), None, "NoriaParseYoloV8"),
    ],
)
def test_the_likely_head_is_suggested_first(layers, network, first):
    assert suggest(layers, network)[0] == first


def test_the_number_of_classes_breaks_a_tie():
    layers = outputs(output=(8400, 85))
    assert suggest(layers, COCO, 81)[0] == "NoriaParseYoloV8"
    assert suggest(layers, COCO, 80)[0] == "NoriaParseYoloX"


def test_nothing_is_suggested_for_what_no_head_reads():
    assert suggest(outputs(logits=(1000,))) == []
    assert suggest(outputs(np.int64, output0=(84, 8400))) == []
    assert suggest({}) == []


def test_specs_of_a_session_count_without_their_batch_axis():
    specs = [TensorSpec("output0", np.dtype(np.float32), ("batch", 84, 8400))]
    assert suggest(specs)[0] == "NoriaParseYoloV8"
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
    assert error.value.expected


@pytest.mark.parametrize("name", sorted(WELL_KNOWN))
def test_no_outputs_at_all_is_the_same_error(parse, name):
    with pytest.raises(ParserError, match="none"):
        parse(name, {}, [0.5])


def test_an_integer_tensor_is_not_taken_for_scores(parse):
    with pytest.raises(ParserError, match="int32"):
        parse("NvDsInferParseYoloV11", [np.zeros((6, 20), np.int32)], [0.5, 0.5])
