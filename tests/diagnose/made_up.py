"""Random truths, and findings near them with misses, doubles and false ones."""

import numpy as np

from headrace.diagnose.evaluate.box_matching import Scored, Truth

ALL_CLASSES = 3


def made_up(seed, images=12, *, crowds=True, areas=False, false=2):
    rng = np.random.default_rng(seed)
    truths, found = [], []
    for _ in range(images):
        n = int(rng.integers(0, 6))
        boxes = np.concatenate([rng.uniform(0, 300, (n, 2)), rng.uniform(10, 150, (n, 2))], axis=1)
        kinds = rng.integers(0, ALL_CLASSES, n)
        crowd = rng.random(n) < (0.15 if crowds else 0)
        own = boxes[:, 2:].prod(axis=1) * rng.uniform(0.3, 1, n) if areas else None
        truths.append(Truth(boxes, kinds, crowd, areas=own))
        picked = [i for i in range(n) if rng.random() < 0.85 for _ in range(rng.integers(1, 3))]
        near = boxes[picked] + rng.normal(0, 6, (len(picked), 4))
        wrong = np.concatenate(
            [rng.uniform(0, 300, (false, 2)), rng.uniform(10, 150, (false, 2))], axis=1
        )
        all_boxes = np.concatenate([near, wrong]).clip(1, None)
        all_kinds = np.concatenate([kinds[picked], rng.integers(0, min(2, ALL_CLASSES), false)])
        found.append(Scored(all_boxes, all_kinds, rng.random(len(all_boxes)).round(2)))
    return truths, found
