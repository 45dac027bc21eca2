"""Raw outputs and class maps, as applications read them."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.gstreamer.conftest import SCENE, Run, video
from tests.outside.app_models import COLORS, save_color_classes

MUX = "m.sink_0 nvstreammux name=m batch-size=1 width=320 height=192"


def frame_of(buffer: Any) -> Any:
    from headrace.gstreamer import pyds

    batch = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
    return pyds.NvDsFrameMeta.cast(batch.frame_meta_list.data)


def user_data(frame: Any, kind: int) -> Any:
    node = frame.frame_user_meta_list
    assert node.data.base_meta.meta_type == kind
    assert node.next is None
    return node.data.user_meta_data


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    save_color_classes(folder / "colors.onnx", 160, 96)
    (folder / "config.txt").write_text(
        "[property]\ngie-unique-id=3\nnetwork-type=2\nonnx-file=colors.onnx\n"
        f"num-detected-classes={len(COLORS)}\ninfer-dims=3;96;160\n"
        "net-scale-factor=0.00392156862745098\nsegmentation-threshold=0.4\n"
    )
    return folder / "config.txt"


def test_class_maps_are_read_and_drawn(play: Run, classes: Path) -> None:
    from headrace.gstreamer import pyds

    def look(buffer: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        meta = user_data(frame_of(buffer), pyds.NVDSINFER_SEGMENTATION_META)
        meta = pyds.NvDsInferSegmentationMeta.cast(meta)
        assert (meta.classes, meta.width, meta.height) == (4, 160, 96)
        assert meta.class_probabilities_map.shape == (4, 96, 160)
        return pyds.get_segmentation_masks(meta), pyds.get_nvds_buf_surface(hash(buffer), 0)

    ran = play(
        f"{video(2)} ! {MUX} ! nvinfer config-file-path={classes} ! "
        "nvsegvisual width=160 height=96 ! fakesink name=end",
        end=look,
    )
    assert ran.errors == []
    for found, image in ran.seen["end"]:
        assert found.dtype == np.int32
        assert set(np.unique(found)) >= {0, 1, 2, 3}
        assert image.shape == (96, 160, 4)
        shown = {kind: np.unique(image[found == kind], axis=0) for kind in range(4)}
        assert all(len(colors) == 1 for colors in shown.values())  # a class has one colour
        assert len({tuple(colors[0]) for colors in shown.values()}) == 4


def test_over_the_frame_classes_are_see_through(play: Run, classes: Path) -> None:
    from headrace.gstreamer import pyds

    def look(buffer: Any) -> np.ndarray[Any, Any]:
        frame_of(buffer)
        return pyds.get_nvds_buf_surface(hash(buffer), 0).copy()

    images = {}
    for alpha in (0.0, 0.5, 1.0):
        ran = play(
            f"{video(2)} ! {MUX} ! nvinfer config-file-path={classes} ! nvsegvisual width=160 "
            f"height=96 original-background=1 alpha={alpha} ! fakesink name=end",
            end=look,
        )
        assert ran.errors == []
        images[alpha] = ran.seen["end"][0].astype(float)
    middle = (images[0.0] + images[1.0]) / 2
    assert np.abs(images[0.5] - middle).mean() < 3
    assert np.abs(images[0.5] - images[0.0]).mean() > 10


def test_the_background_of_a_class_map_shows_the_frame(play: Run, classes: Path) -> None:
    from headrace.gstreamer import pyds

    def look(buffer: Any) -> tuple[Any, Any]:
        frame = frame_of(buffer)
        data = user_data(frame, pyds.NvDsMetaType.NVDSINFER_SEGMENTATION_META)
        found = pyds.get_segmentation_masks(pyds.NvDsInferSegmentationMeta.cast(data)).copy()
        return found, pyds.get_nvds_buf_surface(hash(buffer), 0).copy()

    shown = {}
    for asked in ("class-id=0", "class-id=1", "class-id=9", "alpha=0", "operate-on-seg-meta-id=7"):
        ran = play(
            f"{video(2)} ! {MUX} ! nvinfer config-file-path={classes} ! nvsegvisual width=160 "
            f"height=96 original-background=1 {asked} ! fakesink name=end",
            end=look,
        )
        assert ran.errors == []
        found, shown[asked] = ran.seen["end"][0]
    plain = shown["alpha=0"].astype(int)
    assert np.array_equal(shown["operate-on-seg-meta-id=7"], plain)
    for kind in range(2):  # neighbours share chroma at their edges
        own = found == kind
        changed = {asked: np.abs(one[own] - plain[own]).mean() for asked, one in shown.items()}
        assert changed[f"class-id={kind}"] < 8
        assert min(changed[f"class-id={1 - kind}"], changed["class-id=9"]) > 16


def test_raw_outputs_give_the_same_boxes(
    play: Run, detector: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application that parses the layers itself sees the objects that the parser found."""
    from headrace.gstreamer import pyds

    monkeypatch.setattr(sys, "path", [*sys.path, str(SCENE)])
    from conveyor_parser import parse_conveyor

    def look(buffer: Any) -> None:
        frame = frame_of(buffer)
        data = user_data(frame, pyds.NvDsMetaType.NVDSINFER_TENSOR_OUTPUT_META)
        meta = pyds.NvDsInferTensorMeta.cast(data)
        assert (meta.unique_id, meta.num_output_layers) == (1, 2)
        info = meta.network_info
        assert (info.width, info.height, info.channels) == (320, 192, 3)
        layers = {}
        for i in range(meta.num_output_layers):
            layer = pyds.get_nvds_LayerInfo(meta, i)
            assert layer.dataType == 0
            assert layer.buffer  # the applications' test for one that is there
            shape = layer.inferDims.d[: layer.inferDims.numDims]
            pointer = ctypes.cast(pyds.get_ptr(layer.buffer), ctypes.POINTER(ctypes.c_float))
            values = np.ctypeslib.as_array(pointer, shape=shape)
            last = layer.dims.numElements - 1
            assert pyds.get_detections(layer.buffer, last) == values.reshape(-1)[last]
            with pytest.raises(IndexError):
                pyds.get_detections(layer.buffer, last + 1)
            layers[layer.layerName] = Layer(layer.layerName, values)
        with pytest.raises(IndexError, match="output layer 2 of 2"):
            pyds.get_nvds_LayerInfo(meta, 2)
        params = DetectionParams(6, np.full(6, 0.3, np.float32))
        found = parse_conveyor(layers, NetworkInfo(320, 192, 3), params)
        assert frame.num_obj_meta
        node = frame.obj_meta_list
        while node is not None:
            r = node.data.rect_params
            near = np.abs(found.boxes - [r.left, r.top, r.width, r.height]).max(axis=1)
            assert near.min() < 0.01
            node = node.next

    ran = play(
        f"{video(3)} ! {MUX} ! nvinfer config-file-path={detector} output-tensor-meta=1 ! "
        "fakesink name=end",
        end=look,
    )
    assert ran.errors == []
    assert len(ran.seen["end"]) >= 2


def test_images_in_a_row_have_times(play: Run) -> None:
    """JPEG without a container has no times; frames follow each other at thirty a second."""
    times = play(
        "videotestsrc num-buffers=4 ! video/x-raw,format=I420,width=64,height=48 ! jpegenc ! "
        "identity drop-buffer-flags=0 ! jpegparse ! nvv4l2decoder ! identity name=bare ! "
        "m.sink_0 nvstreammux name=m batch-size=1 width=64 height=48 ! fakesink name=end",
        end=lambda buffer: frame_of(buffer).buf_pts,
        bare=lambda buffer: setattr(buffer, "pts", 2**64 - 1),
    ).seen["end"]
    assert times == [n * 10**9 // 30 for n in range(4)]
