"""Each class lives exactly the life of the specification; every failure is told and cleaned up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.errors import PluginError
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins import (
    DataType,
    DimsExprs,
    IExprBuilder,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    PluginRegistry,
    Tracer,
    array_at,
    calls,
    checks,
    driver_v3,
)
from headrace.plugins.drivers import add_layer
from headrace.plugins.layer import Ranges
from headrace.plugins.standard import register_standard
from tests.plugins.life_cycles import BATCHED, DYNAMIC_TWO_PROFILES, V3_ONE_PROFILE, X, live, steps
from tests.plugins.samples import PLUGINS, Fault, ScaleV2IOExt, ScaleV3, Watched
from tests.profiles import slow

pytestmark = pytest.mark.usefixtures("watched_anew")
KINDS = list(PLUGINS)
F32 = np.dtype(np.float32)


def named(tracer: Tracer, text: str) -> list[str]:
    """The trace in the letters of `text`, as far as both go together."""
    letters: dict[int, str] = {}
    lines = []
    calls = [c for c in tracer.calls if c.method != "get_capability_interface"]
    for call, step in zip(calls, steps(text), strict=False):
        letter = letters.setdefault(call.object, step[0])
        line = [letter, call.method]
        if call.made:
            line.append(letters.setdefault(call.made, step[-1]))
        lines.append(" ".join(line))
    assert len(set(letters.values())) == len(letters), "two objects under one letter"
    lines += [f"{c.object} {c.method}" for c in calls[len(lines) :]]
    return lines


@pytest.mark.parametrize(
    ("kind", "text", "more"),
    [
        ("V2DynamicExt", DYNAMIC_TWO_PROFILES, {"profiles": 2, "contexts": 2}),
        ("V3", V3_ONE_PROFILE, {}),
        *((kind, text, {}) for kind, text in BATCHED.items()),
    ],
)
def test_the_calls_of_a_life(kind: str, text: str, more: dict[str, Any]) -> None:
    with Tracer() as tracer:
        results = live(PLUGINS[kind], **more)
    assert named(tracer, text) == [" ".join(step) for step in steps(text)]
    for result in results:
        np.testing.assert_array_equal(result, 2 * X[: len(result)])
    assert not tracer.failures
    assert Watched.made == Watched.destroyed + 1  # the user's own object is the user's
    assert Watched.twice == 0


def test_the_phases_of_a_life_come_in_order() -> None:
    with Tracer() as tracer:
        live(PLUGINS["V2DynamicExt"])
    phases = list(dict.fromkeys(c.phase for c in tracer.calls if c.phase != "destroy"))
    assert phases == ["parse", "build", "save", "load", "run"]


@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_objects(kind: str) -> None:
    live(PLUGINS[kind], profiles=2, contexts=3)
    engines = 4 if kind != "V3" else 0  # two built, two loaded
    assert (Watched.initialized, Watched.terminated) == (engines, engines)
    contexts = 6 if kind not in ("V2", "V3") else 0
    assert (Watched.attached, Watched.detached) == (contexts, contexts)


def test_capabilities_must_stay_the_same_object() -> None:
    Watched.reset(Fault("get_capability_interface", lambda kind: ScaleV3()))
    with pytest.raises(PluginError, match="another object for BUILD than before") as caught:
        live(ScaleV3)
    assert "the same object every time" in str(caught.value)


def test_tactics_are_timed_once_per_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScaleV3, "TACTICS", [7, 3])
    monkeypatch.setattr(ScaleV3, "timing_cache_id", "one", raising=False)
    with Tracer() as first:
        live(ScaleV3)
    tried = [c.arguments for c in first.calls if c.phase == "build" and c.method == "set_tactic"]
    assert tried[:2] == ["7", "3"]
    assert tried[2] in ("7", "3")
    loaded = [c.arguments for c in first.calls if c.phase == "load" and c.method == "set_tactic"]
    assert loaded == tried[2:]
    assert first.counts()["enqueue"] == 2 * 3 + 3
    with Tracer() as second:
        live(ScaleV3)
    assert second.counts()["enqueue"] == 3  # the twin asks the timing cache
    kept = driver_v3.timings()
    monkeypatch.setattr(driver_v3, "_timings", {})
    driver_v3.know_timings(dict.fromkeys(kept, 9))  # of other tactics
    with Tracer() as third:
        live(ScaleV3)
    assert third.counts()["enqueue"] == 2 * 3 + 3
    monkeypatch.setattr(driver_v3, "_timings", {})
    driver_v3.know_timings(kept)
    with Tracer() as fourth:
        live(ScaleV3)
    assert fourth.counts()["enqueue"] == 3


METHODS = {
    "V2": "num_outputs plugin_type get_output_shape clone supports_format configure_with_format "
    "get_workspace_size initialize serialization_size serialize execute_async",
    "V2Ext": "get_output_data_type configure_plugin attach_to_context execute_async clone",
    "V2IOExt": "supports_format_combination configure_plugin clone initialize execute_async",
    "V2DynamicExt": "num_outputs plugin_type get_output_datatype get_output_dimensions clone "
    "supports_format_combination configure_plugin get_workspace_size initialize "
    "get_serialization_size serialize attach_to_context enqueue",
    "V3": "get_capability_interface num_outputs plugin_name get_output_data_types "
    "get_output_shapes clone supports_format_combination configure_plugin get_workspace_size "
    "get_valid_tactics set_tactic attach_to_context get_fields_to_serialize on_shape_change "
    "enqueue",
}
# methods of the samples that call others of their own
CALLERS = {
    "clone": ("clone", "attach_to_context"),
    "serialize": ("serialize", "get_serialization_size", "serialization_size"),
}
RAISING = [(kind, method) for kind, names in METHODS.items() for method in names.split()]


@pytest.mark.parametrize(("kind", "method"), RAISING)
@pytest.mark.parametrize("after", [0, 1, *map(slow, range(2, 6))])
def test_a_method_that_raises(
    kind: str,
    method: str,
    after: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Told by the error alone; printed too where a script would hear nothing else."""
    script = after % 2 == 1
    monkeypatch.setattr(calls._Announced, "at_once", script)
    fault = Fault(method, ZeroDivisionError("my mistake"), after)
    Watched.reset(fault)
    try:
        live(PLUGINS[kind])
    except PluginError as error:
        caller = error.finding.sentence.partition(" raised ")[0]
        assert caller in CALLERS.get(method, (method,))
        assert "raised ZeroDivisionError: my mistake" in error.finding.sentence  # noqa: PT017
        assert isinstance(error.__cause__, ZeroDivisionError)  # noqa: PT017
        assert "layer 'scale'" in str(error)  # noqa: PT017
        told = capsys.readouterr().err
        printed = f"[ERROR] Exception caught in {caller}(): my mistake"
        assert printed in told if script else printed not in told
    else:
        assert fault.calls <= after, "the failure was lost"
    assert_nothing_left()


