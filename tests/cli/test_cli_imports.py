"""What a run with a saved engine imports: only what it needs. No times are asserted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.infer.recognise.test_recognise import yolov8
from tests.inside import headrace

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
RUN = """
import sys
from headrace.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(*sorted(sys.modules), file=sys.stderr)
"""
NOT_NEEDED = {
    # for building engines
    "headrace.engine.builder",
    "headrace.engine.tuning.tune",
    "headrace.engine.plugin_graph.split",
    "headrace.infer.model.engine_building",
    "headrace.network.network",
    "onnx",
    "onnx_ir",
    # for versions and files of packages: 50 modules
    "email",
    "importlib.metadata",
    "importlib.resources",
    # for bare models, and files that are wrong
    "headrace._core.formats.foreign",
    "headrace._core.formats.tensorrt",
    "headrace.infer.recognise.deployments",
    "headrace.infer.recognise.recognise",
    "subprocess",
    "tarfile",
    # for GPUs, mean files, tactics by name
    "headrace._core.gpu.cuda_kernels",
    "headrace._core.named_settings",
    "headrace.infer.mean_file",
    # for plugins, TensorRT's interface, C++ libraries
    "headrace.binary.elf",
    "headrace.custom.load_errors",
    "headrace.custom.stand_ins",
    "headrace.trt.host",
    "headrace.plugins.base",
    "headrace.plugins.registry",
    "headrace.custom.guard.keeper",
    "headrace.plugins.standard",
    "headrace.trt",
    # for other heads and further inputs
    "headrace.infer.class_maps",
    "headrace.infer.model.extra_inputs",
    "headrace.infer.parsers.catalogue",
    "headrace.infer.parsers.segmentation",
    # for counting, pages, trackers, drawing, outputs and sources of other kinds
    "PIL",
    "headrace.pipeline.analytics",
    "headrace.config.dewarper_file",
    "headrace.live",
    "headrace.media.dewarping",
    "headrace.media.draw.painter",
    "headrace.media.sinks.coco",
    "headrace.media.sinks.lasting",
    "headrace.media.sinks.video",
    "headrace.media.sources.images",
    "headrace.media.sources.stream",
    "headrace.pipeline.track.open",
    # for reading YAML, tables for people, notebooks
    "headrace._core.html",
    "headrace.meta.notebook",
    *(["numpy.ma"] if version("numpy") >= "2" else []),  # older ones import it themselves
    "rich",
    "yaml",
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's detector with a saved engine."""
    folder = tmp_path_factory.mktemp("start")
    for name in ("config_infer_primary.txt", "conveyor_parser.py", "labels.txt", "detector.onnx"):
        shutil.copy(SCENE / name, folder)
    done = headrace("build", "config_infer_primary.txt", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def _imported(scene: Path, *args: str, config: str = "config_infer_primary.txt") -> set[str]:
    command = ["run", config, str(SCENE / "conveyor.mp4"), "--limit", "1"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command, "-q", *args],
        cwd=scene,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_a_run_with_a_saved_engine_imports_only_what_it_and_its_output_need(scene: Path) -> None:
    imported = _imported(scene, "-o", "out.jsonl")
    assert {"headrace.pipeline.pipeline", "headrace.media.sinks.jsonl"} <= imported
    assert sorted(NOT_NEEDED & imported) == []


def test_what_is_not_needed_is_there() -> None:
    assert [name for name in sorted(NOT_NEEDED) if find_spec(name) is None] == []


@pytest.mark.slow
def test_a_bare_model_that_was_recognised_imports_what_its_own_config_would(
    tmp_path: Path,
) -> None:
    yolov8(tmp_path / "m.onnx")
    first = headrace("run", "m.onnx", SCENE / "conveyor.mp4", "--limit", 1, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    imported = _imported(tmp_path, config="m.onnx")
    assert "headrace.infer.recognise.kept" in imported
    assert "headrace.custom.library" not in imported
    readers = {"headrace.infer.recognise.recognise", "headrace.network.network", "onnx", "onnx_ir"}
    assert readers <= NOT_NEEDED
    assert not readers & imported  # its parser finds nothing, so that other things are tried


def test_an_output_imports_its_own_kind(scene: Path) -> None:
    drawn = _imported(scene, "-o", "out.mp4", "--tracker", "iou")
    assert {
        "headrace.media.sinks.video",
        "headrace.media.draw.painter",
        "headrace.pipeline.track.open",
    } <= drawn
    assert "headrace.media.sinks.coco" not in drawn


def test_importing_headrace_imports_no_runtime_and_no_decoder() -> None:
    code = "import headrace, sys; headrace.Frame, headrace.Detections; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"av", "onnx", "onnxruntime", "openvino", "yaml", "click"}
    assert not heavy & set(done.stdout.split())
