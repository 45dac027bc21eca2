"""Refuse strangers, and read the bodies of requests."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from headrace.live.address import Address, same_token

_MAX_BODY = 4096  # bytes of a request; the page's own have some hundred
_COOKIE = "headrace-token"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?", re.ASCII)
_PORTS = {"http": "80", "https": "443"}  # which a browser leaves out
PROBES = ("/healthz", "/readyz")
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
_POLICY += "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Guard(BaseHTTPMiddleware):
    """Refuses strangers: other origins and host names, missing tokens, large bodies."""

    def __init__(self, app: Any, token: str | None, *, open_probes: bool = False) -> None:
        super().__init__(app)
        self._token = token
        self._open = PROBES if open_probes else ()

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Answer a stranger, or pass the request on."""
        refused = self._refused(request)
        if refused is not None:
            return JSONResponse({"error": refused[1]}, refused[0])
        if self._token is not None and request.url.path not in self._open:
            url_token = request.query_params.get("token")
            if url_token is not None and same_token(url_token, self._token):
                answer: Response = RedirectResponse("/", 303)  # the token leaves the address bar
                answer.set_cookie(_COOKIE, url_token, httponly=True, samesite="strict")
                return answer
            bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not any(
                same_token(t, self._token) for t in (request.cookies.get(_COOKIE, ""), bearer)
            ):
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
        name, port = _host(host)
        local = ("localhost", "127.0.0.1", "[::1]", address.host.lower(), f"[{address.host}]")
        if address.is_local and name not in local:
            return 403, f"this page is at {address.url}"
        origin = request.headers.get("origin")
        if origin is not None and not _is_origin(origin, name, port):
            return 403, "requests of other pages are refused"
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _MAX_BODY:
            return 413, f"a request has {_MAX_BODY} bytes at most"
        if "transfer-encoding" in request.headers:
            return 411, "a request says how long it is"
        return None


def _host(text: str) -> tuple[str, str]:
    """Name and port of a host; the port is empty where it is the one of the scheme."""
    match = _HOST.fullmatch(text)
    return (match[1].lower().removesuffix("."), match[2] or "") if match else ("", "")


def _is_origin(origin: str, name: str, port: str) -> bool:
    """Whether a page's origin is this server, under the name that the request gives it."""
    scheme, _, rest = origin.partition("://")
    usual = _PORTS.get(scheme.lower(), "")
    own, own_port = _host(rest)
    return bool(own) and (own, own_port or usual) == (name, port or usual)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that a request carries; empty if it carries none.

    Numbers are finite: NaN and what no float holds, such as 1e400, make it none. So does text
    that no file name and no answer can hold: half of a surrogate pair.
    """
    try:
        content = json.loads(await request.body(), parse_constant=_finite, parse_float=_finite)
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError, ClientDisconnect):
        return {}
    return content if isinstance(content, dict) else {}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
