"""What a config's pipeline finds in frames with an engine at hand, for measures of quality."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from noria.diagnose.average_precision import Scored
from noria.infer.inferencer import Inferencer
from noria.infer.model import LoadOptions, Model
from noria.infer.record import Record
from noria.media.frame import Frame

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.engine.session import Session


def scored(
    cfg: ModelConfig, session: Session, frames: Iterable[Frame], *, threads: int | None = None
) -> list[Scored]:
    """The objects of each frame, which is inferred alone. Closes the session."""
    record, options = Record(), LoadOptions(threads=threads)
    model = Model.around(cfg, session, options, record)
    with Inferencer(model, record, options=options) as inferencer:
        return [_of(inferencer, frame) for frame in frames]


def _of(inferencer: Inferencer, frame: Frame) -> Scored:
    objects = inferencer.process([frame])[0].objects
    return Scored(
        np.asarray(objects.rects, np.float64).reshape(-1, 4),
        np.asarray(objects.class_ids, np.int64),
        np.asarray(objects.confidences, np.float64),
    )
