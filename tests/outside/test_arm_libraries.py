"""Prebuilt libraries of Jetsons give here what their own sources give, compiled here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from headrace.binary.elf import HOST_MACHINES, ElfFile
from headrace.custom import CustomLibrary, open_library
from headrace.custom.compile.build_library import compile_library
from headrace.custom.emulated.emulator import Emulator, find_emulator
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo

SOURCE = "nvdsparsebbox_Yolo.cpp"
CLASSES = 80
THRESHOLDS = np.full(CLASSES, 0.6, np.float32)
PARAMS = DetectionParams(CLASSES, THRESHOLDS, THRESHOLDS)


def libraries(outside: Path) -> list[Path]:
    """Custom libraries for AArch64 in the checkouts."""
    found = sorted(outside.glob("*/**/libnvdsinfer_custom_impl_*.so"))
    return [path for path in found if ElfFile.read(path).machine == HOST_MACHINES["aarch64"]]


def grids(sizes: tuple[int, ...], anchors: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.random((anchors * (5 + CLASSES), n, n), np.float32) ** 8 for n in sizes]


def outputs(function: str, source: str) -> list[np.ndarray]:
    """Made outputs of the network that a function of a source decodes."""
    if match := re.search(r"V([23])(Tiny)?$", function):
        if match[1] == "2":
            return grids((13,), 5)
        return grids((13, 26) if match[2] else (13, 26, 52), 3)
    rng = np.random.default_rng(2)
    corners = rng.uniform(0, 300, (8400, 2))
    boxes = np.column_stack([corners, corners + rng.uniform(5, 200, (8400, 2))]).astype(np.float32)
    scores, classes = rng.random((8400, 1), np.float32), rng.integers(0, CLASSES, (8400, 1))
    if "TLT" in function or "counts = outputLayersInfo[0]" in source:
        count, unit = np.int32([100]), boxes[:100] / 640 if "TLT" in function else boxes[:100]
        found = [unit, scores[:100, 0], classes[:100, 0].astype(np.float32)]
        return [count, *found]
    if "outputLayersInfo[2]" in source:
        return [boxes, scores, classes.astype(np.float32)]
    if "inferDims.d[1]; // 8400" in source:
        return [np.vstack([boxes.T, rng.random((CLASSES, 8400), np.float32) ** 20])]
    return [np.hstack([boxes, scores, classes]).astype(np.float32)]


def decoded(library: CustomLibrary, function: str, arrays: list[np.ndarray]) -> Detections:
    layers = {f"output{i}": Layer(f"output{i}", array.copy()) for i, array in enumerate(arrays)}
    size = 416 if re.search(r"V[23]", function) else 640
    return library.bbox_parser(function)(layers, NetworkInfo(size, size, 3), PARAMS)


def test_boxes_are_those_of_the_sources(outside: Path, tmp_path: Path) -> None:
    found = libraries(outside)
    if not found:
        pytest.skip(f"no custom library for AArch64 in {outside}")
    if not isinstance(emulator := find_emulator(), Emulator):
        pytest.skip(f"nothing runs libraries of AArch64: {emulator}")
    compared = []
    for path in found:
        there = open_library(path)
        names = {n for n in there.symbols() if "Parse" in n and "Cuda" not in n and "ONNX" not in n}
        source = path.with_name(SOURCE)
        text = source.read_text(errors="replace") if source.exists() else ""
        if not all(f"{name}(" in text for name in names):
            continue  # built from other sources
        target = tmp_path / f"lib{len(compared)}.so"
        helpers = [source.with_name(name) for name in ("utils.cpp", "trt_utils.cpp")]
        compile_library([source, *filter(Path.exists, helpers)], target, flags=["-fpermissive"])
        here = open_library(target)
        for name in sorted(names):
            arrays = outputs(name, text)
            one, two = decoded(there, name, arrays), decoded(here, name, arrays)
            label = f"{path.relative_to(outside)}: {name}"
            assert len(one) == len(two) > 20, label
            assert np.array_equal(one.class_ids, two.class_ids), label
            np.testing.assert_allclose(one.boxes, two.boxes, atol=0.01, err_msg=label)
            np.testing.assert_allclose(one.scores, two.scores, atol=1e-6, err_msg=label)
            compared.append(label)
    print("\n".join(compared))
    assert compared
