"""mAP of boxes and masks equals that of pycocotools."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from headrace.diagnose.evaluate.average_precision import SIZES, average_precision, coco_scores
from headrace.diagnose.evaluate.box_matching import Scored, Truth
from headrace.meta.masks import rle_decode, rle_encode
from tests.diagnose.made_up import ALL_CLASSES, made_up
from tests.profiles import examples

SIDE = 600


def pycoco(truths, found, kind="bbox", classes=ALL_CLASSES):
    """The evaluation of pycocotools, run and summarised."""
    annotations, results = [], []
    for image, (truth, seen) in enumerate(zip(truths, found, strict=True), 1):
        areas = truth.boxes[:, 2:].prod(axis=1) if truth.areas is None else truth.areas
        for i, box in enumerate(truth.boxes.tolist()):
            one = {"id": len(annotations) + 1, "image_id": image, "bbox": box}
            one |= {"category_id": int(truth.class_ids[i]) + 1, "iscrowd": int(truth.crowd[i])}
            one |= {"area": float(areas[i])}
            if kind == "segm":
                one["segmentation"] = truth.masks[i]
            annotations.append(one)
        for i, box in enumerate(seen.boxes.tolist()):
            one = {"image_id": image, "score": float(seen.scores[i])}
            one |= {"category_id": int(seen.class_ids[i]) + 1}
            if kind == "segm":
                one["segmentation"] = {"size": [SIDE, SIDE], "counts": seen.masks[i]}
            else:
                one["bbox"] = box
            results.append(one)
    with contextlib.redirect_stdout(io.StringIO()):
        dataset = COCO()
        dataset.dataset = {
            "info": {},
            "images": [{"id": i + 1, "width": SIDE, "height": SIDE} for i in range(len(truths))],
            "annotations": annotations,
            "categories": [{"id": i + 1, "name": str(i)} for i in range(classes)],
        }
        dataset.createIndex()
        evaluation = COCOeval(dataset, dataset.loadRes(results), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def same(mine, theirs):
    """Whether all figures of the summary, and every curve, are those of pycocotools."""
    stats = np.where(theirs.stats == -1, np.nan, theirs.stats)
    ours = [mine.ap(), mine.ap(0.5), mine.ap(0.75), *(mine.ap(size=s) for s in SIZES[1:])]
    assert ours == pytest.approx(stats[:6].tolist(), abs=1e-6, nan_ok=True)
    recalls = [mine.ar(), *(mine.ar(size=s) for s in SIZES[1:])]
    assert recalls == pytest.approx(stats[8:].tolist(), abs=1e-6, nan_ok=True)
    assert np.allclose(mine.precision, theirs.eval["precision"][..., -1], atol=1e-6)
    assert np.allclose(mine.recall, theirs.eval["recall"][..., -1], atol=1e-6)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.sampled_from([3, 60, 130]),
)
@pytest.mark.slow
def test_boxes_as_pycocotools(seed, images, crowds, areas, most):
    """Crowds, areas that are not the boxes', more than 100 boxes of a class, equal scores."""
    truths, found = made_up(seed, images, crowds=crowds, areas=areas, false=most)
    if any(len(one.boxes) for one in found):
        same(coco_scores(truths, found, ALL_CLASSES), pycoco(truths, found))


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_masks_as_pycocotools(seed, crowds):
    truths, found = made_up(seed, 3, crowds=crowds)

    def polygon(box):
        x, y, w, h = box
        return [[x, y, x + w, y + h / 3, x + w / 2, y + h]]

    def run_lengths(box):
        x, y, w, h = (round(v) for v in box)
        mask = np.zeros((SIDE, SIDE), bool)
        mask[max(0, y) : y + h, max(0, x) : x + w // 2] = True
        return rle_encode(mask)

    def crowd(box):
        columns = rle_decode(run_lengths(box), SIDE, SIDE).T.ravel()
        edges = np.flatnonzero(np.diff(np.concatenate(([0], columns, [0]))))
        counts = np.diff(np.concatenate(([0], edges, [columns.size]))).tolist()
        return {"size": [SIDE, SIDE], "counts": counts}

    truths = [
        Truth(
            t.boxes, t.class_ids, t.crowd, None, t.areas,
            tuple(crowd(b) if c else polygon(b) for b, c in zip(t.boxes, t.crowd, strict=True)),
        )
        for t in truths
    ]  # fmt: skip
    found = [
        Scored(f.boxes, f.class_ids, f.scores, tuple(map(run_lengths, f.boxes))) for f in found
    ]
    mine = coco_scores(truths, found, ALL_CLASSES, kind="segm", sizes=[(SIDE, SIDE)] * 3)
    same(mine, pycoco(truths, found, "segm"))


def test_nothing_true_and_nothing_found():
    empty = Truth(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0, bool))
    nothing = Scored(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0))
    assert np.isnan(average_precision([empty], [nothing]))
    one = Truth(np.array([[0.0, 0, 9, 9]]), np.zeros(1, int), np.zeros(1, bool))
    assert average_precision([one], [nothing]) == 0
    assert average_precision([one], [Scored(one.boxes, one.class_ids, np.ones(1))]) == 1
    assert np.isnan(average_precision([empty], [Scored(one.boxes, one.class_ids, np.ones(1))]))
    assert np.isnan(coco_scores([one], [nothing], 2).curve(1)).all()


def test_a_difficult_object_is_neither_lost_nor_found_twice():
    """It takes the first box that covers it; the second one is false, unlike one in a crowd."""
    boxes = np.array([[0.0, 0, 50, 50], [100, 100, 50, 50]])
    kinds = np.zeros(2, int)
    difficult = np.array([True, False])
    truth = Truth(boxes, kinds, np.zeros(2, bool), difficult)
    assert average_precision([truth], [Scored(boxes[1:], kinds[1:], np.ones(1))]) == 1
    both = Scored(boxes, kinds, np.array([0.9, 0.5]))
    assert average_precision([truth], [both]) == 1
    twice = Scored(boxes[[0, 0, 1]], np.zeros(3, int), np.array([0.9, 0.8, 0.5]))
    assert average_precision([truth], [twice]) == pytest.approx(0.5)
    crowd = Truth(boxes, kinds, difficult)
    assert average_precision([crowd], [twice]) == 1
