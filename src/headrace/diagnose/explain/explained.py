"""One frame through one or more models, explained."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.json_record import finite_data
from headrace._core.pages import write_page
from headrace._core.text import counted
from headrace.config import ModelConfig, PipelineSpec
from headrace.diagnose.explain.gather import explain_model
from headrace.diagnose.explain.page import explanation_page
from headrace.diagnose.explain.records import Box, FrameExplanation, ModelExplanation
from headrace.diagnose.explain.summary import summary
from headrace.infer.batch import frame_meta
from headrace.infer.inferencer import Inferencer
from headrace.infer.record import found_nothing
from headrace.infer.trace import FLOOR, FrameTrace, trace_frame
from headrace.infer.watch.rules import is_finding
from headrace.media.frame import Frame
from headrace.media.frame_choice import frames_for_trials
from headrace.pipeline.one_frame import opened_models

if TYPE_CHECKING:
    from headrace.media import Source
    from headrace.meta import FrameMeta

_FRAMES = 6
"""Frames of a source that the plausibility watch looks at, beside the one explained."""

_WEAKER = 0.5
"""Share of the best candidate's score that the best of the first frame must have."""


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Decisions of every model on one frame.

    Attributes:
        data: the decisions, as JSON has them.
        traces: the same with all tensors and candidates, one for each model.
        models: the models; `explain` has closed them.
        notices: decisions from the opening on.
    """

    data: FrameExplanation
    traces: tuple[FrameTrace, ...]
    models: tuple[Inferencer, ...]
    notices: tuple[Finding, ...] = ()

    def summary(self) -> str:
        """The explanation as text for a terminal, without colours."""
        return summary(self.data)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON data."""
        return self.data.to_dict()

    def to_json(self) -> str:
        """The explanation as a JSON document."""
        return json.dumps(finite_data(self.to_dict()), indent=2, allow_nan=False)

    def to_html(self) -> str:
        """The explanation as a page with images, which needs nothing from outside."""
        return explanation_page(self.data, self.traces, self.models)

    def write_html(self, path: str | PathLike[str]) -> Path:
        """Write the page as a file.

        Raises:
            MediaError: it cannot be written.
        """
        return write_page(path, self.to_html())

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for notebooks."""
        page = escape(self.to_html())
        return f'<iframe srcdoc="{page}" style="width:100%;height:48rem;border:0"></iframe>'

    def __repr__(self) -> str:
        data = self.data
        verdicts = "; ".join(f"{one.name}: {one.verdict}" for one in data.models)
        return f"Explanation(frame {data.frame} of {data.source}: {verdicts})"


def explain(
    config: str
    | PathLike[str]
    | ModelConfig
    | PipelineSpec
    | Inferencer
    | Sequence[str | PathLike[str] | ModelConfig | Inferencer],
    source: object = (),
    *,
    frame: int | None = None,
    at: tuple[float, float] | None = None,
    box: tuple[float, float, float, float] | None = None,
    floor: float = FLOOR,
    **options: object,
) -> Explanation:
    """Explain the decisions of every step on one frame.

        print(headrace.explain("pgie.txt", "street.jpg", at=(320, 200)).summary())

    Args:
        config: a config, a bare model or a pipeline file; several models, primary ones first, in a
            list.
        source: an image, video or folder as `open_source` takes it, an opened source, or an array
            (h, w, 3) uint8 BGR. A pipeline file has sources of its own; the first is taken.
        frame: number of the frame in the source, from 0; None takes the first, or if its candidates
            are weak, the one of a few frames spread over the source whose candidates are strongest.
        at: x, y of a point in frame pixels that is asked about.
        box: left, top, width, height of a box instead.
        floor: the lowest score of a candidate, above 0.
        options: as `open_pipeline` takes them: `conf`, `labels`, `parser`, `profile`, `threads`,
            keys of the config, ….

    Raises:
        MediaError: the source cannot be read, or has no such frame.
        ConfigError: the place lies outside of the frame.
        HeadraceError: a model cannot be opened.
    """
    with opened_models(config, source, options) as (models, opened, notices):
        return explain_frame(
            models, opened, frame, at=place_of(at, box), floor=floor, notices=notices
        )


def place_of(
    at: tuple[float, float] | None, box: tuple[float, float, float, float] | None
) -> Box | None:
    """A point or a box as one kind of place: left, top, width, height; a point has no size.

    Raises:
        ConfigError: both are given; a number is not finite; a box has no area.
    """
    if at is not None and box is not None:
        raise ConfigError("a point and a box are given", expected="one of them")
    rect = None if at is None and box is None else (*at, 0.0, 0.0) if at is not None else box
    if rect is None:
        return None
    left, top, width, height = map(float, rect)
    if not all(map(math.isfinite, (left, top, width, height))) or width < 0 or height < 0:
        raise ConfigError(f"{rect} is no place", expected="finite numbers of pixels")
    if box is not None and not (width > 0 and height > 0):
        raise ConfigError(f"a box of {width:g}x{height:g} pixels", expected="a box with an area")
    return left, top, width, height


def explain_frame(
    models: Sequence[Inferencer],
    source: Source,
    number: int | None = None,
    *,
    at: Box | None = None,
    floor: float = FLOOR,
    notices: Iterable[Finding] = (),
) -> Explanation:
    """Run one frame of an opened source through opened models, and explain it.

    The models run on a few frames spread over the source, too, by which the plausibility watch
    judges and on which its advice is tried.

    Args:
        models: primary ones first.
        source: read as `frames_for_trials` does, and closed.
        number: of the frame, from 0; None chooses one, see `explain`.
        at: a place as `place_of` gives it.
        floor: the lowest score of a candidate.
        notices: decisions while the models were opened.

    Raises:
        MediaError: the source has no such frame.
        ConfigError: the place lies outside of the frame.
    """
    if not floor > 0:
        raise ConfigError(f"floor={floor}", expected="a score above 0")
    frames, _ = frames_for_trials(source, _FRAMES, [number or 0])
    known = {frame.frame: frame_meta(frame) for frame in frames}
    image = next(frame for frame in frames if frame.frame == (number or 0))
    said, seen = [*notices], False
    detects = models[0].config.network_type.has_class_attrs
    if number is None and at is None and detects and frames[1:]:
        image, seen = _telling_frame(models[0], frames, known, floor), True
        if image.frame:
            text = f"frame {image.frame} is explained: frame 0 shows the model less; --frame N"
            said.append(Finding("frame-chosen", "info", f"{text} takes another", source.name))
    if at is not None and not _inside(at, image):
        raise ConfigError(
            f"{at[0]:g},{at[1]:g} lies outside of the frame",
            where=source.name,
            expected=f"pixels of {image.width}x{image.height}",
        )
    traces, explained = [], []
    meta = frame_meta(image)
    for model in models:
        model.restart()  # what it counted before is of other frames
        trace = trace_frame(model, image, meta, floor=floor)
        traces.append(trace)
        explained.append(
            explain_model(model, trace, model.losses, floor=floor, at=at, frames=frames)
        )
    known[image.frame] = meta
    for other in frames:
        for model in models[seen:] if other is not image else ():
            model(other, known[other.frame])
    for model in models:
        model.conclude()
    explanations = tuple(
        _with_findings(one, model.notices) for one, model in zip(explained, models, strict=True)
    )
    said += source.notices
    said += [n for model in models for n in model.notices if not is_finding(n)]
    if detects and (
        explanations[0].findings or not any(len(meta.objects) for meta in known.values())
    ):
        text = "headrace repair, with the same config and source, tries the usual mistakes, also"
        text += f" several at once, on frames of it: {counted(len(frames), 'frame')}"
        said.append(Finding("repair-tries", "info", text, str(models[0].config.path)))
    said = list(dict.fromkeys(said))
    rows = tuple(notice.to_json() for notice in said)
    data = FrameExplanation(
        source.name, image.frame, image.width, image.height, at, explanations, rows
    )
    return Explanation(data, tuple(traces), tuple(models), tuple(said))


def _telling_frame(
    model: Inferencer, frames: Sequence[Frame], known: Mapping[int, FrameMeta], floor: float
) -> Frame:
    """Run a detector on all frames; return the first, or the one with the strongest candidates."""
    best = []
    for frame in frames:
        trace = trace_frame(model, frame, known[frame.frame], floor=floor)
        scores = [item.candidates.detections.scores for item in trace.items if item.candidates]
        best.append(max((float(s.max(initial=0)) for s in scores), default=0.0))
    if best[0] >= _WEAKER * max(best):
        return frames[0]
    return frames[best.index(max(best))]


def _inside(at: Box, frame: Frame) -> bool:
    left, top, width, height = at
    across = left < frame.width and left + width >= 0
    return across and top < frame.height and top + height >= 0


def _with_findings(one: ModelExplanation, notices: Sequence[Finding]) -> ModelExplanation:
    """Add the findings of the watch; the first is the cause, where a model has no results.

    One whose changes gave nothing on the frames is no cause, and comes after the others.
    """
    findings = list(dict.fromkeys(notice for notice in notices if is_finding(notice)))
    if not findings:
        return one
    findings.sort(key=lambda finding: found_nothing(finding.data))
    file_name = (findings[0].where or one.name).rpartition("/")[2]
    first = f"{findings[0]:brief} ({file_name})"
    if one.objects or any(result.attached for result in one.results):
        verdict = f"{one.verdict}; implausible: {first}"
    elif found_nothing(findings[0].data) and ": " in one.verdict:
        verdict = one.verdict
    else:
        verdict = f"{one.verdict.partition(': ')[0]}: {first}"
    return one.changed(findings=tuple(finding.to_json() for finding in findings), verdict=verdict)
