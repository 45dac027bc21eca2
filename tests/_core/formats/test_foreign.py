"""Files of other frameworks: each is named by its content, with the command that makes an ONNX."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core.formats.folders import transformers_task
from headrace._core.formats.foreign import (
    foreign_model,
    identify,
    looks_like,
    onnx_beside,
)
from headrace._core.formats.sniff import HEAD_BYTES, sniff
from headrace._core.formats.table import FORMATS, by_suffix, is_model_name
from headrace.config import ModelConfig
from headrace.errors import HeadraceError
from tests.profiles import examples


def zipped(**members: bytes) -> bytes:
    """A zip; `__` in names is `/`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_DOT_", "."), data)
    return buffer.getvalue()


def checkpoint(pickled: bytes, *others: str) -> bytes:
    """A file of torch.save: its pickle and storages."""
    members = {"archive__data_DOT_pkl": pickled, "archive__version": b"3\n"}
    return zipped(**members, **{f"archive__{name}": b"" for name in others})


def of_class(module: str, name: str) -> bytes:
    """The pickle of an object of a class that is not there."""
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + b")\x81}b."


STATE = b"\x80\x02ccollections\nOrderedDict\n)RX\x06\x00\x00\x00weightctorch._utils\n_rebuild\n."


def safetensors(end: int, there: int) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, end]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(there)


def hdf5(attributes: bytes, end: int | None = None) -> bytes:
    head = b"\x89HDF\r\n\x1a\n" + bytes((0, 0, 0, 0, 0, 8, 8, 0)) + bytes(24)
    body = bytes(40) + attributes + bytes(400)
    return head + struct.pack("<Q", end or len(head) + 8 + len(body)) + body


