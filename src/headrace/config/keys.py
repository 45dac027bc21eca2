"""Every key of every generation that was inspected, one row each, and the key that a name means.

Source: config facts, 2 and 3.
"""

# ruff: noqa: E501 (a table: one key per line)

from __future__ import annotations

from functools import partial
from typing import Any

from headrace._core.near import nearest, plain_name
from headrace.config.enums import (
    ClusterMode,
    ColorFormat,
    NamedValue,
    NetworkMode,
    NetworkType,
    ProcessMode,
    ScalingComputeHw,
    ScalingFilter,
    TensorOrder,
    UffInputOrder,
)
from headrace.config.key import Key, key_row
from headrace.config.values import INT_MAX, MAX_CANDIDATES, Kind

# The original takes any number and allocates; a table of more classes than any known model has is
# refused so that a typo costs an error message and not the memory.
MAX_CLASSES = 65536

_FLAG, _INT_FLAG = Kind.FLAG, Kind.INT_FLAG
_INT, _FLOAT, _INTS, _FLOATS = Kind.INT, Kind.FLOAT, Kind.INTS, Kind.FLOATS
_STRING, _PATH, _STRINGS, _PATHS = Kind.STRING, Kind.PATH, Kind.STRINGS, Kind.PATHS

_DETECTOR, _CLASSIFIER, _SEMANTIC, _INSTANCE = (0,), (1,), (2,), (3,)
_BOXES = (0, 3)
_PARSED = (0, 1, 2, 3)
_PRIMARY, _SECONDARY = "primary", "secondary"
_NEW = "6.4..9.0"  # absent in 6.3, present in 9.0; what lies between was not available


MAX_BONES = 4096
"""More pairs of keypoints than this are no skeleton."""


_p = partial(key_row, "property")


def _e(name: str, enum: type[NamedValue], default: NamedValue, meaning: str, **more: Any) -> Key:
    return _p(name, _INT, default, meaning, enum=enum, **more)


_c = partial(key_row, "class-attrs", types=_BOXES, acts=True, low=0)

