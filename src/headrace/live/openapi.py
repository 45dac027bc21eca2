"""The paths of the service as OpenAPI 3.1. Answers are held against it by the tests."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headrace.live.control import MAX_INTERVAL, MAX_TIMEOUT_S, OSD_SWITCHES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_REFUSALS = MappingProxyType(
    {
        401: "The token is missing",
        403: "The request comes from another page or host name",
    }
)
_OF_BODIES = MappingProxyType(
    {
        411: "The request does not say how long its body is",
        413: "The body is longer than 4096 bytes",
    }
)
_NONE: Mapping[int, str] = MappingProxyType({})
_JSON, _PLAIN = "application/json", "text/plain"


def openapi() -> Schema:
    """Describe Headrace's own paths: bodies, answers, refusals."""
    source = _object({"uri": _TEXT | {"minLength": 1}, "name": {"type": ["string", "null"]}}, "uri")
    osd = _object({name: {"type": "boolean"} for name in OSD_SWITCHES})
    interval = _WHOLE | {"maximum": MAX_INTERVAL}
    timeout = {"type": "number", "minimum": 0, "maximum": MAX_TIMEOUT_S}
    values = {"interval": interval, "batch_timeout_s": timeout, "osd": osd}
    settings = _object(values, *values)
    change = _object(values | {"osd": osd | {"minProperties": 1}}) | {"minProperties": 1}
    file = _TEXT | {"minLength": 1}
    model = _object({"config": file, "engine": file}) | {"minProperties": 1, "maxProperties": 1}
    listed = _object({"id": _WHOLE, "name": _TEXT}, "id", "name")
    sources = _object({"sources": {"type": "array", "items": listed}}, "sources")
    state = _object({"state": _TEXT}, "state")
    gone = "There is no such source"
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace", "version": "1"},
        "paths": {
            "/api/sources": {
                "get": _operation("List the sources that are not over", 200, sources),
                "post": _operation(
                    "Add a source", 201, _object({"id": _WHOLE}, "id"), body=source,
                    refusals={
                        400: "The body is no such object",
                        403: f"{_REFUSALS[403]}, or the service takes no source from there",
                        422: "It cannot be opened, and why",
                        503: "The service ends, or opens many others",
                    },
                ),
            },
            "/api/sources/{id}": {
                "delete": _operation("Remove a source", 204, refusals={404: gone}, parameter="id")
            },
            "/api/sources/{id}/clip": {
                "post": _operation(
                    "Record a clip", 202, parameter="id",
                    refusals={404: f"{gone}, or it is no video", 422: "No output takes clips"},
                )
            },
            "/api/settings": {
                "get": _operation("Show the settings", 200, settings),
                "post": _operation(
                    "Change settings", 200, settings, body=change,
                    refusals={422: "A name is unknown, or a value is out of range"},
                ),
            },
            "/api/models/{index}": {
                "post": _operation(
                    "Change to another model", 200, _object({"model": _WHOLE}, "model"),
                    body=model, parameter="index",
                    refusals={404: "It is no number", 422: "It does not fit, and why"},
                )
            },
            "/metrics": {"get": _operation("Counts for Prometheus", 200, _TEXT, kind=_PLAIN)},
            "/healthz": {"get": _operation("The process answers", 200, state)},
            "/readyz": {
                "get": _operation("The pipeline runs", 200, state, others={503: "It does not run"})
            },
        },
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }  # fmt: skip


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def _operation(
    text: str,
    code: int,
    answer: Schema | None = None,
    *,
    body: Schema | None = None,
    kind: str = _JSON,
    refusals: Mapping[int, str] = _NONE,
    others: Mapping[int, str] = _NONE,
    parameter: str = "",
) -> Schema:
    """Describe one method of a path.

    Args:
        text: what it does.
        code, answer, kind: status, schema and media type of its answer; None has no content.
        body: schema of the request.
        refusals: status and reason of answers with an `error`, beside those of every path.
        others: answers as the first one, with another status.
        parameter: the number in the path.
    """
    error = _object({"error": _TEXT}, "error")
    every = dict(_REFUSALS) | (dict(_OF_BODIES) if body else {}) | dict(refusals)
    answers = {code: _response(text, answer, kind)}
    answers |= {number: _response(reason, answer, kind) for number, reason in others.items()}
    answers |= {number: _response(reason, error, _JSON) for number, reason in every.items()}
    operation: Schema = {
        "summary": text,
        "responses": {str(number): answers[number] for number in sorted(answers)},
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": body}}}
    if parameter:
        operation["parameters"] = [
            {"name": parameter, "in": "path", "required": True, "schema": _WHOLE}
        ]
    return operation


def _response(text: str, schema: Schema | None, kind: str) -> Schema:
    content = {} if schema is None else {"content": {kind: {"schema": schema}}}
    return {"description": text} | content
