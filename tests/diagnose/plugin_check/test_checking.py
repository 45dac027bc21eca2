"""Planted faults, one a clause, and sound plugins."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from headrace.config import ModelConfig
from headrace.diagnose.plugin_check import CLAUSES, PluginReport, check_library, checking, subjects
from headrace.diagnose.plugin_check.breach import Breach
from headrace.diagnose.plugin_check.clauses import OF_METHODS
from headrace.diagnose.plugin_check.subjects import parsed_field, parsed_input, sized
from headrace.engine import BuildOptions, build
from headrace.engine.precision import CalibrationTable
from headrace.errors import ConfigError, CustomLibraryError, PluginError
from headrace.plugins.registry import get_plugin_registry
from headrace.trt.host import plugins as host_plugins
from tests.plugins.models import conv_plugin_conv, model, network, save
from tests.trt.host.conftest import SOURCES as HOST_SOURCES
from tests.trt.host.conftest import Compile

SOURCE = Path(__file__).parent / "sources" / "faults.cpp"
PAGE = Path(__file__).parents[3] / "docs" / "cli" / "check-plugin.md"
INPUTS = [(np.dtype(np.float32), (2, 3, 17, 13))]
V2 = {
    "kCloneItself": "clone",
    "kCloneForgets": "clone-same",
    "kCloneLosesNamespace": "clone-namespace",
    "kNamespaceIgnored": "namespace",
    "kOtherType": "names",
    "kNoOutputs": "outputs-count",
    "kOutputsChange": "outputs-count",
    "kTypesChange": "output-types",
    "kNegativeShape": "output-shapes",
    "kShapesChange": "output-shapes",
    "kNoFormats": "formats",
    "kFormatsLookAhead": "formats-pure",
    "kFormatsChange": "formats-same",
    "kInitializeFails": "initialize",
    "kInitializeOnce": "initialize",
    "kSmallWorkspace": "workspace-bounds",
    "kWorkspaceKept": "workspace-content",
    "kEnqueueFails": "enqueue",
    "kEnqueueThrows": "exceptions",
    "kWritesNothing": "outputs-written",
    "kLeavesLast": "outputs-written",
    "kAccumulates": "outputs-written",
    "kWritesBehind": "outputs-bounds",
    "kWritesBefore": "outputs-bounds",
    "kWritesInput": "inputs-read-only",
    "kReadsBehind": "inputs-bounds",
    "kReadsFarBehind": "inputs-bounds",
    "kKeepsAddresses": "addresses-kept",
    "kCounts": "deterministic",
    "kNotSet": "deterministic",
    "kSharedState": "contexts",
    "kFirstShape": "shape-change",
    "kWritesLess": "serialize-size",
    "kWritesMore": "serialize-size",
    "kSerializeVaries": "serialize-same",
    "kSavesNoFactor": "deserialize-same",
    "kSavesPointer": "deserialize-same",
    "kLoadsNull": "deserialize",
    "kReadsPastData": "deserialize-lent",
    "kKeepsData": "deserialize-lent",
    "kKeepsField": "fields-lent",
    "kByIndex": "create-by-name",
    "kLeaksClone": "leaks",
    "kLeaksEnqueue": "leaks",
    "kDestroysTwice": "destroy",
    "kSharesWithClone": "destroy",
}
V3 = {
    "kCloneItself": "clone",
    "kCloneForgets": "clone-same",
    "kOtherType": "names",
    "kWrongInterface": "capabilities",
    "kNullSaved": "serialize-fields",
    "kAttachItself": "attach",
    "kAttachForgets": "attach",
    "kTacticsDiffer": "tactics",
    "kTacticsTwice": "tactics",
    "kTacticRefused": "tactics",
    "kLoadsNull3": "deserialize",
    "kConfigureFails": "configure",
    "kNoLimit": "format-limit",
    "kFirstShape": "shape-change",
    "kSavesNoFactor": "deserialize-same",
    "kKeepsField": "fields-lent",
    "kWritesBehind": "outputs-bounds",
    "kCounts": "deterministic",
}
DANGLING = ("kKeepsField", "kKeepsData", "kSharesWithClone", "kNotSet")
"""What stands in their memory is not theirs to say: another clause may see it change, too."""
CASES = [("Faulty2", *one) for one in V2.items()] + [("Faulty3", *one) for one in V3.items()]
NUMBERS = {
    name: number
    for number, name in enumerate(
        re.findall(r"k\w+", SOURCE.read_text().split("enum Fault")[1].partition("}")[0])
    )
}


@pytest.fixture(scope="session")
def faults(compile_host: Compile) -> Path:
    return compile_host(str(SOURCE))


def reported(library: Path, plugin: str, fault: str) -> PluginReport:
    fields = {"fault": NUMBERS[fault], "factor": 3.0}
    (report,) = check_library(library, inputs=INPUTS, fields=fields, only=[plugin])
    return report


@pytest.mark.sampled
@pytest.mark.parametrize(("plugin", "fault", "clause"), CASES)
def test_planted_faults_are_named_by_their_clause(
    faults: Path, plugin: str, fault: str, clause: str
) -> None:
    report = reported(faults, plugin, fault)
    clauses = [b.clause for b in report.breaches]
    assert clauses, report
    assert clauses[0] == clause or (fault in DANGLING and clause in clauses), report
    errors = [b for b in report.breaches if b.level == "error"]
    assert report.passed is not bool(errors)


@pytest.mark.slow
def test_a_clone_without_a_namespace_that_nobody_set_is_a_warning(faults: Path) -> None:
    report = reported(faults, "Faulty2", "kCloneLosesNamespace")
    assert [(b.clause, b.level) for b in report.breaches] == [("clone-namespace", "warning")]
    assert report.passed


@pytest.mark.slow
def test_lent_data_is_named_where_what_was_kept_of_it_changed(
    faults: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Breach("deterministic", "the same inputs again: 7, not 3")
    monkeypatch.setattr(checking, "_ENQUEUE", ("enqueue", lambda subject: [other]))
    report = reported(faults, "Faulty3", "kKeepsField")
    assert [b.clause for b in report.breaches] == ["deterministic", "fields-lent"]
    assert "lent data" not in report.skipped


NO_GPU = "there is no NVIDIA driver"


@pytest.mark.slow
def test_kernels_that_cannot_be_launched_are_not_run_to_find_inputs(
    faults: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    monkeypatch.setattr(subjects, "_runs", lambda subject: ran.touch())
    fields = {"fault": 0, "factor": 3.0}
    check_library(faults, fields=fields, only=["Faulty3"])
    assert ran.exists()
    ran.unlink()
    monkeypatch.setattr(subjects, "gpu_evidence", lambda path: "it has code for a GPU")
    monkeypatch.setattr(subjects, "why_no_gpu", lambda: NO_GPU)
    (report,) = check_library(faults, fields=fields, only=["Faulty3"])
    assert [(b.clause, b.level) for b in report.breaches] == [("gpu", "warning")]
    assert not ran.exists()


def test_a_creator_that_fails_says_that_there_is_no_gpu(
    faults: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    null = Breach("create", "createPlugin returned null")
    monkeypatch.setattr(subjects, "in_copy", lambda act: (False, null))
    monkeypatch.setattr(subjects, "gpu_evidence", lambda path: "it has code for a GPU")
    monkeypatch.setattr(subjects, "why_no_gpu", lambda: NO_GPU)
    (report,) = check_library(faults, fields={"factor": 3.0}, only=["Faulty3"])
    events = [b.event for b in report.breaches]
    assert events == [f"{null.event}; it has code for a GPU, and {NO_GPU}"]


@pytest.mark.parametrize(
    ("fault", "event"),
    [("kWritesNothing", "wrote nothing to its output"), ("kEnqueueFails", r"returned \d+")],
)
def test_a_run_whose_kernels_cannot_be_launched_says_so(
    faults: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, event: str
) -> None:
    monkeypatch.setattr(host_plugins, "look_at", lambda image, path: "it has code for a GPU")
    monkeypatch.setattr(host_plugins, "why_no_gpu", lambda: NO_GPU)
    registry = get_plugin_registry()
    before = registry.all_creators
    registry.load_library(faults)
    number = NUMBERS[fault]
    node = helper.make_node("Faulty2", ["x"], ["y"], name="one", fault=number, factor=3.0)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, 4, 4]) for n in "xy"]
    plan = build(network(model([node], ends[:1], ends[1:]), tmp_path), BuildOptions())
    with (
        plan.open_session() as session,
        pytest.raises(PluginError, match=f"{event}: it has .* and {NO_GPU}"),
    ):
        session.run({"x": np.ones((1, 3, 4, 4), np.float32)})
    for creator in registry.all_creators:
        if creator not in before:
            registry.deregister_creator(creator)


@pytest.mark.slow
@pytest.mark.parametrize("plugin", ["Faulty2", "Faulty3"])
@pytest.mark.sampled
def test_without_a_fault_nothing_is_found(faults: Path, plugin: str) -> None:
    report = reported(faults, plugin, "kNone")
    assert report.passed
    assert not report.breaches
    assert not report.skipped
    assert not report.guessed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plugin", "clause", "level"),
    [
        ("NullFields", "fields", "warning"),
        ("NoName", "fields", "error"),
        ("Twice", "fields", "error"),
        ("Nowhere", "fields", "error"),
        ("NeedsFields", "create-defaults", "warning"),
        ("AssertsFields", "create-defaults", "warning"),
    ],
)
@pytest.mark.sampled
def test_faults_of_creators(faults: Path, plugin: str, clause: str, level: str) -> None:
    fields = {"fault": 0, "factor": 3.0}
    (report,) = check_library(faults, inputs=INPUTS, fields=fields, only=[plugin])
    assert (clause, level) in [(b.clause, b.level) for b in report.breaches]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("source", ["swish.cpp", "twins.cpp", "forms.cpp"])
def test_sound_plugins_of_every_class_pass_without_being_told_their_inputs(
    compile_host: Compile,
    source: str,
) -> None:
    reports = check_library(compile_host(str(HOST_SOURCES / source)))
    assert all(r.passed for r in reports), [str(r) for r in reports]
    assert all(r.guessed == ["inputs"] for r in reports)
    assert {b.clause for r in reports for b in r.breaches} <= {"namespace"}


PYTHON = """
import numpy as np
from headrace.plugins import *

