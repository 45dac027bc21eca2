"""`repair`: the set-up that a config was meant to be, found by trying."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ConfigError
from headrace._core.files import os_errors, refuse_link, write_atomically
from headrace._core.formats.archives import is_bare_model
from headrace._core.json_record import finite_data
from headrace.config.keys import PROPERTY_KEYS
from headrace.config.reading import read_bytes
from headrace.config.server_config import is_server_config
from headrace.config.values import Kind
from headrace.diagnose.lint.fixes import FileFix, fixes_for, keys_of, with_keys
from headrace.diagnose.lint.linting import Linter
from headrace.diagnose.repair.candidate import Candidate, text_change
from headrace.diagnose.repair.decision import Outcome, verdict
from headrace.diagnose.repair.evidence import bare_text
from headrace.diagnose.repair.plausibility import TrueBox
from headrace.diagnose.repair.search import Progress, Search
from headrace.diagnose.repair.setup_runs import SetupRuns
from headrace.media.frame import Frame
from headrace.media.frame_choice import frames_for_trials

if TYPE_CHECKING:
    from headrace.infer.run_options import RunOptions

SHOWN = 3
"""Set-ups that are shown side by side."""

_PATHS = (Kind.PATH, Kind.PATHS)


@dataclass(frozen=True, slots=True, eq=False)
class Repair:
    """The result of a search.

    Attributes:
        path: of the config.
        outcome: `nothing` to repair, a set-up is `chosen`, or it stays `undecided`.
        reason: why, in words.
        start: the config as it is.
        best: the likeliest set-up; `start` where there is nothing to repair.
        shown: up to three of the likeliest, which find different objects; `best` first.
        tried: how many set-ups were tried, `left_out` how many there was no time for.
        engine_runs: of all of them.
        frames: on which they were tried.
        truths: boxes that the user gave.
    """

    path: Path
    outcome: Outcome
    reason: str
    start: Candidate
    best: Candidate
    shown: tuple[Candidate, ...]
    tried: int
    left_out: int
    engine_runs: int
    frames: tuple[Frame, ...]
    truths: tuple[TrueBox, ...] = ()

    def fix(self, candidate: Candidate | None = None) -> FileFix:
        """The edits that make the config a candidate, `best` if none is named."""
        return FileFix(self.path, self.start.text, (candidate or self.best).text, {})

    def write(
        self, out: str | PathLike[str] | None = None, candidate: Candidate | None = None
    ) -> Path:
        """Write a candidate, `best` if none is named: over the config, or as a new file.

        Args:
            out: a file that is not there yet; None edits the config.
            candidate: one of those that are shown.

        Raises:
            ConfigError: the file cannot be written, or is there already; the config changed
                meanwhile; a model without a config is given, and no new file.
        """
        candidate = candidate or self.best
        if out is None:
            if is_bare_model(self.path):
                raise ConfigError("a model is no config.", where=str(self.path), fix="-o FILE")
            self.fix(candidate).write()
            return self.path
        path = Path(out)
        if path.exists():
            raise ConfigError("the file exists.", where=str(path), expected="a new file")
        data = moved(candidate.text, self.path.parent, path.absolute().parent)
        with os_errors(ConfigError, "it cannot be written", path):
            refuse_link(path)  # also one that leads nowhere, which does not exist
            write_atomically(path, [data])
        return path

    def to_dict(self) -> dict[str, Any]:
        """The search as JSON data."""
        return {
            "config": str(self.path),
            "outcome": self.outcome,
            "reason": self.reason,
            "change": text_change(self.start.text, self.best.text)
            if self.outcome == "chosen"
            else {},
            "diff": self.fix().diff if self.outcome == "chosen" else "",
            "tried": self.tried,
            "left_out": self.left_out,
            "engine_runs": self.engine_runs,
            "frames": [frame.frame for frame in self.frames],
            "start": self._row(self.start),
            "candidates": [self._row(candidate) for candidate in self.shown],
        }

    def to_json(self) -> str:
        """The search as a JSON document."""
        return json.dumps(finite_data(self.to_dict()), indent=2, allow_nan=False)

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        refusal = candidate.refusal or (candidate.run.error if candidate.run else None)
        return {
            "change": text_change(self.start.text, candidate.text),
            "why": [cure.why for cure in candidate.cures],
            "diff": self.fix(candidate).diff,
            "prior": round(candidate.prior, 4),
            **candidate.plausibility.to_dict(),
            "score": round(candidate.score, 4),
            "findings": [f.to_json() for f in candidate.run.findings] if candidate.run else [],
            "error": None if refusal is None else f"{refusal:brief}",
        }

    def __repr__(self) -> str:
        return f"Repair({self.path.name}: {self.outcome}: {self.reason})"


def repair(
    config: str | PathLike[str],
    source: object,
    *,
    boxes: Iterable[TrueBox] = (),
    frames: int = 8,
    seconds: float = 60.0,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Repair:
    """Search the usual mistakes of a config for the set-up with the most plausible results.

        found = headrace.repair("pgie.txt", "street.mp4")
        if found.outcome == "chosen":
            found.write(Path("repaired.txt"))

    Nothing is written.

    Args:
        config: of a primary model, or a bare model.
        source: a video, an image, a folder of images, or an opened source.
        boxes: true boxes, which decide where they are given.
        frames: on how many frames set-ups are tried.
        seconds: for the search; what there is no time for is counted.
        options: of the run.
        progress: called with how many set-ups were tried, and what is tried now.

    Raises:
        ConfigError: the config cannot be read, or is none.
        MediaError: the source cannot be read, has no frames, or not the frame of a box.
    """
    path, truths = Path(config), tuple(boxes)
    images, moving = frames_for_trials(source, frames, [truth.frame for truth in truths])
    text, sure = _text_of(path)
    with SetupRuns(images, options, moving=moving) as runs:
        search = Search(path, text, _mended(path, text), runs, truths, seconds, progress, sure=sure)
        search.run()
        return _decided(search)


def moved(data: bytes, old: Path, new: Path) -> bytes:
    """The text of a config for another folder: paths in it lead to the same files."""
    changes: dict[str, str | None] = {}
    if old.absolute() == new.absolute():
        return data
    for name, value in keys_of(data).items():
        key = PROPERTY_KEYS.get(name)
        if key is None or key.kind not in _PATHS or not value:
            continue
        parts = value.split(";")
        moved_parts = [
            part if not part or Path(part).is_absolute()
            else os.path.relpath(old.absolute() / part, new.absolute())
            for part in parts
        ]  # fmt: skip
        changes[name] = ";".join(moved_parts)
    return with_keys(data, changes)


def _text_of(path: Path) -> tuple[bytes, bool]:
    """The text of a config, or of the one that recognition makes, and whether it is sure.

    Raises:
        ConfigError: the file is of nvinferserver, whose form has no keys to change.
    """
    if is_bare_model(path):
        return bare_text(path)
    text = read_bytes(path)
    if is_server_config(text):
        raise ConfigError(
            "this is a config of nvinferserver: repair changes keys of nvinfer's configs",
            where=str(path),
            expected="an nvinfer config, or a bare model",
            fix=["headrace explain tells why its frames have no boxes",
                 "give the model of its repository, whose images and head are searched"],
            code="foreign-file",
        )  # fmt: skip
    return text, True


def _mended(path: Path, text: bytes) -> bytes:
    """The text with the edits that lint is certain of, for errors and warnings."""
    if is_bare_model(path):
        return text
    report = Linter().lint([path])
    findings = [finding for finding in report.findings if finding.severity != "note"]
    own = (fix for fix in fixes_for(findings) if fix.path.absolute() == path.absolute())
    return next((fix.after for fix in own if fix.before == text), text)


# --- the decision ---------------------------------------------------------------------------------


def _decided(search: Search) -> Repair:
    start = search.tried[0]
    best = search.likeliest()
    outcome, reason = verdict(search, start, best)
    if outcome == "nothing":
        best = start
    return Repair(
        search.path,
        outcome,
        reason,
        start,
        best,
        tuple(_different(search, best)),
        len(search.tried),
        search.left_out,
        search.runs.engine_runs,
        search.runs.frames,
        tuple(search.truths),
    )


def _different(search: Search, best: Candidate) -> Iterator[Candidate]:
    """The best candidates that find different objects, each as small as it can be."""
    shown = [best]
    yield best
    ranked = sorted(search.tried, key=lambda c: (-c.score, len(c.change)))
    for candidate in ranked:
        if len(shown) == SHOWN:
            return
        ran = candidate.run is not None and candidate.run.error is None
        if ran and not any(candidate.same_boxes(other) for other in shown):
            small = search.smallest(candidate)
            shown.append(small)
            yield small
