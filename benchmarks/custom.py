"""What calling a user's C++ parser costs beside the parser itself.

The reference is a function in C++ that calls the same compiled one, its layers described before
and its boxes left unread: (ours - reference) / frames is what headrace adds to a frame. It is
called by ctypes, which costs as much as any call out of Python does, or more where the caches are
cold.
Calls are timed one by one in turns: how long a parser works varies by more than what is added.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common import Row, compare, in_turns
from headrace.custom import checked, include_dir, open_library
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo

CALLS = 50  # that times are told for: one call is too short

SOURCE = """
#include "nvdsinfer_custom_impl.h"
extern "C" bool ParseNothing(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &,
                             const NvDsInferParseDetectionParams &,
                             std::vector<NvDsInferObjectDetectionInfo> &) {
    return true;
}

// Reads every value once.
extern "C" bool ParseSum(const std::vector<NvDsInferLayerInfo> &layers,
                         const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                         std::vector<NvDsInferObjectDetectionInfo> &objects) {
    const float *data = static_cast<const float *>(layers[0].buffer);
    float sums[16] = {};
    for (unsigned int i = 0; i + 16 <= layers[0].inferDims.numElements; i += 16)
        for (unsigned int j = 0; j < 16; ++j) sums[j] += data[i + j];
    if (sums[3] < 0) objects.push_back({});
    return true;
}

// Best class of each of 8400 columns of x, y, width, height and 80 scores.
extern "C" bool ParseColumns(const std::vector<NvDsInferLayerInfo> &layers,
                             const NvDsInferNetworkInfo &,
                             const NvDsInferParseDetectionParams &params,
                             std::vector<NvDsInferObjectDetectionInfo> &objects) {
    const unsigned int rows = layers[0].inferDims.d[0], columns = layers[0].inferDims.d[1];
    const float *data = static_cast<const float *>(layers[0].buffer);
    std::vector<float> best(columns, 0.0f);
    std::vector<unsigned int> classes(columns, 0);
    for (unsigned int r = 4; r < rows; ++r)
        for (unsigned int c = 0; c < columns; ++c)
            if (data[r * columns + c] > best[c]) {
                best[c] = data[r * columns + c];
                classes[c] = r - 4;
            }
    for (unsigned int c = 0; c < columns; ++c) {
        if (best[c] < params.perClassPreclusterThreshold[classes[c]]) continue;
        NvDsInferObjectDetectionInfo box = {};
        box.classId = classes[c];
        box.width = data[2 * columns + c];
        box.height = data[3 * columns + c];
        box.left = data[c] - box.width / 2;
        box.top = data[columns + c] - box.height / 2;
        box.detectionConfidence = best[c];
        objects.push_back(box);
    }
    return true;
}

// A box of each of N rows.
extern "C" bool ParseRows(const std::vector<NvDsInferLayerInfo> &layers,
                          const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                          std::vector<NvDsInferObjectDetectionInfo> &objects) {
    const float *row = static_cast<const float *>(layers[0].buffer);
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i, row += 6)
        objects.push_back({1, row[0], row[1], row[2], row[3], row[4]});
    return true;
}

