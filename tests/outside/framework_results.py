"""Results of exporters' own programs, for `tests.outside.exporter_runtimes`.

    PYTHON tests/outside/framework_results.py JOBS.json

PYTHON is one in which the programs are installed: it need not have Headrace. A job names the model,
its exporter, the task, an image (`.npy`, BGR) and how the numbers are scaled; its results go to
`out`, an `.npz` with boxes (N, 4) as corners in pixels of the image, scores and classes, or with
`probabilities` or a `map`.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

LEAST, MOST = 0.001, 500
"""MOST: more than share the best score. Which 300 of 400 alike a program keeps is chance."""


def nms(boxes: Any, scores: Any, iou: float) -> Any:
    """Greedy suppression, for an installation of torchvision without its compiled part."""
    import torch

    corners, order = boxes.detach().cpu().double().numpy(), np.argsort(-scores.cpu().numpy())
    if iou >= 1:
        return torch.from_numpy(order.copy())
    area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    kept = []
    while len(order):
        first, rest = order[0], order[1:]
        kept.append(int(first))
        low = np.maximum(corners[first, :2], corners[rest, :2])
        high = np.minimum(corners[first, 2:], corners[rest, 2:])
        inner = np.clip(high - low, 0, None).prod(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # a box can be inside out
            share = inner / (area[first] + area[rest] - inner)
        order = rest[~(share > iou)]
    return torch.tensor(kept, dtype=torch.long)


def mend_torchvision() -> None:
    """Stand in for the compiled part of torchvision where it is of another torch."""
    import torch

    library = None
    for _ in range(40):
        try:
            importlib.import_module("torchvision")
        except RuntimeError as error:
            name = re.search(r"operator torchvision::(\w+) does not exist", str(error))
            if name is None:
                raise
        else:
            if LIBRARIES:
                vars(sys.modules["torchvision.extension"])["_has_ops"] = present
            return
        for module in [m for m in sys.modules if m.partition(".")[0] == "torchvision"]:
            del sys.modules[module]
        if library is None:
            library = torch.library.Library("torchvision", "FRAGMENT")
            library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            library.impl("nms", nms, "CPU")
            LIBRARIES.append(library)
        if name[1] != "nms":
            library.define(f"{name[1]}(Tensor x) -> Tensor")


def present() -> bool:
    """Say that the compiled part is there: a function of its own, as torch compiles its text."""
    return True


LIBRARIES: list[Any] = []
"""They last as long as the program."""


def optimise(wanted: bool) -> None:
    """Have ONNX Runtime change graphs, as it does, or leave them as they are."""
    import onnxruntime

    made = SESSIONS.setdefault("own", onnxruntime.InferenceSession)

    def plain(model: Any, sess_options: Any = None, **more: Any) -> Any:
        options = sess_options or onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return made(model, options, **more)

    onnxruntime.InferenceSession = made if wanted else plain


SESSIONS: dict[str, Any] = {}
"""ONNX Runtime's own class, while another stands in its place."""


def outputs_of(job: dict[str, Any], image: Any) -> dict[str, Any]:
    """Outputs of the model for the image, by ONNX Runtime, from numbers scaled as the job says."""
    import onnxruntime

    session = onnxruntime.InferenceSession(job["path"], providers=["CPUExecutionProvider"])
    return dict(
        zip((o.name for o in session.get_outputs()),
            session.run(None, {session.get_inputs()[0].name: tensor(job, image)}), strict=True)
    )  # fmt: skip


def tensor(job: dict[str, Any], image: Any) -> Any:
    """The image as an input of the network."""
    values = image[..., ::-1] if job["order"] == "RGB" else image
    offsets = np.asarray(job["offsets"] or [0, 0, 0], np.float32)
    values = (values.astype(np.float32) - offsets) * np.float32(job["factor"])
    values = values if job["interleaved"] else values.transpose(2, 0, 1)
    return np.ascontiguousarray(values[None]).astype(job["dtype"])