FILES: dict[str, tuple[bytes, str, tuple[str, ...]]] = {
    # name -> content, what it is, what must be in the hints
    "best.pt": (
        checkpoint(of_class("ultralytics.nn.tasks", "DetectionModel")),
        "a checkpoint of Ultralytics",
        ("yolo export model=best.pt format=onnx",),
    ),
    "yolov5s.pt": (
        checkpoint(of_class("models.yolo", "Model")),
        "YOLOv5, v7 or v9",
        ("python export.py --weights yolov5s.pt --include onnx",),
    ),
    "yolox.pth": (
        checkpoint(STATE + b"backbone.backbone.stem.conv head.cls_preds.0"),
        "a checkpoint of YOLOX",
        ("export_onnx.py", "--output-name yolox.onnx"),
    ),
    "nas.pth": (checkpoint(STATE + b"ema_net heads.head1.x"), "YOLO-NAS", ("super_gradients",)),
    "rf.pth": (
        checkpoint(STATE + b"backbone.0.encoder.encoder.x transformer.decoder"),
        "RF-DETR",
        ("RFDETRBase",),
    ),
    "dfine.pth": (checkpoint(STATE + b"decoder.dec_score_head.0"), "D-FINE", ("-r dfine.pth",)),
    "det.pth": (checkpoint(STATE + b"mmdet_version"), "OpenMMLab", ("tools/deploy.py", "mmdeploy")),
    "fpn.pth": (checkpoint(STATE + b"backbone.bottom_up.x"), "Detectron2", ("export_model.py",)),
    "net.pth": (checkpoint(STATE), "a state_dict", ("load_state_dict", '"net.onnx"')),
    "net.ckpt": (
        checkpoint(STATE + b"pytorch-lightning_version"),
        "Lightning",
        ("load_from_checkpoint",),
    ),
    "epoch.pt": (
        checkpoint(STATE + b"epoch optimizer state_dict"),
        "a PyTorch checkpoint",
        ("torch.onnx.export",),
    ),
    "own.pt": (
        checkpoint(of_class("mine.nets", "Net")),
        "a pickled PyTorch network",
        ("only for files you trust",),
    ),
    "traced.torchscript": (
        checkpoint(b"\x80\x02.", "constants_DOT_pkl", "code__net_DOT_py"),
        "a TorchScript model",
        ("torch.jit.load", "traced.onnx"),
    ),
    "program.pt2": (
        zipped(program__models__model_DOT_json=b"{}", program__archive_format=b"pt2"),
        "torch.export",
        ("torch.export.load",),
    ),
    "old.pth": (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.",
        "PyTorch checkpoint of before 1.6",
        ("torch.onnx.export",),
    ),
    "model.safetensors": (safetensors(16, 16), "a safetensors file", ("load_state_dict",)),
    "net.keras": (
        zipped(config_DOT_json=b"{}", metadata_DOT_json=b"{}", model_DOT_weights_DOT_h5=b""),
        "a Keras model",
        ('load_model("net.keras")', 'net.export("net.onnx", format="onnx")'),
    ),
    "whole.h5": (hdf5(b"model_config"), "HDF5 file of Keras, a whole model", ("whole.onnx",)),
    "weights.h5": (hdf5(b"layers"), "an HDF5 file", ("load_weights",)),
    "frozen.pb": (b"\n:\n\x01x\x12\x0bPlaceholder*", "a TensorFlow graph", ("--graphdef",)),
    "saved_model.pb": (
        b"\x08\x01\x12\xa0\x95\x02\n\xfe\x14\x12\xd1\x14\n^\n\x10AssignVariableOp\x12",
        "a SavedModel",
        ("--saved-model . --output saved_model.onnx",),
    ),
    "net.tflite": (
        b"\x1c\0\0\0TFL3" + bytes(60),
        "a TensorFlow Lite model",
        ("tf2onnx.convert --opset 17 --tflite net.tflite --output net.onnx",),
    ),
    "hand.task": (zipped(hand_DOT_tflite=b""), "a bundle of MediaPipe", ("unzip hand.task",)),
    "inference.pdmodel": (
        b"\n\xb2\x05\x08\x00\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x1a",
        "a Paddle model",
        ("--model_filename inference.pdmodel --params_filename inference.pdiparams",),
    ),
    "inference.json": (b'{"base_code":{"magic":"pir"}}', "a Paddle model", ("paddle2onnx",)),
    "inference.pdiparams": (b"\0\0\0\0\4\0\1", "the weights of a Paddle model", ("paddle2onnx",)),
    "m.pdparams": (pickle.dumps({"w": 1}), "a checkpoint of Paddle", ("export_model.py",)),
    "svc.joblib": (b"\x80\x04\x95\x0f\0sklearn.svm._classes", "scikit-learn", ("skl2onnx",)),
    "some.pkl": (pickle.dumps([1, 2]), "a Python pickle", ("in the program that pickled it",)),
    "net.mlmodel": (b"\x08\x05\x12\x80\x02\n\x20\n\x05im\x1a", "a Core ML model", ("onnxmltools",)),
    "net.param": (b"7767517\n2 2\nInput x 0 1 x\n", "an ncnn model", ("nothing turns it",)),
    "net.mnn": (b"\0\0\0\0\x18", "an MNN model", ("MNNConvert",)),
    "net.rknn": (b"RKNN\0\0\0\0" + bytes(60), "a Rockchip model", ("cannot be turned back",)),
    "net.hef": (b"\x01HEF" + bytes(60), "a Hailo model", ("cannot be turned back",)),
    "net.dfp": (b"\x02\x03\x04", "a MemryX model", ("cannot be turned back",)),
    "net.om": (b"IMOD" + bytes(60), "an Ascend model", ("cannot be turned back",)),
    "net.bmodel": (b"\xee\xaa", "a Sophgo model", ("cannot be turned back",)),
    "net.blob": (b"\xee\xaa", "OAK cameras", ("cannot be turned back",)),
    "net.dlc": (zipped(model_DOT_params=b""), "a Qualcomm model", ("cannot be turned back",)),
    "net.nb": (b"\x02\xaa", "Paddle Lite", ("cannot be turned back",)),
    "net.tmfile": (b"\x02\xaa", "a Tengine model", ("cannot be turned back",)),
    "net.kmodel": (b"LDMK\5\0\0\0", "a Kendryte model", ("cannot be turned back",)),
    "net.etlt": (b"\x00\x01encrypted", "an encoded TLT or TAO model", ("ONNX with TAO",)),
    "llm.gguf": (b"GGUF\3\0\0\0", "a language model", ("llama.cpp",)),
    "net.ort": (b"\x18\0\0\0ORTM" + bytes(40), "ONNX Runtime's own format", ("converted from",)),
    "net.pte": (b"\x18\0\0\0ET12" + bytes(40), "ExecuTorch", ("cannot be turned back",)),
    "net.params": (b"\x12\x01\0\0\0\0\0\0", "a model of MXNet", ("mxnet.onnx",)),
    # no models
    "lfs.pt": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12\n",
        "a Git LFS pointer",
        ("git lfs pull --include lfs.pt",),
    ),
    "page.pt": (b"\n<!DOCTYPE html>\n<html></html>", "a web page", ("in place of blob",)),
    "denied.pt": (b'<?xml version="1.0"?>\n<Error><Code>AccessDenied', "a web page", ()),
    "packed.onnx": (zipped(model_DOT_onnx=b"x"), "a zip archive", ("unzip packed.onnx",)),
    "packed.onnx.gz": (b"\x1f\x8b\x08" + bytes(40), "a gzip archive", ("tar xf",)),
    "hole.pt": (bytes(5000), "nothing but zero bytes", ("download it again",)),
    "empty.pt": (b"", "an empty file", ("download it again",)),
}  # fmt: skip


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], Path]:
    """Write a file in the working directory and return its name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, data: bytes) -> Path:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)
        return Path(name)

    return write


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_named_and_the_way_to_onnx_shown(
    there: Callable[[str, bytes], Path], name: str
) -> None:
    data, words, hints = FILES[name]
    error = foreign_model(there(name, data))
    assert error is not None
    text = str(error)
    assert words in text.splitlines()[0]
    for hint in hints:
        assert hint in text
    assert error.code == "model-of-other-kind"
    assert error.data["format"] in FORMATS


@pytest.mark.parametrize(("name", "other"), [
    ("best.pt", "model.onnx"), ("net.tflite", "model.pt"), ("net.rknn", "model.onnx"),
    ("page.pt", "model.engine"), ("net.keras", "net.h5.bin"), ("lfs.pt", "yolo.tflite"),
])  # fmt: skip
def test_a_misnamed_file_is_told_as_what_it_is(
    there: Callable[[str, bytes], Path], name: str, other: str
) -> None:
    data, words, _ = FILES[name]
    first = str(foreign_model(there(other, data))).splitlines()[0]
    assert words in first
    suffix = Path(other).suffix
    if by_suffix(suffix) is not None:
        assert f"in spite of its name ({suffix} is of " in first


@pytest.mark.parametrize(("name", "usual"), [
    ("best.pt", "model.pt"), ("net.tflite", "model.tflite"), ("net.keras", "model.keras"),
])  # fmt: skip
def test_what_is_named_like_the_onnx_is_not_overwritten(
    there: Callable[[str, bytes], Path], name: str, usual: str
) -> None:
    path = there("model.onnx", FILES[name][0])
    error = foreign_model(path)
    assert error is not None
    _, _, rename, command, *_ = str(error).splitlines()
    assert f"mv {path} {path.with_name(usual)}" in rename
    assert usual in command


def test_weights_in_a_folder_of_hugging_face_are_its_model(
    there: Callable[[str, bytes], Path],
) -> None:
    there("hf/config.json", b'{"architectures": ["ViTForImageClassification"]}')
    for name, data in (("model.safetensors", safetensors(4, 4)),
                       ("pytorch_model.bin", FILES["net.pth"][0])):  # fmt: skip
        text = str(foreign_model(there(f"hf/{name}", data)))
        assert "this is a model of Hugging Face (transformers)\n" in text
        assert "optimum-cli export onnx --model hf --task image-classification hf/onnx" in text


@pytest.mark.parametrize(("architecture", "task"), [
    ("DetrForObjectDetection", "object-detection"),
    ("DetrForSegmentation", "image-segmentation"),
    ("SegformerForSemanticSegmentation", "semantic-segmentation"),
    ("DPTForDepthEstimation", "depth-estimation"),
    ("VitPoseForPoseEstimation", "keypoint-detection"),
    ("Dinov2Model", "feature-extraction"),
    ("bad name; rm -rf", "TASK"),
])  # fmt: skip
def test_the_task_is_that_of_the_class(tmp_path: Path, architecture: str, task: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    assert transformers_task(tmp_path) == task


def test_noise_named_like_a_model_gets_no_command(there: Callable[[str, bytes], Path]) -> None:
    for name in ("x.pt", "x.pb", "x.tflite"):
        text = str(foreign_model(there(name, b"\xee\xaa\xff" * 40)))
        assert "but its content is not" in text
        assert "copy or download it again" in text
        assert "export" not in text


def test_a_shard_of_a_checkpoint_is_named(there: Callable[[str, bytes], Path]) -> None:
    text = str(foreign_model(there("model.ckpt.data-00000-of-00001", b"\xee\xaa\xff" * 40)))
    assert "by its name this is a checkpoint of TensorFlow" in text


def test_text_named_like_a_model_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "y.pt").write_text("not found\n")
    with pytest.raises(HeadraceError, match="this is a text file, in spite of its name"):
        ModelConfig.load(tmp_path / "y.pt")


def test_an_onnx_under_another_name_is_told(there: Callable[[str, bytes], Path]) -> None:
    from tests.network.onnx_models import image_model

    path = there("best.pt", image_model().SerializeToString())
    text = str(foreign_model(path))
    assert "this is an ONNX model, in spite of its name (.pt is of a PyTorch checkpoint" in text
    assert "cp best.pt best.onnx, then headrace run best.onnx VIDEO" in text


@pytest.mark.parametrize(("name", "data", "words"), [
    ("cut.pt", FILES["best.pt"][0][:-30], "a PyTorch checkpoint (zip), and it breaks off"),
    ("cut.safetensors", safetensors(16, 9), "breaks off: 79 of 86 bytes are there"),
    ("cut.h5", hdf5(b"x", 4000), "of 4000 bytes are there"),
    ("odd.tflite", b"\xee\xaa\xff", "by its name this is a TensorFlow Lite model, but its content"),
])  # fmt: skip
def test_damage_is_named(
    there: Callable[[str, bytes], Path], name: str, data: bytes, words: str
) -> None:
    assert words in str(foreign_model(there(name, data))).splitlines()[0]


@pytest.mark.parametrize(("names", "words", "hint"), [
    (("sm/saved_model.pb", "sm/variables/x"), "a SavedModel", "--saved-model sm --output sm.onnx"),
    (("m.mlpackage/Manifest.json", "m.mlpackage/Data/x"), "a Core ML package", "nothing turns it"),
    (("pd/inference.json", "pd/inference.pdiparams"), "a folder with a Paddle model",
     "paddle2onnx --model_dir pd --model_filename inference.json"),
    (("pd/m.pdmodel", "pd/m.pdiparams"), "a folder with a Paddle model",
     "--model_filename m.pdmodel"),
    (("y_ncnn_model/m.ncnn.param", "y_ncnn_model/m.ncnn.bin"), "a folder with an ncnn", "again"),
    (("y_rknn_model/y-rk3588.rknn",), "a folder with a Rockchip model", "cannot be turned back"),
    (("hf/config.json", "hf/model.safetensors"), "a model of Hugging Face",
     "optimum-cli export onnx --model hf --task TASK hf/onnx"),
    (("sd/model_index.json",), "a pipeline of diffusers", "optimum-cli"),
    (("out/end2end.onnx", "out/deploy.json"), "a folder with an ONNX model",
     "headrace run out/end2end.onnx VIDEO"),
])  # fmt: skip
def test_a_folder_is_named(
    there: Callable[[str, bytes], Path], names: tuple[str, ...], words: str, hint: str
) -> None:
    for name in names:
        there(name, b'{"model_type": "detr"}')
    text = str(foreign_model(Path(names[0].partition("/")[0])))
    assert words in text.splitlines()[0]
    assert hint in text


def test_a_folder_of_timm_and_a_file_in_it(there: Callable[[str, bytes], Path]) -> None:
    there("t/config.json", b'{"architecture": "resnet18", "pretrained_cfg": {}}')
    file = there("t/model.safetensors", safetensors(4, 4))
    for path in (Path("t"), file):
        assert "a model of timm" in str(foreign_model(path))


def test_other_folders_and_what_cannot_be_read_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.md").write_text("x")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.json").write_text("[1")
    os.mkfifo(tmp_path / "pipe.pt")
    for name in ("a", "b", "none", "pipe.pt", "nul\0.pt"):
        assert identify(tmp_path / name) is None


def test_the_weights_beside_a_network_are_told_by_it(there: Callable[[str, bytes], Path]) -> None:
    weights = there("m.bin", b"\x01\x02\xff")
    assert identify(weights) is None
    there("m.param", FILES["net.param"][0])
    assert identify(weights).key == "ncnn-weights"  # type: ignore[union-attr]
    there("m.xml", b"<net name='x'>")
    assert "headrace run m.xml VIDEO" in str(foreign_model(weights))


def test_the_onnx_beside_is_offered_first(there: Callable[[str, bytes], Path]) -> None:
    path = there("a b/best.pt", FILES["best.pt"][0])
    there("a b/best.onnx", b"x")
    error = foreign_model(path)
    assert error is not None
    hints = error.finding.remedies
    assert hints[0] == "best.onnx lies beside it: headrace run 'a b/best.onnx' VIDEO"
    assert hints[1] == "yolo export model='a b/best.pt' format=onnx"
    for name in ("best.engine", "best.onnx_b1_gpu0_fp16.engine", "best_fp16.engine",
                 "best_ncnn_model", "best_int8_openvino_model"):  # fmt: skip
        assert onnx_beside(Path("a b", name)) == Path("a b/best.onnx"), name
    assert onnx_beside(Path("a b/worst.engine")) is None


def test_names_are_quoted_for_the_shell_and_for_python(there: Callable[[str, bytes], Path]) -> None:
    import ast
    import shlex

    path = there('it\'s "x" $(reboot).keras', FILES["net.keras"][0])
    error = foreign_model(path)
    assert error is not None
    words = shlex.split(error.finding.remedies[0])
    assert words[:2] == ["python", "-c"]
    tree = ast.parse(words[2])
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert str(path) in texts


def test_nothing_is_unpickled(there: Callable[[str, bytes], Path]) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, ("sprung",)

    trap = pickle.dumps(Trap(), 2)
    for name, data in (("a.pt", checkpoint(trap)), ("a.pkl", trap), ("a.pth", trap)):
        assert identify(there(name, data)) is not None
    assert not Path("sprung").exists()


def test_the_table_is_consistent() -> None:
    for key, row in FORMATS.items():
        assert row.name.split()[0] in ("a", "an", "the", "nothing"), key
        for suffix in row.suffixes:
            assert suffix == suffix.lower()
            assert suffix.startswith(".")
        if row.model and key not in ("executorch",):
            assert row.ways, key
    assert is_model_name("x/best.PT")
    assert not any(
        map(is_model_name, ("a.txt", "v.mp4", "a.yml", "x.cfg", "labels.data", "x.json"))
    )


@given(st.binary(max_size=300), st.sampled_from([None, *FILES]), st.sampled_from([0, 7, 5000]))
@settings(max_examples=examples(300))
def test_any_bytes_are_sniffed_without_an_error(data: bytes, start: str | None, more: int) -> None:
    if start is not None:
        data = FILES[start][0][: len(data)] + data
    key = sniff(data[:HEAD_BYTES], len(data) + more)
    assert key is None or key in FORMATS
    looks_like(data, len(data) + more)


@given(
    st.sampled_from(sorted(FILES)), st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8), st.integers(0, 600),
)  # fmt: skip
@settings(max_examples=examples(200), deadline=None)
def test_damaged_files_are_identified_without_an_error(
    tmp_path_factory: pytest.TempPathFactory,
    content: str,
    name: str,
    changes: list[tuple[int, int]],
    size: int,
) -> None:
    data = bytearray(FILES[content][0])
    for at, value in changes:
        if at < len(data):
            data[at] = value
    path = tmp_path_factory.mktemp("x") / name
    path.write_bytes(data[:size] if size < 500 else data)
    sighting = identify(path)
    assert sighting is None or sighting.key in FORMATS
    foreign_model(path)
