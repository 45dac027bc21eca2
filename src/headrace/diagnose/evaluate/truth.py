"""True boxes from a COCO JSON, and the boxes that a model finds, for measures of quality."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.diagnose.calibrate.scales import Selected
from headrace.diagnose.evaluate.box_matching import Scored, Truth
from headrace.diagnose.evaluate.class_map import match_classes
from headrace.diagnose.evaluate.datasets.coco import load_coco
from headrace.infer.inferencer import Inferencer
from headrace.infer.loaded_model import Model
from headrace.infer.parsers.labels import load_labels
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.media.frame import Frame

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.config import ModelConfig
    from headrace.engine.session import Session


def read_truth(
    path: Path, sources: Sequence[str], cfg: ModelConfig, limit: int
) -> tuple[list[Selected], list[Truth], list[Finding]]:
    """Images that a COCO JSON describes, with their boxes, a truth for each image in order.

    Images and classes are found as `headrace.evaluate` does; class ids are the model's. Objects
    of classes that the model lacks are left out, with a warning.

    Args:
        path: the JSON.
        sources: folders where images may be, besides the JSON's own; or a video.
        cfg: its labels are the classes.
        limit: the most images, spread evenly.

    Raises:
        MediaError: the file is not such a JSON, or none of its images is there.
        ConfigError: no label is one of its classes.
    """
    dataset = load_coco(path, list(map(Path, sources))).limited(limit)
    labels = load_labels(cfg.labelfile_path).detector if cfg.labelfile_path else []
    count = cfg.num_detected_classes
    classes = match_classes(labels, dataset.classes, count=count, where=str(cfg.path))
    of_model = np.full(len(dataset.classes), -1, np.int64)
    for number in reversed(range(len(classes.table))):
        if classes.table[number] >= 0:
            of_model[classes.table[number]] = number
    truths = []
    for image in dataset.images:
        assert isinstance(image.truth, Truth)
        ids = of_model[image.truth.class_ids]
        truths.append(replace(image.truth, class_ids=ids).select(ids >= 0))
    if dataset.video is not None:
        chosen = [Selected(dataset.video, len(truths), float(dataset.step))]
    else:
        chosen = [Selected(str(p.path), 1, 1.0) for p in dataset.images]
    return chosen, truths, [*dataset.notices, *classes.notices]


def scored(
    cfg: ModelConfig, session: Session, frames: Iterable[Frame], *, threads: int | None = None
) -> list[Scored]:
    """The objects of each frame, which is inferred alone. Closes the session."""
    record, options = Record(), RunOptions(threads=threads, streams=1)
    model = Model.around(cfg, session, options, record)
    with Inferencer(model, record, options=options) as inferencer:
        return [_scored_frame(inferencer, frame) for frame in frames]


def _scored_frame(inferencer: Inferencer, frame: Frame) -> Scored:
    objects = inferencer.process([frame])[0].objects
    ids, scores = objects.class_ids, objects.confidences
    return Scored.of(objects.rects, ids, scores, angles=objects.angles)