kept = []

class Faulty(IPluginV2DynamicExt):
    def __init__(self):
        IPluginV2DynamicExt.__init__(self)
        self.plugin_type, self.plugin_version, self.plugin_namespace = "Faulty", "1", ""
        self.num_outputs = 1
        self.calls = 0
        if FAULT == "leaks": kept.append(self)
    def clone(self):
        if FAULT == "clone": return self
        made = Faulty()
        made.__dict__.update(self.__dict__)
        return made
    def get_output_dimensions(self, index, inputs, builder): return inputs[0]
    def get_output_datatype(self, index, types):
        return "float" if FAULT == "output-types" else types[0]
    def supports_format_combination(self, pos, descs, count):
        return descs[pos].type == DataType.FLOAT and descs[pos].format == TensorFormat.LINEAR
    def configure_plugin(self, inputs, outputs): pass
    def get_workspace_size(self, inputs, outputs): return 0
    def serialize(self): return b""
    def enqueue(self, inputs, outputs, ins, outs, workspace, stream):
        shape = tuple(inputs[0].dims)
        more = (shape[0] + 1, *shape[1:]) if FAULT == "inputs-bounds" else shape
        x = array_at(ins[0], more, np.float32, writable=FAULT == "inputs-read-only")[: shape[0]]
        if FAULT == "enqueue": raise ValueError("no room")
        self.calls += 1
        y = array_at(outs[0], shape, np.float32, writable=True)
        if FAULT != "outputs-written":
            y[...] = 2 * x + (self.calls if FAULT == "deterministic" else 0)

