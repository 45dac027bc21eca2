"""Training programs: how a file gives each away, and how each prepares images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from headrace._core.plain_record import PlainRecord

if TYPE_CHECKING:
    from headrace.infer.recognise.evidence import FileEvidence
    from headrace.infer.recognise.first_layers import FirstLayers

MODEL_TYPE = "transformers_model_type"
"""The text that tells a model of Hugging Face's transformers."""
TIMM_TYPE = "timm_architecture"
"""The text that tells a model of timm."""

Order = Literal["RGB", "BGR"]
Fit = Literal["stretch", "centre", "corner"]
"""Images are stretched to the input, or fitted in with bars around, or right and below."""


class Scaling(PlainRecord, frozen=True):
    """`(byte - offset) * factor` of each channel."""

    factor: float
    offsets: tuple[float, ...] = ()
    words: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Lines of a config that ask for it: the factor, and the offsets if there are any."""
        offsets = (f"offsets={';'.join(f'{n:g}' for n in self.offsets)}",) if self.offsets else ()
        return (f"net-scale-factor={self.factor:.10g}", *offsets)


BYTES = Scaling(1.0, words="0..255")
UNIT = Scaling(1 / 255, words="/ 255")
HALF = Scaling(1 / 127.5, (127.5,) * 3, "(x - 127.5) / 127.5")
ULTRA = Scaling(1 / 128, (127.0,) * 3, "(x - 127) / 128")
# One factor for three channels: that of the mean deviation 0.226.
IMAGENET = Scaling(
    1 / (255 * 0.226),
    (123.675, 116.28, 103.53),
    "ImageNet mean, one deviation 0.226 for 0.229, 0.224, 0.225",
)
CAFFE = Scaling(1.0, (103.939, 116.779, 123.68), "0..255 without Caffe's means")
USUAL = (BYTES, UNIT, HALF, IMAGENET)
IMAGENET_BGR = Scaling(IMAGENET.factor, IMAGENET.offsets[::-1], IMAGENET.words)


class Exporter(PlainRecord, frozen=True):
    """A training program: how it prepares images, and which boxes it keeps.

    Attributes:
        name: as people call it.
        order: of the colours; None: it has no rule.
        scaling: of the values; None: it has no rule.
        fit: of the image into the input; None: it has no rule.
        threshold: the least score that it shows.
        iou: of its suppression.
        crops: it cuts the centre out of the image, by a share that the file does not tell.
        cut: the share of the centre that it cuts out; 0: nothing, or not known.
    """

    name: str
    order: Order | None = None
    scaling: Scaling | None = None
    fit: Fit | None = None
    threshold: float = 0.25
    iou: float = 0.45
    crops: bool = False
    cut: float = 0.0


ULTRALYTICS = Exporter("Ultralytics", "RGB", UNIT, "centre", 0.25, 0.7)
ULTRALYTICS_DETR = Exporter("Ultralytics RT-DETR", "RGB", UNIT, "stretch", 0.25, 0.7)
ULTRALYTICS_CLASSIFIER = Exporter("Ultralytics", "RGB", UNIT, "stretch", cut=1.0)
YOLOV5 = Exporter("YOLOv5", "RGB", UNIT, "centre", 0.25, 0.45)
YOLOX = Exporter("YOLOX", "BGR", BYTES, "corner", 0.3, 0.45)
YOLOX_LEGACY = Exporter("YOLOX before 0.2", "RGB", IMAGENET, "corner", 0.3, 0.45)
MMDET = Exporter("mmdetection", "RGB", IMAGENET, "corner", 0.3, 0.5)
ULTRAFACE = Exporter("Ultra-Light-Fast face detector", "RGB", ULTRA, "stretch", 0.6, 0.3)
CENTERFACE = Exporter("CenterFace", "RGB", BYTES, "stretch", 0.5, 0.3)
TAO = Exporter("TAO", None, None, "stretch", 0.3, 0.5)
TAO_GRID = Exporter("TAO DetectNet_v2", "RGB", UNIT, "stretch", 0.2, 0.5)
TAO_BATCHED = Exporter("TAO YOLO", "BGR", CAFFE, "centre", 0.3)
TAO_DETR = Exporter("TAO DETR", "RGB", IMAGENET, "stretch", 0.5, 0.5)
TAO_EFFICIENTDET = Exporter("TAO EfficientDet", "RGB", BYTES, "corner", 0.3, 0.5)
PADDLE_DET = Exporter("PaddleOCR", "BGR", IMAGENET, "centre", 0.5)
PADDLE = Exporter("PaddleOCR", "BGR", HALF, "corner", 0.5)
PADDLE_CLAS = Exporter("PaddleClas", "RGB", IMAGENET, "stretch", crops=True)
TORCHVISION = Exporter("torchvision", "RGB", IMAGENET, "stretch", 0.5, 0.5, crops=True)
TIMM = Exporter("timm", "RGB", IMAGENET, "stretch", crops=True)
PATCHES = Exporter("timm", "RGB", None, "stretch", crops=True)
TF_DETECTION = Exporter("TensorFlow's detection API", "RGB", BYTES, "stretch", 0.3, 0.6)
RTDETR = Exporter("RT-DETR", "RGB", UNIT, "stretch", 0.5, 0.7)
RFDETR = Exporter("RF-DETR", "RGB", IMAGENET, "stretch", 0.5, 0.7)

OF_ULTRALYTICS = (ULTRALYTICS, ULTRALYTICS_DETR, ULTRALYTICS_CLASSIFIER)
"""Its models by how they take images: fitted in, stretched, or a cut of the centre."""

TRANSFORMERS = Exporter("Hugging Face transformers", "RGB", None, "stretch", 0.5, 0.7)

Found = tuple[Exporter, str]
"""An exporter, and what tells it."""


def exporter_of(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    """The exporter that a file names or gives away; None if nothing does."""
    for look in _LOOKS:
        answer = look(evidence, layers)
        if answer is not None:
            return answer
    return None


def by_metadata(texts: Mapping[str, str]) -> Found | None:
    """Find the exporter that wrote the metadata of a file; None if they do not tell."""
    if texts.get("author") == "Ultralytics" or "ultralytics" in texts.get("docs", "").lower():
        told = f"metadata author: Ultralytics {texts.get('version', '')}".strip()
        words = f"{texts.get('head', '')} {texts.get('description', '')}".lower()
        if "rtdetr" in words.replace("-", ""):
            return ULTRALYTICS_DETR, told
        return ULTRALYTICS_CLASSIFIER if texts.get("task") == "classify" else ULTRALYTICS, told
    if "names" in texts and "stride" in texts:
        return YOLOV5, "metadata names and stride, as YOLOv5 writes them"
    return None


def selects(metadata: Mapping[str, str]) -> bool:
    """Whether the metadata say that the graph selects boxes: end to end, or `nms=True`."""
    end_to_end = metadata.get("end2end", "").lower() == "true"
    return end_to_end or "'nms': True" in metadata.get("args", "")


def _ultralytics(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    names = (name for name in evidence.module_classes if name.startswith("ultralytics."))
    told = [(ULTRALYTICS, f"modules are {name}") for name in names]
    return by_metadata(evidence.metadata) or next(iter(told), None)


def _yolox(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    rows = [o for o in evidence.outputs if len(o.shape) == 3]
    if not evidence.stem.focus or len(evidence.outputs) != 1 or not rows:
        return None
    if not isinstance(rows[0].shape[2], int) or rows[0].shape[2] < 6:
        return None
    why = "sliced first layer and one output of rows, as YOLOX"
    if layers.level == "small":
        return YOLOX_LEGACY, why
    return YOLOX, why


def _named_outputs(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    names = {o.name for o in evidence.outputs}
    if {"dets", "labels"} <= names:
        return _dets_labels(evidence)
    if any("output_cov" in n for n in names) and any("output_bbox" in n for n in names):
        return TAO_GRID, "outputs output_cov and output_bbox"
    if {"BatchedNMS"} <= names:
        return TAO_BATCHED, "a BatchedNMS output"
    if {"pred_logits", "pred_boxes"} <= names and evidence.input.name == "inputs":
        return TAO_DETR, "input inputs, outputs pred_logits and pred_boxes"
    tensorflow = evidence.producer.startswith("tf2onnx") or evidence.input.dtype.kind == "u"
    if {"detection_boxes", "detection_scores", "detection_classes"} <= names:
        classes = next(o for o in evidence.outputs if o.name == "detection_classes")
        if classes.dtype.kind in "iu" and evidence.input.shape[-1] == 3:
            return TAO_EFFICIENTDET, "detection_classes of integers, an input of pixels"
        if not tensorflow:
            return None
        return TF_DETECTION, "outputs of TensorFlow's detection API"
    return None


def _dets_labels(evidence: FileEvidence) -> Found | None:
    """Two programs name their outputs so: rows with a score and ids, or boxes and logits."""
    dets, labels = (next(o for o in evidence.outputs if o.name == n) for n in ("dets", "labels"))
    if dets.shape[-1] == 5 or labels.dtype.kind in "iu" or len(labels.shape) < 3:
        return MMDET, "outputs dets and labels, as mmdeploy names them"
    if labels.dtype.kind == "f":
        return RFDETR, "outputs dets of four columns and labels with logits, as RF-DETR writes them"
    return None


_TURNS = 2  # classes of PaddleOCR's classifier: upright, upside down


def _paddle(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    graph = str(evidence.network.model.graph.name or "")
    if "addle" not in f"{evidence.producer} {graph}":
        return None
    said = evidence.producer if "addle" in evidence.producer else f"graph {graph!r}"
    end = next(iter(evidence.ends.values()), "")
    shape = evidence.outputs[0].shape
    if len(evidence.outputs) == 1 and len(shape) == 2 and shape[1] != _TURNS:
        return PADDLE_CLAS, f"{said.rstrip('.')}, one vector as PaddleClas's classifiers"
    if end == "Sigmoid" and len(evidence.outputs) == 1:
        return PADDLE_DET, f"{said.rstrip('.')}, one map as PaddleOCR's text detectors"
    if end == "Softmax" and len(evidence.outputs) == 1:
        return PADDLE, f"{said.rstrip('.')}, one soft-max as PaddleOCR's readers"
    return None


def _faces(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    shapes = {o.name: o.shape[1:] for o in evidence.outputs}
    if set(shapes) == {"scores", "boxes"} and shapes["scores"] in ((4420, 2), (17640, 2)):
        return ULTRAFACE, f"{shapes['scores'][0]} boxes with 2 scores in outputs scores and boxes"
    axes = [s[0] for s in shapes.values() if len(s) == 3]
    if axes == [1, 2, 2, 10] and layers.level == "bytes":
        return CENTERFACE, "maps of 1, 2, 2 and 10 channels: heat, size, offset, landmarks"
    return None


def _modules(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    for name in evidence.module_classes:
        if name.startswith(_PATCHES):
            return PATCHES, f"modules are {name}"
        for start, exporter in (("timm.", TIMM), ("torchvision.", TORCHVISION)):
            if name.startswith(start):
                return exporter, f"modules are {name}"
    if evidence.input.name == "input0" and [o.name for o in evidence.outputs] == ["output0"]:
        return TIMM, "input0 and output0, as timm's exporter names them"
    if evidence.producer.startswith("pytorch"):
        parts = {name.partition("/")[0] for name in evidence.node_names}
        for needed in _TORCHVISION_PARTS:
            if needed <= parts:
                named = ", ".join(sorted(needed))
                return TORCHVISION, f"modules {named}, as torchvision names them"
    return None


_RESIZES: dict[str, Fit] = {
    "standard": "stretch", "crop": "stretch", "fit_to_window": "corner",
    "fit_to_window_letterbox": "centre",
}  # fmt: skip
_ORDERS: dict[str, Order] = {"true": "RGB", "yes": "RGB", "false": "BGR", "no": "BGR"}


def _model_info(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    """How OpenVINO's `model_info` has images prepared."""
    texts = evidence.metadata
    if "resize_type" not in texts and "reverse_input_channels" not in texts:
        return None
    # programs read BGR: reversed, the model gets RGB
    reverse = texts.get("reverse_input_channels", "").lower()
    order = _ORDERS.get(reverse)
    scaling = None if "mean" in texts or "scaled" in texts.get("description", "") else BYTES
    exporter = Exporter(
        "OpenVINO's model_info",
        order,
        scaling,
        _RESIZES.get(texts.get("resize_type", "")),
        _between(texts.get("confidence_threshold"), 0.25),
        _between(texts.get("iou_threshold"), 0.45),
        crops=texts.get("resize_type") == "crop",
    )
    return exporter, f"model_info: {texts.get('model_type', 'no model_type')}"


def _between(text: str | None, default: float) -> float:
    try:
        number = float(text or "")
    except ValueError:
        return default
    return number if 0 < number < 1 else default


def _timm(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    kind = evidence.metadata.get(TIMM_TYPE)
    return None if kind is None else (TIMM, f"config.json of timm beside the model: {kind}")


def _transformers(evidence: FileEvidence, layers: FirstLayers) -> Found | None:
    kind = evidence.metadata.get(MODEL_TYPE)
    return None if kind is None else (TRANSFORMERS, f"config.json beside the model: {kind}")


# Models on patches come with either normalisation, and the file does not say which.
_PATCHES = ("timm.models.vision_transformer", "timm.models.mlp_mixer", "timm.models.beit")
_TORCHVISION_PARTS = (
    frozenset({"conv1", "layer1", "layer2", "layer3", "layer4", "avgpool", "fc"}),
    frozenset({"features", "avgpool", "classifier"}),
    frozenset({"backbone", "classifier"}),
)
_LOOKS: tuple[Callable[[FileEvidence, FirstLayers], Found | None], ...] = (
    _ultralytics,
    _model_info,
    _faces,
    _paddle,
    _named_outputs,
    _yolox,
    _timm,
    _transformers,
    _modules,
)
