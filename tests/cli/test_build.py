"""`headrace build --precision` and `--export-onnx`, and what `--strict` refuses of precisions."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.engine.precision import CalibrationTable
from tests.engine.precision.graphs import layer_table, small_net
from tests.engine.precision.test_precision_building import SCALES

Config = Callable[..., Path]
SCENE = Path(__file__).parents[2] / "examples" / "conveyor"


def headrace(*words: object) -> Result:
    return CliRunner().invoke(main, [str(w) for w in words], catch_exceptions=False)


@pytest.fixture
def config(mean_config: Config, tmp_path: Path) -> Config:
    """Configs of a network of three layers with weights, with its table."""

    def make(**keys: object) -> Path:
        path = mean_config(width=8, height=8, **keys)
        onnx.save(small_net(), tmp_path / "mean.onnx")
        CalibrationTable.of(SCALES).save(tmp_path / "t.calib")
        return path

    return make


def test_strict_takes_fp32_for_fp16_and_refuses_it_for_int8(config: Config) -> None:
    """FP32 in the place of FP16 is no less exact, and no slower here."""
    done = headrace("build", config(network_mode=2), "--strict", "--backend", "onnxruntime")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip().endswith("_fp32.engine")
    assert "network-mode=2: FP32 is built" in done.stderr
    done = headrace("build", config(network_mode=1), "--strict", "--backend", "onnxruntime")
    assert done.exit_code == 7
    assert "int8-calib-file is not given" in done.stderr


@pytest.mark.parametrize("option", [["--tune-for", "latency"], ["--retime"]])
def test_options_of_tuning_need_it(config: Config, option: list[str]) -> None:
    done = headrace("build", config(), *option)
    assert done.exit_code == 2
    assert "--tune-for, --retime, --timing-cache and --images need --tune" in done.stderr


def test_a_precision_is_demanded(config: Config) -> None:
    path = config(int8_calib_file="t.calib")
    for precision in ("fp16", "int8", "best", "fp32"):
        done = headrace("build", path, "--precision", precision, "--json", "--strict")
        assert done.exit_code == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["precision"] == precision
        assert told["engine"].endswith(f"_{precision}.engine")
    assert headrace("build", path, "--precision", "int4").exit_code == 2


def test_export_for_tensorrt(config: Config, tmp_path: Path) -> None:
    path = config(network_mode=1, int8_calib_file="t.calib")
    file = tmp_path / "out.onnx"
    done = headrace("build", path, "--export-onnx", file, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["precision"] == "int8"
    assert told["converted"] == 3
    assert sum(p == "int8" for _, _, p in layer_table(onnx.load(file))) == 3
    assert not list(tmp_path.glob("*.engine"))
    done = headrace("build", path, "--export-onnx", file, "--precision", "fp16")
    assert done.stdout.strip() == str(file)
    assert "9 nodes have results in FP16 in the file" in done.stderr
    # network-mode=2 is FP16 for the machine it goes to, whatever is faster here
    headrace("build", config(network_mode=2), "--export-onnx", file)
    assert {p for _, o, p in layer_table(onnx.load(file)) if o == "Conv"} == {"fp16"}
    for word in ("--rebuild", "--tune"):
        assert headrace("build", path, "--export-onnx", file, word).exit_code == 2


def test_an_export_that_falls_back_is_not_written_if_strict(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "out.onnx"
    path = config(network_mode=3)
    assert headrace("build", path, "--export-onnx", file, "--strict").exit_code == 7
    assert not file.exists()
    done = headrace("build", path, "--export-onnx", file)
    assert "network-mode=3: INT8 takes the scales" in done.stderr
    assert "FP16 is written" in done.stderr
    assert file.exists()


def test_free_axes_are_fixed_in_an_export(mean_config: Config, tmp_path: Path) -> None:
    path = mean_config(infer_dims="3;8;8")
    model = small_net()
    for axis in list(model.graph.input[0].type.tensor_type.shape.dim)[2:]:
        axis.Clear()
    onnx.save(model, tmp_path / "mean.onnx")
    file = tmp_path / "out.onnx"
    assert headrace("build", path, "--export-onnx", file, "--precision", "fp16").exit_code == 0
    axes = onnx.load(file).graph.input[0].type.tensor_type.shape.dim
    assert [a.dim_value for a in axes] == [0, 3, 8, 8]


def test_an_export_replaces_an_older_one_and_nothing_else(config: Config, tmp_path: Path) -> None:
    path = config()
    (tmp_path / "notes.txt").write_text("precious")
    (tmp_path / "link.onnx").symlink_to(tmp_path / "mean.onnx")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (
        ("mean.onnx", "is the model itself and is not overwritten"),
        ("link.onnx", "is the model itself and is not overwritten"),
        ("notes.txt", "is not an ONNX model and is not overwritten"),
        (path.name, "is not an ONNX model and is not overwritten"),
        ("pipe", "not a regular file"),
        (".", "not a regular file"),
    ):
        file = tmp_path / name
        before = file.read_bytes() if file.is_file() else None
        done = headrace("build", path, "--export-onnx", file)
        assert done.exit_code == 4, name
        assert why in done.stderr
        assert not file.is_file() or file.read_bytes() == before
    assert (tmp_path / "pipe").is_fifo()
    for precision in ("fp16", "fp32"):
        done = headrace(
            "build", path, "--export-onnx", tmp_path / "x.onnx", "--precision", precision
        )
        assert done.exit_code == 0, done.stderr


def test_configs_with_tables_of_their_own_keep_an_engine_each(
    config: Config, tmp_path: Path
) -> None:
    """Neither build throws the other's engine away; a table that is written anew does."""

    def engine(path: Path) -> tuple[str, int, str]:
        done = headrace("build", path, "--precision", "int8", "--json")
        assert done.exit_code == 0, done.stderr
        told = json.loads(done.stdout)
        file = Path(told["engine"])
        return file.name, file.stat().st_mtime_ns, str(told["notices"])

    first = config(int8_calib_file="t.calib").rename(tmp_path / "first.txt")
    second = config(int8_calib_file="u.calib")
    CalibrationTable.of({name: 2 * scale for name, scale in SCALES.items()}).save(
        tmp_path / "u.calib"
    )
    one, other = engine(first), engine(second)
    assert one[0] != other[0]
    assert "int8-calib-file=t.calib ≠ u.calib" in other[2]
    assert engine(first)[:2] == one[:2]
    assert engine(second)[:2] == other[:2]
    CalibrationTable.of({name: 3 * scale for name, scale in SCALES.items()}).save(
        tmp_path / "u.calib"
    )
    anew = engine(second)
    assert anew[0] == other[0]
    assert anew[1] != other[1]
    assert "int8-calib-file changed" in anew[2]
    assert engine(first)[:2] == one[:2]
    assert len(list(tmp_path.glob("*.engine"))) == 2


