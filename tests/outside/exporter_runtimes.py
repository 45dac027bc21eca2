"""Headrace's objects beside those of the exporters' own programs, on the same image.

    python -m tests.outside.exporter_runtimes INDEX.csv FOLDER --python PYTHON [--out EQUAL.csv]
        [WORD]

INDEX.csv is that of `tests.outside.exporter_forms`; PYTHON has the programs, as `pip` installs
them; FOLDER gets copies, images and results. The image has the size of the network or bars above
and below, so that both sides see the same numbers; what a file does not say of its images is
answered as its notes have it. Random weights give all candidates nearly one score: in a copy of the
file, which both sides run, the convolutions are calibrated and the logits before the last sigmoid
are spread. The threshold lies in the largest gap of the program's scores, below its best ones;
neither side keeps the best 300 only, as that would choose among candidates of one score. Neither
side suppresses overlaps outside of the graph: boxes of random weights reach far beyond the image,
and nvinfer clips before it suppresses, other programs afterwards. Equal: each box of either side
has one of the other with its class, a score within 1e-3 and an IoU of 0.99 or more. A file is
unsteady if the program itself finds other boxes without ONNX Runtime's optimisations.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import headrace
from headrace.config.enums import ClusterMode
from headrace.errors import HeadraceError
from tests.outside.calibrated_weights import calibrate
from tests.outside.exporter_forms import notes_of, recognised
from tests.outside.framework_results import MOST as MOST_FOUND
from tests.outside.framework_results import RUNTIMES, WHOLE, rows_with_objectness, tensor

SCORE, IOU, ANGLE, MAP = 1e-3, 0.99, 0.5, 0.999
_MEAN_OF_THREE = (255 * 0.226, 57.375)  # deviations of ImageNet, of RTMDet
FEWEST, MOST = 3, 120  # boxes that are compared
LEAST_GAP = 1e-7  # scores that are nearer are one
_TASKS = ("detect", "segment", "pose", "obb", "classify", "semantic")
_LOGITS = ("logits", "pred_logits", "labels")
_OWN_IOU = dict.fromkeys(("HeadraceParseYoloV8Seg", "HeadraceParseYoloV5Seg"), 0.45)
"""Parsers that suppress overlaps themselves, and keep 300; both sides do then."""
_BEST_OF_ROW = ("HeadraceParseYoloCorners", "HeadraceParseBoxesScores")
"""Parsers of raw rows, each of which is one object of its best class."""
MEAN, DEVIATION, MOST_LOGIT = -3.0, 1.5, 2.0


def image_of(width: int, height: int, bars: bool) -> Any:
    """(h, w, 3) uint8: soft shapes, three quarters as high as the network if there are bars."""
    rows = height * 3 // 4 // 2 * 2 if bars else height
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:rows, :width]
    image = np.zeros((rows, width, 3))
    for _ in range(40):
        at, size = rng.uniform(0, [width, rows]), rng.uniform(10, width / 4, 2)
        inside = ((x - at[0]) / size[0]) ** 2 + ((y - at[1]) / size[1]) ** 2 < 1
        image[inside] = rng.uniform(0, 255, 3)
    return np.clip(image + rng.normal(0, 6, image.shape), 0, 255).astype(np.uint8)


def spread(path: Path, job: Mapping[str, Any], image: Any, copy: Path) -> bool:
    """Copy a model with its logits spread around `MEAN`; False if they are all alike."""
    model = onnx.load(path)
    graph = model.graph
    if job["task"] not in ("classify", "semantic") and not job["family"].endswith("_cal"):
        weights = {t.name for t in graph.initializer}
        name = next(i.name for i in graph.input if i.name not in weights)
        calibrate(model, {name: tensor(dict(job), _whole(job, image))})
    users: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    ends = [n for n in graph.node if n.op_type == "Sigmoid"
            and all(u.op_type != "Mul" for u in users.get(n.output[0], []))]  # fmt: skip
    outputs = {o.name: o.type.tensor_type.elem_type for o in graph.output}
    names = [n for n in _LOGITS if outputs.get(n) == onnx.TensorProto.FLOAT]
    if family_of(job) == "effdet":
        names = [*outputs][: len(outputs) // 2]  # a map of classes and one of boxes for each level
    ends = [] if names else ends  # sigmoids before the logits belong to what the boxes start from
    names = names or [n.input[0] for n in ends]
    if names and job["task"] not in ("classify", "semantic"):
        for name in set(names) - outputs.keys():
            graph.output.append(onnx.ValueInfoProto(name=name))
        session = onnxruntime.InferenceSession(model.SerializeToString())
        feeds = {session.get_inputs()[0].name: tensor(dict(job), _whole(job, image))}
        values = dict(zip(set(names), session.run(list(set(names)), feeds), strict=True))
        every = np.concatenate([v.astype(np.float64).ravel() for v in values.values()])
        if every.std() < 1e-4 * max(1.0, abs(every.mean())):
            return False
        while len(graph.output) > len(outputs):
            graph.output.pop()
        if RUNTIMES[family_of(job)] is not rows_with_objectness:  # its sigmoid makes boxes, too
            gain = min(DEVIATION / every.std(), (MOST_LOGIT - MEAN) / (every.max() - every.mean()))
            _insert(graph, ends, values, float(every.mean()), float(gain), {*outputs})
    copy.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, copy)
    return True


def _whole(job: Mapping[str, Any], image: Any) -> Any:
    full = np.full((job["size"][0], job["size"][1], 3), 114, np.uint8)
    full[: image.shape[0], : image.shape[1]] = image
    return full


def _insert(
    graph: Any, ends: list[Any], values: Mapping[str, Any], mean: float, gain: float,
    outputs: set[str],
) -> None:  # fmt: skip
    for name, value in values.items():
        for key, number in (("mean", mean), ("gain", gain), ("low", MEAN)):
            graph.initializer.append(
                numpy_helper.from_array(np.asarray(number, value.dtype), f"{name}/{key}")
            )
        source, target = name, f"{name}/spread"
        if name in outputs:  # logits are an output: what makes them gets another name
            source, target = f"{name}/made", name
            for node in graph.node:
                node.output[:] = [source if x == name else x for x in node.output]
                node.input[:] = [source if x == name else x for x in node.input]
        nodes = [
            helper.make_node("Sub", [source, f"{name}/mean"], [f"{name}/centred"]),
            helper.make_node("Mul", [f"{name}/centred", f"{name}/gain"], [f"{name}/scaled"]),
            helper.make_node("Add", [f"{name}/scaled", f"{name}/low"], [target]),
        ]
        places = [i for i, n in enumerate(graph.node) if source in n.output]
        for node in ends:
            if node.input[0] == name:
                node.input[0] = target
        for offset, node in enumerate(nodes):
            graph.node.insert(places[0] + 1 + offset, node)


def prepared(row: Mapping[str, str], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The job for the program, and the keys for Headrace.

    Raises:
        HeadraceError: the file is not read.
        ValueError: it cannot be compared.
    """
    lines: list[Any] = []
    known = recognised(row, lines, [])
    images, cfg = known.images, known.config
    if known.reading is None:
        raise ValueError("no built-in parser reads it")
    name = "-".join((row["family"], row["form"])).replace("/", "-")
    open_ = any(not isinstance(d, int) for d in known.evidence.input.shape[1:])
    bars = (
        images.fit != "stretch"
        and not open_
        and row["task"] != "semantic"
        and RUNTIMES[family_of(row)] in WHOLE
    )
    image = image_of(images.width, images.height, bars)
    job: dict[str, Any] = {
        "family": row["family"], "task": row["task"], "form": row["form"],
        "size": [images.height, images.width], "order": images.order,
        "factor": float(cfg.net_scale_factor), "offsets": list(cfg.offsets),
        "one_deviation": min(abs(cfg.net_scale_factor * d - 1) for d in _MEAN_OF_THREE) < 1e-3,
        "suppresses": cfg.cluster_mode is ClusterMode.NMS,
        "interleaved": images.interleaved, "dtype": known.evidence.input.dtype.name,
        "iou": _OWN_IOU.get(known.reading.parser or "", 1.0), "classes": cfg.num_detected_classes,
        "most": 300 if known.reading.parser in _OWN_IOU else MOST_FOUND,
        "best": known.reading.parser in _BEST_OF_ROW,
    }  # fmt: skip
    copy = folder / "models" / name / "model.onnx"
    if not spread(Path(row["path"]), job, image, copy):
        raise ValueError("the weights give every candidate one score")
    np.save(folder / f"{name}.npy", image)
    job |= {"path": str(copy), "image": str(folder / f"{name}.npy"),
            "out": str(folder / f"{name}.npz")}  # fmt: skip
    keys = {line.key.replace("-", "_"): line.text for line in lines}
    return job, keys


