"""Files of `headrace init`: they load without a warning and say the same as the bare model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.custom.compile.build_library import compile_library
from headrace.errors import ModelError
from headrace.infer.inferencer import Inferencer
from headrace.infer.parsers.labels import load_labels
from headrace.infer.recognise.recognise import Recognition, recognise_for_init
from headrace.infer.starters.writing import CONFIG, files_for
from tests.infer.recognise.models import cells, pixel_rows, rows_of
from tests.infer.recognise.test_recognise import paddle, yolov8


def written(found: Recognition, folder: Path, **options: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files_for(found, folder, **options).items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return folder / CONFIG


def unknown(path: Path) -> Recognition:
    """Outputs that no built-in parser reads, and names that would end comments and strings."""
    rows = np.linspace(-1, 1, 30, dtype=np.float32).reshape(1, 5, 3, 2)
    more = np.ones((1, 6), np.float32)
    names = ['a"""\n"; exit(1); //', "b"]
    return recognise_for_init(rows_of(path, [rows, more], names=names, doc="BGR / 255"), {})


def grid(path: Path) -> Recognition:
    scores = np.full((1, 2, 4, 4), -5, np.float32)
    scores[0, 1, 2, 1] = 5
    reach = np.full((1, 4, 4, 4), np.log(0.5), np.float32)
    return recognise_for_init(
        rows_of(path, [scores, reach], names=["heat", "reach"], doc="RGB / 255"), {}
    )


def test_the_config_is_that_of_the_bare_model(tmp_path: Path) -> None:
    found = recognise_for_init(yolov8(tmp_path / "m.onnx"), {})
    path = written(found, tmp_path / "made")
    cfg = ModelConfig.load(path)
    assert not [n for n in cfg.notices if n.level == "warning"]
    differ = {n for n, v in cfg.values().items() if v != getattr(found.config, n)}
    assert differ == {"labelfile_path"}
    assert cfg.labelfile_path is not None
    assert load_labels(cfg.labelfile_path).detector == ["cat", "dog", "a,b"]
    cfg.check_files()


def test_every_reason_is_a_comment(tmp_path: Path) -> None:
    found = recognise_for_init(yolov8(tmp_path / "m.onnx"), {})
    text = written(found, tmp_path / "made").read_text()
    for line in found.lines:
        assert f"# {line}" in text
    assert "# as Ultralytics does\nmodel-color-format=0" in text


def test_boxes_are_those_of_the_bare_run(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", pixel_rows(cells(128), 85, size=1) * 5, size=(128, 128),
                   spread=1.0, focus=True)  # fmt: skip
    found = recognise_for_init(path, {})
    image = np.zeros((96, 128, 3), np.uint8)
    seen = []
    for config in (found.config, written(found, tmp_path / "made")):
        with Inferencer.from_config(config) as model:
            assert not [n for n in model.notices if n.level == "warning"]
            seen.append([(o.label, o.confidence, tuple(o.rect)) for o in model(image).objects])
    assert seen[0] == seen[1]
    assert seen[0]


def test_a_dictionary_of_characters_keeps_its_lines(tmp_path: Path) -> None:
    metadata = {"character": "a\n;\n \nd"}
    path = paddle(tmp_path / "rec.onnx", "Softmax", (1, 40, 6), metadata=metadata)
    cfg = ModelConfig.load(written(recognise_for_init(path, {}), tmp_path / "made"))
    assert cfg.labelfile_path is not None
    assert cfg.labelfile_path.read_text() == "a\n;\n \nd\n"
    with Inferencer.from_config(cfg) as model:
        assert not [n for n in model.notices if n.level == "warning"]


