"""Health of the models of a service: answers, results, and the action where they stay away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.text import error_text, shortened
from headrace._core.threads import start_thread
from headrace.pipeline.care import PATIENCE_S

if TYPE_CHECKING:
    from headrace.pipeline.pipeline import Pipeline
    from headrace.pipeline.segment import Segment

Action = Literal["keep", "restart", "exit"]
ANSWERS_S = 30.0
_SHOWN = 200  # of a warning
_LONGEST_S = 600.0  # between two restarts


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of one model.

    Attributes:
        index: among the models of the pipeline.
        name: of the stage.
        state: `waiting` (it got no frame yet), `ready` or `not-ready`.
        reason: why it is not ready; empty otherwise.
        unanswered_s: how long items have waited for an answer; None: none waits.
        empty_s: how long answers have held no results; None: the latest one held some.
        passed: frames that went on without its results.
        failures: batches that failed.
        restarts: how often it was opened anew.
        error: the latest failure; empty without one.
    """

    index: int
    name: str
    state: Literal["waiting", "ready", "not-ready"]
    reason: str
    unanswered_s: float | None
    empty_s: float | None
    passed: int
    failures: int
    restarts: int
    error: str


@dataclass(slots=True)
class _Watched:
    """Memory of one model."""

    times: int = 0  # that it was not ready
    not_ready: bool = False
    restart_at: float = 0.0
    wait_s: float = 0.0
    restarting: bool = False


@dataclass
class Health:
    """Watches the models of a running pipeline; `look` is called every half second.

    Attributes:
        pipeline: made with `keep_open`.
        answers_s: a model that answers nothing for so long while items wait is not ready; 0: never.
        results_s: the same of a model that answers, and finds nothing; 0: never.
        action: what is done then.
        leave: ends the service, for the action `exit`.
        left: name of the model that ended the service; empty otherwise.
    """

    pipeline: Pipeline
    answers_s: float = ANSWERS_S
    results_s: float = 0.0
    action: Action = "keep"
    leave: Callable[[], None] = lambda: None
    left: str = ""
    _watched: dict[int, _Watched] = field(default_factory=dict)

    @property
    def models(self) -> list[ModelState]:
        """The state of each model."""
        return [self._state(i, s) for i, s in enumerate(self.pipeline.model_segments)]

    @property
    def reasons(self) -> list[str]:
        """Why the service is not ready; empty where it is."""
        if self.pipeline.state != "running":
            return [f"the pipeline is {self.pipeline.state}"]
        return [f"{m.name}: {m.reason}" for m in self.models if m.state == "not-ready"]

    def _state(self, index: int, segment: Segment) -> ModelState:
        stage, care = segment.stage, segment.care
        name = "" if stage is None else str(stage.name)
        if care is None:
            return ModelState(index, name, "ready", "", None, None, 0, 0, 0, "")
        now = monotonic()
        since, empty_since = care.unanswered_since, care.empty_since
        waits_s = None if since is None else now - since
        empty_s = None if empty_since is None else now - empty_since
        reason = ""
        if self.answers_s and waits_s is not None and waits_s >= self.answers_s:
            why = f" ({care.last_error})" if care.last_error else _last_warning(stage)
            reason = f"it has answered nothing for {waits_s:.0f} s{why}"
        elif self.results_s and empty_s is not None and empty_s >= self.results_s:
            reason = f"it has found nothing for {empty_s:.0f} s{_last_warning(stage)}"
        waiting = stage is not None and not stage.inferred_items and waits_s is None
        state: Any = "not-ready" if reason else "waiting" if waiting else "ready"
        return ModelState(
            index, name, state, reason, waits_s, empty_s, care.passed, care.failures,
            care.restarts, care.last_error,
        )  # fmt: skip

    def look(self) -> None:
        """Note the models that are not ready any more, or again, and act."""
        if self.pipeline.state != "running":
            return
        for segment in self.pipeline.model_segments:
            if segment.care is not None and self.answers_s:
                segment.care.most_s = min(PATIENCE_S, self.answers_s)
        for model in self.models:
            watched = self._watched.setdefault(model.index, _Watched())
            if model.state != "not-ready":
                if watched.not_ready:
                    watched.not_ready, watched.wait_s = False, 0.0
                    self._note("model-ready", "info", model, watched, "it is ready again")
                continue
            if not watched.not_ready:
                watched.not_ready = True
                watched.times += 1
                self._note("model-not-ready", "warning", model, watched, model.reason)
            self._act(model, watched)

    def _act(self, model: ModelState, watched: _Watched) -> None:
        if self.action == "exit" and not self.left:
            self.left = model.name
            self.leave()
        elif self.action == "restart" and not watched.restarting:
            now = monotonic()
            if now >= watched.restart_at:
                watched.restarting = True
                watched.wait_s = min(_LONGEST_S, max(self.answers_s, 2 * watched.wait_s))
                watched.restart_at = now + watched.wait_s
                work = partial(self._restart, model, watched)
                failed = partial(self._not_restarted, model, watched)
                try:
                    start_thread(work, name="headrace-restart", failed=failed)
                except HeadraceError as error:
                    failed(error)

    def _restart(self, model: ModelState, watched: _Watched) -> None:
        self.pipeline.restart_model(model.index)
        self._note("model-restarted", "info", model, watched, "it was loaded anew")
        watched.restarting = False

    def _not_restarted(self, model: ModelState, watched: _Watched, error: Exception) -> None:
        """Note the error of a restart; the other models run on."""
        watched.restarting = False
        text = f"it could not be restarted: {error_text(error, kind=False)}"
        self._note("model-not-restarted", "warning", model, watched, text)

    def _note(self, code: str, level: Any, model: ModelState, watched: _Watched, text: str) -> None:
        restarts = self.models[model.index].restarts
        data = {"times": watched.times, "restarts": restarts}
        self.pipeline.note(Finding(code, level, text, model.name, data))


def _last_warning(stage: object) -> str:
    """The latest warning of a model, in brackets; empty without one."""
    notices = getattr(getattr(stage, "record", None), "notices", ())
    warnings = [notice for notice in list(notices) if notice.level == "warning"]
    return f" ({shortened(f'{warnings[-1]:brief}', _SHOWN)})" if warnings else ""
