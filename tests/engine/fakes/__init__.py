"""Runtimes that misbehave: ONNX Runtime, with something done at each run."""

from __future__ import annotations

from headrace.engine.backends import RunnerOptions
from headrace.engine.backends.onnxruntime import OnnxRuntimeRunner


class FakeBackend:
    """`before` is called before each run, `after` with its outputs, `opening` while loading."""

    def __init__(self, name, *, before=None, after=None, opening=None, version="1"):
        self.name = name
        self._version = version
        self._before, self._after, self._opening = before, after, opening

    def version(self):
        return self._version

    def why_not(self):
        return None

    def open(self, model, options: RunnerOptions):
        if self._opening is not None:
            self._opening()
        runner = OnnxRuntimeRunner(model, RunnerOptions(threads=1))
        run = runner.run

        def misbehave(feeds, *, to_host=True):
            if self._before is not None:
                self._before()
            outputs = run(feeds)
            return outputs if self._after is None else self._after(outputs)

        runner.run = misbehave
        return runner
