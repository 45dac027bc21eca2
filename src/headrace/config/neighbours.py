"""Files of neighbours that are given for a config: the kind of each, and the way on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.plain_record import PlainRecord

_HEAD = 1 << 16  # bytes of a file that are looked at


class Neighbour(PlainRecord, frozen=True):
    """A kind of file.

    Attributes:
        name: what it is.
        way: what reads it, or what to give instead.
        marks: patterns that all have to be in it, each at the beginning of a line.
        suffixes: of its name; empty: any.
    """

    name: str
    way: str
    marks: tuple[str, ...]
    suffixes: tuple[str, ...] = ()


_JSON, _YAML = (".json",), (".yml", ".yaml")
NEIGHBOURS = (
    Neighbour(
        "the config.pbtxt of a Triton model",
        "give headrace run the config of nvinferserver that names its repository, or the "
        "model.onnx in the numbered folder beside it",
        (r"(platform|backend|name)\s*:\s*\"", r"(input|output|max_batch_size)\s*[:\[{]"),
    ),
    Neighbour(
        "a config of nvdspreprocess",
        "`preprocess` of a model in a pipeline file, [pre-process] of a deepstream-app config and "
        "the GStreamer element nvdspreprocess read it",
        (
            r"\[property\]",
            r"(network-input-shape|tensor-name|target-unique-ids)\s*=",
            r"\[group-\d+\]",
        ),
    ),
    Neighbour(
        "a config of nvdspostprocess",
        "the GStreamer element nvdspostprocess reads it; for headrace run write the same keys into "
        "a config of nvinfer",
        (r"(postprocess-libs?|postprocess_lib_name|lib_name)\s*[:=].*postprocess",),
    ),
    Neighbour(
        "a tracker's config",
        "headrace run CONFIG VIDEO --tracker FILE takes it",
        (r"(BaseConfig|NvDCF|TargetManagement|TrajectoryManagement|DataAssociator|VisualTracker)\s*:",),
        _YAML,
    ),
    Neighbour(
        "a module of Savant",
        "its `model` of an element nvinfer@… holds the keys of a config of nvinfer: write those",
        (r"pipeline\s*:", r"\s*(- )?element\s*:\s*\S+@"),
        _YAML,
    ),
    Neighbour(
        "an experiment of TAO",
        "give the model that it exports: tao model NAME export -e SPEC, then headrace run "
        "MODEL.onnx VIDEO",
        (r"dataset\s*:", r"(export|gen_trt_engine|encryption_key|results_dir)\s*:"),
        _YAML,
    ),
    Neighbour(
        "a data set or architecture of Ultralytics",
        "give the exported model: yolo export model=FILE format=onnx, then headrace run MODEL.onnx "
        "VIDEO",
        (r"(nc|names|backbone|train|val)\s*:", r"(path|train|val|test|backbone|head|scales)\s*:"),
        _YAML,
    ),
    Neighbour(
        "a model-proc file of DL Streamer",
        "headrace init MODEL.onnx writes a config of the model; its labels and scaling go there",
        (r"[\s{]*\"json_schema_version\"", ),
        _JSON,
    ),
    Neighbour(
        "a label map of TensorFlow's object detection",
        "give the model: headrace run MODEL.onnx VIDEO; labelfile-path takes the names one a line, "
        "the first line for id 0",
        (r"item\s*\{", r".*\b(id|name|display_name)\s*:"),
    ),
    Neighbour(
        "a pipeline of TensorFlow's object detection",
        "give the model that it trained: python -m tf2onnx.convert --saved-model FOLDER --output "
        "MODEL.onnx, then headrace run MODEL.onnx VIDEO",
        (r"model\s*\{", r".*\b(ssd|faster_rcnn|center_net|image_resizer)\s*\{"),
    ),
    Neighbour(
        "a file that mmdeploy writes beside its model",
        "give the model: headrace run end2end.onnx VIDEO reads it, too",
        (
            r".*\"(codebase_config|backend_config|pipeline|models)\"\s*:",
            r".*\"(codebase|task|net|onnx_config)\"",
        ),
        _JSON,
    ),
    Neighbour(
        "a config of Hugging Face",
        "give the model: headrace run model.onnx VIDEO reads it, too",
        (r".*\"(model_type|architectures|image_processor_type|feature_extractor_type)\"\s*:",),
        _JSON,
    ),
    Neighbour(
        "a config of the message converter",
        "an output takes it: -o 'messages+kafka://…?config=FILE'",
        (r"\[sensor\d+\]",),
    ),
)  # fmt: skip
"""In the order in which they are looked for."""

SIBLINGS = (
    Neighbour(
        "a config of the parallel inference application",
        "each of its branches is a run of its own: headrace run with the config files of its "
        "models, or a deepstream-app config with one [primary-gie] and [secondary-gieN]",
        (r"branch\d+\s*:", r"(pgie-id|src-ids)\s*:"),
        _YAML,
    ),
    Neighbour(
        "a config of deepstream-audio",
        "there is no audio here; a model of sounds runs in Python on tensors: "
        "headrace.Session",
        (r"(\[audio-(classifier|transform)\]|audio-(classifier|transform)\s*:)",),
    ),
    Neighbour(
        "a config of a deepstream-3d application",
        "clouds of points are not read; models of plain frames run by headrace run CONFIG VIDEO",
        (r"(-\s*)?type\s*:\s*ds3d::",),
        _YAML,
    ),
    Neighbour(
        "a config of deepstream-3d-action-recognition",
        "its model takes sequences of frames, which nvdspreprocess makes with its own library; "
        "headrace bench MODEL.onnx measures the model alone",
        (r"(\[action-recognition\]|action-recognition\s*:)",),
    ),
    Neighbour(
        "a config of a TAO application",
        "headrace run CONFIG VIDEO with the nvinfer config it names runs its model; the keys "
        "under its sinks are options: -o FILE.mp4",
        (r"(eglsink|filesink|fakesink|model-config)\s*:",),
        _YAML,
    ),
    Neighbour(
        "a config of a sample program (deepstream-test1 and its like), no deepstream-app config",
        "its groups hold properties of elements: headrace run CONFIG VIDEO with its "
        "config-file-path and its list does the same, and headrace exec runs the program itself",
        (r"(source-list|source)\s*:", r"(list|location)\s*:", r"config-file-path\s*:"),
        _YAML,
    ),
)  # fmt: skip
"""Name the applications that read these configs; their groups look like deepstream-app's."""