def assert_nothing_left() -> None:
    assert Watched.made == Watched.destroyed + 1
    assert Watched.twice == 0
    assert Watched.attached == Watched.detached
    assert Watched.initialized == Watched.terminated


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["terminate", "destroy", "detach_from_context"])
def test_failures_on_the_way_out_stop_nothing(
    kind: str, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = Fault(method, ValueError("too late"))
    Watched.reset(fault)
    live(PLUGINS[kind], profiles=2)
    if fault.calls:
        assert f"Exception caught in {method}(): too late" in capsys.readouterr().err
    Watched.fault = None
    if method != "destroy":
        assert Watched.made == Watched.destroyed + 1


WRONG = [
    ("V2DynamicExt", "num_outputs", 0, "num_outputs is 0", "a number of outputs"),
    ("V2DynamicExt", "num_outputs", "1", "num_outputs is '1'", "a number of outputs"),
    ("V2DynamicExt", "plugin_type", "", "plugin_type is ''", "text of 1 to 1023 bytes"),
    ("V2DynamicExt", "clone", None, "clone returned None", "a new ScaleDynamic"),
    ("V2DynamicExt", "clone", "me", "clone returned a str", "a new ScaleDynamic"),
    ("V2DynamicExt", "get_output_datatype", 3.5, "returned 3.5", "a DataType"),
    ("V2DynamicExt", "get_output_dimensions", (1, 2), "returned (1, 2)", "a DimsExprs"),
    ("V2DynamicExt", "get_output_dimensions", DimsExprs(2), "axis 0 is not set", "every axis"),
    ("V2DynamicExt", "supports_format_combination", "yes", "returned 'yes'", "True or False"),
    ("V2DynamicExt", "supports_format_combination", False, "refuses input 0 as FLOAT", "FLOAT"),
    ("V2DynamicExt", "get_workspace_size", -1, "returned -1", "0 to 1,099"),
    ("V2DynamicExt", "serialize", b"12", "returned 2 bytes", "4, as get_serialization_size"),
    ("V2DynamicExt", "serialize", 5, "returned 5", "bytes"),
    ("V3", "get_output_data_types", [], "returned 0 of them", "1 DataType: one for each output"),
    ("V3", "get_output_data_types", None, "returned None", "a list of DataType"),
    ("V3", "get_output_shapes", [1], "returned 1", "a DimsExprs"),
    ("V3", "get_output_shapes", [], "returned 0 of them", "1 DimsExprs: one for each output"),
    ("V3", "get_valid_tactics", None, "returned None", "a list of tactic"),
    ("V3", "get_valid_tactics", [0], "returned [0]", "unique numbers of 32 bits but 0"),
    ("V3", "get_valid_tactics", [2, 2], "returned [2, 2]", "unique numbers of 32 bits but 0"),
    ("V3", "attach_to_context", None, "attach_to_context returned None", "a new ScaleV3"),
    ("V3", "get_fields_to_serialize", [3], "a int in it", "PluginField objects"),
    ("V3", "get_capability_interface", None, "returned None for CORE", "an object"),
    ("V3", "format_combination_limit", -1, "format_combination_limit is -1", "0 or more"),
    ("V2", "get_output_shape", (-1, 4), "returned (-1, 4)", "a shape"),
    ("V2", "get_output_shape", 4, "returned 4", "a shape"),
    ("V2", "supports_format", False, "refuses FLOAT and HALF", "True for FLOAT"),
    ("V2", "execute_async", 2, "execute_async returned status 2", "0"),
    ("V2Ext", "get_output_data_type", 0, "returned 0", "a DataType"),
    ("V2IOExt", "supports_format_combination", False, "refuses", "FLOAT"),
]


@pytest.mark.parametrize(("kind", "method", "value", "found", "expected"), WRONG)
def test_a_wrong_answer(kind: str, method: str, value: Any, found: str, expected: str) -> None:
    Watched.reset(Fault(method, value))
    with pytest.raises(PluginError) as caught:
        live(PLUGINS[kind])
    assert found in caught.value.finding.sentence
    assert expected in (caught.value.finding.expectation or "")
    assert method.split("_returned")[0] in caught.value.finding.sentence
    assert "layer 'scale'" in (caught.value.where or "")
    assert_nothing_left()


def test_shapes_that_change_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([4, 4, 5])
    builder = IExprBuilder()
    monkeypatch.setattr(
        ScaleV3,
        "get_output_shapes",
        lambda *_: [DimsExprs([builder.constant(2), builder.constant(next(answers))])],
    )
    Watched.reset()
    with pytest.raises(PluginError) as caught:
        live(ScaleV3)
    assert "gave [DimsExprs(2, 4)], and for the same inputs [DimsExprs(2, 5)]" in str(caught.value)
    assert "layer 'scale'" in (caught.value.where or "")
    assert_nothing_left()


def test_a_limit_of_no_combinations_takes_the_first() -> None:
    Watched.reset(Fault("format_combination_limit", 0))
    live(PLUGINS["V3"])
    assert_nothing_left()


IGNORED = [
    ("V3", "configure_plugin"), ("V3", "on_shape_change"), ("V3", "set_tactic"),
    ("V3", "enqueue"), ("V2DynamicExt", "initialize"), ("V2DynamicExt", "configure_plugin"),
    ("V2IOExt", "initialize"), ("V2IOExt", "configure_plugin"),
]  # fmt: skip


@pytest.mark.parametrize("value", [1, "text", [1], 2.5])
@pytest.mark.parametrize(("kind", "method"), IGNORED)
def test_a_result_that_the_bindings_ignore(
    kind: str, method: str, value: Any, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(checks, "_ignored", set())
    own = getattr(PLUGINS[kind], method)
    monkeypatch.setattr(PLUGINS[kind], method, lambda *a: (own(*a), value)[1])
    for result in live(PLUGINS[kind]):
        np.testing.assert_array_equal(result, 2 * X[: len(result)])
    [said] = [r.getMessage() for r in caplog.records if "is ignored" in r.getMessage()]
    assert f"{method} returned {value!r}" in said


def test_no_workspace_in_python_is_zero_bytes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScaleV3, "get_workspace_size", lambda *_: None)
    np.testing.assert_array_equal(live(ScaleV3)[0], 2 * X)
    assert "get_workspace_size returned None: taken for 0 bytes" in caplog.text


def test_a_tactic_may_be_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []
    monkeypatch.setattr(ScaleV3, "TACTICS", [-3])
    monkeypatch.setattr(ScaleV3, "set_tactic", lambda self, tactic: chosen.append(tactic))
    np.testing.assert_array_equal(live(ScaleV3)[0], 2 * X)
    assert set(chosen) == {-3}


def test_a_missing_attribute_is_named() -> None:
    class Without(PLUGINS["V2DynamicExt"]):  # type: ignore[misc]
        def __init__(self, factor: float = 2.0) -> None:
            super().__init__(factor)
            del self.num_outputs

    with pytest.raises(PluginError, match="the plugin has no attribute num_outputs"):
        live(Without)


def test_a_missing_method_is_named() -> None:
    class Without(PLUGINS["V2DynamicExt"]):  # type: ignore[misc]
        get_output_dimensions = PLUGINS["V2DynamicExt"].__mro__[3].get_output_dimensions

    with pytest.raises(PluginError, match="class Without has no method get_output_dimensions"):
        live(Without)


def test_fields_to_keep_must_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ScaleV3, "get_fields_to_serialize")
    with pytest.raises(PluginError, match="class ScaleV3 has no method get_fields_to_serialize"):
        live(ScaleV3)


