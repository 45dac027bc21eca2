"""`headrace init --plugin` and `headrace trace-plugins`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

from headrace.cli.init import init
from headrace.errors import HeadraceError, ModelError
from tests.copies import copied_example
from tests.plugins.models import conv_plugin_conv, save
from tests.warm import headrace

ROOT = Path(__file__).parents[2]


@pytest.fixture
def with_template(tmp_path: Path) -> Path:
    """A model whose node is the template's plugin."""
    done = headrace("init", "--plugin", "MyLayer_TRT", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["mylayer_trt_plugin.py", "test_mylayer_trt_plugin.py"]
    made, _ = conv_plugin_conv("MyLayer_TRT", scale=2.0, bias=1.0)
    save(made, tmp_path, "model.onnx")
    return tmp_path


def passing(test: Path) -> str:
    """What pytest says about the tests of a file, which pass."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", test.name],
        cwd=test.parent, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_template_passes_its_own_test(with_template: Path) -> None:
    assert "1 passed" in passing(with_template / "test_mylayer_trt_plugin.py")


def test_what_init_says_to_try_works_without_pytest(tmp_path: Path) -> None:
    done = headrace("init", "--plugin", "MyLayer_TRT", "-o", "plugins", cwd=tmp_path)
    (hint,) = [line for line in done.stderr.splitlines() if line.startswith("try it: headrace ")]
    (tmp_path / "pytest.py").write_text("raise ModuleNotFoundError")
    words = hint.removeprefix("try it: headrace ").split()
    ran = headrace(*words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "MyLayer_TRT computes what it shall" in ran.stdout
    library = tmp_path / "plugins" / "mylayer_trt_plugin.py"
    library.write_text(library.read_text().replace("y[...] = x", "y[...] = 2 * x"))
    assert headrace(*words, cwd=tmp_path).returncode == 1


@pytest.mark.slow
def test_the_template_of_a_node_has_its_version(tmp_path: Path) -> None:
    made, _ = conv_plugin_conv("Sharp_TRT", scale=2.0)
    node = next(n for n in made.graph.node if n.op_type == "Sharp_TRT")
    node.attribute.append(onnx.helper.make_attribute("plugin_version", "2"))
    save(made, tmp_path, "model.onnx")
    done = headrace("init", "--plugin", "Sharp_TRT", "--model", "model.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    passing(tmp_path / "test_sharp_trt_plugin.py")


def test_a_trace_has_all_phases(with_template: Path) -> None:
    library = "mylayer_trt_plugin.py"
    done = headrace(
        "trace-plugins", "model.onnx", "--library", library, "--json", cwd=with_template
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    phases = list(dict.fromkeys(c["phase"] for c in told["calls"] if c["phase"] != "destroy"))
    assert phases == ["parse", "build", "save", "load", "run"]
    assert [c["method"] for c in told["calls"]].count("enqueue") == 2
    assert told["plugins"] == ["MyLayer_TRT version 1 (node 'scale', V3)"]
    text = headrace("trace-plugins", "model.onnx", "--library", library, "--phase", "run",
                 cwd=with_template)  # fmt: skip
    assert "enqueue" in text.stdout
    assert "create_plugin" not in text.stdout
    assert "0 failed" in text.stdout


@pytest.mark.slow
def test_a_trace_shows_what_failed(with_template: Path) -> None:
    library = with_template / "mylayer_trt_plugin.py"
    source = library.read_text().replace("y[...] = x", "y[...] = nothing")
    library.write_text(source)
    done = headrace("trace-plugins", "model.onnx", "--library", library, cwd=with_template)
    assert done.returncode == 5
    assert "1 failed: enqueue (run)" in done.stdout
    assert "NameError" in done.stdout
    assert "enqueue raised NameError" in done.stderr
    assert "mylayer_trt_plugin.py:" in done.stderr
    assert "Exception caught" not in done.stdout + done.stderr  # said once is enough
    built = headrace("trtexec", "--onnx=model.onnx", f"--plugins={library}", cwd=with_template)
    assert (built.stdout + built.stderr).count("NameError") == 1


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("os._exit(0)", "ended its process"),
        ("import ctypes; ctypes.CDLL(None).exit(0)", "ended its process"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.sampled
def test_a_trace_outlives_a_plugin_that_ends_the_process(
    with_template: Path, end: str, words: str, as_json: bool
) -> None:
    library = with_template / "mylayer_trt_plugin.py"
    source = library.read_text()
    assert "y[...] = x" in source
    library.write_text(source.replace("y[...] = x", f"import os; {end}; y[...] = x"))
    flags = ["--json"] if as_json else []
    done = headrace("trace-plugins", "model.onnx", "--library", library, *flags, cwd=with_template)
    assert done.returncode == 5, done.stderr
    assert words in done.stderr
    assert "enqueue (phase run, layer 'scale')" in done.stderr
    assert "create_plugin" in done.stdout
    if as_json:
        told = json.loads(done.stdout)
        assert told["unfinished"]["method"] == "enqueue"
        assert words in told["error"]
        assert [c["phase"] for c in told["calls"]].count("save") > 0


def test_a_trace_calls_plugins_by_their_names(with_template: Path) -> None:
    made, _ = conv_plugin_conv("LReLU_TRT", negSlope=0.1)
    save(made, with_template, "standard.onnx")
    done = headrace("trace-plugins", "standard.onnx", "--json", cwd=with_template)
    called = [(c["cls"], c["method"], c["result"]) for c in json.loads(done.stdout)["calls"]]
    assert ("LReLU_TRTCreator", "create_plugin", "LReLU_TRT#2") in called
    assert {cls for cls, _, _ in called} == {"LReLU_TRTCreator", "LReLU_TRT"}
    library = with_template / "mylayer_trt_plugin.py"
    done = headrace("trace-plugins", "model.onnx", "--library", library, cwd=with_template)
    assert "object at 0x" not in done.stdout
    assert "headrace_user" not in done.stdout


def test_a_trace_of_a_model_without_plugins_says_so(tmp_path: Path) -> None:
    _, plain = conv_plugin_conv()
    save(plain, tmp_path, "plain.onnx")
    done = headrace("trace-plugins", "plain.onnx", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "no calls: the model has no plugins"
    missing = headrace("trace-plugins", "none.onnx", cwd=tmp_path)
    assert missing.stdout == ""
    assert "none.onnx" in missing.stderr


def test_show_tells_plugins_from_unknown_operators(tmp_path: Path) -> None:
    made, _ = conv_plugin_conv("MyLayer_TRT")
    for number, (op, attributes) in enumerate(
        [("LReLU_TRT", {}), ("LReLU_TRT", {}), ("EfficientNMS_TRT", {"plugin_version": "7"})]
    ):
        node = onnx.helper.make_node(op, ["a"], [f"n{number}"], name=f"n{number}", **attributes)
        made.graph.node.append(node)
    save(made, tmp_path, "model.onnx")
    lines = headrace("show", "model.onnx", cwd=tmp_path).stdout.splitlines()
    rows = {key.strip(): value for key, _, value in (line.partition("  ") for line in lines)}
    assert rows["plugins"].strip() == "LReLU_TRT (standard, version 1): 'n0', 'n1'"
    unknown = rows["unknown operators"]
    assert "MyLayer_TRT: 'scale'; no plugin is there" in unknown
    assert "headrace init --plugin MyLayer_TRT" in unknown
    assert "EfficientNMS_TRT: 'n2'; the plugin is there as version 1" in unknown
    told = json.loads(headrace("show", "model.onnx", "--json", cwd=tmp_path).stdout)
    assert [p["name"] for p in told["plugins"]] == ["LReLU_TRT"]
    assert [u["name"] for u in told["unknown_operators"]] == ["MyLayer_TRT", "EfficientNMS_TRT"]


SCRIPT = """import sys
import tensorrt as trt


def inner(size):
    return [] [size]


class Failing(Exception):
    pass


if sys.argv[1] == "call":
    inner(3)
if sys.argv[1] == "cause":
    try:
        inner(3)
    except IndexError as error:
        raise Failing("of this") from error
if sys.argv[1] == "headrace":
    from headrace.errors import ModelError
    raise ModelError("a model")
sys.exit(int(sys.argv[1]))
"""


def test_a_script_that_fails_shows_its_own_lines_only(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    plain = (tmp_path / "script.py").read_text().replace("import tensorrt as trt\n", "\n")
    (tmp_path / "plain.py").write_text(plain)
    for word in ("call", "cause", "headrace"):
        done = headrace("exec", "script.py", word, cwd=tmp_path)
        python = subprocess.run(
            [sys.executable, "plain.py", word],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.stderr == python.stderr.replace("plain.py", "script.py")
        assert done.returncode == python.returncode == 1
    assert headrace("exec", "script.py", "7", cwd=tmp_path).returncode == 7
    (tmp_path / "script.py").write_text("def broken(:\n    pass\n")
    done = headrace("exec", "script.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "runpy" not in done.stderr


CREATOR = """\
import tensorrt as trt
trt.init_libnvinfer_plugins(None, "")
creator = trt.get_plugin_registry().get_plugin_creator("EfficientNMS_TRT", "1", "")
field = trt.PluginField("iou_threshold", 0.5, trt.PluginFieldType.FLOAT32)
print(creator.create_plugin("nms", trt.PluginFieldCollection([field])))
"""


def test_a_script_gets_none_from_a_creator_that_refuses(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(CREATOR)
    done = headrace("exec", "script.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    assert "[ERROR] Exception caught in create_plugin(): nms: field 'score" in done.stderr
    assert "expected score_threshold (FLOAT32" in done.stderr
    assert "it has 'iou_threshold'" in done.stderr


@pytest.mark.slow
def test_a_config_loads_the_plugins_it_names(with_template: Path) -> None:
    (with_template / "config.txt").write_text(
        "[property]\nonnx-file=model.onnx\nbatch-size=2\nnetwork-type=100\n"
        "custom-lib-path=mylayer_trt_plugin.py\n"
    )
    traced = headrace("trace-plugins", "config.txt", cwd=with_template)
    assert traced.returncode == 0, traced.stderr
    built = headrace("build", "config.txt", cwd=with_template)
    assert built.returncode == 0, built.stderr
    engine = built.stdout.strip()
    shown = headrace("show", engine, cwd=with_template)
    assert "MyLayer_TRT version 1" in shown.stdout
    again = headrace("build", "config.txt", cwd=with_template)
    assert "loaded" in again.stderr
    library = with_template / "mylayer_trt_plugin.py"
    library.write_text(library.read_text() + "# a remark\n")
    changed = headrace("build", "config.txt", cwd=with_template)
    assert "the code of plugin MyLayer_TRT changed" in changed.stderr
    (with_template / "without.txt").write_text(
        "[property]\nonnx-file=model.onnx\nbatch-size=2\nnetwork-type=100\n"
    )
    refused = headrace("build", "without.txt", "--rebuild", cwd=with_template)
    assert refused.returncode == 4
    assert "headrace init --plugin MyLayer_TRT" in refused.stderr


def test_a_template_takes_the_fields_of_a_node(tmp_path: Path) -> None:
    made, _ = conv_plugin_conv(
        "Odd_TRT", plugin_version="3", sizes=[1, 2], ratio=0.5, mode="fast", count=4, scales=[1.0]
    )
    path = save(made, tmp_path)
    run = CliRunner().invoke(
        init, ["--plugin", "Odd_TRT", "--model", str(path), "-o", str(tmp_path)],
        catch_exceptions=False,
    )  # fmt: skip
    assert run.exit_code == 0
    from headrace.engine.builder import BuildOptions, build
    from headrace.network import network_from_onnx
    from headrace.plugins import PluginRegistry

    registry = PluginRegistry()
    registry.load_library(tmp_path / "odd_trt_plugin.py")
    plan = build(network_from_onnx(path), BuildOptions(registry=registry))
    assert plan.header.plugins[0].version == "3"
    creator = registry.find("Odd_TRT", "3")
    plugin = creator.create_plugin("x", [], 0)
    assert (plugin.sizes, plugin.ratio, plugin.mode, plugin.count) == ((1,), 1.0, "", 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Conv", "warning: Conv is an operator of ONNX"),
        ("EfficientNMS_TRT", "warning: headrace has a plugin EfficientNMS_TRT, version 1, already"),
        ("MyLayer_TRT", ""),
    ],
)
def test_init_warns_of_what_is_there_already(tmp_path: Path, name: str, words: str) -> None:
    run = CliRunner().invoke(init, ["--plugin", name, "-o", str(tmp_path)], catch_exceptions=False)
    assert run.exit_code == 0
    assert words in run.stderr
    assert ("warning" in run.stderr) == bool(words)
    assert (tmp_path / f"{name.lower()}_plugin.py").exists()


def test_what_init_refuses(tmp_path: Path) -> None:
    def run(*words: str) -> None:
        CliRunner().invoke(init, [*words, "-o", str(tmp_path)], catch_exceptions=False)

    run("--plugin", "A")
    with pytest.raises(HeadraceError, match="are there already"):
        run("--plugin", "A")
    run("--plugin", "A", "--force")
    with pytest.raises(HeadraceError, match="cannot be the name of a plugin"):
        run("--plugin", "a b")
    path = save(conv_plugin_conv("Other_TRT")[0], tmp_path)
    with pytest.raises(ModelError, match="no node is a B"):
        run("--plugin", "B", "--model", str(path))


def test_trtexec_loads_plugins(with_template: Path) -> None:
    words = ["--onnx=model.onnx", "--iterations=5", "--duration=0", "--warmUp=0"]
    done = headrace("trtexec", *words, "--plugins=mylayer_trt_plugin.py", "--dumpProfile",
                 cwd=with_template)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Loading supplied plugin library: mylayer_trt_plugin.py" in done.stdout
    assert "no profile of the layers: plugins compute between" in done.stderr
    refused = headrace("trtexec", *words, cwd=with_template)
    assert refused.returncode == 1
    assert "MyLayer_TRT" in refused.stderr


PLUGIN = """
from headrace.plugins.decorators import Tensor, TensorDesc, impl, register


@register("mine::Same")
def same(x: TensorDesc) -> TensorDesc:
    return x.like()


@impl("mine::Same")
def same_impl(x: Tensor, outputs: tuple[Tensor], stream: int):
    outputs[0].numpy()[...] = x.numpy()
"""


@pytest.mark.slow
def test_a_pipeline_with_a_plugin_in_the_parser_s_file(tmp_path: Path) -> None:

    import onnx

    scene = tmp_path / "conveyor"
    copied_example("conveyor", scene)
    config = "config_infer_primary.txt"
    plain = headrace("run", config, "conveyor.mp4", "-o", "plain.jsonl", cwd=scene)
    assert plain.returncode == 0, plain.stderr
    model = onnx.load(scene / "detector.onnx")
    nodes = list(model.graph.node)
    middle = len(nodes) // 2
    before = nodes[middle].output[0]
    for node in nodes[middle + 1 :]:
        node.input[:] = ["same" if name == before else name for name in node.input]
    plugin = onnx.helper.make_node("Same", [before], ["same"], plugin_namespace="mine")
    del model.graph.node[:]
    model.graph.node.extend([*nodes[: middle + 1], plugin, *nodes[middle + 1 :]])
    onnx.save(model, scene / "detector.onnx")
    with (scene / "conveyor_parser.py").open("a") as parser:
        parser.write(PLUGIN)
    done = headrace("run", config, "conveyor.mp4", "-o", "plugin.jsonl", cwd=scene)
    assert done.returncode == 0, done.stderr
    assert (scene / "plugin.jsonl").read_bytes() == (scene / "plain.jsonl").read_bytes()
    engine = next(scene.glob("detector*.engine"))
    assert "Same version 1" in headrace("show", engine, cwd=scene).stdout