def neighbour_of(
    data: bytes, path: Path, kinds: Sequence[Neighbour] = NEIGHBOURS
) -> Neighbour | None:
    """Find the kind of a file that is none of ours; None for all else."""
    text = data[:_HEAD].decode("utf-8", "replace")
    suffix = path.suffix.lower()
    for kind in kinds:
        if kind.suffixes and suffix not in kind.suffixes:
            continue
        if all(re.search(f"^[ \\t]*{mark}", text, re.MULTILINE) for mark in kind.marks):
            return kind
    return None


def refuse_sibling(data: bytes, path: Path) -> None:
    """Refuse a config of another application, before it runs as something that it is not.

    Raises:
        ConfigError: it is one.
    """
    _refuse(
        neighbour_of(data, path, SIBLINGS), path, "", "a deepstream-app config, or a pipeline file"
    )


def refuse_neighbour(data: bytes, path: Path) -> None:
    """Refuse a file of a neighbour, before its lines are taken for wrong keys.

    Raises:
        ConfigError: it is one.
    """
    kind = neighbour_of(data, path, (*NEIGHBOURS, *SIBLINGS))
    expected = "a config of nvinfer: [property] with onnx-file and its other keys"
    _refuse(kind, path, ", no config of nvinfer", expected)


def _refuse(kind: Neighbour | None, path: Path, but: str, expected: str) -> None:
    if kind is not None:
        text = f"this is {kind.name}{but}"
        raise ConfigError(
            text, where=str(path), expected=expected, fix=kind.way, code="foreign-file"
        )
