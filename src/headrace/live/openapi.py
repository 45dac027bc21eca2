"""The paths of the service as OpenAPI 3.1. Answers are held against it by the tests."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headrace.live.control import MAX_INTERVAL, MAX_TIMEOUT_S, OSD_SWITCHES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_NO_TEXT: Schema = {"type": ["string", "null"]}
_NO_NUMBER: Schema = {"type": ["number", "null"]}
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
_EMPTY = 204
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
    version = {"type": "integer", "minimum": 1}
    model = _object({"config": file, "engine": file, "model": file, "version": version})
    model |= {"minProperties": 1, "maxProperties": 1}
    updated = _object({"model": _WHOLE, "version": version}, "model", "version")
    sources = _object({"sources": _list(_SOURCE)}, "sources")
    models = _object({"models": _list(_model(version))}, "models")
    state = _object({"state": _TEXT}, "state")
    ready = _object({"state": _TEXT, "reasons": _list(_TEXT)}, "state", "reasons")
    added = _object({"id": _WHOLE, "state": _TEXT}, "id", "state")
    removed = _object({"id": _WHOLE, "comes_back": {"const": True}, "message": _TEXT}, "id")
    gone = "There is no such source"
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace", "version": "1"},
        "paths": {
            "/api/sources": {
                "get": _operation("List the sources that are not over", 200, sources),
                "post": _operation(
                    "Add a source", 201, added, body=source,
                    refusals={
                        400: "The body is no such object",
                        403: f"{_REFUSALS[403]}, or the service takes no source from there",
                        422: "It cannot be opened, and why",
                        503: "The service ends, or opens many others",
                    },
                ),
            },
            "/api/sources/{id}": {
                "delete": _operation(
                    "Remove a source of the files until the next start", 200, removed,
                    others={204: "Remove another one for good"},
                    refusals={404: gone}, parameter="id",
                )
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
            "/api/models": {"get": _operation("List the models", 200, models)},
            "/api/models/{index}": {
                "post": _operation(
                    "Change to another model", 200, updated, body=model, parameter="index",
                    refusals={
                        404: "There is no such model",
                        409: "An earlier change has not come to its end",
                        422: "It does not fit, and why",
                    },
                )
            },
            "/api/models/{index}/rollback": {
                "post": _operation(
                    "Change back to the version before", 200, updated, parameter="index",
                    refusals={
                        404: "There is no such model",
                        409: "No version ran before, it cannot run again, or a change is under way",
                    },
                )
            },
            "/metrics": {"get": _operation("Counts for Prometheus", 200, _TEXT, kind=_PLAIN)},
            "/healthz": {"get": _operation("The process answers", 200, state)},
            "/readyz": {
                "get": _operation(
                    "Frames are taken and every model gives results", 200, ready,
                    others={503: "Not so, and why"},
                )
            },
        },
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }  # fmt: skip


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _model(version: Schema) -> Schema:
    """One model of the list; one of a program's own has no versions."""
    run = {"version": version, "file": _TEXT, "sha256": _TEXT, "since": _NUMBER, "how": _TEXT}
    refused = {"time": _NUMBER, "path": _TEXT, "reason": _TEXT}
    always = {
        "index": _WHOLE,
        "name": _TEXT,
        "state": {"enum": ["waiting", "ready", "not-ready"]},
        "reason": _NO_TEXT,
        "error": _NO_TEXT,
        "unanswered_s": _NO_NUMBER,
        "empty_s": _NO_NUMBER,
        **dict.fromkeys(("inferred", "failed", "passed", "failures", "restarts"), _WHOLE),
    }
    versions = {
        "version": version,
        "file": _TEXT,
        "history": _list(_object(run, *run)),
        "refused": _list(_object(refused, *refused)),
    }
    return _object(always | versions, *always)


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
        others: answers as the first one, with another status; 204 is empty.
        parameter: the number in the path.
    """
    error = _object({"error": _TEXT}, "error")
    every = dict(_REFUSALS) | (dict(_OF_BODIES) if body else {}) | dict(refusals)
    answers = {code: _response(text, answer, kind)}
    for number, reason in others.items():
        answers[number] = _response(reason, None if number == _EMPTY else answer, kind)
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


_SOURCES: Schema = {
    "id": _WHOLE,
    "name": _TEXT,
    "uri": _TEXT,
    "state": {"enum": ["connecting", "running", "reconnecting"]},
    "live": {"type": "boolean"},
    "last_frame_age_s": _NO_NUMBER,
    **dict.fromkeys(("frames", "dropped", "damaged", "reconnects"), _WHOLE),
    "error": _NO_TEXT,
}
_SOURCE = _object(_SOURCES, *_SOURCES)
