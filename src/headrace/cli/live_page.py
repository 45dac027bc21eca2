"""The page of a run, as the command line opens it."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headrace._core.findings import Finding
from headrace._core.lazy import import_extra
from headrace._core.text import error_text
from headrace._core.threads import as_exception, start_thread
from headrace.cli.ending import SERVICE_STOP_S
from headrace.cli.output import echo, print_notices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headrace.config import PipelineSpec
    from headrace.infer.run_options import RunOptions
    from headrace.live import Address, LiveServer, LiveView
    from headrace.live.allowed import ServiceRules
    from headrace.pipeline import Pipeline
    from headrace.pipeline.events import PipelineEvent
    from headrace.pipeline.health import Action, Health
    from headrace.pipeline.notice_follower import NoticeFollower
    from headrace.pipeline.outlet import Route


_LOOK_S = 0.5  # how often a service looks for notices


class ModelLimits(NamedTuple):
    """Limits of a model that is ready, and the action behind them; see `Health`."""

    answers_s: float
    results_s: float
    action: Action


class LivePage:
    """A page that is served while a pipeline runs.

    Attributes:
        sink: takes the frames.
        log: of the service; None where it prints text.
        limits: when a model is not ready; None: nobody asks.
        health: of the models, once it runs; None where nobody asks.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        view: LiveView,
        sink: Route,
        address: Address,
        *,
        service: ServiceRules | None,
        log: logging.Logger | None = None,
        limits: ModelLimits | None = None,
    ) -> None:
        self.sink = sink
        self.log = log
        self.limits = limits
        self.health: Health | None = None
        self._spec, self._view, self._address, self._service = spec, view, address, service
        self._server: LiveServer | None = None

    def start(self, pipeline: Pipeline) -> None:
        """Serve the page of a pipeline that is about to run."""
        from headrace.live import LiveServer

        models = self._spec.load_models()
        if self.limits is not None:
            from headrace.pipeline.health import Health

            leave = partial(pipeline.stop, SERVICE_STOP_S)
            limits = self.limits
            self.health = Health(pipeline, limits.answers_s, limits.results_s, limits.action, leave)
            for model in pipeline.models:
                _ = model.history.current  # its files as they are now
        if self.log is not None:
            from headrace.live.log import log_sources

            log_sources(pipeline)
        elif self._service is not None:
            pipeline.on_event("source", _tell_source)
        self._server = LiveServer(
            pipeline,
            self._view,
            self._address,
            models,
            service=self._service,
            health=self.health,
        )
        url = self._server.address.url
        if self.log is None:
            echo(f"watch it at {url}", err=True)
        else:
            self.log.info("watch it at %s", url, extra={"event": "listening", "url": url})

    def tell(self, notices: Iterable[Finding], *, quiet: bool = False) -> None:
        """Print notices, of `quiet` runs the warnings alone; where the log is JSON, log all."""
        if self.log is None:
            print_notices(notices, quiet=quiet)
            return
        from headrace.live.log import log_notice

        for notice in notices:
            log_notice(self.log, notice)

    @contextmanager
    def watch(self, pipeline: Pipeline, known: Sequence[Finding]) -> Iterator[NoticeFollower]:
        """Tell the notices of a service as they come, and judge its models.

        Args:
            pipeline: that runs.
            known: notices that were told already.
        """
        from headrace.pipeline.notice_follower import NoticeFollower

        follower, over = NoticeFollower(pipeline, self.tell, known), threading.Event()

        def failed(error: Exception) -> None:
            text = f"watching the run failed: {error_text(error)}"
            finding = Finding("watch-failed", "warning", text)
            if finding not in pipeline.notices:
                pipeline.note(finding)

        def watch() -> None:
            while not over.wait(_LOOK_S):
                health = [] if self.health is None else [self.health.look]  # it comes with the page
                for look in (*health, follower.look):
                    try:
                        look()
                    except BaseException as error:  # the run goes on, and so must its watch
                        failed(as_exception(error))

        watcher = start_thread(watch, name="headrace-watch", failed=failed)
        try:
            yield follower
        finally:
            over.set()
            watcher.join()

    @property
    def service(self) -> bool:
        """True where it also drives the pipeline."""
        return self._service is not None

    @property
    def not_ready(self) -> bool:
        """True where it judges a model as not ready, or one ended the service."""
        health = self.health
        return health is not None and bool(
            health.left or any(model.state == "not-ready" for model in health.models)
        )

    def close(self) -> None:
        """End the page."""
        if self._server is not None:
            self._server.close()


def _tell_source(event: PipelineEvent) -> None:
    """Print the state of a source."""
    echo(f"source {event.source_id}, {event.source}: {event.name}", err=True)


def live_page(
    spec: PipelineSpec,
    options: RunOptions,
    address: str,
    *,
    service: ServiceRules | None = None,
    log: logging.Logger | None = None,
    limits: ModelLimits | None = None,
) -> LivePage:
    """Prepare the page of a run.

    Args:
        spec, options: of the run.
        address: `HOST:PORT`; empty is the default.
        service: rules of the paths that drive the pipeline; None: there are none.
        log: of a service that logs as JSON; None prints text.
        limits: when a model of a service is not ready; None: nobody asks.

    Raises:
        HeadraceError: the address is none, or needs a token; an extra is not installed.
    """
    for package in ("starlette", "uvicorn"):
        import_extra(package, "live")
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # of this program alone
    from headrace.live import LiveView, live_address
    from headrace.live.address import require_token
    from headrace.media.draw import Painter
    from headrace.pipeline.outlet import Route

    where = live_address(address)
    require_token(where, option="--view" if service is None else "--listen")
    view = LiveView(Painter.from_spec(spec.osd, palette=options.palette))
    route = Route(view, tiled=False)
    return LivePage(spec, view, route, where, service=service, log=log, limits=limits)
