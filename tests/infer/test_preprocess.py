"""The fused pass against a slow oracle, and its promises. Source: spec A.1 to A.5."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from math import floor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core import _native
from headrace.config import ColorFormat, ModelConfig, ScalingFilter, TensorOrder
from headrace.errors import ConfigError, GeometryError
from headrace.infer.geometry import Rect
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, plane_shapes
from tests.profiles import examples, thinned

_spec = importlib.util.spec_from_file_location(
    "oracle_preprocess", Path(__file__).with_name("oracle_preprocess.py")
)
oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracle)

MODELS = {"rgb": ColorFormat.RGB, "bgr": ColorFormat.BGR, "gray": ColorFormat.GRAY}
# Distance between the byte stored and the exact level. Half a byte is rounding; bilinear weighs in
# 16-bit fixed point before the colour matrix (gain up to 2.2), the others in float32.
TOLERANCE = {oracle.BILINEAR: 0.5 + 0.1}
EXACT = 0.5 + 2e-3


def make_frame(format, width, height, *, color=ColorSpace.BT601, seed=0, pad=0) -> Frame:
    """Random bytes, sometimes at the extremes; rows `pad` bytes longer than needed."""
    rng = np.random.default_rng(seed)
    planes = []
    for shape in plane_shapes(format, width, height):
        row = int(np.prod(shape[1:]))
        data = rng.integers(0, 256, (shape[0], row + pad), dtype=np.uint8)
        data[rng.random(data.shape) < 0.2] = rng.choice([0, 255])
        plane = data[:, :row]
        if len(shape) == 3:
            strides = (data.strides[0], shape[2], 1)
            plane = np.lib.stride_tricks.as_strided(data, shape, strides)
        planes.append(plane)
    for plane in planes:
        plane.flags.writeable = False
    return Frame(tuple(planes), format, width, height, color)


def bytes_of(pre: Preprocessor, frame: Frame, crop=None):
    """Channels first bytes of the item and the transform."""
    out = np.full(pre.shape, np.nan, np.float32)
    transform = pre(frame, out, crop)
    assert not np.isnan(out).any()
    return (out.transpose(2, 0, 1) if pre.order == TensorOrder.NHWC else out), transform


formats = st.sampled_from(list(PixelFormat))
colors = st.sampled_from(list(ColorSpace))
small = st.integers(2, 24)


@settings(max_examples=examples(120))
@given(
    formats, colors, st.sampled_from(list(MODELS)), st.integers(0, 4), st.tuples(small, small),
    st.tuples(st.integers(1, 20), st.integers(1, 20)), st.booleans(), st.booleans(),
    st.one_of(st.none(), st.tuples(*[st.floats(-3, 26)] * 2, *[st.floats(2, 40)] * 2)),
    st.integers(0, 70), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_agrees_with_the_oracle(
    format, color, model, filter, size, net, keep, symmetric, crop, pad, generic, seed
):
    frame = make_frame(format, *size, color=color, seed=seed, pad=pad)
    pre = Preprocessor(
        *net, color_format=MODELS[model], scaling_filter=filter, maintain_aspect_ratio=keep,
        symmetric_padding=symmetric, threads=2,
    )  # fmt: skip
    pre._generic = generic
    crop = None if crop is None else Rect(*crop)
    try:
        ours, transform = bytes_of(pre, frame, crop)
    except GeometryError:
        assert crop is not None
        assert max(crop.left + 2 - size[0], crop.top + 2 - size[1]) > 0
        return
    left, top, width, height = (int(v) for v in transform.dst)
    inside = ours[:, top : top + height, left : left + width]
    exact = oracle.levels(frame, transform.src, (width, height), filter, model)
    assert np.abs(inside - exact).max() <= TOLERANCE.get(filter, EXACT)
    assert np.array_equal(ours, np.floor(ours))
    padding = ours.copy()
    padding[:, top : top + height, left : left + width] = 0
    assert not padding.any()


EDGES = (
    ((3, 3), (5, 7)),
    ((2, 2), (40, 33)),
    ((1, 2), None),
    ((301, 203), (1, 1)),
    ((700, 5), (9, 3)),
    ((97, 65), (96, 64)),
    ((66, 34), (32, 16)),
    ((7, 7), (64, 3)),
    ((2100, 4), (33, 2)),
    ((260, 4), (33, 2)),
)


@pytest.mark.parametrize(
    ("filter", "format", "edge"), thinned(product(range(5), PixelFormat, EDGES), 3)
)
def test_edges(format, filter, edge):
    """Odd sizes, single pixels, huge reductions and enlargements."""
    size, net = edge
    frame = make_frame(format, *size, seed=5)
    pre = Preprocessor(*(net or (4, 4)), scaling_filter=filter)
    if net is None:
        with pytest.raises(GeometryError, match="at least 2x2"):
            bytes_of(pre, frame)
        return
    ours, transform = bytes_of(pre, frame)
    exact = oracle.levels(frame, transform.src, net, filter, "rgb")
    assert np.abs(ours - exact).max() <= TOLERANCE.get(filter, EXACT)


@pytest.mark.parametrize("color", list(ColorSpace))
@pytest.mark.parametrize("generic", [False, True])
def test_every_luma_and_chroma_is_rounded_right(color, generic):
    """Nearest is exact: all Y with all U (and V mirrored), every matrix."""
    y, u = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    big = np.repeat(np.repeat(y, 2, 0), 2, 1)
    v = u[::-1].copy()
    frame = Frame((big, u, v), PixelFormat.I420, 512, 512, color)
    pre = Preprocessor(256, 256)
    pre._generic = generic
    ours, _ = bytes_of(pre, frame)
    exact = oracle.yuv_to_rgb(*(p.astype(float) for p in (y, u, v)), color)
    # Exact halves may be a hair below in the oracle's float64.
    assert np.array_equal(ours, np.floor(np.clip(exact, 0, 255) + 0.5 + 1e-9))


def test_rgb_nearest_copies_bytes():
    frame = make_frame(PixelFormat.RGB, 30, 20, seed=3)
    ours, _ = bytes_of(Preprocessor(30, 20), frame)
    np.testing.assert_array_equal(ours, frame.planes[0].transpose(2, 0, 1))
    ours, _ = bytes_of(Preprocessor(30, 20, color_format=ColorFormat.BGR), frame)
    np.testing.assert_array_equal(ours, frame.planes[0].transpose(2, 0, 1)[::-1])


@pytest.mark.parametrize("height", [3, 5, 7, 11, 13])
@pytest.mark.parametrize("generic", [False, True])
def test_bilinear_weights_are_the_nearest_of_15_bits(height, generic):
    rng = np.random.default_rng(height)
    rows = rng.integers(0, 256, (2, 4096, 3), np.uint8)
    pre = Preprocessor(4096, height, scaling_filter=1)
    pre._generic = generic
    ours, _ = bytes_of(pre, Frame.from_array(rows, PixelFormat.RGB))
    a, b = rows.transpose(0, 2, 1).astype(np.int64)
    for y in range(height):
        at = Fraction(2 * (2 * y + 1), 2 * height) - Fraction(1, 2)
        weight = floor(min(max(at, 0), 1) * 32768 + Fraction(1, 2))
        level = b * 128 if at >= 1 else a * 128 + (((b - a) * 128 * weight + 16384) >> 15)
        np.testing.assert_array_equal(ours[:, y], (level + 64) >> 7)


@pytest.mark.parametrize("color", list(ColorSpace))
def test_a_grey_image_is_the_same_grey_for_every_model(color):
    luma = np.tile(np.arange(256, dtype=np.uint8), (4, 1))
    neutral = np.full((2, 128), 128, np.uint8)
    yuv = Frame((luma, neutral, neutral), PixelFormat.I420, 256, 4, color)
    rgb, _ = bytes_of(Preprocessor(256, 4), yuv)
    gray, _ = bytes_of(Preprocessor(256, 4, color_format=ColorFormat.GRAY), yuv)
    for channel in rgb:
        np.testing.assert_array_equal(channel, gray[0])
    again = Frame.from_array(np.stack([luma] * 3, -1), PixelFormat.RGB)
    from_rgb, _ = bytes_of(Preprocessor(256, 4, color_format=ColorFormat.GRAY), again)
    np.testing.assert_array_equal(from_rgb[0], luma)


@settings(max_examples=examples(40))
@given(
    st.floats(2**-13, 5, width=32), st.lists(st.floats(0, 255, width=32), min_size=3, max_size=3),
    st.sampled_from([None, "offsets", "mean"]), st.sampled_from(list(MODELS)), st.booleans(),
    st.integers(0, 4), st.integers(0, 50),
)  # fmt: skip
def test_normalisation_is_exact(scale, offsets, kind, model, nhwc, filter, seed):
    frame = make_frame(PixelFormat.I420, 20, 10, seed=seed)
    channels = 1 if model == "gray" else 3
    options = {
        "color_format": MODELS[model], "scaling_filter": filter, "maintain_aspect_ratio": True,
        "symmetric_padding": True, "order": TensorOrder(int(nhwc)),
    }  # fmt: skip
    plain, _ = bytes_of(Preprocessor(17, 13, **options), frame)
    mean = np.zeros((1, 1, 1), np.float32)
    if kind is not None:
        options["offsets"] = offsets[:channels]
        mean = np.float32(offsets[:channels])[:, None, None]
    if kind == "mean":  # wins over the offsets
        image = np.random.default_rng(seed).integers(0, 256, (13, 17, channels))
        options["mean"] = image
        mean = image.transpose(2, 0, 1)
    ours, _ = bytes_of(Preprocessor(17, 13, scale=scale, **options), frame)
    np.testing.assert_array_equal(ours, oracle.normalise(plain, scale, mean))


@settings(max_examples=examples(60))
@given(
    formats, st.sampled_from(list(MODELS)), st.integers(0, 4), st.integers(0, 9),
    st.tuples(st.integers(2, 200), st.integers(2, 60)),
    st.tuples(st.integers(1, 150), st.integers(1, 60)),
)  # fmt: skip
def test_threads_instructions_and_order_do_not_change_the_result(
    format, model, filter, seed, size, net
):
    frame = make_frame(format, *size, color=ColorSpace.BT709, seed=seed, pad=seed)
    options = {
        "color_format": MODELS[model], "scaling_filter": filter, "maintain_aspect_ratio": True,
        "scale": 0.017, "offsets": [123.7] if model == "gray" else [123.7, 116.3, 103.5],
    }  # fmt: skip
    first, _ = bytes_of(Preprocessor(*net, threads=1, **options), frame)
    for threads, generic, order in [(3, False, 0), (1, True, 0), (1, False, 1), (2, True, 1)]:
        pre = Preprocessor(*net, threads=threads, order=order, **options)
        pre._generic = generic
        np.testing.assert_array_equal(bytes_of(pre, frame)[0], first)


def test_several_threads_at_once():
    frames = [make_frame(PixelFormat.NV12, 320 + 2 * i, 180, seed=i) for i in range(6)]
    pre = Preprocessor(160, 160, maintain_aspect_ratio=True, threads=3, scaling_filter=1)
    expected = [bytes_of(pre, frame)[0] for frame in frames]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda i: bytes_of(pre, frames[i % 6])[0], range(120)))
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, expected[i % 6])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_works_in_a_forked_child():
    code = """
