"""COCO's JSON: read as it is meant, and refused with the row that is wrong."""

import io
import json
from contextlib import redirect_stdout, suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from headrace.diagnose.evaluate.average_precision import coco_scores
from headrace.diagnose.evaluate.datasets.coco import load_coco
from headrace.errors import MediaError
from headrace.meta.masks import rle_encode
from tests.diagnose.evaluate.datasets.images import image
from tests.diagnose.evaluate.test_average_precision import same
from tests.diagnose.made_up import ALL_CLASSES, made_up
from tests.profiles import examples

GOOD = {
    "images": [
        {"id": 7, "file_name": "a.jpg", "width": 40, "height": 20},
        {"id": 3, "file_name": "val/b.jpg"},
    ],
    "categories": [{"id": 5, "name": "x"}, {"id": 2, "name": "y"}],
    "annotations": [
        {"id": 1, "image_id": 7, "category_id": 5, "bbox": [1, 2, 3, 4], "area": 9.5},
        {"id": 2, "image_id": 7, "category_id": 2, "bbox": [5, 6, 7, 8], "iscrowd": 1},
    ],
}


def write(folder, **changes):
    (folder / "t.json").write_text(json.dumps(GOOD | changes))
    for name in ("a.jpg", "b.jpg"):
        image(folder / "val" / name)
    return folder / "t.json"


def row(**changes):
    return {"annotations": [GOOD["annotations"][0] | changes]}


def test_boxes_classes_and_images(tmp_path):
    found = load_coco(write(tmp_path), [tmp_path / "val"])
    assert found.classes == ("y", "x")  # in the order of the ids
    second, first = found.images
    assert first.path == tmp_path / "val" / "a.jpg"
    assert first.size == (40, 20)
    assert second.path == tmp_path / "val" / "b.jpg"
    assert second.size is None
    assert first.truth.boxes.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert first.truth.class_ids.tolist() == [1, 0]
    assert first.truth.areas.tolist() == [9.5, 56]
    assert first.truth.crowd.tolist() == [False, True]
    assert second.truth.boxes.shape == (0, 4)
    assert found.notices == ()
    assert not found.has_masks


def test_masks_of_polygons_and_run_lengths(tmp_path):
    counts = rle_encode(np.ones((20, 40), bool))
    for given_mask in (
        [[1, 1, 9, 1, 9, 9]],
        {"size": [20, 40], "counts": [0, 800]},
        {"size": [20, 40], "counts": counts},
    ):
        path = write(tmp_path, **row(segmentation=given_mask))
        found = load_coco(path, [tmp_path / "val"])
        assert found.has_masks
        assert found.images[1].truth.masks == (given_mask,)


def test_things_left_out_are_said(tmp_path):
    images = [*GOOD["images"], {"id": 9, "file_name": "gone.jpg"}]
    rows = [*GOOD["annotations"], GOOD["annotations"][0] | {"id": 8, "image_id": 99}]
    rows.append(GOOD["annotations"][0] | {"id": 9, "ignore": 1})
    found = load_coco(write(tmp_path, images=images, annotations=rows), [tmp_path / "val"])
    text = " ".join(n.sentence for n in found.notices)
    assert "1 annotations of images that are not listed: annotation 8 (image 99)" in text
    assert "1 annotations have ignore without iscrowd" in text
    assert "1 images are not there and left out: gone.jpg" in text
    assert len(found.images) == 2


