"""Plugins by decorators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper
from typing_extensions import TypeAliasType

from headrace.engine import Plan
from headrace.engine.builder import BuildOptions, build
from headrace.errors import PluginError
from headrace.plugins import DataType, array_at, get_plugin_registry
from headrace.plugins import decorators as trtp
from headrace.plugins.decorators import signature_of
from tests.plugins.models import FLOAT, model, network


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(trtp, "_definitions", {})  # those of other tests stay
    yield
    for creator in get_plugin_registry().all_creators:
        if creator.plugin_namespace == "mine":
            get_plugin_registry().deregister_creator(creator)


def run(tmp_path: Path, op: str, x: Any, out: list[Any], **attributes: Any) -> Any:
    node = helper.make_node(
        op, ["x"], ["y"], name="decorated", plugin_namespace="mine", **attributes
    )
    made = model(
        [node],
        [helper.make_tensor_value_info("x", FLOAT, ["N", *x.shape[1:]])],
        [helper.make_tensor_value_info("y", FLOAT, out)],
    )
    plan = build(network(made, tmp_path), BuildOptions(max_batch=len(x)))
    plan.save(tmp_path / "p.engine")
    with Plan.load(tmp_path / "p.engine").open_session() as session:
        return session.run({"x": x})["y"]


X = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype(np.float32)


def test_description_and_arithmetic_are_all_it_takes(tmp_path: Path) -> None:
    @trtp.register("mine::pad_scale")
    def desc(x: trtp.TensorDesc, factor: float, pads: npt.NDArray[np.int32]) -> trtp.TensorDesc:
        out = x.like()
        out.shape_expr[2] = out.shape_expr[2] + int(pads[0])
        out.shape_expr[3] = trtp.cdiv(out.shape_expr[3] * 2, 2) + int(pads[1])
        return out

    @trtp.impl("mine::pad_scale")
    def compute(x: trtp.Tensor, factor: float, outputs: tuple[trtp.Tensor], stream: int) -> None:
        y = outputs[0].numpy()
        y[...] = 0
        y[:, :, : x.shape[2], : x.shape[3]] = np.asarray(x) * np.float32(factor)

    got = run(tmp_path, "pad_scale", X, ["N", 3, 6, 9], factor=2.5, pads=[1, 2])
    expected = np.zeros((2, 3, 6, 9), np.float32)
    expected[:, :, :5, :7] = X * np.float32(2.5)
    np.testing.assert_array_equal(got, expected)


def test_only_what_the_arithmetic_needs_is_saved() -> None:
    @trtp.register("mine::two")
    def desc(x: trtp.TensorDesc, a: int, b: str) -> trtp.TensorDesc:
        return x.like()

    @trtp.impl("mine::two")
    def compute(x: trtp.Tensor, b: str, outputs: tuple[trtp.Tensor], stream: int) -> None: ...

    plugin = trtp.op.mine.two("tensor", a=3, b="text").plugin()
    (field,) = plugin.get_fields_to_serialize()
    assert (field.name, field.text()) == ("b", "text")
    creator = get_plugin_registry().find("two", "1", "mine")
    assert creator.create_plugin("n", [field], 1).attributes == {"b": "text"}
    assert creator.interface_info.kind == "PLUGIN CREATOR_V3QUICK"


def test_types_and_tactics_are_tuned(tmp_path: Path) -> None:
    seen = []

    @trtp.register("mine::tuned")
    def desc(x: trtp.TensorDesc) -> trtp.TensorDesc:
        return x.like()

    @trtp.autotune("mine::tuned")
    def tune(x: trtp.TensorDesc, outputs: tuple[trtp.TensorDesc]) -> list[Any]:
        return [trtp.AutoTuneCombination("FP16|INT8, FP16|FP32", "LINEAR", [1, 2])]

    @trtp.impl("mine::tuned")
    def compute(x: trtp.Tensor, outputs: tuple[trtp.Tensor], stream: int, tactic: int) -> None:
        seen.append((x.dtype, outputs[0].dtype, tactic))
        outputs[0].numpy()[...] = np.asarray(x)

    got = run(tmp_path, "tuned", X, ["N", 3, 5, 7])
    np.testing.assert_allclose(got, X, rtol=1e-3)  # it worked in halves
    assert {s[:2] for s in seen} == {(DataType.HALF, DataType.HALF)}
    assert {s[2] for s in seen} == {1, 2}  # timed


def test_an_output_may_be_as_long_as_the_data_say(tmp_path: Path) -> None:
    @trtp.register("mine::positive")
    def desc(x: trtp.TensorDesc) -> tuple[trtp.TensorDesc, trtp.TensorDesc]:
        size = trtp.size_tensor(x.numel() // 2, x.numel())
        out = trtp.from_shape_expr((1, size.expr()), x.dtype)
        return out, size

    @trtp.impl("mine::positive")
    def compute(x: trtp.Tensor, outputs: tuple[trtp.Tensor, trtp.Tensor], stream: int) -> None:
        found = np.asarray(x)[np.asarray(x) > 0]
        array_at(outputs[0].data_ptr, found.shape, x.dtype, writable=True)[...] = found
        outputs[1].numpy()[...] = found.size

    got = run(tmp_path, "positive", X[:1], [1, None])
    np.testing.assert_array_equal(got, X[:1][X[:1] > 0].reshape(1, -1))


def test_ahead_of_time_code_is_refused_clearly() -> None:
    @trtp.register("mine::ahead")
    def desc(x: trtp.TensorDesc) -> trtp.TensorDesc:
        return x.like()

    @trtp.aot_impl("mine::ahead")
    def code(x: Any) -> None: ...

    with pytest.raises(PluginError, match="only an aot_impl, which is code for a GPU"):
        trtp.op.mine.ahead("tensor").plugin()
    with pytest.raises(PluginError, match="code for a GPU"):
        trtp.op.mine.ahead("tensor").plugin(aot=True)


def wrong_default(x: trtp.TensorDesc, a: int = 3) -> trtp.TensorDesc:
    return x


def wrong_type(x: trtp.TensorDesc, a: list) -> trtp.TensorDesc:  # type: ignore[type-arg]
    return x


def wrong_name(x: trtp.TensorDesc, stream: int) -> trtp.TensorDesc:
    return x


def no_annotation(x) -> trtp.TensorDesc:  # type: ignore[no-untyped-def]
    return x


def no_result(x: trtp.TensorDesc):  # type: ignore[no-untyped-def]
    return x


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (wrong_default, "a has a default value"),
        (wrong_type, "attribute a is a"),
        (wrong_name, "no argument may be called stream"),
        (no_annotation, "argument x has no annotation"),
        (no_result, "the result must be annotated"),
    ],
)
def test_signatures_that_cannot_be(function: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        trtp.register("mine::wrong")(function)


@pytest.mark.parametrize("name", ["plain", "trt::x", "a.b::c", "::x", "mine::"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(ValueError, match="namespace"):
        trtp.register(name)


def test_arrays_may_be_annotated_by_an_alias() -> None:
    element = TypeVar("element", bound=np.generic)
    alias = TypeAliasType(  # as NumPy's own is in later releases
        "NDArray", np.ndarray[Any, np.dtype[element]], type_params=(element,)
    )

    def desc(x: trtp.TensorDesc, pads: int) -> trtp.TensorDesc:
        return x

    desc.__annotations__["pads"] = alias[np.int32]
    assert signature_of(desc, "mine::pad").attributes == {"pads": np.dtype(np.int32)}
