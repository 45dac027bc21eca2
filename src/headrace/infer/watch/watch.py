"""Watch of one model: the choice of runs, the kept samples, the calls of the rules."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.types import Array, Arrays
from headrace.config.enums import NetworkType
from headrace.infer.parsers import BuiltinParser, parse_coverage_bbox
from headrace.infer.postprocess import DetectorPostprocessor
from headrace.infer.recognise.stem import read_stem
from headrace.infer.trial import Sample
from headrace.infer.watch import second_look as rules
from headrace.infer.watch.boxes import BoxWatch
from headrace.infer.watch.half import HalfWatch
from headrace.infer.watch.outputs import OutputWatch
from headrace.infer.watch.rules import MIN_FRAMES
from headrace.infer.watch.training import trained_ratio, training_findings

if TYPE_CHECKING:
    from headrace.infer.loaded_model import Model
    from headrace.infer.record import Record
    from headrace.meta import Detections, FrameMeta


_BOXES = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)
_FIRST = 8  # runs looked at one after the other; then the distance doubles
_FARTHEST = 512  # runs between two looks: a camera's night must not pass unseen
_LATE = 1024  # runs after which a second look costs less than a hundredth of what they took
_SOON = 4  # runs between two looks while boxes were seen in fewer than MIN_FRAMES of them …
_MORE = 2 * _FIRST  # … and how often it is not waited any longer than that
_SAMPLES = 6
_MAX_SAMPLE = 1 << 25  # bytes of one kept sample
_SHARE = 0.01  # of the engine's time that other images may take at the end of a run
_SILENT_S = 1.5  # that they may take in any case where nothing at all was found


class Watch:
    """Looks at runs of a model: at the first eight, then ever more rarely.

    `due` is called as runs are handed out, `look` and `boxes` as they come back, each by one thread
    at a time; `judge` by any thread.

    Args:
        model: what runs.
        record: gets the findings, each rule once.
    """

    def __init__(self, model: Model, record: Record) -> None:
        self._model: Model = weakref.proxy(model)  # which holds this watch
        self._record = record
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
        self._more, self._last, self._left = _MORE, 0, 0
        self._size = (0, 0)
        self._run_s = math.inf
        self._looked_twice = False
        self._model_read = False

    def due(self) -> bool:
        """Count a run; True if it is one to look at."""
        run, self._runs = self._runs, self._runs + 1
        if run < self._next:
            return self._due_for_boxes(run)
        self._last = run
        if run >= _FIRST:
            self._distance = min(2 * self._distance, _FARTHEST)
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

    def look(self, inputs: Arrays, outputs: Arrays, seconds: float) -> None:
        """Look at the first item of a run.

        Args:
            inputs: of the run, batch first.
            outputs: the same.
            seconds: how long the engine took for it.
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
            if self._looks <= _SAMPLES // 2 or self._looks >= _FIRST:
                self._keep(tensor, row, alone=len(inputs[self._model.input_name]) == 1)

    def _keep(self, tensor: Array, row: Arrays, *, alone: bool) -> None:
        if self._model.config.network_type not in _BOXES:
            row = {}  # nobody reads them a second time
        if tensor.nbytes + sum(data.nbytes for data in row.values()) > _MAX_SAMPLE:
            return

        # Each run has arrays of its own: what is alone in them need not be copied, unless a
        # parser may write into it.
        if not alone:
            tensor = tensor.copy()
        if not (alone and self._builtin):
            row = {name: data.copy() for name, data in row.items()}
        self._current = Sample(tensor, row)
        self._samples.append(self._current)
        while len(self._samples) > _SAMPLES:  # images in which nothing was found go first
            empty = (i for i, sample in enumerate(self._samples[:-1]) if not sample.found)
            del self._samples[next(empty, 0)]

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
            for finding in self._findings(final):
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
        if self._model_read or pre is None or cfg.onnx_file is None:
            return
        self._model_read = True

        stem = read_stem(cfg.onnx_file)
        if stem is None:
            return
        tensors = [s.tensor for s in self._samples]
        # a file that tells the range of its images needs no trial of others
        self._range_known = stem.normalises or trained_ratio(pre, stem, tensors) is not None
        yield from training_findings(
            cfg, pre, stem, self._model.labels, tensors=tensors, frame=self._size
        )

    _range_known = False

    def _second_look(self) -> Iterator[Finding]:
        samples, model = list(self._samples), self._model
        post, pre = model.postprocessor, model.preprocessor
        if model.config.network_type not in _BOXES or not samples:
            return

        assert isinstance(post, DetectorPostprocessor)
        reader = rules.Reader(model.config, model.network, post.params, post.clusterer)
        silent = not self._boxes.found
        odd = self._boxes.odd
        findings: list[Finding] = []
        source = "the parser" if model.parser is None else model.parser.source
        if silent:
            findings += rules.final_rows(reader, self._parser, samples, source)
        if not findings and (silent or (odd and self._builtin)):  # a head that reads them says most
            findings += rules.other_heads(
                reader, self._parser, samples, silent=silent, source=source
            )
        if not findings:
            findings += rules.odd_tables(reader, self._parser, samples)
        if silent and not findings:
            findings += rules.high_threshold(reader, self._parser, samples)
        if not findings and pre is not None and self._builtin:
            findings += self._other_images(reader, samples, silent)
        yield from findings

    def _other_images(self, reader: Any, samples: list[Sample], silent: bool) -> list[Finding]:
        """Run the network on changed images, as far as time allows."""
        model, pre = self._model, self._model.preprocessor
        runs, least = (10, _SILENT_S) if silent else (_SAMPLES, 0.0)
        allowed = max(least, _SHARE * self._runs * self._run_s)
        if len(model.session.inputs) > 1 or runs * self._run_s > allowed or pre is None:
            return []

        def run(tensor: Array) -> Arrays:
            return model.session.run(model.feeds(np.ascontiguousarray(tensor[None])))

        findings: list[Finding] = []
        known = {n.code for n in self._record.notices}
        try:
            if silent and not self._range_known and "input-range" not in known:
                findings += rules.other_ranges(reader, self._parser, samples, pre, run)
            if not findings and not known & {"input-colors", "input-range"}:
                findings += rules.swapped_colors(reader, self._parser, samples, pre, run)
        except HeadraceError:
            return []  # a session that is closed or has failed says nothing about the config
        return findings
