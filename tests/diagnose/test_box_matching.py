"""mAP agrees with the COCO evaluation; agreement with a loop."""

import numpy as np
import pytest
from faster_coco_eval import COCO, COCOeval_faster

from noria.diagnose.average_precision import Scored, Truth, agreement, average_precision, overlaps


def made_up(seed, pictures=12, classes=3, crowds=True):
    """Random truths, and findings near them with misses, doubles and false ones."""
    rng = np.random.default_rng(seed)
    truths, found = [], []
    for _ in range(pictures):
        n = int(rng.integers(0, 6))
        boxes = np.concatenate([rng.uniform(0, 300, (n, 2)), rng.uniform(20, 120, (n, 2))], axis=1)
        kinds = rng.integers(0, classes, n)
        crowd = rng.random(n) < (0.15 if crowds else 0)
        truths.append(Truth(boxes, kinds, crowd))
        picked = [i for i in range(n) if rng.random() < 0.85 for _ in range(rng.integers(1, 3))]
        near = boxes[picked] + rng.normal(0, 6, (len(picked), 4))
        false = np.concatenate([rng.uniform(0, 300, (2, 2)), rng.uniform(20, 120, (2, 2))], axis=1)
        all_boxes = np.concatenate([near, false]).clip(1, None)
        all_kinds = np.concatenate([kinds[picked], rng.integers(0, classes, 2)])
        found.append(Scored(all_boxes, all_kinds, rng.random(len(all_boxes)).round(4)))
    return truths, found


def coco(truths, found):
    annotations, results = [], []
    for image, (truth, seen) in enumerate(zip(truths, found, strict=True), 1):
        for box, kind, crowd in zip(truth.boxes, truth.class_ids, truth.crowd, strict=True):
            annotations.append(
                {
                    "id": len(annotations) + 1, "image_id": image, "category_id": int(kind) + 1,
                    "bbox": box.tolist(), "area": float(box[2] * box[3]), "iscrowd": int(crowd),
                }
            )  # fmt: skip
        for box, kind, score in zip(seen.boxes, seen.class_ids, seen.scores, strict=True):
            results.append(
                {
                    "image_id": image, "category_id": int(kind) + 1, "bbox": box.tolist(),
                    "score": float(score),
                }
            )  # fmt: skip
    dataset = COCO(
        {
            "images": [{"id": i + 1, "width": 500, "height": 500} for i in range(len(truths))],
            "annotations": annotations,
            "categories": [{"id": i + 1, "name": str(i)} for i in range(3)],
        }
    )
    evaluation = COCOeval_faster(dataset, dataset.loadRes(results), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats_as_dict


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_coco_evaluation(seed):
    truths, found = made_up(seed, crowds=seed % 2 == 0)
    stats = coco(truths, found)
    assert average_precision(truths, found) == pytest.approx(stats["AP_all"], abs=1e-6)
    half = average_precision(truths, found, np.array([0.5]))
    assert half == pytest.approx(stats["AP_50"], abs=1e-6)


def test_nothing_true_and_nothing_found():
    empty = Truth(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0, bool))
    nothing = Scored(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0))
    assert np.isnan(average_precision([empty], [nothing]))
    one = Truth(np.array([[0.0, 0, 9, 9]]), np.zeros(1, int), np.zeros(1, bool))
    assert average_precision([one], [nothing]) == 0
    assert average_precision([one], [Scored(one.boxes, one.class_ids, np.ones(1))]) == 1


@pytest.mark.parametrize("seed", range(5))
def test_agreement_is_counted_as_it_is_said(seed):
    _, a = made_up(seed)
    _, b = made_up(seed, crowds=False)
    there = total = 0
    for mine, theirs in zip(a, b, strict=True):
        for box, kind, score in zip(mine.boxes, mine.class_ids, mine.scores, strict=True):
            if score < 0.5:
                continue
            total += 1
            there += any(
                k == kind and overlaps(box[None], o[None])[0, 0] >= 0.8
                for o, k in zip(theirs.boxes, theirs.class_ids, strict=True)
            )
    assert agreement(a, b) == pytest.approx(there / total)
    assert agreement(a, a) == 1
