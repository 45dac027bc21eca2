"""The paths of the page: pictures, state, explanations."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from noria._core.errors import NoriaError
from noria.live.server import Address, same_token
from noria.live.state import pipeline_state
from noria.live.view import LivePicture, LiveView, objects_as_data

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.media import Frame
    from noria.meta import FrameMeta
    from noria.pipeline import Pipeline

_MAX_BODY = 4096  # bytes of a request; the page's own have some hundred
_MAX_SOURCES = 64  # pictures in one answer
_WIDTHS = (320, 480, 640, 960, 1280, 1920)
_WAIT_S = 5.0  # an answer without a picture after that: the page asks again
_COOKIE = "noria-token"
_PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "app.css": ("app.css", "text/css; charset=utf-8"),
}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
_POLICY += "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def make_app(
    pipeline: Pipeline,
    view: LiveView,
    address: Address,
    token: str | None,
    models: Sequence[ModelConfig],
) -> Starlette:
    """Make the application of a pipeline; arguments as of `LiveServer`."""
    served = _Served(pipeline, view, models)
    routes = [
        *(Route(f"/{name}", served.page) for name in _PAGE),
        Route("/favicon.ico", lambda _: Response(status_code=204)),
        Route("/api/state", served.state),
        Route("/api/pictures", served.pictures, methods=["POST"]),
        Route("/api/explain", served.explain, methods=["POST"]),
    ]
    middleware = Middleware(_Guard, token=token)
    app = Starlette(routes=routes, middleware=[middleware])
    app.state.host = address
    return app


class _Guard(BaseHTTPMiddleware):
    """Refuses strangers: other origins and host names, missing tokens, large bodies."""

    def __init__(self, app: Any, token: str | None) -> None:
        super().__init__(app)
        self._token = token

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        refused = self._refused(request)
        if refused is not None:
            return JSONResponse({"error": refused[1]}, refused[0])
        if self._token is not None:
            given = request.query_params.get("token")
            if given is not None and same_token(given, self._token):
                answer: Response = RedirectResponse("/", 303)  # the token leaves the address bar
                answer.set_cookie(_COOKIE, given, httponly=True, samesite="strict")
                return answer
            if not same_token(request.cookies.get(_COOKIE, ""), self._token):
                return JSONResponse({"error": "the token is missing: open /?token=…"}, 401)
        response = await call_next(request)
        response.headers.update(
            {
                "Content-Security-Policy": _POLICY,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
            }
        )
        return response

    def _refused(self, request: Request) -> tuple[int, str] | None:
        host = request.headers.get("host", "")
        address: Address = request.app.state.host
        # a page of another site, whose name was made to lead here, sends its own name
        local = ("localhost", "127.0.0.1", "[::1]", address.host, f"[{address.host}]")
        if address.is_local and host.rpartition(":")[0] not in local:
            return 403, f"this page is at {address.url}"
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "requests of other pages are refused"
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _MAX_BODY:
            return 413, f"a request has {_MAX_BODY} bytes at most"
        if "transfer-encoding" in request.headers:
            return 411, "a request says how long it is"
        return None


class _Served:
    """The answers."""

    def __init__(self, pipeline: Pipeline, view: LiveView, models: Sequence[ModelConfig]) -> None:
        self._pipeline, self._view, self._models = pipeline, view, list(models)
        self._encoder = ThreadPoolExecutor(1, "noria-view-encode")
        self._explaining = threading.Lock()

    async def page(self, request: Request) -> Response:
        """The page and its parts."""
        name, kind = _PAGE[request.url.path.lstrip("/")]
        data = files("noria.live").joinpath("page", name).read_bytes()
        return Response(data, media_type=kind)

    async def state(self, request: Request) -> Response:
        """Sources, models, counts and notices."""
        state = await asyncio.to_thread(pipeline_state, self._pipeline, self._view)
        return JSONResponse(state | {"explains": bool(self._models)})

    async def pictures(self, request: Request) -> Response:
        """Newer pictures of some sources, as soon as there is one.

        The request: `{"seen": {"0": 17}, "width": 640}`, the number of the last picture of each
        source that is wanted, 0 for none yet. The answer: 4 bytes with the length of a JSON list
        (big-endian), the list, then the JPEG files one after the other.
        """
        wanted = await _body(request)
        try:
            seen = {int(i): int(n) for i, n in dict(wanted["seen"]).items()}
            width = min((w for w in _WIDTHS if w >= int(wanted["width"])), default=_WIDTHS[-1])
        except (KeyError, TypeError, ValueError):
            return JSONResponse({"error": 'expected {"seen": {"0": 0}, "width": 640}'}, 400)
        if len(seen) > _MAX_SOURCES:
            return JSONResponse({"error": f"{_MAX_SOURCES} sources at most"}, 400)
        newer = await self._newer(seen)
        loop = asyncio.get_running_loop()
        made = [
            await loop.run_in_executor(self._encoder, self._view.picture, i, width) for i in newer
        ]
        found = [picture for picture in made if picture is not None]
        head = json.dumps([_head(picture) for picture in found]).encode()
        parts = [struct.pack(">I", len(head)), head, *(picture.jpeg for picture in found)]
        return Response(b"".join(parts), media_type="application/octet-stream")

    async def _newer(self, seen: dict[int, int]) -> list[int]:
        """Wait until one of the sources has a newer frame; empty after a while."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()

        def listener() -> None:
            loop.call_soon_threadsafe(came.set)

        self._view.listen(listener)
        try:
            async with asyncio.timeout(_WAIT_S):
                while not (newer := self._view.newer(seen)):
                    came.clear()
                    await came.wait()
        except TimeoutError:
            return []
        finally:
            self._view.unlisten(listener)
        return newer

    async def explain(self, request: Request) -> Response:
        """Why there is no box at a place of a picture.

        The request: `{"source": 0, "number": 17, "x": 10, "y": 20}`, in pixels of the frame.
        """
        wanted = await _body(request)
        try:
            source, x, y = int(wanted["source"]), float(wanted["x"]), float(wanted["y"])
        except (KeyError, TypeError, ValueError):
            return JSONResponse({"error": 'expected {"source": 0, "x": 10, "y": 20}'}, 400)
        number = wanted.get("number", 0)
        shown = self._view.frame_of(source, number if isinstance(number, int) else 0)
        if not self._models or shown is None:
            return JSONResponse({"error": "there is nothing to explain"}, 404)
        if not self._explaining.acquire(blocking=False):
            return JSONResponse({"error": "another frame is being explained"}, 429)
        try:
            text = await asyncio.to_thread(self._explained, *shown, (x, y))
        except NoriaError as error:
            return JSONResponse({"error": str(error)}, 422)
        finally:
            self._explaining.release()
        return JSONResponse({"text": text})

    def _explained(self, frame: Frame, meta: FrameMeta, at: tuple[float, float]) -> str:
        from noria.diagnose.explanation.explained import explain

        found = explain(self._models, frame, at=at).summary()
        return f"frame {meta.frame} of {meta.source}\n{found.partition(chr(10))[2]}"


def _head(picture: LivePicture) -> dict[str, Any]:
    meta = picture.meta
    return {
        "source": picture.source_id,
        "number": picture.number,
        "bytes": len(picture.jpeg),
        "frame": meta.frame,
        "width": meta.width,
        "height": meta.height,
        "objects": objects_as_data(meta),
    }


async def _body(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
