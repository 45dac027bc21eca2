"""Findings of a short run on frames, on which everything that is advised is tried."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, HeadraceError
from headrace._core.findings import Finding
from headrace.diagnose.lint.subject import configs_in
from headrace.media import ArraySource
from headrace.media.frame_choice import frames_for_trials
from headrace.media.names import IMAGE_SUFFIXES, is_media
from headrace.pipeline.assembly import Assembling
from headrace.pipeline.opening import pipeline_spec

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.run_options import RunOptions

FRAMES = 8
"""Frames of a source that a set-up is tried on."""


def split_source(paths: Sequence[Path]) -> tuple[list[Path], Path | None]:
    """Tell configs and models from the video, image or folder of images among them.

    Raises:
        ConfigError: there are several.
    """
    sources = [path for path in paths if _is_source(path)]
    if len(sources) > 1:
        raise ConfigError(
            f"{len(sources)} sources: {', '.join(map(str, sources[:3]))}",
            expected="one, on whose frames the configs are tried",
        )
    return [path for path in paths if path not in sources], sources[0] if sources else None


def _is_source(path: Path) -> bool:
    if path.is_dir():
        if next(configs_in(path), None) is not None:
            return False
        return any(file.suffix.lower() in IMAGE_SUFFIXES for file in path.iterdir())
    return is_media(str(path))


def frame_findings(
    configs: Sequence[ModelConfig],
    source: Path,
    options: RunOptions,
    guesses: Sequence[Sequence[Finding]] = (),
) -> tuple[list[Finding], HeadraceError | None]:
    """Run models on frames of a source: of a video spread over it, see `frames_for_trials`.

    Args:
        configs: of one pipeline, in their order.
        source: a video, an image or a folder of images.
        options: of the run.
        guesses: findings of each config whose advice is to be tried, too.

    Returns:
        The notices of the run, those findings among them, and the error that ended it, if one did.
    """
    spec = pipeline_spec(sources=[str(source)])
    notices: list[Finding] = []
    try:
        frames, _ = frames_for_trials(str(source), FRAMES)
        assembly = Assembling(
            spec=spec,
            options=options,
            stages=list(configs),
            opened={0: ArraySource(frames, name=str(source))},
        ).assemble()
    except HeadraceError as error:
        return error.notices, error
    try:
        for model, findings in zip(assembly.inferencers, guesses, strict=False):
            model.model.notices += findings
        notices += assembly.notices
        assembly.pipeline.run()
    except HeadraceError as error:
        return [*notices, *assembly.pipeline.notices], error
    finally:
        assembly.close()
    return [*notices, *assembly.pipeline.notices], None
