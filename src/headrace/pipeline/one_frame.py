"""Models and one source opened for single frames, without trackers and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.findings import Finding
from headrace.config import ModelConfig, PipelineSpec, is_pipeline_file, load_pipeline
from headrace.infer.inferencer import Inferencer
from headrace.media import ArraySource
from headrace.media.frame import Frame
from headrace.pipeline.opening import open_pipeline

if TYPE_CHECKING:
    from headrace.media import Source


@contextmanager
def opened_models(
    config: object, source: Any, options: Mapping[str, Any]
) -> Iterator[tuple[list[Inferencer], Source, list[Finding]]]:
    """Open the models and the source that `explain` and `record` get, and close them.

    Args:
        config: as `explain` takes it.
        source: the same; an empty sequence takes the first of a pipeline file.
        options: those of `open_pipeline`.

    Raises:
        HeadraceError: one cannot be opened.
    """
    stages: Sequence[Any] = [config]
    if isinstance(config, Sequence) and not isinstance(config, str):
        stages = config
    notices: list[Finding] = []
    spec = config if isinstance(config, PipelineSpec) else None
    if isinstance(config, str | PathLike):
        path = Path(config)
        spec = load_pipeline(path) if path.is_file() and is_pipeline_file(path) else None
    if spec is not None:
        spec, stages, notices = for_one_frame(spec)
        if isinstance(source, Sequence) and not source:
            source = spec.sources[0].uri
    if hasattr(source, "dtype") or isinstance(source, Frame):
        source = ArraySource([source])
    with open_pipeline(*stages, sources=source, **options) as pipeline:
        models = [stage for stage in pipeline.stages if isinstance(stage, Inferencer)]
        yield models, pipeline.sources[0], [*pipeline.notices, *notices]


def for_one_frame(
    spec: PipelineSpec,
) -> tuple[PipelineSpec, list[ModelConfig], list[Finding]]:
    """Leave out everything of a pipeline that one frame has no use for.

    Args:
        spec: the pipeline.

    Returns:
        The pipeline with its first source, without tracker and outputs; its models, classifiers
        that rely on tracking ids made synchronous; the decisions.

    Raises:
        ConfigError: a model's config is refused.
    """
    models, notices = spec.load_models(), []
    if spec.tracker is not None:
        text = "each frame stands alone: the tracker is left out, classifiers run synchronously"
        notices.append(Finding("frames-alone", "info", text, str(spec.path)))
        models = [
            cfg.with_overrides(classifier_async_mode=False) if cfg.classifier_async_mode else cfg
            for cfg in models
        ]
    if len(spec.opened_sources) > 1:
        text = f"frames are of the first of {len(spec.opened_sources)} sources"
        notices.append(Finding("first-source", "info", text, spec.sources[0].label))
    first = spec.sources[:1]
    return spec.changed(sources=first, sinks=(), tracker=None), models, notices