import os, sys, numpy as np
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
pre, frame = Preprocessor(64, 64, threads=4), Frame.from_array(np.full((80, 80, 3), 7, np.uint8))
out = pre.empty(1)
pre(frame, out[0])
child = os.fork()
if child == 0:
    out[:] = 0
    pre(frame, out[0])
    os._exit(0 if (out == 7).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_rows_of_a_batch():
    frame = make_frame(PixelFormat.I420, 64, 48)
    pre = Preprocessor(32, 32)
    batch = pre.empty(3)
    assert batch.shape == (3, 3, 32, 32)
    batch[:] = -1
    transform = pre(frame, batch[1], Rect(10, 10, 30, 20))
    assert transform.src == (10, 10, 30, 20)
    np.testing.assert_array_equal(batch[1], bytes_of(pre, frame, Rect(10, 10, 30, 20))[0])
    assert (batch[[0, 2]] == -1).all()


def test_flat_index_of_a_value():
    """NCHW is i·CHW + c·HW + y·W + x, NHWC i·CHW + (y·W + x)·C + c."""
    image = np.zeros((4, 6, 3), np.uint8)
    image[2, 5, 1] = 9
    for order, index in ((TensorOrder.NCHW, 185), (TensorOrder.NHWC, 196)):
        pre = Preprocessor(6, 4, order=order)
        batch = np.zeros((3, *pre.shape), np.float32)
        pre(Frame.from_array(image, PixelFormat.RGB), batch[2])
        assert np.flatnonzero(batch).tolist() == [index]


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((3, 8, 9), np.float32),
        np.zeros((3, 8, 8), np.float64),
        np.zeros((3, 8, 16), np.float32)[:, :, ::2],
        np.zeros((8, 8, 3), np.float32),
    ],
)
def test_outputs_that_cannot_be_written(out):
    with pytest.raises(ValueError, match="C-contiguous float32"):
        Preprocessor(8, 8)(make_frame(PixelFormat.RGB, 8, 8), out)


