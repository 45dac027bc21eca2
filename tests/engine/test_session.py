import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from headrace.engine import BuildOptions, Plan, build
from headrace.errors import EngineError
from headrace.network import network_from_onnx
from tests.network.onnx_models import FLOAT, image_model, model_of, save
from tests.profiles import examples
from tests.together import together


def session_of(model, folder, **options):
    network = network_from_onnx(save(model, folder / "m.onnx"))
    return build(network, BuildOptions(**options)).open_session(threads=1)


def images(count, *, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3, 4, 6)).astype(np.float32)


@pytest.fixture
def session(tmp_path):
    with session_of(image_model(), tmp_path, max_batch=4) as session:
        yield session


def test_outputs_are_batch_first_in_binding_order(session):
    x = images(3)
    out = session.run({"x": x})
    assert list(out) == ["doubled", "mean"] == [s.name for s in session.outputs]
    assert np.array_equal(out["doubled"], x * 2)


def test_an_output_that_is_only_batch_is_batch_by_one(session):
    x = images(3)
    mean = session.run({"x": x})["mean"]
    assert mean.shape == (3, 1)
    assert np.allclose(mean[:, 0], x.mean(axis=(1, 2, 3)), atol=1e-6)


def test_one_number_for_one_image_is_one_by_one(tmp_path):
    mean = helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0)
    ends = [helper.make_tensor_value_info(n, FLOAT, d) for n, d in (("x", [1, 3, 4, 6]), ("y", []))]
    model = model_of([mean], ends[:1], ends[1:])
    with session_of(model, tmp_path, max_batch=2) as session:
        x = images(2)
        out = session.run({"x": x})["y"]
        assert out.shape == (2, 1)
        assert np.allclose(out[:, 0], x.mean(axis=(1, 2, 3)), atol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, ["missing input 'x'", "x float32[?, 3, 4, 6]"]),
        ({"x": images(1), "z": images(1)}, ["no input is called 'z'"]),
        ({"z": images(1)}, ["missing input 'x'", "no input is called 'z'"]),
        ({"x": images(1)[0]}, ["shape 3x4x6", "1..4x3x4x6"]),
        ({"x": images(1)[..., :5]}, ["shape 1x3x4x5"]),
        ({"x": np.float32(3)}, ["scalar"]),
        ({"x": images(1).astype(np.float64)}, ["float64", "expected float32"]),
        ({"x": images(1).astype(np.uint8)}, ["uint8"]),
        ({"x": images(0)}, ["a batch of 0", "1 to 4"]),
        ({"x": images(5)}, ["a batch of 5", "1 to 4", "batch-size=5"]),
    ],
)
def test_wrong_inputs_are_said(session, inputs, words):
    with pytest.raises(EngineError) as caught:
        session.run(inputs)
    for word in [*words, "m.onnx"]:
        assert word in str(caught.value)


def test_strided_and_read_only_inputs_run(session):
    x = images(4)[::2, ::-1]
    x.flags.writeable = False
    assert np.array_equal(session.run({"x": x})["doubled"], x * 2)


@settings(max_examples=examples(40))
@given(fixed=st.integers(1, 6), wanted=st.integers(1, 8), data=st.data())
def test_a_fixed_batch_gives_what_a_free_one_gives(tmp_path_factory, fixed, wanted, data):
    items = data.draw(st.integers(1, wanted))
    x = images(items, seed=fixed)
    folder = tmp_path_factory.getbasetemp()
    with session_of(image_model((fixed, 3, 4, 6)), folder, max_batch=wanted) as session:
        out = session.run({"x": x})
    assert np.array_equal(out["doubled"], x * 2)
    assert np.allclose(out["mean"][:, 0], x.mean(axis=(1, 2, 3)), atol=1e-6)


def test_surplus_outputs_of_a_padded_run_are_dropped(tmp_path):
    """SCH-007: a static batch of 8 runs whole for 3 items."""
    with session_of(image_model((8, 3, 4, 6)), tmp_path, max_batch=8) as session:
        runs = []
        runner = session._runner
        session._runner = Spy(runner, runs)
        assert session.run({"x": images(3)})["mean"].shape == (3, 1)
    assert runs == [8]


