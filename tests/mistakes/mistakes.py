"""Set-ups with one mistake each, as they come up, and what the first lines must say of it."""

from __future__ import annotations

from dataclasses import replace

from tests.mistakes.cases import Case, config_text
from tests.mistakes.models import HEIGHT, WIDTH
from tests.mistakes.setups import (
    BARE,
    CHANNELS_LAST,
    CLASSIFIER,
    DETECTNET,
    LABELS,
    NMS,
    OWN_PARSER,
    PARSER,
    SECONDARY,
    SEGMENTER,
    SSD,
    UNIT,
    YOLOV5,
    YOLOV8,
    YOLOX,
)

_ALL = "class-attrs-all."
_SCALE, _COLOR, _OFFSETS = "net-scale-factor", "model-color-format", "offsets"
_PARSER = "parse-bbox-func-name"
_THRESHOLD = _ALL + "pre-cluster-threshold"
_COCO = ("person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat")
_COCO_LABELS = "".join(f"{name}\n" for name in _COCO)
_TEXT = config_text(YOLOV8.configs["config.txt"])
_PY = {"custom-lib-path": "my_parser.py", _PARSER: "parse_rows"}


def _edit(old: str, new: str) -> str:
    assert old in PARSER
    return PARSER.replace(old, new)


# The input: range, channels, size, layout
INPUT = [
    Case("scale-1-for-0..1", YOLOV8, {_SCALE: 1}, [_SCALE]),
    Case("scale-absent", YOLOV5, {_SCALE: None}, [_SCALE]),
    Case("scale-for-0..255", YOLOX, {_SCALE: UNIT}, [_SCALE]),
    Case("scale-1-detectnet", DETECTNET, {_SCALE: 1}, [_SCALE]),
    Case("scale-without-offsets", SSD, {_OFFSETS: None}, [_OFFSETS]),
    Case("offsets-without-scale", SSD, {_SCALE: 1}, [_SCALE]),
    Case("offsets-in-0..1", SSD, {_OFFSETS: "0.5;0.5;0.5"}, [_OFFSETS]),
    Case("offsets-forgotten-classifier", CLASSIFIER, {_OFFSETS: None}, [_OFFSETS]),
    Case("scale-1-classifier", CLASSIFIER, {_SCALE: 1}, [_SCALE]),
    Case("scale-1-segmenter", SEGMENTER, {_SCALE: 1}, [_SCALE]),
    Case("scale-0", YOLOV8, {_SCALE: 0}, [_SCALE]),
    Case("scale-with-a-comma", YOLOV8, {_SCALE: "0,0039215697"}, [_SCALE]),
    Case("bgr-for-rgb", YOLOV8, {_COLOR: 1}, [_COLOR]),
    Case("rgb-for-bgr", YOLOX, {_COLOR: 0}, [_COLOR]),
    Case("bgr-secondary", SECONDARY, {"pgie.txt:" + _COLOR: 1}, [_COLOR]),
    Case("grey-for-rgb", YOLOV8, {_COLOR: 2}, [_COLOR]),
    Case("color-format-in-words", YOLOV8, {_COLOR: "RGB"}, [_COLOR]),
    Case("aspect-ratio", YOLOV8, {"maintain-aspect-ratio": 0, "symmetric-padding": 0},
         ["maintain-aspect-ratio"]),
    Case("aspect-ratio-forgotten", YOLOX, {"maintain-aspect-ratio": None},
         ["maintain-aspect-ratio"]),
    Case("padding-not-symmetric", YOLOV8, {"symmetric-padding": None},
         ["symmetric-padding"], waits="the same boxes come of it"),
    Case("padding-without-ratio", YOLOV8, {"maintain-aspect-ratio": None},
         ["maintain-aspect-ratio"]),
    Case("dims-transposed", YOLOV8, {"infer-dims": f"3;{WIDTH};{HEIGHT}"}, ["infer-dims"]),
    Case("dims-of-another-model", YOLOV8, {"infer-dims": "3;640;640"}, ["infer-dims"]),
    Case("channels-last-not-said", CHANNELS_LAST,
         {"network-input-order": None, "infer-dims": None}, ["network-input-order|NHWC"]),
    Case("channels-last-wrongly-said", YOLOV8, {"network-input-order": 1},
         ["network-input-order"]),
    Case("channels-last-and-dims-wrongly-said", YOLOV8,
         {"network-input-order": 1, "infer-dims": f"3;{HEIGHT};{WIDTH}"},
         ["network-input-order"]),
    Case("offsets-for-one-channel", SSD, {_OFFSETS: "127.5"}, [_OFFSETS]),
    Case("offsets-with-commas", SSD, {_OFFSETS: "127.5,127.5,127.5"}, [_OFFSETS]),
    Case("mean-file-of-another-size", SSD, {"mean-file": "mean.ppm", _OFFSETS: None},
         ["mean-file|mean.ppm"], {"mean.ppm": b"P6\n32 24\n255\n" + bytes([127]) * (32 * 24 * 3)}),
    Case("tensors-from-nowhere", YOLOV8, {"input-tensor-from-meta": 1},
         ["input-tensor-from-meta", "without tensors"]),
]  # fmt: skip

