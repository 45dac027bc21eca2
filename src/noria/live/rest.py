"""Paths that drive a pipeline: sources, readiness, metrics; the original's and Noria's own.

Facts about the original's paths and bodies: the manual of its REST server (`nvds_rest_server`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from noria._core.errors import NoriaError
from noria.config.paths import safe_uri
from noria.live.guard import body_of
from noria.live.metrics import CONTENT_TYPE, metrics_text

if TYPE_CHECKING:
    from noria.pipeline import Pipeline

_OK = "HTTP/1.1 200 OK"
_NOT_YET = (
    "infer/set-interval", "roi/update", "osd/process-mode", "nvtracker/config-path",
    "analytics/reload-config", "mux/batched-push-timeout", "mux/max-latency",
    "dec/drop-frame-interval", "dec/skip-frames", "dec/low-latency-mode", "enc/bitrate",
    "enc/force-idr", "enc/force-intra", "enc/iframe-interval", "conv/srccrop", "conv/destcrop",
)  # fmt: skip


def rest_routes(pipeline: Pipeline) -> list[Route]:
    """The paths of the service of a pipeline."""
    rest = _Rest(pipeline)
    return [
        Route("/metrics", rest.metrics),
        Route("/healthz", rest.health),
        Route("/readyz", rest.ready),
        Route("/openapi.json", rest.openapi),
        Route("/api/sources", rest.list_sources, methods=["GET"]),
        Route("/api/sources", rest.add, methods=["POST"]),
        Route("/api/sources/{id:int}", rest.remove, methods=["DELETE"]),
        Route("/api/v1/stream/add", rest.original_add, methods=["POST"]),
        Route("/api/v1/stream/remove", rest.original_remove, methods=["POST"]),
        Route("/api/v1/stream/get-stream-info", rest.original_info),
        Route("/api/v1/health/get-dsready-state", rest.original_ready),
        *(Route(f"/api/v1/{path}", rest.not_yet, methods=["POST"]) for path in _NOT_YET),
    ]


class _Rest:
    """The answers."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._cameras: dict[str, int] = {}  # the original's camera_id -> id of the source

    @property
    def _running(self) -> bool:
        return self._pipeline.state == "running"

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus."""
        text = await asyncio.to_thread(metrics_text, self._pipeline)
        return Response(text, media_type=CONTENT_TYPE)

    async def health(self, request: Request) -> Response:
        """200 as long as the process answers."""
        return JSONResponse({"state": self._pipeline.state})

    async def ready(self, request: Request) -> Response:
        """200 while sources can be added and frames are taken, else 503."""
        return JSONResponse({"state": self._pipeline.state}, 200 if self._running else 503)

    async def list_sources(self, request: Request) -> Response:
        """The sources that are not over."""
        sources = [{"id": s.source_id, "name": s.name} for s in self._pipeline.sources]
        return JSONResponse({"sources": sources})

    async def add(self, request: Request) -> Response:
        """Add a source: `{"uri": "rtsp://camera/stream", "name": "door"}`."""
        wanted = await body_of(request)
        uri, name = wanted.get("uri"), wanted.get("name")
        if not (isinstance(uri, str) and uri and isinstance(name, str | None)):
            return JSONResponse({"error": 'expected {"uri": "…", "name": "…"}'}, 400)
        try:
            number = await asyncio.to_thread(self._add, uri, name)
        except NoriaError as error:
            return JSONResponse({"error": str(error)}, 422)
        return JSONResponse({"id": number}, 201)

    def _add(self, uri: str, name: str | None) -> int:
        return self._pipeline.add_source(uri.removeprefix("file://"), name=name)

    async def remove(self, request: Request) -> Response:
        """Remove a source."""
        if await asyncio.to_thread(self._pipeline.remove_source, request.path_params["id"]):
            return Response(status_code=204)
        return JSONResponse({"error": "there is no such source"}, 404)

    # --- the original's paths ---------------------------------------------------------------------

    async def original_add(self, request: Request) -> Response:
        """`{"key": "sensor", "value": {"camera_id", "camera_url", "change": "camera_add"}}`."""
        value = (await body_of(request)).get("value")
        value = value if isinstance(value, dict) else {}
        camera, uri = str(value.get("camera_id", "")), value.get("camera_url")
        if not (camera and isinstance(uri, str) and uri):
            return _failed("STREAM_ADD_FAIL", "camera_id and camera_url are needed")
        if self._cameras.get(camera) in [s.source_id for s in self._pipeline.sources]:
            return _failed("STREAM_ADD_FAIL", f"camera_id {camera} is there already")
        name = value.get("camera_name")
        try:
            number = await asyncio.to_thread(self._add, uri, str(name) if name else camera)
        except NoriaError as error:
            return _failed("STREAM_ADD_FAIL", str(error))
        self._cameras[camera] = number
        return JSONResponse({"status": _OK, "reason": "STREAM_ADD_SUCCESS"})

    async def original_remove(self, request: Request) -> Response:
        """The same body with `"change": "camera_remove"`."""
        value = (await body_of(request)).get("value")
        camera = str(value.get("camera_id", "")) if isinstance(value, dict) else ""
        number = self._cameras.pop(camera, None)
        if number is None:
            return _failed("STREAM_REMOVE_FAIL", f"there is no camera_id {camera!r}")
        await asyncio.to_thread(self._pipeline.remove_source, number)
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
        info = {"ds-ready": "YES" if self._running else "NO"}
        reason = "GET_DS_READINESS_INFO_SUCCESS"
        return JSONResponse({"status": _OK, "reason": reason, "health-info": info})

    async def not_yet(self, request: Request) -> Response:
        """Paths of the original that change nothing here."""
        text = "this cannot be changed while the pipeline runs: change its file and start it again"
        return JSONResponse({"status": "HTTP/1.1 501 Not Implemented", "reason": text}, 501)

    async def openapi(self, request: Request) -> Response:
        """A description of Noria's own paths."""
        return JSONResponse(_openapi())


def _failed(reason: str, why: str) -> Response:
    return JSONResponse({"status": "HTTP/1.1 400 Bad Request", "reason": f"{reason}: {why}"}, 400)


def _openapi() -> dict[str, Any]:
    """The paths as OpenAPI 3.1."""

    def operation(text: str, code: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        made: dict[str, Any] = {"summary": text, "responses": {code: {"description": text}}}
        if body is not None:
            schema = {
                "type": "object",
                "required": ["uri"],
                "properties": {name: {"type": kind} for name, kind in body.items()},
            }
            made["requestBody"] = {"content": {"application/json": {"schema": schema}}}
            made["responses"]["422"] = {"description": "it cannot be opened, and why"}
        return made

    number = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    gone = operation("Remove a source", "204") | {"parameters": [number]}
    gone["responses"]["404"] = {"description": "there is no such source"}
    new = operation("Add a source", "201", {"uri": "string", "name": "string"})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Noria", "version": "1"},
        "paths": {
            "/api/sources": {"get": operation("The sources", "200"), "post": new},
            "/api/sources/{id}": {"delete": gone},
            "/metrics": {"get": operation("Counts for Prometheus", "200")},
            "/healthz": {"get": operation("The process answers", "200")},
            "/readyz": {"get": operation("The pipeline runs", "200")},
        },
    }
