"""`raw-output-generated-callback`: a function of C gets the tensors of each run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gstreamer.conftest import video
from tests.gstreamer.elements.test_elements_pipelines import SIZE, tree, walk


class Dims(ctypes.Structure):
    """As in the original's header nvdsinfer.h."""

    _fields_ = (
        ("numDims", ctypes.c_uint), ("d", ctypes.c_uint * 8), ("numElements", ctypes.c_uint)
    )  # fmt: skip


class Layer(ctypes.Structure):
    _fields_ = (
        ("dataType", ctypes.c_int), ("dims", Dims), ("bindingIndex", ctypes.c_int),
        ("layerName", ctypes.c_char_p), ("buffer", ctypes.c_void_p), ("isInput", ctypes.c_int),
    )  # fmt: skip


FUNCTION = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(Layer),
    ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p,
)  # fmt: skip


def by_capsule(element: Any, name: str, address: int) -> None:
    """As PyGObject takes pointers."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p,) * 3
    element.set_property(name, make(address, None, None))


def by_c(element: Any, name: str, address: int) -> None:
    """As an application in C does."""
    put = ctypes.CDLL("libgobject-2.0.so.0").g_object_set
    put.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
    put(hash(element), name.encode(), address, None)


@pytest.mark.parametrize("put", [by_capsule, by_c])
def test_a_function_of_c_sees_inputs_and_outputs(
    gst: Any, detector: Path, put: Callable[[Any, str, int], None]
) -> None:
    from headrace.gstreamer import pyds

    pipeline = gst.parse_launch(
        video(3) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! nvinfer name=n "
        f"config-file-path={detector} output-tensor-meta=1 ! fakesink name=end"
    )
    calls: list[Any] = []
    attached: list[Any] = []

    def called(buffer: int, network: Any, layers: Any, count: int, size: int, data: int) -> None:
        seen = {}
        for layer in (layers[i] for i in range(count)):
            shape = (size, *layer.dims.d[: layer.dims.numDims])
            assert layer.dims.numElements == np.prod(shape[1:])
            pointer = ctypes.cast(layer.buffer, ctypes.POINTER(ctypes.c_float))
            values = np.ctypeslib.as_array(pointer, shape).copy()
            seen[layer.layerName.decode(), layer.isInput, layer.dataType] = values
        calls.append((buffer, tuple(network[:3]), data, seen))

    def look(_: Any, info: Any) -> int:
        (frame,) = walk(tree(info.get_buffer()).frame_meta_list)
        (user,) = walk(frame.frame_user_meta_list)
        meta = pyds.NvDsInferTensorMeta.cast(user.user_meta_data)
        layers = [meta.output_layers_info(i) for i in range(meta.num_output_layers)]
        values = {layer.layerName: layer.buffer.values.copy() for layer in layers}
        attached.append((hash(info.get_buffer()), values))
        return 1

    function, infer = FUNCTION(called), pipeline.get_by_name("n")
    put(infer, "raw-output-generated-callback", ctypes.cast(function, ctypes.c_void_p).value or 0)
    put(infer, "raw-output-generated-userdata", 0x1234)
    pipeline.get_by_name("end").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    pipeline.set_state(gst.State.PLAYING)
    kinds = gst.MessageType.EOS | gst.MessageType.ERROR
    message = pipeline.get_bus().timed_pop_filtered(20 * gst.SECOND, kinds)
    pipeline.set_state(gst.State.NULL)
    assert message.type == gst.MessageType.EOS
    assert len(calls) == len(attached) > 0
    for (buffer, network, data, seen), (expected, values) in zip(calls, attached, strict=True):
        assert (buffer, network, data) == (expected, (320, 192, 3), 0x1234)
        image = seen.pop(("image", 1, 0))
        assert image.shape == (1, 3, 192, 320)
        assert 0 <= image.min() < image.max() <= 1
        assert {name for name, is_input, kind in seen if (is_input, kind) == (0, 0)} == set(values)
        for (name, _, _), array in seen.items():
            np.testing.assert_array_equal(array[0], values[name])