# Labels and classes
LABELLED = [
    Case("labels-of-another-model", YOLOV8, {}, ["labels"], {"labels.txt": _COCO_LABELS}),
    Case("labels-sorted", YOLOV8, {}, ["labels", "tomato"],
         {"labels.txt": "cactus\nplum\ntomato\n"}),
    Case("labels-fewer", YOLOV8, {}, ["labels"], {"labels.txt": "tomato\ncactus\n"}),
    Case("labels-one-more", YOLOX, {}, ["labels"], {"labels.txt": LABELS + "pear\n"}),
    Case("labels-with-background", YOLOV8, {}, ["background"],
         {"labels.txt": "background\n" + LABELS}),
    Case("labels-background-forgotten-unused", YOLOX, {}, ["background"],
         {"labels.txt": "__background__\ntomato\ncactus\n"}),
    Case("labels-in-one-line", YOLOV8, {}, ["labels"], {"labels.txt": "tomato;cactus;plum\n"}),
    Case("labels-with-carriage-returns", YOLOV8, {}, ["carriage return|CRLF"],
         {"labels.txt": LABELS.replace("\n", "\r\n")}),
    Case("labels-with-byte-order-mark", YOLOV8, {}, ["byte order mark|BOM"],
         {"labels.txt": "\N{ZERO WIDTH NO-BREAK SPACE}" + LABELS}),
    Case("labels-utf-16", YOLOV8, {}, ["UTF-16|UTF-8"], {"labels.txt": LABELS.encode("utf-16")}),
    Case("labels-lost", YOLOV8, {}, ["labels.txt", "labelfile-path"], {"labels.txt": None}),
    Case("labels-numbered", YOLOV8, {}, ["labels"], {"labels.txt": "0 tomato\n1 cactus\n2 plum\n"}),
    Case("labels-as-yaml", YOLOV8, {}, ["labels"],
         {"labels.txt": "names:\n  0: tomato\n  1: cactus\n  2: plum\n"}),
    Case("classes-too-few", YOLOV8, {"num-detected-classes": 1}, ["num-detected-classes"]),
    Case("classes-of-coco", YOLOV8, {"num-detected-classes": 80}, ["num-detected-classes"]),
    Case("classes-too-few-detectnet", DETECTNET, {"num-detected-classes": 2},
         ["num-detected-classes"]),
    Case("classes-too-many-detectnet", DETECTNET, {"num-detected-classes": 4},
         ["num-detected-classes"]),
    Case("classes-absent", YOLOV8, {"num-detected-classes": None}, ["num-detected-classes"]),
    Case("classes-too-few-own-parser", OWN_PARSER, {"num-detected-classes": 2},
         ["num-detected-classes"], {"labels.txt": "tomato\ncactus\n"}),
    Case("classes-too-few-ssd", SSD, {"num-detected-classes": 2}, ["num-detected-classes"]),
    Case("classes-with-background-ssd", SSD, {"num-detected-classes": 4},
         ["num-detected-classes|background"]),
    Case("classifier-labels-in-lines", CLASSIFIER, {}, ["colors.txt", "';'"],
         {"colors.txt": "red\ngreen\nblue\n"}),
    Case("classifier-labels-too-few", CLASSIFIER, {}, ["labels"], {"colors.txt": "red;green\n"}),
    Case("classifier-labels-too-many", CLASSIFIER, {}, ["labels"],
         {"colors.txt": "none;red;green;blue\n"}),
    Case("classifier-without-labels", CLASSIFIER, {"labelfile-path": None}, ["labelfile-path"]),
]  # fmt: skip

