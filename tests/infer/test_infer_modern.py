"""The profile `modern`: images against FFmpeg and OpenCV, bit by bit; boxes at edges."""

from __future__ import annotations

from typing import Any

import av
import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ClassAttrs
from headrace.config.model_config import ModelConfig
from headrace.errors import GeometryError
from headrace.infer.attach import Attacher, DropReason
from headrace.infer.geometry import Rect, ScaleTransform, fit_crops
from headrace.infer.preprocess import Preprocessor
from headrace.media import as_frame
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat
from headrace.meta import Detections, FrameMeta
from tests.profiles import examples

RNG = np.random.default_rng(17)


def modern(width: int, height: int, **options: Any) -> Preprocessor:
    options = {"color_format": 1, "scaling_filter": 1, "maintain_aspect_ratio": True} | options
    return Preprocessor(width, height, profile="modern", **options)


def scaled(pre: Preprocessor, frame: Frame, crop: Rect | None = None) -> Any:
    """The item as bytes, (h, w, 3)."""
    out = pre.empty(1)
    pre(frame, out[0], crop)
    image = out[0].transpose(1, 2, 0)
    assert (image == np.round(image)).all()
    return image.astype(np.uint8)


def letterboxed(bgr: Any, width: int, height: int, *, centred: bool) -> Any:
    """As YOLOX does it, or centred as Ultralytics does; written from their descriptions."""
    h, w = bgr.shape[:2]
    ratio = min(height / h, width / w)
    new = (round(w * ratio), round(h * ratio)) if centred else (int(w * ratio), int(h * ratio))
    new = (max(1, new[0]), max(1, new[1]))
    left, top = ((width - new[0]) // 2, (height - new[1]) // 2) if centred else (0, 0)
    canvas = np.full((height, width, 3), 114, np.uint8)
    small = cv2.resize(bgr, new, interpolation=cv2.INTER_LINEAR)
    canvas[top : top + new[1], left : left + new[0]] = small
    return canvas


def yuv_frame(
    width: int, height: int, format: PixelFormat, color: ColorSpace = ColorSpace.BT601
) -> Frame:
    half = ((height + 1) // 2, (width + 1) // 2)
    luma = RNG.integers(0, 256, (height, width), dtype=np.uint8)
    if format is PixelFormat.NV12:
        chroma = [RNG.integers(0, 256, (*half, 2), dtype=np.uint8)]
    else:
        chroma = [RNG.integers(0, 256, half, dtype=np.uint8) for _ in range(2)]
    return Frame((luma, *chroma), format, width, height, color=color)


SIZE = st.integers(2, 200)


@settings(max_examples=examples(150))
@given(size=st.tuples(SIZE, SIZE), net=st.tuples(SIZE, SIZE), centred=st.booleans())
def test_arrays_are_scaled_with_opencvs_bits(
    size: tuple[int, int], net: tuple[int, int], centred: bool
) -> None:
    bgr = RNG.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    ours = scaled(modern(*net, symmetric_padding=centred), as_frame(bgr, "bgr"))
    np.testing.assert_array_equal(ours, letterboxed(bgr, *net, centred=centred))


@pytest.mark.parametrize("net", [(416, 416), (300, 500), (96, 64), (1000, 400)])
def test_stretched_and_grey_images_too(net: tuple[int, int]) -> None:
    bgr = RNG.integers(0, 256, (181, 333, 3), dtype=np.uint8)
    ours = scaled(modern(*net, maintain_aspect_ratio=False), as_frame(bgr, "bgr"))
    np.testing.assert_array_equal(ours, cv2.resize(bgr, net, interpolation=cv2.INTER_LINEAR))
    grey = as_frame(np.ascontiguousarray(bgr[:, :, 0]), "gray")
    pre = modern(*net, color_format=2, maintain_aspect_ratio=False)
    out = pre.empty(1)
    pre(grey, out[0])
    expected = cv2.resize(bgr[:, :, 0], net, interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(out[0, 0], expected)


@pytest.mark.parametrize("color", list(ColorSpace))
@pytest.mark.parametrize("size", [(64, 48), (320, 182), (1280, 720)])
def test_video_is_converted_with_ffmpegs_bits(size: tuple[int, int], color: ColorSpace) -> None:
    frame = yuv_frame(*size, PixelFormat.I420, color)
    if color is ColorSpace.BT601:  # what a decoder's frame is without further words
        image = av.VideoFrame(*size, "yuv420p")
        for plane, array in zip(image.planes, frame.planes, strict=True):
            rows = np.ndarray((array.shape[0], plane.line_size), np.uint8, buffer=plane)
            rows[:, : array.shape[1]] = array
        bgr = image.to_ndarray(format="bgr24")
    else:
        bgr = frame.to_bgr()
    for net in ((160, 160), (416, 256)):
        ours = scaled(modern(*net), frame)
        np.testing.assert_array_equal(ours, letterboxed(bgr, *net, centred=False))


def test_other_layouts_of_the_same_image_give_the_same() -> None:
    frame = yuv_frame(322, 182, PixelFormat.I420)
    luma, u, v = frame.planes
    twin = Frame((luma, np.stack([u, v], 2)), PixelFormat.NV12, 322, 182)
    bgr = scaled(modern(160, 96), frame)
    np.testing.assert_array_equal(scaled(modern(160, 96), twin), bgr)
    rgb = scaled(modern(160, 96, color_format=0), frame)
    np.testing.assert_array_equal(rgb[..., ::-1], bgr)
    as_rgb = as_frame(frame.to_rgb(), "rgb")
    np.testing.assert_array_equal(scaled(modern(160, 96), as_rgb), bgr)
    nhwc = modern(160, 96, order=1, scale=0.5, offsets=(1, 2, 3))
    out = nhwc.empty(1)
    nhwc(frame, out[0])
    np.testing.assert_array_equal(out[0], np.float32(0.5) * (bgr.astype(np.float32) - [1, 2, 3]))


@pytest.mark.parametrize("format", [PixelFormat.I420, PixelFormat.NV12, PixelFormat.BGR])
@pytest.mark.parametrize("net", [(416, 416), (37, 21), (700, 500)])
def test_kernels_without_avx2_give_the_same_bits(
    format: PixelFormat, net: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if format is PixelFormat.BGR:
        frame = as_frame(RNG.integers(0, 256, (217, 401, 3), dtype=np.uint8), "bgr")
    else:
        frame = yuv_frame(401, 217, format)
    ours = scaled(modern(*net), frame)
    monkeypatch.setenv("HEADRACE_GENERIC_KERNELS", "1")
    np.testing.assert_array_equal(scaled(modern(*net), frame), ours)
    monkeypatch.delenv("HEADRACE_GENERIC_KERNELS")
    np.testing.assert_array_equal(scaled(modern(*net, threads=4), frame), ours)


@pytest.mark.parametrize("crop", [(3, 5, 31, 27), (-10.5, -3, 40, 30), (80.9, 50.2, 90, 90)])
def test_crops_are_what_slices_are(crop: tuple[float, ...]) -> None:
    bgr = RNG.integers(0, 256, (81, 101, 3), dtype=np.uint8)
    left, top, width, height = crop
    part = bgr[int(max(top, 0)) : int(top + height), int(max(left, 0)) : int(left + width)]
    pre = modern(64, 64, maintain_aspect_ratio=False)
    expected = cv2.resize(part, (64, 64), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(scaled(pre, as_frame(bgr, "bgr"), Rect(*crop)), expected)
    frame = yuv_frame(101, 81, PixelFormat.I420)  # chroma of odd places, too
    whole = yuv_as_bgr(frame)
    part = whole[int(max(top, 0)) : int(top + height), int(max(left, 0)) : int(left + width)]
    expected = cv2.resize(part, (64, 64), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(scaled(pre, frame, Rect(*crop)), expected)


def yuv_as_bgr(frame: Frame) -> Any:
    """FFmpeg's arithmetic in NumPy, of any size: its own code pads odd ones."""
    height, width = frame.planes[0].shape
    y = (8 * (frame.planes[0].astype(np.int32) - 16) * 9539) >> 16
    u, v = (
        8 * (p.repeat(2, 0).repeat(2, 1)[:height, :width].astype(np.int32) - 128)
        for p in frame.planes[1:]
    )
    red, green = (v * 13075) >> 16, ((u * -3209) >> 16) + ((v * -6660) >> 16)
    blue = (u * 16525) >> 16
    return np.clip(np.stack([y + blue, y + green, y + red], -1), 0, 255).astype(np.uint8)


def test_nothing_is_cropped_outside_the_frame() -> None:
    frame = as_frame(np.zeros((40, 40, 3), np.uint8), "bgr")
    for crop in (Rect(50, 0, 10, 10), Rect(0, -9, 10, 9), Rect(5, 5, 0.4, 9), Rect(1, 1, -3, 9)):
        with pytest.raises(GeometryError):
            scaled(modern(8, 8), frame, crop)
    rects = [[0, 0, np.nan, 5], [0, 0, np.inf, 5], [5, 5, 10, 10]]
    found = fit_crops(np.array(rects), 40, 40, 8, 8, modern=True)
    assert found.valid.tolist() == [False, False, True]
    assert not found.src[:2].any()


@pytest.mark.parametrize(
    ("size", "net", "centred", "expected"),
    [
        (
            (768, 432),
            (416, 416),
            False,
            (0, 0, 416, 233),
        ),  # 432 * (416 / 768) is 233.99999999999997
        ((768, 432), (416, 416), True, (0, 91, 416, 234)),
        ((500, 333), (640, 640), False, (0, 0, 640, 426)),
        ((333, 500), (640, 640), True, (107, 0, 426, 640)),
    ],
)
def test_letterboxes_are_rounded_as_trainers_do(
    size: tuple[int, int], net: tuple[int, int], centred: bool, expected: tuple[int, ...]
) -> None:
    found = fit_crops(
        np.array([(0, 0, *size)]),
        *size,
        *net,
        maintain_aspect_ratio=True,
        symmetric_padding=centred,
        modern=True,
    )
    assert tuple(found.dst[0].tolist()) == expected
    # one ratio for both axes, as trainers scale boxes back
    assert found.ratio_x[0] == found.ratio_y[0] == min(net[0] / size[0], net[1] / size[1])


NUMBER = st.floats(-300, 900, width=32, allow_subnormal=False)
SAME = ScaleTransform(Rect(0, 0, 640, 480), Rect(0, 0, 640, 480), 1.0, 1.0, 0, 0)


def attached(box: tuple[float, ...], profile: Any = "modern", **values: Any) -> tuple[Any, Any]:
    attrs = {k: v for k, v in values.items() if k.startswith(("roi", "detected"))}
    others = {k: v for k, v in values.items() if k not in attrs}
    cfg = ModelConfig(
        num_detected_classes=1, profile=profile, all_classes=ClassAttrs(**attrs), **others
    )
    meta = FrameMeta("test", 0, 0, 0, 640, 480)
    found = Detections(np.array([box]), [0.5], [0])
    return meta.objects, Attacher(cfg)(found, SAME, meta)


@given(box=st.tuples(NUMBER, NUMBER, NUMBER, NUMBER))
def test_boxes_are_cut_at_the_frame(box: tuple[float, ...]) -> None:
    left, top, width, height = np.float32(box)
    objects, result = attached(box)
    right, bottom = min(left + width, np.float32(640)), min(top + height, np.float32(480))
    left, top = max(left, np.float32(0)), max(top, np.float32(0))
    # A box that is thinner than a step of float32 is one all the same.
    inside = min(width, height) > 0 and min(right, bottom) > 0 and left < 640 and top < 480
    assert len(objects) == inside
    if inside:
        np.testing.assert_allclose(
            objects.rects[0], (left, top, right - left, bottom - top), rtol=1e-5, atol=1e-4
        )
    else:
        assert DropReason(result.reasons[0]) is DropReason.OUTSIDE
    assert result.shifted == 0


def test_masks_are_cut_with_their_boxes() -> None:
    ramp = np.tile(np.arange(8, dtype=np.float32), (4, 1))
    cfg = ModelConfig(num_detected_classes=1, profile="modern", output_instance_mask=True)
    ltwh = np.array([(-40, 10, 80, 40), (10, 10, 80, 40), (10, 470, 80, 40)], np.float32)
    found = Detections(ltwh, [0.5] * 3, [0] * 3, masks=[ramp] * 3)
    meta = FrameMeta("test", 0, 0, 0, 640, 480)
    Attacher(cfg)(found, SAME, meta)
    left, inside, low = meta.objects.masks
    np.testing.assert_allclose(left, ramp[:, 4:], atol=1e-5)
    np.testing.assert_array_equal(inside, ramp)
    np.testing.assert_allclose(low, ramp[:1], atol=1e-5)
    assert meta.objects.rects.tolist() == [[0, 10, 40, 40], [10, 10, 80, 40], [10, 470, 80, 10]]


def test_boxes_that_are_turned_stay_whole() -> None:
    cfg = ModelConfig(num_detected_classes=1, profile="modern")
    ltwh = np.array([(-40, 10, 80, 40), (-40, 10, 80, 40)], np.float32)
    found = Detections(ltwh, [0.5] * 2, [0] * 2, angles=np.array([0.3, 0], np.float32))
    meta = FrameMeta("test", 0, 0, 0, 640, 480)
    Attacher(cfg)(found, SAME, meta)
    assert meta.objects.rects.tolist() == [[-40, 10, 80, 40], [0, 10, 40, 40]]


def test_children_lie_where_their_crop_does() -> None:
    cfg = ModelConfig(num_detected_classes=1, profile="modern")
    parent = Rect(-10.5, 20.75, 60, 60)
    crops = fit_crops([parent], 640, 480, 49, 60, modern=True)
    meta = FrameMeta("test", 0, 0, 0, 640, 480)
    Attacher(cfg)(
        Detections(np.array([(5, 6, 10, 10)], np.float32), [0.5], [0]),
        crops.transform(0),
        meta,
        parent=parent,
    )
    assert meta.objects.rects.tolist() == [[5, 26, 10, 10]]


def test_offsets_of_regions_count_inside_the_frame_only() -> None:
    low = (10, 400, 50, 100)  # 20 rows below the frame
    assert attached(low)[0].rects.tolist() == [[10, 400, 50, 80]]
    assert len(attached(low, roi_bottom_offset=10)[0]) == 0
    cut = {"crop_objects_to_roi_boundary": True}
    assert attached(low, roi_bottom_offset=10, **cut)[0].rects.tolist() == [[10, 400, 50, 70]]
    high = (10, -5, 50, 100)
    assert attached(high)[0].rects.tolist() == [[10, 0, 50, 95]]
    assert len(attached(high, roi_top_offset=30)[0]) == 0
    assert attached(high, roi_top_offset=30, **cut)[0].rects.tolist() == [[10, 30, 50, 65]]


@pytest.mark.parametrize(
    ("box", "shifted", "reason"),
    [
        ((-5, 10, 50, 50), 1, None),
        ((-0.4, 10, 50, 50), 0, None),
        ((10, -3, 50, 50), 1, None),
        ((600, 10, 90, 50), 0, None),
        ((10, 450, 50, 50), 0, DropReason.FRAME_BOTTOM),
        ((-5, 450, 50, 50), 0, DropReason.FRAME_BOTTOM),
    ],
)
def test_what_nvinfer_does_at_the_edges_is_counted(
    box: tuple[float, ...], shifted: int, reason: DropReason | None
) -> None:
    objects, result = attached(box, "nvinfer")
    assert result.shifted == shifted
    assert result.edge_drops == (reason is not None)
    assert [DropReason(r) for r in result.reasons] == ([] if reason is None else [reason])
    assert len(objects) == (reason is None)


def test_a_region_that_a_class_leaves_out_is_no_edge() -> None:
    _, result = attached((10, 400, 50, 60), "nvinfer", roi_bottom_offset=50)
    assert DropReason(result.reasons[0]) is DropReason.ROI_BOTTOM_OFFSET
    assert not DropReason(result.reasons[0]).edge
    assert result.edge_drops == 0