def test_images_are_for_what_tuning_offers(config: Config) -> None:
    done = headrace("build", str(config()), "--images", "video.mp4")
    assert done.exit_code == 2
    assert "--images need --tune" in done.stderr


@pytest.mark.slow
def test_boxes_of_an_offered_precision_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same engine in the place of BF16 agrees in each box; the note says so."""
    from headrace._core.findings import Finding
    from headrace.cli import build
    from headrace.config import ModelConfig
    from headrace.diagnose.compare import sides
    from headrace.infer.run_options import RunOptions

    for name in ("config_infer_primary.txt", "conveyor_parser.py", "labels.txt", "detector.onnx"):
        shutil.copy(SCENE / name, tmp_path)
    real = sides.load_or_build

    def in_fp32(cfg: ModelConfig, **options: Any) -> Any:
        return real(cfg, **options | {"precision": None, "backend": None})

    monkeypatch.setattr(sides, "load_or_build", in_fp32)
    monkeypatch.setattr(sides, "_check_precision", lambda *_: None)
    config = tmp_path / "config_infer_primary.txt"
    offer = Finding("bf16-offered", "info", "bf16 would be {factor} times as fast",
                    data={"factor": 1.7, "tactic": "openvino:threads=1"})  # fmt: skip
    told = build._compared(
        offer, cfg=ModelConfig.load(config), config=config, keys=[],
        images=str(SCENE / "conveyor.mp4"), run=RunOptions(threads=1),
    )  # fmt: skip
    boxes = told.data["boxes"]
    assert boxes > 20
    assert told.data == {"factor": 1.7, "tactic": "openvino:threads=1", "unit": "boxes",
                         "equal": boxes, "boxes": boxes, "more": 0, "frames": 20}  # fmt: skip
    assert told.sentence == (
        f"bf16 would be 1.7 times as fast; {boxes} of {boxes} boxes agree, 0 more are others "
        "(20 frames)"
    )
