"""Calls of a model with images in memory, or their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import EngineError
from headrace._core.text import quoted
from headrace.infer.batch import Batch, frame_meta
from headrace.media import as_frame
from headrace.media.frame import Frame
from headrace.meta import FrameMeta

if TYPE_CHECKING:
    from headrace.infer.inferencer import Inferencer, LabelledImage
    from headrace.media.pixel_format import PixelFormat


def called_on(
    model: Inferencer,
    run: Callable[[Batch], None],
    images: Sequence[LabelledImage],
    argument: object,
    format: PixelFormat | str,
) -> list[FrameMeta]:
    """Run a model on images in batches of its `batch-size`.

    Args:
        model: the model.
        run: runs it on a batch.
        images, argument, format: `image`, `meta` and `format` of `Inferencer.__call__`.

    Raises:
        MediaError: one is no image; those of earlier batches have run.
        EngineError: `argument` is no metadata of these images.
    """
    known = [None] * len(images) if argument is None else argument
    where = str(model.config.path)
    if not isinstance(known, Sequence) or any(
        not isinstance(meta, FrameMeta | None) for meta in known
    ):
        raise EngineError(
            f"meta is {quoted(repr(argument))}",
            where=where,
            expected="the FrameMeta of the image; of a list of images a list of them",
        )
    if len(known) != len(images):
        problem = f"{len(images)} images and {len(known)} metas"
        raise EngineError(problem, where=where, expected="as many of each")
    size = model.config.batch_size
    metas: list[FrameMeta] = []
    for start in range(0, len(images), size):
        frames = []
        for index, image in enumerate(images[start : start + size], start):
            frame = as_frame(image, format, index=index)
            own = isinstance(image, Frame | str | Path)
            frames.append(frame if own or not index else replace(frame, frame=index))
        pairs = zip(frames, known[start : start + size], strict=True)
        own_metas = [frame_meta(frame) if meta is None else meta for frame, meta in pairs]
        batch = Batch(frames, own_metas, list(range(len(frames))))
        run(batch)
        metas += batch.metas
    return metas
