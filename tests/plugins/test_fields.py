"""Values of formats without types as fields of a plugin."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

from headrace.errors import ModelError
from headrace.network.ir import node_from_proto
from headrace.plugins import PluginField, PluginFieldType
from headrace.plugins.fields import fields_of, plain_fields_of

Kind = PluginFieldType


def made(kind: PluginFieldType, value: Any) -> Any:
    creator = SimpleNamespace(name="Mine", field_names=[PluginField("f", None, kind)])
    (field,) = plain_fields_of({"f": value}, creator)
    return field.data


@pytest.mark.parametrize(
    ("kind", "value", "number"),
    [
        (Kind.INT32, 2**31, 2**31),
        (Kind.INT32, [1, -(2**40)], -(2**40)),
        (Kind.INT32, np.array([5, 2**40]), 2**40),
        (Kind.INT8, np.array([[-129, 0]]), -129),
        (Kind.INT8, np.array([0, 128], np.uint8), 128),
        (Kind.UNKNOWN, 2**33, 2**33),
        (Kind.INT64, 2**70, 2**70),
    ],
)
def test_whole_numbers_beyond_the_type_are_refused(
    kind: PluginFieldType, value: Any, number: int
) -> None:
    with pytest.raises(ModelError, match=f"plugin Mine: field f: {number}"):
        made(kind, value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Kind.INT32, [1, 2]), (Kind.INT64, 2**40), (Kind.FLOAT32, 2.5), (Kind.FLOAT32, np.ones(3))],
)
def test_others_are_taken(kind: PluginFieldType, value: Any) -> None:
    np.testing.assert_array_equal(made(kind, value), np.ravel(value))


@pytest.mark.parametrize("kind", [Kind.FLOAT32, Kind.UNKNOWN])
def test_weights_do_not_become_numbers_of_python(kind: PluginFieldType) -> None:
    weights = np.ones(1_000_000, np.float32)
    tracemalloc.start()
    try:
        made(kind, weights)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * weights.nbytes


def node_fields(kind: PluginFieldType, **attributes: Any) -> Any:
    node = node_from_proto(helper.make_node("Mine", ["x"], ["y"], **attributes))
    creator = SimpleNamespace(name="Mine", field_names=[PluginField("f", None, kind)])
    (*fields,), notices = fields_of(node, creator, "node 'n'")
    return fields, notices


@pytest.mark.parametrize(
    ("declared", "given", "got", "kind"),
    [
        (Kind.INT32, 7, [7], Kind.INT32),
        (Kind.INT64, [7, 2**40], [7, 2**40], Kind.INT64),
        (Kind.FLOAT32, 5_000_000_000, [5_000_000_000], Kind.INT64),
        (Kind.INT32, 5_000_000_000, [705_032_704], Kind.INT32),
    ],
)
def test_whole_numbers_of_nodes_are_cut_only_for_int32(
    declared: PluginFieldType, given: Any, got: list[int], kind: PluginFieldType
) -> None:
    (field,), notices = node_fields(declared, f=given)
    assert field.type == kind
    assert list(field.data) == got
    told = any(abs(n) > 2**31 for n in np.ravel(given)) and declared != Kind.INT64
    assert [n.code for n in notices] == ["plugin-field"] * told


def test_attributes_that_are_no_fields_are_told() -> None:
    _, notices = node_fields(Kind.INT32, f=1, gain=4.0, plugin_version="1")
    (notice,) = notices
    assert notice.code == "plugin-attribute-left-out"
    assert notice.data["attributes"] == ["gain"]


def test_records_count_each_as_one_element() -> None:
    kernels = np.array([(80, 40, [1, 2]), (40, 20, [3, 4])], "i4, i4, (2,)f4")
    field = PluginField("kernels", kernels, Kind.FLOAT32)
    assert field.size == 2
    assert field.raw == kernels.tobytes()