def ultralytics(job: dict[str, Any], image: Any) -> dict[str, Any]:
    from ultralytics import YOLO

    names = {"segment": "segment", "pose": "pose", "obb": "obb", "classify": "classify",
             "semantic": "semantic", "depth": "depth"}  # fmt: skip
    model = YOLO(job["path"], task=names.get(job["task"], "detect"))
    found = model.predict(
        image, conf=LEAST, iou=job["iou"], max_det=job["most"], verbose=False, device="cpu",
        imgsz=job["size"],
    )[0]  # fmt: skip
    if found.probs is not None:
        return {"probabilities": found.probs.data.numpy()}
    if getattr(found, "semantic_mask", None) is not None:
        return {"map": np.asarray(found.semantic_mask.data).squeeze()}
    if found.obb is not None:
        boxes = found.obb.xywhr.numpy()
        found = found.obb
        return {"rotated": boxes, "scores": found.conf.numpy(), "classes": found.cls.numpy()}
    if found.boxes is None:
        raise ValueError(f"results of {found._keys}")
    more = {}
    if found.keypoints is not None:
        more["points"] = found.keypoints.data.numpy()
    if found.masks is not None:
        more["masks"] = found.masks.data.numpy().astype(bool)
    boxes = found.boxes
    return {"boxes": boxes.xyxy.numpy(), "scores": boxes.conf.numpy(),
            "classes": boxes.cls.numpy(), **more}  # fmt: skip


def libreyolo(job: dict[str, Any], image: Any) -> dict[str, Any]:
    from libreyolo.backends.onnx import OnnxBackend

    model = OnnxBackend(job["path"], device="cpu")
    run = model._run_inference
    model.embedded_nms_raw_output_index = None  # what the graph suppressed is compared
    if job["one_deviation"]:  # nvinfer scales the three channels alike
        model._run_inference = lambda blob: run(tensor(job, image))
    found = model(image, conf=LEAST, iou=job["iou"], max_det=job["most"], color_format="bgr")
    found = found[0] if isinstance(found, list) else found
    if getattr(found, "probs", None) is not None:
        return {"probabilities": np.asarray(found.probs.data)}
    more = {}
    if getattr(found, "keypoints", None) is not None:
        more["points"] = np.asarray(found.keypoints.data)
    if getattr(found, "obb", None) is not None:
        turned = found.obb
        return {"rotated": np.asarray(turned.xywhr), "scores": np.asarray(turned.conf),
                "classes": np.asarray(turned.cls)}  # fmt: skip
    boxes = found.boxes
    answer = {"boxes": np.asarray(boxes.xyxy), "scores": np.asarray(boxes.conf),
              "classes": np.asarray(boxes.cls), **more}  # fmt: skip
    if job["best"]:
        answer = best_of_rows(answer)
    if job["classes"] > len(model.names):  # ids of COCO with its gaps, as the network has them
        answer["names"] = np.array([model.names[i] for i in range(len(model.names))])
    return answer


def best_of_rows(answer: dict[str, Any]) -> dict[str, Any]:
    """Each box once, with its best class: the program lists it once for every class."""
    order = np.argsort(-answer["scores"], kind="stable")
    _, first = np.unique(answer["boxes"][order], axis=0, return_index=True)
    kept = order[np.sort(first)]
    return {name: value[kept] for name, value in answer.items()}


def rfdetr(job: dict[str, Any], image: Any) -> dict[str, Any]:
    import torch
    from rfdetr.models.postprocess import PostProcess

    raw = outputs_of(job, image)
    height, width = image.shape[:2]
    head = {"pred_logits": torch.tensor(raw["labels"]), "pred_boxes": torch.tensor(raw["dets"])}
    found = PostProcess(num_select=raw["labels"].shape[1])(head, torch.tensor([[height, width]]))[0]
    return {name: found[key].numpy() for name, key in
            (("boxes", "boxes"), ("scores", "scores"), ("classes", "labels"))}  # fmt: skip


def transformers(job: dict[str, Any], image: Any) -> dict[str, Any]:
    import torch
    from transformers.models.detr.image_processing_detr import DetrImageProcessor
    from transformers.models.rt_detr.image_processing_rt_detr import RTDetrImageProcessor

    raw = {name: torch.tensor(value) for name, value in outputs_of(job, image).items()}
    if job["task"] == "classify":
        return {"probabilities": raw["logits"].softmax(-1)[0].numpy()}
    if job["task"] == "semantic":
        return {"map": raw["logits"][0].argmax(0).numpy()}
    outputs = SimpleNamespace(logits=raw["logits"], pred_boxes=raw["pred_boxes"])
    size = torch.tensor([image.shape[:2]])
    soft = job["form"].startswith(("detr", "yolos"))
    processor = (DetrImageProcessor if soft else RTDetrImageProcessor)()
    found = processor.post_process_object_detection(outputs, threshold=0.0, target_sizes=size)[0]
    return {"boxes": found["boxes"].numpy(), "scores": found["scores"].numpy(),
            "classes": found["labels"].numpy()}  # fmt: skip


