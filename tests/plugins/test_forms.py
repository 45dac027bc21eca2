"""Forms of tensors: repacking against NumPy, and Python plugins that take one form alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from headrace._core._native import address_of, pack_channels, unpack_channels
from headrace.engine import BuildOptions, build
from headrace.plugins import (
    DataType,
    IPluginCreatorV3One,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
    PluginFieldCollection,
    PluginRegistry,
    TensorFormat,
    array_at,
)
from headrace.plugins.forms import TensorForm
from headrace.plugins.negotiate import offers
from tests.plugins.forms import BLOCKS, LAST, packed
from tests.plugins.models import FLOAT, model, network

STORAGE = {"INT8": np.int8, "HALF": np.float16, "FLOAT": np.float32, "INT64": np.int64}


shapes = st.tuples(*[st.integers(1, 3)] * 2, st.integers(1, 70), *[st.integers(1, 19)] * 2)


@given(shapes, st.sampled_from([*BLOCKS, *LAST]), st.sampled_from(sorted(STORAGE)))
def test_tensors_are_packed_as_numpy_would_and_come_back(
    shape: tuple[int, ...], format: str, kind: str
) -> None:
    rng = np.random.default_rng(sum(shape))
    array = rng.integers(-100, 100, shape).astype(STORAGE[kind])
    form = TensorForm(DataType[kind], TensorFormat[format])
    there = form.pack(array)
    np.testing.assert_array_equal(there, packed(array, format))
    assert there.shape == form.packed_shape(shape)
    assert there.nbytes == form.size(shape)
    np.testing.assert_array_equal(form.unpack(there, shape), array)


@given(
    st.sampled_from([1, 2, 3, 4, 8, 9, 16, 24, 32, 40, 64, 96, 160]),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 159),
    st.integers(1, 300) | st.sampled_from([512, 1024, 2048, 4096]),
    st.sampled_from([64, 32, 0]),
    st.sampled_from([0, 1, 16, 48]),
)
def test_vectors_of_every_processor_move_the_same_bytes(
    width: int, item: int, missing: int, positions: int, vectors: int, offset: int
) -> None:
    channels = width - missing % width
    sizes = (1, channels, positions, width, item, 1, vectors)
    rng = np.random.default_rng(positions)
    rows = rng.integers(0, 256, (channels, positions, item), np.uint8)
    padded = np.pad(rows, [(0, width - channels), (0, 0), (0, 0)])
    expected = np.ascontiguousarray(padded.transpose(1, 0, 2)).reshape(-1)
    source = _unaligned(rows.size, offset)
    blocks, back = _unaligned(expected.size, offset), _unaligned(rows.size, offset)
    source[64:-64] = rows.reshape(-1)
    pack_channels(address_of(source) + 64, address_of(blocks) + 64, *sizes)
    np.testing.assert_array_equal(blocks[64:-64], expected)
    unpack_channels(address_of(blocks) + 64, address_of(back) + 64, *sizes)
    np.testing.assert_array_equal(back[64:-64], rows.reshape(-1))
    for moved in (blocks, back):  # nothing beside
        assert (moved[:64] == 171).all()
        assert (moved[-64:] == 171).all()


def _unaligned(size: int, offset: int) -> Any:
    """Bytes with 64 more on both sides, `offset` bytes behind the beginning of a cache's line."""
    room = np.full(size + 256, 171, np.uint8)
    start = -address_of(room) % 64 + offset
    return room[start : start + size + 128]


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [64, 32, 0])
@pytest.mark.parametrize(
    ("shape", "kind", "formats"),
    [
        ((1, 40, 1500, 300), "INT8", ["CHW32"]),  # larger than what caches hold
        ((1, 40, 301, 300), "HALF", ["CHW32", "HWC"]),  # read ahead, in odd tiles
        ((1, 40, 128, 320), "FLOAT", ["CHW32", "HWC"]),  # the same of rows that collide
        ((1, 40, 64, 64), "INT8", ["CHW32", "HWC", "HWC8"]),  # rows that collide in them
        ((2, 3, 99, 401), "INT8", ["HWC", "CHW4"]),  # in two tiles or more, with a rest
    ],
)
def test_large_tensors_are_the_same_in_every_course(
    shape: tuple[int, ...],
    kind: str,
    formats: list[str],
    vectors: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, call in (("pack_channels", pack_channels), ("unpack_channels", unpack_channels)):
        monkeypatch.setattr(f"headrace.plugins.forms.{name}", partial(call, vectors=vectors))
    array = np.random.default_rng(0).integers(-100, 100, shape).astype(STORAGE[kind])
    for format in formats:
        form = TensorForm(DataType[kind], TensorFormat[format])
        there = form.pack(array)
        assert array.nbytes < 2**20 or address_of(there) % 64 == 0  # a line of the caches
        np.testing.assert_array_equal(there, packed(array, format))
        np.testing.assert_array_equal(form.unpack(there, array.shape), array)


def test_int8_is_rounded_to_even_and_saturated() -> None:
    form = TensorForm(DataType.INT8, scale=0.5)
    values = np.array([0.25, 0.75, -0.25, 100, -100, np.nan], np.float32)
    steps = form.converted(values)
    assert steps.tolist() == [0, 2, 0, 127, -128, 0]
    assert form.restored(steps, np.dtype(np.float32)).tolist() == [0, 1, 0, 63.5, -64, 0]


def test_bf16_is_the_upper_half_of_float32() -> None:
    form = TensorForm(DataType.BF16)
    bits = form.converted(np.array([1.0, -2.5, 3e38], np.float32))
    assert bits.dtype == np.uint16
    assert form.restored(bits, np.dtype(np.float32))[:2].tolist() == [1.0, -2.5]


def test_a_format_needs_its_axes() -> None:
    with pytest.raises(ValueError, match="kCHW32 needs 3 axes"):
        TensorForm(DataType.FLOAT, TensorFormat.CHW32).packed_shape((4, 4))


def test_the_own_type_is_offered_first_then_what_loses_and_moves_least() -> None:
    found = [o.form for o in offers(np.dtype(np.float32), (1, 3, 8, 8), 0.1)]
    assert found[0] == TensorForm(DataType.FLOAT)
    kinds = list(dict.fromkeys(form.type.name for form in found))
    assert kinds == ["FLOAT", "HALF", "BF16", "INT8"]
    assert found[1] == TensorForm(DataType.FLOAT, TensorFormat.HWC)
    int8 = [f for f in found if f.type == DataType.INT8]
    assert int8[0].is_linear
    assert all(f.scale == 0.1 for f in int8)


class Formed(IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    """y = x reversed in memory twice: what it reads, it writes."""

    plugin_name, plugin_version, plugin_namespace, num_outputs = "Formed", "1", "", 1

    def __init__(self, form: TensorForm, asked: list[Any]) -> None:
        super().__init__()
        self.form, self.asked = form, asked

    def get_capability_interface(self, type: Any) -> object:
        return self

    def clone(self) -> Formed:
        return Formed(self.form, self.asked)

    def get_output_data_types(self, input_types: Any) -> Any:
        return [input_types[0]]

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, exprs: Any) -> Any:
        return [inputs[0]]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        desc = in_out[pos].desc
        self.asked.append((pos, desc.type, desc.format))
        if pos == 1:  # what comes before is decided
            assert in_out[0].desc.format == self.form.format
        return bool(desc.type == self.form.type and desc.format == self.form.format)

    def configure_plugin(self, inp: Any, out: Any) -> None:
        assert inp[0].desc.format == self.form.format

    def on_shape_change(self, inp: Any, out: Any) -> None:
        assert inp[0].format == self.form.format

    def set_tactic(self, tactic: int) -> None: ...

    def attach_to_context(self, context: Any) -> Formed:
        return self.clone()

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        return PluginFieldCollection([])

    def enqueue(
        self, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any
    ) -> None:
        shape = self.form.packed_shape(input_desc[0].dims)
        x = array_at(inputs[0], shape, self.form.storage)
        array_at(outputs[0], shape, self.form.storage, writable=True)[...] = x


@pytest.mark.parametrize(
    "form",
    [
        TensorForm(DataType.FLOAT, TensorFormat.CHW32),
        TensorForm(DataType.HALF, TensorFormat.HWC8),
        TensorForm(DataType.BF16, TensorFormat.DHWC8),
        TensorForm(DataType.BF16),
        TensorForm(DataType.HALF, TensorFormat.CDHW32),
    ],
    ids=str,
)
def test_python_plugins_take_their_form(form: TensorForm, tmp_path: Path) -> None:
    asked: list[Any] = []

    class Creator(IPluginCreatorV3One):
        name, plugin_version = "Formed", "1"
        field_names = PluginFieldCollection([])

        def create_plugin(self, name: str, fields: Any, phase: Any) -> Formed:
            return Formed(form, asked)

    registry = PluginRegistry()
    registry.register_creator(Creator())
    info = [helper.make_tensor_value_info(name, FLOAT, ["N", 3, 4, 5]) for name in "xy"]
    made = model([helper.make_node("Formed", ["x"], ["y"], name="f")], info[:1], info[1:])
    plan = build(network(made, tmp_path), BuildOptions(max_batch=2, registry=registry))
    assert asked[0] == (0, DataType.FLOAT, TensorFormat.LINEAR)
    x = np.random.default_rng(0).integers(-50, 50, (2, 3, 4, 5)).astype(np.float32)
    with plan.open_session() as session:
        np.testing.assert_array_equal(session.run({"x": x})["y"], x)
