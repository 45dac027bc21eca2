"""The server of the page: an HTTP server in a thread beside the pipeline."""

from __future__ import annotations

from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace._core.lazy import import_extra
from headrace._core.text import error_text
from headrace._core.threads import start_thread
from headrace.live.address import Address, require_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.config import ModelConfig
    from headrace.live.allowed import ServiceRules
    from headrace.live.view import LiveView
    from headrace.pipeline import Pipeline
    from headrace.pipeline.events import PipelineEvent
    from headrace.pipeline.health import Health

_START_S = 10.0
_POLL_S = 0.01


class LiveServer:
    """Serves the page of a pipeline until it is closed.

    Args:
        pipeline: that is watched.
        view: one of its sinks.
        address: where it listens; `address` afterwards has the port that was taken.
        models: configs, to explain single frames; empty: nothing is explained.
        service: rules of the paths that drive the pipeline, see docs/cli/serve.md; None: there are
            none.
        health: judges the models of the service; None judges by the defaults.

    Raises:
        MissingExtraError: the extra `live` is not installed.
        HeadraceError: the address is taken or not of this machine, or needs a token.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        view: LiveView,
        address: Address,
        models: Sequence[ModelConfig] = (),
        *,
        service: ServiceRules | None = None,
        health: Health | None = None,
    ) -> None:
        uvicorn = import_extra("uvicorn", "live")
        import_extra("starlette", "live")
        from headrace.live.app import make_app
        from headrace.live.connections import BoundedProtocol

        option = "--view" if service is None else "--listen"
        token = require_token(address, option=option)
        app = make_app(pipeline, view, address, token, models, service=service, health=health)
        config = uvicorn.Config(
            app, host=address.host, port=address.port, log_config=None, lifespan="off",
            timeout_keep_alive=5, server_header=False,
            timeout_graceful_shutdown=1, http=BoundedProtocol, ws="none",
        )  # fmt: skip
        self._server: Any = uvicorn.Server(config)
        self._view, self._close_app = view, app.state.close
        try:
            socket = config.bind_socket()
        except (OSError, SystemExit) as error:  # uvicorn ends the program
            raise HeadraceError(
                f"cannot listen at {address.host}:{address.port}: it is taken, or not of this "
                "machine",
                where=option,
                fix=f"choose another port: {option}=127.0.0.1:8089; port 0 takes any that is free",
            ) from error
        self.address = Address(address.host, socket.getsockname()[1])
        app.state.host = self.address
        self._reason = "for no reason that it gave"
        pipeline.on_event("source", self._forget)
        self._thread = start_thread(
            partial(self._server.run, [socket]), name="headrace-view", failed=self._ended
        )
        end = monotonic() + _START_S
        while not self._server.started and self._thread.is_alive() and monotonic() < end:
            sleep(_POLL_S)
        if not (self._server.started or self._thread.is_alive()):
            raise HeadraceError(
                f"the server of the page ended at once: {self._reason}", where=option
            )

    def _ended(self, error: BaseException) -> None:
        self._reason = error_text(error)
        self._view.note_end(f"the page of the run ended: {self._reason}")

    def _forget(self, event: PipelineEvent) -> None:
        if event.name == "removed":
            self._view.forget(event.source_id)

    def close(self) -> None:
        """End the server; pages that are open say that the run is over."""
        self._server.should_exit = True
        self._thread.join(3)
        self._close_app()
