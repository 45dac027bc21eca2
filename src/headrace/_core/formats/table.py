"""Table of the formats that stand where a model should: their names, suffixes, the way to ONNX."""

from __future__ import annotations

import re
from pathlib import Path

from headrace._core.plain_record import PlainRecord

BARE_MODELS = (".onnx", ".xml")
"""A path that ends so, where a config may stand, is a model without one."""

_TF = "pip install tf2onnx tensorflow-cpu"
_CONVERT = "python -m tf2onnx.convert --opset 17"
_KERAS = 'net(keras.ops.zeros((1, *net.input_shape[1:]))); net.export({onnx!r}, format="onnx")'
_COMPILED = "it is compiled for one chip and cannot be turned back: take the ONNX it was made of"
_EXPORT = "torch.onnx.export(net.eval(), torch.zeros(1, 3, 640, 640), {onnx!r}, dynamo=False)"
_FETCH = "download it again, and look at its first bytes: head -c 200 {file}"
_UNPACK = "unpack it, and give the model in it"


class Format(PlainRecord, frozen=True):
    """One format.

    Attributes:
        name: what such a file is, with its article.
        suffixes: of its files and folders.
        ways: commands and hints that lead to an ONNX file, of which one is enough; `{file}`,
            `{stem}`, `{folder}`, `{onnx}` and the like are replaced. Behind `python -c ` stands
            Python.
        marked: whether its content tells it; otherwise only its name does.
        model: whether it holds a model; False for archives, web pages, pointers.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    marked: bool = True
    model: bool = True


def _chip(name: str, *suffixes: str, marked: bool = False) -> Format:
    return Format(name, suffixes, (_COMPILED,), marked)


def _torch(name: str, *ways: str, suffixes: tuple[str, ...] = ()) -> Format:
    return Format(name, suffixes, ways)


_RTDETR = "python tools/deployment/export_onnx.py -c CONFIG.yml -r {file} --check"
_LOADS = "(torch.load runs code of the file: only for files you trust)"

FORMATS = {
    # what is no model
    "lfs": Format("a Git LFS pointer; the data was never fetched", ways=(
        "git lfs pull --include {file} fetches it",), model=False),
    "annex": Format("a git-annex pointer; the data was never fetched", ways=(
        "git annex get {file} fetches it",), model=False),
    "html": Format("a web page (HTML), perhaps a failed download", (".html", ".htm"), (
        "download the file itself (a page of GitHub: its raw file; of Hugging Face: resolve in "
        "place of blob)",), model=False),
    "zeros": Format("nothing but zero bytes", ways=("copy or download it again",), model=False),
    "empty": Format("an empty file", ways=("copy or download it again",), model=False),
    "gzip": Format("a gzip archive", (".gz", ".tgz"), (
        _UNPACK + ": tar xf {file}; where it is one file: gunzip -k {file}",), model=False),
    "xz": Format("an xz archive", (".xz",), (
        _UNPACK + ": tar xf {file}; where it is one file: unxz -k {file}",), model=False),
    "7z": Format("a 7-Zip archive", (".7z",), (_UNPACK + ": 7z x {file}",), model=False),
    "zstd": Format("a zstd archive", (".zst",), (_UNPACK + ": unzstd {file}",), model=False),
    "tar": Format("a tar archive", (".tar",), (_UNPACK + ": tar xf {file}",), model=False),
    "zip": Format("a zip archive", (".zip",), (_UNPACK + ": unzip {file}",), model=False),
    "rar": Format("a RAR archive", (".rar",), (_UNPACK + ": unrar x {file}",), model=False),
    "elf": Format("a shared library or program", (".so",), (
        "custom-lib-path takes a library",), model=False),
    "npy": Format("a NumPy array", (".npy",), model=False),
    "json": Format("a JSON file", (".json",), model=False),
    "xml": Format("an XML file", ways=(_FETCH,), model=False),
    "text": Format("a text file", model=False),
    "nvinfer": Format("an nvinfer config", model=False),
    "headrace-plan": Format("a headrace plan", ways=(
        "model-engine-file={file} names it in a config; headrace bench {file} measures it",)),
    # models that headrace reads
    "onnx": Format("an ONNX model", (".onnx",), (
        "a model without a config is known by its name: cp {file} {onnx}, then headrace run {onnx} "
        "VIDEO",)),
    "openvino": Format("a model of OpenVINO (IR)", (".xml",), (
        "headrace run {stem}.xml VIDEO runs it as it is",)),
    "openvino-weights": Format("the weights of an OpenVINO model (IR)", ways=(
        "headrace run {stem}.xml VIDEO runs the model",), marked=False),
    "tensorrt": Format("a TensorRT engine", (".engine", ".plan", ".trt"), (
        "headrace runs the ONNX model that it was built of; where TensorRT is installed, "
        "model-engine-file={file} in a config names an engine of this GPU and release",)),
    "darknet": Format("a Darknet network text (.cfg)", (".cfg",), (
        "a config names it: custom-network-config={file} and model-file={stem}.weights",)),
    "prototxt": Format("a Caffe network text (prototxt)", (".prototxt",), (
        "a config names it: proto-file={file} and model-file={stem}.caffemodel",)),
    "caffemodel": Format("a Caffe model (caffemodel)", (".caffemodel",), (
        "a config names it: model-file={file} and proto-file={stem}.prototxt",)),
    "uff": Format("a UFF model", (".uff",), ("a config names it: uff-file={file}",)),
    "onnx-data": Format("the external weights of an ONNX model", (".onnx_data", ".data"), (
        "give the .onnx beside it",), marked=False),
    # PyTorch
    "ultralytics": _torch("a checkpoint of Ultralytics (PyTorch)",
        "yolo export model={file} format=onnx"),
    "yolov5": _torch("a checkpoint of YOLOv5, v7 or v9 (PyTorch)",
        "python export.py --weights {file} --include onnx, in the folder of its repository"),
    "yolov6": _torch("a checkpoint of YOLOv6 (PyTorch)",
        "python deploy/ONNX/export_ONNX.py --weights {file}, in the folder of its repository"),
    "yolox": _torch("a checkpoint of YOLOX (PyTorch)",
        "python tools/export_onnx.py -n yolox-s -c {file} --output-name {onnx}, with its own size"),
    "yolo-nas": _torch("a checkpoint of YOLO-NAS (PyTorch, SuperGradients)",
        "python -c from super_gradients.training import models; models.get(\"yolo_nas_s\", "
        "num_classes=80, checkpoint_path={file!r}).export({onnx!r})"),
    "rfdetr": _torch("a checkpoint of RF-DETR (PyTorch)",
        "python -c from rfdetr import RFDETRBase; RFDETRBase(pretrain_weights={file!r}).export()"),
    "rtdetr": _torch("a checkpoint of RT-DETR, D-FINE or DEIM (PyTorch)", _RTDETR),
    "mmlab": _torch("a checkpoint of OpenMMLab (PyTorch: mmdetection, mmpose, …)",
        "python tools/deploy.py DEPLOY_CONFIG MODEL_CONFIG {file} IMAGE --work-dir out, of "
        "mmdeploy"),
    "detectron2": _torch("a checkpoint of Detectron2 (PyTorch)",
        "python tools/deploy/export_model.py --config-file CONFIG.yaml --export-method tracing "
        "--format onnx --sample-image IMAGE --output out MODEL.WEIGHTS {file}"),
    "anomalib": _torch("a checkpoint of Anomalib (PyTorch)",
        "anomalib export --model MODEL --ckpt_path {file} --export_type onnx"),
    "lightning": _torch("a checkpoint of PyTorch Lightning",
        "net = YourModule.load_from_checkpoint({file!r}); net.to_onnx({onnx!r}, "
        "torch.zeros(1, 3, H, W), dynamo=False), in the program that defines it"),
    "torchscript": _torch("a TorchScript model (PyTorch)",
        "python -c import torch; net = torch.jit.load({file!r}); " + _EXPORT,
        suffixes=(".torchscript", ".ptl")),
    "torch-program": _torch("a program of torch.export (PyTorch)",
        "python -c import torch; torch.onnx.export(torch.export.load({file!r}), "
        "dynamo=True).save({onnx!r})", suffixes=(".pt2",)),
    "torch-state": _torch("a state_dict (PyTorch): weights without their network",
        "net = YourNet(); net.load_state_dict(torch.load({file!r})); " + _EXPORT +
        ", in the program that defines the network"),
    "torch-module": _torch("a pickled PyTorch network",
        "python -c import torch; net = torch.load({file!r}, map_location=\"cpu\", "
        "weights_only=False); "
        + _EXPORT, "where its classes can be imported " + _LOADS),
    "torch": _torch("a PyTorch checkpoint (zip)",
        "net = YourNet(); net.load_state_dict(torch.load({file!r})[\"state_dict\"]); " + _EXPORT +
        ", in the program that defines the network", suffixes=(".pt", ".pth", ".ckpt")),
    "torch-legacy": _torch("a PyTorch checkpoint of before 1.6 (pickle)",
        "yolo export model={file} format=onnx, if it is one of Ultralytics; else "
        "torch.onnx.export in the program that defines the network"),
    "executorch": _chip("a program of ExecuTorch", ".pte", marked=True),
    "huggingface": Format("a model of Hugging Face (transformers)", ways=(
        "optimum-cli export onnx --model {folder} --task {task} {folder}/onnx",
        "pip install \"optimum-onnx[onnxruntime]\"")),
    "timm": Format("a model of timm (PyTorch)", ways=(
        "python -c import timm, torch; net = timm.create_model(\"local-dir:\" + {folder!r}, "
        "pretrained=True); torch.onnx.export(net.eval(), torch.zeros(1, "
        "*net.pretrained_cfg[\"input_size\"]), {onnx!r}, dynamo=False)",)),
    "diffusers": Format("a pipeline of diffusers", ways=(
        "optimum-cli export onnx --model {folder} --task text-to-image {folder}/onnx",)),
    "safetensors": Format("a safetensors file", (".safetensors",), (
        "it holds weights without their network: net = YourNet(); net.load_state_dict("
        "safetensors.torch.load_file({file!r})); " + _EXPORT +
        ", in the program that defines the network",
        "optimum-cli export onnx --model FOLDER --task TASK OUT, for a folder of Hugging "
        "Face")),
    # TensorFlow, Keras
    "savedmodel": Format("a SavedModel of TensorFlow", (), (
        _CONVERT + " --saved-model {folder} --output {onnx}", _TF)),
    "graphdef": Format("a TensorFlow graph (.pb)", (".pb",), (
        _CONVERT + " --graphdef {file} --inputs INPUT:0 --outputs OUTPUT:0 --output {onnx}", _TF)),
    "tensorflow-checkpoint": Format("a checkpoint of TensorFlow", (".index", ".meta"), (
        "export it as a SavedModel in the program that defines the network, then " + _CONVERT +
        " --saved-model FOLDER --output {onnx}",), marked=False),
    "tensorflow-js": Format("a model of TensorFlow.js", ways=(
        "tensorflowjs_converter --input_format tfjs_graph_model --output_format tf_saved_model "
        "{folder} saved_model, then " + _CONVERT + " --saved-model saved_model --output {onnx}",)),
    "tflite": Format("a TensorFlow Lite model", (".tflite", ".lite"), (
        _CONVERT + " --tflite {file} --output {onnx}", _TF)),
    "mediapipe": Format("a bundle of MediaPipe", (".task",), (
        "unzip {file}, then " + _CONVERT + " --tflite MODEL.tflite --output {onnx}", _TF)),
    "keras": Format("a Keras model (.keras)", (".keras",), (
        "python -c import keras; net = keras.models.load_model({file!r}); " + _KERAS, _TF)),
    "keras-h5": Format("an HDF5 file of Keras, a whole model", (".h5", ".hdf5"), (
        "python -c import keras; net = keras.models.load_model({file!r}, compile=False); "
        + _KERAS, _TF)),
    "hdf5": Format("an HDF5 file (Keras weights?)", (".h5", ".hdf5"), (
        "it holds weights without their network: net = YourModel(); net.load_weights({file!r}); "
        "net.export({onnx!r}, format=\"onnx\"), in the program that defines the network",)),
    # other frameworks
    "paddle": Format("a Paddle model", (".pdmodel",), (
        "paddle2onnx --model_dir {folder} --model_filename {model} --params_filename "
        "{weights} --save_file {onnx}",)),
    "paddle-weights": Format("the weights of a Paddle model", (".pdiparams",), (
        "paddle2onnx --model_dir {folder} --model_filename {model} --params_filename {weights} "
        "--save_file {onnx}",), marked=False),
    "paddle-checkpoint": Format("a checkpoint of Paddle", (".pdparams", ".pdopt"), (
        "python tools/export_model.py -c CONFIG.yml -o weights={file} (PaddleDetection), then "
        "paddle2onnx",), marked=False),
    "paddle-lite": _chip("a model of Paddle Lite", ".nb"),
    "mxnet": Format("a model of MXNet", (".params",), (
        "python -c import mxnet; mxnet.onnx.export_model({stem!r} + \"-symbol.json\", {file!r}, "
        "[(1, 3, 224, 224)], \"float32\", {onnx!r})",), marked=False),
    "sklearn": Format("a pickled model of scikit-learn", ways=(
        "python -c import joblib, skl2onnx; net = joblib.load({file!r}); open({onnx!r}, "
        "\"wb\").write("
        "skl2onnx.to_onnx(net, initial_types=[(\"x\", skl2onnx.common.data_types.FloatTensorType("
        "[None, net.n_features_in_]))], options={{\"zipmap\": False}}).SerializeToString())",
        "it classifies rows of numbers, no images; loading runs code of the file: only for files "
        "you trust")),
    "pickle": Format("a Python pickle (an old PyTorch checkpoint?)", (
        ".pkl", ".pickle", ".joblib"), (
            "torch.onnx.export or skl2onnx.to_onnx, in the program that pickled it",)),
    "coreml": Format("a Core ML model", (".mlmodel",), (
        "export again, to ONNX, what it was made of; of a neural network of the old form: "
        "python -c import coremltools, onnxmltools; onnxmltools.utils.save_model("
        "onnxmltools.convert_coreml(coremltools.utils.load_spec({file!r})), {onnx!r})",)),
    "mlpackage": Format("a Core ML package", (".mlpackage", ".mlmodelc"), (
        "nothing turns it into ONNX: export again, to ONNX, what it was made of (an Ultralytics "
        "model: yolo export model=MODEL.pt format=onnx)",)),
    "ncnn": Format("an ncnn model", (".param",), (
        "nothing turns it into ONNX: export again, to ONNX, what it was made of (an Ultralytics "
        "model: yolo export model=MODEL.pt format=onnx)",)),
    "ncnn-weights": Format("the weights of an ncnn model", ways=(
        "nothing turns it into ONNX: export again, to ONNX, what it was made of",), marked=False),
    "mnn": Format("an MNN model", (".mnn",), (
        "export again, to ONNX, what it was made of (MNNConvert -f MNN --modelFile {file} "
        "--JsonFile shows what is in it)",), marked=False),
    "tengine": _chip("a Tengine model", ".tmfile"),
    "tnn": _chip("a TNN model", ".tnnproto", ".tnnmodel"),
    "mindspore": Format("a MindSpore model", (".mindir", ".ms"), (
        "mindspore.export(net, inputs, file_name={stem!r}, file_format=\"ONNX\"), in the program "
        "that defines the network",), marked=False),
    "gguf": Format("a language model (GGUF)", (".gguf", ".ggml"), (
        "llama.cpp runs it; it works on text, no images",)),
    "ort": Format("a model of ONNX Runtime's own format (.ort)", (".ort",), (
        "take the ONNX file that it was converted from",)),
    # compiled for chips
    "rknn": _chip("a Rockchip model (RKNN)", ".rknn", marked=True),
    "hailo": _chip("a Hailo model (HEF)", ".hef", marked=True),
    "memryx": _chip("a MemryX model (DFP)", ".dfp"),
    "ascend": _chip("an Ascend model (OM)", ".om", marked=True),
    "sophgo": _chip("a Sophgo model", ".bmodel", ".cvimodel"),
    "myriad": _chip("a model for Myriad and OAK cameras", ".blob", ".superblob"),
    "snpe": _chip("a Qualcomm model (DLC)", ".dlc"),
    "qnn": _chip("a Qualcomm context binary", ".serialized"),
    "axera": _chip("an Axera model", ".axmodel"),
    "kendryte": _chip("a Kendryte model", ".kmodel", marked=True),
    "kneron": _chip("a Kneron model", ".nef"),
    "vitis": _chip("a Vitis AI model", ".xmodel"),
    "horizon": _chip("a Horizon model", ".hbm"),
    "nnarchive": Format("an archive of Luxonis without a config.json of a model", (".nnarchive",),
        (_UNPACK + ": tar xf {file}",),
        marked=False, model=False),
    "etlt": Format("an encoded TLT or TAO model (.etlt, .tlt)", (".etlt", ".tlt"), (
        "an encoded TLT or TAO model (.etlt, .tlt) is encrypted and read by NVIDIA's library "
        "alone: export it to ONNX with TAO (5.0 and later do), or decode it with TAO's tools",),
        marked=False),
}  # fmt: skip
"""Key -> format. Where a suffix is that of several, the first names a file of unknown content."""


def by_suffix(suffix: str) -> str | None:
    """The key of the format that files of this suffix (`.pt`) usually have."""
    return next((key for key, row in FORMATS.items() if suffix.lower() in row.suffixes), None)


_SURE_SUFFIXES = frozenset(
    suffix for key, row in FORMATS.items() if row.model and key not in ("json", "text", "onnx-data")
    for suffix in row.suffixes if suffix not in (".data", ".meta", ".index", ".lite", ".cfg")
)  # fmt: skip
"""Suffixes that only models have."""

SHARD = re.compile(r"\.data-\d{5}-of-\d{5}")
"""The suffix of a part of a checkpoint."""


def is_model_name(name: str) -> bool:
    """Return True for a name that only models have."""
    suffix = Path(name).suffix.lower()
    return suffix in _SURE_SUFFIXES or SHARD.fullmatch(suffix) is not None