def test_frames_of_a_video_and_fewer_of_them(tmp_path):
    (tmp_path / "video.mp4").write_bytes(b"")
    images = [{"id": i, "file_name": f"{i}"} for i in range(10)]
    found = load_coco(write(tmp_path, images=images, annotations=[]), [tmp_path / "video.mp4"])
    assert found.video == str(tmp_path / "video.mp4")
    assert len(found.images) == 10
    assert found.limited(10) is found
    part = found.limited(4)
    assert part.step == 3
    assert [p.name for p in part.images] == ["0", "3", "6", "9"]
    assert part.limited(2).step == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (row(category_id=9), "annotation 1 has category_id 9, which the truth does not list"),
        (row(bbox=[1, 2, 3]), "annotation 1 has the box"),
        (row(bbox=[1, 2, -3, 4]), "annotation 1 has the box"),
        (row(bbox=[1, 2, "3", 4]), r"annotations\[0\] \(id 1\): Expected `float`"),
        (row(image_id=None), r"annotations\[0\] \(id 1\)"),
        (row(segmentation=[[1, 2, 3, 4]]), "a segmentation that is no mask"),
        (row(segmentation=[[1, 2, 1e9, 4, 5, 6]]), "a segmentation that is no mask"),
        (row(segmentation={"size": [1, 1], "counts": [1]}), "a segmentation that is no mask"),
        (row(segmentation={"size": [20, 40], "counts": [5]}), "a segmentation that is no mask"),
        (row(segmentation={"size": [20, 40], "counts": "~~"}), "a segmentation that is no mask"),
        ({"annotations": GOOD["annotations"] * 2}, "2 annotations have the id"),
        ({"images": GOOD["images"] * 2}, "2 images have the id"),
        ({"categories": GOOD["categories"] * 2}, "2 categories have the id"),
        ({"annotations": 5}, "its annotations are int"),
        ({"images": None}, "its images are missing"),
        ({"images": []}, "lists no image"),
        (
            {"images": [{"id": i, "file_name": f"{i}/b.jpg"} for i in (7, 3)]},
            "b.jpg would be the image of 7/b.jpg and of 3/b.jpg",
        ),
        ({"images": [{"id": 1, "file_name": "gone.jpg"}]}, "none of the 1 images"),
    ],
)
def test_refused_with_the_row(tmp_path, changes, words):
    with pytest.raises(MediaError, match=words):
        load_coco(write(tmp_path, **changes), [tmp_path / "val"])


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"images": [NaN]}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "t.json").write_bytes(text)
    with pytest.raises(MediaError, match="not COCO's JSON"):
        load_coco(tmp_path / "t.json")
    with pytest.raises(MediaError, match="cannot be read"):
        load_coco(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["id", "image_id", "category_id", "bbox", "segmentation", "counts", "size"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=5,
)


@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from(["images", "annotations", "categories"]), JSON)
def test_whatever_stands_in_it_is_read_or_refused(tmp_path_factory, key, value):
    folder = tmp_path_factory.mktemp("fuzz")
    good = GOOD[key][0]
    changed = [good | value] if isinstance(value, dict) else value
    with suppress(MediaError):
        found = load_coco(write(folder, **{key: changed}), [folder / "val"])
        assert all(np.isfinite(p.truth.boxes).all() for p in found.images)


@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_file_is_scored_as_pycocotools_scores_it(tmp_path_factory, seed):
    """Ids with gaps, crowds, `ignore`, areas: the file goes into either evaluation."""
    folder = tmp_path_factory.mktemp("same")
    rng = np.random.default_rng(seed)
    truths, found = made_up(seed, 5, areas=True, false=8)
    annotations, results = [], []
    images = rng.permutation(90)[:5].tolist()
    categories = rng.permutation(90)[:ALL_CLASSES].tolist()
    for image_id, truth, seen in zip(images, truths, found, strict=True):
        for i, k in enumerate(truth.class_ids.tolist()):
            row = {"id": len(annotations) + 3, "image_id": image_id, "category_id": categories[k]}
            row |= {"bbox": truth.boxes[i].tolist(), "area": float(truth.areas[i])}
            row |= {"iscrowd": int(truth.crowd[i]), "ignore": int(rng.integers(0, 2))}
            annotations.append(row)
        for box, k, score in zip(seen.boxes, seen.class_ids, seen.scores, strict=True):
            row = {"image_id": image_id, "category_id": categories[k], "bbox": box.tolist()}
            results.append(row | {"score": float(score)})
    document = {
        "images": [{"id": i, "file_name": f"{i}", "width": 600, "height": 600} for i in images],
        "categories": [{"id": i, "name": f"n{i}"} for i in categories],
        "annotations": annotations,
    }
    (folder / "t.json").write_text(json.dumps(document))
    for image_id in images:
        (folder / f"{image_id}").touch()
    dataset = load_coco(folder / "t.json")
    found = [found[images.index(int(p.name))] for p in dataset.images]
    places = [dataset.classes.index(f"n{i}") for i in categories]
    found = [replace(f, class_ids=np.array(places)[f.class_ids]) for f in found]
    mine = coco_scores([p.truth for p in dataset.images], found, ALL_CLASSES)
    with redirect_stdout(io.StringIO()):
        oracle = COCO(folder / "t.json")
        evaluation = COCOeval(oracle, oracle.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    same(mine, evaluation)