def test_an_error_of_a_creator_keeps_what_was_expected() -> None:
    registry = PluginRegistry()
    register_standard(registry)
    creator = registry.find("EfficientNMS_TRT")
    fields = PluginFieldCollection([PluginField("max_output_boxes", 5, PluginFieldType.INT32)])
    with pytest.raises(PluginError) as caught:
        calls.call_creator(creator, "parse", "nms", "create_plugin", "nms", fields)
    error = caught.value
    assert error.finding.sentence.startswith("create_plugin failed: field 'score_threshold'")
    assert "score_threshold (FLOAT32" in (error.finding.expectation or "")
    assert "it has 'max_output_boxes'" in error.finding.remedies


def test_a_version_2_plugin_needs_an_implicit_batch() -> None:
    with pytest.raises(PluginError, match="an IPluginV2 in a network whose shapes include"):
        add_layer(PLUGINS["V2"](), layer="a", input_types=[DataType.FLOAT])
    with pytest.raises(PluginError, match="a str is not a plugin"):
        add_layer("nothing", layer="a", input_types=[])


class Weighed(ScaleV2IOExt):
    """Channels times weights, which have no batch."""

    def execute_async(self, batch: int, inputs: Any, outputs: Any, ws: int, stream: int) -> int:
        x = array_at(inputs[0], (batch, *self.item), np.float32)
        y = array_at(outputs[0], x.shape, np.float32, writable=True)
        y[...] = x * array_at(inputs[1], (3, 1, 1), np.float32)
        return 0


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_fixed_axis_of_another_input_is_no_batch(batch: int) -> None:
    x = np.arange(batch * 12, dtype=np.float32).reshape(batch, 3, 2, 2)
    weights = np.array([1, 10, 100], np.float32).reshape(3, 1, 1, 1)
    for free in (False, True):
        shapes = [(x.shape, w) for w in ((3, 1, 1, 1), (5 if free else 3, 1, 1, 1))]
        layer = add_layer(Weighed(), layer="a", input_types=[DataType.FLOAT] * 2)
        specs = [TensorSpec("x", F32, (None, 3, 2, 2))]
        specs.append(TensorSpec("w", F32, (None if free else 3, 1, 1, 1)))
        plugin = layer.build(specs, [F32], [Ranges(shapes[0], shapes[0], shapes[1])])
        plugin.finish()
        if free and batch != 3:
            with pytest.raises(PluginError, match="the same batch in all of them"):
                plugin.context().run([x, weights])
        else:
            (y,) = plugin.context().run([x, weights])
            np.testing.assert_array_equal(y, x * weights[:, 0])


def test_a_plugin_that_ends_while_a_call_is_recorded_is_recorded_too() -> None:
    tracer = Tracer()

    class Ends:
        def __repr__(self) -> str:
            tracer.add(("destroy", "", self.other, "destroy", ()), None, 0.0, "", False)
            return "ends"

        other: object = object()

    with tracer:
        tracer.add(("run", "", object(), "enqueue", (Ends(),)), None, 0.0, "", False)
    assert {call.method for call in tracer.calls} == {"destroy", "enqueue"}