# The parser and what it makes of the outputs
PARSED = [
    Case("yolov5-read-as-yolox", YOLOV5, {_PARSER: "HeadraceParseYoloX"},
         ["HeadraceParseYoloV5"]),
    Case("yolox-read-as-yolov5", YOLOX, {_PARSER: "HeadraceParseYoloV5"},
         ["HeadraceParseYoloX"]),
    Case("ssd-corners-as-centres", SSD, {_PARSER: "HeadraceParseSSDCenters"}, [_PARSER]),
    Case("ssd-unit-as-pixels", SSD, {_PARSER: "HeadraceParseBoxesScores"}, [_PARSER]),
    Case("nms-pixels-as-unit", NMS, {_PARSER: "HeadraceParseEfficientNMSUnit"},
         [_PARSER, "pixels"]),
    Case("yolov8-read-as-rtdetr", YOLOV8, {_PARSER: "HeadraceParseRTDETR"}, [_PARSER]),
    Case("yolov8-read-as-yolov5", YOLOV8, {_PARSER: "HeadraceParseYoloV5"}, [_PARSER]),
    Case("export-in-0..1", YOLOV8, {}, ["0..1"], models={"yolov8.onnx": "unit.onnx"}),
    Case("export-of-corners", YOLOV8, {}, ["corner"], models={"yolov8.onnx": "corners.onnx"}),
    Case("export-without-sigmoid", YOLOV8, {}, ["sigmoid"], models={"yolov8.onnx": "logits.onnx"}),
    Case("own-parser-corners", OWN_PARSER, {}, ["corner|width"], {"my_parser.py": _edit(
        "boxes[:, :2] -= boxes[:, 2:] / 2",
        "boxes[:, :2] -= boxes[:, 2:] / 2; boxes[:, 2:] += boxes[:, :2]")}),
    Case("own-parser-in-0..1", OWN_PARSER, {}, ["0..1"], {"my_parser.py": _edit(
        "boxes[:, 2:] / 2", "boxes[:, 2:] / 2; boxes = boxes / [160, 128, 160, 128]")}),
    Case("own-parser-of-frame-pixels", OWN_PARSER, {}, ["outside"], {"my_parser.py": _edit(
        "boxes[:, 2:] / 2", "boxes[:, 2:] / 2; boxes = boxes * 6")}),
    Case("own-parser-swaps-axes", OWN_PARSER, {}, ["outside"], {"my_parser.py": _edit(
        "boxes[:, 2:] / 2", "boxes[:, 2:] / 2; boxes = boxes[:, [1, 0, 3, 2]]")},
        waits="most boxes stay in the image"),
    Case("own-parser-counts-from-1", OWN_PARSER, {}, ["class 3"], {"my_parser.py": _edit(
        "classes[keep]", "classes[keep] + 1")}),
    Case("own-parser-one-score", OWN_PARSER, {_THRESHOLD: 0.02}, ["score"], {"my_parser.py": _edit(
        "best[keep], ", "np.ones(keep.sum()), ")}),
    Case("own-parser-in-percent", OWN_PARSER, {}, ["score"], {"my_parser.py": _edit(
        "best[keep], ", "best[keep] * 100, ")}),
    Case("own-parser-finds-nothing", OWN_PARSER, {}, ["strong|silent"], {"my_parser.py": _edit(
        "best >= params.min_threshold", "best > 1")}),
    Case("own-parser-wrong-output", OWN_PARSER, {}, ["my_parser.py", "output0"],
         {"my_parser.py": _edit('layers["output0"]', 'layers["output"]')}),
    Case("function-misspelt-in-library", OWN_PARSER, {_PARSER: "parse_row"},
         ["parse_row", "parse_rows"]),
    Case("function-misspelt-built-in", YOLOV8, {_PARSER: "HeadraceParseYolov8"},
         ["HeadraceParseYoloV8"]),
    Case("function-without-library", YOLOV8, {_PARSER: "NvDsInferParseMyYolo"},
         ["custom-lib-path"]),
    Case("library-lost", OWN_PARSER, {}, ["custom-lib-path", "my_parser.py"],
         {"my_parser.py": None}),
    Case("library-of-another-name", YOLOV8,
         {"custom-lib-path": "libnvdsinfer_custom_impl_Yolo.so", _PARSER: "NvDsInferParseYolo"},
         ["custom-lib-path", "libnvdsinfer_custom_impl_Yolo.so"]),
    Case("library-without-function", OWN_PARSER, {_PARSER: None}, [_PARSER]),
    Case("no-parser", YOLOV8, {_PARSER: None}, [_PARSER, "HeadraceParseYoloV8"]),
    Case("detector-as-classifier", YOLOV8, {"network-type": 1}, ["network-type"]),
    Case("detector-as-segmentation", YOLOV8, {"network-type": 2}, ["network-type"]),
    Case("detector-as-other", YOLOV8, {"network-type": 100},
         ["is for network-type 0 (detector)"]),
    Case("classifier-as-detector", CLASSIFIER, {"network-type": 0, "num-detected-classes": 3},
         ["network-type"]),
    Case("classifier-as-segmentation", CLASSIFIER, {"network-type": 2}, ["network-type"]),
    Case("segmenter-as-detector", SEGMENTER, {"network-type": 0}, ["network-type"]),
    Case("segmenter-threshold", SEGMENTER, {"segmentation-threshold": 5},
         ["segmentation-threshold"]),
    Case("outputs-named-wrongly", YOLOV8, {"output-blob-names": "output"},
         ["output-blob-names"]),
    Case("outputs-named-wrongly-detectnet", DETECTNET,
         {"output-blob-names": "conv2d_bbox;conv2d_cov/Sigmoid"}, ["output-blob-names"]),
]  # fmt: skip

