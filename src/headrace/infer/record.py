"""Record of an inferencer: times, counts, notices."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import field

from headrace._core import _native
from headrace._core.errors import ParserError
from headrace._core.findings import Data, Finding
from headrace._core.notices import note_once
from headrace._core.plain_record import PlainRecord
from headrace.infer.tally import Tally
from headrace.meta import FrameMeta

if TYPE_CHECKING:
    from headrace.config import ModelConfig

_MAX_PARSE_ERRORS = (
    5  # different ones that become notices; a message may hold a value of each frame
)


class StageTimes(PlainRecord):
    """Seconds spent in each stage so far; the engine's own time is `infer_s`."""

    select_s: float = 0.0
    preprocess_s: float = 0.0
    infer_s: float = 0.0
    parse_s: float = 0.0
    cluster_s: float = 0.0
    attach_s: float = 0.0


class Record(PlainRecord):
    """Shared by the parts of one inferencer; each field is written by one thread at a time.

    Attributes:
        times: seconds per stage; engine threads add to it under `lock`.
        notices: decisions and damage so far.
        inferred_items: frames, objects or regions that went through the engine.
        completed_items: those among them that are not under way: outputs were read, or failed.
        failed_items: those among them whose outputs the parser could not read.
        worker_died: whether the parser's worker process ended in one of them.
        results: how many results came out of each step: boxes `parsed`, `clustered`, `attached`;
            items `labelled`; `class_maps`; at the frame's edges boxes `edge_dropped` and
            `edge_shifted`. Items that did not come out of the engine: `crashed`
            (a plugin ended its worker process), `no_memory`.
        tally: what was left out on the way, and by what.
        stop: asked for when the run ends: what takes long is given up.
    """

    times: StageTimes = field(default_factory=StageTimes)
    notices: list[Finding] = field(default_factory=list)
    inferred_items: int = 0
    completed_items: int = 0
    failed_items: int = 0
    worker_died: bool = False
    results: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    stop: _native.Stop = field(default_factory=_native.Stop)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _parse_errors: set[str] = field(default_factory=set)

    def successor(self) -> Record:
        """A record that goes on with these counts, of a model that is opened anew."""
        return Record(
            times=replace(self.times),
            notices=list(self.notices),
            inferred_items=self.inferred_items,
            completed_items=self.completed_items,
            failed_items=self.failed_items,
            results=Counter(self.results),
        )

    def parser_failed(self, error: ParserError, meta: FrameMeta, component_id: int) -> None:
        """A parser that fails costs the item its results, never the stream. Source: spec D.6."""
        self.failed_items += 1
        meta.note_failure(component_id)
        self.worker_died |= error.ended_worker
        error.in_frame(meta.source, meta.frame)
        text, same = str(error), error.same
        if len(self._parse_errors) < _MAX_PARSE_ERRORS and same not in self._parse_errors:
            self._parse_errors.add(same)
            text += f"\n  first in frame {meta.frame} of {meta.source}"
            text += "; what cannot be parsed has no results"
            advice = {key: error.data[key] for key in ("advice",) if key in error.data}
            note_once(self.notices, Finding("parser-failed", "warning", text, data=advice))

    def outputs_unread(self, cfg: ModelConfig) -> None:
        """Warn that a model has no parser, and that its outputs are not attached."""
        text = "network-type=100 without output-tensor-meta=1: nobody reads the outputs, nothing is"
        text += " found; set output-tensor-meta=1 to attach them, or the network-type whose parser"
        self.warn("outputs-unread", f"{text} reads them", str(cfg.origin("network_type")))

    def find(self, finding: Finding) -> None:
        """Keep the first finding of a code of the watch; one that was tried replaces it."""
        for index, notice in enumerate(self.notices):
            if notice.code == finding.code:
                if was_tried(finding.data) and not was_tried(notice.data):
                    self.notices[index] = finding
                return
        self.notices.append(finding)

    def keep(self, notices: Iterable[Finding]) -> None:
        """Take over the notices of a model that is replaced."""
        self.notices[:] = self.notices_with(list(notices))

    def notices_with(self, of_model: list[Finding]) -> list[Finding]:
        """Those of the present model and these; a count of the same thing is the present one."""
        present = {(n.code, n.where) for n in of_model if n.code == "worker-died"}
        return [*of_model, *(n for n in self.notices if (n.code, n.where) not in present)]

    def warn(self, code: str, text: str, where: str | None = None) -> None:
        """Say something once."""
        note_once(self.notices, Finding(code, "warning", text, where))


def was_tried(data: Data) -> bool:
    """Whether the changes that a finding recommends were tried; see `headrace.infer.trial`."""
    rows = data.get("advice", ())
    return bool(rows) and any("frames" in row or row.get("refused") for row in rows)


def found_nothing(data: Data) -> bool:
    """Whether changes were tried, and none gave anything: the frames may have been empty."""
    rows = [row for row in data.get("advice", ()) if "frames" in row]
    return bool(rows) and not any(row.get("found_in") for row in rows)
