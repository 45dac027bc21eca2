"""Public parser collections compile unchanged, and return what an independent evaluation returns.

HEADRACE_PARSER_SOURCES names a folder with copies or clones of them, at any depth; nothing of them
is in this repository. With HEADRACE_PARSER_RESULTS, a table of the results is written to that file.

The versions that the oracles evaluate: marcoslucianops/DeepStream-Yolo; the samples (customparser,
TAO, YOLO) of NVIDIA/DeepStream 9.1, and of hiennguyen9874/deepstream-sources, branch 6.2;
NVIDIA-AI-IOT/deepstream_tao_apps, tao_ds8.0ga. Older ones have other tensors.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headrace.binary.elf import ElfFile
from headrace.binary.entry_points import entry_points
from headrace.custom import CustomLibrary, open_library
from headrace.custom.compile.build_library import compile_library
from headrace.meta import (
    ClassifierParams,
    DetectionParams,
    Layer,
    NetworkInfo,
    SegmentationParams,
)
from tests.custom.parser_oracles import ORACLES, Case, H, W

SOURCES = os.environ.get("HEADRACE_PARSER_SOURCES")
RESULTS = os.environ.get("HEADRACE_PARSER_RESULTS")
ROUNDS = 5
pytestmark = [
    pytest.mark.skipif(not SOURCES, reason="HEADRACE_PARSER_SOURCES is not set"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
]

# Collection: the file that tells it, files that must be beside it, files that must not.
_TOLD_BY: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "customparser": ("nvdsinfer_custombboxparser.cpp", (), ()),
    "tao": ("nvdsinfer_custombboxparser_tao.cpp", (), ()),
    "yolo library": ("nvdsparsebbox_Yolo.cpp", ("utils.cpp",), ()),
    "yolo sample": ("nvdsparsebbox_Yolo.cpp", (), ("utils.cpp", "trt_utils.cpp", "yolo.cpp")),
    "yolo sample of 6.x": ("nvdsparsebbox_Yolo.cpp", ("trt_utils.cpp",), ()),
}
_ALSO = ("utils.cpp", "trt_utils.cpp", "nvdsinfer_customclassifierparser.cpp",
         "nvdsinfer_customsegmentationparser.cpp", "debug_logger_raii.cpp")  # fmt: skip


def _collections() -> Iterator[tuple[str, Path]]:
    root = Path(SOURCES or "/nowhere")
    for name, (file, beside, absent) in _TOLD_BY.items():
        for path in sorted(root.rglob(file)) if root.is_dir() else []:
            folder = path.parent
            there = all((folder / b).exists() for b in beside)
            if there and not any((folder / a).exists() for a in absent):
                yield name, path


FOUND = list(_collections())


@pytest.fixture(scope="module", params=FOUND, ids=lambda found: f"{found[0]}: {found[1].parent}")
def collection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, CustomLibrary]:
    name, path = request.param
    sources = [path, *(path.parent / a for a in _ALSO if (path.parent / a).exists())]
    library = tmp_path_factory.mktemp("collection") / "libcollection.so"
    compile_library(sources, library)
    return name, path.read_text("utf-8", "replace"), open_library(library)


def test_every_collection_is_there() -> None:
    assert {name for name, _ in FOUND} >= {"customparser", "tao", "yolo library", "yolo sample"}


def test_every_function_returns_what_numpy_says(
    collection: tuple[str, str, CustomLibrary], request: pytest.FixtureRequest
) -> None:
    name, source, library = collection
    wrong: dict[str, str] = {}
    points = [p for p in entry_points(ElfFile.read(library.path)) if not p.device]
    for point in points:
        if point.name == "NvDsInferInitializeInputLayers":
            assert library.input_initializer() is not None
            continue
        rng = np.random.default_rng(7)
        make = ORACLES[name][point.name]
        try:
            for _ in range(ROUNDS):
                _compare(library, point.name, point.kind, make(rng, source))
        except AssertionError as error:
            wrong[point.name] = str(error).strip()
    if RESULTS:
        with Path(RESULTS).open("a") as file:
            for point in points:
                result = "differs" if point.name in wrong else "equal"
                file.write(f"| {name} | `{point.name}` | {point.kind} | {result} |\n")
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


def _compare(library: CustomLibrary, function: str, kind: str, case: Case) -> None:
    layers = {n: Layer(n, np.ascontiguousarray(data)) for n, data in case.layers.items()}
    network = NetworkInfo(W, H, 3)
    if kind == "classifier":
        found = library.classifier_parser(function)(
            layers, network, ClassifierParams(case.threshold)
        )
        got = [(a[0], a[1], a[2]) for a in found.attributes]
        assert case.attributes is not None
        np.testing.assert_allclose(got, case.attributes, rtol=1e-5)
        return
    if kind == "segmentation":
        params = SegmentationParams(len(case.thresholds), case.threshold)
        result = library.segmentation_parser(function)(layers, network, params)
        assert case.classes is not None
        np.testing.assert_array_equal(result.class_map, case.classes)
        return
    params = DetectionParams(len(case.thresholds), case.thresholds)
    masked = kind == "instance segmentation"
    parser = library.instance_parser if masked else library.bbox_parser
    boxes = parser(function)(layers, network, params)
    columns = [boxes.class_ids, *boxes.boxes.T, boxes.scores]
    if case.rows and len(case.rows[0]) == 7:
        assert boxes.angles is not None
        columns.append(boxes.angles)
    got, expected = np.column_stack(columns), np.array(case.rows, np.float64)
    assert len(got) == len(expected), f"{len(got)} objects, {len(expected)} expected"
    assert len(expected) > 3, "the case shows nothing"
    order, wanted = _order(got), _order(expected)
    np.testing.assert_allclose(got[order], expected[wanted], rtol=2e-5, atol=2e-3)
    if case.masks is not None:
        assert boxes.masks is not None
        for g, w in zip(order, wanted, strict=True):
            np.testing.assert_array_equal(boxes.masks[g], case.masks[w])


def _order(rows: np.ndarray) -> np.ndarray:
    return np.lexsort(np.round(rows[:, [1, 0, 5]], 4).T)
