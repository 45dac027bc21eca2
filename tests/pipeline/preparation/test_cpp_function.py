"""C++ functions of nvdspreprocess: the standard one's tensors, metadata, waits and faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.custom.guard.crash import LibraryDiedError
from headrace.errors import CustomLibraryError, HeadraceError
from headrace.infer.batch import Batch
from headrace.meta import Detections, Space
from headrace.pipeline.preparation import TensorPreparer, load_preparation
from tests.custom.preparation.built import library
from tests.infer.scenes import image
from tests.pipeline.preparation.files import write

SCENE = [("red", (10, 20, 30, 30)), ("blue", (100, 60, 50, 50))]
STANDARD = Path("/nowhere/libcustom2d_preprocess.so")


@pytest.fixture(scope="module")
def normalise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory)


def two_images() -> Batch:
    return Batch.of([image(SCENE, source=i) for i in range(2)])


def prepared_by(folder: Path, path: Path, mode: str = "", **changes: dict) -> TensorPreparer:
    keys = {"custom-lib-path": str(path), **changes.pop("property", {})}
    user = {"pixel-normalization-factor": "0.25", "mode": mode}
    return TensorPreparer(load_preparation(write(folder, property=keys, user=user, **changes)))


@pytest.mark.parametrize("guard", ["always", "never"])
@pytest.mark.parametrize("color", ["0", "1"])
@pytest.mark.parametrize("keep", ["0", "1"])
def test_tensors_are_those_of_the_standard_library(
    tmp_path: Path, normalise: Path, guard: str, color: str, keep: str
) -> None:
    property = {"network-color-format": color, "maintain-aspect-ratio": keep}
    batch = two_images()
    standard = prepared_by(tmp_path, STANDARD, property=property)
    (wanted,) = standard(batch.frames, batch.metas)
    own = prepared_by(tmp_path, normalise, property={**property, "custom-lib-guard": guard})
    (tensor,) = own(batch.frames, batch.metas)
    own.close()
    np.testing.assert_array_equal(tensor.data, wanted.data)
    assert tensor.rois == wanted.rois
    assert tensor.target_ids == wanted.target_ids


def test_the_function_sees_the_metadata(tmp_path: Path, normalise: Path) -> None:
    batch = two_images()
    for index, meta in enumerate(batch.metas):
        meta.frame = 7 + index
        boxes = Detections(
            [[20, 10, 40, 30], [5, 5, 10, 10]], [0.9, 0.8], [3, 1], space=Space.FRAME
        )
        meta.objects.append(boxes, 1, labels=("a", "b", "c", "dog" * 60))
        meta.objects.object_ids[:] = [41, 42]
    own = prepared_by(
        tmp_path, normalise, "describe",
        property={"process-on-frame": "0", "network-input-order": "2",
                  "network-input-shape": "4;13"},
        group={"process-on-all-objects": "1", "operate-on-class-ids": "3"},
    )  # fmt: skip
    (tensor,) = own(batch.frames, batch.metas)
    own.close()
    assert [roi.object_index for roi in tensor.rois] == [0, 0]
    luma, chroma = tensor.data[0, 10:12]
    assert tensor.data.tolist() == [
        [i, 7 + i, 2, i, 20, 40, 3, 41, ord("d"), 160, luma, chroma, 2] for i in range(2)
    ]
    assert luma > 0


def test_a_function_that_waits_gives_the_tensor_later(tmp_path: Path, normalise: Path) -> None:
    own = prepared_by(tmp_path, normalise, "wait")
    first, second = two_images(), two_images()
    assert own(first.frames, first.metas) == []
    (tensor,) = own(second.frames, second.metas)
    own.close()
    assert [roi.frame_index for roi in tensor.rois] == [0, 0, 1]


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("fail", "NVDSPREPROCESS_CUDA_ERROR"),
        ("throw", "dusty lens"),
        ("no-buffer", "no buffer of its acquirer"),
        ("too-many", "larger than its buffer"),
        ("few-regions", "2 regions for 3 rows"),
    ],
)
@pytest.mark.parametrize("guard", ["always", "never"])
def test_a_function_that_fails_is_named(
    tmp_path: Path, normalise: Path, mode: str, wanted: str, guard: str
) -> None:
    own = prepared_by(tmp_path, normalise, mode, property={"custom-lib-guard": guard})
    batch = two_images()
    with pytest.raises(CustomLibraryError, match=wanted) as caught:
        own(batch.frames, batch.metas)
    own.close()
    assert str(normalise) in str(caught.value)
    assert "CustomTensorPreparation" in str(caught.value)


def test_a_crash_costs_one_batch(tmp_path: Path, normalise: Path) -> None:
    own = prepared_by(tmp_path, normalise, "crash")
    found = []
    for _ in range(4):
        batch = two_images()
        found.append(len(own(batch.frames, batch.metas)))
    own.close()
    assert found == [1, 0, 1, 0]  # a new worker counts its calls anew
    codes = [n.code for n in own.notices if n.level == "warning"]
    assert "preparation-failed" in codes


def test_a_function_that_hangs_is_given_up(tmp_path: Path, normalise: Path) -> None:
    own = prepared_by(
        tmp_path, normalise, "hang",
        property={"custom-lib-guard-timeout": "0.3", "custom-lib-guard-restarts": "0"},
    )  # fmt: skip
    batch = two_images()
    assert own(batch.frames, batch.metas) == []
    with pytest.raises(LibraryDiedError):
        own(batch.frames, batch.metas)
    own.close()


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"custom-tensor-preparation-function": "Mine"}, "exports no Mine"),
        ({"custom-lib-guard": "sometimes"}, "always or never"),
        ({"custom-lib-path": "gone.so"}, "there is no file"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, normalise: Path, changes: dict, wanted: str
) -> None:
    with pytest.raises(HeadraceError, match=wanted):
        prepared_by(tmp_path, normalise, property=changes)


def test_a_library_that_refuses_to_start(tmp_path: Path, normalise: Path) -> None:
    with pytest.raises(CustomLibraryError, match="initLib returned null"):
        prepared_by(tmp_path, normalise, "refuse")


def test_a_library_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("nothing")
    with pytest.raises(CustomLibraryError):
        prepared_by(tmp_path, tmp_path / "text.so")