def test_crop_outside_the_frame():
    pre = Preprocessor(8, 8)
    with pytest.raises(GeometryError, match="outside a 20x20 frame"):
        bytes_of(pre, make_frame(PixelFormat.RGB, 20, 20), Rect(20, 0, 10, 10))


def test_a_scale_that_is_not_positive():
    frame = make_frame(PixelFormat.RGB, 8, 8)
    mean = np.full((8, 8, 3), 5)
    pre = Preprocessor(8, 8, scale=-1, offsets=[1, 2, 3])
    assert pre.scale == 1.0
    assert pre.offsets == ()
    assert [n.level for n in pre.notices] == ["warning"]
    assert "offsets are ignored" in str(pre.notices[0])
    plain, _ = bytes_of(Preprocessor(8, 8), frame)
    np.testing.assert_array_equal(bytes_of(pre, frame)[0], plain)
    with_image = Preprocessor(8, 8, scale=0, offsets=[1, 2, 3], mean=mean)
    np.testing.assert_array_equal(bytes_of(with_image, frame)[0], plain - 5)


def test_the_filter_a_gpu_ignores_is_nearest_and_said():
    frame = make_frame(PixelFormat.RGB, 50, 40)
    pre = Preprocessor(20, 20, scaling_filter=ScalingFilter.ALGO4)
    assert "scaling-filter=5" in pre.notices[0].sentence
    nearest, _ = bytes_of(Preprocessor(20, 20, scaling_filter=0), frame)
    np.testing.assert_array_equal(bytes_of(pre, frame)[0], nearest)
    np.testing.assert_array_equal(bytes_of(Preprocessor(20, 20), frame)[0], nearest)
    assert Preprocessor(20, 20).notices == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offsets": [1, 2]}, "offsets has 2 values"),
        ({"offsets": [1, 2, 3], "color_format": 2}, "offsets has 3 values"),
        ({"scaling_filter": 7}, "scaling-filter"),
        ({"color_format": 3}, "model-color-format"),
        ({"order": -1}, "network-input-order"),
        ({"mean": np.zeros((8, 8, 1))}, "mean image has shape"),
        ({"scale": float("nan")}, "not finite"),
        ({"offsets": [1, float("inf"), 2]}, "not finite"),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises(ConfigError, match=message):
        Preprocessor(8, 8, **options)


