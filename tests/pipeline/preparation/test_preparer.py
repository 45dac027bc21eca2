"""Tensors of regions are what a model's own scaling makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.errors import CustomLibraryError
from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.infer.preprocess import Preprocessor
from headrace.pipeline.preparation import TensorPreparer, load_preparation
from tests.infer.scenes import Config, batch_of, image
from tests.pipeline.preparation.files import write

SCENE = [("red", (10, 20, 30, 30)), ("blue", (100, 60, 50, 50))]


def preparer(folder: Path, **changes: dict) -> TensorPreparer:
    return TensorPreparer(load_preparation(write(folder, **changes)))


def two_images() -> Batch:
    return Batch.of([image(SCENE, source=i) for i in range(2)])


@pytest.mark.parametrize("keep", [False, True])
def test_regions_are_cut_as_crops_are(tmp_path: Path, keep: bool) -> None:
    flag = str(int(keep))
    prepare = preparer(
        tmp_path,
        property={"maintain-aspect-ratio": flag, "symmetric-padding": flag},
        user={"offsets": "10;20;30"},
    )
    batch = two_images()
    (tensor,) = prepare(batch.frames, batch.metas)
    assert [(r.frame_index, r.left, r.top, r.width, r.height) for r in tensor.rois] == [
        (0, 10, 20, 64, 32),
        (0, 0, 0, 40, 40),
        (1, 50, 0, 110, 40),  # cut at the right edge of 160 pixels
    ]
    scaler = Preprocessor(
        32, 32, scale=np.float32(1 / 255), offsets=(10, 20, 30), scaling_filter=1,
        maintain_aspect_ratio=keep, symmetric_padding=keep,
    )  # fmt: skip
    wanted = scaler.empty(1)
    for row, roi in zip(tensor.data, tensor.rois, strict=True):
        rect = np.array([[roi.left, roi.top, roi.width, roi.height]], np.float32)
        crops = scaler.crops(batch.frames[roi.frame_index], rect, wanted)
        np.testing.assert_array_equal(row, wanted[0])
        transform = crops.transform(0)
        assert (roi.ratio_x, roi.ratio_y) == (transform.ratio_x, transform.ratio_y)
        assert (roi.offset_left, roi.offset_top) == (transform.offset_x, transform.offset_y)


def test_a_model_finds_the_same_in_the_whole_frame(tmp_path: Path, mean_config: Config) -> None:
    prepare = preparer(tmp_path, group={"process-on-roi": "0"}, user={})
    own, given = two_images(), two_images()
    keys = {"scaling_filter": 1, "net_scale_factor": 1 / 255, "infer_dims": "3;32;32"}
    with Inferencer.from_config(mean_config(**keys)) as model:
        model.process(own)
    given.tensors = prepare(given.frames, given.metas)
    with Inferencer.from_config(mean_config(**keys, input_tensor_from_meta=1)) as model:
        model.process(given)
    for one, other in zip(own.metas, given.metas, strict=True):
        assert len(one.objects) == 1
        np.testing.assert_array_equal(one.objects.rects, other.objects.rects)
        np.testing.assert_array_equal(one.objects.confidences, other.objects.confidences)


def test_more_regions_than_a_tensor_holds(tmp_path: Path) -> None:
    prepare = preparer(tmp_path, property={"network-input-shape": "2;3;32;32"})
    batch = two_images()
    tensors = prepare(batch.frames, batch.metas)
    assert [t.data.shape for t in tensors] == [(2, 3, 32, 32), (1, 3, 32, 32)]
    assert len({t.meta_id for t in tensors}) == 2


@pytest.mark.parametrize(
    ("group", "taken"),
    [
        ({"process-on-all-objects": "1"}, [(0, 0), (0, 1), (1, 0)]),
        ({"process-on-all-objects": "1", "operate-on-class-ids": "3"}, []),
        ({"process-on-all-objects": "1", "input-object-min-width": "35"}, [(0, 1)]),
        ({"process-on-all-objects": "1", "input-object-max-height": "35"}, [(0, 0), (1, 0)]),
        # regions take what overlaps them
        ({"roi-params-src-0": "0;0;11;21", "roi-params-src-1": "0;0;10;20"}, [(0, 0)]),
    ],
)
def test_objects(tmp_path: Path, group: dict, taken: list) -> None:
    prepare = preparer(tmp_path, property={"process-on-frame": "0"}, group=group)
    batch = batch_of([SCENE, SCENE[:1]])
    tensors = prepare(batch.frames, batch.metas)
    rois = [roi for tensor in tensors for roi in tensor.rois]
    assert [(roi.frame_index, roi.object_index) for roi in rois] == taken


def test_objects_of_another_model(tmp_path: Path) -> None:
    property = {"process-on-frame": "0", "operate-on-gie-id": "2"}
    prepare = preparer(tmp_path, property=property, group={"process-on-all-objects": "1"})
    batch = batch_of([SCENE, SCENE])
    assert prepare(batch.frames, batch.metas) == []


def test_an_interval_leaves_batches_out(tmp_path: Path) -> None:
    prepare = preparer(tmp_path, group={"interval": "2"})
    batch = two_images()
    made = [len(prepare(batch.frames, batch.metas)) for _ in range(6)]
    assert made == [1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("number", "kind"), [(0, "float32"), (1, "uint8"), (2, "int8"), (4, "int32"), (5, "float16")]
)
def test_types_of_values(tmp_path: Path, number: int, kind: str) -> None:
    property = {"tensor-data-type": str(number)}
    prepare = preparer(tmp_path, property=property, user={"pixel-normalization-factor": "1"})
    batch = two_images()
    (tensor,) = prepare(batch.frames, batch.metas)
    assert tensor.data.dtype == kind
    top = 127 if kind == "int8" else 255
    assert tensor.data[0].max() == top  # the red patch


FUNCTION = """
import numpy as np

def prepare(images, config):
    assert images.dtype == np.uint8 and images.shape[1:] == (32, 32, 3)
    level = float(config["level"])
    return images.reshape(len(images), -1)[:, :10] * level
"""


def python(folder: Path, code: str = FUNCTION, **property: str) -> TensorPreparer:
    (folder / "mine.py").write_text(code)
    keys = {
        "custom-lib-path": "mine.py",
        "custom-tensor-preparation-function": "prepare",
        "network-input-order": "2",
        "network-input-shape": "8;10",
    }
    return preparer(folder, property={**keys, **property}, user={"level": "0.5"})


def test_a_function_of_the_users(tmp_path: Path) -> None:
    batch = two_images()
    (tensor,) = python(tmp_path)(batch.frames, batch.metas)
    assert tensor.data.shape == (3, 10)
    assert tensor.data.dtype == np.float32
    assert tensor.data[0, :3].tolist() == [127.5, 0, 0]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("def prepare(images, config):\n    return images", "shape (3, 10)"),
        ("def prepare(images, config):\n    return 'no'", "shape (3, 10)"),
        ("def prepare(images, config):\n    raise ValueError('dusty lens')", "dusty lens"),
    ],
)
def test_a_function_that_fails(tmp_path: Path, code: str, wanted: str) -> None:
    batch = two_images()
    with pytest.raises(CustomLibraryError) as caught:
        python(tmp_path, code)(batch.frames, batch.metas)
    assert wanted in str(caught.value)
    assert "mine.py" in str(caught.value)


def test_a_function_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CustomLibraryError, match="def prepare"):
        python(tmp_path, "x = 1")