# Thresholds, clustering and filters
FILTERED = [
    Case("threshold-above-all", YOLOV8, {_THRESHOLD: 0.999}, ["pre-cluster-threshold"]),
    Case("threshold-in-percent", YOLOV8, {_THRESHOLD: 30}, ["pre-cluster-threshold"]),
    Case("threshold-0", YOLOV8, {_THRESHOLD: 0}, ["pre-cluster-threshold"]),
    Case("threshold-of-one-class", YOLOV8, {"class-attrs-1.pre-cluster-threshold": 0.999},
         ["pre-cluster-threshold", "cactus|class 1"]),
    Case("threshold-in-property", YOLOV8, {"pre-cluster-threshold": 0.3, _THRESHOLD: None},
         ["pre-cluster-threshold", "class-attrs"]),
    Case("post-threshold", YOLOV8, {_ALL + "post-cluster-threshold": 0.999},
         ["post-cluster-threshold"]),
    Case("topk-1", YOLOV8, {_ALL + "topk": 1}, ["topk"], scene="alike"),
    Case("topk-0", YOLOV8, {_ALL + "topk": 0}, ["topk"]),
    Case("no-clustering", YOLOV8, {"cluster-mode": 4}, ["cluster-mode"]),
    Case("no-clustering-yolox", YOLOX, {"cluster-mode": 4}, ["cluster-mode"]),
    Case("nms-1", YOLOV8, {_ALL + "nms-iou-threshold": 1}, ["nms-iou-threshold"]),
    Case("nms-0", YOLOV8, {_ALL + "nms-iou-threshold": 0}, ["nms-iou-threshold"]),
    Case("dbscan-eps-0", YOLOV8, {"cluster-mode": 1, _ALL + "minBoxes": 3}, ["eps"]),
    Case("dbscan-boxes", YOLOV8,
         {"cluster-mode": 1, _ALL + "eps": 0.2, _ALL + "minBoxes": 50}, ["minBoxes|dbscan"]),
    Case("cluster-mode-absent", YOLOV8, {"cluster-mode": None, _ALL + "topk": 200},
         ["cluster-mode"]),
    Case("cluster-mode-in-words", YOLOV8, {"cluster-mode": "NMS"}, ["cluster-mode"]),
    Case("every-class-out", YOLOV8, {"filter-out-class-ids": "0;1;2"},
         ["filter-out-class-ids"]),
    Case("roi-hides-all", YOLOV8,
         {_ALL + "roi-top-offset": 150, _ALL + "roi-bottom-offset": 100},
         ["roi-top-offset|roi-bottom-offset"]),
    Case("detected-min-w", YOLOV8, {_ALL + "detected-min-w": 500}, ["detected-min-w"]),
    Case("detected-max-h", YOLOV8, {_ALL + "detected-max-h": 20}, ["detected-max-h"]),
    Case("detected-min-above-max", YOLOV8,
         {_ALL + "detected-min-w": 100, _ALL + "detected-max-w": 50}, ["detected-m"]),
    Case("class-that-is-not-there", YOLOV8, {"class-attrs-3.pre-cluster-threshold": 0.5},
         ["class-attrs-3"]),
    Case("classes-counted-from-1", YOLOV8,
         {f"class-attrs-{i}.pre-cluster-threshold": 0.4 for i in (1, 2, 3)}, ["class-attrs-3"]),
    Case("class-group-misspelt", YOLOV8,
         {"class-attr-all.pre-cluster-threshold": 0.4, _THRESHOLD: None}, ["class-attr"]),
    Case("interval", YOLOV8, {"interval": 100}, ["interval"]),
    Case("classifier-threshold", CLASSIFIER, {"classifier-threshold": 0.999},
         ["classifier-threshold"]),
    Case("nobody-reads-the-tensors", YOLOV8, {"network-type": 100, _PARSER: None},
         ["output-tensor-meta"]),
]  # fmt: skip

