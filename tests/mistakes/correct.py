"""Set-ups with nothing wrong: nothing may be said of them, and every box is as it was painted."""

from __future__ import annotations

from dataclasses import replace

import yaml

from tests.mistakes.cases import Case, Setup, config_text
from tests.mistakes.models import HEIGHT, WIDTH
from tests.mistakes.scene import SCENES
from tests.mistakes.setups import (
    BARE,
    CHANNELS_LAST,
    CLASSIFIER,
    DETECTNET,
    LABELS,
    NMS,
    OWN_PARSER,
    SECONDARY,
    SEGMENTER,
    SSD,
    UNIT,
    YOLOV5,
    YOLOV8,
    YOLOX,
)

_ALL = "class-attrs-all."
SETUPS = {
    "yolov8": YOLOV8, "yolov5": YOLOV5, "yolox": YOLOX, "ssd": SSD, "detectnet": DETECTNET,
    "nms": NMS, "channels-last": CHANNELS_LAST, "own-parser": OWN_PARSER, "secondary": SECONDARY,
    "classifier": CLASSIFIER, "segmenter": SEGMENTER,
}  # fmt: skip
_TEXT = config_text(YOLOV8.configs["config.txt"])


def _yaml(setup: Setup) -> str:
    groups: dict[str, dict[str, object]] = {"property": {}}
    for key, value in setup.configs["config.txt"].items():
        group, _, name = key.rpartition(".")
        if value is not None:
            groups.setdefault(group or "property", {})[name] = value
    return yaml.safe_dump(groups)


CASES = [
    *(Case(name, setup) for name, setup in SETUPS.items()),
    *(Case(f"yolov8-{scene}", YOLOV8, scene=scene) for scene in SCENES if scene != "images"),
    Case("yolox-dark", YOLOX, scene="dark"),
    Case("yolox-crowd", YOLOX, scene="crowd"),
    Case("ssd-bright", SSD, scene="bright"),
    Case("ssd-plain", SSD, scene="plain"),
    Case("detectnet-empty", DETECTNET, scene="empty"),
    Case("secondary-rare", SECONDARY, scene="rare"),
    Case("secondary-empty", SECONDARY, scene="empty"),
    Case("classifier-dark", CLASSIFIER, scene="dark"),
    Case("segmenter-noisy", SEGMENTER, scene="noisy"),
    Case("threshold-for-each-class", YOLOV8, {
        "class-attrs-0.pre-cluster-threshold": 0.4, "class-attrs-2.pre-cluster-threshold": 0.6,
    }),
    Case("top-20", YOLOX, {_ALL + "topk": 20}),
    Case("one-class-left-out", YOLOV8, {"filter-out-class-ids": 2}, kinds=(0, 1)),
    Case("sizes-limited", YOLOV8, {
        _ALL + "detected-min-w": 8, _ALL + "detected-min-h": 8, _ALL + "detected-max-w": 300,
    }),
    Case("padding-at-the-right", YOLOV5, {"symmetric-padding": 0}),
    Case("two-threads", YOLOV8, command=[*YOLOV8.command, "--threads", "2"]),
    Case("half-precision", YOLOV5, {"network-mode": 2}),
    Case("engine-named", YOLOV8, {"model-engine-file": "yolov8.onnx_b1_gpu0_fp32.engine"}),
    Case("batch-of-a-fixed-model", YOLOV8, {"batch-size": 4}),
    Case("dims-given", YOLOV8, {"infer-dims": f"3;{HEIGHT};{WIDTH}"}),
    Case("outputs-named", YOLOV8, {"output-blob-names": "output0"}),
    Case("carriage-returns", YOLOV8, files={"config.txt": _TEXT.replace("\n", "\r\n")}),
    Case("comments", YOLOV8, files={"config.txt": f"# detector\n{_TEXT}\n# end\n"}),
    Case("yaml", replace(YOLOV8, command=["run", "config.yml", *YOLOV8.command[2:]]), files={
        "config.txt": None, "config.yml": _yaml(YOLOV8),
    }),
    Case("absolute-label-names", SSD, files={"labels.txt": LABELS.removesuffix("\n")}),
    Case("ssd-background-first", SSD, {"num-detected-classes": 3}),
    Case("no-metadata", YOLOV8, models={"yolov8.onnx": "plain.onnx"}),
    Case("labels-translated", replace(YOLOV8, boxes=False), files={
        "labels.txt": "Tomate\nKaktus\nPflaume\n",
    }),
    Case("tracked", YOLOV8, command=[*YOLOV8.command, "--tracker", "iou:min_hits=1"]),
    Case("of-one-kind", SECONDARY, {"operate-on-class-ids": "1"}),
    Case("secondary-sizes", SECONDARY, {
        "input-object-min-width": 16, "input-object-min-height": 16,
    }),
    Case("tensors-kept", YOLOV8, {"output-tensor-meta": 1}),
    Case("bare", BARE),
    Case("bare-dark", BARE, scene="dark"),
    Case("bare-yolov5", BARE, models={"yolov8.onnx": "yolov5.onnx"}),
    Case("bare-head-chosen", BARE, models={"yolov8.onnx": "yolox.onnx"}, files={
        "names.txt": LABELS,
    }, command=[*BARE.command, "--set", "parse-bbox-func-name=HeadraceParseYoloX",
                "--set", "maintain-aspect-ratio=1", "--set", "model-color-format=1",
                "--labels", "names.txt"]),
    Case("bare-scale-chosen", BARE, models={"yolov8.onnx": "plain.onnx"}, files={
        "names.txt": LABELS,
    }, command=[*BARE.command, "--set", f"net-scale-factor={UNIT}",
                "--set", "maintain-aspect-ratio=1",
                "--labels", "names.txt"]),
    Case("modern", YOLOV8, {"profile": "modern"}),
    Case("modern-ssd", SSD, command=[*SSD.command, "--profile", "modern"]),
    Case("threshold-set", YOLOV8, command=[*YOLOV8.command, "--conf", "0.5"]),
    Case("scale-set", YOLOV8, {"net-scale-factor": 1}, command=[
        *YOLOV8.command, "--set", f"net-scale-factor={UNIT}",
    ]),
    Case("strict", YOLOV8, command=[*YOLOV8.command, "--strict"]),
    Case("unit-offsets-of-zero", YOLOV8, {"offsets": "0;0;0", "net-scale-factor": UNIT}),
]  # fmt: skip
