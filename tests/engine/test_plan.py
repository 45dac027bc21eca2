import json
import os
import struct

import pytest

from headrace.engine import BuildOptions, Plan, build
from headrace.engine.plan import is_plan_file
from headrace.engine.plan_prefix import FORMAT_VERSION
from headrace.errors import EngineError
from headrace.network import network_from_onnx
from tests.engine.plan_bytes import build_header, reseal, split
from tests.network.onnx_models import image_model, save


@pytest.fixture
def plan(model_path):
    return build(network_from_onnx(model_path), BuildOptions(max_batch=4))


def refused(path, *words):
    with pytest.raises(EngineError) as caught:
        Plan.load(path)
    for word in words:
        assert word in str(caught.value)
    assert str(path) in str(caught.value)


def test_saving_and_loading_changes_nothing(plan, tmp_path):
    plan.save(tmp_path / "a.engine")
    loaded = Plan.load(tmp_path / "a.engine")
    assert loaded.header == plan.header
    assert loaded.blobs == plan.blobs
    assert loaded.inputs == plan.inputs
    assert loaded.outputs == plan.outputs
    loaded.save(tmp_path / "b.engine")
    assert (tmp_path / "a.engine").read_bytes() == (tmp_path / "b.engine").read_bytes()


def test_header_says_what_went_in(plan, model_path):
    header = plan.header
    assert header.precision == "fp32"
    assert header.max_batch == 4
    assert header.fixed_batch is None
    assert header.model.name == "m.onnx"
    assert header.model.size_bytes == model_path.stat().st_size
    assert header.runtime.name == "onnxruntime"
    assert [t.chosen for t in header.tactics] == [True]
    assert header.plugins == ()
    assert [o.name for o in header.outputs] == ["doubled", "mean"]


def test_the_file_is_data_only_and_readable_by_others(plan, tmp_path):
    path = tmp_path / "a.engine"
    old = os.umask(0o027)
    try:
        plan.save(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o640
    prefix, header, _ = split(path.read_bytes())
    assert prefix[:8] == b"HEADRPLN"
    assert json.loads(header)["max_batch"] == 4


def test_nothing_but_the_plan_is_left(plan, tmp_path):
    plan.save(tmp_path / "out" / "a.engine") if (tmp_path / "out").mkdir() else None
    plan.save(tmp_path / "out" / "a.engine")
    assert os.listdir(tmp_path / "out") == ["a.engine"]


def test_a_foreign_file_is_not_overwritten(plan, tmp_path):
    path = tmp_path / "a.engine"
    path.write_bytes(b"precious")
    with pytest.raises(EngineError, match="not overwritten"):
        plan.save(path)
    assert path.read_bytes() == b"precious"


def test_an_unwritable_place_is_an_error(plan, tmp_path):
    with pytest.raises(EngineError, match="cannot be written"):
        plan.save(tmp_path / "no" / "such" / "a.engine")


def test_describe(plan):
    summary = plan.describe()
    assert summary.max_batch == 4
    assert summary.runtime.startswith("onnxruntime ")
    assert [str(s) for s in summary.inputs] == ["x float32[?, 3, 4, 6]"]
    assert summary.size_bytes == len(plan.blobs["model"])


def test_missing_folder_empty_and_pipe(tmp_path):
    refused(tmp_path / "a.engine", "No such file")
    refused(tmp_path, "not a regular file")
    (tmp_path / "a.engine").touch()
    refused(tmp_path / "a.engine", "an empty file")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")
    assert not is_plan_file(tmp_path / "pipe")


def test_a_tensorrt_engine_is_recognised(data_dir):
    refused(data_dir / "models" / "lenet5.engine", "TensorRT engine", "onnx-file")


def test_an_onnx_model_is_no_plan(model_path):
    refused(model_path, "not a headrace plan")


def test_every_truncation_is_noticed(plan, tmp_path):
    plan.save(tmp_path / "a.engine")
    data = (tmp_path / "a.engine").read_bytes()
    for size in [*range(80), len(data) // 2, len(data) - 1]:
        with pytest.raises(EngineError):
            Plan.from_bytes(data[:size])
    with pytest.raises(EngineError, match=rf"damaged: truncated, 100 of {len(data)} bytes"):
        Plan.from_bytes(data[:100])
    with pytest.raises(EngineError, match="damaged: too long"):
        Plan.from_bytes(data + b"x")


def test_every_flipped_bit_is_noticed(plan, tmp_path):
    plan.save(tmp_path / "a.engine")
    data = (tmp_path / "a.engine").read_bytes()
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        with pytest.raises(EngineError):
            Plan.from_bytes(bytes(changed))


def test_another_format_version_is_named(plan, tmp_path):
    plan.save(tmp_path / "a.engine")
    data = bytearray((tmp_path / "a.engine").read_bytes())
    struct.pack_into("<I", data, 8, FORMAT_VERSION + 1)
    (tmp_path / "a.engine").write_bytes(data)
    refused(tmp_path / "a.engine", f"headrace plan format {FORMAT_VERSION + 1} ≠ {FORMAT_VERSION}")


@pytest.mark.parametrize("field", ["header_size", "file_size"])
def test_absurd_sizes_are_not_believed(plan, tmp_path, field):
    plan.save(tmp_path / "a.engine")
    data = bytearray((tmp_path / "a.engine").read_bytes())
    struct.pack_into(*(("<I", data, 12, 2**32 - 1) if field == "header_size" else
                       ("<Q", data, 16, 2**63)))  # fmt: skip
    (tmp_path / "a.engine").write_bytes(data)
    refused(tmp_path / "a.engine", "damaged")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_batch": 0}, "max_batch"),
        ({"max_batch": "4"}, "max_batch"),
        ({"max_batch": 10**9}, "max_batch"),
        ({"fixed_batch": -1}, "fixed_batch"),
        ({"inputs": []}, "inputs"),
        ({"precision": "fp8"}, "precision"),
        ({"unknown_key": 1}, "unknown_key"),
        ({"blobs": [{"name": "model", "size_bytes": 10**15, "sha256": "0" * 64}]}, "not all there"),
        ({"blobs": [{"name": "other", "size_bytes": 0, "sha256": "0" * 64}]}, "sha256"),
        ({"blobs": []}, "blobs"),
    ],
)
def test_a_header_that_lies_is_refused_though_its_hash_fits(plan, change, words):
    data = b"".join(plan.to_chunks())
    with pytest.raises(EngineError, match="damaged") as caught:
        Plan.from_bytes(reseal(data, build_header(data) | change))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "header", [b"", b"[]", b"null", b"[" * 10_000, b"\xff\xfe", b'{"a":1e999}']
)
def test_a_header_that_is_no_header_is_refused(plan, header):
    with pytest.raises(EngineError, match="damaged"):
        Plan.from_bytes(reseal(b"".join(plan.to_chunks()), header))


def test_a_name_with_odd_bytes_can_be_saved(tmp_path):
    folder = os.fsencode(tmp_path)
    path = tmp_path / os.fsdecode(b"m\xff.onnx")
    save(image_model(), path)
    plan = build(network_from_onnx(path))
    plan.save(os.fsdecode(folder + b"/e\xff.engine"))
    assert Plan.load(os.fsdecode(folder + b"/e\xff.engine")).header.model.name == "m\ufffd.onnx"