class Spy:
    def __init__(self, runner, runs):
        self.runner, self.runs = runner, runs

    def run(self, feeds, *, to_host=True):
        self.runs.append(len(feeds["x"]))
        return self.runner.run(feeds, to_host=to_host)

    def close(self):
        self.runner.close()


@pytest.mark.parametrize("elem_type", ["UINT8", "INT8", "INT32", "INT64", "UINT64"])
def test_float_images_are_rounded_and_saturated_for_integer_inputs(tmp_path, elem_type):
    model = image_model(elem_type=getattr(TensorProto, elem_type), scale=1.0)
    with session_of(model, tmp_path, max_batch=1) as session:
        x = np.zeros((1, 3, 4, 6), np.float32)
        x.flat[:8] = [1.4, 1.6, -0.4, 2.5, 300, -300, np.nan, np.inf]
        got = session.run({"x": x})["doubled"].ravel()[:8]
        kind = session.inputs[0].dtype
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    expected = [1, 2, 0, 2, min(300, high), max(-300, low), 0, high]
    assert np.allclose(got, np.float32(expected), rtol=1e-6)


def test_float_images_become_half_precision(tmp_path):
    model = image_model(elem_type=TensorProto.FLOAT16, scale=1.0)
    with session_of(model, tmp_path, max_batch=2) as session:
        x = images(2)
        assert session.inputs[0].dtype == np.float16
        got = session.run({"x": x})["doubled"]
        assert np.array_equal(got, x.astype(np.float16).astype(np.float32))
        assert np.array_equal(session.run({"x": x.astype(np.float16)})["doubled"], got)


def test_declared_integers_go_through_untouched(tmp_path):
    model = image_model(elem_type=TensorProto.UINT8, scale=1.0)
    with session_of(model, tmp_path) as session:
        x = np.arange(72, dtype=np.uint8).reshape(1, 3, 4, 6)
        assert (session.run({"x": x})["doubled"] == x).all()


def batch_last(tmp_path):
    model = model_of(
        [helper.make_node("Transpose", ["x"], ["y"], "turn", perm=[1, 0, 2, 3])],
        [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 4, 6])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )
    return session_of(model, tmp_path, max_batch=4)


def test_an_output_that_is_not_batch_first_is_refused(tmp_path):
    with batch_last(tmp_path) as session, pytest.raises(EngineError, match="'y' has shape 3x2x4x6"):
        session.run({"x": images(2)})


def test_steps_before_the_only_item_are_all_its_own(tmp_path):
    """As recognisers of text give them: [steps, batch, characters] of one image."""
    turn = helper.make_node("Transpose", ["x"], ["y"], perm=[3, 0, 1, 2])
    ends = [helper.make_tensor_value_info("x", FLOAT, [1, 3, 4, 6]),
            helper.make_tensor_value_info("y", FLOAT, [1, "steps"])]  # fmt: skip
    with session_of(model_of([turn], ends[:1], ends[1:]), tmp_path, max_batch=2) as session:
        x = images(2)
        out = session.run({"x": x})["y"]
        assert np.array_equal(out, x.transpose(0, 3, 1, 2)[:, :, None])


def test_a_failing_node_is_named(tmp_path):
    model = model_of(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], "baked_batch")],
        [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 4, 6])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 36])],
        [helper.make_tensor("shape", TensorProto.INT64, [2], [2, 36])],
    )
    named = pytest.raises(EngineError, match=r"node 'baked_batch' \(Reshape\)")
    with session_of(model, tmp_path, max_batch=4) as session, named as caught:
        session.run({"x": images(4)})
    assert "onnxruntime failed" in str(caught.value)


def test_submit_is_run_later_and_in_order(session):
    futures = [session.submit({"x": images(2, seed=i)}) for i in range(8)]
    for i, future in enumerate(futures):
        assert np.array_equal(future.result(30)["doubled"], images(2, seed=i) * 2)
    with pytest.raises(EngineError, match="missing input"):
        session.submit({}).result(30)


