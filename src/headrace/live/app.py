"""The paths of the page: images, state, explanations."""

from __future__ import annotations

import asyncio
import json
import logging
import struct
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headrace._core.errors import HeadraceError
from headrace._core.json_record import finite_data
from headrace._core.text import printable
from headrace.live.address import Address
from headrace.live.allowed import ServiceRules
from headrace.live.guard import Guard, body_of
from headrace.live.rest import rest_routes
from headrace.live.state import pipeline_state
from headrace.live.view import LiveImage, LiveView, objects_as_data

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.media import Frame
    from headrace.meta import FrameMeta
    from headrace.pipeline import Pipeline
    from headrace.pipeline.health import Health

_MAX_SOURCES = 64  # images in one answer
_WIDTHS = (320, 480, 640, 960, 1280, 1920)
_REST_S = 0.3  # between two answers of a run that is over
_DRAW_S = 0.05  # of drawing in one answer: the first image shall not wait for all others
_WAIT_S = 5.0  # an answer without an image after that: the page asks again
_PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "app.css": ("app.css", "text/css; charset=utf-8"),
}


def make_app(
    pipeline: Pipeline,
    view: LiveView,
    address: Address,
    token: str | None,
    models: Sequence[ModelConfig],
    service: ServiceRules | None = None,
    health: Health | None = None,
) -> Starlette:
    """Make the application of a pipeline; arguments as of `LiveServer`.

    Call `state.close` of it when nothing is answered any more.
    """
    served = _Served(pipeline, view, models)
    routes = [
        *(Route(f"/{name}", served.page) for name in _PAGE),
        Route("/favicon.ico", lambda _: Response(status_code=204)),
        Route("/api/state", served.state),
        Route("/api/images", served.images, methods=["POST"]),
        Route("/api/explain", served.explain, methods=["POST"]),
    ]
    if service is not None:
        routes += rest_routes(pipeline, view, service, health)
    probes = service is not None and service.open_probes
    middleware = Middleware(Guard, token=token, open_probes=probes)
    handlers: dict[Any, Any] = {Exception: _failed, HTTPException: _unknown}
    app = Starlette(routes=routes, middleware=[middleware], exception_handlers=handlers)
    app.state.host = address
    app.state.close = served.close
    return app


class _Served:
    """The answers."""

    def __init__(self, pipeline: Pipeline, view: LiveView, models: Sequence[ModelConfig]) -> None:
        self._pipeline, self._view, self._models = pipeline, view, list(models)
        self._encoder = ThreadPoolExecutor(1, "headrace-view-encode")
        self._explaining = threading.Lock()

    def close(self) -> None:
        """End the thread that encodes images."""
        self._encoder.shutdown(cancel_futures=True)

    async def page(self, request: Request) -> Response:
        """The page and its parts."""
        name, kind = _PAGE[request.url.path.lstrip("/")]
        return Response(files("headrace.live").joinpath("page", name).read_bytes(), media_type=kind)

    async def state(self, request: Request) -> Response:
        """Sources, models, counts and notices."""
        state = await asyncio.to_thread(pipeline_state, self._pipeline, self._view)
        return JSONResponse(state | {"explains": bool(self._models)})

    async def images(self, request: Request) -> Response:
        """Newer images of some sources, as soon as there is one; others may follow next time.

        The request: `{"seen": {"0": 17}, "width": 640}`, the number of the last image of each
        source that is wanted, 0 for none yet. The answer: 4 bytes with the length of a JSON list
        (big-endian), the list, then the JPEG files one after the other.
        """
        body = await body_of(request)
        try:
            seen = {int(i): int(n) for i, n in dict(body["seen"]).items()}
            width = min((w for w in _WIDTHS if w >= int(body["width"])), default=_WIDTHS[-1])
        except (KeyError, TypeError, ValueError):
            return JSONResponse({"error": 'expected {"seen": {"0": 0}, "width": 640}'}, 400)
        if len(seen) > _MAX_SOURCES:
            return JSONResponse({"error": f"{_MAX_SOURCES} sources at most"}, 400)
        newer = sorted(await self._newer(seen), key=seen.__getitem__)  # longest unseen first
        loop = asyncio.get_running_loop()
        live_images, end = list[LiveImage](), loop.time() + _DRAW_S
        for i in newer:
            image = await loop.run_in_executor(self._encoder, self._view.image, i, width)
            if image is not None:
                live_images.append(image)
            if loop.time() > end:
                break
        head = json.dumps(finite_data([_head(image) for image in live_images])).encode()
        parts = [struct.pack(">I", len(head)), head, *(image.jpeg for image in live_images)]
        return Response(b"".join(parts), media_type="application/octet-stream")

    async def _newer(self, seen: dict[int, int]) -> list[int]:
        """Wait until one of the sources has a newer frame; empty after a while, or at the end."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()

        def listener() -> None:
            loop.call_soon_threadsafe(came.set)

        self._view.listen(listener)
        try:
            async with asyncio.timeout(_WAIT_S):
                while not (newer := self._view.newer(seen)):
                    if self._view.over:
                        await asyncio.sleep(_REST_S)
                        break
                    came.clear()
                    await came.wait()
        except TimeoutError:
            return []
        finally:
            self._view.unlisten(listener)
        return newer

    async def explain(self, request: Request) -> Response:
        """Why there is no box at a place of an image.

        The request: `{"source": 0, "number": 17, "x": 10, "y": 20}`, in pixels of the frame.
        """
        body = await body_of(request)
        try:
            source, x, y = int(body["source"]), float(body["x"]), float(body["y"])
        except (KeyError, TypeError, ValueError):
            return JSONResponse({"error": 'expected {"source": 0, "x": 10, "y": 20}'}, 400)
        number = body.get("number", 0)
        shown = self._view.frame_of(source, number if isinstance(number, int) else 0)
        if not self._models or shown is None:
            return JSONResponse({"error": "there is nothing to explain"}, 404)
        if not self._explaining.acquire(blocking=False):
            return JSONResponse({"error": "another frame is being explained"}, 429)
        try:
            text = await asyncio.to_thread(self._explained, *shown, (x, y))
        except HeadraceError as error:
            return JSONResponse({"error": str(error)}, 422)
        finally:
            self._explaining.release()
        return JSONResponse({"text": text})

    def _explained(self, frame: Frame, meta: FrameMeta, at: tuple[float, float]) -> str:
        from headrace.diagnose.explain.explained import explain

        text = explain(self._models, frame, at=at).summary()
        return f"frame {meta.frame} of {meta.source}\n{text.partition(chr(10))[2]}"


def _unknown(request: Request, error: HTTPException) -> Response:
    """Answer a request for a path that is not there, or by a method that it does not take."""
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _failed(request: Request, error: Exception) -> Response:
    """Answer a request that Headrace itself failed on, and log why."""
    logging.getLogger("headrace.live").error(
        "%s failed", printable(request.url.path), exc_info=error
    )
    return JSONResponse({"error": "an error of Headrace itself: its log says more"}, 500)


def _head(image: LiveImage) -> dict[str, object]:
    meta = image.meta
    return {
        "source": image.source_id,
        "number": image.number,
        "bytes": len(image.jpeg),
        "frame": meta.frame,
        "width": meta.width,
        "height": meta.height,
        "objects": objects_as_data(meta),
    }
