"""The search: coordinate by coordinate, with combinations, in a budget of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from time import monotonic

from headrace._core.errors import HeadraceError
from headrace.config.enums import NetworkType
from headrace.config.keys import PROPERTY_KEYS
from headrace.config.model_config import ModelConfig
from headrace.diagnose.lint.fixes import keys_of, with_keys
from headrace.diagnose.repair import usual
from headrace.diagnose.repair.candidate import Candidate, change_words
from headrace.diagnose.repair.evidence import ModelEvidence, Statement, file_evidence
from headrace.diagnose.repair.plausibility import Plausibility, TrueBox, against, plausibility
from headrace.diagnose.repair.setup_runs import SetupRun, SetupRuns
from headrace.diagnose.repair.usual import Cure
from headrace.infer.trial import Change

BEAM = 5
"""Set-ups that the search goes on from."""

MARGIN = 1.1
"""How many times as plausible a set-up must be as another that finds other objects."""

_ROUNDS = 2
_FIRM, _AGAINST = 1.02, 0.6  # factors of what the model's file speaks for, and against
_READ_FIRMLY = ("range", "colours")
_COST = 0.99  # factor of each changed key
_CUT = 0.98  # of the score: a change that brings less is left out


Progress = Callable[[int, str], None]
"""Called with how many set-ups were tried, and what is tried now."""


@dataclass(slots=True)
class Search:
    """Tries set-ups until the usual ones are tried or the time is over.

    Args:
        path: of the config.
        text: what it holds.
        base: the same with what lint mends for certain.
        runs: the frames.
        truths: boxes that the user knows.
        seconds: for the whole search.
        progress: see `Progress`.
        sure: False for a bare model that recognition has questions about.

    Attributes:
        tried: all candidates.
        left_out: candidates that there was no time for.
        evidence: what the model's file says.
    """

    path: Path
    text: bytes
    base: bytes
    runs: SetupRuns
    truths: Sequence[TrueBox] = ()
    seconds: float = 60.0
    progress: Progress | None = None
    sure: bool = True
    tried: list[Candidate] = field(default_factory=list)
    left_out: int = 0
    evidence: ModelEvidence = field(default_factory=ModelEvidence)
    _known: dict[object, Candidate] = field(default_factory=dict)
    _present: dict[str, str] = field(default_factory=dict)
    _dimensions: frozenset[str] | None = None
    _end: float = 0.0

    def run(self) -> None:
        """Search; `tried[0]` is the set-up as it is.

        Raises:
            ConfigError: the file has no key of a config, or names no model.
        """
        self._end = monotonic() + self.seconds
        self._present = keys_of(self.base)
        groups = {key.rpartition(".")[0] for key in self._present if "." in key}
        self._present |= {f"{group}.": "" for group in sorted(groups)}
        start = self._candidate({}, (), text=self.text, thorough=True)
        assert start is not None
        if start.refusal is not None and not self._present.keys() & PROPERTY_KEYS.keys():
            raise start.refusal
        if self.base != self.text:
            lint = Cure("lint", {}, "edits that lint is certain of", firm=True)
            mended = self._candidate({}, (lint,), thorough=True)
            start = start if mended is None else mended
        start = self._with_files(start)
        error = start.refusal or (start.run.error if start.run is not None else None)
        if error is not None and error.code == "no-model":  # no key makes one
            raise error
        if start.config is not None:
            self.evidence = file_evidence(start.config)
        self._look_at_engine(start)
        self._dimensions = self._suspect(start)
        if self._dimensions == frozenset():
            return
        informed = self._informed(start)
        self._try_all([start], [[cure] for cure in informed])
        self._try_all([start], self._together(informed))
        if self.sure and any(c.firm and c.change and self.quiet(c) for c in self.tried):
            return
        if self._dimensions is None:
            self._widen(start)
        doubted = self._dimensions is None or "parser" in self._dimensions
        if doubted and not any(map(self.quiet, self.tried)):
            twins = usual.parser_cures(self.evidence, start.config, twins=True)
            self._try_all([start, *self.best(2)], [[cure] for cure in twins])
        for _ in range(_ROUNDS):
            before = len(self.tried)
            if self.sure and self.quiet(self.best(1)[0]):
                return
            for candidate in self.best(BEAM):
                cures = self._cures(candidate)
                self._try_all([candidate], [[cure] for cure in cures])
            if len(self.tried) == before:
                break

    def best(self, count: int) -> list[Candidate]:
        """The candidates with the highest scores, those that find the same counting once."""
        ranked = sorted(self.tried, key=lambda c: (-c.score, len(c.change)))
        chosen: list[Candidate] = []
        for candidate in ranked:
            if len(chosen) == count:
                break
            if candidate.score > 0 or candidate is self.tried[0]:
                chosen.append(candidate)
        if not chosen or chosen[0].score <= 0:  # nothing runs: go on from each that gets further
            chosen = (chosen + [c for c in ranked if c.config is not None])[: 3 * count]
        return chosen

    def smallest(self, candidate: Candidate) -> Candidate:
        """Leave out the changes of a candidate that bring nothing."""
        current = candidate
        for keys in _units(candidate):
            if not current.change.keys() & keys:
                continue
            fewer = {name: value for name, value in current.change.items() if name not in keys}
            cures = tuple(
                Cure(o.dimension, {k: v for k, v in o.change.items() if k in fewer}, o.why, o.firm)
                for o in current.cures
                if any(k in fewer for k in o.change)
            )
            smaller = self._candidate(fewer, cures)
            if smaller is None or smaller.run is None or smaller.run.error is not None:
                continue
            enough = smaller.plausibility.score >= _CUT * current.plausibility.score
            if enough and smaller.same_boxes(current):
                current = smaller
        return current

    def likeliest(self) -> Candidate:
        """The best candidate, after a second look at it and at those that were before it."""
        while True:
            best = self.settled(self.best(1)[0])
            if not self.look_twice(best):
                return best

    def look_twice(self, candidate: Candidate) -> bool:
        """Have the watch try other readings, as at the end of a run; False if it did already."""
        run = candidate.run
        if candidate.looked_twice or run is None or run.error is not None:
            return False
        candidate.looked_twice = True
        candidate.run = self.runs.run(run.config, thorough=True, blanks=True)
        candidate.plausibility = plausibility(candidate.run, self.truths)
        return True

    def rival(self, best: Candidate) -> Candidate | None:
        """The most plausible candidate that finds other objects, each change of it needed."""
        while True:
            others = sorted(self.tried, key=lambda c: (-c.score, len(c.change)))
            other = next((c for c in others if self._rivals(c, best)), None)
            if other is None or not self.look_twice(other):
                return None if other is None else self.smallest(other)

    def _rivals(self, other: Candidate, best: Candidate) -> bool:
        """Whether a candidate finds other objects, and is not the best one with more changes."""
        if other.score <= 0 or not other.plausibility.sound or other.same_boxes(best):
            return False
        if not self.sure:  # no value of it is the user's own
            return True
        more = other.change.items() > best.change.items()
        return not more and not self.settled(other).same_boxes(best)

    def settled(self, candidate: Candidate) -> Candidate:
        """The smallest part of a candidate's changes that is nearly as plausible."""
        within = [
            c for c in self.tried
            if c.score > 0 and c.change.items() < candidate.change.items()
            and c.score * MARGIN > candidate.score and c.plausibility.sound
        ]  # fmt: skip
        smaller = min(within, key=lambda c: (len(c.change), -c.score), default=candidate)
        return self.smallest(smaller)

    def quiet(self, candidate: Candidate) -> bool:
        """Whether results are sound, and nothing speaks against them."""
        run = candidate.run
        if run is None or run.error is not None or run.losses.reasons or against(run):
            return False
        return candidate.plausibility.sound and not any(
            term.missed for term in candidate.plausibility.terms
        )

    def agrees(self, candidate: Candidate) -> bool:
        """Whether no change is against a certain statement of the model's file."""
        return all(self._agrees_with(s, candidate.change) for s in self._firmly_read())

    def _firmly_read(self) -> list[Statement]:
        return [s for s in self.evidence.statements if s.firm and s.dimension in _READ_FIRMLY]

    # --- cures --------------------------------------------------------------------------------

    def _informed(self, start: Candidate) -> list[Cure]:
        cures = [] if start.run is None else usual.finding_cures(start.run.findings)
        cures = [*usual.type_cures(start.config), *cures]
        return self._doubted([*usual.stated_cures(self.evidence), *cures])

    def _together(self, cures: Sequence[Cure]) -> list[list[Cure]]:
        """Combine cures of the model's file, then of findings: all at once, and by pairs."""
        first: dict[str, Cure] = {}
        for cure in cures:
            if cure.firm:
                first.setdefault(cure.dimension, cure)
        everything = list(first.values())
        pairs = [[a, b] for i, a in enumerate(everything) for b in everything[i + 1 :]]
        return [everything, *pairs] if len(everything) > 1 else pairs

    def _cures(self, candidate: Candidate) -> list[Cure]:
        """Each value of each dimension, for a candidate."""
        cfg, run = candidate.config, candidate.run
        labels = 0 if run is None else len(run.labels)
        dropped: list[str] = []
        if run is not None and (run.losses.reasons or not candidate.plausibility.boxes):
            counts = run.losses.dropped
            dropped = sorted(counts, key=lambda key: -sum(counts[key].values()))
        cures = [
            *([] if run is None else usual.finding_cures(run.findings)),
            *usual.stated_cures(self.evidence),
            *usual.run_cures(cfg),
            *usual.file_cures(cfg, run),
            *usual.filter_cures(self._present, dropped),
            *usual.threshold_cures(cfg),
            *usual.type_cures(cfg),
            *usual.parser_cures(self.evidence, cfg),
            *usual.class_cures(self.evidence, labels),
            *usual.range_cures(cfg),
            *usual.colour_cures(),
            *usual.cluster_cures(cfg),
            *usual.fit_cures(),
            *usual.input_cures(),
        ]
        if cfg is None:
            cures += self._without_lines()
        changed = {cure.dimension for cure in candidate.cures}
        return [o for o in self._doubted(cures) if o.dimension not in changed]

    def _doubted(self, cures: Sequence[Cure]) -> list[Cure]:
        """The cures of dimensions that may be wrong."""
        doubts = self._dimensions
        return [o for o in cures if doubts is None or o.dimension in doubts]

    def _without_lines(self) -> list[Cure]:
        """Without each key and group of a file that is refused."""
        return [
            Cure("refused", {name: None}, "a value or group that is refused")
            for name in self._present
        ]

    def _widen(self, start: Candidate) -> None:
        """Try ranges, colours and parsers with each other: alone none of them may show anything."""
        cfg = start.config
        ranges = usual.range_cures(cfg)
        colours = usual.colour_cures()[:2]
        parsers = usual.parser_cures(self.evidence, cfg)
        kind = NetworkType.DETECTOR if cfg is None else cfg.network_type
        if kind not in (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION) and (
            self.evidence.kind not in (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)
        ):
            return
        stated = {cure.dimension: cure for cure in usual.stated_cures(self.evidence)}
        none: list[Cure | None] = [None]
        firm_range = "range" in stated and stated["range"].firm
        firm_colours = "colours" in stated and stated["colours"].firm
        rows = product(
            [stated["range"], None] if firm_range else [*none, *ranges],
            [stated["colours"], None] if firm_colours else [*none, *colours],
            [*none, *parsers],
            [None, *(usual.sane_cures(self._present) if self._odd_filters(start) else [])],
        )
        combinations = [[cure for cure in row if cure is not None] for row in rows]
        self._try_all([start], [c for c in combinations if c])

    def _odd_filters(self, start: Candidate) -> bool:
        """Whether thresholds or filters may hide the objects."""
        run = start.run
        dropped = run is not None and bool(run.losses.dropped)
        return dropped or bool(usual.threshold_cures(start.config))

    def _with_files(self, start: Candidate) -> Candidate:
        """A set-up, or the first one that has other files in place of those that are lost."""
        current = start
        for _ in range(2):  # model and labels
            tried = [self._try((*current.cures, cure), thorough=True)
                     for cure in usual.file_cures(current.config, current.run)]  # fmt: skip
            further = [c for c in tried if c is not None and _gets_further(c, current)]
            current = max(further, key=lambda c: c.score, default=current)
        return current

    # --- trying ---------------------------------------------------------------------------------

    def _suspect(self, start: Candidate) -> frozenset[str] | None:
        """The dimensions in which a set-up may be wrong; None: all.

        Where results are sound, it takes a finding to doubt a dimension: a config is its user's.
        """
        run = start.run
        if not self.sure or run is None or run.error is not None or not start.plausibility.sound:
            return None
        doubts = {usual.DIMENSIONS[finding.code] for finding in against(run)}
        doubts |= {s.dimension for s in self._firmly_read() if not self._agrees_with(s, {})}
        if run.losses.reasons:
            doubts |= {"filters", "thresholds", "interval"}
        if any(term.missed for term in start.plausibility.terms):
            return None
        return frozenset(doubts)

    def _look_at_engine(self, start: Candidate) -> None:
        """Take the outputs of the engine, of whichever config it opens with."""
        bare: Change = {"infer-dims": None, "network-input-order": None, "network-mode": None}
        for change in ({}, bare):
            candidate = start if not change else self._candidate(change, (), run=False)
            if candidate is None or candidate.config is None:
                continue
            try:
                engine = self.runs.engine(candidate.config)
            except HeadraceError:
                continue
            self.evidence.layers = engine.layers
            if candidate.run is not None:
                self.evidence.network = candidate.run.network
            return

    def _try_all(
        self, candidates: Iterable[Candidate], combinations: Iterable[Sequence[Cure]]
    ) -> None:
        rows = [(c, cures) for c in candidates for cures in combinations]
        for candidate, cures in rows:
            self._try((*candidate.cures, *cures))

    def _try(self, cures: tuple[Cure, ...], *, thorough: bool = False) -> Candidate | None:
        change: dict[str, str | None] = {}
        for cure in cures:
            change |= cure.change
        return self._candidate(change, cures, thorough=thorough)

    def _candidate(
        self, change: Change, cures: tuple[Cure, ...], *, text: bytes | None = None,
        thorough: bool = False, run: bool = True,
    ) -> Candidate | None:  # fmt: skip
        """Try a change, or give the candidate that it makes if that is known already."""
        change = {key: value for key, value in change.items() if self._differs(key, value)}
        text = with_keys(self.base, change) if text is None else text
        refusal = None
        try:
            cfg: ModelConfig | None = ModelConfig.of_text(text, self.path)
        except HeadraceError as error:
            cfg, refusal = None, error
        assert refusal is not None or cfg is not None
        if not run:
            failed = Plausibility(())
            return Candidate(change, cures, text, cfg, None, failed, refusal=refusal)
        key: object = text
        if cfg is not None:
            fields = (getattr(cfg, name) for name in cfg.FIELDS)
            key = tuple(tuple(x.items()) if isinstance(x, Mapping) else x for x in fields)
        known = self._known.get(key)
        if known is not None:
            if len(change) < len(known.change):
                known.prior *= self._prior(change) / self._prior(known.change)
                known.change, known.cures, known.text = change, cures, text
            return known
        if self.tried and monotonic() > self._end:
            self.left_out += 1
            return None
        if self.progress is not None:
            self.progress(len(self.tried), change_words(change) or "the config as it is")
        if cfg is None:
            assert refusal is not None
            failed = plausibility(SetupRun(ModelConfig(), error=refusal))
            candidate = Candidate(change, cures, text, None, None, failed, refusal=refusal)
        else:
            result = self.runs.run(cfg, thorough=thorough, blanks=True)
            figures = plausibility(result, self.truths)
            prior = self._prior(change)
            prior *= _AGAINST if self._counts_otherwise(cfg) else 1.0
            candidate = Candidate(
                change, cures, text, cfg, result, figures, prior, looked_twice=thorough
            )
        self._known[key] = candidate
        self.tried.append(candidate)
        return candidate

    def _differs(self, key: str, value: str | None) -> bool:
        """Whether a value is another than that of the file; a digit more or less is none."""
        return not _alike(self._present.get(key), value)

    def _agrees_with(self, statement: Statement, change: Change) -> bool:
        """Whether the file with a change has the values that the model's file speaks for."""
        return all(
            _alike(change[key] if key in change else self._present.get(key), value)
            for key, value in statement.change.items()
        )

    def _prior(self, change: Change) -> float:
        """Weigh a change before it is tried: the file speaks for it, and it is small."""
        prior = float(_COST ** len(change))
        for statement in self.evidence.statements:
            if not statement.firm:
                continue
            agrees = self._agrees_with(statement, change)
            if agrees:
                prior *= _FIRM
            elif statement.dimension in _READ_FIRMLY:
                prior *= _AGAINST
        return prior

    def _counts_otherwise(self, cfg: ModelConfig) -> bool:
        """Whether a config has another number of classes than the model's file."""
        known = self.evidence.classes
        return 0 < known != cfg.num_detected_classes and cfg.network_type.has_class_attrs


def _units(candidate: Candidate) -> list[set[str]]:
    """The keys of a candidate, each alone; a range that is read in the model's file is one."""
    alone, units = set(candidate.change), []
    for cure in candidate.cures:
        if cure.firm and cure.dimension in _READ_FIRMLY and (keys := alone & cure.change.keys()):
            units.append(keys)
            alone -= keys
    return units + [{key} for key in candidate.change if key in alone]


def _alike(own: str | None, other: str | None) -> bool:
    """Whether two values of a key are the same; a digit more or less is no difference."""
    if own is None or other is None:
        return own is other
    try:
        return math.isclose(float(own), float(other), rel_tol=1e-4)
    except ValueError:
        return own == other


def _gets_further(candidate: Candidate, other: Candidate) -> bool:
    """Whether a candidate runs, or fails for another reason than the other."""
    errors = [None if c.run is None else c.run.error for c in (candidate, other)]
    return errors[0] is None or f"{errors[0]}" != f"{errors[1]}"
