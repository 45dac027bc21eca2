"""Linting of files: right set-ups are let alone, planted mistakes found, folders walked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from headrace._core.errors import ConfigError, HeadraceError
from headrace.diagnose.lint.catalogue import Example
from headrace.diagnose.lint.linting import Linter, LintReport
from headrace.diagnose.lint.targets import TARGETS
from tests.diagnose.lint.models import put_model
from tests.diagnose.lint.setups import BASES, write_example
from tests.infer.recognise.models import rows_of
from tests.mistakes import correct, mistakes
from tests.mistakes.cases import Case

SCENE = Path(__file__).parents[3] / "examples" / "conveyor"
_CONFIGS = (".txt", ".yml", ".onnx")
# those whose mistake lies in the command line, the images, or in how the model answers
_FOUND = 115


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "images").mkdir()
    return folder


def _lint(case: Case, folder: Path, store: Path) -> LintReport:
    for name in {*case.setup.models, *case.models}:
        made = case.models.get(name, name)
        if made.endswith(".onnx") and not (store / made).exists():
            put_model(made, folder.parent / "unused", store)
        elif not (store / made).exists():
            (store / made).write_bytes(b"ftrt" + bytes(64))
    case.write(folder, store)
    command = yaml.safe_load((folder / "case.yml").read_text())["command"]
    inputs = command[1 : command.index("-o")] if "-o" in command else command[1:]
    paths = [folder / name for name in inputs if name.endswith(_CONFIGS)]
    return Linter().lint(paths, together=len(paths) > 1)


def test_right_set_ups_are_let_alone(store: Path, tmp_path: Path) -> None:
    alarms = {}
    for case in correct.CASES:
        if "--set" in case.command:
            continue  # right by its command line alone
        report = _lint(case, tmp_path / case.name, store)
        if found := [f for f in report.findings if f.severity != "note"]:
            alarms[case.name] = found
    assert len(correct.CASES) >= 30
    assert not alarms


@pytest.mark.slow
def test_most_planted_mistakes_are_found_without_a_run(store: Path, tmp_path: Path) -> None:
    found = []
    for case in mistakes.CASES:
        report = _lint(case, tmp_path / case.name, store)
        texts = [f"{f.where} {f.finding}" for f in report.findings
                 if f.severity != "note"]  # fmt: skip
        said = " ".join(texts).replace(str(tmp_path / case.name), ".").lower()
        if all(any(p in said for p in word.lower().split("|")) for word in case.words):
            found.append(case.name)
    assert len(found) >= _FOUND, sorted({case.name for case in mistakes.CASES} - {*found})


def test_a_folder_is_searched_and_a_config_of_a_pipeline_is_reported_once(
    store: Path, tmp_path: Path
) -> None:
    example = Example("app", wrong=("config.txt:topk=5", "sink0.typ=1"))
    write_example(example, tmp_path / "all" / "deep", store, wrong=True)
    (tmp_path / "all" / "notes.txt").write_text("no config\n")
    report = Linter().lint([tmp_path / "all"])
    assert {path.name for path in report.files} == {"config.txt", "config_app.txt"}
    unknown = [f for f in report.findings if f.code == "unknown-key"]
    assert [(f.place.path and f.place.path.name) for f in unknown] == [
        "config.txt",
        "config_app.txt",
    ]


def test_a_preparation_makes_the_tensors_of_a_pipeline(store: Path, tmp_path: Path) -> None:
    put_model("yolov8.onnx", tmp_path / "m.onnx", store)
    (tmp_path / "c.txt").write_text(
        "[property]\nonnx-file=m.onnx\ninput-tensor-from-meta=1\nnetwork-type=100\n"
    )
    (tmp_path / "p.txt").write_text("[property]\n")
    codes = []
    for more in ("", "    preprocess: p.txt\n"):
        (tmp_path / "p.yml").write_text(f"sources: [a.mp4]\nmodels:\n  - config: c.txt\n{more}")
        report = Linter().lint([tmp_path / "p.yml"])
        codes.append("tensors-from-nowhere" in {f.code for f in report.findings})
    assert codes == [True, False]


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no config"):
        Linter().lint([tmp_path])


def test_a_model_alone_is_linted(store: Path, tmp_path: Path) -> None:
    faults = {
        "nan.onnx": ["weights-not-finite"],
        "plugin.onnx": ["operator-unknown"],
        "cut.onnx": ["model-unreadable"],
        "two_inputs.onnx": ["bare-refused"],
        "sized.onnx": [],
        "vector.onnx": ["bare-refused"],
        "yolov8.onnx": [],
    }
    for name, rules in faults.items():
        put_model(name, tmp_path / name, store)
        assert [f.code for f in Linter().lint([tmp_path / name]).findings] == rules


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_a_map_of_class_numbers_without_a_parser_is_refused_as_a_run_does(
    tmp_path: Path, dtype: type
) -> None:
    rows_of(tmp_path / "map.onnx", np.zeros((1, 3, 64, 64), dtype), names=["argmax"])
    config = tmp_path / "config.txt"
    keys = "gie-unique-id=1\nonnx-file=map.onnx\nnetwork-type=2\nnum-detected-classes=3\n"
    config.write_text(f"[property]\n{keys}")
    found = [str(f) for f in Linter().lint([config]).findings if f.severity == "error"]
    assert any("HeadraceParseClassMap" in text for text in found) is (dtype is not np.float32)


def test_an_absent_id_is_one_finding_however_it_is_linted(store: Path, tmp_path: Path) -> None:
    example = Example("yolov8", wrong=("-gie-unique-id",))
    paths = [tmp_path / name / "config.txt" for name in "ab"]
    for path in paths:
        write_example(example, path.parent, store, wrong=True)
    pipeline = tmp_path / "pipeline.yml"
    pipeline.write_text("sources: a.mp4\nmodels: [a/config.txt, b/config.txt]\n")
    roads = [Linter().lint([pipeline]), Linter().lint(paths), Linter().lint(paths, together=True)]
    roads.append(Linter(TARGETS["deepstream-9"]).lint(paths))
    for report in roads:
        codes = [f.code for f in report.findings if "gie-unique-id is absent" in f.finding.sentence]
        assert len(codes) == 2, codes


def test_a_finding_has_the_place_of_the_value(store: Path, tmp_path: Path) -> None:
    write_example(Example("yolov8", wrong=("topk=5", "batch-size=x")), tmp_path / "a", store,
                  wrong=True)  # fmt: skip
    report = Linter().lint([tmp_path / "a" / "config.txt"])
    by_rule = {f.code: f.place for f in report.findings}
    assert by_rule["unknown-key"].marked == "topk"
    assert by_rule["value-type"].marked == "x"
    codes = {f.exit_code for f in report.findings if f.severity == "error"}
    assert codes == {3}


def test_all_faults_of_a_file_are_found_in_one_pass(mean_config: Callable[..., Path]) -> None:
    path = mean_config(
        cluster_mode=7, network_mode=9, net_scale_factor=0, mean_file="gone.ppm",
        labelfile_path="gone.txt", batch_sise=2,
    )  # fmt: skip
    found = [(f.code, f.severity) for f in Linter().lint([path]).findings]
    assert sorted(found) == [
        ("missing-file", "error"), ("missing-file", "error"), ("scale-not-positive", "warning"),
        ("unknown-key", "warning"), ("value-choice", "error"), ("value-choice", "error"),
    ]  # fmt: skip


def test_a_missing_mean_file_is_one_fact(mean_config: Callable[..., Path]) -> None:
    findings = Linter().lint([mean_config(mean_file="gone.ppm")]).findings
    assert [f.code for f in findings if f.severity == "error"] == ["missing-file"]


def test_findings_are_chosen_by_rule(store: Path, tmp_path: Path) -> None:
    write_example(Example("yolov8", wrong=("topk=5", "cluster-mode=4")), tmp_path / "a", store,
                  wrong=True)  # fmt: skip
    report = Linter().lint([tmp_path / "a" / "config.txt"])
    assert {"unknown-key", "clustering-missing"} <= {f.code for f in report.findings}
    assert {f.code for f in report.chosen(["unknown-key"]).findings} == {"unknown-key"}
    assert "unknown-key" not in {f.code for f in report.chosen((), ["unknown-key"]).findings}


def test_nothing_is_written(store: Path, tmp_path: Path) -> None:
    base = write_example(Example("own-parser"), tmp_path / "a", store, wrong=False)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "a").rglob("*")}
    Linter().lint([tmp_path / "a" / name for name in base.lint])
    shutil.rmtree(tmp_path / "a" / "__pycache__", ignore_errors=True)
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "a").rglob("*")}
    assert {p.name for p in after} == {p.name for p in before}


def test_every_base_is_right(store: Path, tmp_path: Path) -> None:
    for name in BASES:
        base = write_example(Example(name), tmp_path / name, store, wrong=False)
        paths = [tmp_path / name / file for file in base.lint]
        report = Linter().lint(paths, together=base.together)
        assert not [f for f in report.findings if f.severity != "note"], name


def test_a_file_among_several_that_is_no_config_is_left_out(store: Path, tmp_path: Path) -> None:
    write_example(Example("yolov8"), tmp_path / "a", store, wrong=False)
    report = Linter().lint(sorted((tmp_path / "a").glob("*.txt")))
    assert [path.name for path in report.files] == ["config.txt"]
    assert [path.name for path in report.left_out] == ["labels.txt"]
    alone = Linter().lint([tmp_path / "a" / "labels.txt"])
    assert {f.severity for f in alone.findings} == {"error"}


def test_the_scene_of_the_demo_is_right(tmp_path: Path) -> None:
    shutil.copytree(SCENE, tmp_path / "conveyor")
    report = Linter().lint([tmp_path / "conveyor"])
    assert {"pipeline.yml", "config_infer_primary.txt"} <= {path.name for path in report.files}
    assert [f for f in report.findings if f.severity != "note"] == []


@pytest.mark.data
def test_a_real_model_is_right(data_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(SCENE.parent / "yolox", tmp_path / "yolox")
    (tmp_path / "yolox" / "yolox_nano.onnx").symlink_to(data_dir / "models" / "yolox_nano.onnx")
    report = Linter().lint([tmp_path / "yolox"])
    assert report.files
    assert [f for f in report.findings if f.severity != "note"] == []


def test_a_folder_that_cannot_be_checked_stops_no_other(tmp_path: Path) -> None:
    """One summary for all arguments; alone, such a folder is refused."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf/config.json").write_text('{"model_type": "vit"}')
    (tmp_path / "hf/model.safetensors").write_bytes(bytes(2000))
    config = tmp_path / "c.txt"
    config.write_text("[property]\ntopk=1\n")
    report = Linter().lint([tmp_path / "empty", tmp_path / "hf", config])
    assert len(report.files) == 3
    codes = {finding.code: finding.config.name for finding in report.findings}
    assert codes["config-refused"] == "empty"
    assert codes["model-of-other-kind"] == "hf"
    assert "c.txt" in codes.values()
    with pytest.raises(HeadraceError, match="no config"):
        Linter().lint([tmp_path / "empty"])
