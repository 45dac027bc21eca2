"""What the GPU computes, against the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import headrace
from benchmarks.gpu.clips import VIDEOS, clip, config, images, show, video
from headrace.infer.gpu.scaler import GpuScaler
from headrace.infer.items import FramePiece
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame


def tensors() -> None:
    """Bits of surfaces against bits of the same images on the host."""
    rows = []
    clips = [video(name) for name in VIDEOS]
    clips += [clip("libx264"), clip("libx265"), clip("libx265", pixels="yuv420p10le", frames=30)]
    for path in clips:
        there = same = worst = 0
        for frame in images(path, 30):
            there += frame.on_device is not None
            for filter in (0, 1, 2, 3, 4):
                for profile in ("nvinfer", "modern"):
                    pre = Preprocessor(
                        416, 416, scale=1 / 255, maintain_aspect_ratio=True,
                        scaling_filter=filter, profile=profile,  # type: ignore[arg-type]
                    )  # fmt: skip
                    placed = pre.place(frame)
                    piece = FramePiece(frame, placed.src, placed.dst, whole=True)
                    got = GpuScaler(pre)([piece], 1).numpy()
                    out = pre.empty(1)
                    host = Frame(
                        tuple(frame.planes), frame.format, frame.width, frame.height, frame.color
                    )
                    pre.write(host, placed.src, placed.dst, out)
                    same += got.tobytes() == out.tobytes()
                    worst = max(worst, float(np.abs(got - out).max()))
        rows.append((path.name, there, same, worst))
    show("tensors", ("video", "on the GPU, of 30", "equal, of 300", "largest difference"), rows)


def found(path: Path, device: str, mode: int) -> list[Any]:
    cfg = config(batch_size=8, network_mode=mode)
    with headrace.open_pipeline(cfg, sources=str(path), device=device) as pipeline:
        return [meta.objects for _, meta in pipeline]


def boxes() -> None:
    """Boxes of the GPU against those of the CPU, frame by frame."""
    rows = []
    for name in VIDEOS:
        wanted = found(video(name), "cpu", 0)
        for mode, precision in ((0, "FP32"), (2, "FP16")):
            got = found(video(name), "cuda", mode)
            equal = both = 0
            least, drift = 1.0, 0.0
            for mine, known in zip(got, wanted, strict=True):
                equal += len(mine) == len(known)
                for i, rect in enumerate(known.rects):
                    overlaps = [_iou(rect, other) for other in mine.rects]
                    best = int(np.argmax(overlaps)) if overlaps else -1
                    if best >= 0 and overlaps[best] > 0.5:
                        both += 1
                        least = min(least, overlaps[best])
                        score = abs(float(known.confidences[i]) - float(mine.confidences[best]))
                        drift = max(drift, score)
            total = sum(len(o) for o in wanted)
            there = sum(len(o) for o in got)
            rows.append(
                (f"{name} {precision}", len(wanted), equal, total, there, both, least, drift)
            )
    headings = ("video", "frames", "same count", "CPU's", "GPU's", "matched", "least IoU", "score")
    show("boxes", headings, rows)


def _iou(a: Any, b: Any) -> float:
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return float(both / max(a[2] * a[3] + b[2] * b[3] - both, 1e-9))