def family_of(row: Mapping[str, str]) -> str:
    """The family of a line, without what tells its versions apart."""
    return row["family"].partition("_")[0]


def threshold(scores: Any) -> float:
    """A score in the largest gap behind the best ones; the next gap if those are alike."""
    ordered = np.sort(np.asarray(scores, np.float64))[::-1]
    gaps = ordered[:-1] - ordered[1:]
    first, last = FEWEST - 1, min(len(gaps), MOST)
    first += max(last - first, 0) // 2
    near, far = gaps[first:last], np.flatnonzero(gaps[first:] > LEAST_GAP)
    if not len(far):
        return float(ordered[-1]) / 2 if len(ordered) else 0.5
    at = first + int(near.argmax() if near.max(initial=0) > LEAST_GAP else far[0])
    return float(ordered[at] + ordered[at + 1]) / 2


def overlaps(box: Any, boxes: Any) -> Any:
    """IoU of one box with others; corners."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    inner = np.clip(high - low, 0, None).prod(axis=1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return inner / np.maximum((box[2:] - box[:2]).prod() + areas - inner, 1e-9)


def corners_of(rotated: Any) -> tuple[Any, Any]:
    """Boxes of x, y, w, h, angle as upright corners with the longer side across, and degrees."""
    x, y, w, h, angle = rotated.T
    turn = w < h
    w, h = np.where(turn, h, w), np.where(turn, w, h)
    degrees = (np.degrees(angle) + 90 * turn) % 180
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1), degrees


def compare(job: Mapping[str, Any], keys: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """`equal`, or what differs; numbers of both sides in it."""
    image = np.load(job["image"])
    if "probabilities" in theirs:
        return _probabilities(job, keys, theirs["probabilities"], image)
    if "map" in theirs:
        return _map(job, keys, theirs["map"], image)
    least = threshold(theirs["scores"])
    known = _objects_of(theirs, image, least)
    more = {"topk": MOST_FOUND} | ({"cluster_mode": 4} if job["suppresses"] else {})
    model = headrace.Inferencer.from_config(job["path"], conf=least, device="cpu", **keys, **more)
    objects = model(image).objects
    own = np.asarray(objects.rects, np.float64).reshape(-1, 4)
    turned = None
    if known.degrees is not None:
        angles = np.radians(objects.angles if objects.angles is not None else np.zeros(len(own)))
        middle = own[:, :2] + own[:, 2:] / 2
        own, turned = corners_of(np.column_stack([middle, own[:, 2:], angles]))
    else:
        own = np.column_stack([own[:, :2], own[:, :2] + own[:, 2:]])
    big = (own[:, 2:] - own[:, :2]).min(axis=1, initial=np.inf) >= 2
    classes = np.asarray(objects.class_ids)
    if "names" in theirs:  # the program numbers classes otherwise: their names are compared
        place = {name: i for i, name in enumerate(theirs["names"])}
        classes = np.array([place.get(objects.label(i), -1) for i in range(len(own))])
    mine = _Objects(own[big], np.asarray(objects.confidences)[big], classes[big],
                    None if turned is None else turned[big])  # fmt: skip
    return matched(known, mine, least)


class _Objects(NamedTuple):
    """Corners in pixels, scores, classes, and degrees of rotated boxes."""

    boxes: Any
    scores: Any
    classes: Any
    degrees: Any = None


def _objects_of(theirs: Mapping[str, Any], image: Any, least: float) -> _Objects:
    """What a program found, in the image, from a score on; boxes that are thinner than 2 go.

    So do rotated ones beside the image, in the bars of the network's input: they are not clipped.
    """
    scores = np.asarray(theirs["scores"], np.float64)
    boxes, degrees = theirs.get("boxes"), None
    size = np.array([image.shape[1], image.shape[0]])
    kept = scores >= least
    if boxes is None:
        rotated = np.asarray(theirs["rotated"], np.float64)
        middle, half = rotated[:, :2], rotated[:, 2:4] / 2
        kept &= ((middle - half < size) & (middle + half > 0)).all(axis=1)
        boxes, degrees = corners_of(rotated)
    else:
        boxes = np.clip(boxes, 0, np.tile(size, 2))
    kept &= (boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf) >= 2
    turned = None if degrees is None else degrees[kept]
    return _Objects(boxes[kept], scores[kept], np.asarray(theirs["classes"])[kept], turned)


def matched(known: _Objects, mine: _Objects, least: float) -> str:
    """`equal`, `differs` or `not compared`: each object of one side is one of the other."""
    count = len(known.scores)
    if count < FEWEST:
        return f"not compared: {count} boxes"
    free, worst, missing = np.ones(len(mine.scores), bool), 1.0, 0
    for i in range(count):
        fits = free & (mine.classes == known.classes[i])
        fits &= np.abs(mine.scores - known.scores[i]) <= SCORE
        if known.degrees is not None and mine.degrees is not None:
            apart = np.abs(mine.degrees - known.degrees[i]) % 180
            fits &= np.minimum(apart, 180 - apart) <= ANGLE
        alike = overlaps(known.boxes[i], mine.boxes) if len(fits) else []
        iou = np.where(fits, alike, -1) if len(fits) else np.array([-1.0])
        best = int(iou.argmax())
        missing += iou[best] < IOU
        if iou[best] >= IOU:
            free[best] = False
            worst = min(worst, float(iou[best]))
    extra = int(free.sum()) if len(mine.scores) else 0
    if missing or extra:
        return f"differs: of {count} boxes {missing} missing, {extra} more"
    return f"equal: {count} boxes from {least:.2g}, IoU {worst:.4f} or more"


def _probabilities(
    job: Mapping[str, Any], keys: Mapping[str, Any], theirs: Any, image: Any
) -> str:  # fmt: skip
    best = int(np.argmax(theirs))
    model = headrace.Inferencer.from_config(
        job["path"], conf=float(theirs[best]) / 2, device="cpu", **keys
    )
    labels = [x for obj in model(image).objects for c in obj.classifiers for x in c.labels]
    if not labels:
        return "differs: no label"
    found = labels[0]
    if found.value != best or abs(found.confidence - theirs[best]) > SCORE:
        return f"differs: {found.value} {found.confidence:.4f}, {best} {theirs[best]:.4f}"
    return f"equal: class {best}, {theirs[best]:.4f}"


def _map(job: Mapping[str, Any], keys: Mapping[str, Any], theirs: Any, image: Any) -> str:
    model = headrace.Inferencer.from_config(job["path"], device="cpu", **keys)
    own = model(image).segmentations[0].class_map
    if own.shape != theirs.shape:
        return f"differs: {own.shape}, {theirs.shape}"
    share = float((own == theirs).mean())
    return f"{'equal' if share >= MAP else 'differs'}: {share:.5f} of {own.size} pixels"


def _ran(jobs: list[dict[str, Any]], folder: Path, python: Path) -> None:
    """Run the programs; a job that fails leaves no result."""
    (folder / "jobs.json").write_text(json.dumps(jobs))
    script = Path(__file__).with_name("framework_results.py")
    with contextlib.suppress(subprocess.CalledProcessError):
        subprocess.run([python, script, folder / "jobs.json"], check=True,
                       stdout=(folder / "log.txt").open("a"), stderr=subprocess.STDOUT)  # fmt: skip


def _unsteady(job: dict[str, Any], folder: Path, python: Path) -> str:
    """What the program finds without ONNX Runtime's optimisations, where that differs; else empty.

    Random weights can answer the rounding of a sum with other boxes: then no two programs agree.
    """
    plain = job | {"optimised": False, "out": str(Path(job["out"]).with_suffix(".plain.npz"))}
    _ran([plain], folder, python)
    if not Path(plain["out"]).is_file():
        return ""
    with np.load(job["out"]) as first, np.load(plain["out"]) as second:
        if "scores" not in first or "scores" not in second:
            return ""
        image, least = np.load(job["image"]), threshold(first["scores"])
        parts = [_objects_of(dict(part), image, least) for part in (first, second)]
    said = matched(parts[0], parts[1], least)
    return said.removeprefix("differs: ") if said.startswith("differs") else ""


def main() -> int:
    """Prepare, run the programs, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    answers: dict[str, str] = {}
    jobs: list[tuple[dict[str, Any], dict[str, Any], str]] = []
    with options.index.open(newline="") as file:
        for row in csv.DictReader(file):
            path = row["path"]
            if options.word not in path or not Path(path).is_file():
                continue
            if family_of(row) not in RUNTIMES:
                continue
            if row["task"] not in _TASKS or "plugin" in notes_of(row):
                continue
            try:
                jobs.append((*prepared(row, folder), path))
            except (HeadraceError, ValueError, RuntimeError, KeyError, IndexError) as error:
                answers[path] = f"not compared: {error}".splitlines()[0][:160]
            except Exception as error:  # onnxruntime's own kinds
                answers[path] = f"not compared: {type(error).__name__}: {error}".splitlines()[0][
                    :160
                ]
    _ran([job for job, _, _ in jobs], folder, options.python)
    for job, keys, path in jobs:
        out = Path(job["out"])
        if not out.is_file():
            note = out.with_suffix(".txt")
            answers[path] = "not compared: " + (note.read_text() if note.is_file() else "no result")
            continue
        with np.load(out) as theirs:
            try:
                answers[path] = compare(job, keys, dict(theirs))
            except HeadraceError as error:
                answers[path] = f"differs: {error:brief}"
            except Exception as error:
                answers[path] = f"not compared: {type(error).__name__}: {error}"[:160]
        if answers[path].startswith("differs") and (own := _unsteady(job, folder, options.python)):
            answers[path] = f"unsteady: {answers[path]}; the program without optimisations: {own}"
        print(path, answers[path], flush=True)
        shutil.rmtree(Path(job["path"]).parent)
    for path, words in answers.items():
        if words.startswith("not"):
            print(path, words)
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file).writerows(answers.items())
    equal = sum(words.startswith("equal") for words in answers.values())
    differ = sum(words.startswith("differs") for words in answers.values())
    print(f"equal {equal}, differ {differ}, not compared {len(answers) - equal - differ}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
