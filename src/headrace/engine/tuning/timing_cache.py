"""Keep the results of tuning, so that the next build of the same model measures nothing.

One small JSON file per question: model, shapes, objective, precision, machine, versions of the
runtimes. Anything else that could change the answer is a different question.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from headrace._core.files import sha256_of, write_atomically
from headrace._core.json_record import JsonRecord, RecordError, Seconds
from headrace.engine.plan_header import TacticRecord

VERSION = "2"  # of what is measured, and how: raised when old times do not compare any more
_MAX_BYTES = 1 << 20


class TimingEntry(JsonRecord, frozen=True, kw_only=True):
    """One tuning.

    Attributes:
        question: what was asked, for people.
        tactics: all tries; one of them is chosen.
        spent_s: time it took.
        complete: every candidate was tried; otherwise a larger budget may find a better one.
        budget_s: the time it was given.
        foreign: share of the cores that other programs used meanwhile.
    """

    question: dict[str, str]
    tactics: Annotated[tuple[TacticRecord, ...], Meta(min_length=1, max_length=1000)]
    spent_s: Seconds
    budget_s: Seconds
    complete: bool
    foreign: Annotated[float, Meta(ge=0, le=1)] = 0.0


def default_folder() -> Path:
    """`$HEADRACE_TIMING_CACHE`, else `headrace/timings` in the user's cache folder (XDG)."""
    if named := os.environ.get("HEADRACE_TIMING_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "headrace" / "timings"


class TimingCache:
    """A folder of answers. Failing to read or write one is never an error: it is measured again."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def path(self, asked: Mapping[str, str]) -> Path:
        """The file that answers."""
        text = json.dumps(asked, sort_keys=True).encode()
        return self.folder / f"{sha256_of(text)[:32]}.json"

    def get(self, asked: Mapping[str, str], *, budget_s: float) -> TimingEntry | None:
        """The answer, if there is a whole one, or one that was given as much time."""
        try:
            with open(self.path(asked), "rb") as file:
                data = file.read(_MAX_BYTES + 1)
            entry = TimingEntry.from_json(data)
        except (OSError, RecordError):
            return None
        if entry.question != dict(asked) or sum(t.chosen for t in entry.tactics) != 1:
            return None
        return entry if entry.complete or entry.budget_s >= budget_s else None

    def put(self, entry: TimingEntry) -> None:
        """Keep an answer, whole or not at all."""
        path = self.path(entry.question)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, [msgspec.json.format(entry.to_json(), indent=1)])