def test_several_threads_may_run_at_once(session):
    def work(seed):
        for _ in range(50):
            x = images(1 + seed % 4, seed=seed)
            np.testing.assert_array_equal(session.run({"x": x})["doubled"], x * 2)

    together(work, 6)


def test_closed_sessions_say_so(session):
    session.submit({"x": images(1)}).result(30)
    session.close()
    session.close()
    for call in (session.run, session.submit):
        with pytest.raises(EngineError, match="closed"):
            call({"x": images(1)})


def test_a_real_model_runs_like_the_runtime_itself(data_dir):
    import onnxruntime

    path = data_dir / "models" / "version-RFB-320.onnx"
    x = np.random.default_rng(0).normal(size=(1, 3, 240, 320)).astype(np.float32)
    raw = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = raw.run(["scores", "boxes"], {"input": x})
    with build(network_from_onnx(path)).open_session(threads=1) as session:
        got = session.run({"input": x})
    for want, name in zip(expected, ("scores", "boxes"), strict=True):
        assert np.allclose(got[name], want, atol=1e-4)


def test_running_leaves_the_arithmetic_of_the_caller_alone(session):
    # a runtime may switch subnormal numbers off for the whole thread that calls it
    session.run({"x": images(1)})
    assert np.float32(1e-40) * np.float32(0.5) != 0


def two_inputs(batch, second):
    return model_of(
        [helper.make_node("Add", ["x", "more"], ["y"], "add")],
        [
            helper.make_tensor_value_info("x", FLOAT, [batch, 3, 4, 6]),
            helper.make_tensor_value_info("more", FLOAT, second),
        ],
        [helper.make_tensor_value_info("y", FLOAT, [batch, 3, 4, 6])],
    )


def test_an_input_of_fixed_axes_serves_every_batch(tmp_path):
    with session_of(two_inputs("n", [6]), tmp_path, max_batch=4) as session:
        more = np.arange(6, dtype=np.float32)
        for count in (1, 3):
            x = images(count)
            assert np.array_equal(session.run({"x": x, "more": more})["y"], x + more)
        with pytest.raises(EngineError, match="'more' has shape 5"):
            session.run({"x": images(1), "more": more[:5]})


def texts_model(batch):
    """Texts to texts by a table, as the text half of a converter writes it."""
    names = {"keys_strings": ["a", "b"], "values_strings": ["x", "y"], "default_string": "?"}
    node = helper.make_node("LabelEncoder", ["t"], ["u"], domain="ai.onnx.ml", **names)
    ends = [helper.make_tensor_value_info(n, TensorProto.STRING, [batch, 2]) for n in "tu"]
    model = model_of([node], ends[:1], ends[1:])
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    return model


@pytest.mark.parametrize("batch", ["n", 2])
def test_texts_go_in_and_come_out(tmp_path, batch):
    plan = build(network_from_onnx(save(texts_model(batch), tmp_path / "m.onnx")),
                 BuildOptions(max_batch=3))  # fmt: skip
    plan.save(tmp_path / "m.engine")
    texts = [["a", "b"], ["c", ""], ["b", "b"]]
    with Plan.load(tmp_path / "m.engine").open_session(threads=1) as session:
        assert str(session.inputs[0]).startswith("t text[")
        for array in (np.array(texts), np.array(texts, object)):
            out = session.run({"t": array})["u"].tolist()
            assert out == [["x", "y"], ["?", "?"], ["y", "y"]]
        with pytest.raises(EngineError, match="'t' is float32"):
            session.run({"t": np.zeros((1, 2), np.float32)})


@pytest.mark.parametrize("batch", ["n", 2])
def test_batched_inputs_are_cut_and_padded_alike(tmp_path, batch):
    with session_of(two_inputs(batch, [batch, 1, 1, 1]), tmp_path, max_batch=3) as session:
        x = images(3)
        more = np.arange(3, dtype=np.float32).reshape(3, 1, 1, 1)
        assert np.array_equal(session.run({"x": x, "more": more})["y"], x + more)
        with pytest.raises(EngineError, match="'more' has shape 2"):
            session.run({"x": x, "more": more[:2]})