def test_a_parser_for_unknown_outputs_runs_and_its_test_passes(tmp_path: Path) -> None:
    path = written(unknown(tmp_path / "odd.onnx"), tmp_path / "made")
    with Inferencer.from_config(path) as model:
        assert not [n for n in model.notices if n.level == "warning"]
        assert len(model(np.zeros((64, 64, 3), np.uint8)).objects) == 0
    test = path.with_name("test_odd_parser.py")
    done = subprocess.run([sys.executable, test], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "takes the recorded outputs" in done.stdout


NAMES = [["class", "layers"], ["np", "network"], ["params", "detections"], ["\U0001f600", "x"]]


@pytest.mark.parametrize("names", NAMES)
def test_names_of_outputs_are_never_those_of_the_parser(tmp_path: Path, names: list[str]) -> None:
    rows = [np.ones((1, 5, 3), np.float32), np.ones((1, 6), np.float32)]
    path = rows_of(tmp_path / "odd x².onnx", rows, names=names, doc="BGR / 255")
    config = written(recognise_for_init(path, {}), tmp_path / "made")
    with Inferencer.from_config(config) as model:
        assert not [n for n in model.notices if n.level == "warning"]
        model(np.zeros((64, 64, 3), np.uint8))
        assert model.failed_items == 0


@pytest.mark.slow
def test_a_name_beyond_ascii_compiles_in_cpp(tmp_path: Path) -> None:
    rows = [np.ones((1, 5, 3), np.float32), np.ones((1, 6), np.float32)]
    path = rows_of(tmp_path / "m.onnx", rows, names=["\U0001f600", '?\\"'], doc="BGR / 255")
    config = written(recognise_for_init(path, {}), tmp_path / "made", cpp=True)
    compile_library([config.with_name("m_parser.cpp")], config.with_name("libm_parser.so"))
    with Inferencer.from_config(config, guard="never") as model:
        model(np.zeros((64, 64, 3), np.uint8))
        assert model.failed_items == 0


def test_a_grid_is_decoded_by_its_values(tmp_path: Path) -> None:
    found = grid(tmp_path / "g.onnx")
    path = written(found, tmp_path / "made")
    assert ModelConfig.load(path).num_detected_classes == 2
    with Inferencer.from_config(path) as model:
        (thing,) = model(np.zeros((64, 64, 3), np.uint8)).objects
    assert thing.class_id == 1
    assert thing.confidence == pytest.approx(1 / (1 + np.exp(-5)), abs=1e-4)
    # the cell 1, 2 of 16 pixels, half a cell each way
    np.testing.assert_allclose(tuple(thing.rect), [16, 32, 16, 16], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("made", [unknown, grid])
@pytest.mark.sampled
def test_the_parser_in_cpp_compiles_and_agrees(tmp_path: Path, made: Any) -> None:
    found = made(tmp_path / "m.onnx")
    path = written(found, tmp_path / "made", cpp=True)
    compile_library([path.with_name("m_parser.cpp")], path.with_name("libm_parser.so"))
    plain = written(found, tmp_path / "python")
    image = np.zeros((64, 64, 3), np.uint8)
    seen = []
    for config in (path, plain):
        with Inferencer.from_config(config, guard="never") as model:
            seen.append([(o.class_id, tuple(o.rect)) for o in model(image).objects])
    assert seen[0] == seen[1]


@pytest.mark.slow
def test_the_makefile_builds_the_library_of_the_config(tmp_path: Path) -> None:
    path = written(grid(tmp_path / "g.onnx"), tmp_path / "made", cpp=True)
    here = os.path.dirname(sys.executable)
    done = subprocess.run(
        ["make", "-C", path.parent], capture_output=True, text=True, check=False,
        env=os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    library = ModelConfig.load(path).custom_lib_path
    assert library is not None
    assert library.is_file()


def test_no_parser_is_written_where_one_fits(tmp_path: Path) -> None:
    found = recognise_for_init(yolov8(tmp_path / "m.onnx"), {})
    assert set(files_for(found, tmp_path)) == {CONFIG, "labels.txt"}
    with pytest.raises(ModelError, match="HeadraceParseYoloV8 reads this model"):
        files_for(found, tmp_path, cpp=True)
