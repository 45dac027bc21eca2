import os
import tracemalloc

import numpy as np
import pytest
from onnx import numpy_helper

from headrace.errors import ModelError
from headrace.network import network_from_onnx
from tests.network.onnx_models import external_model, save

WEIGHTS = np.arange(72, dtype=np.float32)


def with_data(folder, location="w.bin", **kwargs):
    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    offset = kwargs.get("offset", 0)
    (folder / location).write_bytes(b"\xff" * offset + WEIGHTS.tobytes() + b"tail")
    return save(external_model(location, **kwargs), folder / "m.onnx")


def refused(path, *words):
    with pytest.raises(ModelError) as caught:
        network_from_onnx(path).to_proto()
    for word in [*words, "initializer 'w'"]:
        assert word in str(caught.value)


def folded(path):
    proto = network_from_onnx(path).to_proto()
    (weight,) = proto.graph.initializer
    assert not weight.external_data
    return numpy_helper.to_array(weight).ravel()


@pytest.mark.parametrize("location", ["w.bin", "weights/deep/w.bin", "./w.bin"])
@pytest.mark.parametrize("offset", [0, 4096])
def test_external_data_is_folded_in(tmp_path, location, offset):
    path = with_data(tmp_path, location, offset=offset)
    assert (folded(path) == WEIGHTS).all()


def test_external_data_counts_in_the_summary(tmp_path):
    path = with_data(tmp_path)
    summary = network_from_onnx(path).summary()
    assert summary.parameters == 72
    assert summary.external_files == (tmp_path / "w.bin",)
    assert summary.size_bytes == path.stat().st_size + (tmp_path / "w.bin").stat().st_size


def test_missing_data_names_the_file(tmp_path):
    path = with_data(tmp_path)
    (tmp_path / "w.bin").unlink()
    refused(path, "'w.bin' cannot be found", str(tmp_path / "w.bin"))


def test_truncated_data_names_the_bytes(tmp_path):
    path = with_data(tmp_path, offset=16)
    os.truncate(tmp_path / "w.bin", 100)
    refused(path, "too short", "bytes 16 to 304", "100")


def test_data_that_shrinks_after_the_check(tmp_path):
    network = network_from_onnx(with_data(tmp_path))
    os.truncate(tmp_path / "w.bin", 100)
    with pytest.raises(ModelError, match="too short"):
        network.to_proto()


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("/etc/passwd", "absolute"),
        ("../secret.bin", "'..'"),
        ("a/../../secret.bin", "'..'"),
        ("..\\secret.bin", "'..'"),
        ("C:\\secret.bin", "absolute"),
        ("", "not a file name"),
        ("a\0b", "not a file name"),
    ],
)
def test_locations_outside_the_folder_are_refused(tmp_path, location, words):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    refused(save(external_model(location), folder / "m.onnx"), words, "nothing was read")


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_symlink_out_of_the_folder_is_refused(tmp_path, as_folder):
    folder, outside = tmp_path / "model", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "w.bin").write_bytes(WEIGHTS.tobytes())
    if as_folder:
        (folder / "sub").symlink_to(outside)
        path = save(external_model("sub/w.bin"), folder / "m.onnx")
    else:
        (folder / "w.bin").symlink_to(outside / "w.bin")
        path = save(external_model("w.bin"), folder / "m.onnx")
    refused(path, "symlink", str(outside / "w.bin"))


def test_a_download_cache_of_symlinks_works(tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    (blobs / "123").write_bytes(WEIGHTS.tobytes())
    save(external_model("w.bin"), blobs / "456")
    (snapshot / "m.onnx").symlink_to(blobs / "456")
    (snapshot / "w.bin").symlink_to(blobs / "123")
    assert (folded(snapshot / "m.onnx") == WEIGHTS).all()


def test_a_folder_or_pipe_as_data_is_refused(tmp_path):
    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("dir", "pipe"):
        refused(save(external_model(name), tmp_path / "m.onnx"), "not a regular file")


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [({"length": 10**12}, "length 1000000000000"), ({"offset": -1}, "offset '-1'")],
)
def test_lies_about_lengths_are_refused(tmp_path, kwargs, words):
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    refused(save(external_model("w.bin", **kwargs), tmp_path / "m.onnx"), words)


def test_a_tiny_file_cannot_make_us_allocate(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"1234")
    model = external_model("w.bin", length=4 * 10**12)
    model.graph.initializer[0].dims[:] = [10**12]
    path = save(model, tmp_path / "m.onnx")
    tracemalloc.start()
    refused(path, "too short")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