def effdet(job: dict[str, Any], image: Any) -> dict[str, Any]:
    import torch
    from effdet.anchors import Anchors, decode_box_outputs
    from effdet.config import get_efficientdet_config

    raw = [torch.tensor(value) for value in outputs_of(job, image).values()]
    config = get_efficientdet_config("tf_efficientdet_d0")
    config.image_size = tuple(image.shape[:2])
    classes = torch.cat([v.permute(0, 2, 3, 1).reshape(1, -1, 90) for v in raw[:5]], 1)[0].sigmoid()
    deltas = torch.cat([v.permute(0, 2, 3, 1).reshape(1, -1, 4) for v in raw[5:]], 1)[0]
    boxes = decode_box_outputs(deltas, Anchors.from_config(config).boxes, output_xyxy=True)
    scores, labels = classes.max(1)
    best = scores.argsort(descending=True)[:5000]
    boxes, scores, labels = boxes[best], scores[best], labels[best]
    height, width = image.shape[:2]
    boxes = boxes.clamp(min=0).minimum(torch.tensor([width, height, width, height]))
    spread = boxes + labels[:, None] * 4096.0
    kept = nms(spread, scores, job["iou"])
    return {"boxes": boxes[kept].numpy(), "scores": scores[kept].numpy(),
            "classes": labels[kept].numpy()}  # fmt: skip


def torch_classifier(job: dict[str, Any], image: Any) -> dict[str, Any]:
    import torch

    raw = torch.tensor(next(iter(outputs_of(job, image).values())))[0]
    return {"probabilities": raw.softmax(-1).numpy()}


def torch_map(job: dict[str, Any], image: Any) -> dict[str, Any]:
    import torch

    raw = torch.tensor(next(iter(outputs_of(job, image).values())))[0]
    if len(raw) == 1:  # one class: above 0.5, which is above 0 before a sigmoid
        chance = raw[0] if "sigmoid" in job["form"] else raw[0].sigmoid()
        return {"map": np.where(chance.numpy() > 0.5, 0, -1)}
    return {"map": raw.argmax(0).numpy()}


def rows_with_objectness(job: dict[str, Any], image: Any) -> dict[str, Any]:
    """YOLOv5, YOLOv7: the product of objectness and the best class, suppression class by class."""
    import torch

    rows = torch.tensor(next(iter(outputs_of(job, image).values())))[0].float()
    scores, labels = (rows[:, 5 : 5 + job["classes"]] * rows[:, 4:5]).max(1)
    centres, half = rows[:, :2], rows[:, 2:4] / 2
    boxes = torch.cat([centres - half, centres + half], 1)
    best = scores.argsort(descending=True)[:3000]
    boxes, scores, labels = boxes[best], scores[best], labels[best]
    kept = nms(boxes + labels[:, None] * 7680.0, scores, job["iou"])[: job["most"]]
    return {"boxes": boxes[kept].numpy(), "scores": scores[kept].numpy(),
            "classes": labels[kept].numpy()}  # fmt: skip


RUNTIMES = {
    "ultralytics": ultralytics, "libreyolo": libreyolo, "rfdetr": rfdetr, "hf": transformers,
    "effdet": effdet, "timm": torch_classifier, "torchvision": torch_classifier, "smp": torch_map,
    "yolov5": rows_with_objectness, "yolov7": rows_with_objectness,
}  # fmt: skip

WHOLE = (ultralytics, libreyolo)
"""Programs that fit the image into the network themselves."""


def main() -> None:
    mend_torchvision()
    for job in json.loads(Path(sys.argv[1]).read_text()):
        out = Path(job["out"])
        optimise(job.get("optimised", True))
        try:
            runtime = RUNTIMES[job["family"].partition("_")[0]]
            if job["task"] == "semantic" and runtime is torch_classifier:
                runtime = torch_map
            if job["task"] == "classify" and runtime is rows_with_objectness:
                runtime = torch_classifier
            found = runtime(job, np.load(job["image"]))
            np.savez(out, **{name: np.asarray(value) for name, value in found.items()})
        except Exception as error:  # one of many programs: the others go on
            traceback.print_exc()
            out.with_suffix(".txt").write_text(f"{type(error).__name__}: {error}"[:300])
        print(job["path"], flush=True)


if __name__ == "__main__":
    main()