PROPERTY_ROWS: tuple[Key, ...] = (
    # identity, scheduling, batching
    _p("gie-unique-id", _INT, None, "id stamped on all results; the first free number where it is absent, refused under --generation", low=1, acts=True),
    _e("process-mode", ProcessMode, ProcessMode.PRIMARY, "whole frames, or objects found upstream", loose=True, acts=True),
    _p("interval", _INT, 0, "batches skipped between two inferred ones", low=0, mode=_PRIMARY, loose=True, acts=True),
    _p("gpu-id", _INT, 0, "number of the GPU, where there is one; part of the engine file's name", low=0, acts=True),
    _p("batch-size", _INT, 1, "largest batch", low=1, high=1024, acts=True),
    _e("network-type", NetworkType, NetworkType.DETECTOR, "what is done with the outputs", acts=True),
    _p("is-classifier", _FLAG, None, "1 is network-type 1, 0 is network-type 0; only where network-type is absent", in_yaml=False, acts=True, legacy="network-type"),
    # where the network comes from
    _p("model-engine-file", _PATH, None, "engine tried before the model is built", acts=True),
    _p("onnx-file", _PATH, None, "ONNX model", acts=True),
    _p("tlt-encoded-model", _PATH, None, "encrypted TAO model", reason="only NVIDIA's own converter can read an encrypted model: export it to ONNX"),
    _p("tlt-model-key", _STRING, None, "key of tlt-encoded-model", reason="only NVIDIA's own converter can read an encrypted model: export it to ONNX"),
    _p("model-file", _PATH, None, "Caffe weights (beside proto-file), or Darknet weights (beside custom-network-config)", until="7.0", acts=True),
    _p("proto-file", _PATH, None, "Caffe network", until="7.0", acts=True),
    _p("uff-file", _PATH, None, "UFF model", until="7.0", acts=True),
    _p("uff-input-blob-name", _STRING, None, "input of the UFF model", until="7.0", acts=True),
    _e("uff-input-order", UffInputOrder, UffInputOrder.NCHW, "dimension order of the UFF input", since="5.0", until="7.0", acts=True),
    _p("uff-input-dims", _INTS, None, "c;h;w;order: infer-dims and uff-input-order", counts=(4,), low=0, in_yaml=False, acts=True, legacy="infer-dims"),
    _p("input-dims", _INTS, None, "older name of uff-input-dims", counts=(4,), low=0, in_yaml=False, acts=True, legacy="infer-dims"),
    _p("custom-network-config", _STRING, None, "Darknet network (.cfg) beside model-file; looked for in the config's folder, then the working directory", acts=True),
    _p("output-blob-names", _STRINGS, (), "output tensors; they select those of Caffe and UFF models, and are compared with those of other models", acts=True),
    _p("engine-create-func-name", _STRING, None, "function of the custom library that makes the network; without a library it is not called", since="5.0", acts=True),
    _p("custom-lib-path", _PATH, None, "library (.so) or Python module (.py) with the parser", acts=True),
    _p("custom-lib-abi", _STRING, "auto", "size of a box in a C++ library: 24 or 28 bytes; auto detects", choices=("auto", "24", "28"), acts=True, extension=True),
    _p("custom-lib-int64", _STRING, "auto", "how a C++ library gets INT64 outputs: as int32, as before TensorRT 10, or as they are; auto: int32 for generation 6.2 and libraries linked against an older TensorRT", choices=("auto", "int32", "int64"), acts=True, extension=True),
    _p("custom-lib-guard", _STRING, "auto", "whether the library runs in a worker process: auto does that with C++ libraries that are not trusted yet", choices=("auto", "always", "never"), acts=True, extension=True),
    _p("custom-lib-guard-timeout", _FLOAT, 10.0, "seconds that a call in the worker process may take", low=0.0625, acts=True, extension=True),
    _p("custom-lib-guard-memory", _INT, 4096, "MiB of address space (with a GPU: of writable memory) that the worker process may take beside what it has at the start; 0 sets no limit", low=0, acts=True, extension=True),
    _p("custom-lib-guard-restarts", _INT, 5, "how often the worker process is started again", low=0, acts=True, extension=True),
    _p("custom-lib-guard-env", _STRINGS, (), "variables of the environment: NAME passes what looks like a credential to the worker process, -NAME holds another one back; * and ? stand for letters", acts=True, extension=True),
    _p("custom-lib-paths", _STRINGS, (), "write:PATH may be changed in the worker process; with read:PATH it reads nothing else beside the system and its own folder", acts=True, extension=True),
    # engine build
    _e("network-mode", NetworkMode, NetworkMode.FP32, "what may be computed in; part of the engine file's name. FP16 is used where it is computed faster, INT8 with int8-calib-file", acts=True),
    _p("fp16-simulation", _STRING, "check", "FP16 on processors without it: check computes in FP32 and tries FP16 on the first images, full rounds every result as FP16 does (about half as fast), off only computes in FP32", choices=("check", "full", "off"), acts=True, extension=True),
    _p("int8-calib-file", _PATH, None, "calibration table of TensorRT or of headrace calibrate: scales for INT8", acts=True),
    _p("workspace-size", _INT, 0, "builder memory in MiB", low=0, since="5.0", until="6.3", reason="the runtime takes the memory it needs, as newer generations of the original do"),
    _p("force-implicit-batch-dim", _FLAG, False, "network without batch axis", since="5.0", until="7.0", reason="every network has a batch axis, as in newer generations of the original"),
    _p("infer-dims", _INTS, None, "C;H;W of the input, always in this order; a 0 means absent", counts=(3,), low=0, since="5.0", acts=True),
    _p("output-io-formats", _STRINGS, (), "layer:type:format of outputs; types are honoured, outputs are always linear (chw)", since="5.0", acts=True),
    _p("layer-device-precision", _STRINGS, (), "layer:precision:device: layers of another precision than network-mode says", since="5.0", acts=True),
    _p("input-values", _STRINGS, (), "NAME:VALUE,VALUE: what an input beside the image holds, for each item; one value fills all of it", acts=True, extension=True),
    _p("enable-dla", _FLAG, False, "build for the DLA", reason="no DLA is driven; the model runs where it would without"),
    _p("use-dla-core", _INT, 0, "DLA core", reason="no DLA is driven"),
    _p("strongly-typed", _FLAG, False, "tensor types as in the model", since=_NEW, reason="tensors have the types of the model anyway"),
    _p("dynamic-properties", _STRING, None, "name=value;name=value, stored without effect", since=_NEW, reason="the original stores these pairs and does nothing with them, either"),
    _p("warmup-engine", _FLAG, False, "dummy runs at start", since=_NEW, acts=True),
    _p("stabilize-buffer-count", _INT, 0, "first buffers that are dropped", low=0, since=_NEW, acts=True),
    # input tensor and preprocessing
    _p("profile", _STRING, "nvinfer", "whose rules apply where keys leave them open: those of the original, or those that models are trained with", choices=("nvinfer", "modern"), acts=True, extension=True),
    _e("model-color-format", ColorFormat, ColorFormat.RGB, "channel order of the input", acts=True),
    _p("net-scale-factor", _FLOAT, 1.0, "s in y = s * (x - mean); 0 or less switches s and offsets off", acts=True),
    _p("offsets", _FLOATS, (), "mean of each channel, in 0..255", counts=(0, 1, 2, 3, 4), acts=True),
    _p("mean-file", _PATH, None, "PPM image of per-pixel means; wins over offsets", acts=True),
    _e("network-input-order", TensorOrder, TensorOrder.NCHW, "memory order of the input", since="6.0", acts=True),
    _p("maintain-aspect-ratio", _FLAG, False, "letterbox instead of stretch", loose=True, acts=True),
    _p("symmetric-padding", _FLAG, False, "letterbox in the middle", since="6.0", loose=True, acts=True),
    _e("scaling-filter", ScalingFilter, ScalingFilter.DEFAULT, "resampling", since="5.0", loose=True, acts=True),
    _e("scaling-compute-hw", ScalingComputeHw, ScalingComputeHw.DEFAULT, "unit that scales", since="5.0", loose=True, reason="images are scaled by the CPU, whichever unit is named"),
    _p("input-tensor-from-meta", _FLAG, False, "tensors come from upstream", since="6.0", acts=True),
    # outputs, labels, detector
    _p("labelfile-path", _PATH, None, "names of the classes", types=_PARSED, acts=True),
    _p("num-detected-classes", _INT, 0, "boxes of other classes are dropped", low=0, high=MAX_CLASSES, types=(0, 2, 3), acts=True),
    _p("parse-bbox-func-name", _STRING, None, "box parser", types=_DETECTOR, acts=True),
    _p("parse-bbox-instance-mask-func-name", _STRING, None, "box and mask parser", since="5.0", types=_INSTANCE, acts=True),
    _p("parse-classifier-func-name", _STRING, None, "classifier parser", types=_CLASSIFIER, acts=True),
    _p("parse-segmentation-func-name", _STRING, None, "segmentation parser", since="6.4..7.0", types=_SEMANTIC, acts=True),
    _p("parse-func", _INT, None, "built-in parser of generation 3 and before; without effect since", in_yaml=False, legacy="parse-bbox-func-name"),
    _e("cluster-mode", ClusterMode, ClusterMode.GROUP_RECTANGLES, "0 runs as NMS with IoU 0.5 and the 20 best per class", since="5.0", types=_BOXES, acts=True),
    _p("enable-dbscan", _FLAG, None, "1 is cluster-mode 1; only where cluster-mode is absent", types=_DETECTOR, in_yaml=False, acts=True, legacy="cluster-mode"),
    _p("filter-out-class-ids", _INTS, (), "classes whose boxes are dropped", since="5.0", types=_BOXES, loose=True, acts=True),
    _p("crop-objects-to-roi-boundary", _FLAG, False, "cut boxes at the ROI instead of dropping them", since="6.2", types=_BOXES, loose=True, acts=True),
    _p("max-candidates", _INT, MAX_CANDIDATES, "boxes above their thresholds that clustering takes of one image, the best of all classes: it bounds the time; cluster-mode 4 takes all", low=1, high=1_000_000, types=_BOXES, acts=True, extension=True),
    _p("rotated-boxes", _FLAG, False, "the parser sets rotation_angle, and suppression compares the rotated rectangles", types=_DETECTOR, acts=True, extension=True),
    _p("mask-content", _STRING, "auto", "content of the mask field of a C++ library's objects: masks, or keypoints as parsers of poses and faces leave there; auto finds keypoints by their size and values", types=_INSTANCE, choices=("auto", "mask", "keypoints"), acts=True, extension=True),
    _p("keypoint-skeleton", _INTS, (), "pairs of keypoints that a line joins when drawn, counted from 0: 0;1;1;2; empty takes that of COCO for 17 points", low=0, counts=tuple(range(0, 2 * MAX_BONES + 1, 2)), acts=True, extension=True),
    _p("output-instance-mask", _FLAG, False, "attach masks", since="5.0", types=_INSTANCE, loose=True, acts=True),
    # classifier and segmentation
    _p("classifier-threshold", _FLOAT, 0.0, "smallest probability, exclusive", low=0, types=_CLASSIFIER, acts=True),
    _p("classifier-async-mode", _FLAG, False, "do not wait for the classifier", types=_CLASSIFIER, mode=_SECONDARY, loose=True, acts=True),
    _p("classifier-type", _STRING, None, "text copied to the results", since="6.0", types=_CLASSIFIER, acts=True),
    _p("segmentation-threshold", _FLOAT, 0.0, "smallest probability, exclusive", low=0, types=(2, 3), acts=True),
    _e("segmentation-output-order", TensorOrder, TensorOrder.NCHW, "memory order of the output", since="6.0", types=_SEMANTIC, acts=True),
    # secondary mode
    _p("operate-on-gie-id", _INT, -1, "only objects of this component; negative is any", mode=_SECONDARY, loose=True, acts=True),
    _p("operate-on-class-ids", _INTS, (), "only objects of these classes; empty is all", low=0, mode=_SECONDARY, loose=True, acts=True),
    _p("input-object-min-width", _INT, 0, "smaller objects are skipped", low=0, mode=_SECONDARY, loose=True, acts=True),
    _p("input-object-min-height", _INT, 0, "smaller objects are skipped", low=0, mode=_SECONDARY, loose=True, acts=True),
    _p("input-object-max-width", _INT, 0, "larger objects are skipped; 0 is no limit", low=0, mode=_SECONDARY, loose=True, acts=True),
    _p("input-object-max-height", _INT, 0, "larger objects are skipped; 0 is no limit", low=0, mode=_SECONDARY, loose=True, acts=True),
    _p("secondary-reinfer-interval", _INT, INT_MAX, "frames until a tracked object is inferred on again", types=(0, 1), mode=_SECONDARY, loose=True, acts=True),
    # tensors, pools, memory
    _p("output-tensor-meta", _FLAG, False, "attach the raw outputs", loose=True, acts=True),
    _p("centre-crop", Kind.FLOAT, 0.0, "cuts this share of the largest part of the input's shape out of the middle, then scales it: 1 as Ultralytics' classifiers, 0.875 as many of torchvision's; 0 cuts nothing", low=0, high=1, types=(1,), acts=True, extension=True),
    _p("output-image", _STRING, "none", "draws the first output that is a map of one or three channels over the frame: depth in colours, image as it is", choices=("none", "depth", "image"), acts=True, extension=True),
    _p("tensor-meta-pool-size", _INT, 2, "output buffer sets", low=0, since="6.0", reason="there is no pool: outputs live as long as they are referenced"),
    _p("auto-inc-mem", _INT_FLAG, True, "grow the output pool", since="6.3", reason="there is no pool of outputs that could be full"),
    _p("max-gpu-mem-per", Kind.PERCENT, 99.0, "percent of GPU memory at which the pool stops growing", since="6.3", reason="outputs lie in main memory, and there is no pool that grows"),
    _p("disable-output-host-copy", _INT_FLAG, False, "outputs stay on the GPU", since=_NEW, types=_PARSED, reason="parsers get main memory; those whose names end in _cuda or Cuda get copies on the GPU"),
    # debugging
    _p("raw-output-file-write", _FLAG, False, "write every tensor to a file", since=_NEW, acts=True),
    _p("dump-input-tensor", _INT_FLAG, False, "append the input to ip_tensor_dump.bin", since="6.4..7.0", acts=True),
    _p("dump-output-tensor", _INT_FLAG, False, "append the outputs to LAYER_op_tensor.bin", since="6.4..7.0", types=_PARSED, acts=True),
    _p("overwrite-input-tensor", _INT_FLAG, False, "read the input from ip-tensor-file", since="6.4..7.0", acts=True),
    _p("ip-tensor-file", _PATH, None, "source of overwrite-input-tensor", since="6.4..7.0", acts=True),
    _p("overwrite-output-tensor", _INT_FLAG, False, "read the outputs from op-tensor-files", since="6.4..7.0", types=_PARSED, acts=True),
    _p("op-tensor-files", _PATHS, (), "sources of overwrite-output-tensor", since="6.4..7.0", types=_PARSED, acts=True),
)  # fmt: skip

