"""The JSON schema of Headrace's pipeline file, for editors and other programs.

Made from the same table that `load_pipeline` reads by; the package has it as
`headrace/config/pipeline.schema.json`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from headrace import config
from headrace.config.key import Key
from headrace.config.pipeline_keys import (
    COLORS,
    MAX_ITEMS,
    MESSAGE_SCHEMES,
    RECEIVED_SCHEMES,
    SECTIONS,
    STREAM_SCHEMES,
    TOP_KEYS,
    Section,
)
from headrace.config.values import Kind

SCHEMA_FILE = Path(config.__file__).with_name("pipeline.schema.json")

Schema = dict[str, Any]

_FLAG: Schema = {"enum": [True, False, "on", "off", "yes", "no"]}
_TEXT: Schema = {"type": "string", "minLength": 1}
_UNIT = "(0|1|0?\\.[0-9]+|1\\.0*)"  # a number from 0 to 1
_COUNT = "(0|[1-9][0-9]{0,9})"
_SIDE = "([1-9]|[1-5][0-9]|6[0-4])"  # 1 to 64
_MESSAGE_URI = f"({'|'.join(map(re.escape, MESSAGE_SCHEMES))})://[a-zA-Z0-9][!-?A-Z_a-z~]*"
_STREAM_URI = f"({'|'.join(STREAM_SCHEMES)})://[a-zA-Z0-9][!-Z_a-z~]*"
_RECEIVED_URI = {
    "type": "string",
    "pattern": f"^({'|'.join(RECEIVED_SCHEMES)})://[a-zA-Z0-9][!-?A-Z_a-z~]*$",
}
_COLOR: Schema = {
    "anyOf": [
        {
            "type": "array",
            "items": {"type": "number", "minimum": 0, "maximum": 1},
            "minItems": 4,
            "maxItems": 4,
        },
        {"type": "string", "pattern": f"^{_UNIT}(;{_UNIT}){{3}};?$"},
    ]
}
_SHORT: dict[str, Schema] = {
    "tracker": {
        "type": "string",
        "pattern": "\\.ya?ml$|^[A-Za-z][A-Za-z0-9_.-]*(:[^:,=]+=[^,]+(,[^,=]+=[^,]+)*)?$",
    },
    "tiler": {"type": "string", "pattern": f"^{_SIDE} ?[x*×] ?{_SIDE}$"},
    "osd": _FLAG,
    "consumers": _RECEIVED_URI,
}


def pipeline_schema() -> Schema:
    """Return the schema (draft 2020-12).

    What it accepts, `load_pipeline` reads, apart from what only the reader can see: paths that
    cannot be looked at, names given twice, sources that are not there.
    """
    properties: Schema = {name: _section(section) for name, section in SECTIONS.items()}
    properties |= {name: _key(key) for name, key in TOP_KEYS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Headrace pipeline file",
        "type": "object",
        "properties": properties,
        "required": ["sources"],
        "additionalProperties": False,
    }


def _section(section: Section) -> Schema:
    item: Schema = {"anyOf": [_short(section), _long(section)]}
    if not section.many:
        return item
    many: Schema = {"type": "array", "items": item, "maxItems": MAX_ITEMS}
    if section.name == "sources":
        many["minItems"] = 1
    return {"anyOf": [*item["anyOf"], many]}


def _short(section: Section) -> Schema:
    return _SHORT.get(section.name, _TEXT) | {"description": section.short_says}


def _long(section: Section) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {name: _key(key) for name, key in section.keys.items()},
        "additionalProperties": False,
    }
    if section.required:
        schema["required"] = [section.required]
    if section.name == "consumers":
        schema["properties"]["uri"] |= _RECEIVED_URI
    elif section.name == "tracker":
        schema["oneOf"] = [{"required": ["name"]}, {"required": ["config"]}]
    elif section.name == "sinks":
        fake = {"properties": {"kind": {"const": "fake"}}, "required": ["kind"]}
        schema["properties"]["uri"]["pattern"] = f"^({_MESSAGE_URI}|{_STREAM_URI})$"
        schema["anyOf"] = [
            {
                "required": ["path"],
                "properties": {"kind": {"not": {"enum": ["messages", "publish"]}}},
                "not": {"required": ["uri"]},
            },
            fake,
            _output_uri("messages", _MESSAGE_URI),
            _output_uri("publish", _STREAM_URI),
        ]
    return schema


def _output_uri(kind: str, pattern: str) -> Schema:
    fields = {"kind": {"const": kind}, "uri": {"pattern": f"^{pattern}$"}}
    return {"properties": fields, "required": ["uri"], "not": {"required": ["path"]}}


def _key(key: Key) -> Schema:
    schema = _value(key) | {"description": key.meaning}
    if key.group == "pipeline" and key.default is not None:
        schema["default"] = key.default
    return schema


def _value(key: Key) -> Schema:
    if key.name in COLORS:
        return {
            "type": "object",
            "propertyNames": {"pattern": "^(all|0|[1-9][0-9]{0,8})$"},
            "additionalProperties": _COLOR,
        }
    if key.name == "settings":
        return {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_-]*$"},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        }
    if key.enum is not None:
        names = [member.name.lower() for member in key.enum]
        return {"enum": [*names, *(int(member) for member in key.enum)]}
    if key.choices:
        return {"enum": list(key.choices)}
    if key.kind is Kind.FLAG:
        return dict(_FLAG)
    if key.kind is Kind.FLOATS:
        return dict(_COLOR)
    if key.kind in (Kind.INT, Kind.FLOAT, Kind.INTS):
        number = _number(key)
        if key.kind is Kind.INTS and key.counts:
            (count,) = key.counts
            return {"type": "array", "items": number, "minItems": count, "maxItems": count}
        if key.kind is Kind.INTS:
            text = {"type": "string", "pattern": f"^{_COUNT}(;{_COUNT})*;?$"}
            return {"anyOf": [{"type": "array", "items": number}, number, text]}
        return number
    return dict(_TEXT)


def _number(key: Key) -> Schema:
    schema: Schema = {"type": "number" if key.kind is Kind.FLOAT else "integer"}
    if key.low is not None:
        schema["minimum"] = key.low
    high = key.high if key.high is not None or key.kind is Kind.FLOAT else 2**31 - 1
    if high is not None:
        schema["maximum"] = high
    if key.low is None and key.kind is not Kind.FLOAT:
        schema["minimum"] = -(2**31)
    return schema


def schema_text() -> str:
    """Return the schema as its file holds it."""
    return json.dumps(pipeline_schema(), indent=1, ensure_ascii=False) + "\n"
