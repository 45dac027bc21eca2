"""Paths that drive a pipeline: sources, readiness, metrics; the original's and Headrace's own.

Facts about the original's paths and bodies: the manual of its REST server (`nvds_rest_server`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headrace._core.errors import HeadraceError
from headrace._core.text import quoted
from headrace.config.paths import safe_uri
from headrace.live.adding import ServiceBusyError, SourceAdding
from headrace.live.allowed import SourceRefusedError
from headrace.live.control import MAX_INTERVAL, Controls, UpdatePendingError, whole
from headrace.live.guard import body_of
from headrace.live.metrics import CONTENT_TYPE, metrics_text
from headrace.live.openapi import openapi
from headrace.live.state import model_states, source_states
from headrace.pipeline.health import Health

if TYPE_CHECKING:
    from headrace.live.allowed import ServiceRules
    from headrace.live.view import LiveView
    from headrace.pipeline import Pipeline
    from headrace.pipeline.events import PipelineEvent

_OK = "HTTP/1.1 200 OK"
_CAMERAS = 1000  # that are remembered before those that are over are forgotten
_DECODER = "every frame is decoded; drop-frame-interval of the pipeline file drops decoded ones"
_ENCODER = "video is encoded with constant quality, and key frames at fixed distances"
_NO_CONVERTER = "frames keep their own size: nothing converts them before the models"
_RULES = "it is read when the pipeline starts: change the file and start it again"
_COMES_BACK = (
    "it is removed until the next start, which opens the sources of the pipeline file or command "
    "line again: take it out there, too"
)
_REASONS = {
    **dict.fromkeys(
        ("dec/drop-frame-interval", "dec/skip-frames", "dec/low-latency-mode"), _DECODER
    ),
    **dict.fromkeys(
        ("enc/bitrate", "enc/force-idr", "enc/force-intra", "enc/iframe-interval"), _ENCODER
    ),
    **dict.fromkeys(
        ("conv/srccrop", "conv/destcrop", "conv/flip-method", "conv/interpolation-method"),
        _NO_CONVERTER,
    ),
    "mux/max-latency": "frames of one buffer are not synchronised by their times",
    "inferserver/set-interval": "only models of nvinfer are run: infer/set-interval",
    "analytics/reload-config": _RULES,
}


def rest_routes(
    pipeline: Pipeline, view: LiveView, rules: ServiceRules, health: Health | None = None
) -> list[Route]:
    """The paths of the service of a pipeline that `view` shows.

    Args:
        pipeline, view: of the service.
        rules: of the sources that may be added, and those of earlier lives, which are added.
        health: judges the models; None judges by the defaults.
    """
    rest = _Rest(
        pipeline, Controls(pipeline, view, rules.changes), rules, health or Health(pipeline)
    )
    return [
        Route("/metrics", rest.metrics),
        Route("/healthz", rest.health),
        Route("/readyz", rest.ready),
        Route("/openapi.json", rest.openapi),
        Route("/api/sources", rest.list_sources, methods=["GET"]),
        Route("/api/sources", rest.add, methods=["POST"]),
        Route("/api/sources/{id:int}", rest.remove, methods=["DELETE"]),
        Route("/api/sources/{id:int}/clip", rest.clip, methods=["POST"]),
        Route("/api/settings", rest.settings, methods=["GET"]),
        Route("/api/settings", rest.change, methods=["POST"]),
        Route("/api/models", rest.list_models, methods=["GET"]),
        Route("/api/models/{index:int}", rest.update_model, methods=["POST"]),
        Route("/api/models/{index:int}/rollback", rest.roll_back, methods=["POST"]),
        Route("/api/v1/infer/set-interval", rest.original_interval, methods=["POST"]),
        Route("/api/v1/roi/update", rest.original_roi, methods=["POST"]),
        Route("/api/v1/nvtracker/config-path", rest.original_tracker, methods=["POST"]),
        Route("/api/v1/mux/batched-push-timeout", rest.original_timeout, methods=["POST"]),
        Route("/api/v1/osd/process-mode", rest.original_osd, methods=["POST"]),
        Route("/api/v1/app/quit", rest.original_quit, methods=["POST"]),
        Route("/api/v1/stream/add", rest.original_add, methods=["POST"]),
        Route("/api/v1/stream/remove", rest.original_remove, methods=["POST"]),
        Route("/api/v1/stream/get-stream-info", rest.original_info),
        Route("/api/v1/health/get-dsready-state", rest.original_ready),
        *(Route(f"/api/v1/{path}", rest.without_meaning, methods=["POST"]) for path in _REASONS),
    ]


class _Rest:
    """The answers."""

    def __init__(
        self, pipeline: Pipeline, controls: Controls, rules: ServiceRules, health: Health
    ) -> None:
        self._pipeline, self._controls, self._health = pipeline, controls, health
        self._at_start = {source.source_id for source in pipeline.sources}
        self._kept = rules.kept
        self._kept.restore(pipeline, rules.allowed)
        controls.restore()
        self._sources = SourceAdding(pipeline, rules.allowed, self._kept)
        # the original's camera_id -> id of the source
        self._cameras: dict[str, int] = self._kept.cameras
        pipeline.on_event("source", self._over)
        self._adding: set[str] = set()  # camera_ids whose source is being opened

    @property
    def _running(self) -> bool:
        return self._pipeline.state == "running"

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus."""
        text = await asyncio.to_thread(metrics_text, self._pipeline, self._health)
        return Response(text, media_type=CONTENT_TYPE)

    async def health(self, request: Request) -> Response:
        """200 as long as the process answers."""
        return JSONResponse({"state": self._pipeline.state})

    async def ready(self, request: Request) -> Response:
        """200 while frames are taken and every model gives results, else 503 with the reasons."""
        reasons = self._health.reasons
        answer = {"state": self._pipeline.state, "reasons": reasons}
        return JSONResponse(answer, 503 if reasons else 200)

    async def list_sources(self, request: Request) -> Response:
        """The sources that are not over."""
        sources = await asyncio.to_thread(source_states, self._pipeline)
        return JSONResponse({"sources": sources})

    async def list_models(self, request: Request) -> Response:
        """The models: state, version, history, counts."""
        models = await asyncio.to_thread(model_states, self._pipeline, self._health)
        return JSONResponse({"models": models})

    async def add(self, request: Request) -> Response:
        """Add a source: `{"uri": "rtsp://camera/stream", "name": "door"}`."""
        body = await body_of(request)
        uri, name = body.get("uri"), body.get("name")
        unknown = ", ".join(sorted(body.keys() - {"uri", "name"}))
        if unknown or not (isinstance(uri, str) and uri and isinstance(name, str | None)):
            prefix = f"found the key {quoted(unknown)}; " if unknown else ""
            return JSONResponse({"error": f'{prefix}expected {{"uri": "…", "name": "…"}}'}, 400)
        try:
            number = await self._sources.add(uri, name)
        except HeadraceError as error:
            # without its advice, which may name other files of the folder
            return JSONResponse({"error": f"{error:line}"}, _status(error))
        rows = await asyncio.to_thread(source_states, self._pipeline)
        state = next((row["state"] for row in rows if row["id"] == number), "ended")
        return JSONResponse({"id": number, "state": state}, 201)

    async def remove(self, request: Request) -> Response:
        """Remove a source; say so where the next start opens it again."""
        number = request.path_params["id"]
        if await asyncio.to_thread(self._remove, number):
            if number in self._at_start:
                return JSONResponse({"id": number, "comes_back": True, "message": _COMES_BACK})
            return Response(status_code=204)
        return JSONResponse({"error": "there is no such source"}, 404)

    def _over(self, event: PipelineEvent) -> None:
        if event.name == "ended":  # by itself: the next life has nothing to open
            self._forget(event.source_id)

    def _forget(self, number: int) -> bool:
        self._controls.forget_source(number)
        return self._kept.forget(self._pipeline, number)

    def _remove(self, number: int) -> bool:
        """Remove a source for good; False if it is over, and the next life would not open it."""
        kept = self._forget(number)
        return self._pipeline.remove_source(number) or kept

    async def clip(self, request: Request) -> Response:
        """Record a clip of a source around now."""
        try:
            begun = self._pipeline.record_clip(request.path_params["id"])
        except HeadraceError as error:
            return JSONResponse({"error": str(error)}, 422)
        if begun:
            return Response(status_code=202)
        return JSONResponse({"error": "there is no such source, or it is no video"}, 404)

    async def settings(self, request: Request) -> Response:
        """The current values of the changeable settings."""
        return JSONResponse(self._controls.settings())

    async def change(self, request: Request) -> Response:
        """Change settings: `{"interval": 2, "batch_timeout_s": 0.1, "osd": {"labels": false}}`."""
        try:
            await asyncio.to_thread(self._controls.change, await body_of(request))
        except HeadraceError as error:
            return JSONResponse({"error": str(error)}, 422)
        return JSONResponse(self._controls.settings())

    async def update_model(self, request: Request) -> Response:
        """Change to another model: `{"config": "new.txt"}` or `{"model": "new.onnx"}`."""
        body = await body_of(request)
        return await self._update(request, partial(self._controls.update_model, request=body))

    async def roll_back(self, request: Request) -> Response:
        """Change back to the version that ran before."""
        return await self._update(request, self._controls.roll_back, refused=409)

    async def _update(
        self, request: Request, change: Callable[[int], int], *, refused: int = 422
    ) -> Response:
        index = request.path_params["index"]
        if index >= len(self._pipeline.models):
            return JSONResponse({"error": f"there is no model {index}"}, 404)
        try:
            version = await asyncio.to_thread(change, index)
        except HeadraceError as error:
            pending = isinstance(error, UpdatePendingError)
            return JSONResponse({"error": str(error)}, 409 if pending else refused)
        return JSONResponse({"model": index, "version": version})

    # --- the original's paths ---------------------------------------------------------------------

    async def original_add(self, request: Request) -> Response:
        """`{"key": "sensor", "value": {"camera_id", "camera_url", "change": "camera_add"}}`."""
        value = (await body_of(request)).get("value")
        value = value if isinstance(value, dict) else {}
        camera, uri = str(value.get("camera_id", "")), value.get("camera_url")
        if not (camera and isinstance(uri, str) and uri):
            return _failed("STREAM_ADD_FAIL", "camera_id and camera_url are needed")
        running = [s.source_id for s in self._pipeline.sources]
        if camera in self._adding or self._cameras.get(camera) in running:
            return _failed("STREAM_ADD_FAIL", f"camera_id {camera} is there already")
        name = value.get("camera_name")
        self._adding.add(camera)
        try:
            number = await self._sources.add(uri, str(name) if name else camera, camera)
        except HeadraceError as error:
            return _failed("STREAM_ADD_FAIL", f"{error:line}")
        finally:
            self._adding.discard(camera)
        if len(self._cameras) >= _CAMERAS:  # videos that have ended, and nobody removed
            self._cameras = {c: n for c, n in self._cameras.items() if n in running}
        self._cameras[camera] = number
        return JSONResponse({"status": _OK, "reason": "STREAM_ADD_SUCCESS"})

    async def original_remove(self, request: Request) -> Response:
        """The same body with `"change": "camera_remove"`."""
        value = (await body_of(request)).get("value")
        camera = str(value.get("camera_id", "")) if isinstance(value, dict) else ""
        number = self._cameras.pop(camera, None)
        if number is None:
            return _failed("STREAM_REMOVE_FAIL", f"there is no camera_id {camera!r}")
        await asyncio.to_thread(self._remove, number)
        return JSONResponse({"status": _OK, "reason": "STREAM_REMOVE_SUCCESS"})

    async def original_info(self, request: Request) -> Response:
        """The sources that are not over."""
        cameras = {number: camera for camera, number in self._cameras.items()}
        streams = [
            {
                "camera_id": cameras.get(s.source_id, str(s.source_id)),
                "camera_name": safe_uri(s.name),
                "source_id": s.source_id,
            }
            for s in self._pipeline.sources
        ]
        info = {"stream-count": len(streams), "stream-info": streams}
        reason = "GET_LIVE_STREAM_INFO_SUCCESS"
        return JSONResponse({"status": _OK, "reason": reason, "stream-info": info})

    async def original_ready(self, request: Request) -> Response:
        """Whether the pipeline runs."""
        info = {"ds-ready": "NO" if self._health.reasons else "YES"}
        reason = "GET_DS_READINESS_INFO_SUCCESS"
        return JSONResponse({"status": _OK, "reason": reason, "health-info": info})

    async def original_interval(self, request: Request) -> Response:
        """`{"stream": {"stream_id": "0", "interval": 2}}`; it counts for all streams."""
        value = (await _stream_of(request)).get("interval")

        def change() -> None:
            interval = whole(value, "interval", MAX_INTERVAL, texts=True)
            self._controls.change({"interval": interval})

        return await _changed("INFER_INTERVAL_UPDATE", change)

    async def original_timeout(self, request: Request) -> Response:
        """`{"stream": {"batched_push_timeout": 100000}}`, in microseconds."""
        stream = await _stream_of(request)

        def change() -> None:
            micros = whole(
                stream.get("batched_push_timeout"), "batched_push_timeout", 10**9, texts=True
            )
            self._controls.change({"batch_timeout_s": micros / 1e6})

        return await _changed("BATCHED_PUSH_TIMEOUT_UPDATE", change)

    async def original_roi(self, request: Request) -> Response:
        """`{"stream": {"stream_id": "0", "roi_count": 1, "roi": [{"roi_id": "0", "left": …}]}}`."""
        stream = await _stream_of(request)

        def change() -> None:
            camera = stream.get("stream_id")
            known = self._cameras.get(str(camera))
            number = whole(camera, "stream_id", 1 << 31, texts=True) if known is None else known
            self._controls.set_regions(number, stream.get("roi"))

        return await _changed("ROI_UPDATE", change)

    async def original_tracker(self, request: Request) -> Response:
        """`{"stream": {"stream_id": "0", "config_path": "changes.yml"}}`, for all streams."""
        name = (await _stream_of(request)).get("config_path")
        return await _changed(
            "NVTRACKER_CONFIG_UPDATE", partial(self._controls.change_tracker, name)
        )

    async def original_osd(self, request: Request) -> Response:
        """`{"stream": {"stream_id": "0", "process_mode": 0}}`: the CPU (0) draws, always."""
        mode = (await _stream_of(request)).get("process_mode")
        if mode in (1, 2, "1", "2"):
            return _not_here("the CPU draws, process_mode 0 alone; switches are at /api/settings")
        return await _changed(
            "PROCESS_MODE_UPDATE", partial(whole, mode, "process_mode", 0, texts=True)
        )

    async def original_quit(self, request: Request) -> Response:
        """`{"stream": {"app_quit": 1}}`: finish the files and end."""
        if (await _stream_of(request)).get("app_quit") not in (1, True, "1"):
            return _failed("QUIT_FAIL", "app_quit is not 1")
        return await _changed("QUIT", self._pipeline.stop)

    async def without_meaning(self, request: Request) -> Response:
        """Paths of the original that change nothing here, each with the reason."""
        return _not_here(_REASONS[request.url.path.removeprefix("/api/v1/")])

    async def openapi(self, request: Request) -> Response:
        """A description of Headrace's own paths."""
        return JSONResponse(openapi())


def _status(error: HeadraceError) -> int:
    if isinstance(error, SourceRefusedError):
        return 403
    return 503 if isinstance(error, ServiceBusyError) else 422


async def _stream_of(request: Request) -> dict[str, object]:
    """The object `stream` in the body of a request; empty if there is none."""
    stream = (await body_of(request)).get("stream")
    return stream if isinstance(stream, dict) else {}


async def _changed(what: str, change: Callable[[], object]) -> Response:
    """Make a change of the original's, and answer in its words."""
    try:
        await asyncio.to_thread(change)
    except HeadraceError as error:
        return _failed(f"{what}_FAIL", str(error))
    return JSONResponse({"status": _OK, "reason": f"{what}_SUCCESS"})


def _not_here(why: str) -> Response:
    return JSONResponse({"status": "HTTP/1.1 501 Not Implemented", "reason": why}, 501)


def _failed(reason: str, why: str) -> Response:
    return JSONResponse({"status": "HTTP/1.1 400 Bad Request", "reason": f"{reason}: {why}"}, 400)