CLASS_ROWS: tuple[Key, ...] = (
    _c("threshold", _FLOAT, 0.2, "old name of pre-cluster-threshold; the last of both wins", in_yaml=False, legacy="pre-cluster-threshold"),
    _c("pre-cluster-threshold", _FLOAT, 0.2, "boxes with a lower confidence are dropped before clustering", since="5.0"),
    _c("post-cluster-threshold", _FLOAT, 0.0, "smallest confidence after clustering", since="5.0", types=_DETECTOR),
    _c("nms-iou-threshold", _FLOAT, 0.3, "a box stays if its IoU with each kept box is at most this", high=1, since="5.0", types=_DETECTOR),
    _c("topk", _INT, -1, "most confident boxes kept per class; absent is all", since="5.0"),
    _c("eps", _FLOAT, 0.0, "distance for modes 0, 1, 3", types=_DETECTOR),
    _c("group-threshold", _INT, 0, "smallest group for mode 0; 0 is no grouping", types=_DETECTOR),
    _c("minBoxes", _INT, 0, "smallest cluster for modes 1, 3; 0 skips DBSCAN (mind the capital B)", types=_DETECTOR, field="min_boxes"),
    _c("dbscan-min-score", _FLOAT, 0.0, "smallest summed confidence of a cluster", since="5.0", types=_DETECTOR),
    _c("roi-top-offset", _INT, 0, "rows at the top without boxes, in frame pixels"),
    _c("roi-bottom-offset", _INT, 0, "rows at the bottom without boxes, in frame pixels"),
    _c("detected-min-w", _INT, 0, "narrower boxes are dropped, frame pixels"),
    _c("detected-min-h", _INT, 0, "lower boxes are dropped, frame pixels"),
    _c("detected-max-w", _INT, 0, "wider boxes are dropped; 0 is no limit"),
    _c("detected-max-h", _INT, 0, "higher boxes are dropped; 0 is no limit"),
    _c("border-color", _FLOATS, (1.0, 0.0, 0.0, 1.0), "r;g;b;a of the border, 0..1", counts=(4,), low=None),
    _c("bg-color", _FLOATS, None, "r;g;b;a of the fill, 0..1; absent is no fill", counts=(4,), low=None),
)  # fmt: skip


