"""Headrace in one's own Ray Data pipelines: `headrace.ray.read_objects` and `.Inferencer`."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array
from headrace.batches.ray_dataset import read_objects
from headrace.config import ModelConfig
from headrace.infer.batch import frame_meta
from headrace.infer.inferencer import Inferencer as ModelInferencer
from headrace.infer.run_options import RunOptions
from headrace.media import as_frame
from headrace.pipeline.assembly import open_model
from headrace.pipeline.stage_order import numbered

__all__ = ["Inferencer", "RayInferencer", "read_objects"]


class RayInferencer:
    """Runs models on a column of images.

        found = dataset.map_batches(
            headrace.ray.Inferencer, fn_constructor_args=["config.txt"], concurrency=2,
            batch_size=16,
        )

    Args:
        configs: nvinfer configs, primary ones first; every node has to see their files.
        column: name of the images' column: (N, H, W, 3) uint8, or N images of any size.
        format: `rgb` or `bgr`.
        options: as `RunOptions` has them: `threads`, `profile`, ….

    Raises:
        HeadraceError: a model cannot be opened.
    """

    def __init__(
        self,
        *configs: str | PathLike[str],
        column: str = "image",
        format: str = "rgb",
        **options: Any,
    ) -> None:
        self._column = column
        self._format = format
        run = RunOptions(**options)
        loaded = [ModelConfig.load(Path(config)) for config in configs]
        items, _ = numbered(loaded, None, run.generation)
        self._models: list[ModelInferencer] = [open_model(cfg, run) for cfg in items]

    def __call__(self, batch: dict[str, Array]) -> dict[str, Array]:
        """Add the objects of each row to a batch of rows.

        Returns:
            The columns of `batch`, and for each image a list in `boxes` (each left, top, width,
            height in pixels), `scores`, `class_ids` and `labels`.

        Raises:
            KeyError: there is no such column.
            HeadraceError: an image is none, or a model fails.
        """
        images = [np.ascontiguousarray(image) for image in batch[self._column]]
        metas = [frame_meta(as_frame(p, self._format, index=i)) for i, p in enumerate(images)]
        for model in self._models:
            model(images, metas, format=self._format)
        objects = [meta.objects for meta in metas]
        return batch | {
            "boxes": _column([o.rects.tolist() for o in objects]),
            "scores": _column([o.confidences.tolist() for o in objects]),
            "class_ids": _column([o.class_ids.tolist() for o in objects]),
            "labels": _column([[o.label(i) for i in range(len(o))] for o in objects]),
        }


Inferencer = RayInferencer


def _column(values: list[object]) -> npt.NDArray[np.object_]:
    """Lists of different lengths as one column."""
    column = np.empty(len(values), object)
    for index, value in enumerate(values):
        column[index] = value
    return column