class FaultyCreator(IPluginCreator):
    def __init__(self):
        IPluginCreator.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "Faulty", "1", ""
        self.field_names = PluginFieldCollection([])
    def create_plugin(self, name, fields): return Faulty()
    def deserialize_plugin(self, name, data): return Faulty()
"""


@pytest.mark.parametrize(
    "fault",
    ["", "clone", "leaks", "output-types", "inputs-bounds", "inputs-read-only", "enqueue",
     "deterministic", "outputs-written"],
)  # fmt: skip
@pytest.mark.sampled
def test_python_plugins(tmp_path: Path, fault: str) -> None:
    path = tmp_path / f"faulty_{fault.replace('-', '_')}.py"
    path.write_text(f"FAULT = {fault!r}\n{PYTHON}")
    (report,) = check_library(path, inputs=INPUTS)
    assert [b.clause for b in report.breaches] == [fault] * bool(fault), report


def test_a_plugin_that_takes_int8_alone_has_scales(tmp_path: Path) -> None:
    path = tmp_path / "eight_bits.py"
    source = PYTHON.replace("DataType.FLOAT", "DataType.INT8").replace("float32", "int8")
    path.write_text(f"FAULT = ''\n{source}")
    (report,) = check_library(path)
    assert report.passed, report
    assert "enqueue" in report.checked


def test_the_model_of_a_config_is_built_in_its_precision(tmp_path: Path) -> None:
    made, _ = conv_plugin_conv("Faulty")
    save(made, tmp_path, "model.onnx")
    table = CalibrationTable.of({"a": 0.25, "b": 0.5})
    table.save(tmp_path / "model.calib")
    (tmp_path / "config.txt").write_text(
        "[property]\nonnx-file=model.onnx\nnetwork-mode=1\nint8-calib-file=model.calib\n"
    )
    _, options = subjects.of_config(ModelConfig.load(tmp_path / "config.txt"))
    assert (options.precision, options.rules.scales) == ("int8", table.scales)


def test_the_page_lists_every_clause() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.M)
    assert {name: (methods, text) for name, methods, text in rows} == CLAUSES, "make schema"
    assert set(OF_METHODS.values()) <= set(CLAUSES)


def test_inputs_and_fields_are_read() -> None:
    assert parsed_input("int32:2x3") == (np.dtype(np.int32), (2, 3))
    assert parsed_input("7") == (np.dtype(np.float32), (7,))
    assert parsed_field("a=[1, 2]") == ("a", [1, 2])
    assert parsed_field("a=b=c") == ("a", "b=c")
    for text in ("2x", "floaty:2", "float32:2x-3", ""):
        with pytest.raises(ConfigError, match="--input"):
            parsed_input(text)
    with pytest.raises(ConfigError, match="--field"):
        parsed_field("alpha")


def test_the_batch_differs_and_other_axes_stay() -> None:
    f32 = np.dtype(np.float32)
    specs, sizes = sized([(f32, (2, 3)), (f32, (4, 4)), (f32, (2,))])
    assert [s.shape for s in specs] == [(None, 3), (4, 4), (None,)]
    assert sizes == (((1, 3), (4, 4), (1,)), ((2, 3), (4, 4), (2,)), ((5, 3), (4, 4), (5,)))


def test_a_file_without_plugins_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nothing.py"
    path.write_text("x = 1\n")
    with pytest.raises(CustomLibraryError, match="no plugin"):
        check_library(path)