# Secondary models
SECONDARIES = [
    Case("parent-id", SECONDARY, {"operate-on-gie-id": 5}, ["operate-on-gie-id"]),
    Case("class-ids", SECONDARY, {"operate-on-class-ids": "7"}, ["operate-on-class-ids"]),
    Case("objects-too-small", SECONDARY,
         {"input-object-min-width": 128, "input-object-min-height": 128},
         ["input-object-min"]),
    Case("objects-too-large", SECONDARY, {"input-object-max-width": 32},
         ["input-object-max"]),
    Case("process-mode-forgotten", SECONDARY, {"process-mode": None}, ["process-mode=2"]),
    Case("process-mode-alone", SECONDARY,
         {"process-mode": None, "operate-on-gie-id": None, "operate-on-class-ids": None},
         ["process-mode"]),
    Case("primary-as-secondary", YOLOV8, {"process-mode": 2}, ["process-mode"]),
    Case("secondary-first", SECONDARY, {},
         ["pgie.txt|sgie.txt|order|operate-on-gie-id"],
         command=["run", "sgie.txt", "pgie.txt", "images", "-o", "out.jsonl"]),
    Case("same-id-twice", SECONDARY, {"gie-unique-id": 1, "operate-on-gie-id": 1},
         ["gie-unique-id"]),
    Case("secondary-labels-in-lines", SECONDARY, {}, ["colors.txt", "';'"],
         {"colors.txt": "red\ngreen\nblue\n"}),
    Case("secondary-labels-of-the-first", SECONDARY, {"labelfile-path": "labels.txt"},
         ["labels.txt", "';'"]),
    Case("secondary-threshold", SECONDARY, {"classifier-threshold": 1}, ["classifier-threshold"]),
    Case("secondary-offsets", SECONDARY, {_OFFSETS: None}, [_OFFSETS]),
    Case("secondary-sees-nothing", SECONDARY, {"pgie.txt:" + _THRESHOLD: 0.999},
         ["pre-cluster-threshold"]),
    Case("asynchronous-without-tracker", SECONDARY, {"classifier-async-mode": 1}, ["track"]),
]  # fmt: skip