PROPERTY_KEYS: dict[str, Key] = {key.name: key for key in PROPERTY_ROWS}
CLASS_KEYS: dict[str, Key] = {key.name: key for key in CLASS_ROWS}
KEYS: tuple[Key, ...] = (*PROPERTY_ROWS, *CLASS_ROWS)

# Names people write for something else; seen in samples and in users' files.
_MEANT = {
    "gie-mode": "process-mode",
    "netword-mode": "network-mode",
    "clustor-mode": "cluster-mode",
    "min-boxes": "minBoxes",
    "iou-threshold": "nms-iou-threshold",
    "nms-threshold": "nms-iou-threshold",
    "confidence-threshold": "pre-cluster-threshold",
    "conf-threshold": "pre-cluster-threshold",
    "score-threshold": "pre-cluster-threshold",
    "confidence": "pre-cluster-threshold",
    "conf": "pre-cluster-threshold",
    "score": "pre-cluster-threshold",
    "threshold": "pre-cluster-threshold",
    "iou": "nms-iou-threshold",
    "unique-id": "gie-unique-id",
    "infer-on-gie-id": "operate-on-gie-id",
    "infer-on-class-ids": "operate-on-class-ids",
    "input-tensor-meta": "input-tensor-from-meta",
    "num-classes": "num-detected-classes",
    "label-file": "labelfile-path",
    "label-file-path": "labelfile-path",
    "clip-object-outside-roi": "",
}
_NOT_OURS = {
    "config-file": "a key of the application's own file, not of this one",
    "config-file-path": "an element property, not a key",
    "clip-object-outside-roi": "an element property without a key",
    "parse-func": "a key of generation 3 and before; nothing reads it since: "
    "name a function with parse-bbox-func-name",
}
_PROPERTIES = {"unique-id", "infer-on-gie-id", "infer-on-class-ids", "input-tensor-meta"}


def suggestion(name: str, group: str) -> tuple[str, str | None]:
    """Return advice about a key that its group does not know, and the key of it that was meant.

    The advice is an end of sentence, or "".
    """
    here, there = (
        (PROPERTY_KEYS, CLASS_KEYS) if group == "property" else (CLASS_KEYS, PROPERTY_KEYS)
    )
    other = "[class-attrs-all] or [class-attrs-<n>]" if group == "property" else "[property]"
    if name in there:
        return f"it belongs into {other}", None
    plain = plain_name(name)
    if plain in _NOT_OURS:
        return f"it is {_NOT_OURS[plain]}", None
    if name.startswith(";"):
        return "comments start with #", None
    meant = _MEANT.get(plain)
    kind = "it is the name of the element property; " if plain in _PROPERTIES else ""
    if meant is None:
        usable = [k.name for k in here.values() if not k.legacy]
        meant = nearest(name, usable) or nearest(
            name, [k.name for k in there.values() if not k.legacy]
        )
    if not meant:
        return "", None
    if meant in here:
        return f"{kind}did you mean {meant}?", meant
    return f"{kind}did you mean {meant} in {other}?", None
