"""Outputs that are images: depth in colours, images as they are, without the bars of the input."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import headrace
from headrace.errors import HeadraceError
from headrace.media import PixelFormat
from headrace.media.draw.output_images import shown_image
from headrace.media.draw.painter import Painter
from headrace.meta import FrameMeta, Layer, NetworkInfo, TensorOutput
from tests.media.draw.test_painter import frame_of

RED = np.zeros((3, 8, 8), np.float32)
RED[0] = 1
INPUT = NetworkInfo(8, 8, 3)


def output(values: Any, shown: Literal["none", "depth", "image"], **more: Any) -> TensorOutput:
    layer = Layer("out", np.asarray(values))
    return TensorOutput(1, {"out": layer}, INPUT, shown=shown, **more)


@pytest.mark.parametrize(
    ("values", "color"),
    [
        (RED, (255, 0, 0)),
        (RED * 2 - 1, (255, 0, 0)),  # of a tanh
        (RED * 255, (255, 0, 0)),
        (RED * 1.1 - 0.05, (255, 0, 0)),  # a little beyond 0..1
        ((RED * 200).astype(np.uint8), (200, 0, 0)),
        ((RED * 200).astype(np.uint8).transpose(1, 2, 0), (200, 0, 0)),
        (np.full((1, 8, 8), 0.5, np.float32), (128, 128, 128)),
    ],
)
def test_images_keep_their_colors(values: Any, color: tuple[int, ...]) -> None:
    image = shown_image(output(values, "image"), 20, 10)
    assert image is not None
    assert image.shape == (10, 20, 3)
    np.testing.assert_allclose(image[5, 5], color, atol=1)


def test_channels_of_a_bgr_model_are_turned() -> None:
    image = shown_image(output(RED, "image", bgr=True), 4, 4)
    assert image is not None
    assert image[0, 0].tolist() == [0, 0, 255]


def test_depth_rises_from_dark_to_bright() -> None:
    ramp = np.tile(np.linspace(3, 90, 8, dtype=np.float32), (8, 1))
    image = shown_image(output(ramp, "depth"), 8, 8)
    assert image is not None
    light = image[4].astype(int).sum(axis=1)
    assert (np.diff(light) > 0).all()


@pytest.mark.parametrize("centred", [False, True])
def test_bars_are_cut_off(centred: bool) -> None:
    values = np.zeros((3, 16, 16), np.float32)  # of a frame twice as wide as high, doubled in size
    top = 4 if centred else 0
    values[1, top : top + 8] = 1
    image = shown_image(
        output(values, "image", maintain_aspect_ratio=True, symmetric_padding=centred), 40, 20
    )
    assert image is not None
    assert (image == (0, 255, 0)).all()


@pytest.mark.parametrize("values", [np.zeros(5), np.zeros((2, 8, 8)), np.full((8, 8), np.nan)])
def test_other_outputs_are_not_drawn(values: Any) -> None:
    assert shown_image(output(values, "image"), 8, 8) is None
    assert shown_image(output(RED, "none"), 8, 8) is None


@pytest.mark.parametrize("size", [(20, 10), (21, 11)])
@pytest.mark.parametrize("format", [PixelFormat.RGB, PixelFormat.BGR, PixelFormat.I420])
def test_it_stands_in_the_place_of_the_frame(size: tuple[int, int], format: PixelFormat) -> None:
    frame = frame_of(format, *size)
    meta = FrameMeta("", 0, 0, 0, *size)
    meta.tensors.append(output(RED, "image"))
    luma = Painter().draw(frame, meta).planes[0]
    expected = {PixelFormat.RGB: (255, 0, 0), PixelFormat.BGR: (0, 0, 255)}.get(format, 82)
    assert (np.abs(luma.astype(int) - expected) <= 19).all()  # red is Y 63 to 82
    same = Painter(masks=False).draw(frame, meta).planes[0]
    np.testing.assert_array_equal(same, frame.planes[0])


def model(folder: Path, end: str, name: str = "out", scale: int = 1) -> Path:
    """The image itself, enlarged, behind an operator."""
    nodes = [helper.make_node("Resize", ["image", "", "sizes"], ["large"], mode="nearest"),
             helper.make_node(end, ["large"], [name])]  # fmt: skip
    sides = [16 * scale, 24 * scale]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 24])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, *sides])],
        [numpy_helper.from_array(np.float32([1, 1, scale, scale]), "sizes")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize(
    ("end", "name", "scale"),
    [("Identity", "out", 2), ("Tanh", "out", 1), ("Identity", "stylized", 1)],
)
def test_a_bare_model_of_images_is_drawn(tmp_path: Path, end: str, name: str, scale: int) -> None:
    path = model(tmp_path, end, name, scale)
    pixels = np.zeros((32, 48, 3), np.uint8)
    pixels[:, :, 1] = 200
    Image.fromarray(pixels).save(tmp_path / "f.png")
    with headrace.open_pipeline(
        str(path),
        sources=str(tmp_path / "f.png"),
        outputs=str(tmp_path / "o.png"),
        net_scale_factor=1 / 255,
    ) as pipeline:
        pipeline.run()
    (drawn,) = tmp_path.glob("o*.png")
    assert np.asarray(Image.open(drawn))[10, 10].argmax() == 1


def test_three_maps_that_may_be_classes_are_asked_about(tmp_path: Path) -> None:
    path = str(model(tmp_path, "Sigmoid"))
    with pytest.raises(HeadraceError, match="network-type=2") as failure:
        headrace.open_pipeline(path, sources="f.png", net_scale_factor=1 / 255)
    assert "output-image=image" in str(failure.value)