extern "C" void CallDirectly(NvDsInferParseCustomFunc parse, float *data, unsigned int rows,
                             unsigned int columns, int frames) {
    NvDsInferLayerInfo layer = {};
    layer.layerName = "output0";
    layer.buffer = data;
    layer.inferDims = {2, {rows, columns}, rows * columns};
    const std::vector<NvDsInferLayerInfo> layers = {layer};
    NvDsInferParseDetectionParams params;
    params.numClassesConfigured = 80;
    params.perClassPreclusterThreshold.assign(80, 0.5f);
    for (int frame = 0; frame < frames; ++frame) {
        std::vector<NvDsInferObjectDetectionInfo> objects;
        parse(layers, {640, 640, 3}, params, objects);
    }
}
"""


def rows() -> Iterator[Row]:
    """Milliseconds for `CALLS` frames."""
    compiler = shutil.which("g++")
    if compiler is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "columns.cpp"), Path(folder, "libcolumns.so")
        source.write_text(SOURCE)
        command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{include_dir()}"]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        opened, functions = open_library(library), ctypes.CDLL(str(library))
        direct = functions.CallDirectly
        direct.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_uint] * 2, ctypes.c_int]
        network, params = NetworkInfo(640, 640, 3), DetectionParams(80, np.full(80, 0.5, "f4"))

        for name, count in (
            ("ParseNothing", 0),
            ("ParseRows", 100),
            ("ParseRows", 1000),
            ("ParseColumns", 20),
            ("ParseColumns", 1000),
        ):
            tensor = np.ones((count, 6), "f4") if name == "ParseRows" else _tensor(count)
            layers = {"output0": Layer("output0", tensor)}
            parser = opened.bbox_parser(name)
            assert len(parser(layers, network, params)) == count
            what = {
                "ParseNothing": "does nothing",
                "ParseRows": f"{count} rows are boxes",
                "ParseColumns": f"84x8400, {count} boxes",
            }[name]
            function, place = getattr(functions, name), tensor.ctypes.data
            yield in_turns(
                f"C++ parser, {what}, {CALLS} frames",
                partial(parser, layers, network, params),
                partial(direct, function, place, *tensor.shape, 1),
                repeat=1000,
                times=CALLS,
            )

        yield from _guarded(library)

        found = Detections(np.ones((300, 4)), np.ones(300), np.zeros(300))
        sound = checked(lambda *_: found, "parser")
        yield compare(
            f"Python parser, checks of 300 boxes, {CALLS} frames",
            _repeated(partial(sound, {}, network, params)),
            _repeated(lambda: found),
        )


def _guarded(library: Path) -> Iterator[Row]:
    """The same parsers in a worker process; the reference is this process.

    Before each call the tensor is written anew, as an engine does it; that is not timed. Shared:
    where the worker reads it; copied: elsewhere.
    """
    from headrace.custom.guard.keeper import can_guard

    if can_guard() is not None:
        return
    network, params = NetworkInfo(640, 640, 3), DetectionParams(80, np.full(80, 0.5, "f4"))
    here, worker = open_library(library), open_library(library, guard="always")
    for name, count in (("ParseNothing", 0), ("ParseSum", 0), ("ParseColumns", 20)):
        made = _tensor(count)
        shared = worker.output_memory.take(made.dtype, made.shape)
        guarded = worker.bbox_parser(name)
        ways = {
            "shared": (guarded, shared),
            "copied": (guarded, np.empty_like(made)),
            "here": (here.bbox_parser(name), np.empty_like(made)),
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(CALLS * 6):
            for way, (parse, tensor) in ways.items():
                np.copyto(tensor, made)
                layers = {"output0": Layer("output0", tensor)}
                start = perf_counter()
                parse(layers, network, params)
                times[way].append((perf_counter() - start) * 1e3 * CALLS)
        what = {
            "ParseNothing": "does nothing, 84x8400",
            "ParseSum": "reads 84x8400",
            "ParseColumns": f"84x8400, {count} boxes",
        }[name]
        reference = statistics.median(times["here"][CALLS:])
        for way in ("shared", "copied"):
            ours = statistics.median(times[way][CALLS:])
            label = f"guarded, {what}, {way}, {CALLS} frames"
            yield Row(label, ours, reference, reference / ours)


def _tensor(count: int) -> np.ndarray:
    """(84, 8400) with `count` candidates above one half."""
    rng = np.random.default_rng(count)
    tensor = rng.uniform(0, 0.4, (84, 8400)).astype(np.float32)
    columns = rng.choice(8400, count, replace=False)
    tensor[4 + rng.integers(0, 80, count), columns] = 0.9
    return tensor


def _repeated(call: Callable[[], Any]) -> Callable[[], None]:
    def many() -> None:
        for _ in range(CALLS):
            call()

    return many
