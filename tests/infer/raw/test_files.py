"""The keys that write tensors to files and read them back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import ConfigError, EngineError
from headrace.infer.inferencer import Inferencer
from headrace.infer.raw.files import raw_file_name
from headrace.media import Frame, PixelFormat
from tests.infer.models import node, write_config, write_model
from tests.infer.scenes import batch_of, classifier

Config = Callable[..., Path]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files are written to the working directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def grey(level: int) -> Frame:
    return Frame.from_array(np.full((32, 32, 3), level, np.uint8), PixelFormat.RGB)


def read(path: Path) -> np.ndarray:
    return np.fromfile(path, np.float32)


def test_raw_files_hold_inputs_and_outputs_of_every_batch(mean_config: Config, here: Path) -> None:
    config = mean_config(raw_output_file_write=1, batch_size=2, gie_unique_id=7)
    with Inferencer.from_config(config) as model:
        model.process([grey(51), grey(102), grey(153)])
    names = {
        f"gstnvdsinfer_uid-07_layer-{layer}_batch-{batch:010d}_batchsize-{size:02d}.bin"
        for layer in ("image", "mean")
        for batch, size in ((0, 2), (1, 1))
    }
    assert {p.name for p in here.iterdir()} == names
    first = read(here / raw_file_name(7, "mean", 0, 2))
    np.testing.assert_allclose(first, [0.2] * 3 + [0.4] * 3, atol=1e-6)
    image = read(here / raw_file_name(7, "image", 1, 1))
    assert image.size == 3 * 32 * 32
    np.testing.assert_allclose(image, 0.6, atol=1e-6)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("hard", [True, False])
def test_files_are_not_written_through_links(
    mean_config: Config, here: Path, there: bool, hard: bool
) -> None:
    victim = here.parent / "victim"
    name = raw_file_name(1, "mean", 0, 1)
    dumps = ("ip_tensor_dump.bin", "mean_op_tensor.bin")
    if there or hard:
        victim.write_bytes(b"mine")
    for link in (name, *dumps):
        (here / link).hardlink_to(victim) if hard else (here / link).symlink_to(victim)
    with Inferencer.from_config(mean_config(raw_output_file_write=1)) as model:
        model.process([grey(51)])
    np.testing.assert_allclose(read(here / name), [0.2] * 3, atol=1e-6)  # in the link's place
    for key in ("dump_input_tensor", "dump_output_tensor"):
        with (
            pytest.raises(EngineError, match="a tensor file cannot be written"),
            Inferencer.from_config(mean_config(**{key: 1})) as model,
        ):
            model.process([grey(51)])
    assert victim.exists() == (there or hard)
    assert not victim.exists() or victim.read_bytes() == b"mine"


def test_raw_files_of_type_100_leave_the_input_out(mean_config: Config, here: Path) -> None:
    config = mean_config(
        raw_output_file_write=1, network_type=100, cluster_mode=None, parse_bbox_func_name=None
    )
    with Inferencer.from_config(config) as model:
        model.process([grey(51)])
    assert [p.name for p in here.iterdir()] == [raw_file_name(1, "mean", 0, 1)]


def test_slashes_in_names_of_layers(tmp_path: Path, here: Path) -> None:
    size = ["n", 3, 8, 8]
    write_model(
        tmp_path / "m.onnx", [node("Relu", ["in/x"], ["out/y"])], {"in/x": size}, {"out/y": size}
    )
    config = write_config(
        tmp_path,
        onnx_file="m.onnx",
        network_type=100,
        raw_output_file_write=1,
        dump_output_tensor=1,
    )
    with Inferencer.from_config(config) as model:
        model.process([grey(1)])
    assert sorted(p.name for p in here.iterdir()) == [
        raw_file_name(1, "out_y", 0, 1),
        "out-y_op_tensor.bin",
    ]


def test_long_names_are_cut() -> None:
    name = raw_file_name(1, "x" * 400, 3, 4)
    assert len(name) == 255
    assert name.startswith("gstnvdsinfer_uid-01_layer-xxx")


def test_an_asynchronous_classifier_writes_too(mean_config: Config, here: Path) -> None:
    config = classifier(mean_config, classifier_async_mode=1, raw_output_file_write=1)
    seen = []
    with Inferencer.from_config(config) as model:
        model.on_raw_output = seen.append
        pending = model.begin(batch_of([[("red", (10, 10, 20, 20))]], ids=[4]))
        for run in pending.runs:
            run.future.result(10)
        model.complete(pending)
    assert {p.name for p in here.iterdir()} == {
        raw_file_name(2, "image", 0, 1),
        raw_file_name(2, "mean", 0, 1),
    }
    assert [raw.objects for raw in seen] == [[0]]


def test_dumps_grow_with_every_item(mean_config: Config, here: Path) -> None:
    config = mean_config(dump_input_tensor=1, dump_output_tensor=1, batch_size=2)
    with Inferencer.from_config(config) as model:
        model.process([grey(51), grey(102), grey(153)])
    inputs = read(here / "ip_tensor_dump.bin").reshape(2, -1)
    # the first item of each batch alone
    np.testing.assert_allclose(inputs[:, 0], [0.2, 0.6], atol=1e-6)
    assert inputs.shape[1] == 3 * 32 * 32
    outputs = read(here / "mean_op_tensor.bin").reshape(3, 3)
    np.testing.assert_allclose(outputs[:, 0], [0.2, 0.4, 0.6], atol=1e-6)


def test_a_large_output_is_cut_to_the_size_of_the_input(tmp_path: Path, here: Path) -> None:
    size = ["n", 3, 8, 8]
    nodes = [node("Concat", ["x", "x"], ["y"], axis=1)]
    write_model(tmp_path / "m.onnx", nodes, {"x": size}, {"y": ["n", 6, 8, 8]})
    config = write_config(tmp_path, onnx_file="m.onnx", network_type=100, dump_output_tensor=1)
    with Inferencer.from_config(config) as model:
        model.process([grey(1)])
    assert (here / "y_op_tensor.bin").stat().st_size == 4 * 3 * 8 * 8


def test_a_dumped_input_gives_the_same_again(mean_config: Config, here: Path) -> None:
    with Inferencer.from_config(mean_config(dump_input_tensor=1)) as model:
        (first,) = model.process([grey(204)])
    config = mean_config(overwrite_input_tensor=1, ip_tensor_file=here / "ip_tensor_dump.bin")
    with Inferencer.from_config(config) as model:
        (again,) = model.process([grey(0)])
        with pytest.raises(EngineError, match="0 bytes are left") as caught:
            model.process([grey(0)])
    assert "ip_tensor_dump.bin" in str(caught.value)
    assert again.objects[0].confidence == first.objects[0].confidence
    assert again.objects[0].confidence == pytest.approx(0.8, abs=1e-5)


def test_outputs_are_replaced_before_they_are_parsed(mean_config: Config, here: Path) -> None:
    np.array([[0.9, 0, 0], [0.7, 0, 0]], np.float32).tofile(here / "told.bin")
    config = mean_config(
        overwrite_output_tensor=1, op_tensor_files=here / "told.bin", output_blob_names="mean",
    )  # fmt: skip
    with Inferencer.from_config(config) as model:
        found = [model.process([grey(0)])[0].objects[0].confidence for _ in range(2)]
        with pytest.raises(EngineError, match="one tensor of 1x3 needs 12"):
            model.process([grey(0)])
    assert found == [pytest.approx(0.9), pytest.approx(0.7)]


def test_an_output_that_the_model_does_not_have(mean_config: Config, here: Path) -> None:
    np.zeros(3, np.float32).tofile(here / "told.bin")
    config = mean_config(
        overwrite_output_tensor=1, op_tensor_files=here / "told.bin", output_blob_names="average"
    )
    with (
        Inferencer.from_config(config) as model,
        pytest.raises(EngineError, match="no output 'average' to overwrite") as caught,
    ):
        model.process([grey(0)])
    assert "expected mean" in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"overwrite_input_tensor": 1}, "ip-tensor-file is not given"),
        ({"overwrite_input_tensor": 1, "ip_tensor_file": "none.bin"}, "No such file.*none.bin"),
        (
            {"overwrite_output_tensor": 1, "op_tensor_files": "a;b", "output_blob_names": "mean"},
            "op-tensor-files names 2 files, output-blob-names 1",
        ),
        (
            {"overwrite_output_tensor": 1, "op_tensor_files": "a", "output_blob_names": "mean"},
            "No such file",
        ),
    ],
)
def test_files_that_are_missing_are_told_at_start(
    mean_config: Config, keys: dict[str, object], words: str
) -> None:
    config = mean_config(**keys)
    with pytest.raises(ConfigError, match=words) as caught:
        Inferencer.from_config(config)
    assert "config.txt" in str(caught.value)


def test_a_folder_that_is_gone(
    mean_config: Config, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = here / "gone"
    monkeypatch.setattr(Path, "cwd", lambda: gone)
    with (
        Inferencer.from_config(mean_config(raw_output_file_write=1)) as model,
        pytest.raises(EngineError, match="cannot be written: No such file") as caught,
    ):
        model.process([grey(0)])
    assert "raw-output-file-write" in str(caught.value)
