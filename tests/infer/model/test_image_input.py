import numpy as np
import pytest

from headrace.config import ColorFormat, ModelConfig, TensorOrder
from headrace.engine import TensorSpec
from headrace.errors import ConfigError, EngineError, HeadraceError
from headrace.infer.model.image_input import network_dims


def spec(*shape):
    return TensorSpec("x", np.dtype(np.float32), shape)


RGB, BGR, GRAY = ColorFormat.RGB, ColorFormat.BGR, ColorFormat.GRAY
NHWC = TensorOrder.NHWC


@pytest.mark.parametrize(
    ("shape", "settings", "expected"),
    [
        (("n", 3, 4, 6), {}, (3, 4, 6)),
        ((1, 3, 4, 6), {"infer_dims": (3, 4, 6)}, (3, 4, 6)),
        ((None, 3, "h", "w"), {"infer_dims": (3, 4, 6)}, (3, 4, 6)),
        (("n", 3, 4, 6), {"infer_dims": (0, 9, 9)}, (3, 4, 6)),
        (("n", 4, 6, 3), {"infer_dims": (3, 4, 6), "network_input_order": NHWC}, (3, 4, 6)),
        (("n", 1, 4, 6), {"model_color_format": GRAY}, (1, 4, 6)),
        (("n", 3, 4, 6), {"offsets": (1, 2, 3)}, (3, 4, 6)),
        (("n", 1, 4, 6), {"model_color_format": GRAY, "offsets": (1,)}, (1, 4, 6)),
    ],
)
def test_dims_the_original_sees(shape, settings, expected):
    assert network_dims(spec(*shape), ModelConfig(**settings)) == expected


@pytest.mark.parametrize(
    ("shape", "settings", "error", "words"),
    [
        (("n", 10), {}, EngineError, ["2 axes", "four"]),
        (("n", 3, 4, 6, 7), {}, EngineError, ["5 axes"]),
        (("n", 3, "h", None), {}, EngineError, ["height (h), width", "infer-dims"]),
        (("n", None, 4, 6), {}, EngineError, ["channels"]),
        (("n", 3, 4, 6), {"infer_dims": (3, 8, 6)}, EngineError, ["height 4", "8"]),
        (
            ("n", 4, 6, 3),
            {"infer_dims": (3, 6, 4), "network_input_order": NHWC},
            EngineError,
            ["height 4 (infer-dims says 6)", "width 6"],
        ),
        (
            ("n", 3, 4, 6),
            {"infer_dims": (3, 4, 6), "network_input_order": NHWC},
            EngineError,
            ["the input is NCHW: leave network-input-order out"],
        ),
        (
            ("n", 4, 6, 3),
            {"infer_dims": (3, 4, 6)},
            EngineError,
            ["the input is NHWC: set network-input-order=1"],
        ),
        (("n", 3, 4, 6), {"offsets": (1, 2)}, ConfigError, ["2 values", "3 channels"]),
        (("n", 3, 4, 6), {"offsets": (1, 2, 3, 4)}, ConfigError, ["4 values", "3 channels"]),
        (("n", 3, 4, 6), {"model_color_format": GRAY}, ConfigError, ["1 channel", "3 are seen"]),
        (("n", 1, 4, 6), {"model_color_format": BGR}, ConfigError, ["3 channel", "1 are seen"]),
        (("n", 4, 6, 3), {}, ConfigError, ["is this an NHWC model"]),
        (
            ("n", 4, 6, 1),
            {"model_color_format": GRAY, "infer_dims": (1, 4, 6), "network_input_order": NHWC},
            ConfigError,
            ["NHWC"],
        ),
    ],
)
def test_what_cannot_be_fed_is_refused(shape, settings, error, words):
    with pytest.raises(error) as caught:
        network_dims(spec(*shape), ModelConfig(**settings))
    for word in words:
        assert word in str(caught.value)


def test_pre_027_offset_count():
    with pytest.raises(HeadraceError):
        network_dims(spec(1, 3, 8, 8), ModelConfig(offsets=(1, 2)))


def test_pre_028_nhwc_without_infer_dims_is_read_as_chw():
    wrong = ModelConfig(network_input_order=NHWC)
    with pytest.raises(HeadraceError, match=r"3 channel.* but 224 are seen") as caught:
        network_dims(spec(1, 224, 224, 3), wrong)
    assert "set 3;224;224" in str(caught.value)
    right = ModelConfig(network_input_order=NHWC, infer_dims=(3, 224, 224))
    assert network_dims(spec(1, 224, 224, 3), right) == (3, 224, 224)


@pytest.mark.parametrize(
    ("color", "channels", "ok"),
    [(RGB, 3, True), (BGR, 1, False), (GRAY, 1, True), (GRAY, 3, False)],
)
def test_pre_029_channels_and_colour(color, channels, ok):
    cfg = ModelConfig(model_color_format=color)
    if ok:
        assert network_dims(spec(1, channels, 8, 8), cfg)[0] == channels
    else:
        with pytest.raises(HeadraceError):
            network_dims(spec(1, channels, 8, 8), cfg)
