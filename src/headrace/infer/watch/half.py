"""FP16 of a config, tried on the first images where this machine computes in FP32.

A config with `network-mode=2` runs in FP16 on the GPU that it was written for. FP32 in its place
shows no value that FP16 cannot hold.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.text import error_text
from headrace._core.threads import start_thread
from headrace._core.types import Array
from headrace.infer.model.precision import export_precision
from headrace.infer.model.source import model_source

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.loaded_model import Model

_KEPT = (0, 3, 6)  # of the first eight runs that are looked at: neighbours show the same


class HalfWatch:
    """Keeps a few inputs, and tries FP16 on them once, in a thread of its own.

    Args:
        cfg: the config of the model.
        computed: True if the run itself computes in FP16, or rounds as it does.
    """

    def __init__(self, cfg: ModelConfig, *, computed: bool) -> None:
        self._cfg = cfg
        self._end = "" if computed else "; here FP32 is computed"
        self._feeds: list[dict[str, Array]] = []
        self._thread: threading.Thread | None = None
        self._findings: list[Finding] = []
        self._told = False
        self._looks = 0

    @classmethod
    def of(cls, model: Model) -> HalfWatch | None:
        """The trial that a model's config calls for; None if it asks for no FP16, or no trial."""
        cfg = model.config
        on_gpu = model.session.device != "cpu"  # which computes in FP16 itself
        if on_gpu or cfg.fp16_simulation == "off" or export_precision(cfg)[0] != "fp16":
            return None
        if model_source(cfg) is None:
            return None
        return cls(cfg, computed=model.session.options.half == "fp16")

    @property
    def ready(self) -> bool:
        """True if the thread has ended and its findings were not asked for yet."""
        return not self._told and self._thread is not None and not self._thread.is_alive()

    @property
    def pending(self) -> bool:
        """True while the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        """Wait for the thread."""
        if self._thread is not None:
            self._thread.join()

    def look(self, model: Model, inputs: Mapping[str, Array]) -> None:
        """Keep the first item of every other run or so, as long as there are few."""
        looks, self._looks = self._looks, self._looks + 1
        if looks not in _KEPT or self._thread is not None or self._told:
            return
        items = model.session.fixed_batch or 1
        first = {name: data[:1] for name, data in inputs.items()}
        rows = {name: np.repeat(data, items, axis=0) for name, data in first.items()}
        try:
            feeds = model.filled(rows, items)
            declared = {spec.name: spec.dtype for spec in model.session.inputs}
            self._feeds.append({n: np.asarray(a, declared[n]) for n, a in feeds.items()})
        except (KeyError, TypeError, ValueError):  # a tensor that stays on a device
            self._told = True

    def start(self) -> None:
        """Begin in a thread: the run goes on meanwhile."""
        if self._thread is None and self._feeds and not self._told:
            self._thread = start_thread(
                self._try, name="headrace-fp16-check", failed=self._not_tried
            )

    def findings(self, *, final: bool) -> Iterator[Finding]:
        """Yield the findings of the trial once; with `final` it is waited for."""
        if self._told:
            return
        if final:
            self.start()
            if self._thread is not None:
                self._thread.join()
        if self._thread is None or self._thread.is_alive():
            return
        self._told = True
        yield from self._findings

    def _try(self) -> None:
        from headrace.infer.watch import half_trial  # it brings onnx

        feeds, self._feeds = self._feeds, []
        self._findings = list(
            half_trial.half_findings(half_trial.try_half(self._cfg, feeds), end=self._end)
        )

    def _not_tried(self, error: Exception) -> None:
        reason = f"{error:brief}" if isinstance(error, HeadraceError) else error_text(error)
        text = f"FP16 is not tried on the images: {reason}"
        self._findings = [Finding("fp16-not-tried", "info", text, "network-mode")]
