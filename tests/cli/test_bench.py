"""`headrace build` with its options, `headrace bench`, and what `headrace show` says of engines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click
import numpy as np
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from headrace.cli import main
from headrace.cli.output import FiniteRange
from headrace.engine.backends import RunnerOptions
from headrace.engine.bench import bench
from headrace.engine.session import Session
from headrace.network.tensor_spec import TensorSpec
from tests import inside
from tests.infer.recognise.test_recognise import yolov8
from tests.network.onnx_models import model_of, save

Config = Callable[..., Path]


@pytest.fixture
def headrace(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command with a timing cache of its own."""

    def run(*args: object) -> subprocess.CompletedProcess[str]:
        return inside.headrace(*args, HEADRACE_TIMING_CACHE=str(tmp_path / "timings"))

    return run


Headrace = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.slow
def test_tuning_is_shown_and_known_the_next_time(mean_config: Config, headrace: Headrace) -> None:
    config = mean_config()
    done = headrace("build", config, "--tune", "20")
    assert done.returncode == 0, done.stderr
    assert "tuned for throughput: " in done.stderr
    engine = Path(done.stdout.strip())
    again = headrace("build", config, "--tune", "20", "--rebuild", "--json")
    told = json.loads(again.stdout)
    assert any("known from the timing cache" in n["message"] for n in told["notices"])
    assert sum(t["chosen"] for t in told["tactics"]) == 1
    assert len(told["tactics"]) >= 2

    shown = headrace("show", engine)
    assert "tuned for throughput, batch 1, on " in shown.stdout
    for tactic in told["tactics"]:
        assert tactic["tactic"] in shown.stdout
    assert shown.stdout.count("\n*") == 1
    data = json.loads(headrace("show", engine, "--json").stdout)
    assert data["tuning"]["cached"]
    assert data["tactic"] == next(t["tactic"] for t in data["tactics"] if t["chosen"])


@pytest.mark.slow
def test_a_pinned_tactic_is_shown(mean_config: Config, headrace: Headrace) -> None:
    tactic = "onnxruntime:threads=1,streams=2,optimization=basic"
    done = headrace("build", mean_config(), "--tactic", tactic)
    assert done.returncode == 0, done.stderr
    assert tactic in headrace("show", done.stdout.strip()).stdout


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--backend", "tvm"], 4, "no runtime is called 'tvm'"),
        (["--tactic", "onnxruntime:speed=9"], 4, "speed=9"),
        (["--tactic", "onnxruntime", "--tune"], 2, "choose one"),
        (["--retime"], 2, "need --tune"),
        (["--tune", "0"], 2, "0.1<=x"),
    ],
)
@pytest.mark.sampled
def test_wrong_options_are_named(
    mean_config: Config, headrace: Headrace, options: list[str], code: int, words: str
) -> None:
    done = headrace("build", mean_config(), *options)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_bench_of_a_config_tells_stages(mean_config: Config, headrace: Headrace) -> None:
    done = headrace("bench", mean_config(batch_size=2), "--duration", "0.3")
    assert done.returncode == 0, done.stderr
    for word in ("items/s", "99% ms", "config.txt", "preprocess", "infer", "attach"):
        assert word in done.stdout