def load_config(folder, *lines) -> ModelConfig:
    path = folder / "config.txt"
    path.write_text("\n".join(["[property]", *lines]))
    return ModelConfig.load(path)


def test_from_config(tmp_path):
    (tmp_path / "mean.ppm").write_bytes(b"P6\n4 4\n255\n" + bytes(48))
    cfg = load_config(
        tmp_path,
        *("model-color-format=1", "net-scale-factor=0.5", "offsets=1;2;3"),
        *("network-input-order=1", "maintain-aspect-ratio=1", "scaling-filter=1"),
        "mean-file=mean.ppm",
    )
    pre = Preprocessor.from_config(cfg, 4, 4, 3, threads=1)
    assert pre.shape == (4, 4, 3)
    assert pre.color_format == ColorFormat.BGR
    assert pre.scaling_filter == ScalingFilter.BILINEAR
    assert pre.scale == 0.5
    assert pre.maintain_aspect_ratio
    assert not pre.symmetric_padding
    assert pre.mean.shape == (4, 4, 3)
    with pytest.raises(ConfigError, match=r"config.txt:2: model-color-format.*1 channel, but BGR"):
        Preprocessor.from_config(cfg, 4, 4, 1)
    with pytest.raises(ConfigError, match=r"config.txt:8: mean-file: .*is 4x4"):
        Preprocessor.from_config(cfg, 5, 4, 3)


def test_offsets_of_a_config_are_counted(tmp_path):
    cfg = load_config(tmp_path, "net-scale-factor=1", "offsets=1;2")
    with pytest.raises(ConfigError, match=r"config.txt:3: offsets: offsets has 2 values"):
        Preprocessor.from_config(cfg, 4, 4, 3)


def test_kernels_can_be_forced_to_plain_code(monkeypatch):
    monkeypatch.setenv("HEADRACE_GENERIC_KERNELS", "1")
    assert Preprocessor(4, 4)._generic
    assert isinstance(_native.preprocess_has_simd(), bool)


@pytest.mark.parametrize("profile", ["nvinfer", "modern"])
@pytest.mark.parametrize(("share", "left", "top", "side"), [(1.0, 40, 0, 80), (0.5, 60, 20, 40)])
def test_the_centre_is_cut_before_it_is_scaled(profile, share, left, top, side):
    rng = np.random.default_rng(3)
    frame = Frame.from_array(rng.integers(0, 256, (80, 160, 3), np.uint8), PixelFormat.RGB)
    cut = Preprocessor(32, 32, centre_crop=share, profile=profile)
    plain = Preprocessor(32, 32, profile=profile)
    found, expected = cut.empty(2), plain.empty(2)
    cut(frame, found[0])
    plain(frame, expected[0], Rect(left, top, side, side))
    cut.crops(frame, np.array([[0.0, 0, 160, 80]]), found[1:])
    expected[1] = expected[0]
    assert np.array_equal(found, expected)


def test_classifiers_alone_cut_the_centre(tmp_path):
    text = "[property]\ncentre-crop=0.875\nnetwork-type={}\n"
    shares = []
    for kind in (1, 0):
        path = tmp_path / f"{kind}.txt"
        path.write_text(text.format(kind))
        shares.append(Preprocessor.from_config(ModelConfig.load(path), 32, 32, 3).centre_crop)
    assert shares == [0.875, 0.0]
