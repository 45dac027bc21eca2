"""The proof on an NVIDIA GPU: `python -m benchmarks.gpu [PART …]`, or all parts.

It needs a GPU, onnxruntime-gpu, and the folder of real models and videos (HEADRACE_TEST_DATA).
Clips of 1920x1080 are made of one of the videos, and kept in GPU_CLIPS if that names a folder;
GPU_VIDEO is that video, GPU_B_FRAMES how many B frames in a row they have. How many images the
video unit decodes a second depends on both. Parts:

  tensors     surfaces scaled on the GPU, against the same images copied to the host
  trackers    NvDCF on surfaces, against the same images copied to the host
  boxes       three videos on the CPU and on the GPU, FP32 and FP16
  decode      frames a second that the video unit decodes, and nothing else
  engine      items a second of the engine alone
  graphs      a run as a CUDA graph, and without: outputs, time, processor
  streams     the whole: YOLOX-nano, FP16, N videos at once, JSON Lines out
  cascade     the same with a tracker and two classifiers on the objects
  counts      the detector in four processes at growing numbers of videos (GPU_COUNTS)
  shares      both in several processes (GPU_PROCESSES), beside decoding alone in as many; on
              several GPUs where GPU_DEVICE names them (cuda:0,cuda:1)
  yolo11n     a network of its shapes in several processes, beside its engine alone
  rtsp        64 streams from a server on this machine for GPU_RTSP_SECONDS
  latency     one stream: from an image's packet to its metadata
  starts      160 and 240 videos: from the command, and in a service, to the first result
  pictures    32 videos drawn on and written as JPEG on the GPU, beside either unit alone
  loads       RTSP streams as 40 and 80 % of the video unit's rate for GPU_LOAD_SECONDS each
  memory      100,000 frames, and sources opened and closed
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter

from benchmarks.common import require_device
from benchmarks.gpu.clips import DATA
from benchmarks.gpu.correct import boxes, tensors
from benchmarks.gpu.decoding import decode
from benchmarks.gpu.endurance import latency, memory, rtsp
from benchmarks.gpu.engines import engine, graphs
from benchmarks.gpu.pictures import pictures
from benchmarks.gpu.starts import loads, starts
from benchmarks.gpu.throughput import cascade, counts, shares, streams, yolo11n
from benchmarks.gpu.tracking import trackers

PARTS = {
    f.__name__: f
    for f in (
        tensors, trackers, boxes, decode, engine, graphs, streams, cascade, counts, shares,
        yolo11n, rtsp, latency, starts, pictures, loads, memory,
    )
}  # fmt: skip


def report(names: Sequence[str] = ()) -> None:
    """Print the tables of the parts `names`, or of all."""
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"benchmarks.gpu has no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    require_device("cuda", "benchmarks.gpu")
    if DATA is None:
        sys.exit(
            "HEADRACE_TEST_DATA names no folder of models and videos; expected one with models/"
        )
    for name in names or PARTS:
        start = perf_counter()
        PARTS[name]()
        print(f"{name}: {perf_counter() - start:.1f} s", flush=True)
