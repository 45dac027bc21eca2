"""Running a model over a data set by the ordinary pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, MediaError
from headrace._core.findings import Finding
from headrace._core.notices import no_warnings
from headrace.config.enums import ClusterMode, ProcessMode
from headrace.diagnose.evaluate.datasets.dataset import Dataset, left_out
from headrace.infer.run_options import RunOptions
from headrace.media.sources.base import Source, SteppedSource
from headrace.media.sources.images import ImageSource
from headrace.media.sources.opening import open_source
from headrace.pipeline.opening import open_pipeline

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.class_attrs import ClassAttrs
    from headrace.media import Frame
    from headrace.meta import FrameMeta

LOW_THRESHOLD = 0.001
"""Confidence from which boxes count for average precision, as most programs of training have it."""

AVERAGING = (ClusterMode.GROUP_RECTANGLES, ClusterMode.DBSCAN, ClusterMode.HYBRID)
"""Clustering that makes boxes of faint ones, too: thresholds cannot be applied afterwards."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How models are run; `on_frame` is called after each image."""

    run: RunOptions
    on_frame: Callable[[], None] = lambda: None


@dataclass(slots=True)
class EvaluationRun:
    """Outcome of a run.

    Attributes:
        frames: images that went through the model.
        fps: frames a second, decoding included.
        profile: whose rules applied.
        notices: of the pipeline, and about images that were left out.
    """

    frames: int = 0
    fps: float = 0.0
    profile: str = ""
    notices: list[Finding] = field(default_factory=list)


def run_over(
    cfg: ModelConfig,
    dataset: Dataset,
    add: Callable[[int, Frame, FrameMeta], None],
    options: EvaluationOptions,
) -> EvaluationRun:
    """Run a model over the images of a data set.

    An image of another size than that of its truth is left out, with a warning.

    Args:
        cfg: with an interval of 0; see `whole_images`.
        dataset: images of an image that cannot be read are left out, with a warning.
        add: called with the place of each image, its frame, and the results.
        options: how to run.

    Raises:
        HeadraceError: the model cannot be run; not one image can be used.
    """
    indices = {str(p.path): i for i, p in enumerate(dataset.images)}
    odd: list[str] = []
    done = EvaluationRun()
    with no_warnings():  # they are notices of the run
        limit = len(dataset.images) if dataset.video else None
        run = replace(options.run, limit=limit).arguments(open_pipeline)
        pipeline = open_pipeline(cfg, sources=_source(dataset), **run)
        with pipeline:
            for frame, meta in pipeline:
                index = meta.frame if dataset.video else indices[frame.source]
                image = dataset.images[index]
                if image.size not in (None, (frame.width, frame.height)):
                    assert image.size is not None
                    wide, high = image.size
                    odd.append(f"{image.name} ({frame.width}x{frame.height}, not {wide}x{high})")
                else:
                    add(index, frame, meta)
                    done.frames += 1
                options.on_frame()
        report = pipeline.report
        done.notices = pipeline.notices
    done.fps, done.profile = report.fps, report.profile
    if not done.frames:
        text = f"no image can be used, as {odd[0]}" if odd else "there is no image"
        raise MediaError(text, where=dataset.name, expected="images as the truth describes them")
    if odd:
        text = "images are not of the size in the truth and left out"
        done.notices.append(left_out(odd, text, dataset.name))
    missing = len(dataset.images) - done.frames - len(odd)
    if dataset.video and missing > 0:
        text = f"the video ends {missing} images before the truth does"
        done.notices.append(Finding("video-shorter", "warning", text, dataset.video))
    return done


def _source(dataset: Dataset) -> Source:
    if dataset.video is None:
        paths = [p.path for p in dataset.images if p.path is not None]
        return ImageSource(paths, dataset.name)
    video = open_source(dataset.video, live=False)
    return video if dataset.step == 1 else SteppedSource(video, step=dataset.step)


def whole_images(cfg: ModelConfig) -> tuple[ModelConfig, list[Finding]]:
    """The config for whole images, all of them: a primary model without `interval`.

    Raises:
        ConfigError: its tensors are prepared by the caller.
    """
    if cfg.input_tensor_from_meta:
        raise ConfigError(
            "input-tensor-from-meta=1: images are not what this model takes",
            where=cfg.origin("input_tensor_from_meta").where or str(cfg.path),
            expected="a model that prepares its images",
        )
    if cfg.process_mode is not ProcessMode.SECONDARY:
        return cfg.with_overrides(interval=0), []
    text = "process-mode=2: each image is taken as an object, whole"
    cfg = cfg.with_overrides(
        interval=0, process_mode=ProcessMode.PRIMARY, classifier_async_mode=False
    )
    return cfg, [Finding("whole-frames", "info", text, str(cfg.path))]


def with_low_thresholds(cfg: ModelConfig) -> ModelConfig:
    """The config with every confidence threshold lowered to `LOW_THRESHOLD`.

    A class whose threshold is 1 or more is switched off, and stays so.
    """

    def lower(attrs: ClassAttrs) -> ClassAttrs:
        if attrs.pre_cluster_threshold >= 1:
            return attrs
        return replace(
            attrs,
            pre_cluster_threshold=min(attrs.pre_cluster_threshold, LOW_THRESHOLD),
            post_cluster_threshold=0.0,
        )

    classes = {number: lower(attrs) for number, attrs in cfg.classes.items()}
    return cfg.with_overrides(all_classes=lower(cfg.all_classes), classes=classes)


def config_name(path: Path, taken: dict[str, Path]) -> str:
    """A short name for a config, with its folder or a number where another one has that name."""
    name = path.name
    if taken.get(name, path) != path:
        name = f"{path.parent.name}/{path.name}"
    number, first = 2, name
    while name in taken:
        name, number = f"{first} ({number})", number + 1
    taken[name] = path
    return name