# Files and their forms, engines, precision
FILES = [
    Case("key-misspelt", YOLOV8, {"net-scale-facter": UNIT, _SCALE: None}, [_SCALE]),
    Case("key-with-underscores", YOLOV8, {"net_scale_factor": UNIT, _SCALE: None}, [_SCALE]),
    Case("key-twice", YOLOV8, {}, ["net-scale-factor|duplicate|twice|again"],
         {"config.txt": _TEXT.replace("batch-size=1", "batch-size=1\nnet-scale-factor=1")}),
    Case("comment-behind-a-value", YOLOV8,
         {"labelfile-path": "labels.txt  # three"}, ["labelfile-path|labels.txt"]),
    Case("yaml-in-a-txt", YOLOV8, {}, ["config.txt:1", "yaml"],
         {"config.txt": "property:\n  onnx-file: yolov8.onnx\n  net-scale-factor: 0.0039\n"}),
    Case("ini-in-a-yml", replace(YOLOV8, command=["run", "config.yml", *YOLOV8.command[2:]]), {},
         ["config.yml", "INI"], {"config.yml": _TEXT, "config.txt": None}),
    Case("equals-in-yaml", replace(YOLOV8, command=["run", "config.yml", *YOLOV8.command[2:]]), {},
         ["config.yml", "': '"],
         {"config.yml": "property:\n  onnx-file=yolov8.onnx\n"}),
    Case("byte-order-mark", YOLOV8, {}, ["byte order mark|BOM"],
         {"config.txt": "\N{ZERO WIDTH NO-BREAK SPACE}" + _TEXT}),
    Case("group-forgotten", YOLOV8, {}, ["[property]|group"],
         {"config.txt": _TEXT.removeprefix("[property]\n")}),
    Case("model-lost", YOLOV8, {"onnx-file": "yolov8n.onnx"}, ["onnx-file", "yolov8n.onnx"],
         exit=3),
    Case("model-a-web-page", YOLOV8, {"onnx-file": "page.onnx"}, ["page.onnx", "html|web page"],
         {"page.onnx": "<!DOCTYPE html>\n<html><body>Not Found</body></html>\n"}),
    Case("model-a-pointer", YOLOV8, {"onnx-file": "big.onnx"}, ["big.onnx", "lfs"],
         {"big.onnx": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n"}),
    Case("model-cut-short", YOLOV8, {"onnx-file": "cut.onnx"}, ["cut.onnx"],
         {"cut.onnx": b"\x08\x08\x12\x07pytorch:\xff\xff\x02"}, exit=4),
    Case("config-behind-source", YOLOV8, {}, ["config"],
         command=["run", "images", "config.txt", "-o", "out.jsonl"], exit=2),
    Case("source-lost", YOLOV8, {}, ["picturs"],
         command=["run", "config.txt", "picturs", "-o", "out.jsonl"], exit=6),
    Case("engine-of-another-model", YOLOV8, {"model-engine-file": "other.engine"},
         ["other.engine"], models={"other.engine": "yolox.engine"}),
    Case("engine-alone-of-another-model", YOLOV8,
         {"model-engine-file": "other.engine", "onnx-file": None},
         ["other.engine|output|parse-bbox-func-name"], models={"other.engine": "yolov5.engine"}),
    Case("engine-of-the-original", YOLOV8, {"model-engine-file": "trt.engine"}, ["trt.engine"],
         {"trt.engine": b"ftrt" + bytes(range(256)) * 8}),
    Case("int8-without-table", YOLOV8, {"network-mode": 1}, ["int8-calib-file"]),
    Case("table-of-another-model", YOLOV8, {"network-mode": 1, "int8-calib-file": "cal.txt"},
         ["int8-calib-file|cal.txt"], {"cal.txt":
             "TRT-8501-EntropyCalibration2\ndata: 3c010a14\nconv1: 3d1b2c3d\n"}),
    Case("table-lost", YOLOV8, {"network-mode": 1, "int8-calib-file": "cal.txt"}, ["cal.txt"]),
    Case("table-that-damages", YOLOV8, {"network-mode": 1, "int8-calib-file": "bad.table"},
         ["int8|INT8"], models={"bad.table": "bad.table"}),
    Case("precision-beyond", YOLOV8, {"network-mode": 7}, ["network-mode"]),
    Case("windows-path", YOLOV8, {"labelfile-path": "C:\\models\\labels.txt"},
         ["labelfile-path"]),
    Case("path-in-quotes", YOLOV8, {"onnx-file": '"yolov8.onnx"'}, ["quot", "onnx-file"]),
]  # fmt: skip


def _with(*words: str) -> list[str]:
    return [*YOLOV8.command, *words]


# Bare models and what is set on the command line
SET = [
    Case("bare-without-scale", BARE, {}, ["how values are scaled is undecided"], exit=4,
         models={"yolov8.onnx": "plain.onnx"}),
    Case("bare-without-head", BARE, {}, ["2 built-in parsers"], exit=4,
         models={"yolov8.onnx": "yolox.onnx"}),
    Case("bare-in-0..1", BARE, {}, ["0..1"], models={"yolov8.onnx": "unit.onnx"}),
    Case("bare-of-corners", BARE, {}, ["corner"], models={"yolov8.onnx": "corners.onnx"}),
    Case("bare-without-sigmoid", BARE, {}, ["sigmoid"], models={"yolov8.onnx": "logits.onnx"}),
    Case("set-misspelt", YOLOV8, {}, ["net-scale-factor"],
         command=_with("--set", "net-scale-facter=1")),
    Case("set-of-another-form", YOLOV8, {}, ["--set"], command=_with("--set", "batch-size:1")),
    Case("set-class-that-is-not-there", YOLOV8, {}, ["class-attrs-9"],
         command=_with("--set", "class-attrs-9.topk=5")),
    Case("set-scale", YOLOV8, {}, ["net-scale-factor"],
         command=_with("--set", "net-scale-factor=1")),
    Case("conf-in-percent", YOLOV8, {}, ["--conf"], command=_with("--conf", "40")),
    Case("conf-above-all", YOLOV8, {}, ["--conf|pre-cluster-threshold"],
         command=_with("--conf", "0.999")),
    Case("labels-set-lost", YOLOV8, {}, ["--labels|labelfile-path", "coco.txt"],
         command=_with("--labels", "coco.txt")),
    Case("profile-misspelt", YOLOV8, {}, ["--profile"], command=_with("--profile", "modrn"),
         exit=2),
    Case("profile-misspelt-in-file", YOLOV8, {"profile": "modren"}, ["profile"], exit=3),
]  # fmt: skip

CASES = [*INPUT, *LABELLED, *PARSED, *FILTERED, *SECONDARIES, *FILES, *SET]