@pytest.mark.slow
def test_bench_compares_engines_and_tactics(mean_config: Config, headrace: Headrace) -> None:
    config = mean_config(batch_size=2)
    engine = headrace("build", config).stdout.strip()
    tactics = ["--tactic", "onnxruntime", "--tactic", "onnxruntime:threads=1,streams=2"]
    done = headrace("bench", config, engine, *tactics, "--no-stages", "--duration", "0.3", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["stages_ms_per_frame"] == {}
    assert [(r["streams"], r["items"]) for r in told["engines"]] == [(1, 2), (2, 2)] * 2
    for row in told["engines"]:
        assert 0 < row["min_ms"] <= row["percentiles_ms"]["50"] <= row["percentiles_ms"]["99"]
        assert row["percentiles_ms"]["99"] <= row["max_ms"]
        assert row["items_per_s"] > 0
        assert row["runs"] >= 3


def test_bench_refuses_what_the_engine_does_not_take(
    mean_config: Config, headrace: Headrace
) -> None:
    done = headrace("bench", mean_config(), "--batch", "8", "--no-stages")
    assert done.returncode == 4
    assert "a batch of 8" in done.stderr
    assert headrace("bench", mean_config(), "--tactic", "x", "--threads", "1").returncode == 2
    assert headrace("bench").returncode == 2
    assert headrace("bench", "nothing.engine").returncode == 4


@pytest.mark.slow
def test_a_model_on_objects_has_no_stages(mean_config: Config, headrace: Headrace) -> None:
    done = headrace("bench", mean_config(process_mode=2), "--duration", "0.3", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stages_ms_per_frame"] == {}


@pytest.mark.slow
def test_bench_of_models(mean_config: Config, headrace: Headrace) -> None:
    model = mean_config().parent / "mean.onnx"
    before = sorted(model.parent.iterdir())
    done = headrace("bench", model, model, "--batch", "3", "--duration", "0.3", "--json")
    assert done.returncode == 0, done.stderr
    engines = json.loads(done.stdout)["engines"]
    assert [e["items"] for e in engines] == [3, 3]
    assert len({e["name"] for e in engines}) == 2
    assert sorted(model.parent.iterdir()) == before


@pytest.mark.slow
def test_bench_of_models_that_leave_axes_free(tmp_path: Path, headrace: Headrace) -> None:
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["n", "length"])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", "length", 4])
    table = numpy_helper.from_array(np.ones((3, 4), np.float32), "table")
    gather = helper.make_node("Gather", ["table", "tokens"], ["rows"])
    model = save(model_of([gather], [tokens], [rows], [table]), tmp_path / "m.onnx")
    done = headrace("bench", model, "--batch", "2", "--duration", "0.3", "--json")
    assert done.returncode == 0, done.stderr
    assert "--shapes tokens:2x512" in done.stderr
    done = headrace("bench", model, "--shapes", "tokens:1x7", "--duration", "0.3", "--json")
    assert done.returncode == 0, done.stderr
    assert "--shapes" not in done.stderr
    for shapes, words in (("a:b", "expected NAME"), ("x:1", "no input is called 'x'"),
                          ("tokens:1x2x3", "does not take the shape 1x2x3")):  # fmt: skip
        done = headrace("bench", model, "--shapes", shapes, "--duration", "0.3")
        assert done.returncode != 0
        assert words in done.stderr


def test_bench_of_texts_of_one_axis(tmp_path: Path, headrace: Headrace) -> None:
    names = {"keys_strings": ["a"], "values_floats": [1.0], "default_float": 0.5}
    node = helper.make_node("LabelEncoder", ["t"], ["y"], domain="ai.onnx.ml", **names)
    ends = [helper.make_tensor_value_info("t", TensorProto.STRING, ["n"]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])]  # fmt: skip
    model = model_of([node], ends[:1], ends[1:])
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    done = headrace("bench", save(model, tmp_path / "m.onnx"), "--duration", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    assert "--shapes t:1" in done.stderr


def test_dynamic_batch_is_built_and_run(tmp_path: Path, headrace: Headrace) -> None:
    from tests.network.onnx_models import image_model, save

    save(image_model((1, 3, 4, 6)), tmp_path / "m.onnx")
    config = tmp_path / "c.txt"
    config.write_text("[property]\nonnx-file=m.onnx\nbatch-size=4\nnetwork-type=100\n")
    done = headrace("build", config, "--dynamic-batch")
    assert done.returncode == 0, done.stderr
    assert "a batch of 2 gives what two runs of 1 give" in done.stderr
    shown = json.loads(headrace("show", done.stdout.strip(), "--json").stdout)
    assert shown["fixed_batch"] is None


@pytest.mark.slow
def test_items_of_a_fixed_batch_are_all_run() -> None:
    """Items that are counted are run: eight of them take eight goes of a model that fixes one."""
    runs: list[int] = []

    class Counting:
        inputs = (TensorSpec("x", np.dtype(np.float32), (1, 3, 4, 4)),)
        batched_inputs = ("x",)
        fixed_batch, max_batch, options = 1, 8, RunnerOptions()

        def run(self, feeds: Any) -> None:
            runs.append(len(feeds["x"]))

    (result,) = bench({"x": cast(Session, Counting())}, items=8, duration_s=0.3)
    assert result.items == 8
    assert set(runs) == {8}


@pytest.mark.parametrize(
    "words",
    [
        ("build", "c.txt", "--tune", "nan"),
        ("bench", "c.txt", "--duration", "nan"),
        ("calibrate", "c.txt", "--images", ".", "--percentile", "nan"),
        ("inspect", "c.so", "--timeout", "nan"),
    ],
)
def test_nan_is_in_no_range(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "nan is not in the range" in done.stderr


def test_what_is_infinite_is_in_no_range() -> None:
    with pytest.raises(click.BadParameter, match="inf is not in the range x>=0"):
        FiniteRange(0).convert("inf", None, None)


def test_a_model_that_noise_does_not_suit_names_what_to_try(tmp_path: Path) -> None:
    model = model_of(
        [helper.make_node("Reshape", ["x", "sevens"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, None])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 7])],
        [numpy_helper.from_array(np.array([-1, 7]), "sevens")],
    )
    path = save(model, tmp_path / "sevens.onnx")
    runner = CliRunner()
    done = runner.invoke(main, ["bench", str(path), "--duration", "0.1"])
    assert done.exit_code == 4
    assert "--shapes gives inputs other lengths" in done.output
    assert "--loadInputs=NAME:FILE" in done.output
    done = runner.invoke(main, ["bench", str(path), "--duration", "0.1", "--shapes", "x:1x14"])
    assert done.exit_code == 0, done.output


def test_images_of_any_size_are_timed_as_a_run_takes_them(tmp_path: Path) -> None:
    path = yolov8(tmp_path / "free.onnx", size=("height", "width"), imgsz="[96, 64]")
    done = CliRunner().invoke(main, ["bench", str(path), "--duration", "0.1"])
    assert done.exit_code == 0, done.output
    assert ":1x3x96x64" in done.output
