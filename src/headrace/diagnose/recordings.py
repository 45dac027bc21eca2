"""Runs models on a source and keeps the outputs of their engines in a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, MediaError
from headrace._core.findings import Finding
from headrace.config import ModelConfig, PipelineSpec
from headrace.infer.batch import frame_meta
from headrace.infer.inferencer import Inferencer
from headrace.infer.recordings import RecordingSink
from headrace.pipeline.one_frame import opened_models

if TYPE_CHECKING:
    from headrace.media import Source


@dataclass(frozen=True, slots=True)
class RecordReport:
    """A recording that was written.

    Attributes:
        path: the file.
        frames: number of frames in it.
        items: number of frames and objects that went through a model.
        objects: number of objects that the models gave.
        notices: decisions from the opening on.
    """

    path: Path
    frames: int
    items: int
    objects: int
    notices: tuple[Finding, ...] = ()


def record(
    config: str
    | PathLike[str]
    | ModelConfig
    | PipelineSpec
    | Sequence[str | PathLike[str] | ModelConfig],
    source: object = (),
    out: str | PathLike[str] = "recording.safetensors",
    *,
    limit: int | None = None,
    frames: Collection[int] | None = None,
    **options: object,
) -> RecordReport:
    """Run models on a source, and keep the output tensors of every frame in a file.

        headrace.record("config_infer.txt", "street.mp4", "street.safetensors", limit=10)

    Args:
        config: a config, a bare model or a pipeline file; several models, primary ones first, in a
            list.
        source: an image, video or folder as `open_source` takes it, an opened source, or an array
            (h, w, 3) uint8 BGR. A pipeline file has sources of its own; the first is taken.
        out: the file, which appears once it is whole.
        limit: most frames to record; None records all.
        frames: numbers of the frames to record, from 0; None records all.
        options: as `open_pipeline` takes them: `conf`, `labels`, `parser`, `profile`, ….

    Raises:
        MediaError: the source cannot be read or lacks a frame; the file cannot be written.
        HeadraceError: a model cannot be opened.
    """
    with opened_models(config, source, options) as (models, opened, notices):
        return record_frames(models, opened, Path(out), limit=limit, frames=frames, notices=notices)


def record_frames(
    models: Sequence[Inferencer],
    source: Source,
    out: Path,
    *,
    limit: int | None = None,
    frames: Collection[int] | None = None,
    notices: Iterable[Finding] = (),
) -> RecordReport:
    """Run the frames of an opened source through opened models, one at a time; see `record`.

    Raises:
        ConfigError: no frame is asked for.
        MediaError: as `record`.
    """
    if (limit is not None and limit < 1) or (frames is not None and not frames):
        raise ConfigError("no frame is asked for", expected="a limit of 1 or more, or frames")
    requested = None if frames is None else set(frames)
    objects = 0
    with RecordingSink(out, models) as sink:
        for number, image in enumerate(source):
            if requested is None or number in requested:
                meta = frame_meta(image)
                for model in models:
                    model(image, meta)
                sink.write(image, meta)
                objects += len(meta.objects)
            if sink.frames == limit or (requested is not None and number >= max(requested)):
                break
        absent = () if requested is None or sink.frames == limit else requested
        if not sink.frames or any(one > number for one in absent):
            raise MediaError(
                f"the source has {number + 1} frames" if sink.frames or requested else
                "the source has no frames",
                where=source.name,
                expected=f"frame {max(absent)}, too" if absent else "a frame to record",
            )  # fmt: skip
    said = [*notices, *sink.notices, *(n for model in models for n in model.notices)]
    return RecordReport(out, sink.frames, sink.items, objects, tuple(dict.fromkeys(said)))
