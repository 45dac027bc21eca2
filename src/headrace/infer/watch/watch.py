"""Watch of one model: the choice of runs, the kept samples, the calls of the rules."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.types import Array, Arrays
from headrace.config.enums import NetworkType
from headrace.infer.parsers import BuiltinParser, parse_coverage_bbox
from headrace.infer.postprocess import DetectorPostprocessor
from headrace.infer.recognise.stem import read_stem
from headrace.infer.record import found_nothing, was_tried
from headrace.infer.trial import (
    Budget,
    ConfigTrials,
    Sample,
    advised,
    better,
    calmer,
    in_range,
    network_of,
    plain,
    readers,
    some,
    tried,
    tried_changes,
)
from headrace.infer.trial.advice import Fits
from headrace.infer.trial.samples import PackedInput, packed
from headrace.infer.watch import second_look as rules
from headrace.infer.watch.boxes import BoxWatch
from headrace.infer.watch.half import HalfWatch
from headrace.infer.watch.outputs import OutputWatch
from headrace.infer.watch.rules import MIN_FRAMES, OF_CROWDS, OF_PARSERS, is_finding
from headrace.infer.watch.training import trained_ratio, training_findings

if TYPE_CHECKING:
    from headrace.infer.items import Items
    from headrace.infer.loaded_model import Model
    from headrace.infer.preprocess import Preprocessor
    from headrace.infer.record import Record
    from headrace.infer.run_options import RunOptions
    from headrace.meta import Detections, FrameMeta


_BOXES = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)
_FIRST = 8  # runs looked at one after the other; then the distance doubles
_FARTHEST = 512  # runs between two looks: a camera's night must not pass unseen …
_SILENT = 8  # … and, while nothing was found, no short scene of a video, up to run _LATE
_POINTS = 1024  # values of an input by which it is held against those before it
_LATE = 1024  # runs after which a second look costs less than a hundredth of what they took
_SOON = 4  # runs between two looks while boxes were seen in fewer than MIN_FRAMES of them …
_MORE = 2 * _FIRST  # … and how often it is not waited any longer than that
_SAMPLES = 6
_MAX_SAMPLE = 1 << 25  # bytes of one kept sample
_SHARE = 0.01  # of the engine's time that other images may take at the end of a run
_SILENT_S = 1.5  # that trials at a run's end may take in any case
_BETWEEN_S = 0.5  # and those in the middle of a run that has something to advise


class Watch:
    """Looks at runs of a model: at the first eight, then ever more rarely.

    `due` is called as runs are handed out, `look` and `boxes` as they come back, each by one thread
    at a time; `judge` by any thread.

    Args:
        model: what runs.
        record: gets the findings, each rule once.
        options: of the run.
    """

    def __init__(self, model: Model, record: Record, options: RunOptions | None = None) -> None:
        self._model: Model = weakref.proxy(model)  # which holds this watch
        self._record, self._options = record, options
        choice, cfg = model.parser, model.config
        parser = None if choice is None else choice.parser
        self._parser = parser
        self._builtin = isinstance(parser, BuiltinParser) or parser is parse_coverage_bbox
        own = choice is not None and choice.library is not None
        self._boxes = BoxWatch(cfg, model.network, own, model.labels.detector)
        plain = choice is not None and parser is None
        self._outputs = OutputWatch(cfg, model.labels, plain)
        self._half = HalfWatch.of(model)
        self._lock = threading.Lock()
        self._runs = self._next = 0
        self._distance = 1
        self._looks = 0
        self._samples: list[Sample] = []
        self._current: Sample | None = None
        self._ground: Array | None = None
        self._more, self._last, self._left = _MORE, 0, 0
        self._size = (0, 0)
        self._run_s = math.inf
        self._looked_twice = False
        self._training: list[Finding] | None = None
        self._range_known = False
        self._trials: ConfigTrials | None = None

    def due(self) -> bool:
        """Count a run; True if it is one to look at."""
        run, self._runs = self._runs, self._runs + 1
        if run < self._next:
            return self._due_for_boxes(run)
        self._last = run
        if run >= _FIRST:
            farthest = _FARTHEST if self._boxes.found or run >= _LATE else _SILENT
            self._distance = min(2 * self._distance, farthest)
        self._next = run + self._distance
        if run + 1 == _FIRST:
            self._distance = _FIRST // 2
            self._next = 2 * _FIRST
        return True

    def _due_for_boxes(self, run: int) -> bool:
        """Whether boxes have come since the last look, of which too few were seen so far."""
        post = self._model.postprocessor
        if not self._more or self._boxes.found >= MIN_FRAMES or run - self._last < _SOON:
            return False
        if not isinstance(post, DetectorPostprocessor) or post.left == self._left:
            return False
        self._more, self._last, self._left = self._more - 1, run, post.left
        return True

    def look(self, inputs: Arrays, outputs: Arrays, seconds: float, items: Items) -> None:
        """Look at the first item of a run.

        Args:
            inputs: of the run, batch first.
            outputs: the same.
            seconds: how long the engine took for it.
            items: of the run.
        """
        tensor = inputs[self._model.input_name][0]
        row = {name: data[0] for name, data in outputs.items()}
        with self._lock, np.errstate(all="ignore"):
            self._looks += 1
            self._current = None
            self._run_s = min(self._run_s, seconds)  # the first ones warm up
            self._outputs.look(tensor, row)
            if self._half is not None:
                self._half.look(self._model, inputs)
            self._keep(tensor, row, items)

    def _keep(self, tensor: Array, row: Arrays, items: Items) -> None:
        alone = len(items) == 1
        boxes = self._model.config.network_type in _BOXES
        size = tensor.nbytes + sum(data.nbytes for data in row.values())
        if size > (_MAX_SAMPLE if boxes else _MAX_SAMPLE // 4):
            return

        # Each run has arrays of its own: what is alone in them need not be copied, unless a
        # parser may write into it.
        pre = self._model.preprocessor
        kept: Array | PackedInput | None = None if pre is None else packed(tensor, pre)
        if kept is None:
            kept = tensor if alone else tensor.copy()
        if not (alone and self._builtin):
            row = {name: data.copy() for name, data in row.items()}
        meta = items.metas[0]
        transform = items.transform(0) if items.valid()[0] else None
        shown = meta.width, meta.height
        news = self._news(tensor)
        self._current = Sample(kept, row, transform=transform, size=shown, news=news)
        self._samples.append(self._current)
        if len(self._samples) > _SAMPLES:  # images in which nothing was found, or is new, go first
            least = min(self._samples[:-1], key=lambda s: (s.found, 0.0 if s.found else s.news))
            self._samples = [sample for sample in self._samples if sample is not least]

    def _news(self, tensor: Array) -> float:
        """The difference of an input from the mean of those before it."""
        points = tensor.reshape(-1)[:: max(1, tensor.size // _POINTS)].astype(np.float32)
        if self._ground is None or self._ground.shape != points.shape:
            self._ground = points.copy()
        news = float(np.abs(points - self._ground).mean())
        self._ground += (points - self._ground) / self._looks
        return news

    def boxes(self, parsed: Detections, kept: Detections, attached: int, meta: FrameMeta) -> None:
        """Look at the boxes of the same item, see `BoxWatch.look`."""
        with self._lock, np.errstate(all="ignore"):
            self._size = meta.width, meta.height
            if self._current is not None:
                self._current.found = bool(len(kept))
            self._boxes.look(parsed, kept, attached, meta)

    def after_run(self) -> None:
        """Judge at the places where a run that goes on shall tell."""
        if self._looks == _FIRST:
            if self._half is not None:
                self._half.start()
            self.judge()
        elif self._half is not None and self._half.ready:
            self.judge()
        elif self._runs >= _LATE and not self._looked_twice:
            self.judge(final=True)

    def close(self) -> None:
        """Wait for trials that are under way."""
        if self._half is not None:
            self._half.close()

    def judge(self, *, final: bool = False) -> None:
        """Ask the rules; their findings join the record's notices.

        Args:
            final: the run has ended, or is long enough for a second look.
        """
        with self._lock, np.errstate(all="ignore"):
            if not self._looks:
                return
            self._trials = None
            for finding in self._findings(final):
                self._tell(self._tried(finding, final))
            for notices in (self._model.notices, self._record.notices):
                self._try_again(notices, final)
            self._trials = None

    def _try_again(self, notices: list[Finding], final: bool) -> None:
        """Try advice that was given before there were frames."""
        trials = self._at_hand(final)
        for index, notice in enumerate(notices if trials is not None else ()):
            known = is_finding(notice) or was_tried(notice.data)
            if final and trials is not None and found_nothing(notice.data):
                notices[index] = self._with_trials(notice, trials)
            elif trials is not None and tried_changes(notice) and not known:
                if "advised" not in notice.data:  # of a parser, which knows no trials
                    notice = advised(notice, tried_changes(notice))
                crowded = notice.code in OF_CROWDS
                notices[index] = tried(notice, trials, calmer if crowded else plain)

    def _tell(self, finding: Finding) -> None:
        key, cfg = (finding.where or "").replace("-", "_"), self._model.config
        where = cfg.where(key) if key and hasattr(cfg, key) else str(cfg.path)
        self._record.find(finding.changed(where=where))

    def _findings(self, final: bool) -> Iterator[Finding]:
        if self._half is not None:
            yield from self._half.findings(final=final)
        if self._model.parser is None:  # nothing is parsed here
            yield from self._of_outputs(final)
            return
        if final or self._looks >= MIN_FRAMES:
            yield from self._of_training()
        yield from self._boxes.findings(final=final)
        yield from self._of_outputs(final)
        if final and not self._looked_twice:
            self._looked_twice = True
            yield from self._second_look()
            self._samples.clear()

    def _of_outputs(self, final: bool) -> Iterator[Finding]:
        for finding in self._outputs.findings(final=final):
            explained = any(n.code == "fp16-overflow" for n in self._record.notices)
            pending = self._half is not None and self._half.pending
            if finding.code != "outputs-not-finite" or not (explained or pending):
                yield finding

    def _of_training(self) -> Iterator[Finding]:
        cfg, pre = self._model.config, self._model.preprocessor
        if pre is None or cfg.onnx_file is None:
            return
        if self._training is None:
            stem = read_stem(cfg.onnx_file)
            self._training = []
            if stem is not None:
                # a file that tells the range of its images needs no trial of others
                ratio = trained_ratio(pre, stem, self._samples)
                self._range_known = stem.normalises or ratio is not None
                self._training += training_findings(
                    cfg,
                    pre,
                    stem,
                    self._model.labels,
                    samples=self._samples,
                    frame=self._size,
                    outputs=self._model.session.outputs,
                )
        yield from self._training

    def _tried(self, finding: Finding, final: bool) -> Finding:
        """Try the changes that a finding recommends, once, on the kept samples."""
        trials = self._at_hand(final)
        if trials is None or any(
            n.code == finding.code and was_tried(n.data) for n in self._record.notices
        ):
            return finding
        if finding.code in OF_PARSERS and "advice" not in finding.data:
            if others := readers(trials):
                finding = advised(finding, [outcome.change for outcome in others])
            return tried(finding, trials, plain)
        return finding if was_tried(finding.data) else self._with_trials(finding, trials)

    def _with_trials(self, finding: Finding, trials: ConfigTrials) -> Finding:
        """Try the changes of a finding by the measure of its rule."""
        fits: Fits = calmer if finding.code in OF_CROWDS else better
        if finding.code in OF_PARSERS:
            fits = plain
        if finding.code == "input-range":
            return tried(finding, trials, plain, in_range(trials))
        if finding.code == "threshold-above-all":
            fits = some
        return tried(finding, trials, fits)

    def _at_hand(self, final: bool) -> ConfigTrials | None:
        """Trials on the kept samples; None without any."""
        model = self._model
        if self._trials is None and self._samples:
            least = _SILENT_S if final else _BETWEEN_S
            budget = Budget(max(least, _SHARE * self._runs * self._run_s), self._run_s)
            further = {spec.name for spec in model.session.inputs[1:]}
            self._trials = ConfigTrials(
                model.config,
                model.network,
                model.labels,
                self._samples,
                run=network_of(model) if further <= set(model.extra_inputs) else None,
                choice=model.parser,
                options=self._options,
                budget=budget,
            )
        return self._trials

    def _second_look(self) -> Iterator[Finding]:
        model, trials = self._model, self._at_hand(True)
        pre = model.preprocessor
        if model.config.network_type not in _BOXES or trials is None:
            return
        if self._record.worker_died:  # it is not called again to find out more
            return
        silent = not self._boxes.found
        odd = self._boxes.odd
        findings: list[Finding] = []
        source = "the parser" if model.parser is None else model.parser.source
        findings += rules.selected_rows(trials, self._parser)
        findings += rules.other_logits(trials, self._parser)
        if silent and not findings:
            findings += rules.final_rows(trials, self._parser, source)
        if not findings and (silent or (odd and self._builtin)):  # a head that reads them says most
            findings += rules.other_heads(trials, self._parser, silent=silent, source=source)
        if not findings:
            findings += rules.odd_tables(trials, self._parser)
        if silent and not findings:
            findings += rules.high_threshold(trials, self._parser)
        if not findings and pre is not None and self._builtin:
            findings += self._other_images(trials, pre, silent)
        yield from findings

    def _other_images(self, trials: ConfigTrials, pre: Preprocessor, silent: bool) -> list[Finding]:
        """Run the network on changed images, as far as time allows."""
        if trials.run is None:
            return []
        findings: list[Finding] = []
        known = {n.code for n in self._record.notices}
        allowed = trials.budget.left_s if silent else _SHARE * self._runs * self._run_s
        if (10 if silent else _SAMPLES) * self._run_s > allowed:
            return []
        try:
            if silent and not self._range_known and "input-range" not in known:
                findings += rules.other_range(trials, pre)
            if not findings and not known & {"input-colors", "input-range"}:
                findings += rules.swapped_colors(trials, pre)
        except HeadraceError:
            return []  # a session that is closed or has failed says nothing about the config
        return findings
